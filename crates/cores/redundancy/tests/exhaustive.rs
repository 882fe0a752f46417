//! Exhaustive exploration of the role protocol (spec/exploration.md): the
//! shipped machines of two nodes and their witnesses, under every placement of a few faults.

#[path = "exhaustive/action.rs"]
mod action;
#[path = "exhaustive/explore.rs"]
mod explore;
#[path = "exhaustive/fold.rs"]
mod fold;
#[path = "exhaustive/model.rs"]
mod model;
#[path = "exhaustive/plan.rs"]
mod plan;
#[path = "exhaustive/replay.rs"]
mod replay;
#[path = "exhaustive/step.rs"]
mod step;
#[path = "exhaustive/world.rs"]
mod world;

use action::Action;
use bumpless_base::{Duration, Random};
use bumpless_redundancy::ReferenceKind::{Ping, Witness};
use explore::{Exploration, explore, first_counterexample};
use model::{ONE_WRITER, Roles};
use plan::{Budget, Fault, Plan, QUANTUM};
use stateright::Model;
use std::collections::HashMap;
use world::World;

/// Everything that can be seen of a pair that has one fault at most.
const SEEN_AFTER_ONE_FAULT: &[&str] = &[
    "A writes",
    "B writes",
    "A takes over",
    "B takes over",
    "A is handed the role",
    "B is handed the role",
    "a node goes on in simplex",
    "a right lapses and comes back",
    "nobody writes",
];

