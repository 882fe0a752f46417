//! Deadlines, expiry and the replacement of states.

mod world;

use bumpless_base::{Counter, Duration, LinkId};
use bumpless_transfer::*;
use bumpless_wire::{DataHeader, WireVersion};
use world::*;

fn fates(world: &World) -> Vec<SenderEvent> {
    world.events.iter().map(|&(_, event)| event).collect()
}

#[test]
fn a_state_that_waits_is_replaced_and_one_under_way_is_finished() {
    let mut world = Plan::links(1).build();
    world.publish(0, &state(0, 100_000));
    world.run(us(100));
    assert_eq!(world.publish(0, &state(1, 100_000)).superseded, None);
    world.run(us(100));
    assert_eq!(world.publish(0, &state(2, 100_000)).superseded, Some(1));
    world.run(ms(10));
    assert!(matches!(
        fates(&world)[..],
        [
            SenderEvent::Safe {
                ticket: 0,
                cycle: 1,
                ..
            },
            SenderEvent::Safe {
                ticket: 2,
                cycle: 2,
                ..
            }
        ]
    ));
    assert_eq!(world.read(0).unwrap(), (2, state(2, 100_000)));
    assert_eq!(world.sent_count(Counter::StatesPublished), 3);
    assert_eq!(world.sent_count(Counter::StatesSuperseded), 1);
}

fn kept() -> World {
    let kept = Plan::links(1).with(|p| p.channels[0].unsent = Unsent::Keep);
    kept.build()
}

#[test]
fn what_is_kept_is_sent_in_order_behind_a_state_under_way() {
    let mut world = kept();
    for ticket in 0..3 {
        let published = world.publish(0, &state(ticket, 100_000));
        assert_eq!(published.superseded, None);
        world.run(us(100));
    }
    world.run(ms(10));
    let safe = |(at, event): (usize, &SenderEvent)| {
        matches!(*event, SenderEvent::Safe { ticket, cycle, .. }
            if (ticket, cycle) == (at as u64, at as u32 + 1))
    };
    let fates = fates(&world);
    assert!(
        fates.len() == 3 && fates.iter().enumerate().all(safe),
        "{fates:?}"
    );
    assert_eq!(world.read(0).unwrap(), (3, state(2, 100_000)));
    assert_eq!(world.sent_count(Counter::StatesSuperseded), 0);
}

#[test]
fn what_is_kept_has_its_own_deadline_and_is_answered_once() {
    let mut world = kept();
    world.paths[0].blocked = true;
    for ticket in 0..5 {
        world.publish(0, &state(ticket, 10_000));
        world.run(ms(20));
    }
    // Two wait behind the first one, which was taken over: the last of them hands its deadline on.
    world.run(ms(30));
    let fate = |event: &SenderEvent| match *event {
        SenderEvent::Failed { ticket, .. } => (ticket, "failed"),
        SenderEvent::Superseded { ticket, .. } => (ticket, "superseded"),
        SenderEvent::Safe { ticket, .. } => (ticket, "safe"),
    };
    let told = |world: &World| fates(world).iter().map(fate).collect::<Vec<_>>();
    assert_eq!(told(&world), [(0, "failed"), (1, "failed")]);
    world.paths[0].blocked = false;
    world.run(ms(5));
    assert_eq!(told(&world)[2..], [(4, "safe")]);
    assert_eq!(world.sent_count(Counter::StatesPublished), 5);
    assert_eq!(world.sent_count(Counter::StatesSuperseded), 2);
}

#[test]
fn a_state_taken_over_but_not_begun_is_replaced_and_hands_on_its_deadline() {
    let mut world = Plan::links(1).build();
    world.paths[0].blocked = true;
    world.publish(0, &state(0, 100_000));
    world.run(ms(60));
    world.publish(0, &state(1, 100_000));
    world.run(ms(30));
    world.publish(0, &state(2, 100_000));
    world.run(ms(9));
    assert!(matches!(
        fates(&world)[..],
        [
            SenderEvent::Superseded { ticket: 0, .. },
            SenderEvent::Superseded { ticket: 1, .. }
        ]
    ));
    world.run(ms(2));
    assert!(matches!(
        fates(&world)[2..],
        [SenderEvent::Failed {
            ticket: 2,
            cause: FailureCause::DeadlineUnreachable,
            ..
        }]
    ));
}

