//! What channels share: each network, networks that share a channel's packets, the processor.
//!
//! **Replicated** channels load every one of their networks with the whole state, and each network alone must
//! bring it in time: then one of them may be missing. **Spread** channels put each packet on whichever network
//! is free. While one of them has packets to send, all of its networks are busy with deadlines that are not
//! later; so their bandwidths count together, and all that their channels put on them. A replicated
//! channel on such a network must expect all packets of the spread ones.

use bumpless_base::{ChannelId, LinkId, LinkSet, pacing};
use serde::Serialize;

pub use crate::blocking::Blocking;
use crate::blocking::{blocking, queued, room, uneven};
use crate::demand::{Interference, Task, TaskSet};
use crate::input::{Channel, Distribution, Link, Scenario};
use crate::recovery::{self, again_bytes, state_bytes};
use crate::rounding::{nanos, saturated};

/// What is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Networks, by set: one, or those that share packets.
    Networks(#[serde(serialize_with = "positions")] LinkSet),
    /// The processor of the data plane.
    Processor,
}

fn positions<S: serde::Serializer>(links: &LinkSet, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(links.iter().map(|link| link.0))
}

/// A resource with what is asked of it.
#[derive(Clone, Debug)]
pub struct Resource {
    /// What it is.
    pub kind: Kind,
    /// Bit/s of all of its networks; zero for the processor.
    pub rate: u64,
    /// By position here: the channel's position in the scenario.
    pub channels: Vec<usize>,
    /// By position here: the channel's number, which decides between equal deadlines.
    pub ids: Vec<ChannelId>,
    /// By position here; `None` where it is asked elsewhere whether the channel is in time.
    pub blocking: Vec<Option<Blocking>>,
    /// What is asked, in the same order.
    pub tasks: Vec<Task>,
    /// What goes first.
    pub interference: Vec<Interference>,
}

impl Resource {
    /// For the admission test.
    pub fn set(&self) -> TaskSet {
        TaskSet::new(&self.tasks, &self.interference)
    }

    /// What follows from the whole set for each task and for its blocking.
    fn see_whole(&mut self) {
        let set = self.set().with_time_left();
        for (given, task) in set.tasks() {
            self.tasks[given] = task;
        }
        for (blocking, task) in self.blocking.iter_mut().zip(&self.tasks) {
            if let Some(blocking) = blocking {
                let held_up = set.blocking_of(task, task.deadline);
                let queued = held_up - task.blocking.unwrap_or(0);
                blocking.committed_ns = blocking.committed_ns.saturating_add(queued);
                blocking.retransmissions_ns = set.again(task.deadline);
            }
        }
    }
}

/// Everything that is shared while the networks `up` are in service.
pub fn resources(scenario: &Scenario, up: LinkSet) -> Vec<Resource> {
    on_networks(scenario, up, up)
}

/// The same, but of single networks that are alike only the first: what holds there holds for all.
pub fn different_resources(scenario: &Scenario, up: LinkSet) -> Vec<Resource> {
    let first = up.iter().filter(|link| scenario.is_first_alike(*link, up));
    on_networks(scenario, up, first.collect())
}

fn on_networks(scenario: &Scenario, up: LinkSet, single: LinkSet) -> Vec<Resource> {
    let mut sets: Vec<LinkSet> = single.iter().map(LinkSet::only).collect();
    let spread = scenario
        .channels
        .iter()
        .filter(|channel| channel.distribution == Distribution::Spread);
    for shared in spread.map(|channel| channel.links.intersection(up)) {
        if shared.len() > 1 && !sets.contains(&shared) {
            sets.push(shared);
        }
    }
    let networks = sets.into_iter().map(|links| networks(scenario, up, links));
    networks
        .chain(processor(scenario, up))
        .filter(|resource| !resource.tasks.is_empty())
        .collect()
}

/// Whether a channel is judged on `links`.
fn is_judged(channel: &Channel, up: LinkSet, links: LinkSet) -> bool {
    let usable = channel.links.intersection(up);
    match channel.distribution {
        Distribution::Spread => usable == links,
        Distribution::Replicate => links.len() == 1,
    }
}

/// How often each packet of a channel is on `links`.
fn copies(channel: &Channel, up: LinkSet, links: LinkSet) -> u64 {
    let here = channel.links.intersection(up).intersection(links).len() as u64;
    match channel.distribution {
        Distribution::Replicate => here,
        Distribution::Spread => here.min(1),
    }
}

fn networks(scenario: &Scenario, up: LinkSet, links: LinkSet) -> Resource {
    let members = || scenario.members(links);
    let rate = members().map(|link| link.bandwidth).sum::<u64>().max(1);
    let mut resource = Resource {
        kind: Kind::Networks(links),
        rate,
        channels: Vec::new(),
        ids: Vec::new(),
        blocking: Vec::new(),
        tasks: Vec::new(),
        interference: members().flat_map(|link| background(link, rate)).collect(),
    };
    for (at, channel) in scenario.channels.iter().enumerate() {
        let copies = u128::from(copies(channel, up, links));
        if copies == 0 {
            continue;
        }
        // Networks of one pool may differ in their headers: the longest count.
        let bytes = members()
            .map(|link| state_bytes(scenario, channel, link))
            .max()
            .unwrap_or(0);
        let needless = || {
            let bytes = members()
                .map(|link| harmless_bytes(scenario, channel, link))
                .min();
            nanos(bytes.unwrap_or(0) * copies, rate)
        };
        let blocking = is_judged(channel, up, links).then(|| {
            let mut blocking = blocking(scenario, channel, (up, links), needless());
            let uneven = uneven(scenario, channel, links);
            blocking.committed_ns = blocking.committed_ns.saturating_add(uneven);
            blocking
        });
        resource.channels.push(at);
        resource.ids.push(channel.id);
        resource.tasks.push(Task {
            cost: saturated(paced(scenario, links, nanos(bytes * copies, rate))),
            period: channel.period.as_nanos(),
            deadline: channel.deadline.as_nanos(),
            blocking: blocking.as_ref().map(Blocking::own),
            again: saturated(lost(scenario, at, up, links, rate)),
            left: 0,
            queued: queued(scenario, channel, links),
            room: room(scenario, channel, links),
        });
        resource.blocking.push(blocking);
    }
    resource.see_whole();
    resource
}

