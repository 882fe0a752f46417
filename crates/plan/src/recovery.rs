//! How long the protocol waits before it knows of losses: the clauses of spec/transfer.md in numbers.

use bumpless_base::Duration;

use crate::input::Link;

/// Shortest wait beyond the smoothed round trip (T-23).
const GRANULARITY: Duration = Duration::from_micros(100);
/// Probes follow each other with waits that double up to two to this power (T-23).
const MAX_DOUBLINGS: u32 = 4;

/// The longest time without news before the sender asks again (T-23, T-26): the smoothed round trip plus
/// four variations, or the granularity. All measurements lie between the shortest and the longest round
/// trip, so the smoothed one is at most the longest, and a variation at most their difference.
pub fn patience(link: &Link) -> Duration {
    let (least, most) = link.round_trip;
    most + ((most - least) * 4).max(GRANULARITY)
}

/// The longest time that the sender spends waiting, with nothing of the state to send, until it knows of
/// `losses` lost packets of it: each may be the same one again, and the last of the state (T-23).
pub fn waiting<'a>(links: impl Iterator<Item = &'a Link>, losses: u32) -> Duration {
    let patience = links.map(patience).max().unwrap_or_default();
    (0..losses).fold(Duration::ZERO, |waited, asked| {
        waited + patience * (1 << asked.min(MAX_DOUBLINGS))
    })
}
