//! Sizes, wrap-around, limits, and who goes first.

mod world;

use bumpless_base::{Counter, Duration, Instant, LinkId, LinkSet, PeerId};
use bumpless_transfer::*;
use bumpless_wire::WireVersion;
use world::*;

#[test]
fn states_of_every_size_move_whole_and_may_change_size_each_cycle() {
    for version in [WireVersion::V1, WireVersion::V2] {
        let mut world = Plan::links(2)
            .with(|p| {
                p.version = version;
                p.channels[0].max_size = 1 << 20;
            })
            .build();
        for (i, size) in [
            0,
            1,
            999,
            1000,
            1001,
            1 << 20,
            0,
            2000,
            1,
            63_999,
            64_000,
            64_001,
        ]
        .into_iter()
        .enumerate()
        {
            world.transfer(&state(i as u64, size)).unwrap();
            assert_eq!(world.read(0).unwrap().1, state(i as u64, size), "{size}");
        }
    }
}

#[test]
fn large_states_move_up_to_the_limit_of_each_version() {
    for (version, size) in [(WireVersion::V2, 64 << 20), (WireVersion::V1, 65_536_000)] {
        let mut world = Plan::links(1)
            .with(|p| {
                p.version = version;
                p.paths[0].bandwidth = 10_000_000_000;
                p.paths[0].loss = 0.001;
                p.channels[0].max_size = size;
                p.channels[0].deadline = ms(3000);
                p.channels[0].expiry = ms(30_000);
            })
            .build();
        let state = state(1, size as usize);
        world.transfer(&state).unwrap();
        assert!(world.read(0).unwrap().1 == state);
    }
}

const LINK: LinkParameters = LinkParameters {
    bandwidth: 0,
    frame_overhead: 0,
    initial_round_trip: Duration::from_micros(100),
};
const OLD_PEER: SenderPeer = SenderPeer {
    version: WireVersion::V1,
    payload_size: 1000,
    in_flight_max: 10,
};
/// The largest state of version 1.
const LARGEST: u32 = 65_536_000;

fn channel() -> SenderChannel {
    SenderChannel {
        id: id(0),
        peer: PEER,
        links: LinkSet::first(1),
        distribution: Distribution::Replicate,
        unsent: Unsent::Replace,
        max_size: LARGEST,
        deadline: ms(1),
        expiry: ms(1),
    }
}

fn refused(links: &[LinkParameters], peers: &[SenderPeer], all: &[SenderChannel]) -> SetupError {
    Sender::new(links, peers, all).map(|_| ()).unwrap_err()
}

#[test]
fn channels_that_cannot_work_are_refused_with_the_reason() {
    let channel = channel();
    assert!(Sender::new(&[LINK], &[OLD_PEER], &[channel]).is_ok());
    let only = |channel: SenderChannel| refused(&[LINK], &[OLD_PEER], &[channel]);
    let place = ChannelPlace;
    let larger = SenderChannel {
        max_size: LARGEST + 1,
        ..channel
    };
    let too_large = refused(&[LINK], &[OLD_PEER], &[channel, larger]);
    let told = SetupError::TooLarge {
        channel: place(1),
        limit: LARGEST,
    };
    assert_eq!(too_large, told);
    assert!(too_large.to_string().contains("65536000 bytes"));
    let twice = refused(&[LINK], &[OLD_PEER], &[channel, channel]);
    assert_eq!(twice, SetupError::DuplicateId { channel: place(1) });
    let nobody = refused(&[LINK], &[], &[channel]);
    assert_eq!(nobody, SetupError::UnknownPeer { channel: place(0) });
    for links in [LinkSet::first(2), LinkSet::EMPTY] {
        let elsewhere = SenderChannel { links, ..channel };
        let told = SetupError::WrongLinks { channel: place(0) };
        assert_eq!(only(elsewhere), told);
    }
    let brief = SenderChannel {
        expiry: us(999),
        ..channel
    };
    let told = SetupError::TooShort {
        channel: place(0),
        least: ms(1),
    };
    assert_eq!(only(brief), told);
}

