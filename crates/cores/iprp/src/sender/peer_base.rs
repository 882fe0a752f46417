//! The peer base (iPRP, algorithm 3): what is replicated, to where, with which key.

use super::liveness::Asking;
use super::path::Path;
use super::standby::Standby;
use crate::event::PeerId;
use crate::flow::{Flow, Scope, Side};
use crate::ind::{Ind, MAX_NETWORKS, Networks};
use crate::index::Index;
use crate::keys::{Material, data_key};
use crate::setup::Mode;
use crate::slab::Slab;
use bumpless_base::{IndexedHeap, Instant};
use bumpless_secure::Suite;
use core::net::IpAddr;

/// Advertisements in a row that must not name a network before it is removed.
pub(crate) const CONFIRMATIONS: u8 = 3;

/// What packets of a session are sealed with.
pub(crate) struct Sealing<S: Suite> {
    pub tag: u64,
    pub number: u32,
    pub group: bool,
    pub material: Material,
    pub key: S::Key,
    /// The key of the receiver's answers, and which of its processes makes them.
    pub answers: Option<(u64, S::Key)>,
}

impl<S: Suite> Sealing<S> {
    pub(crate) fn new(tag: u64, number: u32, group: bool, material: Material) -> Self {
        let key = data_key::<S>(&material);
        Self {
            tag,
            number,
            group,
            material,
            key,
            answers: None,
        }
    }
}

/// A session of a sender.
pub(crate) struct Session<S: Suite> {
    pub scope: Scope,
    pub peer: PeerId,
    pub sealing: Sealing<S>,
    /// Its sequence-number space.
    pub space: u32,
    /// The number of the next packet.
    pub next: u32,
    pub paths: [Option<Path>; MAX_NETWORKS],
    pub mode: Mode,
    pub standby: Standby,
    pub asking: Asking,
    /// The flow of the packet that came last, and when: what probes are sent as, and for how long.
    pub last_flow: Option<(Flow, Instant)>,
    /// When it ends unless it is advertised again.
    pub ends: Instant,
}

impl<S: Suite> Session<S> {
    /// Paths on which copies may leave, with their places.
    pub(crate) fn usable(&self) -> impl Iterator<Item = (usize, &Path)> {
        let paths = self.paths.iter().enumerate();
        paths.filter_map(|(at, path)| {
            path.as_ref()
                .filter(|path| path.usable)
                .map(|path| (at, path))
        })
    }

    pub(crate) fn path_mut(&mut self, at: usize) -> Option<&mut Path> {
        self.paths.get_mut(at)?.as_mut()
    }

    pub(crate) fn path_at(&self, at: usize) -> Option<&Path> {
        self.paths.get(at)?.as_ref()
    }

    /// Where the path on `ind` is.
    pub(crate) fn position(&self, ind: Ind) -> Option<usize> {
        let is_it = |path: &Option<Path>| path.as_ref().is_some_and(|path| path.ind == ind);
        self.paths.iter().position(is_it)
    }

    /// The networks that an advertisement names are added at once; those that it does not name are removed when several
    /// in a row have not. `changed` is told of each network that is used from here on, or not any more.
    pub(crate) fn update(
        &mut self,
        advertised: &Networks,
        own: &Networks,
        group: Option<IpAddr>,
        mut changed: impl FnMut(Ind, bool),
    ) {
        for (at, slot) in self.paths.iter_mut().enumerate() {
            let Some(path) = slot
                .as_mut()
                .filter(|path| advertised.get(path.ind).is_none())
            else {
                continue;
            };
            path.missed += 1;
            if path.missed >= CONFIRMATIONS {
                if path.usable {
                    changed(path.ind, false);
                }
                *slot = None;
                self.standby.forget(at);
            }
        }
        for network in advertised.iter() {
            let to = group.unwrap_or(network.address);
            let usable = own.reaches(network.ind, to);
            if let Some(at) = self.position(network.ind) {
                self.readdress(at, to, usable, &mut changed);
                continue;
            }
            // One that is going gives its place up for one that is there.
            let free = self.paths.iter().position(Option::is_none);
            let going = || {
                self.paths
                    .iter()
                    .position(|it| it.is_some_and(|it| it.missed > 0))
            };
            if let Some(at) = free.or_else(going) {
                if let Some(path) = self.paths[at].filter(|path| path.usable) {
                    changed(path.ind, false);
                }
                self.paths[at] = Some(Path::new(network.ind, to, usable));
                self.standby.forget(at);
                self.has_come(at);
                if usable {
                    changed(network.ind, true);
                }
            }
        }
    }

    /// The receiver is at `to` on the network of the path at `at`, which an advertisement has named.
    fn readdress(
        &mut self,
        at: usize,
        to: IpAddr,
        usable: bool,
        changed: &mut impl FnMut(Ind, bool),
    ) {
        if let Some(path) = self.path_mut(at) {
            (path.to, path.missed) = (to, 0);
        }
        self.set_usable(at, usable, changed);
    }

    /// Whether copies may leave on the path at `at` from here on.
    fn set_usable(&mut self, at: usize, usable: bool, changed: &mut impl FnMut(Ind, bool)) {
        if let Some(path) = self.path_mut(at).filter(|path| path.usable != usable) {
            path.usable = usable;
            changed(path.ind, usable);
            self.has_come(at);
        }
    }

