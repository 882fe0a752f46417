//! What the cores tell their driver.

use crate::place::ChannelPlace;
use bumpless_base::{Duration, Instant};

/// Why a state was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCause {
    /// The deadline has passed, or what is left cannot be sent before it (first paper, 7.2.3).
    DeadlineUnreachable,
    /// The state would expire before it could be used.
    Expired,
    /// There is no session with the peer, or it ended during the transfer.
    SessionEnded,
    /// The channel left its place: [`Sender::exchange`](crate::Sender::exchange).
    Withdrawn,
}

/// What happened to a published state. Every ticket ends in one of these or in
/// [`Published::superseded`](crate::Published).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderEvent {
    /// The peer holds the whole state, and said so before the deadline.
    Safe {
        /// The channel's place in the sender.
        channel: ChannelPlace,
        /// As given at publication.
        ticket: u64,
        /// Transfer cycle in which it went.
        cycle: u32,
        /// From publication to the last acknowledgement.
        took: Duration,
    },
    /// The state was given up; the peer may or may not have it.
    Failed {
        /// The channel's place in the sender.
        channel: ChannelPlace,
        /// As given at publication.
        ticket: u64,
        /// Why.
        cause: FailureCause,
    },
    /// A later state of the channel took its place before its first packet was sent.
    Superseded {
        /// The channel's place in the sender.
        channel: ChannelPlace,
        /// As given at publication.
        ticket: u64,
    },
}

/// What happened on the receiving side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverEvent {
    /// A whole state can be read.
    Updated {
        /// The channel's place in the receiver.
        channel: ChannelPlace,
        /// Its transfer cycle.
        cycle: u32,
        /// It must not be used after this.
        expires_at: Instant,
    },
    /// No state became whole within the stated time; told once until the next update.
    Overdue {
        /// The channel's place in the receiver.
        channel: ChannelPlace,
    },
}