#[test]
fn peers_and_links_that_cannot_work_are_refused_with_the_reason() {
    let only = |peer: SenderPeer| refused(&[LINK], &[peer], &[]);
    let empty = SenderPeer {
        payload_size: 0,
        ..OLD_PEER
    };
    assert_eq!(only(empty), SetupError::NoPayload { peer: 0 });
    let closed = SenderPeer {
        in_flight_max: 0,
        ..OLD_PEER
    };
    assert_eq!(only(closed), SetupError::NoWindow { peer: 0 });
    let many = refused(&[LINK; 9], &[], &[]);
    assert_eq!(many, SetupError::TooManyLinks { given: 9 });
}

#[test]
fn a_lower_in_flight_limit_counts_from_when_it_is_stated_and_a_higher_one_too() {
    let mut world = Plan::links(2).with(|p| p.in_flight_max = 100).build();
    let most = |world: &mut World, limit: u32| {
        world.sender.set_in_flight_max(PEER, limit);
        world.receiver.set_in_flight_max(PEER, limit);
        let ticket = world.publish(0, &state(limit.into(), 60_000)).ticket;
        let mut most = 0;
        let safe = |&(_, event): &(Instant, SenderEvent)| matches!(event, SenderEvent::Safe { ticket: safe, .. } if safe == ticket);
        while !world.events.iter().any(safe) {
            most = most.max(world.sender.in_flight(PEER));
            world.run(us(1));
        }
        most
    };
    assert_eq!(most(&mut world, 4), 4);
    assert_eq!(most(&mut world, 0), 1, "one packet at least can be sent");
    let many = most(&mut world, 50);
    assert!((5..=50).contains(&many), "{many}");
    assert_eq!(world.sent_count(Counter::StatesFailed), 0);
}

#[test]
fn what_cannot_be_in_time_at_a_lower_bandwidth_is_said_at_once() {
    let mut world = Plan::links(1)
        .with(|p| p.channels[0].deadline = ms(50))
        .build();
    let large = state(1, 60_000);
    world.transfer(&large).unwrap();
    // 60 kB take 480 ms there.
    world.sender.set_link_bandwidth(LinkId(0), 1_000_000);
    let began = world.now;
    assert_eq!(world.transfer(&large), None);
    assert!(world.now.since(began) < ms(1));
    let told = world.events.last().map(|&(_, event)| event);
    let unreachable = FailureCause::DeadlineUnreachable;
    assert!(
        matches!(told, Some(SenderEvent::Failed { cause, .. }) if cause == unreachable),
        "{told:?}"
    );
    world.sender.set_link_bandwidth(LinkId(0), 0);
    world.transfer(&large).unwrap();
    // There is no such link, and nobody such.
    world.sender.set_link_bandwidth(LinkId(7), 1);
    world.sender.set_in_flight_max(PeerId(7), 1);
    world.receiver.set_in_flight_max(PeerId(7), 1);
    world.transfer(&large).unwrap();
}

#[test]
fn transfer_cycles_wrap_around_in_both_versions() {
    for (version, last) in [(WireVersion::V1, 65_530), (WireVersion::V2, u32::MAX - 5)] {
        let mut world = Plan::links(2).with(|p| p.version = version).build();
        world.sender.set_last_cycle(ChannelPlace(0), last);
        for i in 0..20u32 {
            world.transfer(&state(i.into(), 5000)).unwrap();
            let (cycle, bytes) = world.read(0).unwrap();
            let expected = last.wrapping_add(i + 1);
            let mask = if version == WireVersion::V1 {
                0xffff
            } else {
                u32::MAX
            };
            assert_eq!(cycle, expected & mask);
            assert_eq!(bytes, state(i.into(), 5000));
        }
        assert_eq!(world.sent_count(Counter::PacketsRetransmitted), 0);
    }
}

