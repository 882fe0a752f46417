//! The applications of a group on this node: their mailboxes and periods, and until when their states are
//! fresh. They have places, of which some are vacant: applications come and go while others run.

use std::iter;
use std::sync::Arc;

use bumpless_base::{Duration, IndexedHeap, Instant, Table};
use bumpless_config as config;
use bumpless_mailbox::{ApplicationMailbox, StateLife};
use bumpless_redundancy::Holding;

use crate::membership::MemberPlace;

/// Whether a node is ready to take over only with a fresh state of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// It is.
    Yes,
    /// Once a state has come or this node has executed it: it is new, and its primary may not have begun.
    OnceThere,
    /// Not any more: it is about to go.
    No,
}

/// The times of an application that concern its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberTimes {
    /// Between two of its cycles.
    pub period: Duration,
    /// How long a state of it is young enough to go on from.
    pub hot_restart: Duration,
}

impl From<&config::Application> for MemberTimes {
    fn from(settings: &config::Application) -> Self {
        Self {
            period: settings.period,
            hot_restart: settings.hot_restart,
        }
    }
}

/// An application of a group.
#[derive(Clone, Debug)]
pub struct Member {
    /// What its executor and the data plane share.
    pub mailbox: Arc<ApplicationMailbox>,
    /// Its times.
    pub times: MemberTimes,
    /// Whether readiness takes a fresh state of it.
    pub counts: Counts,
}

/// The places of a group.
pub struct Members {
    places: Table<MemberPlace, Option<Member>>,
    /// Those that are taken, longest period first.
    by_period: Vec<MemberPlace>,
    /// Until when the newest state of each that counts is fresh.
    freshness: IndexedHeap<Instant, MemberPlace>,
    /// Until when the newest state of each that counts is young enough to go on from.
    usability: IndexedHeap<Instant, MemberPlace>,
    /// The latest of these instants.
    latest_usable: Option<Instant>,
    /// The latest such instant of the states that an earlier process of this node has left on disk.
    restored_usable: Option<Instant>,
    /// How many applications count.
    counting: usize,
    /// At which places the state here is in doubt: a primary role began in doubt and ended before a state was made in it.
    doubtful: Table<MemberPlace, bool>,
    /// How many these are.
    in_doubt: usize,
}

impl Members {
    /// With `members` in the first of `places`.
    pub fn new(members: Vec<Member>, places: usize) -> Self {
        let mut all = Self {
            places: iter::repeat_n(None, places.max(members.len())).collect(),
            by_period: Vec::with_capacity(places.max(members.len())),
            freshness: IndexedHeap::new(places.max(members.len())),
            usability: IndexedHeap::new(places.max(members.len())),
            latest_usable: None,
            restored_usable: None,
            counting: 0,
            doubtful: iter::repeat_n(false, places.max(members.len())).collect(),
            in_doubt: 0,
        };
        for (place, member) in (0..).map(MemberPlace).zip(members) {
            all.put(place, Some(member));
        }
        all
    }

    /// Has `member` at `place`, or nobody; returns who was there.
    pub fn put(&mut self, place: MemberPlace, member: Option<Member>) -> Option<Member> {
        self.forget(place);
        let before = std::mem::replace(&mut self.places[place], member);
        self.recount();
        before
    }

    /// The application at `place` goes on with other times.
    pub fn set_times(&mut self, place: MemberPlace, times: MemberTimes) {
        if let Some(Some(member)) = self.places.get_mut(place) {
            member.times = times;
        }
        self.recount();
    }

    /// The application at `place` is about to go.
    pub fn discount(&mut self, place: MemberPlace) {
        if let Some(Some(member)) = self.places.get_mut(place) {
            member.counts = Counts::No;
        }
        self.forget(place);
        self.recount();
    }

    /// This node executes, or did: from here on each application has a state that it must not lack.
    pub fn all_there(&mut self) {
        for member in self.places.iter_mut().flatten() {
            if member.counts == Counts::OnceThere {
                member.counts = Counts::Yes;
            }
        }
        self.recount();
    }

    /// Sorts and counts the applications anew. Rare, and within the memory that was taken at the start.
    fn recount(&mut self) {
        let present = |place: &MemberPlace| self.places[*place].is_some();
        self.by_period.clear();
        self.by_period.extend(self.places.indices().filter(present));
        let period = |place: &MemberPlace| {
            self.places[*place]
                .as_ref()
                .map(|member| member.times.period)
        };
        self.by_period
            .sort_unstable_by_key(|place| (std::cmp::Reverse(period(place)), *place));
        let counts = |member: &&Member| member.counts == Counts::Yes;
        self.counting = self.present().filter(counts).count();
    }

    /// Those that are there.
    pub fn present(&self) -> impl Iterator<Item = &Member> {
        self.places.iter().flatten()
    }

