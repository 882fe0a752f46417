//! Ways that explorations have found, walked again.

use super::action::Action;
use super::model::Roles;
use super::plan::{Budget, Fault, Plan};
use super::world::{End, World, path};
use bumpless_redundancy::ReferenceKind::Witness;
use bumpless_redundancy::Role;
use stateright::Model;

/// Lets each of these happen at its quantum, in the turn of its end, and time go on until `until`; what `look` sees on the way is kept.
fn walk<T>(
    roles: &Roles,
    mut world: World,
    script: &[(u64, End, Action)],
    until: u64,
    look: impl Fn(&World) -> T,
) -> Vec<T> {
    let mut left = script.iter().peekable();
    let mut seen = Vec::new();
    while world.time < until {
        let due = left.next_if(|(time, turn, _)| (*time, *turn) == (world.time, world.turn));
        let action = due.map_or(Action::Turn, |(_, _, action)| *action);
        world = roles.next_state(&world, action).expect("a next world");
        assert_eq!(world.seen.violation, None, "quantum {}", world.time);
        seen.push(look(&world));
    }
    assert!(left.next().is_none(), "all of it has happened");
    seen
}

/// What is looked at of A.
struct OfA {
    role: Option<Role>,
    undecided: bool,
    writes: bool,
}

/// B is primary and goes on in simplex; it dies, and its next process knows nothing. A, whose state is old, takes the role in
/// doubt and loses its right before the field device has answered.
#[test]
fn a_role_in_doubt_in_which_nothing_was_made_leaves_what_was_held_in_doubt() {
    let kinds = [Fault::Transfer, Fault::Crash];
    let roles = Roles::settled(Plan::new(&[Witness], 1), Budget::only(3, &kinds));
    let b_is_primary = roles.first[1].clone();
    let script = [
        (101, 0, Action::StopTransfers),
        (104, 1, Action::Crash),
        (104, 1, Action::Start),
        (109, 1, Action::Crash),
        (110, 0, Action::ResumeTransfers),
        (110, 1, Action::Start),
    ];
    let of_a = |world: &World| OfA {
        role: world.role(0),
        undecided: world.nodes[0].undecided,
        writes: world.permit(0).is_some(),
    };
    let seen = walk(&roles, b_is_primary, &script, 140, of_a);
    let begun = seen.iter().position(|a| a.undecided).expect("begins");
    let after = &seen[begun..];
    let ended = after.iter().position(|a| a.role == Some(Role::Starting));
    let (role, rest) = after.split_at(ended.expect("ends"));
    assert!(role.iter().all(|a| a.undecided), "makes nothing");
    let again = rest.iter().find(|a| a.role == Some(Role::Primary));
    assert!(again.is_some_and(|a| a.undecided), "begins in doubt again");
    assert!(rest.last().is_some_and(|a| a.writes), "and writes");
}

/// With a long lease, a primary that stands still for 48 quanta after its partner could not hear it leads to a state that was
/// there before only at quantum 258, by a way that the search takes depth first: nothing grows.
#[test]
fn a_long_pause_comes_back_to_a_state_that_was_there_before() {
    let plan = Plan::new(&[Witness], 1).with_long_lease();
    let kinds = [Fault::Cut, Fault::Pause];
    let roles = Roles::settled(plan, Budget::only(2, &kinds));
    let to_a = path(1, 0, 0);
    let mut script = vec![
        (101, 0, Action::Cut(to_a)),
        (110, 0, Action::Mend(to_a)),
        (111, 1, Action::Pause),
    ];
    script.extend((112..=158).map(|quantum| (quantum, 1, Action::StandStill)));
    let form = |world: &World| (world.time, world.canonical());
    let seen = walk(&roles, roles.first[1].clone(), &script, 300, form);
    let again = seen.iter().enumerate().find_map(|(at, (time, form))| {
        let earlier = seen[..at].iter().find(|(_, other)| other == form)?;
        (*time > 160).then_some((earlier.0, *time))
    });
    assert_eq!(again, Some((238, 258)));
}