#[test]
fn what_cannot_be_in_time_is_not_begun() {
    // 1 MB at 50 Mbit/s takes 170 ms.
    let mut world = Plan::links(2)
        .with(|p| {
            p.paths
                .iter_mut()
                .for_each(|path| path.bandwidth = 50_000_000)
        })
        .build();
    assert!(world.transfer(&state(0, 1_000_000)).is_none());
    assert!(world.sent.is_empty());
    // Together, the two links make it.
    let mut world = Plan::links(2)
        .with(|p| {
            p.paths
                .iter_mut()
                .for_each(|path| path.bandwidth = 50_000_000);
            p.channels[0].distribution = Distribution::Spread;
        })
        .build();
    assert!(world.transfer(&state(0, 1_000_000)).is_some());
}

#[test]
fn a_transfer_is_given_up_as_soon_as_its_losses_no_longer_fit() {
    // 1 MB takes 85 ms of 100 ms; the last third is lost at first.
    let mut world = Plan::links(1)
        .with(|p| p.paths[0].bandwidth = 100_000_000)
        .build();
    world.lose = Box::new(|sent| sent.number >= 600);
    let published = world.now;
    assert!(world.transfer(&state(0, 1_000_000)).is_none());
    let (at, event) = world.events[0];
    assert!(matches!(
        event,
        SenderEvent::Failed {
            cause: FailureCause::DeadlineUnreachable,
            ..
        }
    ));
    assert!(at <= published + ms(100) + us(20));
    assert_eq!(world.sender.in_flight(PEER), 0);
    world.lose = Box::new(|_| false);
    world.transfer(&state(1, 1_000_000)).unwrap();
}

#[test]
fn the_deadline_ends_a_transfer_that_nobody_answers() {
    for n in [1, 2] {
        let mut world = Plan::links(n).build();
        world.lose = Box::new(|_| true);
        world.publish(0, &state(0, 5_000));
        let published = world.now;
        world.run(ms(150));
        assert_eq!(world.events[0].0, published + ms(100));
        assert_eq!(world.sender.in_flight(PEER), 0);
        assert_eq!(world.sender.poll_timeout(), None);
    }
}

#[test]
fn nothing_is_sent_or_read_after_its_expiry() {
    for version in [WireVersion::V1, WireVersion::V2] {
        let mut world = Plan::links(1)
            .with(|p| {
                p.version = version;
                p.channels[0].expiry = ms(20);
            })
            .build();
        world.paths[0].blocked = true;
        world.publish(0, &state(0, 1000));
        world.run(ms(25));
        assert!(matches!(
            fates(&world)[..],
            [SenderEvent::Failed {
                cause: FailureCause::Expired,
                ..
            }]
        ));
        // With less than the wire's unit left, the stamp would be zero.
        let unit = if version == WireVersion::V1 {
            ms(1)
        } else {
            us(1)
        };
        world.publish(0, &state(0, 1000));
        world.run(ms(20) - unit + Duration::from_nanos(1));
        world.paths[0].blocked = false;
        world.run(Duration::from_nanos(1));
        assert!(world.sent.is_empty());
        assert_eq!(world.sent_count(Counter::StatesFailed), 2);
        let published = world.now;
        world.transfer(&state(1, 50_000)).unwrap();
        let expires = world.subscribers[0].read(world.now).unwrap().expires_at();
        // The transit time is all that the receiver cannot know.
        assert!(expires <= published + ms(20) + us(60));
        assert!(expires + unit + us(550) >= published + ms(20));
        assert_eq!(world.receiver.fresh_until(ChannelPlace(0)), Some(expires));
        world.run_until(expires.before(Duration::from_nanos(1)));
        assert!(world.read(0).is_some());
        world.run(Duration::from_nanos(1));
        assert!(world.read(0).is_none());
    }
}

/// A packet of a state of three, straight into the receiver.
fn take(world: &mut World, sequence: u32, expiry: Duration) {
    let header = DataHeader {
        version: WireVersion::V2,
        tag: TAG,
        channel: id(0),
        link: LinkId(0),
        retransmission: false,
        short: false,
        cycle: 1,
        sequence,
        total_size: 3000,
        expiry,
        force_ack: None,
    };
    world
        .receiver
        .handle_data(PEER, LinkId(0), &header, &[0; 1000], world.now);
}

#[test]
fn the_shortest_expiry_of_a_cycle_counts_whichever_packet_brings_it() {
    for stamps in [[5, 50, 50], [50, 5, 50], [50, 50, 5]] {
        let mut world = Plan::links(1).build();
        for (sequence, stamp) in (0..).zip(stamps) {
            take(&mut world, sequence, ms(stamp));
        }
        assert_eq!(
            world.receiver.fresh_until(ChannelPlace(0)),
            Some(world.now + ms(5))
        );
    }
}

