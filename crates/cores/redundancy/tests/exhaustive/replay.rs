//! Ways that explorations have found, walked again.

use super::model::{Action, Roles};
use super::plan::{Budget, Fault, Plan};
use super::world::{End, World};
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
    let of_a = |world: &World| (world.role(0), world.nodes[0].undecided, world.permit(0));
    let seen = walk(&roles, b_is_primary, &script, 140, of_a);
    let at = |wanted: &dyn Fn(&(Option<Role>, bool, _)) -> bool| seen.iter().position(wanted);
    let begun = at(&|a| a.0 == Some(Role::Primary) && a.1).expect("begins in doubt");
    let ended = begun
        + seen[begun..]
            .iter()
            .position(|a| a.0 == Some(Role::Starting))
            .expect("ends");
    assert!(seen[begun..ended].iter().all(|a| a.1), "makes nothing");
    let again = seen[ended..].iter().find(|a| a.0 == Some(Role::Primary));
    assert!(again.is_some_and(|a| a.1), "begins in doubt again");
    assert!(seen.last().is_some_and(|a| a.2.is_some()), "and writes");
}
