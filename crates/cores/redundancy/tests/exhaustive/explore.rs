//! Running the checker: what is explored, progress, and how a counterexample is told.

use super::action::Action;
use super::model::{ANY_WAYS, Roles};
use super::plan::{Budget, Fault, Plan};
use super::world::World;
use bumpless_redundancy::ReferenceKind::Witness;
use stateright::{Checker, Expectation, HasDiscoveries, Model, Path};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// One exploration.
pub struct Exploration {
    pub name: &'static str,
    pub roles: Roles,
    /// What must be among what was seen, or the exploration says little.
    pub seen: &'static [&'static str],
}

fn is_failure(roles: &Roles, name: &str) -> bool {
    let properties = roles.properties();
    let always = |e: &Expectation| *e == Expectation::Always;
    properties
        .iter()
        .any(|p| p.name == name && always(&p.expectation))
}

/// Explores every state; fails if one violates a property, with the way to it. Breadth first, which finds the shortest
/// way, or depth first, which keeps fewer worlds at a time.
pub fn explore(exploration: Exploration) {
    let Exploration {
        name,
        mut roles,
        seen,
    } = exploration;
    let checker = |roles: Roles| {
        let checker = roles.checker().finish_when(HasDiscoveries::AnyFailures);
        checker.threads(threads())
    };
    match std::env::var("BUMPLESS_EXPLORE_FIRST").as_deref() {
        Err(_) | Ok("breadth") => judge(name, seen, checker(roles).spawn_bfs()),
        Ok("depth") => {
            roles.settles_by = ANY_WAYS;
            judge(name, seen, checker(roles).spawn_dfs());
        }
        Ok(other) => panic!("BUMPLESS_EXPLORE_FIRST is breadth or depth, not {other}"),
    }
}

fn judge(name: &str, seen: &[&str], checker: impl Checker<Roles>) {
    let begin = Instant::now();
    let mut told = begin;
    while !checker.is_done() {
        std::thread::sleep(Duration::from_millis(5));
        if told.elapsed() > Duration::from_secs(30) {
            told = Instant::now();
            report(name, &checker, begin);
        }
    }
    let checker = checker.join();
    report(name, &checker, begin);
    let found = checker.discoveries();
    for (property, path) in &found {
        if is_failure(checker.model(), property) {
            tell(property, path.clone());
            panic!("{name}: {property}");
        }
    }
    let mut seen_all: Vec<_> = found.keys().collect();
    seen_all.sort_unstable();
    println!("{name}: seen: {seen_all:?}");
    let missing: Vec<_> = seen
        .iter()
        .filter(|what| !found.contains_key(*what))
        .collect();
    assert!(missing.is_empty(), "{name}: never seen: {missing:?}");
}

fn threads() -> usize {
    let wanted = std::env::var("BUMPLESS_EXPLORE_THREADS").ok();
    wanted.and_then(|n| n.parse().ok()).unwrap_or(1)
}

fn report(name: &str, checker: &impl Checker<Roles>, begin: Instant) {
    println!(
        "{name}: {} states, {} transitions, depth {}, healed within {} quanta, {} s",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        checker.model().longest.load(Ordering::Relaxed),
        begin.elapsed().as_secs(),
    );
}

/// The property with the shortest counterexample, whose way is printed; `None` if all hold in the
/// first million and a half steps.
pub fn first_counterexample(roles: Roles) -> Option<&'static str> {
    let checker = roles.checker().finish_when(HasDiscoveries::AnyFailures);
    let checker = checker.target_state_count(1_500_000).spawn_bfs().join();
    let mut found = checker.discoveries();
    let properties = checker.model().properties().into_iter();
    let mut failures = properties.filter(|p| p.expectation == Expectation::Always);
    let (property, path) = failures.find_map(|p| Some((p.name, found.remove(p.name)?)))?;
    println!(
        "{} states until a counterexample",
        checker.unique_state_count()
    );
    tell(property, path);
    Some(property)
}

/// Prints a path: each quantum, what the adversary does, and what becomes of the nodes.
fn tell(property: &str, path: Path<World, Action>) {
    println!("{property}:");
    let mut before = String::new();
    for (world, action) in path.into_vec() {
        let now: Vec<_> = (0..2).map(|node| describe(&world, node)).collect();
        let now = now.join(", ");
        if now != before {
            println!("  quantum {}: {now}", world.time);
            before = now;
        }
        match action {
            None | Some(Action::Turn) => {}
            Some(action) => println!(
                "  quantum {}, turn of {}: {}",
                world.time,
                ["A", "B", "the reference points"][world.turn],
                world.explain(action),
            ),
        }
    }
}

fn describe(world: &World, node: usize) -> String {
    let name = ["A", "B"][node];
    match (world.role(node), world.permit(node)) {
        (None, _) => format!("{name} is down"),
        (Some(role), Some(epoch)) => format!("{name} is {role:?} and may write in {epoch}"),
        (Some(role), None) => format!("{name} is {role:?}"),
    }
}

/// At most one cut, and two ends of processes, before, in or after it.
pub fn cut_once(plan: Plan) -> Roles {
    let mut budget = Budget::only(3, &[Fault::Cut, Fault::Crash, Fault::WitnessRestart]);
    budget.of = budget.of.map(|most| most.min(2));
    budget.of[Fault::Cut as usize] = 1;
    Roles::settled(plan, budget)
}

/// While the backup reaches neither witness, the primary proposes one after the other, and the
/// version of its choice grows without end. So time has a bound here.
fn two_for_a_while(plan: Plan) -> Roles {
    let kinds = [
        Fault::Cut,
        Fault::Crash,
        Fault::WitnessRestart,
        Fault::Pause,
    ];
    let mut roles = Roles::settled(plan, Budget::only(2, &kinds));
    roles.horizon = Some(180);
    roles
}

/// What takes longer than a test should.
pub fn large() -> Vec<(&'static str, Roles)> {
    use Fault::*;
    let one = || Plan::new(&[Witness], 1);
    let two = || Plan::new(&[Witness; 2], 2);
    let only = |plan, total, kinds: &[Fault]| Roles::settled(plan, Budget::only(total, kinds));
    vec![
        ("start-1", Roles::cold(one(), Budget::any(1))),
        ("two-witnesses-1", Roles::settled(two(), Budget::any(1))),
        ("any-2", Roles::settled(one(), Budget::any(2))),
        (
            "any-2-long-lease",
            Roles::settled(one().with_long_lease(), Budget::any(2)),
        ),
        ("crash-3", only(one(), 3, &[Crash, WitnessRestart, Expiry])),
        (
            "states-3",
            only(one(), 3, &[Transfer, LateState, Expiry, Crash]),
        ),
        ("late-4", only(one(), 4, &[Crash, Loss, LateState])),
        ("order-3", only(one(), 3, &[Order, Loss, Crash])),
        ("network-3", only(one(), 3, &[Loss, Copy, Delay])),
        ("cut-once-3", cut_once(one())),
        ("two-witnesses-2", two_for_a_while(two())),
        ("start-2", Roles::cold(one(), Budget::any(2))),
    ]
}
