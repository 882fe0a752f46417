//! Links that pass short packets only (T-55).

mod world;

use bumpless_base::{Counter, Distribution, LinkId, LinkSet};
use bumpless_wire::{DataHeader, WireVersion, packet_count, piece};
use world::*;

const FULL: u16 = 1_403;
const STATE: usize = 500_000;

/// Two links on which nothing of full length arrives.
fn narrow() -> World {
    let plan = Plan::links(2).with(|p| {
        p.payload_size = FULL;
        p.channels[0].max_size = STATE as u32 + 3;
    });
    let mut world = plan.build();
    world.lose = Box::new(|sent| !sent.header.short);
    world
}

fn set_narrow(world: &mut World, links: impl IntoIterator<Item = (u8, bool)>) {
    for (link, narrow) in links {
        world.sender.set_link_narrow(PEER, LinkId(link), narrow);
    }
}

#[test]
fn a_state_whose_links_are_all_narrow_arrives_in_short_pieces() {
    let mut world = narrow();
    assert_eq!(world.transfer(&state(0, STATE)), None);
    set_narrow(&mut world, [(0, true), (1, true)]);
    for i in 1..4 {
        let (before, bytes) = (world.sent.len(), state(i, STATE + i as usize));
        world.transfer(&bytes).expect("it is safe");
        assert_eq!(world.read(0).expect("it came").1, bytes);
        let packets = packet_count(bytes.len() as u32, piece(FULL, true));
        assert_eq!(world.sent.len() - before, 2 * packets as usize);
    }
    assert_eq!(world.received_count(Counter::DiscardWrongSize), 0);
}

#[test]
fn one_link_of_full_length_is_enough_for_full_pieces() {
    let mut world = narrow();
    world.lose = Box::new(|_| false);
    let short = |world: &World| world.sent.iter().filter(|sent| sent.header.short).count();
    set_narrow(&mut world, [(0, true)]);
    world.transfer(&state(0, STATE)).expect("it is safe");
    // Nothing goes over the other one.
    assert_eq!(short(&world), 0);
    world.set_healthy(1, false);
    world.transfer(&state(1, STATE)).expect("it is safe");
    let packets = packet_count(STATE as u32, piece(FULL, true));
    assert_eq!(short(&world), packets as usize);
    set_narrow(&mut world, [(0, false)]);
    world.transfer(&state(2, STATE)).expect("it is safe");
    assert_eq!(short(&world), packets as usize);
}

#[test]
fn a_channel_whose_only_link_is_narrow_has_short_pieces_whatever_others_have() {
    let plan = Plan::links(2).with(|p| {
        p.payload_size = FULL;
        p.channels[0].links = LinkSet::first(1);
    });
    let mut world = plan.build();
    // States go over the other link as long as it passes more.
    world.set_healthy(0, false);
    set_narrow(&mut world, [(0, true)]);
    world.transfer(&state(0, STATE)).expect("it is safe");
    assert!(world.sent.iter().all(|sent| sent.header.short));
}

#[test]
fn what_other_channels_have_does_not_keep_a_channel_from_its_only_narrow_link() {
    let plan = Plan::links(3).with(|p| {
        p.payload_size = FULL;
        p.channels[0].links = LinkSet::first(2);
    });
    let mut world = plan.build();
    world.lose = Box::new(|sent| !sent.header.short);
    // The third link passes everything, and is none of this channel's.
    set_narrow(&mut world, [(0, true)]);
    world.set_healthy(1, false);
    let carry = |world: &World| [0, 1, 2].map(|link| world.sender.carries(PEER, LinkId(link)));
    assert_eq!(carry(&world), [true, false, false]);
    world.transfer(&state(0, STATE)).expect("it is safe");
    assert_eq!(world.read(0).expect("it came").1, state(0, STATE));
    let packets = packet_count(STATE as u32, piece(FULL, true));
    assert_eq!(world.sent.len(), packets as usize);
    world.set_healthy(1, true);
    assert_eq!(carry(&world), [false, true, false]);
}

#[test]
fn packets_that_a_narrow_link_has_swallowed_leave_at_once_on_the_other_one() {
    let plan = Plan::links(2).with(|p| {
        p.payload_size = FULL;
        p.channels[0].distribution = Distribution::Spread;
    });
    let mut world = plan.build();
    world.lose = Box::new(|sent| sent.link == 0);
    let ticket = world.publish(0, &state(0, STATE)).ticket;
    world.run(us(100));
    set_narrow(&mut world, [(0, true)]);
    let (before, after) = (world.sent.len(), |world: &World| world.sent.len());
    let swallowed: Vec<_> = world.sent.iter().filter(|sent| sent.link == 0).collect();
    let swallowed: Vec<_> = swallowed.iter().map(|sent| sent.header.sequence).collect();
    world.fate(ticket).expect("it is safe");
    assert!(after(&world) > before + swallowed.len());
    let later = &world.sent[before..];
    assert!(later.iter().all(|sent| sent.link == 1));
    let first = later.iter().map(|sent| sent.header.sequence);
    assert!(first.take(swallowed.len()).eq(swallowed));
    assert_eq!(world.read(0).expect("it came").1, state(0, STATE));
}

#[test]
fn a_transfer_that_has_begun_is_not_cut_anew() {
    let mut world = narrow();
    world.lose = Box::new(|_| false);
    let ticket = world.publish(0, &state(0, STATE)).ticket;
    world.run(us(500));
    set_narrow(&mut world, [(0, true), (1, true)]);
    world.fate(ticket).expect("it is safe");
    assert!(!world.sent.iter().any(|sent| sent.header.short));
    assert_eq!(world.read(0).expect("it came").1, state(0, STATE));
}

#[test]
fn version_1_and_a_payload_that_is_short_already_stay_as_they_are() {
    for (version, payload_size) in [(WireVersion::V1, FULL), (WireVersion::V2, 500)] {
        let plan = Plan::links(2).with(|p| {
            p.payload_size = payload_size;
            p.version = version;
        });
        let mut world = plan.build();
        set_narrow(&mut world, [(0, true), (1, true)]);
        world.transfer(&state(0, STATE)).expect("it is safe");
        assert_eq!(world.read(0).expect("it came").1, state(0, STATE));
        let packets = packet_count(STATE as u32, payload_size) as usize;
        assert_eq!(world.sent.len(), 2 * packets);
    }
}

#[test]
fn pieces_of_two_lengths_are_never_mixed_in_a_state() {
    let mut world = narrow();
    let mut take = |short: bool, sequence: u32, len: usize| {
        let header = DataHeader {
            version: WireVersion::V2,
            tag: TAG,
            channel: id(0),
            link: LinkId(0),
            retransmission: false,
            short,
            cycle: 1,
            sequence,
            total_size: u32::from(FULL) + 1,
            expiry: ms(100),
            force_ack: None,
        };
        let payload = vec![short.into(); len];
        let (receiver, now) = (&mut world.receiver, world.now);
        receiver.handle_data(PEER, LinkId(0), &header, &payload, now);
        receiver.counters().get(Counter::DiscardWrongSize)
    };
    let (full, short) = (usize::from(FULL), usize::from(piece(FULL, true)));
    assert_eq!(take(false, 0, full), 0);
    assert_eq!(take(true, 1, full + 1 - short), 1);
    assert_eq!(take(true, 0, full), 2);
    assert_eq!(take(false, 1, 1), 2);
    let (_, whole) = world.read(0).expect("it came");
    assert!(whole.iter().all(|&byte| byte == 0));
}
