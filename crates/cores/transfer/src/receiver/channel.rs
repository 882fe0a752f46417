//! One receiving channel: which transfer cycle is being assembled, and into what.

use super::reception::{Arrival, Reception};
use crate::handover::{Delivery, Incoming};
use crate::setup::ReceiverChannel;
use alloc::boxed::Box;
use alloc::sync::Arc;
use bumpless_base::{
    ChannelId, Counter, Duration, Instant, LinkId, LinkSet, MAX_LINKS, PeerId, Serial16, Serial32,
};
use bumpless_wire::{DataHeader, WireVersion, packet_count, piece};

/// Where the newest transfer cycle stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// No packet of this session has been taken.
    Nothing,
    /// Some packets are in the spare buffer.
    Assembling,
    /// The state was delivered.
    Complete,
    /// The state expired before it was whole.
    Abandoned,
}

/// A packet that makes the receiver acknowledge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trigger {
    pub sequence: u32,
    pub link: LinkId,
    pub retransmission: bool,
}

impl Trigger {
    pub fn of(header: &DataHeader) -> Self {
        Self {
            sequence: header.sequence,
            link: header.link,
            retransmission: header.retransmission,
        }
    }
}

/// What taking a packet led to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    /// A state of which a part had come was given up for this packet's cycle.
    pub abandoned: bool,
    /// The packet had not come before.
    pub new: bool,
    /// Acknowledge because of this packet.
    pub acknowledge: bool,
    /// It was the last one missing.
    pub complete: bool,
}

pub(super) struct Channel {
    pub setup: ReceiverChannel,
    delivery: Arc<Delivery>,
    /// Where the newest transfer cycle is assembled; `None` while no buffer is free (T-35).
    spare: Option<Box<Incoming>>,
    /// Newest transfer cycle of which a packet was taken in this session.
    pub newest: u32,
    pub stage: Stage,
    /// Bytes of that cycle's state, and whether it is cut into short pieces.
    total: u32,
    short: bool,
    pub reception: Reception,
    /// The shortest expiry of the cycle's packets (first paper, 7.2.1).
    pub expires_at: Instant,
    /// Packets received since an acknowledgement was last due.
    pub unacknowledged: u32,
    /// Whether the peer's list of channels with unacknowledged packets has this one.
    pub listed: bool,
    /// Whether an acknowledgement is waiting to be polled.
    pub queued: bool,
    /// Links whose trigger is to be reported.
    pub triggered: LinkSet,
    pub triggers: [Option<Trigger>; MAX_LINKS],
    /// The cycle of the newest whole state, and until when it may be used.
    pub delivered: u32,
    pub fresh_until: Option<Instant>,
    /// The driver has not collected yet that this state came.
    pub update_waits: bool,
    /// When to report that no newer state has come; `None` once that is done.
    pub overdue_at: Option<Instant>,
}

impl Channel {
    /// A channel whose states have at most `most` packets.
    pub fn new(
        setup: &ReceiverChannel,
        most: u32,
        delivery: Arc<Delivery>,
        spare: Box<Incoming>,
    ) -> Self {
        Self {
            setup: *setup,
            delivery,
            spare: Some(spare),
            newest: 0,
            stage: Stage::Nothing,
            total: 0,
            short: false,
            reception: Reception::new(most),
            expires_at: Instant::FAR_FUTURE,
            unacknowledged: 0,
            listed: false,
            queued: false,
            triggered: LinkSet::EMPTY,
            triggers: [None; MAX_LINKS],
            delivered: 0,
            fresh_until: None,
            update_waits: false,
            overdue_at: None,
        }
    }

    /// What stands in a place that no channel has. It has no buffers.
    pub fn vacant() -> Self {
        const ANY: ChannelId = ChannelId::new(1).unwrap();
        let setup = ReceiverChannel {
            id: ANY,
            peer: PeerId(0),
            links: LinkSet::EMPTY,
            max_size: 0,
            expect_within: Duration::MAX,
        };
        Self {
            spare: None,
            ..Self::new(&setup, 1, Arc::default(), Incoming::new(0))
        }
    }

    /// Whether this stands for no channel: every channel has a link.
    pub fn is_vacant(&self) -> bool {
        self.setup.links.is_empty()
    }

    /// Whether both are the same channel to the peer.
    pub fn is_also(&self, other: &Self) -> bool {
        let who = |channel: &Self| (channel.setup.peer, channel.setup.id);
        !self.is_vacant() && !other.is_vacant() && who(self) == who(other)
    }

    /// Reports the channel as overdue so long after its last state. One that is overdue already, or
    /// had no such time, counts from its next state.
    pub fn expect_within(&mut self, span: Duration) {
        let before = core::mem::replace(&mut self.setup.expect_within, span);
        self.overdue_at = self
            .overdue_at
            .and_then(|at| finite(at.before(before) + span));
    }

    /// Takes no packet of a cycle up to `newest` in this session.
    pub fn follow(&mut self, newest: u32) {
        self.stage = Stage::Abandoned;
        self.newest = newest;
    }

