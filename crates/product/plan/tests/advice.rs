//! Advice turns a no into a yes and a little less does not; headroom is a yes and a little more is not.

use bumpless_base::{ChannelId, Duration, LinkSet};
use bumpless_plan::advice::advise;
use bumpless_plan::evaluate::is_admitted;
use bumpless_plan::headroom::{headroom, with_size};
use bumpless_plan::variation::{Variation, deadline_with, step};
use bumpless_plan::{
    Burst, Channel, Distribution, Link, Loss, Machine, Packets, Scenario, evaluate,
};
use proptest::prelude::*;

fn link(name: &str, bandwidth: u64) -> Link {
    Link {
        name: name.into(),
        bandwidth,
        frame_overhead: 66,
        gap: 20,
        round_trip: (Duration::from_micros(100), Duration::from_micros(300)),
        answers_behind: false,
        burst: Burst::Fixed(10_000),
        other_frame: 1538,
        loss: Loss::BitErrors(1e-10),
        background: Vec::new(),
    }
}

fn channel(at: usize, (size, period, percent, budget): (u32, u64, u64, u32)) -> Channel {
    Channel {
        id: ChannelId::new(at as u16 + 1).unwrap(),
        name: format!("c{at}"),
        size,
        period: Duration::from_micros(period),
        deadline: Duration::from_micros(period * percent / 100),
        budget,
        budget_follows: false,
        accepted_loss_per_year: (at == 1).then_some(1e6),
        links: LinkSet::first(2),
        distribution: Distribution::Replicate,
    }
}

fn scenario() -> impl Strategy<Value = Scenario> {
    // A deadline of the whole period, or half of it, goes with the period.
    let percent = prop_oneof![Just(50u64), Just(100), 40u64..=100];
    let one = (0u32..200_000, 5_000u64..200_000, percent, 0u32..4);
    prop::collection::vec(one, 1..6).prop_map(|channels| Scenario {
        links: vec![link("A", 100_000_000), link("B", 100_000_000)],
        packets: Packets {
            payload: 1442,
            header: 30,
            security: 0,
            in_flight_max: 512,
        },
        machine: Machine {
            jitter_ns: 100_000,
            ..Machine::default()
        },
        channels: channels
            .into_iter()
            .enumerate()
            .map(|(at, given)| channel(at, given))
            .collect(),
    })
}

