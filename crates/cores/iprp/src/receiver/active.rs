//! Active senders (iPRP, algorithm 1): who sends what, when it was seen last, which of its packets have come.

use super::cycle::Cycle;
use crate::counters::{Arrivals, PerNetwork};
use crate::event::PeerId;
use crate::flow::Scope;
use crate::index::Index;
use crate::message::Subject;
use crate::slab::Slab;
use crate::window::{Verdict, Window, words};
use alloc::boxed::Box;
use alloc::vec;
use bumpless_base::{IndexedHeap, Instant};
use core::net::IpAddr;

/// Sequence-number spaces of a sender that are told apart at once: the present one, and those before it. After a restart of the
/// receiver an attacker can fill the places of those with what earlier processes of the sender have sent.
pub(crate) const SPACES: usize = 3;

/// A sequence-number space: a session of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space {
    pub tag: u64,
    pub number: u32,
    pub window: Window,
}

/// What is known of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has sent something to a monitored port.
    Candidate,
    /// It has shown that it holds a key, or has answered on a secure channel; who it is, if it has.
    Known(Option<PeerId>),
}

/// One sender of one scope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Active {
    pub subject: Subject,
    pub standing: Standing,
    /// Whether its packets are sealed, as far as is known.
    pub begun: bool,
    /// Of a group: nothing comes, and what has come is remembered, since the sender goes on for other members.
    pub silent: bool,
    pub spaces: [Option<Space>; SPACES],
    pub last_seen: Instant,
    /// When the last advertisement left, if one has.
    pub advertised: Option<Instant>,
    pub cycle: Cycle,
    /// It is to be told that packets are wanted as they are.
    pub withdrawn: bool,
    /// Networks of which it was said that packets for them come on another.
    pub miswired: u16,
    pub arrivals: PerNetwork<Arrivals>,
}

impl Active {
    /// Whether the sender numbers on without this receiver: one to a group, whose session others keep up.
    pub(crate) fn outlasts_us(&self) -> bool {
        self.subject.scope.is_multicast() && self.spaces.iter().any(Option::is_some)
    }
}

/// All active senders.
pub(crate) struct ActiveSenders {
    places: Slab<Active>,
    by_subject: Index,
    by_space: Index,
    /// Of each place, the words of its spaces' windows.
    words: Box<[u64]>,
    words_each: usize,
    /// When something is to be sent to whom.
    due: IndexedHeap<Instant>,
    /// When one may have to be forgotten.
    ends: IndexedHeap<Instant>,
    candidates: usize,
    max_candidates: usize,
    known: usize,
    max_known: usize,
}

impl ActiveSenders {
    pub(crate) fn new(max_known: usize, max_candidates: usize, max_lost: u32, seed: u64) -> Self {
        let capacity = max_known + max_candidates;
        let words_each = words(max_lost);
        Self {
            places: Slab::new(capacity),
            by_subject: Index::new(capacity, seed),
            by_space: Index::new(capacity * SPACES, seed.rotate_left(23)),
            words: vec![0; capacity * SPACES * words_each].into_boxed_slice(),
            words_each,
            due: IndexedHeap::new(capacity),
            ends: IndexedHeap::new(capacity),
            candidates: 0,
            max_candidates,
            known: 0,
            max_known,
        }
    }

