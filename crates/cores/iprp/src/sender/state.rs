//! What a sender is made of, and what ends with time.

use super::keep::Keep;
use super::peer_base::{PeerBase, Sealing, Session};
use super::standby::Standby;
use crate::counters::SenderTotals;
use crate::event::{EndCause, SenderEvent, SessionId};
use crate::flow::Side;
use crate::ind::{Ind, MAX_NETWORKS, Networks};
use crate::keys::Groups;
use crate::setup::{Group, MAX_GROUPS, Mode, SenderSetup, SetupError};
use crate::trials::Trials;
use alloc::vec::Vec;
use bumpless_base::{BoundedQueue, Instant, Random};
use bumpless_secure::Suite;

/// Events of one session between two times that they are collected: its begin, its end, and one of each network. All sessions may have
/// them at once, as when a host is disowned or a network is lost.
const EVENTS_EACH: usize = 2 + MAX_NETWORKS;
/// Events beside those.
const EVENTS: usize = 64;

/// The parts of a sender.
pub(crate) struct State<S: Suite> {
    pub networks: Networks,
    pub groups: Groups<S>,
    /// How this process calls itself: random, never zero.
    pub process: u64,
    /// Sequence-number spaces that were begun.
    pub spaces: u32,
    pub base: PeerBase<S>,
    pub keep: Keep,
    pub trials: Trials,
    pub events: BoundedQueue<SenderEvent>,
    pub totals: SenderTotals,
}

impl<S: Suite> State<S> {
    pub(crate) fn new(setup: SenderSetup) -> Result<Self, SetupError> {
        check(&setup)?;
        let SenderSetup {
            networks,
            groups,
            limits,
            seed,
        } = setup;
        let groups = Groups::told_apart(groups)?;
        let mut random = Random::new(seed);
        Ok(Self {
            networks,
            groups,
            process: random.next_u64().max(1),
            spaces: 0,
            base: PeerBase::new(limits.sessions, random.next_u64()),
            keep: Keep::new(limits.kept_packets, limits.kept_len),
            trials: Trials::default(),
            events: BoundedQueue::new(limits.sessions * EVENTS_EACH + EVENTS),
            totals: SenderTotals::default(),
        })
    }

    pub(crate) fn notify(&mut self, event: SenderEvent) {
        push(&mut self.events, &mut self.totals, event);
    }

    /// A sequence-number space that this process has not used; its lowest bit is `side`. None after 2^31.
    pub(crate) fn next_space(&mut self, side: u32) -> Option<u32> {
        let next = self
            .spaces
            .checked_add(1)
            .filter(|next| *next <= u32::MAX >> 1)?;
        self.spaces = next;
        Some(next << 1 | side & 1)
    }

    pub(crate) fn end(&mut self, place: usize, cause: EndCause) {
        let Some(mut session) = self.base.remove(place) else {
            return;
        };
        self.totals.kept_at_end += self.keep.drop_all(&mut session.standby.kept);
        self.notify(SenderEvent::Ended {
            session: SessionId(place as u32),
            scope: session.scope,
            cause,
        });
    }

    /// Groups have these secrets from here on; sessions are sealed with those that seal at once.
    pub(crate) fn set_groups(&mut self, groups: Vec<Group>) -> Result<(), SetupError> {
        check_groups(&groups)?;
        self.groups = Groups::told_apart(groups)?;
        for place in 0..self.base.capacity() {
            self.reseal_for_group(place);
        }
        Ok(())
    }

    fn reseal_for_group(&mut self, place: usize) {
        let session = self.base.get(place).filter(|it| it.sealing.group);
        let Some((scope, tag, before)) = session.map(|it| (it.scope, it.sealing.tag, it.space))
        else {
            return;
        };
        let sealing = self.groups.sealing(scope.destination, self.process);
        if sealing.as_ref().is_some_and(|(next, _)| *next == tag) {
            return;
        }
        // Another key has numbers of its own.
        let space = self.next_space(before & 1);
        let (Some((tag, material)), Some(space)) = (sealing, space) else {
            return self.end(place, EndCause::NotMonitored);
        };
        if let Some(session) = self.base.get_mut(place) {
            session.reseal(Sealing::new(tag, 0, true, material), Some(space));
        }
        self.base.move_space(place, before, space);
    }

