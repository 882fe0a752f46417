//! Processes of senders, and the keys that were made for them.

use crate::event::PeerId;
use crate::index::Index;
use crate::keys::{Material, answer_key, data_key};
use crate::slab::Slab;
use bumpless_base::{IndexedHeap, Instant};
use bumpless_secure::Suite;
use core::net::IpAddr;

/// For whom a key opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// What the sender at this address sends.
    Source(IpAddr),
    /// What members of the group at this address send.
    Group(IpAddr),
}

/// One process of a sender.
pub(crate) struct Process<S: Suite> {
    /// What its packets carry.
    pub tag: u64,
    pub owner: Owner,
    /// How it calls itself; zero if it has not said.
    pub name: u64,
    /// Who has authenticated itself as the sender.
    pub peer: Option<PeerId>,
    /// Sessions below this are forgotten: their packets are refused.
    pub floor: u32,
    /// Keys that were used last, with their numbers. The one of the last packet is first.
    keys: [Option<(u32, S::Key)>; 2],
    /// The key of answers, and the number of the data key from which it is derived.
    answer: Option<(u32, S::Key)>,
    /// When it is forgotten.
    ends: Instant,
}

impl<S: Suite> Process<S> {
    pub(crate) const fn new(tag: u64, owner: Owner, ends: Instant) -> Self {
        Self {
            tag,
            owner,
            name: 0,
            peer: None,
            floor: 0,
            keys: [None, None],
            answer: None,
            ends,
        }
    }

    /// The key with `number`, derived from what `material` gives if it is not at hand.
    #[inline]
    pub(crate) fn key(&mut self, number: u32, material: impl FnOnce() -> Material) -> &S::Key {
        let is_it =
            |key: &Option<(u32, S::Key)>| matches!(key, Some((other, _)) if *other == number);
        if !is_it(&self.keys[0]) {
            self.keys.swap(0, 1);
        }
        if !is_it(&self.keys[0]) {
            self.keys[0] = Some((number, data_key::<S>(&material())));
        }
        let made = self.keys[0].get_or_insert_with(|| (number, S::key(&[0; 32])));
        &made.1
    }

    /// The key for answers to what was sealed with the key `number`.
    pub(crate) fn answer_key(
        &mut self,
        number: u32,
        boot: u64,
        material: impl FnOnce() -> Material,
    ) -> &S::Key {
        if self
            .answer
            .as_ref()
            .is_some_and(|(other, _)| *other != number)
        {
            self.answer = None;
        }
        let made = self
            .answer
            .get_or_insert_with(|| (number, answer_key::<S>(&material(), boot)));
        &made.1
    }
}

/// All that are known.
pub(crate) struct Processes<S: Suite> {
    places: Slab<Process<S>>,
    by_tag: Index,
    /// The last process of each sender.
    by_source: Index,
    ends: IndexedHeap<Instant>,
}

impl<S: Suite> Processes<S> {
    pub(crate) fn new(capacity: usize, seed: u64) -> Self {
        Self {
            places: Slab::new(capacity),
            by_tag: Index::new(capacity, seed),
            by_source: Index::new(capacity, seed.rotate_left(17)),
            ends: IndexedHeap::new(capacity),
        }
    }

    #[inline]
    pub(crate) fn find(&self, tag: u64) -> Option<usize> {
        let is_it = |place| {
            self.places
                .get(place)
                .is_some_and(|it: &Process<S>| it.tag == tag)
        };
        self.by_tag.find(self.by_tag.hash(tag, 0), is_it)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut Process<S>> {
        self.places.get_mut(place)
    }

    pub(crate) fn get(&self, place: usize) -> Option<&Process<S>> {
        self.places.get(place)
    }

    /// The last process of the sender at `source`.
    pub(crate) fn of(&self, source: IpAddr) -> Option<usize> {
        let owner = Owner::Source(source);
        let is_it = |place| {
            self.places
                .get(place)
                .is_some_and(|it: &Process<S>| it.owner == owner)
        };
        self.by_source.find(self.hash(source), is_it)
    }

    /// Adds one; `None` if there is no place. It is the last one of its sender if it has said who it is, or nothing is known
    /// of another: a packet alone can be one that somebody repeats.
    pub(crate) fn add(&mut self, process: Process<S>) -> Option<usize> {
        let (tag, owner, ends, name) = (process.tag, process.owner, process.ends, process.name);
        let place = self.places.insert(process)?;
        self.by_tag.insert(self.by_tag.hash(tag, 0), place);
        if let Owner::Source(source) = owner {
            let hash = self.hash(source);
            let before = self.of(source);
            if let Some(before) = before.filter(|_| name != 0) {
                self.by_source.remove(hash, before);
            }
            if before.is_none() || name != 0 {
                self.by_source.insert(hash, place);
            }
        }
        self.ends.set(place, ends);
        Some(place)
    }

    /// The process at `place` stays at least until `ends`.
    pub(crate) fn keep(&mut self, place: usize, ends: Instant) {
        if let Some(process) = self.places.get_mut(place) {
            process.ends = process.ends.max(ends);
        }
    }

    /// When one may have to be forgotten.
    pub(crate) fn next_end(&self) -> Instant {
        self.ends.first().map_or(Instant::FAR_FUTURE, |(at, _)| at)
    }

    /// Forgets those whose time has come.
    pub(crate) fn forget(&mut self, now: Instant) {
        while let Some((at, place)) = self.ends.first()
            && at < now
        {
            match self.places.get(place) {
                Some(process) if process.ends >= now => self.ends.set(place, process.ends),
                _ => self.remove(place),
            }
        }
    }

    /// Forgets those of `peer` and of `addresses`.
    pub(crate) fn disown(&mut self, peer: PeerId, addresses: &[IpAddr]) {
        for place in 0..self.places.capacity() {
            let Some(process) = self.places.get(place) else {
                continue;
            };
            let is_there = |owner| matches!(owner, Owner::Source(at) if addresses.contains(&at));
            if process.peer == Some(peer) || is_there(process.owner) {
                self.remove(place);
            }
        }
    }

    /// Forgets members' processes of which `is_kept` does not say, by tag and group, that they are kept.
    pub(crate) fn keep_members(&mut self, is_kept: impl Fn(u64, IpAddr) -> bool) {
        for place in 0..self.places.capacity() {
            let Some(process) = self.places.get(place) else {
                continue;
            };
            if let Owner::Group(group) = process.owner
                && !is_kept(process.tag, group)
            {
                self.remove(place);
            }
        }
    }

    fn remove(&mut self, place: usize) {
        self.ends.remove(place);
        if let Some(process) = self.places.remove(place) {
            self.by_tag.remove(self.by_tag.hash(process.tag, 0), place);
            if let Owner::Source(source) = process.owner {
                self.by_source.remove(self.hash(source), place);
            }
        }
    }

    /// Answers have another key from here on.
    pub(crate) fn drop_answer_keys(&mut self) {
        for place in 0..self.places.capacity() {
            if let Some(process) = self.places.get_mut(place) {
                process.answer = None;
            }
        }
    }

    fn hash(&self, source: IpAddr) -> u32 {
        let bits = match source {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        };
        self.by_source.hash(bits as u64, (bits >> 64) as u64)
    }
}
