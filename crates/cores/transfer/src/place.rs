//! Where a channel is.

use bumpless_base::TableIndex;
use core::fmt;

/// A channel's place: its position in a [`Sender`](crate::Sender) or [`Receiver`](crate::Receiver), and in what a driver
/// keeps of its channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelPlace(pub usize);

impl TableIndex for ChannelPlace {
    fn index(self) -> usize {
        self.0
    }
    fn from_index(index: usize) -> Self {
        Self(index)
    }
}

impl fmt::Display for ChannelPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
