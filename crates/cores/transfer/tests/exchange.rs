//! Channels that come and go while others run.

mod world;

use bumpless_base::{Counter, Duration, LinkId};
use bumpless_transfer::*;
use bumpless_wire::{MAX_ACK_LEN, Packet, WireVersion, parse};
use world::*;

/// Puts a channel in a place of the receiver and gives its subscriber.
fn receive(world: &mut World, place: usize, plan: ChannelPlan, number: usize) -> Subscriber {
    let setup = plan.receiver(id(number));
    let (replacement, subscriber) = world
        .receiver
        .factory()
        .prepare(ChannelPlace(place), &setup)
        .unwrap();
    world
        .receiver
        .exchange(ChannelPlace(place), replacement, world.now)
        .unwrap();
    subscriber
}

/// Puts a channel in a place of the sender and gives its publisher.
fn send(world: &mut World, place: usize, plan: ChannelPlan, number: usize) -> Publisher {
    let setup = plan.sender(id(number));
    let (replacement, publisher) = world
        .sender
        .factory()
        .prepare(ChannelPlace(place), &setup)
        .unwrap();
    world
        .sender
        .exchange(ChannelPlace(place), replacement, world.now)
        .unwrap();
    publisher
}

fn publish(publisher: &mut Publisher, world: &World, bytes: &[u8]) -> u64 {
    let fill = |buffer: &mut [u8]| {
        buffer[..bytes.len()].copy_from_slice(bytes);
        bytes.len()
    };
    publisher.publish(world.now, fill).ticket
}

fn failed(ticket: u64) -> SenderEvent {
    SenderEvent::Failed {
        channel: ChannelPlace(1),
        ticket,
        cause: FailureCause::Withdrawn,
    }
}

fn events(world: &World) -> Vec<SenderEvent> {
    world.events.iter().map(|&(_, event)| event).collect()
}

#[test]
fn a_vacant_place_sends_nothing_and_wants_nothing() {
    let mut world = roomy().with(|p| p.channels.clear()).build();
    world.run(ms(10));
    assert_eq!(world.sender.poll_timeout(), None);
    assert_eq!(world.receiver.poll_timeout(), None);
    assert_eq!(world.sender.last_cycle(ChannelPlace(0)), None);
    world.sender.set_last_cycle(ChannelPlace(0), 7);
    world.receiver.set_expect_within(ChannelPlace(0), ms(1));
    assert_eq!(world.receiver.fresh_until(ChannelPlace(0)), None);
    world.run(ms(10));
    assert!(world.sent.is_empty() && world.acks == 0 && world.received.is_empty());
}

#[test]
fn a_channel_that_comes_in_during_a_session_takes_part_in_it_at_once() {
    for version in [WireVersion::V1, WireVersion::V2] {
        let mut world = roomy().with(|p| p.version = version).build();
        world.transfer(&state(0, ROOMY_SIZE)).unwrap();
        let mut subscriber = receive(&mut world, 2, two_links(), 5);
        let mut publisher = send(&mut world, 1, two_links(), 5);
        publish(&mut publisher, &world, &state(1, ROOMY_SIZE));
        world.run(ms(2));
        let view = subscriber.read(world.now).unwrap();
        assert_eq!((view.cycle(), view.data()), (1, &*state(1, ROOMY_SIZE)));
        assert_eq!(world.received_count(Counter::DiscardUnknownChannel), 0);
    }
}

#[test]
fn what_was_published_before_the_channel_was_in_its_place_is_sent_then() {
    let mut world = roomy().build();
    let setup = two_links();
    let mut subscriber = receive(&mut world, 1, setup, 5);
    let factory = world.sender.factory();
    let (replacement, mut publisher) = factory
        .prepare(ChannelPlace(1), &setup.sender(id(5)))
        .unwrap();
    publish(&mut publisher, &world, &state(1, ROOMY_SIZE));
    world.run(ms(1));
    assert!(world.sent.is_empty());
    world
        .sender
        .exchange(ChannelPlace(1), replacement, world.now)
        .unwrap();
    world.run(ms(1));
    assert_eq!(
        subscriber.read(world.now).unwrap().data(),
        &*state(1, ROOMY_SIZE)
    );
}

