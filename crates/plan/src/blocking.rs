//! What may hold up a state besides states with earlier deadlines.

use bumpless_base::{Duration, LinkSet};
use serde::Serialize;

use crate::input::{Channel, Link, Scenario};
use crate::recovery;
use crate::resource::{members, saturated, state_bytes};
use crate::transmission::nanos;

/// What may hold up a state of a channel on a resource besides states with earlier deadlines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Blocking {
    /// What is on its way already when it, or one of its retransmissions, becomes ready: a burst of the pacer, a
    /// frame of other traffic, a thread that goes on late.
    pub committed_ns: u64,
    /// Waiting until losses are known, with nothing to send.
    pub discovery_ns: u64,
    /// Retransmissions of other channels that were being waited for when it was published.
    pub retransmissions_ns: u64,
    /// Until its acknowledgement has come back, and hand-overs between threads.
    pub answer_ns: u64,
}

impl Blocking {
    /// All of it.
    pub fn total(&self) -> u64 {
        let parts = [self.discovery_ns, self.retransmissions_ns, self.answer_ns];
        parts
            .into_iter()
            .fold(self.committed_ns, u64::saturating_add)
    }
}

/// The blocking of `channel` on `links`, with the networks `up` in service and so much time for others'
/// retransmissions.
pub(crate) fn blocking(
    scenario: &Scenario,
    channel: &Channel,
    (up, links): (LinkSet, LinkSet),
    others: u128,
) -> Blocking {
    let machine = &scenario.machine;
    let of = |set: LinkSet| members(scenario, set);
    // The sender waits for the slowest of the networks that it uses.
    let usable = channel.links.intersection(up);
    let committed = of(links).map(|link| committed(scenario, channel, links, link));
    let answer = of(usable)
        .map(|link| link.round_trip.1)
        .max()
        .unwrap_or_default();
    let hand_overs = machine.per_transfer_ns.saturating_add(machine.jitter_ns);
    Blocking {
        committed_ns: committed.max().unwrap_or(0),
        discovery_ns: recovery::waiting(of(usable), machine, channel.budget).as_nanos(),
        retransmissions_ns: saturated(others),
        answer_ns: (answer + Duration::from_nanos(hand_overs)).as_nanos(),
    }
}

/// What is ahead of a state of `channel` on `link`, one of `links`, each time that something of it becomes ready: when
/// it is published, and after each loss.
///
/// Each time, a frame of other traffic may have begun; then its own thread may be late, or packets that are
/// less urgent may lie in the queue: at most the pacer's burst and what one packet overdraws, since a thread that
/// goes on after the state has become ready sends that first. So these two do not add up.
///
/// No channel has more than one state that is less urgent, since no deadline is longer than its period. One that
/// is published just before may block once for its own sake. To block again it must go on until then, through the
/// wait for the loss, and so it uses up its packets, at least during the shortest wait (or this state does
/// not wait, because more urgent ones are sent meanwhile, which count already).
fn committed(scenario: &Scenario, channel: &Channel, links: LinkSet, link: &Link) -> u64 {
    let time = |bytes: u128| saturated(nanos(bytes, link.bandwidth));
    let late = scenario.machine.jitter_ns;
    let ready = u64::from(channel.budget) + 1;
    let each = time(link.other_frame.into()).saturating_add(late);
    let largest = scenario.packets.largest_on(link, u32::MAX);
    let burst = time(u128::from(link.burst) + u128::from(largest)).saturating_sub(late);
    let others = scenario
        .channels
        .iter()
        .filter(|other| !std::ptr::eq(*other, channel))
        .filter(|other| !other.links.intersection(links).is_empty())
        .map(|other| time(state_bytes(scenario, other, link)));
    let (once, all) = others.fold((0u64, 0u64), |(once, all), state| {
        (
            once.saturating_add(state.min(burst)),
            all.saturating_add(state),
        )
    });
    let again = u128::from(all - once) * u128::from(burst);
    let wait = recovery::shortest_wait(link).as_nanos();
    let again = again.div_ceil(u128::from(wait.saturating_add(burst).max(1)));
    let queued = once.saturating_add(saturated(again));
    each.saturating_mul(ready)
        .saturating_add(queued.min(burst.saturating_mul(ready)))
}