    /// Those that are there, longest period first.
    pub fn by_period(&self) -> impl Iterator<Item = &Member> {
        let member = |&place: &MemberPlace| self.places[place].as_ref();
        self.by_period.iter().filter_map(member)
    }

    /// The longest of their periods; zero if there is none.
    pub fn longest_period(&self) -> Duration {
        let longest = self.by_period().next();
        longest.map_or(Duration::ZERO, |member| member.times.period)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.by_period.len()
    }

    /// Their mailboxes.
    pub fn mailboxes(&self) -> impl Iterator<Item = &Arc<ApplicationMailbox>> {
        self.present().map(|member| &member.mailbox)
    }

    /// Who is at `place`.
    pub fn at(&self, place: MemberPlace) -> Option<&Member> {
        self.places.get(place)?.as_ref()
    }

    fn forget(&mut self, place: MemberPlace) {
        self.freshness.remove(place);
        self.usability.remove(place);
        self.set_doubtful(place, false);
        self.latest_usable = self.latest_usable(|_| true);
    }

    fn set_doubtful(&mut self, place: MemberPlace, doubtful: bool) {
        let before = std::mem::replace(&mut self.doubtful[place], doubtful);
        self.in_doubt = self.in_doubt - usize::from(before) + usize::from(doubtful);
    }

    fn set_life(&mut self, place: MemberPlace, life: StateLife) {
        self.freshness.set(place, life.fresh_until);
        self.usability.set(place, life.usable_until);
        self.latest_usable = self.latest_usable.max(Some(life.usable_until));
    }

    /// A state of the application at `place` has come, at `came_at` at the earliest, and is fresh until then. One that
    /// did not count does from its first state on.
    pub fn note_received(&mut self, place: MemberPlace, fresh_until: Instant, came_at: Instant) {
        let Some(Some(member)) = self.places.get_mut(place) else {
            return;
        };
        match member.counts {
            Counts::No => return,
            Counts::Yes => {}
            Counts::OnceThere => {
                member.counts = Counts::Yes;
                self.counting += 1;
            }
        }
        let usable_until = came_at + member.times.hot_restart;
        member.mailbox.note_received(usable_until);
        self.set_doubtful(place, false);
        self.set_life(
            place,
            StateLife {
                fresh_until,
                usable_until,
            },
        );
    }

    /// A role of primary has ended: what this node has made in it counts, where it has made anything; else what
    /// it began with still does, and if that was in doubt, it still is.
    pub fn own_counts(&mut self) {
        for place in self.places.indices() {
            let counts = |member: &&Member| member.counts == Counts::Yes;
            let Some(member) = self.places[place].as_ref().filter(counts) else {
                continue;
            };
            let (own, undecided) = (member.mailbox.own_life(), member.mailbox.status().undecided);
            self.set_doubtful(place, undecided);
            let later = |heap: &IndexedHeap<Instant, MemberPlace>, until: Instant| {
                let made = (until != Instant::ZERO).then_some(until);
                heap.key(place).max(made)
            };
            let fresh_until = later(&self.freshness, own.fresh_until);
            let usable_until = later(&self.usability, own.usable_until);
            if let (Some(fresh_until), Some(usable_until)) = (fresh_until, usable_until) {
                self.set_life(
                    place,
                    StateLife {
                        fresh_until,
                        usable_until,
                    },
                );
            }
        }
    }

    /// Until when the last of the states is young enough to go on from, of those at places that count.
    pub fn latest_usable(&self, counts: impl Fn(MemberPlace) -> bool) -> Option<Instant> {
        let places = self.places.indices().filter(|&place| counts(place));
        places.filter_map(|place| self.usability.key(place)).max()
    }

    /// An earlier process of this node has left a state that may be gone on from until then.
    pub fn note_restored(&mut self, usable_until: Instant) {
        self.restored_usable = self.restored_usable.max(Some(usable_until));
    }

    /// Until when what an earlier process of this node has left may be gone on from.
    pub fn restored_usable(&self) -> Option<Instant> {
        self.restored_usable
    }

    /// What earlier processes have left does not count any more; returns whether it did.
    pub fn forget_restored(&mut self) -> bool {
        self.restored_usable.take().is_some()
    }

    /// What this node holds of the states of all applications that count.
    pub fn holding(&self, fit: bool) -> Holding {
        let first = |heap: &IndexedHeap<Instant, MemberPlace>| {
            let whole = heap.len() == self.counting;
            heap.first().map(|(until, _)| until).filter(|_| whole)
        };
        let sure = self.in_doubt == 0;
        Holding {
            fresh_until: first(&self.freshness).filter(|_| sure),
            usable_until: first(&self.usability).filter(|_| sure),
            some_usable_until: self.latest_usable.max(self.restored_usable),
            outdated_until: None,
            uncompared_since: None,
            fit,
        }
    }

    /// When the state at `place` ceases to be fresh.
    #[cfg(test)]
    pub fn freshness(&self, place: MemberPlace) -> Option<Instant> {
        self.freshness.key(place)
    }
}
