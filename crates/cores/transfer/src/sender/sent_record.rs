//! When each packet was sent on one link, in one word per packet.

use alloc::boxed::Box;
use alloc::vec;
use bumpless_base::{Duration, Instant, LinkId};

/// Nanoseconds of a tick; 30 bits of ticks are 274 s, after which they stand still.
const TICK: u64 = 256;
const MAX_TICK: u32 = (1 << 30) - 1;
const MAX_RESENT: u32 = 3;

/// The latest sending of a packet on a link: bits 0 and 1 say how often it was sent again, the
/// others the tick plus one. Zero: never sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SentRecord(u32);

/// Place in the order in which a channel's packets left on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sending {
    /// Ticks since the transfer began, plus one.
    tick: u32,
    sequence: u32,
}

impl Sending {
    /// The packet.
    pub fn sequence(self) -> u32 {
        self.sequence
    }
}

/// In which queue of its link a channel stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    /// It has nothing to send there.
    #[default]
    Nowhere,
    /// Its next packet was sent before on some link, or is a probe: the in-flight limit does not
    /// apply.
    Again,
    /// Its next packet was never sent: it goes only below the in-flight limit.
    First,
}

/// A channel on one of its links.
#[derive(Debug)]
pub(super) struct ChannelPath {
    pub link: LinkId,
    pub place: Place,
    /// Something is to be sent here to ask for an acknowledgement.
    pub probe: bool,
    /// When something was last sent here in this transfer.
    pub last_sent: Instant,
    /// The latest sending that has arrived: what left here before it and was not received is lost here.
    evidence: Option<Sending>,
    /// The latest sending.
    last: Option<Sending>,
    /// The latest sending that was not its packet's first here.
    again: Option<Sending>,
    /// The first sending of the packet that was last sent for the second time.
    first: Option<Sending>,
    /// When the transfer began; ticks count from then.
    began: Instant,
    /// By packet.
    marks: Box<[SentRecord]>,
}

impl ChannelPath {
    pub fn new(link: LinkId, packets: u32) -> Self {
        Self {
            link,
            place: Place::Nowhere,
            probe: false,
            last_sent: Instant::ZERO,
            evidence: None,
            last: None,
            again: None,
            first: None,
            began: Instant::ZERO,
            marks: vec![SentRecord::default(); packets as usize].into_boxed_slice(),
        }
    }

    /// Forgets everything, for a transfer of `packets` packets that begins at `now`.
    pub fn restart(&mut self, packets: u32, now: Instant) {
        self.probe = false;
        self.last_sent = now;
        self.evidence = None;
        self.last = None;
        self.again = None;
        self.first = None;
        self.began = now;
        if let Some(marks) = self.marks.get_mut(..packets as usize) {
            marks.fill(SentRecord::default());
        }
    }

    fn mark(&self, sequence: u32) -> SentRecord {
        self.marks
            .get(sequence as usize)
            .copied()
            .unwrap_or_default()
    }

    /// Notes that a packet leaves at `now`; returns whether it had left here before.
    pub fn send(&mut self, sequence: u32, now: Instant) -> bool {
        let ticks = now.since(self.began).as_nanos() / TICK + 1;
        let mut sending = Sending {
            tick: ticks.min(u64::from(MAX_TICK)) as u32,
            sequence,
        };
        // Many packets leave in one tick. Those in ascending order are told apart by their
        // numbers; the tick is moved on only for one that is not.
        if let Some(last) = self.last {
            sending.tick = sending.tick.max(last.tick);
            if sending <= last {
                sending.tick = (last.tick + 1).min(MAX_TICK);
            }
        }
        self.last = Some(sending);
        self.last_sent = now;
        let before = self.mark(sequence);
        let resent = match before {
            SentRecord(0) => 0,
            SentRecord(raw) => ((raw & MAX_RESENT) + 1).min(MAX_RESENT),
        };
        if let Some(mark) = self.marks.get_mut(sequence as usize) {
            *mark = SentRecord(sending.tick << 2 | resent);
        }
        let again = before != SentRecord(0);
        if again {
            self.again = Some(sending);
            if resent == 1 {
                let tick = before.0 >> 2;
                self.first = Some(Sending { tick, sequence });
            }
        }
        again
    }

    /// Whether something was sent again after `sending`.
    pub fn was_again_after(&self, sending: Sending) -> bool {
        self.again.is_some_and(|again| again > sending)
    }

    /// The latest sending of a packet here.
    pub fn sending(&self, sequence: u32) -> Option<Sending> {
        let tick = self.mark(sequence).0 >> 2;
        (tick != 0).then_some(Sending { tick, sequence })
    }

    /// The sending that a receiver means by the packet's number and its mark of retransmission;
    /// `None` if there were several such.
    pub fn sending_meant(&self, sequence: u32, retransmission: bool) -> Option<Sending> {
        let resent = self.mark(sequence).0 & MAX_RESENT;
        let only = resent == u32::from(retransmission);
        self.sending(sequence).filter(|_| only)
    }

    /// The first sending of a packet that was sent again since; `None` if another packet was sent for the second time
    /// later.
    pub fn first_of(&self, sequence: u32) -> Option<Sending> {
        self.first.filter(|first| first.sequence == sequence)
    }

    /// When a sending left.
    pub fn left_at(&self, sending: Sending) -> Instant {
        self.began + Duration::from_nanos(u64::from(sending.tick - 1) * TICK)
    }

    /// Notes that a sending has arrived.
    pub fn arrived(&mut self, sending: Sending) {
        self.evidence = self.evidence.max(Some(sending));
    }

    /// Whether something that left later has arrived.
    pub fn overtaken(&self, sending: Sending) -> bool {
        self.evidence.is_some_and(|evidence| sending < evidence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    proptest! {
        #[test]
        fn marks_order_sendings_as_they_left(
            steps in proptest::collection::vec((0u32..8, 0u64..600), 1..100)
        ) {
            let mut path = ChannelPath::new(LinkId(0), 8);
            path.restart(8, Instant::ZERO);
            let mut now = Instant::ZERO;
            let mut twin: Vec<u32> = Vec::new();
            let mut firsts = [None; 8];
            for (sequence, wait) in steps {
                now += Duration::from_nanos(wait);
                prop_assert_eq!(path.send(sequence, now), twin.contains(&sequence));
                twin.push(sequence);
                firsts[sequence as usize] = firsts[sequence as usize].or(path.sending(sequence));
            }
            let last = |s: u32| twin.iter().rposition(|&x| x == s);
            for a in 0..8 {
                let times = twin.iter().filter(|&&x| x == a).count();
                prop_assert_eq!(path.sending_meant(a, false).is_some(), times == 1);
                prop_assert_eq!(path.sending_meant(a, true).is_some(), times == 2);
                if let Some(first) = path.first_of(a) {
                    prop_assert_eq!(Some(first), firsts[a as usize]);
                    prop_assert!(times > 1);
                }
                for b in 0..8 {
                    prop_assert_eq!(path.sending(a).cmp(&path.sending(b)), last(a).cmp(&last(b)));
                }
            }
        }
    }
}
