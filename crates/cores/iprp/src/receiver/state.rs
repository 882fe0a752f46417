//! What a receiver is made of, and what ends with time.

use super::active::{Active, ActiveSenders, Space, Standing};
use super::cycle::Cycle;
use super::key_numbers::KeyNumbers;
use super::processes::Processes;
use crate::counters::ReceiverTotals;
use crate::event::{EndCause, ReceiverEvent, SessionId};
use crate::flow::Scope;
use crate::ind::{Ind, Networks};
use crate::keys::{Groups, Root};
use crate::setup::{MAX_GROUPS, MAX_MONITORED, ReceiverLimits, ReceiverSetup, SetupError, Timing};
use crate::trials::Trials;
use alloc::vec::Vec;
use bumpless_base::{BoundedQueue, Duration, Instant, Random};
use bumpless_secure::Suite;
use core::net::SocketAddr;

use crate::flow::Monitored;

/// Events that wait for the driver.
const EVENTS: usize = 256;
/// What members of a group have sent is remembered for so long after their last packet, that nobody can repeat it: unlike a
/// sender to this host alone, they get no key of their own that ends.
pub(crate) const GROUP_MEMORY: Duration = Duration::from_secs(86_400);
/// Answers that wait for the driver.
const ANSWERS: usize = 1_024;

/// An answer that is to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub tag: u64,
    pub space: u32,
    pub key_number: u32,
    pub asked: u32,
    pub ind: Ind,
    pub on: Option<Ind>,
    pub to: SocketAddr,
}

/// The parts of a receiver.
pub(crate) struct State<S: Suite> {
    pub networks: Networks,
    pub monitored: Vec<Monitored>,
    pub timing: Timing,
    pub root: Root<S>,
    pub groups: Groups<S>,
    pub numbers: KeyNumbers,
    pub processes: Processes<S>,
    pub active: ActiveSenders,
    pub trials: Trials,
    /// Until when senders that an earlier process of this receiver knew are believed by their keys alone.
    pub recovers_until: Instant,
    pub random: Random,
    /// Told from other processes of this receiver by: answers' keys.
    pub boot: u64,
    /// Answers sealed with the keys of `boot`.
    pub answered: u32,
    pub answers: BoundedQueue<Pending>,
    /// The driver stops: what is on its way is taken, nobody is asked for copies any more, and nothing begins.
    pub stops: bool,
    pub events: BoundedQueue<ReceiverEvent>,
    /// The key has changed, and nobody has been told yet. It has a place of its own: were it lost for want of
    /// room, the next process of this receiver would take a number that this one has used.
    pub untold_key: Option<u32>,
    pub totals: ReceiverTotals,
}

impl<S: Suite> State<S> {
    pub(crate) fn new(setup: ReceiverSetup, now: Instant) -> Result<Self, SetupError> {
        check(&setup)?;
        let ReceiverSetup { timing, limits, .. } = setup;
        let max_lost = limits.max_lost.next_multiple_of(64);
        let groups = check_groups::<S>(setup.groups)?;
        let mut random = Random::new(setup.seed);
        let capacity = limits.sessions + limits.candidates;
        let grace = grace(&timing);
        let mut monitored = Vec::with_capacity(MAX_MONITORED);
        monitored.extend(setup.monitored);
        Ok(Self {
            networks: setup.networks,
            monitored,
            timing,
            root: Root::new(setup.root),
            groups,
            numbers: KeyNumbers::new(now, setup.key_number, timing.key_lifetime, grace),
            // A sender that starts anew has two for a while.
            processes: Processes::new(2 * capacity, random.next_u64()),
            active: ActiveSenders::new(
                limits.sessions,
                limits.candidates,
                max_lost,
                random.next_u64(),
            ),
            trials: Trials::default(),
            recovers_until: now + grace,
            boot: random.next_u64(),
            answered: 0,
            random,
            answers: BoundedQueue::new(ANSWERS),
            stops: false,
            events: BoundedQueue::new(EVENTS),
            untold_key: None,
            totals: ReceiverTotals::default(),
        })
    }

