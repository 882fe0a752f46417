//! The heartbeats that go to a partner, a round at a time.

use super::Partner;
use crate::change::{Change, Configurations};
use crate::outgoing::Outgoing;
use crate::setup::{Setup, Timing};
use alloc::vec::Vec;
use bumpless_base::{Duration, Instant, LinkId, LinkSet};
use bumpless_wire::{GroupEntry, HeartbeatHeader, MAX_GROUPS, MAX_HEARTBEAT_LEN, encode_heartbeat};

/// A heartbeat round: one content for all links, so that its copies cannot contradict each other.
#[derive(Clone, Debug, Hash)]
pub(super) struct Round {
    pub(super) sent_at: Instant,
    pub(super) lease_echo: u64,
    pub(super) configurations: Configurations,
    pub(super) entries: Vec<GroupEntry>,
    /// Links on which this round has yet to be sent.
    pub(super) pending: LinkSet,
    /// When the next regular round is due.
    pub(super) next: Instant,
    /// This round goes out at full length.
    pub(super) full: bool,
    pub(super) urgent: bool,
    /// The next round opens when a newer one of the partner's comes, unless that is much too early.
    pub(super) follows: bool,
}

impl Round {
    /// None yet; the first is due at `now`.
    pub(super) fn none(now: Instant) -> Self {
        Self {
            sent_at: Instant::ZERO,
            lease_echo: 0,
            configurations: Configurations::default(),
            entries: Vec::with_capacity(MAX_GROUPS),
            pending: LinkSet::EMPTY,
            next: now,
            full: false,
            urgent: true,
            follows: false,
        }
    }
}

impl Partner {
    /// A newer round of the partner's has come: a node that follows it has its own due, if it would be soon anyway.
    pub(super) fn follow(&mut self, timing: &Timing, now: Instant) {
        let round = &mut self.round;
        if round.follows && now + timing.follow_slack() >= round.sent_at + timing.heartbeat {
            round.next = round.next.min(now);
        }
    }

    /// Asks for a round as soon as the rate limit allows.
    pub(crate) const fn hurry(&mut self) {
        self.round.urgent = true;
    }

    /// Whether a round that opens at `now` is one of those that follow each other at the heartbeat's
    /// interval.
    pub(crate) fn is_round_regular(&self, now: Instant) -> bool {
        now >= self.round.next
    }

    /// When the next round is due.
    pub(crate) fn next_round(&self, timing: &Timing) -> Instant {
        if !self.round.urgent {
            return self.round.next;
        }
        if self.round.sent_at == Instant::ZERO {
            return Instant::ZERO;
        }
        self.round
            .next
            .min(self.round.sent_at + timing.rate_limit())
    }

    /// Opens a round that was due: freezes what it says. The send time stamped on it is `now`,
    /// and grows from round to round. `follows`: the next one answers the partner's next.
    pub(crate) fn open_round(
        &mut self,
        (timing, follows): (&Timing, bool),
        change: &mut Change,
        now: Instant,
        entries: impl Iterator<Item = GroupEntry>,
    ) {
        let round = &mut self.round;
        // After a late call the next round is an interval away: rounds are not made up for.
        round.next = now + timing.heartbeat;
        if follows {
            round.next += timing.follow_slack();
        }
        (round.urgent, round.follows) = (false, follows);
        round.full = timing.full_length != Duration::ZERO && now >= self.next_full;
        if round.full {
            self.next_full = now + timing.full_length;
        }
        round.sent_at = now.max(Instant::from_nanos(1));
        round.lease_echo = self.latest;
        change.announce(round.sent_at.as_nanos(), self.configurations);
        round.configurations = change.configurations();
        round.entries.clear();
        round.entries.extend(entries.take(MAX_GROUPS));
        round.pending = self.links;
    }

    /// Writes the next heartbeat of the open round, if any.
    pub(crate) fn poll_transmit(
        &mut self,
        setup: &Setup,
        now: Instant,
        out: &mut [u8; MAX_HEARTBEAT_LEN],
    ) -> Option<Outgoing> {
        let link = self.round.pending.iter().next()?;
        let (peer, padded) = (self.peer, self.round.full);
        self.states[usize::from(link.0)].sent(padded);
        let len = self.write(link, setup, now, out);
        Some(Outgoing::Heartbeat {
            peer,
            link,
            len,
            padded,
        })
    }

    // Apart: mostly there is none to write.
    #[inline(never)]
    fn write(
        &mut self,
        link: LinkId,
        setup: &Setup,
        now: Instant,
        out: &mut [u8; MAX_HEARTBEAT_LEN],
    ) -> usize {
        self.round.pending.remove(link);
        let state = &self.states[usize::from(link.0)];
        let (echo_sent_at, heard_at) = state.echo();
        let held = now.since(heard_at).as_micros();
        let header = HeartbeatHeader {
            pair: setup.pair,
            fingerprint: self.round.configurations.current,
            from: setup.node,
            to: self.node,
            link,
            session: self.session.own(),
            challenge: self.session.challenge(),
            echo_session: self.session.adopted(),
            echo_challenge: self.session.heard_challenge(),
            sent_at: self.round.sent_at.as_nanos(),
            echo_sent_at,
            echo_delay: u32::try_from(held).unwrap_or(u32::MAX),
            lease_echo: self.round.lease_echo,
            next: self.round.configurations.next,
            full_echo: state.full_echo(),
            padded: self.round.full,
        };
        encode_heartbeat(&header, self.round.entries.iter().copied(), out)
    }
}
