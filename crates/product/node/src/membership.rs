//! Where a group is on a node, and an application in its group.

use bumpless_base::TableIndex;

/// The position of a group among those of this node, which is not the one in the configuration
/// ([`GroupId`](bumpless_redundancy::GroupId)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupPlace(pub usize);

impl TableIndex for GroupPlace {
    fn index(self) -> usize {
        self.0
    }
    fn from_index(index: usize) -> Self {
        Self(index)
    }
}

/// An application's place in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberPlace(pub usize);

impl TableIndex for MemberPlace {
    fn index(self) -> usize {
        self.0
    }
    fn from_index(index: usize) -> Self {
        Self(index)
    }
}

/// To which group an application belongs, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The group.
    pub group: GroupPlace,
    /// The place in it.
    pub member: MemberPlace,
}