    /// When this channel has something to do though no packet comes.
    pub fn due(&self) -> Option<Instant> {
        let expiry = (self.stage == Stage::Assembling).then_some(self.expires_at);
        match (expiry, self.overdue_at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Forgets the session; what was delivered stays readable. Returns whether a state of which a
    /// part had come was given up.
    pub fn end_session(&mut self) -> bool {
        let abandoned = self.stage == Stage::Assembling;
        self.stage = Stage::Nothing;
        self.unacknowledged = 0;
        self.listed = false;
        self.forget_triggers();
        abandoned
    }

    fn forget_triggers(&mut self) {
        self.triggered = LinkSet::EMPTY;
        self.triggers = [None; MAX_LINKS];
    }

    /// Takes a data packet that belongs to this channel and session.
    ///
    /// # Errors
    /// The cause for which the packet was discarded, and whether it asks for an acknowledgement
    /// all the same.
    pub fn take(
        &mut self,
        payload_size: u16,
        link: LinkId,
        header: &DataHeader,
        payload: &[u8],
        now: Instant,
    ) -> Result<Taken, (Counter, bool)> {
        let piece = piece(payload_size, header.short);
        let offset = place(&self.setup, piece, header, payload.len())
            .ok_or((Counter::DiscardWrongSize, false))?;
        if header.expiry == Duration::ZERO {
            return Err((Counter::DiscardExpired, false));
        }
        let last = header.sequence + 1 == packet_count(header.total_size, piece);
        let abandoned = self.enter_cycle(header, piece, last)?;
        self.expires_at = self.expires_at.min(now + header.expiry);
        let arrival = self.reception.arrive(header.sequence, link);
        let Arrival { new, hole, again } = arrival;
        if new {
            self.write(offset, payload);
        }
        let complete = new && self.reception.is_complete();
        // Whoever sends again waits to hear whether it helped.
        let again = again || header.retransmission;
        Ok(Taken {
            abandoned,
            new,
            acknowledge: hole || last || complete || again,
            complete,
        })
    }

    /// Makes the packet's transfer cycle the one that is assembled, if it may be. Returns whether
    /// an older one was given up for it.
    fn enter_cycle(
        &mut self,
        header: &DataHeader,
        piece: u16,
        last: bool,
    ) -> Result<bool, (Counter, bool)> {
        if self.stage != Stage::Nothing {
            if header.cycle == self.newest {
                let alike = (header.total_size, header.short) == (self.total, self.short);
                return match self.stage {
                    Stage::Assembling if alike => Ok(false),
                    Stage::Complete => {
                        let asks = last || header.retransmission;
                        Err((Counter::DiscardDuplicate, asks))
                    }
                    Stage::Abandoned => Err((Counter::DiscardExpired, false)),
                    _ => Err((Counter::DiscardWrongSize, false)),
                };
            }
            if !is_newer(header.version, header.cycle, self.newest) {
                return Err((Counter::DiscardOldCycle, false));
            }
        }
        if self.spare.is_none() {
            self.spare = self.delivery.spare();
        }
        if self.spare.is_none() {
            return Err((Counter::DiscardNoBuffer, false));
        }
        let abandoned = self.stage == Stage::Assembling;
        self.newest = header.cycle;
        self.stage = Stage::Assembling;
        (self.total, self.short) = (header.total_size, header.short);
        self.expires_at = Instant::FAR_FUTURE;
        self.reception
            .restart(packet_count(header.total_size, piece));
        self.forget_triggers();
        Ok(abandoned)
    }

    fn write(&mut self, offset: usize, payload: &[u8]) {
        let target = self
            .spare
            .as_mut()
            .and_then(|buffer| buffer.data.get_mut(offset..offset + payload.len()));
        if let Some(target) = target {
            target.copy_from_slice(payload);
        }
    }

    /// Gives the whole state to the application, unless it has expired. Returns whether it did.
    pub fn deliver(&mut self, now: Instant) -> bool {
        if self.expires_at <= now {
            self.stage = Stage::Abandoned;
            return false;
        }
        if let Some(mut buffer) = self.spare.take() {
            buffer.len = self.total as usize;
            buffer.cycle = self.newest;
            buffer.received_at = now;
            buffer.expires_at = self.expires_at;
            self.spare = self.delivery.deliver(buffer);
        }
        self.stage = Stage::Complete;
        self.delivered = self.newest;
        self.fresh_until = Some(self.expires_at);
        self.overdue_at = finite(now + self.setup.expect_within);
        true
    }

    /// The trigger to report in the next acknowledgement, and whether another one must follow.
    ///
    /// Each link's trigger is evidence about that link, so each is reported, except when
    /// everything is there.
    pub fn take_trigger(&mut self) -> (Option<Trigger>, bool) {
        let link = self.triggered.iter().next();
        let trigger = link.and_then(|link| self.triggers[usize::from(link.0)]);
        match link {
            Some(link) if !self.reception.is_complete() => self.triggered.remove(link),
            _ => self.triggered = LinkSet::EMPTY,
        }
        (trigger, !self.triggered.is_empty())
    }
}

fn finite(at: Instant) -> Option<Instant> {
    (at != Instant::FAR_FUTURE).then_some(at)
}

/// Where the payload belongs; `None` if sizes and sequence number contradict each other or the
/// channel's largest size.
fn place(
    setup: &ReceiverChannel,
    piece: u16,
    header: &DataHeader,
    payload_len: usize,
) -> Option<usize> {
    let packets = packet_count(header.total_size, piece);
    if header.total_size > setup.max_size || header.sequence >= packets {
        return None;
    }
    let offset = u64::from(header.sequence) * u64::from(piece);
    let left = u64::from(header.total_size) - offset;
    let expected = left.min(u64::from(piece));
    (payload_len as u64 == expected).then_some(offset as usize)
}

fn is_newer(version: WireVersion, cycle: u32, than: u32) -> bool {
    match version {
        WireVersion::V1 => Serial16(cycle as u16).is_newer_than(Serial16(than as u16)),
        WireVersion::V2 => Serial32(cycle).is_newer_than(Serial32(than)),
    }
}