    /// Groups have these secrets from here on: what was sealed with another one is not opened any more, whoever sends it.
    pub(crate) fn set_groups(
        &mut self,
        groups: Vec<crate::setup::Group>,
    ) -> Result<(), SetupError> {
        self.groups = check_groups::<S>(groups)?;
        let groups = &self.groups;
        self.processes
            .keep_members(|tag, group| groups.opening(tag).is_some_and(|(it, _)| it == group));
        Ok(())
    }

    pub(crate) fn notify(&mut self, event: ReceiverEvent) {
        if self.events.push(event).is_err() {
            self.totals.events_lost += 1;
        }
    }

    pub(crate) fn poll_event(&mut self) -> Option<ReceiverEvent> {
        let key = self.untold_key.take();
        let key = key.map(|number| ReceiverEvent::KeyChanged { number });
        key.or_else(|| self.events.pop())
    }

    /// For how long what was advertised may be in use: a sender's session ends three periods after the advertisement has
    /// come, and that may take up to one more.
    pub(crate) fn grace(&self) -> Duration {
        grace(&self.timing)
    }

    /// Whether a scope is monitored, and its group, if it goes to one, is this host's.
    pub(crate) fn is_monitored(&self, scope: &Scope) -> bool {
        let is_in = |it: &Monitored| {
            let is_port = (it.first..=it.last).contains(&scope.port);
            it.protocol == scope.protocol && it.side == scope.side && is_port
        };
        let is_member = !scope.is_multicast() || self.groups.contains(scope.destination);
        is_member && self.monitored.iter().any(is_in)
    }

    /// Random bits for a back-off, if `scope` needs one.
    pub(crate) fn uniform(&mut self, scope: &Scope) -> Option<u64> {
        scope.is_multicast().then(|| self.random.next_u64())
    }

    /// When `active` is to be forgotten if nothing more comes: not before its sender has ended the session, so that
    /// nothing that was sealed for it is ever taken for something else.
    pub(crate) fn end_of(&self, active: &Active) -> Instant {
        if active.silent {
            return active.last_seen + GROUP_MEMORY;
        }
        let unseen = active.last_seen + self.timing.inactivity;
        let advertised = active
            .advertised
            .filter(|_| active.standing != Standing::Candidate);
        advertised.map_or(unseen, |at| unseen.max(at + self.grace()))
    }

    /// Nothing of the sender at `place` is expected any more. It is forgotten, or of a group remembered in silence: its
    /// numbers go on, and this host may be a member again.
    pub(crate) fn end(&mut self, place: usize, cause: EndCause) {
        let Some(active) = self.active.get(place).copied() else {
            return;
        };
        if active.outlasts_us() && !active.silent {
            self.silence(place);
        } else {
            self.forget(place);
        }
        if active.begun {
            self.notify(ReceiverEvent::Ended {
                session: SessionId(place as u32),
                source: active.subject.source,
                scope: active.subject.scope,
                cause,
            });
        }
    }

    fn forget(&mut self, place: usize) {
        let Some(active) = self.active.remove(place) else {
            return;
        };
        if active.subject.scope.is_multicast() {
            return;
        }
        for space in active.spaces.iter().flatten() {
            self.raise_floor(space);
        }
    }

    fn silence(&mut self, place: usize) {
        let Some(active) = self.active.get_mut(place) else {
            return;
        };
        (active.silent, active.begun, active.withdrawn) = (true, false, false);
        active.advertised = None;
        let ends = active.last_seen + GROUP_MEMORY;
        self.active.rest(place);
        self.active.set_end(place, ends);
    }

    /// The sender at `place` is heard again after a silence.
    #[cold]
    pub(crate) fn wake(&mut self, now: Instant, place: usize) {
        let Some(active) = self.active.get_mut(place) else {
            return;
        };
        active.silent = false;
        active.last_seen = active.last_seen.max(now);
        let ends = active.last_seen + self.timing.inactivity;
        self.active.set_end(place, ends);
        self.begin_cycle(now, place);
    }

