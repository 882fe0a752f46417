//! Several links: one that fails costs nothing.

mod world;

use bumpless_base::{Counter, Duration};
use bumpless_transfer::Distribution;
use bumpless_wire::WireVersion;
use world::*;

const STATE: usize = 500_000;

fn floor(plan: &Plan) -> Duration {
    let mut world = plan.clone().build();
    world.transfer(&state(0, STATE)).unwrap();
    world.transfer(&state(1, STATE)).unwrap()
}

#[test]
fn one_dead_link_does_not_stop_the_other() {
    for version in [WireVersion::V1, WireVersion::V2] {
        let plan = Plan::links(2).with(|p| p.version = version);
        let floor = floor(&plan);
        for dead in 0..2 {
            for (told, blocked) in [(false, false), (false, true), (true, false)] {
                let mut world = plan.clone().build();
                world.paths[dead].up = false;
                world.paths[dead].blocked = blocked;
                if told {
                    world.set_healthy(dead as u8, false);
                }
                for i in 0..5 {
                    let took = world.transfer(&state(i, STATE)).unwrap();
                    assert!(
                        took <= floor,
                        "{version:?} {dead} {told} {blocked}: {floor} {took}"
                    );
                    assert_eq!(world.read(0).unwrap().1, state(i, STATE));
                }
                assert_eq!(world.sent_count(Counter::StatesFailed), 0);
                let on_dead = world.sent.iter().filter(|sent| sent.link == dead).count();
                assert_eq!(on_dead > 0, !told && !blocked);
            }
        }
    }
}

#[test]
fn a_link_cut_in_the_middle_of_a_transfer_adds_no_time() {
    let plan = Plan::links(2);
    let floor = floor(&plan);
    for cut in [0, 1] {
        for after in (0..5000).step_by(250) {
            let mut world = plan.clone().build();
            world.transfer(&state(0, STATE)).unwrap();
            let ticket = world.publish(0, &state(1, STATE)).ticket;
            world.run(us(after));
            world.paths[cut].up = false;
            world.paths[cut].blocked = after % 500 == 0;
            let took = world.fate(ticket).unwrap();
            assert!(took <= floor, "{cut} {after}: {floor} {took}");
            assert_eq!(world.read(0).unwrap().1, state(1, STATE));
        }
    }
}

#[test]
fn losses_are_repaired_though_the_other_link_died_unnoticed() {
    for told in [false, true] {
        let mut world = Plan::links(2).with(|p| p.paths[0].loss = 0.05).build();
        world.transfer(&state(0, STATE)).unwrap();
        world.paths[1].up = false;
        if told {
            world.set_healthy(1, false);
        }
        for i in 1..10 {
            let took = world.transfer(&state(i, STATE)).unwrap();
            assert!(took < ms(7), "{told}: {took}");
            assert_eq!(world.read(0).unwrap().1, state(i, STATE));
        }
    }
}

#[test]
fn spread_uses_both_links_at_once() {
    let mut plan = Plan::links(2).with(|p| p.channels[0].distribution = Distribution::Spread);
    let both = floor(&plan);
    plan.paths[1].bandwidth /= 4;
    let uneven = floor(&plan);
    plan.paths.truncate(1);
    let one = floor(&plan);
    assert!(both.as_nanos() * 10 < one.as_nanos() * 6, "{both} {one}");
    assert!(
        uneven.as_nanos() * 10 < one.as_nanos() * 9,
        "{uneven} {one}"
    );
    assert!(both < uneven);
}

#[test]
fn spread_packets_of_a_failed_link_go_on_another() {
    for after in (0..2000).step_by(250) {
        let mut world = Plan::links(2)
            .with(|p| p.channels[0].distribution = Distribution::Spread)
            .build();
        world.transfer(&state(0, STATE)).unwrap();
        let ticket = world.publish(0, &state(1, STATE)).ticket;
        world.run(us(after));
        world.paths[0].up = false;
        world.run(us(300));
        world.set_healthy(0, false);
        let took = world.fate(ticket).unwrap();
        assert!(took < ms(5), "{after}: {took}");
        assert_eq!(world.read(0).unwrap().1, state(1, STATE));
        world.paths[0].up = true;
        world.set_healthy(0, true);
        world.transfer(&state(2, STATE)).unwrap();
        assert!(world.sent.iter().rev().take(100).any(|sent| sent.link == 0));
    }
}

#[test]
fn spread_gets_through_a_dead_link_that_nobody_has_reported() {
    let mut world = Plan::links(2)
        .with(|p| p.channels[0].distribution = Distribution::Spread)
        .build();
    world.paths[1].up = false;
    let took = world.transfer(&state(1, 100_000)).unwrap();
    assert!(took < ms(20), "{took}");
}

#[test]
fn when_no_link_is_healthy_all_are_tried() {
    for distribution in [Distribution::Replicate, Distribution::Spread] {
        let mut world = Plan::links(2)
            .with(|p| p.channels[0].distribution = distribution)
            .build();
        world.set_healthy(0, false);
        world.set_healthy(1, false);
        world.transfer(&state(1, STATE)).unwrap();
        assert_eq!(world.read(0).unwrap().1, state(1, STATE));
    }
}

#[test]
fn links_that_flap_at_every_moment_do_no_harm() {
    for distribution in [Distribution::Replicate, Distribution::Spread] {
        let mut world = Plan::links(3)
            .with(|p| {
                p.channels[0].distribution = distribution;
                p.channels[0].deadline = ms(1000);
            })
            .build();
        for round in 0..20 {
            let ticket = world.publish(0, &state(round, STATE)).ticket;
            for _ in 0..30 {
                let link = world.random.below(2) as usize;
                let up = world.random.chance(0.5);
                world.paths[link].up = up;
                world.set_healthy(link as u8, up);
                world.run(us(150));
            }
            world.fate(ticket).unwrap();
            assert_eq!(world.read(0).unwrap().1, state(round, STATE));
        }
    }
}
