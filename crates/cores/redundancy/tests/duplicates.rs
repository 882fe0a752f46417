//! A name that two processes use, and what only looks like it.

mod world;

use bumpless_base::LinkId;
use bumpless_redundancy::*;
use bumpless_wire::{Packet, parse};
use world::{GROUP, MS, Plan, World};

/// Another process with the name of node 0, at the same address: it hears all that node 1 sends to
/// node 0, and node 1 hears it.
struct Double {
    core: Redundancy,
    events: Vec<Event>,
}

impl Double {
    fn start(world: &mut World) -> Self {
        world.record = true;
        let core = Redundancy::new(world.setup(0), 4711, world.local(0)).unwrap();
        Self {
            core,
            events: Vec::new(),
        }
    }

    fn run_for(&mut self, world: &mut World, span: u64) {
        for _ in 0..span / (MS / 4) {
            world.run_for(MS / 4);
            let now = world.local(0);
            for (from, link, bytes) in std::mem::take(&mut world.recorded) {
                let Ok(Packet::Heartbeat(heartbeat)) = parse(&bytes) else {
                    panic!("not a heartbeat")
                };
                if from == 1 {
                    self.core.handle_heartbeat(LinkId(link), &heartbeat, now);
                }
            }
            self.core.handle_timeout(now);
            let mut buffer = [0; MAX_MESSAGE_LEN];
            while let Some(outgoing) = self.core.poll_transmit(now, &mut buffer) {
                if let Outgoing::Heartbeat { link, len, .. } = outgoing {
                    world.inject(1, 0, link.0, buffer[..len].to_vec());
                }
            }
            self.events
                .extend(std::iter::from_fn(|| self.core.poll_event()));
            let permit = self.core.output_permit(GROUP);
            assert!(permit.is_none_or(|permit| now >= permit.until));
        }
    }
}

fn reported(event: &Event) -> bool {
    matches!(event, Event::DuplicateNode)
}

#[test]
fn a_name_used_twice_is_reported_and_bars_both_but_not_their_partner() {
    for seed in 0..10 {
        let mut world = World::settled(Plan::default(), seed);
        let mut double = Double::start(&mut world);
        double.run_for(&mut world, 60 * MS);
        assert!(world.had(1, |e| matches!(e, Event::DuplicatePartner { .. })));
        assert!(world.had(0, reported) && double.events.iter().any(reported));
        for _ in 0..20 {
            double.run_for(&mut world, 100 * MS);
            assert!(world.writes(0).is_none(), "seed {seed}");
        }
        assert!(world.writes(1).is_some(), "seed {seed}");
        world.expect_no_violation("duplicate");
        drop(double);
        world.run_for(3000 * MS);
        assert!(world.is_healed(), "seed {seed}");
        world.expect_no_violation("duplicate");
    }
}

#[test]
fn a_name_used_twice_at_a_backup_leaves_the_primary_writing_without_a_gap() {
    let mut world = World::settled(Plan::default(), 31);
    world.command_switchover(0).unwrap();
    world.run_for(100 * MS);
    assert!(world.writes(1).is_some() && world.is_healed());
    world.longest_gap = 0;
    let mut double = Double::start(&mut world);
    double.run_for(&mut world, 500 * MS);
    assert!(world.had(0, reported) && double.events.iter().any(reported));
    assert!(world.writes(1).is_some());
    assert!(world.longest_gap < 10 * MS, "{} ns", world.longest_gap);
    world.expect_no_violation("duplicate backup");
}

#[test]
fn restarts_however_many_and_fast_are_no_duplicates() {
    let mut world = World::settled(Plan::default(), 32);
    for round in 0..40 {
        world.kill(round % 2);
        let down = world.random.below(8 * MS);
        world.run_for(down);
        world.start(round % 2);
        let up = world.random.below(40 * MS);
        world.run_for(up);
    }
    for node in 0..2 {
        assert!(!world.had(node, reported));
        assert!(!world.had(node, |e| matches!(e, Event::DuplicatePartner { .. })));
    }
}

#[test]
fn old_heartbeats_that_are_reflected_or_replayed_make_no_duplicate() {
    let mut world = World::settled(Plan::default(), 17);
    world.record = true;
    world.run_for(30 * MS);
    for node in 0..2 {
        world.kill(node);
        world.run_for(200 * MS);
        world.start(node);
        world.run_for(200 * MS);
    }
    world.record = false;
    assert!(world.is_healed());
    let before = world.roles();
    let all = world.recorded.clone();
    for (from, link, bytes) in all {
        // To whom it was meant for, and back to its sender.
        world.inject(1 - from, from, link, bytes.clone());
        world.inject(from, 1 - from, link, bytes);
    }
    for node in 0..2 {
        assert!(!world.had(node, reported));
        assert!(!world.had(node, |e| matches!(e, Event::DuplicatePartner { .. })));
    }
    assert_eq!(world.roles(), before);
    assert!(world.is_healed());
    world.run_for(100 * MS);
    assert!(world.is_healed());
    world.expect_no_violation("replay");
}
