//! How long a sender waits before it asks again (T-19, T-23, T-42): what the transfer keeps to, and what a
//! plan reckons with.

use crate::Duration;

/// Neither a first probe nor a retransmission is sent earlier than this after the expected answer: the
/// resolution of sleeping drivers and the reordering inside one network.
pub const GRANULARITY: Duration = Duration::from_micros(100);

/// Probes follow each other no faster than this: what takes longer than it did of late is not flooded.
pub const LEAST: Duration = Duration::from_micros(50);

/// So many probes of a channel follow each other as soon as an answer to the one before is later than
/// usual: ten packets lost in a row may be the last ones and then probes, and there a packet too many
/// costs less than a wait too many.
pub const PROMPT: u32 = 12;

/// Later probes wait for the probe timeout, doubled at most so many times.
pub const MAX_DOUBLINGS: u32 = 4;