    pub(crate) fn get(&self, place: usize) -> Option<&Active> {
        self.places.get(place)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut Active> {
        self.places.get_mut(place)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Active)> {
        self.places.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.candidates + self.known
    }

    pub(crate) fn find(&self, subject: &Subject) -> Option<usize> {
        let is_it = |place| {
            self.places
                .get(place)
                .is_some_and(|it| it.subject == *subject)
        };
        self.by_subject.find(self.hash(subject), is_it)
    }

    /// Adds one; `None` if there is no place for one more of its standing.
    pub(crate) fn add(&mut self, active: Active, ends: Instant) -> Option<usize> {
        let (count, max) = match active.standing {
            Standing::Candidate => (&mut self.candidates, self.max_candidates),
            Standing::Known(_) => (&mut self.known, self.max_known),
        };
        if *count >= max {
            return None;
        }
        let (subject, at) = (active.subject, active.cycle.at());
        let place = self.places.insert(active)?;
        *count += 1;
        self.by_subject.insert(self.hash(&subject), place);
        self.due.set(place, at);
        self.ends.set(place, ends);
        Some(place)
    }

    /// The one at `place` has shown itself; `false` if there is no place for one more such.
    pub(crate) fn know(&mut self, place: usize, peer: Option<PeerId>) -> bool {
        let Some(active) = self.places.get_mut(place) else {
            return false;
        };
        match active.standing {
            Standing::Known(before) => active.standing = Standing::Known(peer.or(before)),
            Standing::Candidate if self.known < self.max_known => {
                active.standing = Standing::Known(peer);
                self.candidates -= 1;
                self.known += 1;
            }
            Standing::Candidate => return false,
        }
        true
    }

    pub(crate) fn remove(&mut self, place: usize) -> Option<Active> {
        let active = self.places.remove(place)?;
        match active.standing {
            Standing::Candidate => self.candidates -= 1,
            Standing::Known(_) => self.known -= 1,
        }
        self.by_subject.remove(self.hash(&active.subject), place);
        for (at, space) in active.spaces.iter().enumerate() {
            if let Some(space) = space {
                let hash = self.by_space.hash(space.tag, space.number.into());
                self.by_space.remove(hash, place * SPACES + at);
            }
        }
        self.due.remove(place);
        self.ends.remove(place);
        Some(active)
    }

    /// The place and slot of the space with `number` of the process with `tag`.
    #[inline]
    pub(crate) fn find_space(&self, tag: u64, number: u32) -> Option<(usize, usize)> {
        let hash = self.by_space.hash(tag, number.into());
        let found = self.by_space.find(hash, |at| {
            let active = self.places.get(at / SPACES);
            let space = active.and_then(|active| active.spaces[at % SPACES].as_ref());
            space.is_some_and(|space| space.tag == tag && space.number == number)
        });
        found.map(|at| (at / SPACES, at % SPACES))
    }

    /// Makes a space at `place`, in slot 0, and moves the others up. The last one, which it returns, is forgotten.
    pub(crate) fn add_space(&mut self, place: usize, tag: u64, number: u32) -> Option<Space> {
        let spaces = self.places.get(place)?.spaces;
        // The last one first, so that no number stands twice in the index.
        for (slot, space) in spaces.iter().enumerate().rev() {
            if let Some(space) = space {
                let hash = self.by_space.hash(space.tag, space.number.into());
                self.by_space.remove(hash, place * SPACES + slot);
                if slot + 1 < SPACES {
                    self.by_space.insert(hash, place * SPACES + slot + 1);
                }
            }
        }
        let first = place * SPACES * self.words_each;
        let moved = first..first + (SPACES - 1) * self.words_each;
        self.words.copy_within(moved, first + self.words_each);
        let active = self.places.get_mut(place)?;
        active.spaces.rotate_right(1);
        let dropped = active.spaces[0].replace(Space {
            tag,
            number,
            window: Window::default(),
        });
        let hash = self.by_space.hash(tag, number.into());
        self.by_space.insert(hash, place * SPACES);
        dropped
    }

    /// Judges the packet `number` of a space (algorithm 6).
    #[inline]
    pub(crate) fn judge(&mut self, place: usize, slot: usize, number: u32) -> Verdict {
        let space = self
            .places
            .get_mut(place)
            .and_then(|it| it.spaces[slot].as_mut());
        let at = (place * SPACES + slot) * self.words_each;
        match (space, self.words.get_mut(at..at + self.words_each)) {
            (Some(space), Some(words)) => space.window.judge(words, number),
            _ => Verdict::VeryLate,
        }
    }

    /// The highest number of a space that has come, and which of the 64 before it.
    pub(crate) fn seen(&self, place: usize, slot: usize) -> (u32, u64) {
        let space = self
            .places
            .get(place)
            .and_then(|it| it.spaces[slot].as_ref());
        let at = (place * SPACES + slot) * self.words_each;
        match (space, self.words.get(at..at + self.words_each)) {
            (Some(space), Some(words)) => {
                let high = space.window.high().unwrap_or(0);
                (high, space.window.behind(words))
            }
            _ => (0, 0),
        }
    }

    /// What is to be sent next, and when.
    pub(crate) fn next_due(&self) -> Option<(Instant, usize)> {
        self.due.first()
    }

    /// Its cycle has changed, or it is to be told of its withdrawal.
    pub(crate) fn reschedule(&mut self, place: usize) {
        if let Some(active) = self.places.get(place) {
            let at = match active.withdrawn {
                true => Instant::ZERO,
                false => active.cycle.at(),
            };
            self.due.set(place, at);
        }
    }

    /// Nothing is to be sent to it while it sends nothing.
    pub(crate) fn rest(&mut self, place: usize) {
        self.due.remove(place);
    }

    /// Whether something is to be sent to it some time.
    pub(crate) fn is_scheduled(&self, place: usize) -> bool {
        self.due.key(place).is_some()
    }

    pub(crate) fn next_end(&self) -> Option<(Instant, usize)> {
        self.ends.first()
    }

    pub(crate) fn set_end(&mut self, place: usize, at: Instant) {
        self.ends.set(place, at);
    }

    /// The place at or after `from` of one whose scope `is_it`.
    pub(crate) fn next_with_scope(
        &self,
        from: usize,
        is_it: impl Fn(&Scope) -> bool,
    ) -> Option<usize> {
        (from..self.places.capacity())
            .find(|&place| self.get(place).is_some_and(|it| is_it(&it.subject.scope)))
    }

    fn hash(&self, subject: &Subject) -> u32 {
        let Subject { source, scope } = subject;
        let fold = |address: IpAddr| match address {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                bits as u64 ^ ((bits >> 64) as u64).rotate_left(29)
            }
        };
        let side = u64::from(scope.side == crate::flow::Side::Source);
        let rest = u64::from(scope.protocol) << 32 | u64::from(scope.port) << 1 | side;
        let destination = fold(scope.destination).rotate_left(11);
        self.by_subject
            .hash(fold(*source), destination ^ rest << 20)
    }
}
