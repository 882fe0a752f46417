//! What may hold up a state besides states with earlier deadlines.

use bumpless_base::{Duration, LinkSet};
use serde::Serialize;

use crate::input::{Channel, Link, Scenario};
use crate::recovery::{self, state_bytes};
use crate::rounding::{nanos, saturated};

/// What may hold up a state of a channel on a resource besides states with earlier deadlines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Blocking {
    /// What is on its way already when it, or one of its retransmissions, becomes ready: a burst of the pacer, a
    /// frame of other traffic, a thread that goes on late; and what networks that share its packets end unevenly.
    pub committed_ns: u64,
    /// Waiting until losses are known, with nothing to send.
    pub discovery_ns: u64,
    /// Retransmissions of states that were being waited for when others could begin.
    pub retransmissions_ns: u64,
    /// Until its acknowledgement has come back, and hand-overs between threads.
    pub answer_ns: u64,
    /// What counts as time of the state and holds up others only: probes that prove needless.
    pub needless_ns: u64,
}

impl Blocking {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.own().saturating_add(self.retransmissions_ns)
    }

    /// What does not depend on other channels' losses.
    pub fn own(&self) -> u64 {
        let parts = [self.discovery_ns, self.answer_ns];
        let all = parts
            .into_iter()
            .fold(self.committed_ns, u64::saturating_add);
        all.saturating_sub(self.needless_ns)
    }
}

/// The blocking of `channel` on `links`, with the networks `up` in service, but for what depends on all channels:
/// others' retransmissions, and what is queued of less urgent ones. `needless`: time of its probes that prove
/// needless.
pub(crate) fn blocking(
    scenario: &Scenario,
    channel: &Channel,
    (up, links): (LinkSet, LinkSet),
    needless: u128,
) -> Blocking {
    let machine = &scenario.machine;
    let of = |set: LinkSet| scenario.members(set);
    // The sender waits for the slowest of the networks that it uses.
    let usable = channel.links.intersection(up);
    let committed = of(links).map(|link| committed(scenario, channel, link));
    let answer = of(usable)
        .map(Link::longest_round_trip)
        .max()
        .unwrap_or_default();
    let hand_overs = machine.per_transfer_ns.saturating_add(machine.jitter_ns);
    Blocking {
        committed_ns: committed.max().unwrap_or(0),
        discovery_ns: recovery::waiting(of(usable), machine, channel.budget).as_nanos(),
        retransmissions_ns: 0,
        answer_ns: (answer + Duration::from_nanos(hand_overs)).as_nanos(),
        needless_ns: saturated(needless),
    }
}

/// What is ahead of a state of `channel` on `link` each time that something of it becomes ready, when it is published
/// and after each loss, but for [`queued`].
///
/// Each time, its own thread may be late, or packets that are less urgent may lie in the queue, and these two do not add
/// up: a thread that goes on after the state has become ready sends that first. A frame of other traffic that
/// has begun counts once: as long as the wire is busy all are late by it, and how late a lost packet left does not
/// matter, since the wait for its answer begins when it would have left without that frame (T-43), or ends with an
/// answer, of which the frame is part.
fn committed(scenario: &Scenario, channel: &Channel, link: &Link) -> u64 {
    let other = saturated(nanos(link.other_frame.into(), link.bandwidth));
    other.saturating_add(scenario.machine.jitter_ns.saturating_mul(ready(channel)))
}

/// How much longer than their bytes take on all of `links` together a state of `channel`, and what is more urgent, may
/// take there: its last packets may be in the queue of one of them when the others have nothing left to send.
///
/// Until they are handed over, none of the others can take more. When the first packets of a state become ready, the
/// others may have been idle. Later each of them is served until its pacer waits for half a burst, and so has the rest
/// of it in its queue, but for what a late thread leaves unused.
pub(crate) fn uneven(scenario: &Scenario, channel: &Channel, links: LinkSet) -> u64 {
    let members: Vec<&Link> = scenario.members(links).collect();
    let rate: u64 = members.iter().map(|link| link.bandwidth).sum();
    let longest = |kept: bool| {
        let each = members.iter().enumerate().map(|(at, last)| {
            let others = members.iter().enumerate().filter(|(other, _)| *other != at);
            others
                .map(|(_, other)| idle(scenario, last, other, kept))
                .sum()
        });
        let bits: u128 = each.max().unwrap_or(0);
        saturated(bits.div_ceil(u128::from(rate.max(1))))
    };
    let again = longest(true).saturating_mul(u64::from(channel.budget));
    longest(false).saturating_add(again)
}

/// Bits, times 10^9, that `other` may not send while a queue of `last` empties; `kept`: its own was filled as far as its
/// pacer keeps it.
fn idle(scenario: &Scenario, last: &Link, other: &Link, kept: bool) -> u128 {
    let rate = u128::from(other.bandwidth);
    let full = rate * u128::from(queue(scenario, last));
    if !kept {
        return full;
    }
    let burst = other.burst();
    let half = (burst / 2).max(scenario.packets.largest_on(other, u32::MAX));
    let late = rate * u128::from(scenario.machine.jitter_ns);
    (full + late).saturating_sub(u128::from(burst.saturating_sub(half)) * 8_000_000_000)
}

/// How often something of a state becomes ready.
fn ready(channel: &Channel) -> u64 {
    u64::from(channel.budget) + 1
}

/// The longest time that packets wait in the queue of `link`: at most the pacer's burst and what one packet overdraws.
fn queue(scenario: &Scenario, link: &Link) -> u64 {
    let largest = scenario.packets.largest_on(link, u32::MAX);
    let bytes = u128::from(link.burst()) + u128::from(largest);
    saturated(nanos(bytes, link.bandwidth))
}

/// What less urgent packets in the queue of `link` hold up more than a late thread does.
fn burst(scenario: &Scenario, link: &Link) -> u64 {
    queue(scenario, link).saturating_sub(scenario.machine.jitter_ns)
}

/// How long all less urgent states together may hold up a state of `channel` by what is queued.
pub(crate) fn room(scenario: &Scenario, channel: &Channel, links: LinkSet) -> u64 {
    let each = scenario.members(links).map(|link| burst(scenario, link));
    each.max().unwrap_or(0).saturating_mul(ready(channel))
}

/// How long a state of `channel` may hold up a more urgent one by what is queued of it.
///
/// No channel has more than one state that is less urgent, since no deadline is longer than its period. One that
/// is published just before may block once for its own sake. To block again it must go on until then, through the
/// wait for the loss, and so it uses up its packets (or the more urgent one does not wait, because others are sent
/// meanwhile, which count already). If that wait is not the longest, what it is shorter by is not waited either.
pub(crate) fn queued(scenario: &Scenario, channel: &Channel, links: LinkSet) -> u64 {
    let on = |link: &Link| {
        let burst = burst(scenario, link);
        let state = saturated(nanos(state_bytes(scenario, channel, link), link.bandwidth));
        let once = state.min(burst);
        let wait = recovery::longest_next_wait(link, &scenario.machine).as_nanos();
        let again = u128::from(state - once) * u128::from(burst);
        once.saturating_add(saturated(
            again.div_ceil(u128::from(wait.saturating_add(burst).max(1))),
        ))
    };
    scenario.members(links).map(on).max().unwrap_or(0)
}
