//! Losses of the kinds that the first paper names, of data and of acknowledgements.

mod world;

use bumpless_base::{Counter, Duration, LinkSet};
use bumpless_transfer::Distribution;
use bumpless_wire::WireVersion;
use world::*;

const STATE: usize = 100_000;

/// Transfers one state with packets lost for the first time by `lose`; returns how much longer it
/// took than without loss, and the world.
fn with_losses(
    plan: Plan,
    lose: impl Fn(u32, usize) -> bool + 'static,
) -> (Duration, Duration, World) {
    let mut clean = plan.clone().build();
    clean.transfer(&state(0, STATE)).unwrap();
    let floor = clean.transfer(&state(1, STATE)).unwrap();
    let mut world = plan.build();
    world.transfer(&state(0, STATE)).unwrap();
    world.lose = Box::new(move |sent| {
        sent.header.cycle == 2 && !sent.retransmission && lose(sent.header.sequence, sent.link)
    });
    let took = world.transfer(&state(1, STATE)).unwrap();
    assert_eq!(world.read(0).unwrap().1, state(1, STATE));
    (floor, took, world)
}

#[test]
fn without_loss_nothing_is_sent_twice() {
    for version in [WireVersion::V1, WireVersion::V2] {
        for n in [1, 2, 3] {
            let mut world = Plan::links(n).with(|p| p.version = version).build();
            for i in 0..10 {
                world.transfer(&state(i, STATE)).unwrap();
                assert_eq!(world.read(0).unwrap().1, state(i, STATE));
                world.run(ms(1));
            }
            assert_eq!(world.sent_count(Counter::PacketsRetransmitted), 0);
            assert_eq!(world.sent_count(Counter::PacketsProbe), 0);
            assert_eq!(world.sent.len(), 1000 * n);
        }
    }
}

#[test]
fn a_lost_first_packet_costs_a_round_trip_and_one_retransmission() {
    let (floor, took, world) = with_losses(Plan::links(1), |s, _| s == 0);
    assert!(took <= floor + us(30), "{floor} {took}");
    assert_eq!(world.sent_count(Counter::PacketsRetransmitted), 1);
}

#[test]
fn a_lost_middle_packet_is_sent_again_before_the_end() {
    let (floor, took, world) = with_losses(Plan::links(1), |s, _| s == 50);
    assert!(took <= floor + us(30), "{floor} {took}");
    assert_eq!(world.sent_count(Counter::PacketsRetransmitted), 1);
}

#[test]
fn a_lost_last_packet_is_probed_within_the_round_trip() {
    for n in [1, 2] {
        let (floor, took, world) = with_losses(Plan::links(n), |s, _| s == 99);
        assert!(took <= floor + us(400), "{floor} {took}");
        assert!(world.sent_count(Counter::PacketsProbe) <= n as u64);
    }
}

#[test]
fn of_packets_that_share_links_only_those_are_sent_again_that_are_lost() {
    // The last packet goes on the fast link and is there before those of the slow one, of which the last falls.
    for delay in [100, 200, 400] {
        let mut world = Plan::links(2)
            .with(|p| {
                p.channels[0].distribution = Distribution::Spread;
                p.paths[1].delay = us(delay);
            })
            .build();
        for i in 0..3 {
            world.transfer(&state(i, 10_000)).unwrap();
        }
        let cycle = world.sent.last().unwrap().header.cycle;
        let last = world
            .sent
            .iter()
            .filter(|s| s.header.cycle == cycle && s.link == 1);
        let last = last.map(|s| s.header.sequence).max().unwrap();
        world.lose = Box::new(move |sent| {
            !sent.retransmission && sent.link == 1 && sent.header.sequence == last
        });
        let before = world.sent.len();
        world.transfer(&state(3, 10_000)).unwrap();
        let again: Vec<u32> = world.sent[before..]
            .iter()
            .filter(|sent| sent.number >= before + 10)
            .map(|sent| sent.header.sequence)
            .collect();
        assert!(
            !again.is_empty() && again.iter().all(|&s| s == last),
            "{again:?}"
        );
    }
}

#[test]
fn a_burst_is_sent_again_at_once() {
    for (from, to) in [(0, 10), (40, 50), (89, 99), (90, 100)] {
        let (floor, took, world) = with_losses(Plan::links(1), move |s, _| (from..to).contains(&s));
        assert!(took <= floor + us(700), "{from}: {floor} {took}");
        let again = world.sent_count(Counter::PacketsRetransmitted)
            + world.sent_count(Counter::PacketsProbe);
        assert!(again <= 11, "{from}: {again}");
    }
}

