//! How long the protocol waits before it knows of losses, and what it sends needlessly meanwhile: the clauses
//! of spec/transfer.md in numbers.

use bumpless_base::Duration;

use crate::input::{Link, Machine};
use crate::resource::saturated;
use crate::transmission::nanos;

/// Shortest wait beyond the smoothed round trip (T-23).
const GRANULARITY: Duration = Duration::from_micros(100);
/// Shortest time between two probes (T-23).
const LEAST: Duration = Duration::from_micros(50);
/// Probes that follow each other at once; each later one waits [`LATER`] times the patience (T-42).
const PROMPT: u32 = 12;
const LATER: u64 = 16;

/// The longest time until an answer is there: the packet goes behind a frame of other traffic and a message of each
/// kind that is sent first. What the sender has handed over before does not count: it knows when that has
/// left (T-43).
fn answered(link: &Link) -> Duration {
    let messages = link.background.iter().map(|message| message.bytes);
    let first: u128 = messages.chain([link.other_frame]).map(u128::from).sum();
    let first = saturated(nanos(first, link.bandwidth));
    link.round_trip.1 + Duration::from_nanos(first)
}

/// The shortest and the longest round trip that the sender may measure (T-26): until its thread goes on.
fn measured(link: &Link, machine: &Machine) -> (Duration, Duration) {
    let late = Duration::from_nanos(machine.jitter_ns);
    (link.round_trip.0, answered(link) + late)
}

/// The shortest time without news before the sender asks.
pub fn shortest_wait(link: &Link) -> Duration {
    link.round_trip.0 + GRANULARITY
}

/// The longest time without news before the sender asks again, W of T-42: the smoothed round trip and one
/// variation. If all measurements lie between l and h, the sum of both stays below l + 1.2 (h - l) with the gains of
/// T-26, in whatever order they come.
pub fn longest_wait(link: &Link, machine: &Machine) -> Duration {
    let (least, most) = measured(link, machine);
    let quarter = Duration::from_nanos((most - least).as_nanos().div_ceil(4));
    most + quarter.max(GRANULARITY)
}

/// The longest patience of T-19: the smoothed round trip and four variations.
fn patience(link: &Link, machine: &Machine) -> Duration {
    let (least, most) = measured(link, machine);
    most + ((most - least) * 4).max(GRANULARITY)
}

/// The longest time that the sender spends waiting, with nothing of the state to send, until it knows of
/// `losses` lost packets of it: each may be the same one again, and the last of the state (T-42, T-23).
pub fn waiting<'a>(
    links: impl Iterator<Item = &'a Link>,
    machine: &Machine,
    losses: u32,
) -> Duration {
    let all = links.map(|link| (longest_wait(link, machine), patience(link, machine)));
    let longest = |(wait, patience): (Duration, Duration), other: (Duration, Duration)| {
        (wait.max(other.0), patience.max(other.1))
    };
    let (wait, patience) = all.fold((Duration::ZERO, Duration::ZERO), longest);
    let later = losses.saturating_sub(PROMPT);
    wait * u64::from(losses - later) + patience * (LATER * u64::from(later))
}

/// Bytes of probes that may leave while the answer to what they ask is on its way, each time that an answer is
/// waited for: the sender has seen short round trips only, and this one takes as long as it may. A late thread does
/// not ask needlessly, as it takes answers first. `packet`: bytes on the wire of the state's largest packet; a smaller
/// last one leaves more often, but costs no more.
pub fn needless(link: &Link, packet: u64) -> u128 {
    let early = answered(link)
        .saturating_sub(shortest_wait(link))
        .as_nanos();
    if early == 0 {
        return 0;
    }
    let packet = u128::from(packet);
    let between = u128::from(link.round_trip.0.max(LEAST).as_nanos());
    let between = between + nanos(packet, link.bandwidth);
    let again = (u128::from(early) * packet).div_ceil(between);
    (packet + again).min(packet * u128::from(PROMPT))
}
