//! What acknowledgements lead to.

use super::Sender;
use super::channel::Channel;
use super::peer::Peer;
use super::sent_record::Sending;
use crate::event::{FailureCause, SenderEvent};
use crate::place::ChannelPlace;
use crate::setup;
use bumpless_base::{Counter, Instant, LinkId, PeerId};
use bumpless_wire::{Ack, WireVersion};

impl Channel {
    /// Whether an acknowledgement speaks of the open transfer and of nothing but what was sent.
    fn check(&self, ack: &Ack<'_>) -> Result<(), Counter> {
        let open = self.transfer.filter(|t| t.started > 0);
        let Some(transfer) = open.filter(|_| ack.cycle == self.cycle) else {
            return Err(Counter::DiscardStaleAck);
        };
        let highest = ack.blocks().last().map(|(_, high)| high);
        let known = |sequence: Option<u32>| sequence.is_none_or(|s| s < transfer.started);
        let counted = ack.received.is_none_or(|n| n <= transfer.started);
        if known(highest) && known(ack.trigger) && counted {
            Ok(())
        } else {
            Err(Counter::DiscardForgedAck)
        }
    }

    /// Takes the blocks into account. Returns how many packets they newly acknowledge, and the
    /// latest of those that were sent only once on the channel's only link.
    fn absorb(&mut self, ack: &Ack<'_>) -> (u32, Option<Sending>) {
        let Some(mut transfer) = self.transfer else {
            return (0, None);
        };
        let (mut newly, mut latest) = (0, None);
        for (low, high) in ack.blocks() {
            let mut from = low.max(transfer.whole_below) as usize;
            let end = high as usize + 1;
            while let Some(at) = self.acknowledged.next_absent(from, end) {
                self.acknowledged.insert(at);
                transfer.lost -= u32::from(self.lost.remove(at));
                if let [path] = &*self.paths {
                    latest = latest.max(path.sending_meant(at as u32, false));
                }
                newly += 1;
                from = at + 1;
            }
        }
        transfer.acknowledged += newly;
        let whole = self
            .acknowledged
            .next_absent(transfer.whole_below as usize, transfer.packets as usize);
        transfer.whole_below = whole.map_or(transfer.packets, |at| at as u32);
        self.transfer = Some(transfer);
        (newly, latest)
    }

    /// The sending whose arrival made the receiver acknowledge, and its path.
    fn triggering(&self, ack: &Ack<'_>) -> Option<(usize, Sending)> {
        let path = self.path_of(ack.link?)?;
        let (trigger, on) = (ack.trigger?, &self.paths[path]);
        // Whatever was sent since, one that is not marked left first.
        let first = on.first_of(trigger).filter(|_| !ack.retransmission);
        let sending = first.or_else(|| on.sending_meant(trigger, ack.retransmission))?;
        Some((path, sending))
    }

    /// Measures a round trip, if the acknowledgement came back on the link of its trigger.
    fn measure(
        &self,
        (path, sending): (usize, Sending),
        arrival: LinkId,
        peer: &mut Peer,
        now: Instant,
    ) {
        let path = &self.paths[path];
        if path.link == arrival
            && let Some(link) = peer.links.get_mut(usize::from(arrival.0))
        {
            let asked = path.sending(sending.sequence()) != Some(sending);
            link.round_trip.answered(path.left_at(sending), now, asked);
        }
    }
}

impl Sender {
    /// Takes an acknowledgement that came from `peer` on the link `arrival`.
    pub fn handle_ack(&mut self, peer: PeerId, ack: &Ack<'_>, arrival: LinkId, now: Instant) {
        match self.admit_ack(peer, ack) {
            Ok(index) => self.take_ack(index, ack, arrival, now),
            Err(cause) => self.counters.count(cause),
        }
    }

    fn admit_ack(&self, peer: PeerId, ack: &Ack<'_>) -> Result<ChannelPlace, Counter> {
        let Some(peer) = self.peers.get(usize::from(peer.0)) else {
            return Err(Counter::DiscardUnknownSource);
        };
        if ack.version != peer.setup.version {
            return Err(Counter::DiscardWrongVersion);
        }
        match (peer.tag, ack.version) {
            (Some(_), WireVersion::V1) => {}
            (Some(tag), WireVersion::V2) if tag == ack.tag => {}
            _ => return Err(Counter::DiscardWrongSession),
        }
        setup::find(&peer.table, ack.channel).ok_or(Counter::DiscardUnknownChannel)
    }

    fn take_ack(&mut self, index: ChannelPlace, ack: &Ack<'_>, arrival: LinkId, now: Instant) {
        let channel = &mut self.channels[index];
        let peer = &mut self.peers[usize::from(channel.setup.peer.0)];
        peer.unanswered = 0;
        if let Err(cause) = channel.check(ack) {
            // A copy through a slower link still tells that link's round trip.
            if ack.cycle == channel.cycle
                && channel.transfer.is_none()
                && let Some(trigger) = channel.triggering(ack)
            {
                channel.measure(trigger, arrival, peer, now);
            }
            self.counters.count(cause);
            return;
        }
        self.counters.count(Counter::AcksReceived);
        let late = channel.transfer.is_some_and(|t| t.deadline < now);
        if late {
            self.fail(index, FailureCause::DeadlineUnreachable);
            return self.adopt_waiting(index, now);
        }
        let trigger = channel.triggering(ack);
        let (newly, latest) = channel.absorb(ack);
        peer.release(newly);
        if let Some((path, sending)) = trigger {
            channel.paths[path].arrived(sending);
            channel.measure((path, sending), arrival, peer, now);
        } else if let Some(sending) = latest {
            channel.paths[0].arrived(sending);
            // Version 1 names no trigger. The latest new packet is it, unless something was sent again
            // after it: then it may have arrived long before.
            if ack.version == WireVersion::V1 && !channel.paths[0].was_again_after(sending) {
                channel.measure((0, sending), arrival, peer, now);
            }
        }
        let mut due = false;
        for path in &mut channel.paths {
            due |= core::mem::take(&mut path.probe);
        }
        if let Some(transfer) = &mut channel.transfer {
            transfer.heard_at = now;
            transfer.probes = transfer.probes.min(1);
        }
        self.conclude(index, ack, due, now);
    }

    /// What follows from an acknowledgement; `due`: a probe was about to leave.
    fn conclude(&mut self, index: ChannelPlace, ack: &Ack<'_>, due: bool, now: Instant) {
        let channel = &mut self.channels[index];
        let peer = &self.peers[usize::from(channel.setup.peer.0)];
        let Some(transfer) = channel.transfer else {
            return;
        };
        if transfer.acknowledged == transfer.packets {
            self.counters.count(Counter::StatesSafe);
            let event = SenderEvent::Safe {
                channel: index,
                ticket: transfer.ticket,
                cycle: channel.cycle,
                took: now.since(transfer.published_at),
            };
            self.end_transfer(index);
            self.tell(event);
            return self.adopt_waiting(index, now);
        }
        channel.judge_gaps(ack, peer, now);
        if let Some(judged) = &mut channel.transfer
            && judged.lost > transfer.lost
            && !due
        {
            judged.probes = 0;
        }
        if channel.transfer.is_some_and(|t| !t.fits(now)) {
            self.fail(index, FailureCause::DeadlineUnreachable);
            return self.adopt_waiting(index, now);
        }
        self.settle(index);
    }
}
