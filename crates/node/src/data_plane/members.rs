//! The applications of a group on this node: their ports and periods, and until when their states are
//! fresh. They have places, of which some are vacant: applications come and go while others run.

use std::sync::Arc;

use bumpless_base::{Duration, IndexedHeap, Instant};
use bumpless_meeting::ApplicationPort;

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

/// An application of a group.
#[derive(Clone, Debug)]
pub struct Member {
    /// Where it meets the data plane.
    pub port: Arc<ApplicationPort>,
    /// Between two of its cycles.
    pub period: Duration,
    /// Whether readiness takes a fresh state of it.
    pub counts: Counts,
}

/// The places of a group.
pub struct Members {
    places: Vec<Option<Member>>,
    /// Those that are taken, longest period first.
    by_period: Vec<usize>,
    /// Until when the newest state of each that counts may be used.
    freshness: IndexedHeap<Instant>,
    counting: usize,
}

impl Members {
    /// With `members` in the first of `places`.
    pub fn new(members: Vec<Member>, places: usize) -> Self {
        let mut all = Self {
            places: vec![None; places.max(members.len())],
            by_period: Vec::with_capacity(places.max(members.len())),
            freshness: IndexedHeap::new(places.max(members.len())),
            counting: 0,
        };
        for (place, member) in members.into_iter().enumerate() {
            all.put(place, Some(member));
        }
        all
    }

    /// Has `member` at `place`, or nobody; returns who was there.
    pub fn put(&mut self, place: usize, member: Option<Member>) -> Option<Member> {
        self.freshness.remove(place);
        let before = std::mem::replace(&mut self.places[place], member);
        self.recount();
        before
    }

    /// Its cycles follow each other at another `period`.
    pub fn set_period(&mut self, place: usize, period: Duration) {
        if let Some(Some(member)) = self.places.get_mut(place) {
            member.period = period;
        }
        self.recount();
    }

    /// The application at `place` is about to go.
    pub fn discount(&mut self, place: usize) {
        if let Some(Some(member)) = self.places.get_mut(place) {
            member.counts = Counts::No;
        }
        self.freshness.remove(place);
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

    /// Rare, and of a handful to some thousands; within the memory that was taken at the start.
    fn recount(&mut self) {
        let present = |place: &usize| self.places[*place].is_some();
        self.by_period.clear();
        self.by_period
            .extend((0..self.places.len()).filter(present));
        let period = |place: &usize| self.places[*place].as_ref().map(|member| member.period);
        self.by_period
            .sort_unstable_by_key(|place| (std::cmp::Reverse(period(place)), *place));
        let counts = |member: &&Member| member.counts == Counts::Yes;
        self.counting = self.present().filter(counts).count();
    }

    /// Those that are there.
    pub fn present(&self) -> impl Iterator<Item = &Member> {
        self.places.iter().flatten()
    }

    /// Their places, longest period first.
    pub fn by_period(&self) -> impl Iterator<Item = &Member> {
        let member = |&place: &usize| self.places[place].as_ref();
        self.by_period.iter().filter_map(member)
    }

    /// Their ports.
    pub fn ports(&self) -> impl Iterator<Item = &Arc<ApplicationPort>> {
        self.present().map(|member| &member.port)
    }

    /// Who is at `place`.
    pub fn at(&self, place: usize) -> Option<&Member> {
        self.places.get(place)?.as_ref()
    }

    /// The newest state of the application at `place` may be used until then. One that did not count
    /// does from its first state on.
    pub fn note_fresh(&mut self, place: usize, until: Instant) {
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
        self.freshness.set(place, until);
    }

    /// Forgets which states are fresh.
    pub fn forget_freshness(&mut self) {
        (0..self.places.len()).for_each(|place| {
            self.freshness.remove(place);
        });
    }

    /// What this node has made itself is at its successor: its own states count.
    pub fn own_is_fresh(&mut self) {
        for (place, member) in self.places.iter().enumerate() {
            if let Some(member) = member
                .as_ref()
                .filter(|member| member.counts == Counts::Yes)
            {
                self.freshness.set(place, member.port.fresh_until());
            }
        }
    }

    /// Until when there is a fresh state of every application that counts; `None` if there is not.
    pub fn fresh_until(&self) -> Option<Instant> {
        let whole = self.freshness.len() == self.counting;
        let (until, _) = self.freshness.first()?;
        whole.then_some(until)
    }

    /// When the state at `place` ceases to be fresh.
    #[cfg(test)]
    pub fn freshness(&self, place: usize) -> Option<Instant> {
        self.freshness.key(place)
    }
}
