//! Orders of change: every set on the way keeps its deadlines, and a change at once is asked for only where
//! no order does.

use bumpless_base::{ChannelId, Duration, LinkSet};
use bumpless_plan::change::{Order, Step, StepKind, on_the_way, order};
use bumpless_plan::evaluate::is_admitted;
use bumpless_plan::{Burst, Channel, Distribution, Link, Loss, Machine, Packets, Scenario};
use proptest::prelude::*;

/// One network of 8 Mbit/s: a kilobyte takes a millisecond, and headers nothing.
fn scenario(channels: Vec<Channel>) -> Scenario {
    let link = Link {
        name: "A".into(),
        bandwidth: 8_000_000,
        frame_overhead: 0,
        gap: 0,
        round_trip: (Duration::ZERO, Duration::ZERO),
        answers_behind: false,
        burst: Burst::Fixed(0),
        other_frame: 0,
        loss: Loss::BitErrors(0.0),
        background: Vec::new(),
    };
    Scenario {
        links: vec![link],
        packets: Packets {
            payload: 100,
            header: 0,
            security: 0,
            in_flight_max: 32_768,
        },
        machine: Machine::default(),
        channels,
    }
}

/// A channel whose state takes `cost` ms.
fn channel(name: &str, cost: u32, period: u64, deadline: u64) -> Channel {
    Channel {
        id: ChannelId::new(1).unwrap(),
        name: name.into(),
        size: cost * 1_000,
        period: Duration::from_millis(period),
        deadline: Duration::from_millis(deadline),
        budget: 0,
        budget_follows: false,
        accepted_loss_per_year: None,
        links: LinkSet::first(1),
        distribution: Distribution::Replicate,
    }
}

fn way(old: Vec<Channel>, new: Vec<Channel>) -> Order {
    order(&[scenario(old)], &[scenario(new)])
}

fn step(channel: &str, kind: StepKind) -> Step {
    Step {
        channel: channel.into(),
        kind,
    }
}

#[test]
fn what_lightens_the_load_goes_before_what_adds_to_it() {
    let old = vec![
        channel("a", 50, 100, 100),
        channel("b", 20, 100, 100),
        channel("c", 10, 100, 100),
    ];
    let new = vec![
        channel("d", 15, 100, 100),
        channel("b", 60, 100, 100),
        channel("a", 15, 100, 100),
    ];
    let steps = vec![
        step("c", StepKind::Remove),
        step("a", StepKind::Lighten),
        step("b", StepKind::Burden),
        step("d", StepKind::Add),
    ];
    assert_eq!(way(old, new), Order::Steps { steps });
}

#[test]
fn nothing_to_do_has_no_steps() {
    let same = || vec![channel("a", 50, 100, 100)];
    assert_eq!(way(same(), same()), Order::Steps { steps: Vec::new() });
}

#[test]
fn of_channels_that_change_both_ways_the_one_that_makes_room_goes_first() {
    // a: shorter states more often, with an early deadline; b: the other way round.
    let old = vec![channel("a", 50, 100, 100), channel("b", 8, 20, 20)];
    let new = vec![channel("a", 15, 30, 20), channel("b", 30, 200, 200)];
    let steps = vec![step("b", StepKind::Alter), step("a", StepKind::Alter)];
    assert_eq!(way(old, new), Order::Steps { steps });
}

#[test]
fn two_that_cannot_stand_beside_the_other_as_it_was_change_at_once() {
    let old = vec![channel("a", 9, 50, 10), channel("b", 75, 100, 100)];
    let new = vec![channel("a", 75, 100, 100), channel("b", 9, 50, 10)];
    let Order::Atomic { steps, exhaustive } = way(old, new) else {
        panic!("9 ms in 10 and 75 in 100 fit; twice 9 in 10 or twice 75 in 100 do not");
    };
    assert_eq!(steps.len(), 2);
    assert!(exhaustive);
}

prop_compose! {
    fn channels()(raw in prop::collection::btree_map(0usize..5, (1u32..30, 10u64..100, 30u64..100), 0..5)) -> Vec<Channel> {
        raw.into_iter()
            .map(|(name, (cost, period, share))| {
                channel(&name.to_string(), cost, period, (period * share / 100).max(1))
            })
            .collect()
    }
}

/// Whether any order at all keeps every set on the way admitted: all permutations.
fn any_permutation(old: &[Scenario], new: &[Scenario], steps: &mut Vec<Step>, from: usize) -> bool {
    if from == steps.len() {
        return on_the_way(old, new, steps)
            .iter()
            .flatten()
            .all(is_admitted);
    }
    (from..steps.len()).any(|at| {
        steps.swap(from, at);
        let found = any_permutation(old, new, steps, from + 1);
        steps.swap(from, at);
        found
    })
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 100_000, ..ProptestConfig::with_cases(1_000) })]

    #[test]
    fn every_set_on_the_way_is_admitted_and_at_once_means_that_no_order_is(old in channels(), new in channels()) {
        let (old, new) = (vec![scenario(old)], vec![scenario(new)]);
        prop_assume!(is_admitted(&old[0]) && is_admitted(&new[0]));
        match order(&old, &new) {
            Order::Steps { steps } => {
                let way = on_the_way(&old, &new, &steps);
                prop_assert!(way.iter().flatten().all(is_admitted));
                let names = |s: &Scenario| {
                    let mut all: Vec<_> = s.channels.iter().map(|c| (c.name.clone(), c.size, c.period, c.deadline)).collect();
                    all.sort();
                    all
                };
                prop_assert_eq!(names(&way.last().expect("the end")[0]), names(&new[0]));
            }
            Order::Atomic { mut steps, .. } => {
                prop_assert!(!any_permutation(&old, &new, &mut steps, 0));
            }
        }
    }
}