/// The same change, one step of its grid less far.
fn less(scenario: &Scenario, variation: Variation) -> Option<Variation> {
    Some(match variation {
        Variation::Period { channel, to_ns } => {
            let from = scenario.channels[channel].period.as_nanos();
            let to_ns = (to_ns - step(from)).max(from);
            Variation::Period { channel, to_ns }
        }
        Variation::Deadline { channel, to_ns } => {
            let from = scenario.channels[channel].deadline.as_nanos();
            let to_ns = (to_ns - step(from)).max(from);
            Variation::Deadline { channel, to_ns }
        }
        Variation::Size { channel, to_bytes } => {
            let from = scenario.channels[channel].size;
            let to_bytes = (to_bytes + step(to_bytes.into()) as u32).min(from);
            Variation::Size { channel, to_bytes }
        }
        Variation::Budget { channel, to } => {
            let up = to < scenario.channels[channel].budget;
            let to = if up { to + 1 } else { to - 1 };
            Variation::Budget { channel, to }
        }
        Variation::Bandwidth { link, to } => {
            let from = scenario.links[link].bandwidth;
            let to = (to - step(from)).max(from);
            Variation::Bandwidth { link, to }
        }
        Variation::Faster { to_percent } => Variation::Faster {
            to_percent: to_percent - 1,
        },
        Variation::InFlight { to } => Variation::InFlight { to: to - 1 },
        Variation::RoundTrips { at_most_ns } => {
            let longest = scenario.links.iter().map(|link| link.round_trip.1);
            let longest = longest.max().unwrap_or_default().as_nanos();
            let at_most_ns = (at_most_ns + step(at_most_ns)).min(longest);
            Variation::RoundTrips { at_most_ns }
        }
        Variation::RoundTrip { link, to_ns } => {
            let from = scenario.links[link].round_trip.1.as_nanos();
            let to_ns = (to_ns + step(to_ns)).min(from);
            Variation::RoundTrip { link, to_ns }
        }
        Variation::Jitter { to_ns } => {
            let from = scenario.machine.jitter_ns;
            let to_ns = (to_ns + step(to_ns)).min(from);
            Variation::Jitter { to_ns }
        }
        Variation::Distribution { .. } | Variation::Network { .. } => return None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn each_advice_makes_it_a_yes_and_a_little_less_does_not(scenario in scenario()) {
        let plan = evaluate(&scenario).unwrap();
        let advice = advise(&scenario, &plan);
        prop_assert!(!plan.admitted || advice.is_empty());
        for advice in &advice {
            prop_assert!(is_admitted(&advice.change.apply(&scenario)), "{:?}", advice);
            if let Some(less) = less(&scenario, advice.change) {
                prop_assert!(!is_admitted(&less.apply(&scenario)), "{:?} {:?}", advice, less);
            }
        }
        prop_assert!(advice.is_sorted_by_key(|advice| advice.distance.map_or(u64::MAX, |d| (d * 1e9) as u64)));
    }

    #[test]
    fn headroom_is_a_yes_and_a_little_more_is_not(scenario in scenario()) {
        let plan = evaluate(&scenario).unwrap();
        let Some(headroom) = headroom(&scenario, &plan, || ()) else {
            prop_assert!(!plan.admitted);
            return Ok(());
        };
        prop_assert!(headroom.growth >= 1.0);
        for (channel, room) in headroom.channels.iter().enumerate() {
            let given = &scenario.channels[channel];
            let size = |to_bytes| is_admitted(&with_size(&scenario, channel, to_bytes));
            prop_assert!(room.size >= given.size && size(room.size));
            prop_assert!(!size(room.size + 1 + (step(u64::from(room.size) * 2)) as u32));
            let deadline = |to_ns| is_admitted(&Variation::Deadline { channel, to_ns }.apply(&scenario));
            prop_assert!(room.deadline_ns <= given.deadline.as_nanos() && deadline(room.deadline_ns));
            prop_assert!(!deadline(room.deadline_ns - step(room.deadline_ns)));
            let period = |to_ns| is_admitted(&Variation::Period { channel, to_ns }.apply(&scenario));
            prop_assert!(room.period_ns <= given.period.as_nanos() && period(room.period_ns));
            let shorter = room.period_ns - step(room.period_ns);
            prop_assert!(deadline_with(given, shorter).as_nanos() > shorter || !period(shorter));
            prop_assert_eq!(room.period_deadline_ns, deadline_with(given, room.period_ns).as_nanos());
        }
    }
}

/// `channel` on one network of 1 Gbit/s.
fn alone(channel: Channel) -> Scenario {
    Scenario {
        links: vec![link("A", 1_000_000_000)],
        packets: Packets {
            payload: 1442,
            header: 30,
            security: 0,
            in_flight_max: 512,
        },
        machine: Machine::default(),
        channels: vec![Channel {
            links: LinkSet::first(1),
            ..channel
        }],
    }
}

/// A channel that loses more than is accepted.
#[test]
fn too_many_losses_are_answered_with_the_budget_that_is_enough() {
    let mut channel = channel(0, (100_000, 100_000, 100, 0));
    channel.accepted_loss_per_year = Some(1e-6);
    let scenario = alone(channel);
    let plan = evaluate(&scenario).unwrap();
    assert!(!plan.admitted);
    let advice = advise(&scenario, &plan);
    let budget = |to| Variation::Budget { channel: 0, to };
    assert!(
        advice.iter().any(|advice| advice.change == budget(3)),
        "{advice:?}"
    );
    assert!(is_admitted(&budget(3).apply(&scenario)) && !is_admitted(&budget(2).apply(&scenario)));
}

#[test]
fn the_limit_of_packets_in_flight_that_is_enough_is_proposed() {
    let mut scenario = alone(channel(0, (20_000_000, 200_000, 100, 0)));
    scenario.links[0].bandwidth = 30_000_000_000;
    let plan = evaluate(&scenario).unwrap();
    assert!(!plan.admitted);
    let advice = advise(&scenario, &plan);
    let enough = advice.iter().find_map(|advice| match advice.change {
        Variation::InFlight { to } => Some(to),
        _ => None,
    });
    let with = |to| is_admitted(&Variation::InFlight { to }.apply(&scenario));
    assert!(
        enough.is_some_and(|to| with(to) && !with(to - 1)),
        "{advice:?}"
    );
}

/// The search for a faster network ends, however slow it is.
#[test]
fn networks_of_a_few_bits_in_a_second_are_answered() {
    for bandwidth in 1..=4 {
        let mut scenario = alone(channel(0, (1_000, 100_000, 100, 0)));
        scenario.links[0].bandwidth = bandwidth;
        let plan = evaluate(&scenario).unwrap();
        assert!(!plan.admitted);
        advise(&scenario, &plan);
    }
}

/// Times that are far longer than needed have a grid that is far too coarse for what is needed.
#[test]
fn the_shortest_times_do_not_depend_on_how_long_they_are() {
    let room = |period: u64| {
        let scenario = alone(channel(0, (1_000, period, 100, 1)));
        let plan = evaluate(&scenario).unwrap();
        headroom(&scenario, &plan, || ()).unwrap().channels[0]
    };
    let (short, long) = (room(10_000), room(60_000_000));
    assert_eq!(short.period_ns, long.period_ns);
    assert!(short.period_ns < 5_000_000, "{short:?}");
    let deadline = long.deadline_ns.abs_diff(short.deadline_ns);
    assert!(deadline * 100 <= short.deadline_ns, "{short:?} {long:?}");
}

/// A network that carries a little too little: at ten times its rate more packets would have to be in flight
/// than may be, so that much faster networks do not help either.
#[test]
fn a_faster_network_is_proposed_although_a_much_faster_one_is_refused() {
    let mut scenario = alone(channel(0, (20_000_000, 200_000, 100, 0)));
    scenario.links[0].bandwidth = 800_000_000;
    let plan = evaluate(&scenario).unwrap();
    let faster = |to| is_admitted(&Variation::Bandwidth { link: 0, to }.apply(&scenario));
    assert!(!plan.admitted && faster(1_000_000_000) && !faster(80_000_000_000));
    let advice = advise(&scenario, &plan);
    let proposed = advice.iter().find_map(|advice| match advice.change {
        Variation::Bandwidth { to, .. } => Some(to),
        _ => None,
    });
    assert!(
        proposed.is_some_and(|to| faster(to) && !faster(to - 1_000_000)),
        "{advice:?}"
    );
}

/// A larger state needs a larger budget, and gets it.
#[test]
fn the_largest_state_has_the_budget_that_its_accepted_loss_needs() {
    let mut channel = channel(0, (1_000, 100_000, 100, 1));
    channel.accepted_loss_per_year = Some(1e-2);
    let scenario = alone(channel);
    let plan = evaluate(&scenario).unwrap();
    assert!(plan.admitted, "{:?}", plan.unmet);
    let room = headroom(&scenario, &plan, || ()).unwrap().channels[0];
    assert!(room.size > 10_000_000 && room.size_budget > 1, "{room:?}");
    let with_its_budget = with_size(&scenario, 0, room.size);
    assert_eq!(with_its_budget.channels[0].budget, room.size_budget);
    assert!(is_admitted(&with_its_budget));
}