    /// What is advertised to the sender at `place` begins anew, with a back-off if it is to a group.
    pub(crate) fn begin_cycle(&mut self, now: Instant, place: usize) {
        let Some(scope) = self.active.get(place).map(|active| active.subject.scope) else {
            return;
        };
        let uniform = self.uniform(&scope);
        let timing = self.timing;
        if let Some(active) = self.active.get_mut(place) {
            active.cycle = Cycle::new(now, &timing, uniform);
            self.active.reschedule(place);
        }
    }

    /// A sequence-number space is forgotten: nothing of it or of those before opens another one.
    pub(crate) fn raise_floor(&mut self, space: &Space) {
        let process = self.processes.find(space.tag);
        if let Some(process) = process.and_then(|place| self.processes.get_mut(place)) {
            process.floor = process.floor.max(space.number.saturating_add(1));
        }
    }

    pub(crate) fn poll_timeout(&self) -> Instant {
        let of = |next: Option<(Instant, usize)>| next.map_or(Instant::FAR_FUTURE, |(at, _)| at);
        let ends = of(self.active.next_end()).min(self.processes.next_end());
        // Something ends after its time, not at it.
        let ends = ends + Duration::from_nanos(1);
        of(self.active.next_due())
            .min(ends)
            .min(self.numbers.next_at())
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if now >= self.numbers.next_at() {
            let grace = self.grace();
            self.numbers.roll(now, self.timing.key_lifetime, grace);
            self.untold_key = Some(self.numbers.present());
        }
        while let Some((at, place)) = self.active.next_end()
            && at < now
        {
            match self.active.get(place).map(|active| self.end_of(active)) {
                Some(end) if end >= now => self.active.set_end(place, end),
                _ => self.end(place, EndCause::Inactive),
            }
        }
        self.processes.forget(now);
    }
}

fn grace(timing: &Timing) -> Duration {
    timing.advertise_every * 4
}

pub(crate) fn check_groups<S: Suite>(
    groups: Vec<crate::setup::Group>,
) -> Result<Groups<S>, SetupError> {
    check_group_list(&groups)?;
    Groups::told_apart(groups)
}

fn check_group_list(groups: &[crate::setup::Group]) -> Result<(), SetupError> {
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

/// Whether `monitored` can be watched.
pub(crate) fn check_monitored(monitored: &[Monitored]) -> Result<(), SetupError> {
    if monitored.len() > MAX_MONITORED {
        return Err(SetupError::TooManyMonitored);
    }
    match monitored.iter().find(|range| range.first > range.last) {
        Some(range) => Err(SetupError::EmptyRange(*range)),
        None => Ok(()),
    }
}

fn check(setup: &ReceiverSetup) -> Result<(), SetupError> {
    let ReceiverLimits {
        sessions,
        candidates,
        max_lost,
    } = setup.limits;
    let most = 1 << 20;
    for (name, bound, most) in [
        ("sessions", sessions, most),
        ("candidates", candidates, most),
        ("max_lost", max_lost as usize, 1 << 16),
    ] {
        if bound == 0 || bound > most {
            return Err(SetupError::Limit(name));
        }
    }
    let Timing {
        advertise_every,
        back_off,
        retry,
        inactivity,
        key_lifetime,
    } = setup.timing;
    for (name, period) in [
        ("advertise_every", advertise_every),
        ("retry", retry),
        ("inactivity", inactivity),
    ] {
        if period == Duration::ZERO {
            return Err(SetupError::Period(name));
        }
    }
    // Three past keys cover the four periods for which one may be in use only if each lasts for two.
    if key_lifetime < advertise_every * 2 {
        return Err(SetupError::Period("key_lifetime"));
    }
    // A back-off is a part of a cycle.
    if back_off > advertise_every {
        return Err(SetupError::Period("back_off"));
    }
    check_monitored(&setup.monitored)
}