    pub(crate) fn set_networks(&mut self, networks: Networks) {
        self.networks = networks;
        for place in 0..self.base.capacity() {
            let Some(session) = self.base.get_mut(place) else {
                continue;
            };
            let (events, totals) = (&mut self.events, &mut self.totals);
            session.match_networks(&networks, |ind, is_there| {
                push(events, totals, network_event(place, ind, is_there));
            });
            if let Some((from, to)) = session.prefer(&networks) {
                let session = SessionId(place as u32);
                let again = 0;
                push(
                    events,
                    totals,
                    SenderEvent::Moved {
                        session,
                        from,
                        to,
                        again,
                    },
                );
            }
        }
    }

    pub(crate) fn set_mode(&mut self, place: usize, mode: Mode) {
        let Some(session) = self.base.get_mut(place) else {
            return;
        };
        let is_multicast = session.scope.is_multicast();
        if session.mode == mode || is_multicast {
            return;
        }
        session.mode = mode;
        self.totals.kept_at_end += self.keep.drop_all(&mut session.standby.kept);
        session.standby = Standby::default();
    }

    pub(crate) fn poll_timeout(&self) -> Instant {
        let of = |next: Option<(Instant, usize)>| next.map_or(Instant::FAR_FUTURE, |(at, _)| at);
        of(self.base.next_end()).min(of(self.base.next_wake()))
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, place)) = self.base.next_end()
            && at <= now
        {
            match self
                .base
                .get(place)
                .map(|session: &Session<S>| session.ends)
            {
                Some(ends) if ends > now => self.base.set_end(place, ends),
                _ => self.end(place, EndCause::NotAdvertised),
            }
        }
    }

    /// Sees to it that the session at `place` has a number for one packet more.
    #[inline]
    pub(super) fn make_number(&mut self, place: usize) -> bool {
        let session = self.base.get(place);
        if session.is_some_and(|session| session.next < u32::MAX) {
            return true;
        }
        self.begin_space(place)
    }

    /// The numbers of a space are used up: they begin anew in another one.
    #[cold]
    fn begin_space(&mut self, place: usize) -> bool {
        let side = self.base.get(place).map(|session| session.scope.side);
        let Some(space) = self.next_space(u32::from(side == Some(Side::Source))) else {
            return false;
        };
        let Some(session) = self.base.get_mut(place) else {
            return false;
        };
        let before = session.space;
        self.totals.kept_at_end += self.keep.drop_all(&mut session.standby.kept);
        session.begin_space(space);
        self.base.move_space(place, before, space);
        true
    }
}

pub(crate) fn push(
    events: &mut BoundedQueue<SenderEvent>,
    totals: &mut SenderTotals,
    event: SenderEvent,
) {
    if events.push(event).is_err() {
        totals.events_lost += 1;
    }
}

/// That a session has a network more, or less.
pub(crate) const fn network_event(place: usize, ind: Ind, is_there: bool) -> SenderEvent {
    let session = SessionId(place as u32);
    match is_there {
        true => SenderEvent::NetworkAdded { session, ind },
        false => SenderEvent::NetworkRemoved { session, ind },
    }
}

fn check(setup: &SenderSetup) -> Result<(), SetupError> {
    let limits = setup.limits;
    if limits.sessions == 0 || limits.sessions > 1 << 20 {
        return Err(SetupError::Limit("sessions"));
    }
    if limits.kept_packets > 1 << 20 {
        return Err(SetupError::Limit("kept_packets"));
    }
    if limits.kept_len > 1 << 16 {
        return Err(SetupError::Limit("kept_len"));
    }
    check_groups(&setup.groups)
}

fn check_groups(groups: &[Group]) -> Result<(), SetupError> {
    if groups.len() > MAX_GROUPS {
        return Err(SetupError::TooManyGroups);
    }
    for (at, group) in groups.iter().enumerate() {
        let twice = groups[..at].iter().any(|it| it.address == group.address);
        if twice || !group.address.is_multicast() {
            return Err(SetupError::Group(group.address));
        }
        if group.secrets.is_empty() || group.secrets.len() > 4 {
            return Err(SetupError::GroupSecrets(group.address));
        }
    }
    Ok(())
}