#[test]
fn ten_losses_in_a_row_in_a_state_of_seven_cost_less_than_a_millisecond() {
    const SMALL: usize = 6_500;
    for first in 1..7 {
        let plan = Plan::links(1).with(|p| p.paths[0].delay = us(20));
        let mut clean = plan.clone().build();
        let floor = clean.transfer(&state(0, SMALL)).unwrap();
        let mut world = plan.build();
        // Enough to know the round trip.
        for _ in 0..10 {
            world.transfer(&state(0, SMALL)).unwrap();
        }
        let before = world.sent.len();
        world.lose =
            Box::new(move |sent| (before + first..before + first + 10).contains(&sent.number));
        let took = world.transfer(&state(1, SMALL)).unwrap();
        assert_eq!(world.read(0).unwrap().1, state(1, SMALL));
        assert!(took <= floor + ms(1), "{first}: {floor} {took}");
    }
}

#[test]
fn no_recovery_makes_the_next_one_slower() {
    const SMALL: usize = 7_500;
    for version in [WireVersion::V1, WireVersion::V2] {
        let mut world = Plan::links(1).with(|p| p.version = version).build();
        let mut took = Vec::new();
        for cycle in 0..40 {
            let before = world.sent.len();
            world.lose = Box::new(move |sent| (before + 4..before + 14).contains(&sent.number));
            took.push(world.transfer(&state(cycle, SMALL)).unwrap());
            world.run(ms(1));
        }
        assert!(took[39] <= took[1], "{version:?}: {took:?}");
    }
}