    /// The host is on the networks `own` from here on.
    pub(crate) fn match_networks(&mut self, own: &Networks, mut changed: impl FnMut(Ind, bool)) {
        for at in 0..MAX_NETWORKS {
            if let Some(path) = self.path_at(at) {
                let usable = own.reaches(path.ind, path.to);
                self.set_usable(at, usable, &mut changed);
            }
        }
    }

    /// The path at `at` was not there before. While another one carries, it has to answer before it does.
    fn has_come(&mut self, at: usize) {
        let carrier = self.standby.carrier.map(usize::from);
        let carries = |other: usize| self.path_at(other).is_some_and(|path| path.usable);
        if carrier.is_some_and(|other| other != at && carries(other)) {
            self.standby.try_first(at);
        }
    }

    /// Packets are sealed with another key from here on. In another process of the receiver or under another tag their
    /// numbers begin anew.
    pub(crate) fn reseal(&mut self, sealing: Sealing<S>, space: Option<u32>) {
        self.sealing = sealing;
        if let Some(space) = space {
            self.begin_space(space);
        }
    }

    pub(crate) fn begin_space(&mut self, space: u32) {
        (self.space, self.next) = (space, 0);
        for path in self.paths.iter_mut().flatten() {
            (path.asked, path.answered) = (None, None);
        }
        // They have numbers that no answer bears from here on.
        self.standby.unanswered = [None; MAX_NETWORKS];
    }
}

/// All sessions of a sender.
pub(crate) struct PeerBase<S: Suite> {
    places: Slab<Session<S>>,
    by_scope: Index,
    by_space: Index,
    /// When sessions end.
    ends: IndexedHeap<Instant>,
    /// When something is to leave for whom without a packet of an application.
    wakes: IndexedHeap<Instant>,
}

impl<S: Suite> PeerBase<S> {
    pub(crate) fn new(capacity: usize, seed: u64) -> Self {
        Self {
            places: Slab::new(capacity),
            by_scope: Index::new(capacity, seed),
            by_space: Index::new(capacity, seed.rotate_left(31)),
            ends: IndexedHeap::new(capacity),
            wakes: IndexedHeap::new(capacity),
        }
    }

    /// The session that `flow` is in.
    #[inline]
    pub(crate) fn find_flow(&self, flow: &Flow) -> Option<usize> {
        let to = self.find(&Scope::of(flow, Side::Destination));
        to.or_else(|| self.find(&Scope::of(flow, Side::Source)))
    }

    #[inline]
    pub(crate) fn find(&self, scope: &Scope) -> Option<usize> {
        let is_it = |place| {
            self.places
                .get(place)
                .is_some_and(|it: &Session<S>| it.scope == *scope)
        };
        self.by_scope.find(self.hash(scope), is_it)
    }

    pub(crate) fn find_space(&self, space: u32) -> Option<usize> {
        let is_it = |place| {
            self.places
                .get(place)
                .is_some_and(|it: &Session<S>| it.space == space)
        };
        self.by_space
            .find(self.by_space.hash(space.into(), 0), is_it)
    }

    pub(crate) fn get(&self, place: usize) -> Option<&Session<S>> {
        self.places.get(place)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut Session<S>> {
        self.places.get_mut(place)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Session<S>)> {
        self.places.iter()
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.places.capacity()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.places.is_full()
    }

    pub(crate) fn add(&mut self, session: Session<S>) -> Option<usize> {
        let (scope, space, ends) = (session.scope, session.space, session.ends);
        let place = self.places.insert(session)?;
        self.by_scope.insert(self.hash(&scope), place);
        self.by_space
            .insert(self.by_space.hash(space.into(), 0), place);
        self.ends.set(place, ends);
        Some(place)
    }

    pub(crate) fn remove(&mut self, place: usize) -> Option<Session<S>> {
        let session = self.places.remove(place)?;
        self.by_scope.remove(self.hash(&session.scope), place);
        let hash = self.by_space.hash(session.space.into(), 0);
        self.by_space.remove(hash, place);
        self.ends.remove(place);
        self.wakes.remove(place);
        Some(session)
    }

    /// The session at `place` numbers its packets anew.
    pub(crate) fn move_space(&mut self, place: usize, before: u32, space: u32) {
        self.by_space
            .remove(self.by_space.hash(before.into(), 0), place);
        self.by_space
            .insert(self.by_space.hash(space.into(), 0), place);
    }

    pub(crate) fn set_end(&mut self, place: usize, at: Instant) {
        self.ends.set(place, at);
    }

    pub(crate) fn next_end(&self) -> Option<(Instant, usize)> {
        self.ends.first()
    }

    pub(crate) fn set_wake(&mut self, place: usize, at: Option<Instant>) {
        match at {
            Some(at) => self.wakes.set(place, at),
            None => {
                self.wakes.remove(place);
            }
        }
    }

    #[inline]
    pub(crate) fn wake_of(&self, place: usize) -> Option<Instant> {
        self.wakes.key(place)
    }

    pub(crate) fn next_wake(&self) -> Option<(Instant, usize)> {
        self.wakes.first()
    }

    #[inline]
    fn hash(&self, scope: &Scope) -> u32 {
        let (low, high) = match scope.destination {
            IpAddr::V4(address) => (u64::from(address.to_bits()), 0),
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                (bits as u64, (bits >> 64) as u64)
            }
        };
        let side = u64::from(scope.side == Side::Source);
        let rest = u64::from(scope.protocol) << 32 | u64::from(scope.port) << 1 | side;
        self.by_scope.hash(low, high.rotate_left(7) ^ rest << 20)
    }
}
