//! The longest time of states whose packets share networks.

use bumpless_base::{ChannelId, Duration, LinkId, LinkSet};
use bumpless_plan::{
    Burst, Channel, Distribution, Link, Loss, Machine, Packets, Scenario, evaluate,
};

const BANDWIDTH: u64 = 100_000_000;
const ROUND_TRIP: Duration = Duration::from_micros(200);

fn link(name: &str) -> Link {
    Link {
        name: name.into(),
        bandwidth: BANDWIDTH,
        frame_overhead: 66,
        gap: 20,
        round_trip: (ROUND_TRIP, ROUND_TRIP),
        answers_behind: false,
        burst: Burst::Fixed(6_250),
        other_frame: 0,
        loss: Loss::BitErrors(0.0),
        background: Vec::new(),
    }
}

fn channel(size: u32, links: LinkSet, distribution: Distribution, deadline: u64) -> Channel {
    Channel {
        id: ChannelId::new(1).unwrap(),
        name: format!("{size}"),
        size,
        period: Duration::from_millis(100),
        deadline: Duration::from_millis(deadline),
        budget: 0,
        budget_follows: false,
        accepted_loss_per_year: None,
        links,
        distribution,
    }
}

fn spread(size: u32, deadline: u64) -> Channel {
    channel(size, LinkSet::first(2), Distribution::Spread, deadline)
}

/// The longest time of the last of `channels` with both networks, nanoseconds.
fn longest(channels: Vec<Channel>) -> u64 {
    let scenario = Scenario {
        links: vec![link("A"), link("B")],
        packets: Packets {
            payload: 1_442,
            header: 30,
            security: 0,
            in_flight_max: 512,
        },
        machine: Machine::default(),
        channels,
    };
    let plan = evaluate(&scenario).expect("possible");
    assert!(plan.admitted, "{:?}", plan.unmet);
    let last = plan.situations[0].channels.last().expect("one");
    last.response_ns.expect("in time")
}

fn wire(bytes: u64) -> u64 {
    bytes * 8_000_000_000 / BANDWIDTH
}

#[test]
fn a_state_that_one_network_takes_at_once_does_not_have_both_of_them() {
    // Four packets are less than a burst: the first network that is asked takes them all.
    let alone = wire(4 * 1_538) + ROUND_TRIP.as_nanos();
    let longest = longest(vec![spread(4 * 1_442, 100)]);
    assert!(longest >= alone, "{longest} {alone}");
    assert!(longest < alone + 500_000, "{longest} {alone}");
}

#[test]
fn a_large_state_has_both_networks_but_for_a_burst() {
    let alone = wire(400 * 1_538);
    let longest = longest(vec![spread(400 * 1_442, 100)]);
    assert!(longest >= alone / 2, "{longest} {alone}");
    assert!(longest < alone / 2 + 1_000_000, "{longest} {alone}");
}

#[test]
fn what_still_occupies_one_network_counts_unless_done_long_before() {
    let only_a = LinkSet::only(LinkId(0));
    let beside = |deadline| {
        let mut other = channel(500_000, only_a, Distribution::Replicate, 60);
        other.period = other.deadline;
        longest(vec![other, spread(100_000, deadline)])
    };
    let (other, own) = (wire(500_000), wire(100_000));
    // Beside it, and one more that began before.
    assert!(beside(100) > other + own / 2, "{}", beside(100));
    // At least 11 ms are left to such a one, and the deadline of the next comes after this one's.
    assert!(beside(45) < other / 2 + own, "{}", beside(45));
}
