//! How the groups and applications of a node are told apart: by number, by place.

use bumpless_base::TableIndex;
pub use bumpless_redundancy::GroupPlace;

/// The number of an application: its position in the configuration with which the node started, or the place to which
/// it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApplicationNumber(pub u16);

impl TableIndex for ApplicationNumber {
    fn index(self) -> usize {
        self.0.into()
    }
    fn from_index(index: usize) -> Self {
        Self(index as u16)
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