fn small(name: &'static str, roles: Roles, seen: &'static [&'static str]) {
    explore(Exploration { name, roles, seen });
}

#[test]
fn any_single_fault_of_a_settled_pair_leaves_one_writer_and_heals() {
    let plan = Plan::new(&[Witness], 1);
    let roles = Roles::settled(plan.clone(), Budget::any(1));
    small("any 1 fault, short lease", roles, SEEN_AFTER_ONE_FAULT);
    let roles = Roles::settled(plan.with_long_lease(), Budget::any(1));
    small("any 1 fault, long lease", roles, SEEN_AFTER_ONE_FAULT);
}

#[test]
fn any_start_of_the_nodes_leaves_one_writer_and_heals() {
    let roles = Roles::cold(Plan::new(&[Witness], 1), Budget::NOTHING);
    let seen = &["A writes", "B writes", "a node starts alone"];
    small("one witness, from the start", roles, seen);
}

#[test]
fn two_witnesses_on_two_networks_leave_one_writer_and_heal() {
    let plan = Plan::new(&[Witness; 2], 2);
    let kinds = [
        Fault::Crash,
        Fault::WitnessRestart,
        Fault::Pause,
        Fault::Order,
    ];
    let roles = Roles::settled(plan, Budget::only(1, &kinds));
    let seen = &["A takes over", "B takes over", "A is handed the role"];
    small("two witnesses, 1 fault of a process", roles, seen);
}

/// Clocks at the two ends of what the lease reckons with: one of the three is as much faster.
fn drifting(fast: usize, bound_ppm: u32, true_ppm: u64) -> Plan {
    let mut plan = Plan::new(&[Witness], 1);
    plan.timing.drift_ppm = bound_ppm;
    plan.timing.start_wait = Duration::from_nanos(7 * QUANTUM);
    plan.steps[fast] += QUANTUM * true_ppm / 1_000_000;
    plan
}

#[test]
fn clocks_at_the_ends_of_the_drift_bound_leave_one_writer() {
    let kinds = [Fault::Cut, Fault::Crash, Fault::Loss];
    for (fast, name) in ["A fast", "B fast", "the witness fast"].iter().enumerate() {
        let plan = drifting(fast, 100_000, 100_000);
        let mut roles = Roles::settled(plan, Budget::only(1, &kinds));
        // For as long as a partner answers nothing, it is less and less certain when it was there.
        roles.horizon = Some(250);
        small(name, roles, &["A takes over", "B takes over"]);
    }
}

/// Both that bind a successor, its own promise and the witness's lease, count twice as fast.
#[test]
fn clocks_beyond_the_drift_bound_make_two_writers_that_are_found() {
    let mut plan = Plan::new(&[Witness], 1).with_long_lease();
    (plan.steps[1], plan.steps[2]) = (2 * QUANTUM, 2 * QUANTUM);
    let roles = Roles::settled(plan, Budget::only(1, &[Fault::Pause]));
    assert_eq!(first_counterexample(roles), Some(ONE_WRITER));
}

#[test]
fn the_plain_reference_point_has_a_dual_primary() {
    let roles = |kind| Roles::settled(Plan::new(&[kind], 1), Budget::only(1, &[Fault::Cut]));
    assert_eq!(first_counterexample(roles(Ping)), Some(ONE_WRITER));
    assert_eq!(first_counterexample(roles(Witness)), None);
}

#[test]
fn worlds_in_which_the_adversary_has_something_else_left_are_told_apart() {
    let plan = Plan::new(&[Witness], 1);
    let roles = Roles::settled(plan, Budget::any(3));
    let with = |of: [Fault; 2]| {
        let mut world = roles.first[0].clone();
        world.budget = Budget::only(2, &of);
        world.budget.of[of[0] as usize] = 1;
        world.canonical()
    };
    let kinds = [
        Fault::Cut,
        Fault::Pause,
        Fault::Crash,
        Fault::WitnessRestart,
    ];
    let forms: Vec<_> = kinds
        .iter()
        .map(|&kind| with([kind, Fault::Order]))
        .collect();
    for (at, form) in forms.iter().enumerate() {
        assert!(!forms[..at].contains(form), "{:?}", kinds[at]);
    }
}

/// Worlds that differ in time, numbers and history and are folded into one get the same choices,
/// and stay the same whatever is chosen.
#[test]
fn worlds_that_are_folded_into_one_behave_alike() {
    let plan = Plan::new(&[Witness], 1);
    let roles = Roles::settled(plan, Budget::any(3));
    let mut random = Random::new(1);
    let mut known: HashMap<Vec<u64>, World> = HashMap::new();
    let mut compared = 0;
    for walk in 0..120 {
        let mut world = roles.first[walk % 2].clone();
        for _ in 0..150 {
            world = random_steps(&roles, [world], &mut random, 1)
                .map(|[world]| world)
                .unwrap();
            let twin = known
                .entry(world.canonical())
                .or_insert_with(|| world.clone());
            if twin.time != world.time && random.below(8) == 0 {
                let pair = [twin.clone(), world.clone()];
                random_steps(&roles, pair, &mut random, 60).unwrap();
                compared += 1;
            }
        }
    }
    println!("{compared} pairs of {} worlds compared", known.len());
    assert!(compared > 300);
}

/// The same, one step far, with every choice that there is.
#[test]
fn worlds_that_are_folded_into_one_have_the_same_successors() {
    let roles = Roles::cold(Plan::new(&[Witness], 1), Budget::any(1));
    let mut random = Random::new(7);
    let mut known: HashMap<Vec<u64>, World> = HashMap::new();
    let mut compared = 0;
    while compared < 40_000 {
        let mut world = roles.first[random.below(roles.first.len() as u64) as usize].clone();
        for _ in 0..300 {
            [world] = random_steps(&roles, [world], &mut random, 1).unwrap();
            let form = world.canonical();
            let Some(twin) = known.get(&form) else {
                known.insert(form, world.clone());
                continue;
            };
            compared += 1;
            assert_eq!(successors(&roles, twin), successors(&roles, &world));
        }
    }
    println!("{compared} pairs of {} worlds compared", known.len());
}

/// What can follow, with its form, in the order of the choices.
fn successors(roles: &Roles, world: &World) -> Vec<(Action, Option<Vec<u64>>)> {
    let mut actions = Vec::new();
    roles.actions(world, &mut actions);
    let form = |action| {
        let next = roles.next_state(world, action);
        (action, next.map(|world| world.canonical()))
    };
    actions.into_iter().map(form).collect()
}

/// Lets all worlds take the same random steps; an error if they come to differ.
fn random_steps<const N: usize>(
    roles: &Roles,
    mut worlds: [World; N],
    random: &mut Random,
    steps: usize,
) -> Result<[World; N], String> {
    for _ in 0..steps {
        let mut actions = Vec::new();
        roles.actions(&worlds[0], &mut actions);
        // Mostly time goes on, so that faults are spread.
        let any = actions[random.below(actions.len() as u64) as usize];
        let action = if random.below(3) == 0 {
            any
        } else {
            actions[0]
        };
        for world in &mut worlds {
            let mut same = Vec::new();
            roles.actions(world, &mut same);
            assert_eq!(same, actions, "the same choices");
            *world = roles.next_state(world, action).ok_or("no step")?;
        }
        let first = worlds[0].canonical();
        assert!(worlds.iter().all(|w| w.canonical() == first), "{action:?}");
    }
    Ok(worlds)
}

/// `BUMPLESS_EXPLORE=name` runs one, else all, smallest first.
#[test]
#[ignore = "takes minutes to hours; run with --release --ignored --nocapture"]
fn the_promises_hold_in_every_order_of_more_faults() {
    let wanted = std::env::var("BUMPLESS_EXPLORE").ok();
    let mut all = explore::large();
    let known: Vec<_> = all.iter().map(|&(name, _)| name).collect();
    all.retain(|&(name, _)| wanted.as_deref().is_none_or(|wanted| wanted == name));
    assert!(
        !all.is_empty(),
        "BUMPLESS_EXPLORE={} is none of {known:?}",
        wanted.unwrap_or_default()
    );
    for (name, roles) in all {
        explore(Exploration {
            name,
            roles,
            seen: &["A writes", "B writes"],
        });
    }
}
