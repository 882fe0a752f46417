//! When a channel must look after itself: deadlines, expiry, requests for reports, probes.
//!
//! A channel that has packets in flight and nothing to send on a link hears no more unless it asks:
//! the last packet or its acknowledgement may be lost (first paper, 7.2.3).

use super::Sender;
use super::channel::{Channel, Transfer};
use super::peer::{Peer, keep};
use super::sent_record::{ChannelPath, Place};
use crate::event::FailureCause;
use crate::place::ChannelPlace;
use crate::round_trip::RoundTrip;
use bumpless_base::probing::{MAX_DOUBLINGS, PROMPT};
use bumpless_base::{Duration, Instant, LinkSet};

/// While fewer probes than these, of all channels to a peer, are unanswered, each channel probes promptly. From then
/// on only the one with the earliest deadline does, lest a partner that stands still be flooded.
const PROMPT_TOGETHER: u32 = 64;

impl Channel {
    /// Whether the channel has nothing to send on this path that could bring an acknowledgement.
    fn is_idle(&self, path: &ChannelPath, peer: &Peer) -> bool {
        match path.place {
            Place::Nowhere => true,
            Place::Again => false,
            Place::First => peer.stalled == Some(self.rank),
        }
    }

    fn idle<'a>(
        &'a self,
        usable: LinkSet,
        peer: &'a Peer,
    ) -> impl Iterator<Item = &'a ChannelPath> {
        self.paths
            .iter()
            .filter(move |path| usable.contains(path.link) && self.is_idle(path, peer))
    }

    /// The longest wait for an answer through any of the channel's usable links.
    fn longest(
        &self,
        usable: LinkSet,
        peer: &Peer,
        of: impl Fn(&RoundTrip) -> Duration,
    ) -> Duration {
        let each = usable.iter().filter_map(|link| peer.round_trip(link));
        each.map(of).max().unwrap_or_default()
    }

    /// When to send a probe on the idle paths.
    fn probe_at(&self, transfer: &Transfer, peer: &Peer) -> Option<Instant> {
        if transfer.in_flight() == 0 {
            return None;
        }
        let usable = self.usable(peer);
        let last_sent = self.idle(usable, peer).map(|path| path.last_sent).max()?;
        let wait = match transfer.probes {
            0 => self.longest(usable, peer, RoundTrip::overdue),
            1..PROMPT if self.may_press(peer) => self.longest(usable, peer, RoundTrip::expected),
            unanswered => {
                let probe_timeout = self.longest(usable, peer, RoundTrip::probe_timeout);
                probe_timeout * (1 << unanswered.min(MAX_DOUBLINGS))
            }
        };
        Some(last_sent + wait)
    }

    /// Whether an unanswered probe is followed by the next at once. Not to a partner that no link reaches:
    /// who is gone for hours would be sent each small state ten times.
    fn may_press(&self, peer: &Peer) -> bool {
        let reached = !self.setup.links.intersection(peer.healthy).is_empty();
        let first = || peer.flight.first().map(|(_, rank)| rank) == Some(self.rank);
        reached && (peer.unanswered < PROMPT_TOGETHER || first())
    }

    /// When this channel has something to do though no acknowledgement comes.
    fn due(&self, peer: &Peer) -> Option<Instant> {
        let Some(transfer) = &self.transfer else {
            return self.waiting.then_some(Instant::ZERO);
        };
        let end = transfer.deadline.min(transfer.expires_at);
        let ask = transfer.ask_at.unwrap_or(end);
        let probe = self.probe_at(transfer, peer).unwrap_or(end);
        Some(end.min(ask).min(probe))
    }

    /// Has the next packet on each usable path ask for an acknowledgement; where there is none, the
    /// last one is sent again for it.
    pub(super) fn request_report(&mut self, peer: &Peer) {
        let usable = self.usable(peer);
        let Some(transfer) = &mut self.transfer else {
            return;
        };
        transfer.ask_at = None;
        if transfer.in_flight() > 0 {
            for path in self.paths.iter_mut().filter(|l| usable.contains(l.link)) {
                path.probe = true;
            }
        }
    }

    /// Asks for an acknowledgement on the idle paths.
    fn probe(&mut self, peer: &mut Peer) {
        peer.unanswered = peer.unanswered.saturating_add(1);
        let usable = self.usable(peer);
        for at in 0..self.paths.len() {
            let path = &self.paths[at];
            if usable.contains(path.link) && self.is_idle(path, peer) {
                self.paths[at].probe = true;
            }
        }
        if let Some(transfer) = &mut self.transfer {
            transfer.probes += 1;
            // It asks for the report that was to be asked for.
            transfer.ask_at = None;
        }
    }

    /// The packet that a probe carries: the last one sent that is not acknowledged. Of packets that share links the
    /// last may be there before others, which have not been reported missing since nothing came after them on
    /// their link.
    pub(super) fn probe_packet(&self) -> Option<u32> {
        let transfer = self.transfer.as_ref()?;
        let (from, end) = (transfer.whole_below, transfer.started);
        let last = self.acknowledged.last_absent(from as usize, end as usize);
        last.map(|at| at as u32)
    }

    /// Whether an acknowledgement asked for at `now` is worth it: a round trip has passed since the
    /// last packet, answer or request.
    pub(super) fn may_ask(&self, peer: &Peer, now: Instant) -> bool {
        let Some(transfer) = &self.transfer else {
            return false;
        };
        let last_sent = self.paths.iter().map(|path| path.last_sent).max();
        let since = transfer.asked_at.max(transfer.heard_at);
        let since = last_sent.map_or(since, |last| since.max(last));
        let usable = self.usable(peer);
        let round_trip = usable.iter().filter_map(|link| peer.round_trip(link));
        let longest = round_trip.map(|r| r.smoothed()).max().unwrap_or_default();
        now >= since + longest
    }
}

