//! What becomes of a state that waits.

/// What becomes of a state of which nothing has been sent when the next one of its channel is published (first paper,
/// 7.4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Unsent {
    /// The next one takes its place, and its deadline.
    #[default]
    Replace,
    /// Both are sent, each by its own deadline. Up to four wait: of further ones each takes the place of the last.
    Keep,
}

impl Unsent {
    /// The word in configurations and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Replace => "replace",
            Self::Keep => "keep",
        }
    }

    /// So many states of a channel wait at most with the sender for their transfer to begin, and as many with the publisher.
    pub const fn waiting_max(self) -> u32 {
        match self {
            Self::Replace => 1,
            Self::Keep => 2,
        }
    }

    /// Buffers of one state that a channel takes at its sender (T-1): as many as can wait are the sender's, and as many
    /// the publisher's.
    pub const fn buffers(self) -> u32 {
        2 * self.waiting_max()
    }
}
