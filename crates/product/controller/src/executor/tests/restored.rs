//! What an executor makes of a state that an earlier process has left on disk.

use super::world::{World, at, published, settings};
use super::*;

/// A role that begins in epoch 9 without the certainty to have the newest state; the device tells that cycle 60 of
/// epoch 8 was accepted, and on disk lies cycle 50.
fn cold_with_a_file() -> World {
    let world = World::new();
    let mut state = world.lock();
    (state.cold, state.backup) = (true, false);
    state.permit = Some(Permit {
        epoch: Epoch(9),
        until: Instant::FAR_FUTURE,
    });
    (state.device_epoch, state.device_cycle) = (Some(Epoch(8)), Some(60));
    state.restored = Some((published(8, 50, 50.0), at(1000)));
    drop(state);
    world
}

/// With what the first cycle began, and what it wrote.
fn begun(world: &World) -> (Resumed, u64, Vec<f64>) {
    let reports = world.run(settings(), at(20));
    let resumed = reports.iter().find_map(|report| report.resumed);
    let state = world.lock();
    let first = &state.writes[0];
    let resumed = resumed.expect("a role begins with something");
    (resumed, first.cycle, first.outputs.clone())
}

#[test]
fn where_memory_has_lost_everything_control_goes_on_from_the_disk() {
    let restored = Resumed::Restored {
        epoch: Epoch(8),
        cycle: 50,
    };
    assert_eq!(begun(&cold_with_a_file()), (restored, 51, vec![51.0]));
    // Nor does it matter what a device says that cannot tell.
    let world = cold_with_a_file();
    (world.lock().device_epoch, world.lock().device_cycle) = (None, None);
    assert_eq!(begun(&world), (restored, 51, vec![51.0]));
}

#[test]
fn a_file_that_is_too_old_when_the_role_begins_is_not_gone_on_from() {
    let world = cold_with_a_file();
    world.lock().restored = Some((published(8, 50, 50.0), Instant::ZERO));
    assert_eq!(begun(&world), (Resumed::ColdStart, 1, vec![1.0]));
}

#[test]
fn a_file_that_grows_too_old_while_the_device_is_awaited_is_not_used() {
    let world = cold_with_a_file();
    {
        let mut state = world.lock();
        state.restored = Some((published(8, 50, 50.0), at(15)));
        (state.input, state.now) = (Err(FieldErrorKind::Timeout), at(10));
        state.role_since = at(10);
    }
    world.schedule(at(22), |state| state.input = Ok(0.0));
    let reports = world.run(settings(), at(40));
    let resumed = reports.iter().find_map(|report| report.resumed);
    assert_eq!(resumed, Some(Resumed::ColdStart));
}

#[test]
fn what_is_in_memory_and_includes_every_output_goes_before_the_disk() {
    let world = cold_with_a_file();
    world.lock().received = Some(published(8, 60, 60.0));
    let loaded = Resumed::Loaded {
        epoch: Epoch(8),
        cycle: 60,
    };
    assert_eq!(begun(&world), (loaded, 61, vec![61.0]));
}

#[test]
fn the_certainty_to_have_the_newest_state_leaves_the_disk_aside() {
    let world = cold_with_a_file();
    world.lock().cold = false;
    world.lock().received = Some(published(8, 40, 40.0));
    let loaded = Resumed::Loaded {
        epoch: Epoch(8),
        cycle: 40,
    };
    assert_eq!(begun(&world), (loaded, 41, vec![41.0]));
}

#[test]
fn who_has_executed_itself_does_not_go_back_to_the_disk() {
    let world = cold_with_a_file();
    world.schedule(at(12), |state| {
        // The role is lost and taken again, long after what this node has made itself counts.
        state.role = Role::Backup;
    });
    world.schedule(at(200), |state| {
        (state.role, state.role_since) = (Role::Primary, at(200));
        state.device_cycle = Some(90);
    });
    let reports = world.run(settings(), at(230));
    let resumed: Vec<_> = reports.iter().filter_map(|report| report.resumed).collect();
    assert!(matches!(resumed[0], Resumed::Restored { .. }));
    assert_eq!(resumed[1], Resumed::ColdStart);
}

#[test]
fn a_file_that_does_not_fit_leaves_the_initial_state_as_it_was() {
    for broken in [vec![], vec![7; 40], published(8, 50, 50.0)[..30].to_vec()] {
        let world = cold_with_a_file();
        world.lock().restored = Some((broken, at(1000)));
        assert_eq!(begun(&world), (Resumed::ColdStart, 1, vec![1.0]));
    }
}

#[test]
fn each_cycle_as_backup_keeps_what_has_come() {
    let world = World::new();
    world.lock().role = Role::Backup;
    world.run(settings(), at(40));
    assert_eq!(world.lock().kept, 4);
}