#[test]
fn the_in_flight_limit_holds_at_every_size_and_with_lost_answers() {
    // The world asserts the limit at every packet.
    for in_flight_max in [1, 2, 5, 17, 512] {
        for n in [1, 2] {
            let mut world = Plan::links(n)
                .with(|p| {
                    p.in_flight_max = in_flight_max;
                    p.channels = vec![
                        ChannelPlan {
                            deadline: ms(2000),
                            expiry: ms(5000),
                            ..p.channels[0]
                        };
                        3
                    ];
                    for path in &mut p.paths {
                        path.loss = 0.05;
                        path.ack_loss = 0.3;
                    }
                })
                .build();
            for round in 0..3 {
                for channel in 0..3 {
                    world.publish(channel, &state(round, 60_000));
                }
                world.run(ms(1500));
                for channel in 0..3 {
                    assert_eq!(world.read(channel).unwrap().1, state(round, 60_000));
                }
                assert_eq!(world.sender.in_flight(PEER), 0);
            }
            assert!(in_flight_max == 512 || world.sent_count(Counter::WindowStalls) > 0);
        }
    }
}

#[test]
fn the_earliest_deadline_goes_first_even_into_a_running_transfer() {
    let mut world = Plan::links(2)
        .with(|p| {
            let late = ChannelPlan {
                deadline: ms(90),
                ..p.channels[0]
            };
            let early = ChannelPlan {
                deadline: ms(5),
                ..late
            };
            p.channels = vec![late, early];
        })
        .build();
    world.publish(0, &state(0, 400_000));
    world.run(ms(1));
    world.publish(1, &state(1, 50_000));
    let from = world.sent.len();
    world.run(ms(20));
    assert!(
        world.sent[from..from + 100]
            .iter()
            .all(|sent| sent.channel == 1)
    );
    let first: Vec<usize> = world
        .events
        .iter()
        .map(|(_, event)| match event {
            SenderEvent::Safe { channel, .. } => channel.0,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(first, [1, 0]);
}

#[test]
fn of_equal_deadlines_the_lowest_channel_number_goes_first() {
    let link = LinkParameters {
        bandwidth: 0,
        frame_overhead: 0,
        initial_round_trip: us(100),
    };
    let peer = SenderPeer {
        version: WireVersion::V2,
        payload_size: 1000,
        in_flight_max: 10,
    };
    let channel = |number: usize, peer: u8| SenderChannel {
        id: id(number),
        peer: PeerId(peer),
        links: LinkSet::first(1),
        distribution: Distribution::Replicate,
        unsent: Unsent::Replace,
        max_size: 2000,
        deadline: ms(10),
        expiry: ms(10),
    };
    let now = Instant::from_nanos(1_000);
    let channels = [channel(5, 0), channel(4, 1), channel(2, 0), channel(3, 1)];
    let (mut sender, mut publishers) =
        Sender::with_room(&[link], &[peer; 2], &channels, 1).unwrap();
    let (newcomer, publisher) = sender
        .factory()
        .prepare(ChannelPlace(4), &channel(1, 0))
        .unwrap();
    sender.exchange(ChannelPlace(4), newcomer, now).unwrap();
    publishers.push(publisher);
    for peer in 0..2 {
        sender.set_session(PeerId(peer), Some(TAG), now);
    }
    for publisher in &mut publishers {
        publisher.publish(now, |_| 2000);
    }
    sender.handle_published(now);
    let packets = std::iter::from_fn(|| sender.poll_transmit(LinkId(0), now));
    let places: Vec<usize> = packets.map(|packet| packet.channel.0).collect();
    assert_eq!(places, [4, 4, 2, 2, 3, 3, 1, 1, 0, 0]);
}

#[test]
fn a_channel_that_waits_is_asked_about_in_the_packets_of_another() {
    let mut world = Plan::links(1)
        .with(|p| {
            let long = ChannelPlan {
                deadline: ms(90),
                ..p.channels[0]
            };
            p.channels = vec![
                ChannelPlan {
                    deadline: ms(50),
                    ..long
                },
                long,
            ];
        })
        .build();
    world.lose_ack = Box::new(|number, _| number == 0);
    world.publish(0, &state(0, 500));
    world.publish(1, &state(1, 500_000));
    world.run(ms(20));
    let asked = world
        .sent
        .iter()
        .filter(|s| s.channel == 1 && s.header.force_ack == Some(id(0)));
    assert!((1..4).contains(&asked.count()));
    assert_eq!(world.events.len(), 2);
    assert!(world.events[0].0 < world.sent[0].at + ms(1));
}
