//! How long the protocol waits before it knows of losses: the clauses of spec/transfer.md in numbers.

use bumpless_base::Duration;

use crate::input::{Link, Machine};
use crate::resource::saturated;
use crate::transmission::nanos;

/// Shortest wait beyond the smoothed round trip (T-23).
const GRANULARITY: Duration = Duration::from_micros(100);

/// Probes that follow each other at once; each later one waits [`LATER`] times the patience (T-42).
const PROMPT: u32 = 12;
const LATER: u64 = 16;

/// The shortest and the longest round trip that the sender may measure: on the wire, behind a frame of other
/// traffic, and until its thread goes on.
fn measured(link: &Link, machine: &Machine) -> (Duration, Duration) {
    let (least, most) = link.round_trip;
    let other = saturated(nanos(link.other_frame.into(), link.bandwidth));
    let late = Duration::from_nanos(other.saturating_add(machine.jitter_ns));
    (least, most + late)
}

/// The longest time without news before the sender asks again, W of T-42.
pub fn wait(link: &Link, machine: &Machine) -> Duration {
    let (least, most) = measured(link, machine);
    most + (most - least).max(GRANULARITY)
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
    let all = links.map(|link| (wait(link, machine), patience(link, machine)));
    let longest = |(wait, patience): (Duration, Duration), other: (Duration, Duration)| {
        (wait.max(other.0), patience.max(other.1))
    };
    let (wait, patience) = all.fold((Duration::ZERO, Duration::ZERO), longest);
    let later = losses.saturating_sub(PROMPT);
    wait * u64::from(losses - later) + patience * (LATER * u64::from(later))
}
