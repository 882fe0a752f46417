//! Programs that are stopped for good and go on when an operator orders it (F-39).

use super::starved::{HOUR, epoch_at, failing, followed};
use super::world::{World, at, ms, settings, written};
use crate::ProgramFaultKind;
use crate::executor::*;
use bumpless_base::Epoch;

/// The program does not fail any more, and an order is given.
fn mended_and_ordered(world: &World, when: u64, from: ResumeFrom) {
    world.schedule(at(when), move |state| {
        state.failing.clear();
        state.ordered = Some(from);
    });
}

#[test]
fn a_program_that_is_stopped_for_good_goes_on_from_its_state_when_ordered() {
    for from in [ResumeFrom::State, ResumeFrom::StateOrInitial] {
        let world = failing(ProgramFaultKind::Trap, HOUR);
        mended_and_ordered(&world, 20_005, from);
        let reports = world.run(settings(), at(20_025));
        let expected = [(at(20_010), 3, 3.0), (at(20_020), 4, 4.0)];
        assert_eq!(written(&world)[2..], expected, "{from:?}");
        let mut resumed = reports.iter().filter_map(|report| report.resumed);
        assert_eq!(resumed.next_back(), Some(Resumed::Kept { cycle: 2 }));
        let state = world.lock();
        assert_eq!(state.standings.last(), Some(&ProgramStanding::Runs));
        assert_eq!(state.fit.last(), Some(&true));
    }
}

#[test]
fn an_ordered_program_that_fails_again_is_stopped_for_good_again() {
    let world = failing(ProgramFaultKind::Trap, HOUR);
    world.schedule(at(20_005), |state| state.ordered = Some(ResumeFrom::State));
    let reports = world.run(settings(), at(60_000));
    let expected = [
        (3, Then::TriedAtOnce),
        (3, Then::Stopped),
        (3, Then::Stopped),
    ];
    assert_eq!(followed(&reports), expected);
    assert_eq!(world.lock().executed.len(), 5, "one order is one trial");
}

#[test]
fn nobody_goes_on_from_a_state_that_is_too_old_unless_the_initial_one_is_permitted() {
    let world = failing(ProgramFaultKind::Trap, ms(60));
    mended_and_ordered(&world, 20_005, ResumeFrom::State);
    let reports = world.run(settings(), at(20_095));
    assert_eq!(followed(&reports).last(), Some(&(3, Then::NotResumed)));
    assert_eq!(world.lock().executed.len(), 4, "it was not tried");
}

/// Whether the group begins anew by itself does not matter: an operator has said so.
#[test]
fn an_order_that_permits_the_initial_state_begins_from_it_in_a_higher_epoch() {
    for begins_anew in [true, false] {
        let world = failing(ProgramFaultKind::Trap, ms(60));
        mended_and_ordered(&world, 20_005, ResumeFrom::StateOrInitial);
        epoch_at(&world, 20_035, 2);
        let settings = ExecutorSettings {
            begins_anew,
            ..settings()
        };
        world.run(settings, at(20_055));
        let expected = [(at(20_040), 1, 1.0), (at(20_050), 2, 2.0)];
        assert_eq!(written(&world)[2..], expected);
        let state = world.lock();
        assert_eq!(state.epochs_spent[0], Epoch(1));
        assert_eq!(state.writes[2].epoch, 2);
    }
}

/// A trial that is to come by itself comes at once; who is ordered to go on before the pause is over has not to wait.
#[test]
fn an_order_does_not_wait_for_the_pause_of_a_starved_program() {
    let world = failing(ProgramFaultKind::Starved, HOUR);
    mended_and_ordered(&world, 45, ResumeFrom::State);
    world.run(settings(), at(65));
    assert_eq!(written(&world)[2..], [(at(50), 3, 3.0), (at(60), 4, 4.0)]);
}
