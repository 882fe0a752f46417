//! How long the protocol waits before it knows of losses, and what it sends needlessly meanwhile: the clauses
//! of spec/transfer.md in numbers.

use bumpless_base::probing::{GRANULARITY, LEAST, MAX_DOUBLINGS, PROMPT};
use bumpless_base::{Duration, pacing};

use crate::input::{Channel, Link, Machine, Scenario};
use crate::rounding::{nanos, saturated};

/// Each probe beyond the prompt ones waits at most so many times the probe timeout (T-42).
const LATER: u64 = 1 << MAX_DOUBLINGS;

/// The longest time until an answer is there: the packet goes behind a frame of other traffic and a message of each
/// kind that is sent first. What the sender has handed over before does not count: it knows when that has
/// left (T-43).
fn answered(link: &Link) -> Duration {
    let messages = link.background.iter().map(|message| message.bytes);
    let first: u128 = messages.chain([link.other_frame]).map(u128::from).sum();
    let first = saturated(nanos(first, link.bandwidth));
    link.longest_round_trip() + Duration::from_nanos(first)
}

/// The shortest and the longest round trip that the sender may measure (T-26): until its thread goes on.
fn measured(link: &Link, machine: &Machine) -> (Duration, Duration) {
    let late = Duration::from_nanos(machine.jitter_ns);
    (link.round_trip.0, answered(link) + late)
}

/// The shortest time without news before the sender asks again.
fn shortest_wait(link: &Link) -> Duration {
    (link.round_trip.0 + pacing::blocking(link.bandwidth)).max(LEAST)
}

/// How long the sender waits on a network at most.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    /// The longest time until an answer is taken.
    answer: Duration,
    /// Without news before the sender asks, W of T-42: the smoothed round trip and one variation. If all
    /// measurements lie between l and h, the sum of both stays below l + 1.2 (h - l) with the gains of T-26, in
    /// whatever order they come.
    first: Duration,
    /// Before it asks again.
    next: Duration,
    /// The probe timeout of T-19: the smoothed round trip and four variations.
    probe_timeout: Duration,
}

impl Waits {
    fn on(link: &Link, machine: &Machine) -> Self {
        let (least, most) = measured(link, machine);
        let quarter = Duration::from_nanos((most - least).as_nanos().div_ceil(4));
        let later = quarter.max(pacing::blocking(link.bandwidth));
        Self {
            answer: most,
            first: most + later.max(GRANULARITY),
            next: (most + later).max(LEAST),
            probe_timeout: most + ((most - least) * 4).max(later).max(GRANULARITY),
        }
    }

    /// The sender waits for the slowest of the networks that it uses.
    fn longest<'a>(links: impl Iterator<Item = &'a Link>, machine: &Machine) -> Self {
        let all = links.map(|link| Self::on(link, machine));
        all.fold(Self::default(), |longest, other| Self {
            answer: longest.answer.max(other.answer),
            first: longest.first.max(other.first),
            next: longest.next.max(other.next),
            probe_timeout: longest.probe_timeout.max(other.probe_timeout),
        })
    }
}

/// The longest wait before the sender asks again when it has asked before.
pub fn longest_next_wait(link: &Link, machine: &Machine) -> Duration {
    Waits::on(link, machine).next
}

/// The longest time that the sender spends waiting, with nothing of the state to send, until it knows of
/// `losses` lost packets of it: each may be the same one again, and the last of the state (T-42, T-23).
///
/// It waits longest before it first asks. It comes to that again only if an answer has told of something that is
/// missing; and a question goes unanswered although something else is missing only if two packets were lost, that and
/// what the question repeats. So each such wait, and the way of its answer, takes two losses.
pub fn waiting<'a>(
    links: impl Iterator<Item = &'a Link>,
    machine: &Machine,
    losses: u32,
) -> Duration {
    let waits = Waits::longest(links, machine);
    let Some(after) = losses.checked_sub(1) else {
        return Duration::ZERO;
    };
    let later = losses.saturating_sub(PROMPT);
    let twice = waits.next * 2;
    let anew = (waits.first + waits.answer).max(twice) - twice;
    waits.first
        + waits.next * u64::from(after - later)
        + anew * u64::from(after / 2)
        + waits.probe_timeout * (LATER * u64::from(later))
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
    let between = u128::from(shortest_wait(link).as_nanos());
    let between = between + nanos(packet, link.bandwidth);
    let again = (u128::from(early) * packet).div_ceil(between);
    (packet + again).min(packet * u128::from(PROMPT))
}

/// Bytes on the wire of a state and of all that its losses may add.
pub(crate) fn state_bytes(scenario: &Scenario, channel: &Channel, link: &Link) -> u128 {
    u128::from(scenario.packets.state_on(link, channel.size)) + again_bytes(scenario, channel, link)
}

/// Bytes on the wire of all retransmissions in the budget, and of probes that prove needless: after the first
/// packets and after each retransmission, an answer is waited for.
pub(crate) fn again_bytes(scenario: &Scenario, channel: &Channel, link: &Link) -> u128 {
    let packets = &scenario.packets;
    let budget = u128::from(channel.budget);
    let largest = packets.largest_on(link, channel.size);
    let needless_bytes = needless(link, largest);
    budget * u128::from(largest) + (budget + 1) * needless_bytes
}