#[test]
fn every_single_loss_is_repaired_in_both_versions_and_distributions() {
    for version in [WireVersion::V1, WireVersion::V2] {
        for distribution in [Distribution::Replicate, Distribution::Spread] {
            for n in [1, 2] {
                for lost in [0, 1, 2, 49, 97, 98, 99] {
                    let plan = Plan::links(n).with(|p| {
                        p.version = version;
                        p.channels[0].distribution = distribution;
                    });
                    let (floor, took, _) = with_losses(plan, move |s, _| s == lost);
                    assert!(
                        took <= floor + us(800),
                        "{version:?} {lost}: {floor} {took}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_packet_is_sent_again_only_if_both_links_lost_it_and_then_at_once() {
    let (floor, took, world) = with_losses(Plan::links(2), |s, _| s == 30);
    assert!(took <= floor + us(30), "{floor} {took}");
    assert_eq!(world.sent_count(Counter::PacketsRetransmitted), 2);
    let (floor, took, world) = with_losses(Plan::links(2), |s, l| s % 2 == l as u32);
    assert!(took <= floor + us(30), "{floor} {took}");
    assert_eq!(world.sent_count(Counter::PacketsRetransmitted), 0);
}

#[test]
fn losses_show_by_order_though_nothing_is_known_of_the_round_trip() {
    for (version, n) in [
        (WireVersion::V1, 1),
        (WireVersion::V2, 1),
        (WireVersion::V2, 2),
    ] {
        let plan = Plan::links(n).with(|p| {
            p.version = version;
            p.first_round_trip = Some(ms(30));
        });
        let floor = plan.clone().build().transfer(&state(0, STATE)).unwrap();
        let mut world = plan.build();
        world.lose =
            Box::new(|s| [3, 50, 51, 90].contains(&s.header.sequence) && !s.retransmission);
        let took = world.transfer(&state(0, STATE)).unwrap();
        assert!(took <= floor + us(100), "{version:?} {n}: {floor} {took}");
        let again = world.sent_count(Counter::PacketsRetransmitted);
        assert_eq!(again, 4 * n as u64);
    }
}

#[test]
fn when_only_time_was_wanting_the_receiver_is_asked_again() {
    // The second link is dead and nobody knows; acknowledgements are rare.
    let mut world = Plan::links(2)
        .with(|p| {
            p.in_flight_max = 10_000;
            p.paths[1].up = false;
        })
        .build();
    world.lose = Box::new(|s| s.link == 0 && s.header.sequence == 10 && !s.retransmission);
    world.transfer(&state(0, 1_000_000)).unwrap();
    let times: Vec<_> = world
        .sent
        .iter()
        .filter(|s| s.link == 0 && s.header.sequence == 10)
        .map(|s| s.at)
        .collect();
    assert_eq!(times.len(), 2);
    assert!(times[1] < times[0] + ms(1));
}

#[test]
fn a_lost_retransmission_is_sent_again() {
    let mut world = Plan::links(1).build();
    world.transfer(&state(0, STATE)).unwrap();
    let mut times = 0;
    world.lose = Box::new(move |sent| {
        let lost = sent.header.sequence == 20 && times < 5;
        times += u32::from(lost);
        lost
    });
    assert!(world.transfer(&state(1, STATE)).unwrap() < ms(3));
    assert_eq!(world.read(0).unwrap().1, state(1, STATE));
}

#[test]
fn lost_acknowledgements_are_asked_for() {
    for n in [1, 2] {
        let mut world = Plan::links(n).build();
        world.transfer(&state(0, STATE)).unwrap();
        let until = world.acks + 3;
        world.lose_ack = Box::new(move |number, _| number < until);
        let took = world.transfer(&state(1, STATE)).unwrap();
        assert!(took < ms(4), "{took}");
        assert!(world.sent_count(Counter::PacketsProbe) <= 4 * n as u64);
        assert_eq!(world.sent_count(Counter::PacketsRetransmitted), 0);
    }
}

#[test]
fn probes_never_become_a_storm() {
    let mut world = Plan::links(2).build();
    world.transfer(&state(0, STATE)).unwrap();
    world.lose_ack = Box::new(|_, _| true);
    assert!(world.transfer(&state(1, 1000)).is_none());
    // 100 ms of silence with the probe timeout doubling up to sixteenfold.
    let probes = world.sent_count(Counter::PacketsProbe);
    assert!((10..160).contains(&probes), "{probes}");
}

#[test]
fn skewed_links_cause_no_retransmission() {
    for distribution in [Distribution::Replicate, Distribution::Spread] {
        let mut world = Plan::links(2)
            .with(|p| {
                p.paths[1].delay = ms(2);
                p.channels[0].distribution = distribution;
            })
            .build();
        for i in 0..20 {
            world.transfer(&state(i, STATE)).unwrap();
            world.run(ms(5));
        }
        assert_eq!(
            world.sent_count(Counter::PacketsRetransmitted),
            0,
            "{distribution:?}"
        );
        assert_eq!(
            world.sent_count(Counter::PacketsProbe),
            0,
            "{distribution:?}"
        );
    }
}

#[test]
fn a_loss_on_the_fast_link_waits_for_the_slow_links_copy() {
    let mut world = Plan::links(2).with(|p| p.paths[1].delay = ms(1)).build();
    for i in 0..5 {
        world.transfer(&state(i, STATE)).unwrap();
        world.run(ms(5));
    }
    world.lose = Box::new(|sent| sent.link == 0 && sent.header.sequence == 10);
    world.transfer(&state(9, STATE)).unwrap();
    assert_eq!(world.sent_count(Counter::PacketsRetransmitted), 0);
}

#[test]
fn a_slow_link_does_not_hold_up_a_fast_one() {
    let plan = Plan::links(2).with(|p| p.paths[1].bandwidth = 10_000_000);
    let (floor, took, _) = with_losses(plan, |s, l| l == 0 && s == 50);
    assert!(floor < ms(2), "{floor}");
    // The slow link would come to packet 50 only after 40 ms.
    assert!(took <= floor + us(300), "{floor} {took}");
}

#[test]
fn a_thousand_gaps_are_closed_though_an_acknowledgement_names_150_blocks() {
    for version in [WireVersion::V1, WireVersion::V2] {
        let mut world = Plan::links(1)
            .with(|p| {
                p.version = version;
                p.in_flight_max = 4000;
                p.channels[0].max_size = 2_001_000;
                p.channels[0].deadline = ms(1000);
            })
            .build();
        world.transfer(&state(0, 1000)).unwrap();
        world.lose = Box::new(|s| s.header.cycle == 2 && s.number < 2002 && s.number % 2 == 0);
        // No acknowledgement before the last packet: all gaps are open at once.
        world.lose_ack = Box::new(|number, _| number < 1000);
        let took = world.transfer(&state(1, 2_001_000)).unwrap();
        assert_eq!(world.read(0).unwrap().1, state(1, 2_001_000));
        assert!(took < ms(60), "{version:?} {took}");
        assert!(world.sent.len() < 2001 + 1000 + 300, "{}", world.sent.len());
    }
}

#[test]
fn random_loss_is_repaired_within_little_more_than_its_share() {
    for (version, n) in [
        (WireVersion::V1, 1),
        (WireVersion::V2, 1),
        (WireVersion::V1, 2),
        (WireVersion::V2, 2),
    ] {
        let mut world = Plan::links(n)
            .with(|p| {
                p.version = version;
                p.channels[0].max_size = 1_000_000;
                for path in &mut p.paths {
                    path.loss = 0.05;
                    path.ack_loss = 0.05;
                }
            })
            .build();
        for i in 0..20 {
            let took = world.transfer(&state(i, 1_000_000)).unwrap();
            assert!(took < ms(13), "{version:?} {n}: {took}");
            assert_eq!(world.read(0).unwrap().1, state(i, 1_000_000));
        }
        let again = world.sent_count(Counter::PacketsRetransmitted);
        let ideal = 20_000.0 * 0.05f64.powi(n as i32) * n as f64;
        assert!(
            (again as f64) < ideal * 1.6 + 20.0,
            "{version:?} {n}: {again}"
        );
    }
}

#[test]
fn a_channel_on_one_of_two_links_stays_on_it() {
    let mut world = Plan::links(2)
        .with(|p| p.channels[0].links = LinkSet::only(bumpless_base::LinkId(1)))
        .build();
    world.transfer(&state(0, STATE)).unwrap();
    assert!(world.sent.iter().all(|sent| sent.link == 1));
}
