//! Identifiers. Small integers with a type each, so that a link cannot be taken for a peer.

use crate::table::TableIndex;
use core::fmt;

/// Most links (networks) that a node can use; a [`LinkSet`] has one bit for each.
pub const MAX_LINKS: usize = 8;

/// A channel's identity on the wire, 1 to 65,535 (first paper, table 17). Zero is "no channel".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(core::num::NonZeroU16);

impl ChannelId {
    /// The identity `raw`, or `None` for zero.
    pub const fn new(raw: u16) -> Option<Self> {
        match core::num::NonZeroU16::new(raw) {
            Some(id) => Some(Self(id)),
            None => None,
        }
    }
    /// The number on the wire.
    pub const fn get(self) -> u16 {
        self.0.get()
    }
}

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// A link of this node: its position in the configuration's list of networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u8);

/// A partner node, as an index into this node's table of partners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u8);

impl TableIndex for PeerId {
    fn index(self) -> usize {
        self.0.into()
    }
    fn from_index(index: usize) -> Self {
        Self(index as u8)
    }
}

/// A node of the configuration: its position in the configuration's list of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u8);

/// A candidate of a group: its position among them, the preferred one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Candidate(pub u8);

/// The stamp on every output of a group. Whoever takes the primary role takes a higher epoch, and
/// outputs that can check it reject an older one.
///
/// An epoch belongs to one node by construction (epoch modulo the number of candidates is the
/// candidate's index), so two nodes can never write in the same epoch. Zero means "none yet".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u32);

impl Epoch {
    /// The lowest epoch above `self` that belongs to `candidate` of `candidates`.
    /// `None` when the 32-bit range is used up.
    pub const fn next_for(self, candidate: Candidate, candidates: u8) -> Option<Self> {
        let n = if candidates == 0 {
            1
        } else {
            candidates as u64
        };
        let floor = self.0 as u64 + 1;
        let offset = (candidate.0 as u64 % n + n - floor % n) % n;
        let next = floor + offset;
        if next > u32::MAX as u64 {
            None
        } else {
            Some(Self(next as u32))
        }
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A set of links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LinkSet(pub u8);

impl LinkSet {
    /// No link.
    pub const EMPTY: Self = Self(0);

    /// The first `n` links.
    pub const fn first(n: usize) -> Self {
        if n >= MAX_LINKS {
            Self(u8::MAX)
        } else {
            Self((1u8 << n) - 1)
        }
    }
    /// The set with `link` alone. A link beyond [`MAX_LINKS`] gives the empty set.
    pub const fn only(link: LinkId) -> Self {
        if (link.0 as usize) < MAX_LINKS {
            Self(1 << link.0)
        } else {
            Self(0)
        }
    }
    /// Whether `link` is in the set.
    pub const fn contains(self, link: LinkId) -> bool {
        (link.0 as usize) < MAX_LINKS && self.0 & (1 << link.0) != 0
    }
    /// Adds `link`.
    pub const fn insert(&mut self, link: LinkId) {
        self.0 |= Self::only(link).0;
    }
    /// Removes `link`.
    pub const fn remove(&mut self, link: LinkId) {
        self.0 &= !Self::only(link).0;
    }
    /// Links in both sets.
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
    /// Links in either set.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// Links that are not in the other set.
    pub const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
    /// Whether the set has no link.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// How many links are in the set.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }
    /// The links in ascending order.
    pub fn iter(self) -> impl Iterator<Item = LinkId> {
        let mut rest = self.0;
        core::iter::from_fn(move || {
            let next = rest.trailing_zeros() as u8;
            let found = rest != 0;
            // Without its lowest member.
            rest &= rest.wrapping_sub(1);
            found.then_some(LinkId(next))
        })
    }
}

impl FromIterator<LinkId> for LinkSet {
    fn from_iter<I: IntoIterator<Item = LinkId>>(links: I) -> Self {
        let mut set = Self::EMPTY;
        links.into_iter().for_each(|link| set.insert(link));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn epochs_grow_and_no_two_candidates_share_one() {
        for n in 1..5u8 {
            for index in 0..n {
                for start in 0..40 {
                    let next = Epoch(start).next_for(Candidate(index), n).unwrap();
                    assert!(next > Epoch(start) && next.0 <= start + u32::from(n));
                    assert_eq!(next.0 % u32::from(n), u32::from(index));
                }
            }
        }
        assert_eq!(Epoch(u32::MAX).next_for(Candidate(0), 2), None);
    }

    #[test]
    fn link_sets_ignore_links_beyond_the_maximum() {
        let mut set = LinkSet::first(2);
        set.insert(LinkId(8));
        set.insert(LinkId(200));
        assert_eq!(set.iter().collect::<Vec<_>>(), [LinkId(0), LinkId(1)]);
        assert!(!set.contains(LinkId(8)));
        assert_eq!(LinkSet::first(9).len(), MAX_LINKS);
    }
}
