//! Identifiers of groups and reference points.

use bumpless_base::TableIndex;

/// A group: its position in the configuration's list of groups, the same on every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u16);

/// The place of a group among those of a node: its position in [`Setup::groups`](crate::Setup::groups), which is not the one
/// in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupPlace(pub usize);

impl TableIndex for GroupPlace {
    fn index(self) -> usize {
        self.0
    }
    fn from_index(index: usize) -> Self {
        Self(index)
    }
}

/// A reference point: its position in [`Setup::references`](crate::Setup::references).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReferenceId(pub u8);

/// A set of reference points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ReferenceSet(u16);

impl ReferenceSet {
    pub(crate) const EMPTY: Self = Self(0);

    pub(crate) fn only(reference: ReferenceId) -> Self {
        Self(1u16.checked_shl(reference.0.into()).unwrap_or(0))
    }
    pub(crate) fn contains(self, reference: ReferenceId) -> bool {
        self.0 & Self::only(reference).0 != 0
    }
    pub(crate) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    pub(crate) fn iter(self) -> impl Iterator<Item = ReferenceId> {
        let mut rest = self.0;
        core::iter::from_fn(move || {
            let next = rest.trailing_zeros() as u8;
            let found = rest != 0;
            // Without its lowest member.
            rest &= rest.wrapping_sub(1);
            found.then_some(ReferenceId(next))
        })
    }
}

impl FromIterator<ReferenceId> for ReferenceSet {
    fn from_iter<I: IntoIterator<Item = ReferenceId>>(references: I) -> Self {
        references
            .into_iter()
            .fold(Self::EMPTY, |set, r| set.union(Self::only(r)))
    }
}