#[test]
fn a_packet_that_completes_an_expired_state_delivers_nothing() {
    let mut world = Plan::links(1).build();
    take(&mut world, 0, ms(5));
    take(&mut world, 1, ms(5));
    world.now += ms(5);
    take(&mut world, 2, ms(5));
    assert_eq!(world.receiver.poll_event(), None);
    assert_eq!(world.received_count(Counter::StatesDelivered), 0);
    assert_eq!(world.received_count(Counter::StatesAbandoned), 1);
}

#[test]
fn a_state_that_expires_before_it_is_whole_is_never_delivered() {
    let mut world = Plan::links(1)
        .with(|p| p.channels[0].expiry = ms(20))
        .build();
    world.lose = Box::new(|sent| sent.header.sequence == 7);
    world.publish(0, &state(0, 10_000));
    world.run(ms(40));
    assert_eq!(world.received_count(Counter::StatesAbandoned), 1);
    assert!(world.received.is_empty());
    world.lose = Box::new(|_| false);
    world.transfer(&state(1, 10_000)).unwrap();
    assert_eq!(world.read(0).unwrap().1, state(1, 10_000));
}

#[test]
fn a_missing_update_is_reported_once_until_the_next() {
    let mut world = Plan::links(1)
        .with(|p| p.channels[0].expect_within = ms(30))
        .build();
    world.run(ms(100));
    assert!(world.received.is_empty(), "nothing has come yet");
    for _ in 0..3 {
        world.received.clear();
        world.transfer(&state(0, 1000)).unwrap();
        world.run(ms(100));
        let [
            (came, ReceiverEvent::Updated { .. }),
            (
                late,
                ReceiverEvent::Overdue {
                    channel: ChannelPlace(0),
                },
            ),
        ] = world.received[..]
        else {
            panic!("{:?}", world.received);
        };
        assert_eq!(late, came + ms(30));
    }
    assert_eq!(world.received_count(Counter::StatesOverdue), 3);
}

#[test]
fn a_view_that_is_kept_delays_states_but_loses_none_for_good() {
    let mut world = Plan::links(1).build();
    world.transfer(&state(0, 10_000)).unwrap();
    let mut subscriber = world.subscribers.remove(0);
    let view = subscriber.read(world.now).unwrap();
    world.transfer(&state(1, 10_000)).unwrap();
    let ticket = world.publish(0, &state(2, 10_000)).ticket;
    world.run(ms(5));
    assert!(world.received_count(Counter::DiscardNoBuffer) > 0);
    assert_eq!(view.data(), &*state(0, 10_000));
    drop(view);
    assert_eq!(
        subscriber.read(world.now).unwrap().data(),
        &*state(1, 10_000)
    );
    world.fate(ticket).unwrap();
    assert_eq!(
        subscriber.read(world.now).unwrap().data(),
        &*state(2, 10_000)
    );
}

#[test]
fn a_channel_is_overdue_by_the_time_that_was_set_last() {
    let mut world = roomy()
        .with(|p| p.channels[0].expect_within = ms(10))
        .build();
    let overdue_after = |world: &mut World, set: &[(u64, Duration)]| {
        world.transfer(&state(0, 800)).unwrap();
        let whole = world.received.last().unwrap().0;
        world.received.clear();
        for &(wait, expect_within) in set {
            world.run(ms(wait));
            world
                .receiver
                .set_expect_within(ChannelPlace(0), expect_within);
        }
        world.run(ms(60));
        let told: Vec<_> = world
            .received
            .iter()
            .map(|&(at, _)| at.since(whole))
            .collect();
        told
    };
    assert_eq!(overdue_after(&mut world, &[]), [ms(10)]);
    assert_eq!(overdue_after(&mut world, &[(5, ms(30))]), [ms(30)]);
    assert_eq!(
        overdue_after(&mut world, &[(5, ms(20)), (5, ms(40))]),
        [ms(40)]
    );
    // Told already: from the next state on.
    assert_eq!(overdue_after(&mut world, &[(45, ms(50))]), [ms(40)]);
    assert_eq!(overdue_after(&mut world, &[(5, Duration::MAX)]), []);
    assert_eq!(world.receiver.poll_timeout(), None);
    assert_eq!(overdue_after(&mut world, &[(5, ms(20))]), []);
    assert_eq!(overdue_after(&mut world, &[]), [ms(20)]);
}