#[test]
fn the_open_transfer_and_the_state_behind_it_fail_as_withdrawn() {
    let mut world = roomy().build();
    let mut publisher = send(&mut world, 1, two_links(), 5);
    let first = publish(&mut publisher, &world, &state(1, ROOMY_SIZE));
    world.run(us(50));
    assert!(world.sender.in_flight(PEER) > 0);
    let second = publish(&mut publisher, &world, &state(2, ROOMY_SIZE));
    let vacant = world.sender.factory().vacant();
    let left = world
        .sender
        .exchange(ChannelPlace(1), vacant, world.now)
        .unwrap();
    assert_eq!(left.channel(), Some(&two_links().sender(id(5))));
    assert_eq!(world.sender.in_flight(PEER), 0);
    assert_eq!(world.sender.poll_timeout(), None);
    // Nobody takes what it publishes, while it is kept and afterwards.
    publish(&mut publisher, &world, &state(3, ROOMY_SIZE));
    let sent = world.sent.len();
    world.run(ms(1));
    drop(left);
    publish(&mut publisher, &world, &state(4, ROOMY_SIZE));
    world.run(ms(200));
    assert_eq!(events(&world), [failed(first), failed(second)]);
    assert_eq!(world.sent.len(), sent);
    assert_eq!(world.sent_count(Counter::StatesFailed), 2);
}

#[test]
fn a_channel_that_comes_back_inherits_no_deadline_from_before() {
    let mut world = roomy().build();
    let mut publisher = send(&mut world, 1, two_links(), 5);
    publish(&mut publisher, &world, &state(1, 800));
    world.sender.handle_published(world.now);
    publish(&mut publisher, &world, &state(2, 800));
    // The sender gives the first up for the second, which its publisher has taken back.
    publisher.publish(world.now, |_| {
        world.sender.handle_published(world.now);
        800
    });
    let vacant = world.sender.factory().vacant();
    let left = world
        .sender
        .exchange(ChannelPlace(1), vacant, world.now)
        .unwrap();
    world.run(ms(200));
    let _subscriber = receive(&mut world, 1, two_links(), 5);
    world
        .sender
        .exchange(ChannelPlace(1), left, world.now)
        .unwrap();
    publish(&mut publisher, &world, &state(4, 800));
    world.run(ms(1));
    assert_eq!(world.sent_count(Counter::StatesSafe), 1);
}

#[test]
fn marks_of_a_publisher_that_has_left_do_no_harm_to_its_successor() {
    let mut world = roomy().build();
    let mut subscriber = receive(&mut world, 1, two_links(), 6);
    let mut old = send(&mut world, 1, two_links(), 5);
    let mut publisher = send(&mut world, 1, two_links(), 6);
    for cycle in 1..20 {
        publish(&mut old, &world, &state(100 + cycle, ROOMY_SIZE));
        publish(&mut publisher, &world, &state(cycle, ROOMY_SIZE));
        for _ in 0..20 {
            world.run(us(100));
            publish(&mut old, &world, &state(100 + cycle, ROOMY_SIZE));
        }
        let view = subscriber.read(world.now).unwrap();
        assert_eq!(
            (view.cycle(), view.data()),
            (cycle as u32, &*state(cycle, ROOMY_SIZE))
        );
    }
    assert_eq!(world.sent_count(Counter::StatesSafe), 19);
    assert_eq!(world.sent_count(Counter::StatesFailed), 0);
}

