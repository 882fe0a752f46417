//! What is counted, for each session and network and in all.

use crate::ind::{Ind, MAX_NETWORKS};
use core::fmt;

/// Packets of one session that came with one network's discriminator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// First copies: handed on to the application.
    pub first: u64,
    /// Further copies, discarded.
    pub duplicate: u64,
    /// So late that it cannot be told whether a copy came before; discarded.
    pub very_late: u64,
    /// Of all these, those that came on another network than the one on which they were sent.
    pub wrong_network: u64,
}

/// Copies of one session that left on one network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Departures {
    /// Copies handed to the driver.
    pub sent: u64,
    /// Of those, packets that left again after another network went silent.
    pub again: u64,
    /// Questions whether the receiver is there.
    pub asked: u64,
    /// Answers to those.
    pub answered: u64,
}

/// A figure for each network of a session, in a fixed number of places.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PerNetwork<T> {
    entries: [Option<(Ind, T)>; MAX_NETWORKS],
}

impl<T: Default> PerNetwork<T> {
    /// That of `ind`, made if there is room; otherwise that of the last place.
    #[inline]
    pub(crate) fn entry(&mut self, ind: Ind) -> &mut T {
        let at = self.position(ind);
        &mut self.entries[at]
            .get_or_insert_with(|| (ind, T::default()))
            .1
    }

    #[inline]
    fn position(&self, ind: Ind) -> usize {
        let found = self
            .entries
            .iter()
            .position(|entry| entry.as_ref().is_none_or(|(other, _)| *other == ind));
        found.unwrap_or(MAX_NETWORKS - 1)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Ind, &T)> {
        self.entries.iter().flatten().map(|(ind, it)| (*ind, it))
    }
}

/// Why a datagram at the data port was discarded. Its order is that of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Discard {
    /// Shorter than any packet.
    Truncated,
    /// Of another version.
    Version,
    /// A field has a value that its clause forbids.
    Malformed,
    /// Sealed with a key that is not in use.
    UnknownKey,
    /// Of an unknown sender, when too many such had come.
    Untried,
    /// Sealed by nobody who has the key, or changed on the way.
    Forged,
    /// Names a sender, destination or port that its key is not for.
    NotMonitored,
    /// Its session has no place: all are taken by sessions in use.
    TableFull,
    /// Carries nothing: a sender asks whether this end is there. It was answered.
    Probe,
    /// A further copy: normal, once for each further network.
    Duplicate,
    /// Overtaken by more packets than a receiver remembers.
    VeryLate,
}

impl Discard {
    /// Every cause, in order.
    pub const ALL: [Self; 11] = [
        Self::Truncated,
        Self::Version,
        Self::Malformed,
        Self::UnknownKey,
        Self::Untried,
        Self::Forged,
        Self::NotMonitored,
        Self::TableFull,
        Self::Probe,
        Self::Duplicate,
        Self::VeryLate,
    ];

    /// Name in status: lower case, stable.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Version => "unknown_version",
            Self::Malformed => "malformed",
            Self::UnknownKey => "unknown_key",
            Self::Untried => "untried",
            Self::Forged => "forged",
            Self::NotMonitored => "not_monitored",
            Self::TableFull => "table_full",
            Self::Probe => "probe",
            Self::Duplicate => "duplicate",
            Self::VeryLate => "very_late",
        }
    }
}

impl fmt::Display for Discard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a receiver has counted over all sessions, those that have ended included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiverTotals {
    /// Packets handed on to applications.
    pub delivered: u64,
    /// Discarded datagrams, by [`Discard::ALL`]'s order.
    pub discarded: [u64; Discard::ALL.len()],
    /// Packets by the network on which they were sent (row) and the one on which they came (column).
    pub routes: [[u64; Ind::COUNT]; Ind::COUNT],
    /// Advertisements made.
    pub advertised: u64,
    /// Advertisements that another receiver's made superfluous.
    pub suppressed: u64,
    /// Plain packets of monitored flows that began nothing: no place for one candidate more.
    pub candidates_refused: u64,
    /// Events that nobody collected.
    pub events_lost: u64,
    /// Answers to senders for which there was no place.
    pub answers_lost: u64,
}

impl ReceiverTotals {
    /// How many datagrams were discarded for `cause`.
    pub const fn discarded(&self, cause: Discard) -> u64 {
        self.discarded[cause as usize]
    }
}

/// What a sender has counted over all sessions, those that have ended included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderTotals {
    /// Packets replicated.
    pub replicated: u64,
    /// Packets that were in no session and left as they were.
    pub unreplicated: u64,
    /// Packets of sessions that are suspended; they left as they were.
    pub suspended: u64,
    /// Packets that are too long for the driver's buffer; they left as they were.
    pub too_long: u64,
    /// Copies on all networks.
    pub copies: u64,
    /// Sessions refused since all places are taken.
    pub sessions_refused: u64,
    /// Answers of receivers that did not open.
    pub answers_refused: u64,
    /// Packets that were not kept to leave again, for want of places or because they are too long.
    pub not_kept: u64,
    /// Kept packets that had left again as often as they may, and of which no answer had come.
    pub given_up: u64,
    /// Kept packets that were late, and had no other network on which to leave again.
    pub no_other_network: u64,
    /// Kept packets of which no answer had come when their session ended, was suspended, or went on with other numbers or in another
    /// mode.
    pub kept_at_end: u64,
    /// Events that nobody collected.
    pub events_lost: u64,
}