/// Of [`again_bytes`], what is never in the way of the state itself: an answer ends the wait for it, whatever probes
/// were sent after what it answers. A retransmission goes behind one at most.
fn harmless_bytes(scenario: &Scenario, channel: &Channel, link: &Link) -> u128 {
    let budget = u128::from(channel.budget);
    let largest = scenario.packets.largest_on(link, channel.size);
    let needless = recovery::needless(link, largest);
    ((budget + 1) * needless).saturating_sub(budget * u128::from(largest))
}

/// Time of what the losses of channel `at` may add.
fn lost(scenario: &Scenario, at: usize, up: LinkSet, links: LinkSet, rate: u64) -> u128 {
    let channel = &scenario.channels[at];
    let bytes = scenario
        .members(links)
        .map(|link| again_bytes(scenario, channel, link))
        .max();
    let copies = u128::from(copies(channel, up, links));
    paced(scenario, links, nanos(bytes.unwrap_or(0) * copies, rate))
}

/// What `nanos` on the wire become where threads go on so late that a pacer's bucket overflows: it sends once
/// half a burst is earned, and what is earned beyond a burst meanwhile is lost.
pub(crate) fn paced(scenario: &Scenario, links: LinkSet, nanos: u128) -> u128 {
    let longer = |link: &Link| {
        let packet = scenario.packets.largest_on(link, u32::MAX);
        let burst = pacing::burst(link.bandwidth, packet);
        let half = (burst / 2).max(packet);
        let [half, slack] = [half, burst - half].map(|bytes| on_wire(bytes, link));
        let lost = u128::from(scenario.machine.jitter_ns).saturating_sub(slack);
        nanos + (nanos * lost).div_ceil(half.max(1))
    };
    scenario.members(links).map(longer).max().unwrap_or(nanos)
}

fn on_wire(bytes: u64, link: &Link) -> u128 {
    nanos(bytes.into(), link.bandwidth)
}

fn background(link: &Link, rate: u64) -> impl Iterator<Item = Interference> + '_ {
    link.background.iter().map(move |message| Interference {
        cost: saturated(nanos(message.bytes.into(), rate)),
        period: message.period.as_nanos(),
    })
}

/// The data plane's processor, which sends on all networks; `None` if nothing is known of it.
fn processor(scenario: &Scenario, up: LinkSet) -> Option<Resource> {
    let machine = &scenario.machine;
    if machine.per_packet_ns == 0 && machine.per_kilobyte_ns == 0 {
        return None;
    }
    let mut resource = Resource {
        kind: Kind::Processor,
        rate: 0,
        channels: Vec::new(),
        ids: Vec::new(),
        blocking: Vec::new(),
        tasks: Vec::new(),
        interference: Vec::new(),
    };
    for (at, channel) in scenario.channels.iter().enumerate() {
        let usable = channel.links.intersection(up);
        let copies = u128::from(copies(channel, up, usable));
        if copies == 0 {
            continue;
        }
        let mut blocking = blocking(scenario, channel, (up, usable), 0);
        let less_urgent = scenario
            .channels
            .iter()
            .enumerate()
            .filter(|&(other, channel)| {
                other != at && !channel.links.intersection(usable).is_empty()
            });
        let ahead = less_urgent.map(|(_, other)| queued(scenario, other, usable));
        let ahead = ahead.fold(0, u64::saturating_add);
        let ahead = ahead.min(room(scenario, channel, usable));
        blocking.committed_ns = blocking.committed_ns.saturating_add(ahead);
        resource.channels.push(at);
        resource.ids.push(channel.id);
        resource.tasks.push(Task {
            cost: saturated(processing(scenario, channel) * copies),
            period: channel.period.as_nanos(),
            deadline: channel.deadline.as_nanos(),
            blocking: Some(blocking.own()),
            again: 0,
            left: 0,
            queued: 0,
            room: 0,
        });
        resource.blocking.push(Some(blocking));
    }
    Some(resource)
}

/// Processor time of a state and its budget on one network, nanoseconds.
pub fn processing(scenario: &Scenario, channel: &Channel) -> u128 {
    let machine = &scenario.machine;
    let links = scenario.links.iter().enumerate();
    let again = links
        .filter(|(at, _)| channel.links.contains(LinkId(*at as u8)))
        .map(|(_, link)| {
            let packet = scenario.packets.largest_on(link, channel.size);
            again_bytes(scenario, channel, link).div_ceil(u128::from(packet.max(1)))
        });
    let again = again.max().unwrap_or(0);
    let packets = u128::from(scenario.packets.count(channel.size)) + again;
    let bytes =
        u128::from(channel.size) + again * u128::from(scenario.packets.largest(channel.size));
    packets * u128::from(machine.per_packet_ns)
        + (bytes * u128::from(machine.per_kilobyte_ns)).div_ceil(1_000)
}
