//! States that leave while they are still being copied (T-52).

mod world;

use bumpless_base::pieces::overlay;
use bumpless_base::{Counter, Duration, Random};
use bumpless_transfer::*;
use proptest::prelude::*;
use world::*;

struct Bytes(State);

impl Pieces for Bytes {
    fn size(&self) -> usize {
        self.0.len()
    }
    fn revision(&self) -> Option<Revision> {
        None
    }
    fn copy(&self, at: usize, piece: &mut [u8], _: Option<Revision>) {
        overlay(piece, at, &self.0, 0);
    }
}

/// Publishes on channel 0; `between` happens before each further piece.
fn publish(world: &mut World, state: State, mut between: impl FnMut(&mut World)) -> u64 {
    let mut publisher = world.publishers.remove(0);
    let now = world.now;
    let published = publisher.publish_pieces(now, &Bytes(state), || between(world));
    world.publishers.insert(0, publisher);
    published.ticket
}

#[test]
fn packets_leave_while_the_rest_is_copied() {
    let mut world = Plan::links(2).build();
    let mut left = Vec::new();
    let ticket = publish(&mut world, state(7, 1_000_000), |world| {
        world.run(us(200));
        left.push(world.sent.len());
    });
    assert!(
        left.len() > 3 && left[0] > 0 && left.is_sorted(),
        "{left:?}"
    );
    assert!(world.fate(ticket).is_some());
    assert_eq!(world.read(0).unwrap(), (1, state(7, 1_000_000)));
    assert_eq!(world.sent_count(Counter::PacketsRetransmitted), 0);
}

#[test]
fn a_copy_that_is_slower_than_the_network_holds_only_its_own_state_up() {
    let two = |p: &mut Plan| p.channels.push(p.channels[0]);
    let mut world = Plan::links(1).with(two).build();
    let (large, small) = (state(1, 1_000_000), state(2, 5_000));
    let mut others = 0;
    let ticket = publish(&mut world, large.clone(), |world| {
        // The one publisher that is there: that of channel 1.
        world.publish(0, &small);
        world.run(ms(3));
        others += 1;
        assert_eq!(world.read(1).unwrap(), (others, small.clone()));
    });
    assert!(world.fate(ticket).is_some());
    assert_eq!(world.read(0).unwrap(), (1, large));
}

#[test]
fn a_state_whose_copy_ends_too_late_fails_by_its_deadline_and_the_next_is_safe() {
    let mut world = Plan::links(1).build();
    let late = publish(&mut world, state(1, 1_000_000), |world| world.run(ms(60)));
    assert_eq!(world.fate(late), None);
    let next = publish(&mut world, state(2, 1_000_000), |_| {});
    assert!(world.fate(next).is_some());
    assert_eq!(world.read(0).unwrap().1, state(2, 1_000_000));
}

/// What ends while a state is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    OneNetwork,
    BothNetworks,
    TheReceiver,
}

/// Cuts a transfer before its `at`-th further piece is copied, and lets the next one go by.
fn cut(ends: Ends, unsent: Unsent, at: usize) {
    let mut world = Plan::links(2)
        .with(|p| p.channels[0].unsent = unsent)
        .build();
    let told = format!("{ends:?}, {unsent:?}, before piece {at}");
    let before = publish(&mut world, state(1, 1_000_000), |world| world.run(us(300)));
    assert!(world.fate(before).is_some(), "{told}");
    let mut copied = 0;
    let ticket = publish(&mut world, state(2, 1_000_000), |world| {
        match ends {
            _ if copied != at => {}
            Ends::OneNetwork => world.paths[0].up = false,
            Ends::BothNetworks => world.paths.iter_mut().for_each(|path| path.up = false),
            Ends::TheReceiver => world.restart_receiver(8),
        }
        copied += 1;
        world.run(us(300));
    });
    assert!(copied > at, "{told}");
    let safe = world.fate(ticket).is_some();
    assert_eq!(safe, ends == Ends::OneNetwork, "{told}");
    let read = world.read(0).map(|(_, state)| state);
    let expected = match ends {
        Ends::OneNetwork => Some(state(2, 1_000_000)),
        Ends::BothNetworks => Some(state(1, 1_000_000)),
        Ends::TheReceiver => None,
    };
    assert!(read == expected, "{told}: another state, or half of one");
    world.paths.iter_mut().for_each(|path| path.up = true);
    world.run(ms(50));
    let next = publish(&mut world, state(3, 1_000_000), |world| world.run(us(300)));
    assert!(world.fate(next).is_some(), "{told}");
    assert!(world.read(0).unwrap().1 == state(3, 1_000_000), "{told}");
}

#[test]
fn a_transfer_cut_while_its_state_is_copied_leaves_a_whole_one() {
    for unsent in [Unsent::Replace, Unsent::Keep] {
        for ends in [Ends::OneNetwork, Ends::BothNetworks, Ends::TheReceiver] {
            // Before anything of it has left, a new receiver is told of it as of any state.
            let from = usize::from(ends == Ends::TheReceiver);
            (from..4).for_each(|at| cut(ends, unsent, at));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 60 }))]

    #[test]
    fn whatever_is_lost_meanwhile_each_state_is_whole_or_failed(
        seed: u64, links in 1..3_usize, loss in 0.0..0.3, keep: bool, spread: bool,
    ) {
        let plan = Plan::links(links).with(|p| {
            p.seed = seed;
            for path in &mut p.paths {
                (path.loss, path.ack_loss, path.jitter) = (loss, loss, us(100));
            }
            let channel = &mut p.channels[0];
            channel.unsent = if keep { Unsent::Keep } else { Unsent::Replace };
            if spread {
                channel.distribution = Distribution::Spread;
            }
        });
        let (mut world, mut random) = (plan.build(), Random::new(seed));
        for round in 0..8_u64 {
            let bytes = state(round, 100_000 + random.below(900_000) as usize);
            publish(&mut world, bytes, |world| world.run(us(random.below(400))));
            world.run(Duration::from_micros(random.below(30_000)));
            if let Some((_, read)) = world.read(0) {
                let known = (0..=round).any(|it| read == state(it, read.len()));
                prop_assert!(known, "whole");
            }
        }
        world.run(Duration::from_secs(1));
        let answered = world.events.len() as u64;
        let superseded = world.sent_count(Counter::StatesSuperseded);
        let published = world.sent_count(Counter::StatesPublished);
        prop_assert_eq!(published, 8);
        prop_assert!(answered <= 8 && answered + superseded >= 8, "{} {}", answered, superseded);
    }
}