#[test]
fn cycles_of_an_identity_go_on_whichever_place_it_comes_back_to() {
    for version in [WireVersion::V1, WireVersion::V2] {
        let mut world = roomy().with(|p| p.version = version).build();
        let mut subscriber = receive(&mut world, 1, two_links(), 5);
        let mut publisher = send(&mut world, 1, two_links(), 5);
        for cycle in 0..3 {
            publish(&mut publisher, &world, &state(cycle, ROOMY_SIZE));
            world.run(ms(2));
        }
        assert_eq!(world.sender.last_cycle(ChannelPlace(1)), Some(3));
        let _other = send(&mut world, 1, two_links(), 6);
        let mut publisher = send(&mut world, 2, two_links(), 5);
        publish(&mut publisher, &world, &state(7, ROOMY_SIZE));
        world.run(ms(2));
        let view = subscriber.read(world.now).unwrap();
        assert_eq!((view.cycle(), view.data()), (4, &*state(7, ROOMY_SIZE)));
    }
}

/// The datagram of a sent packet that carried a whole state.
fn datagram(sent: &Sent, state: &[u8]) -> Vec<u8> {
    let mut header = [0; 30];
    let len = sent.header.encode(&mut header);
    [&header[..len], state].concat()
}

#[test]
fn who_succeeds_a_channel_of_the_same_identity_takes_newer_cycles_only() {
    let mut world = roomy().build();
    let mut old = receive(&mut world, 1, two_links(), 5);
    let mut publisher = send(&mut world, 1, two_links(), 5);
    publish(&mut publisher, &world, &state(1, 800));
    world.run(ms(2));
    let late = datagram(world.sent.last().unwrap(), &state(1, 800));
    let mut subscriber = receive(&mut world, 1, two_links(), 5);
    world.inject(0, &late, true);
    assert!(subscriber.read(world.now).is_none());
    publish(&mut publisher, &world, &state(2, 800));
    world.run(ms(2));
    assert_eq!(subscriber.read(world.now).unwrap().data(), &*state(2, 800));
    assert_eq!(old.read(world.now).unwrap().data(), &*state(1, 800));
    // Another session: any number is the first.
    world.set_session(Some(TAG + 1));
    world.sender.set_last_cycle(ChannelPlace(1), 0);
    publish(&mut publisher, &world, &state(3, 800));
    world.run(ms(2));
    assert_eq!(subscriber.read(world.now).unwrap().data(), &*state(3, 800));
}

#[test]
fn a_channel_that_comes_back_takes_only_newer_cycles_of_its_session() {
    for tag in [TAG, TAG + 1] {
        let mut world = roomy().build();
        let mut subscriber = receive(&mut world, 1, two_links(), 5);
        let mut publisher = send(&mut world, 1, two_links(), 5);
        for cycle in 1..3 {
            publish(&mut publisher, &world, &state(cycle, 800));
            world.run(ms(2));
        }
        let first = world.sent[0];
        assert_eq!(first.header.cycle, 1);
        let vacant = world.receiver.factory().vacant();
        let left = world
            .receiver
            .exchange(ChannelPlace(1), vacant, world.now)
            .unwrap();
        assert_eq!(left.channel().map(|c| c.id), Some(id(5)));
        world.set_session(Some(tag));
        world
            .receiver
            .exchange(ChannelPlace(1), left, world.now)
            .unwrap();
        let mut packet = first;
        packet.header.tag = tag;
        world.inject(0, &datagram(&packet, &state(1, 800)), true);
        let newest = if tag == TAG { 2 } else { 1 };
        assert_eq!(subscriber.read(world.now).unwrap().cycle(), newest);
    }
}

/// How many acknowledgements the receiver owes.
fn pending(world: &mut World) -> usize {
    let mut out = [0; MAX_ACK_LEN];
    std::iter::from_fn(|| world.receiver.poll_ack(&mut out)).count()
}

