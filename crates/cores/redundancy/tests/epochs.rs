//! Epochs.

mod world;

use world::{MS, World};

#[test]
fn a_backup_that_hears_nothing_and_is_heard_does_not_drive_the_epochs_up() {
    for seed in 0..10 {
        let mut world = World::settled(world::Plan::default(), seed);
        let before = world.status(0).epoch;
        (0..2).for_each(|link| {
            world.cuts.insert((0, 1, link));
        });
        // It comes to ask for the role of its own accord, as no witness tells of a primary.
        (0..2).for_each(|reference| world.cut_reference(1, reference));
        world.run_for(300 * MS);
        world.cuts.retain(|&(from, to, _)| from <= 1 && to <= 1);
        world.run_for(2000 * MS);
        let raised = world.status(0).epoch.0 - before.0;
        assert!(world.writes(0).is_some(), "seed {seed}");
        assert!(raised <= 4, "seed {seed}: {raised} in 2 s");
        world.expect_no_violation("one way");
    }
}

#[test]
fn an_epoch_that_an_earlier_process_has_asked_for_is_passed_over() {
    for seed in 0..10 {
        let mut world = World::settled(world::Plan::default(), seed);
        // Alone, it asks in vain, and one of the two witnesses has the epoch on record.
        world.kill(1);
        world.kill(0);
        world.cut_reference(0, 0);
        world.start(0);
        world.run_for(3000 * MS);
        assert_eq!(world.writes(0), None, "seed {seed}");
        // Its next process begins where the other witness is, which knows nothing of that.
        world.kill(0);
        world.cuts.clear();
        world.cut_reference(0, 1);
        world.start(0);
        world.run_for(3000 * MS);
        assert_eq!(world.writes(0), None, "seed {seed}");
        world.cuts.clear();
        world.run_for(3000 * MS);
        assert!(world.writes(0).is_some(), "seed {seed}");
        world.start(1);
        world.run_until(5000 * MS, World::is_healed);
        assert!(world.is_healed(), "seed {seed}");
        world.expect_no_violation("an earlier process");
    }
}