impl Sender {
    /// Brings a channel's queues and timer in line with its state. Called after every change.
    pub(super) fn settle(&mut self, index: ChannelPlace) {
        self.settle_paths(index, |_, _| true);
    }

    /// The same after a packet has left on `path`. For another path one thing at most has changed: a packet
    /// that left for the `first` time no longer waits for the in-flight limit there.
    pub(super) fn settle_sent(&mut self, index: ChannelPlace, path: usize, first: bool) {
        let all = self.channels[index].shares();
        self.settle_paths(index, |at, place| {
            all || at == path || first && place == Place::First
        });
    }

    fn settle_paths(&mut self, index: ChannelPlace, concerns: impl Fn(usize, Place) -> bool) {
        let channel = &mut self.channels[index];
        let peer = &mut self.peers[usize::from(channel.setup.peer.0)];
        let (rank, usable) = (channel.rank, channel.usable(peer));
        let deadline = channel.transfer.map_or(Instant::ZERO, |t| t.deadline);
        let mut idle = true;
        for at in 0..channel.paths.len() {
            let known = channel.paths[at].place;
            let place = match concerns(at, known) {
                true => channel.place(at, usable),
                false => known,
            };
            let path = &mut channel.paths[at];
            idle &= place == Place::Nowhere;
            if known != place {
                path.place = place;
                peer.set_place(path.link, rank, place, (deadline, channel.setup.id));
            }
        }
        let in_flight = channel.transfer.is_some_and(|t| t.in_flight() > 0);
        keep(&mut peer.flight, rank, in_flight, deadline);
        keep(&mut peer.waiting, rank, in_flight && idle, deadline);
        match channel.due(peer) {
            Some(due) => keep(&mut self.timers, index, true, due),
            None => keep(&mut self.timers, index, false, Instant::ZERO),
        }
    }

    pub(super) fn on_timer(&mut self, index: ChannelPlace, now: Instant) {
        let channel = &mut self.channels[index];
        let peer = &mut self.peers[usize::from(channel.setup.peer.0)];
        match channel.transfer {
            None => {
                if channel.waiting {
                    self.adopt(index, now);
                }
            }
            Some(transfer) if transfer.deadline <= now => {
                self.fail(index, FailureCause::DeadlineUnreachable);
            }
            Some(transfer) if transfer.expires_at <= now => {
                self.fail(index, FailureCause::Expired);
            }
            Some(transfer) => {
                if transfer.ask_at.is_some_and(|at| at <= now) {
                    channel.request_report(peer);
                }
                if channel
                    .probe_at(&transfer, peer)
                    .is_some_and(|at| at <= now)
                {
                    channel.probe(peer);
                }
            }
        }
        self.settle(index);
    }

    /// The in-flight limit holds up channels of a peer: the earliest one in flight asks for its
    /// acknowledgement, since nobody else may send what would bring one.
    pub(super) fn note_stall(&mut self, peer_at: usize) -> bool {
        let peer = &mut self.peers[peer_at];
        let Some((_, rank)) = peer.flight.first() else {
            return false;
        };
        let began = peer.stalled.is_none();
        if peer.stalled != Some(rank) {
            peer.stalled = Some(rank);
            let index = peer.channels[rank];
            self.settle(index);
        }
        began
    }
}