#[test]
fn what_the_old_channel_owed_and_had_to_tell_is_not_asked_of_the_new_one() {
    let mut world = roomy().build();
    let _old = receive(
        &mut world,
        1,
        ChannelPlan {
            expect_within: ms(1),
            ..two_links()
        },
        5,
    );
    let mut publisher = send(&mut world, 1, two_links(), 5);
    publish(&mut publisher, &world, &state(1, 800));
    world.run(ms(3));
    assert_eq!(world.received.len(), 2, "updated and overdue");
    // Packets of the next state, whole and in part, of which nothing has been collected.
    let mut packet = *world.sent.last().unwrap();
    for (cycle, total) in [(2, 800), (3, 1600)] {
        packet.header.cycle = cycle;
        packet.header.total_size = total;
        let bytes = datagram(&packet, &state(1, total.min(1000) as usize));
        let Ok(Packet::Data { header, payload }) = parse(&bytes) else {
            panic!("not a data packet");
        };
        let link = LinkId(0);
        world
            .receiver
            .handle_data(PEER, link, &header, payload, world.now);
    }
    assert!(world.receiver.poll_timeout().is_some());
    let mut subscriber = receive(&mut world, 1, two_links(), 5);
    assert_eq!(world.receiver.poll_event(), None);
    assert_eq!(world.receiver.poll_timeout(), None);
    assert_eq!(world.receiver.fresh_until(ChannelPlace(1)), None);
    assert_eq!(pending(&mut world), 0);
    assert!(subscriber.read(world.now).is_none());
    assert_eq!(world.received_count(Counter::StatesAbandoned), 1);
}

#[test]
fn a_channel_that_only_the_sender_has_blocks_others_until_its_deadline() {
    let mut world = roomy().with(|p| p.in_flight_max = 8).build();
    let hasty = ChannelPlan {
        deadline: ms(5),
        ..two_links()
    };
    let mut publisher = send(&mut world, 1, hasty, 5);
    publish(&mut publisher, &world, &state(1, ROOMY_SIZE));
    world.run(us(300));
    let took = world.transfer(&state(2, ROOMY_SIZE)).unwrap();
    assert!(ms(4) < took && took < ms(7), "{took}");
    // Who is taken out at the sender holds nobody up.
    publish(&mut publisher, &world, &state(3, ROOMY_SIZE));
    world.run(us(300));
    assert_eq!(world.sender.in_flight(PEER), 8);
    let vacant = world.sender.factory().vacant();
    drop(
        world
            .sender
            .exchange(ChannelPlace(1), vacant, world.now)
            .unwrap(),
    );
    let took = world.transfer(&state(4, ROOMY_SIZE)).unwrap();
    assert!(took < ms(2), "{took}");
    assert!(world.received_count(Counter::DiscardUnknownChannel) > 0);
}

#[test]
fn a_publishers_times_hold_for_what_it_publishes_from_then_on() {
    let mut world = roomy().build();
    let mut publisher = send(
        &mut world,
        1,
        ChannelPlan {
            deadline: ms(5),
            ..two_links()
        },
        5,
    );
    // Nobody receives it, so each fails at its deadline.
    let first = publish(&mut publisher, &world, &state(1, 800));
    publisher.set_times(ms(20), ms(30)).unwrap();
    let from = world.now;
    world.run(ms(5));
    let second = publish(&mut publisher, &world, &state(2, 800));
    world.run(ms(30));
    let at: Vec<_> = world.events.iter().map(|&(at, _)| at.since(from)).collect();
    assert_eq!(at, [ms(5), ms(25)]);
    assert_eq!((first, second), (0, 1));
    let least = us(1);
    let refused = SetupError::TooShort {
        channel: ChannelPlace(1),
        least,
    };
    assert_eq!(publisher.set_times(Duration::ZERO, ms(1)), Err(refused));
    assert_eq!(publisher.set_times(ms(1), Duration::ZERO), Err(refused));
    publish(&mut publisher, &world, &state(3, 800));
    world.run(ms(30));
    assert_eq!(world.events.last().unwrap().0.since(from), ms(35 + 20));
}
