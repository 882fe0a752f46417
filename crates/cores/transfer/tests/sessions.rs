//! Restarts, foreign sessions, junk and forgeries.

mod world;

use bumpless_base::{Counter, Random};
use bumpless_transfer::{ChannelPlace, FailureCause, SenderEvent, Unsent};
use bumpless_wire::{AckHeader, MAX_ACK_LEN, WireVersion, encode_ack};
use world::*;

const STATE: usize = 50_000;

fn wire(world: &World, from: usize) -> Vec<Vec<u8>> {
    world.sent[from..].iter().map(bytes_of).collect()
}

/// The header as it was on the wire, with a payload of the right length and other content.
fn bytes_of(sent: &Sent) -> Vec<u8> {
    let mut header = [0; 30];
    let len = sent.header.encode(&mut header);
    let total = sent.header.total_size as usize;
    let start = sent.header.sequence as usize * 1000;
    let mut bytes = header[..len].to_vec();
    bytes.resize(len + (total - start).min(1000), 0xee);
    bytes
}

#[test]
fn a_restart_does_not_black_hole_the_channel() {
    for version in [WireVersion::V1, WireVersion::V2] {
        for cycles in [1, 40_000] {
            let mut world = Plan::links(2).with(|p| p.version = version).build();
            world.sender.set_last_cycle(ChannelPlace(0), cycles);
            for i in 0..3 {
                world.transfer(&state(i, STATE)).unwrap();
            }
            // The sender's numbers start again at 1, far behind what the receiver has seen.
            world.restart_sender(2);
            world.transfer(&state(10, STATE)).unwrap();
            assert_eq!(world.read(0).unwrap(), (1, state(10, STATE)));
            world.restart_receiver(3);
            assert!(world.read(0).is_none());
            world.transfer(&state(11, STATE)).unwrap();
            assert_eq!(world.read(0).unwrap(), (2, state(11, STATE)));
        }
    }
}

/// T-5, T-54: what waits behind a transfer does not wait for the next publication to be told so.
#[test]
fn all_that_is_kept_fails_at_once_when_the_session_ends() {
    let mut world = Plan::links(1)
        .with(|p| p.channels[0].unsent = Unsent::Keep)
        .build();
    for ticket in 0..3 {
        assert_eq!(world.publish(0, &state(ticket, STATE)).superseded, None);
        world.run(us(50));
    }
    world.set_session(None);
    let events: Vec<_> = std::iter::from_fn(|| world.sender.poll_event()).collect();
    let failed = |(at, event): (usize, &SenderEvent)| {
        let ended = FailureCause::SessionEnded;
        matches!(*event, SenderEvent::Failed { ticket, cause, .. } if (ticket, cause) == (at as u64, ended))
    };
    let told = events.iter().enumerate().all(failed);
    assert!(events.len() == 3 && told, "{events:?}");
}

#[test]
fn a_restart_in_the_middle_of_a_transfer_is_over_with_the_next_period() {
    for after in (0..800).step_by(50) {
        for sender in [false, true] {
            let mut world = Plan::links(2).build();
            world.transfer(&state(0, STATE)).unwrap();
            world.publish(0, &state(1, STATE));
            world.run(us(after));
            if sender {
                world.restart_sender(7);
            } else {
                world.restart_receiver(7);
            }
            world.run(ms(1));
            world.transfer(&state(2, STATE)).unwrap();
            assert_eq!(world.read(0).unwrap().1, state(2, STATE));
        }
    }
}

#[test]
fn a_state_stays_readable_when_its_sender_is_gone() {
    let mut world = Plan::links(2).build();
    world.transfer(&state(0, STATE)).unwrap();
    world.receiver.set_session(PEER, None, world.now);
    assert_eq!(world.read(0).unwrap().1, state(0, STATE));
}

#[test]
fn packets_of_an_old_session_have_no_effect_in_either_direction() {
    let mut world = Plan::links(1).build();
    world.transfer(&state(0, STATE)).unwrap();
    let old = wire(&world, 0);
    world.set_session(Some(99));
    world.publish(0, &state(1, STATE));
    world.run(us(200));
    for bytes in &old {
        world.inject(0, bytes, true);
    }
    let mut out = [0; MAX_ACK_LEN];
    let header = AckHeader {
        version: WireVersion::V2,
        tag: TAG,
        channel: id(0),
        link: None,
        retransmission: false,
        cycle: 2,
        trigger: None,
        received: None,
    };
    let len = encode_ack(&header, [(0, 1)], &mut out);
    world.inject(0, &out[..len], false);
    world.run(ms(5));
    assert_eq!(
        world.received_count(Counter::DiscardWrongSession),
        old.len() as u64
    );
    assert_eq!(world.sent_count(Counter::DiscardWrongSession), 1);
    assert_eq!(world.read(0).unwrap().1, state(1, STATE));
}

#[test]
fn without_a_session_nothing_is_sent_and_publications_fail_at_once() {
    let mut world = Plan::links(1).build();
    world.publish(0, &state(0, STATE));
    world.run(us(100));
    let sent = world.sent.len();
    world.set_session(None);
    world.publish(0, &state(1, STATE));
    world.run(ms(50));
    assert_eq!(world.sent.len(), sent);
    assert_eq!(world.sent_count(Counter::StatesFailed), 2);
    assert_eq!(world.sender.in_flight(PEER), 0);
    world.set_session(Some(5));
    world.transfer(&state(2, STATE)).unwrap();
}

#[test]
fn packets_of_one_session_and_an_older_cycle_are_not_taken_again() {
    let mut world = Plan::links(1).build();
    world.transfer(&state(0, STATE)).unwrap();
    let old = wire(&world, 0);
    world.transfer(&state(1, STATE)).unwrap();
    let acks = world.acks;
    for bytes in &old {
        world.inject(0, bytes, true);
    }
    assert_eq!(
        world.received_count(Counter::DiscardOldCycle),
        old.len() as u64
    );
    assert_eq!(world.acks, acks);
    assert_eq!(world.read(0).unwrap().1, state(1, STATE));
}

#[test]
fn acknowledgements_of_what_was_never_sent_have_no_effect() {
    let mut world = Plan::links(2).build();
    world.transfer(&state(0, STATE)).unwrap();
    world.lose = Box::new(|_| true);
    world.publish(0, &state(1, STATE));
    world.run(us(100));
    let (started, mut out) = (world.sender.in_flight(PEER), [0; MAX_ACK_LEN]);
    assert!((1..40).contains(&started));
    let good = AckHeader {
        version: WireVersion::V2,
        tag: TAG,
        channel: id(0),
        link: Some(bumpless_base::LinkId(0)),
        retransmission: false,
        cycle: 2,
        trigger: None,
        received: None,
    };
    let forgeries: [(AckHeader, (u32, u32)); 5] = [
        (good, (0, started)),
        (good, (0, u32::MAX - 1)),
        (
            AckHeader {
                trigger: Some(started),
                ..good
            },
            (0, 0),
        ),
        (
            AckHeader {
                trigger: Some(u32::MAX),
                ..good
            },
            (0, 0),
        ),
        (
            AckHeader {
                received: Some(started + 1),
                ..good
            },
            (0, 0),
        ),
    ];
    for (header, block) in forgeries {
        let len = encode_ack(&header, [block], &mut out);
        world.inject(1, &out[..len], false);
    }
    assert_eq!(world.sent_count(Counter::DiscardForgedAck), 5);
    assert_eq!(world.sender.in_flight(PEER), started);
    for cycle in [0, 1, 3, u32::MAX] {
        let len = encode_ack(&AckHeader { cycle, ..good }, [(0, 0)], &mut out);
        world.inject(1, &out[..len], false);
    }
    assert_eq!(world.sender.in_flight(PEER), started);
    world.lose = Box::new(|_| false);
    world.run(ms(20));
    assert_eq!(world.read(0).unwrap().1, state(1, STATE));
}

#[test]
fn junk_and_bent_packets_do_no_harm() {
    for version in [WireVersion::V1, WireVersion::V2] {
        let mut world = Plan::links(2).with(|p| p.version = version).build();
        let mut random = Random::new(42);
        world.transfer(&state(0, STATE)).unwrap();
        for round in 1..20 {
            let ticket = world.publish(0, &state(round, STATE)).ticket;
            for _ in 0..20 {
                world.run(us(20));
                let mut bytes: Vec<u8> = match (random.below(3), world.sent.last()) {
                    (0, Some(sent)) => bytes_of(sent),
                    (1, _) => {
                        let v = version.number() as u8;
                        let kind = if random.chance(0.5) { 0x10 } else { 0 };
                        vec![kind, 1, 0, v, 0x5e, 0x55, 0x10, 0x01, 0, 1]
                    }
                    _ => Vec::new(),
                };
                let extra = random.below(60) as usize;
                bytes.extend((0..extra).map(|_| random.next_u64() as u8));
                bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
                world.inject(random.below(2) as usize, &bytes, true);
                world.inject(random.below(2) as usize, &bytes, false);
            }
            world.fate(ticket).unwrap();
            assert_eq!(world.read(0).unwrap().1, state(round, STATE));
        }
    }
}

#[test]
fn sizes_that_contradict_each_other_are_discarded() {
    let mut world = Plan::links(1).build();
    world.lose = Box::new(|sent| sent.header.sequence == 1);
    world.publish(0, &state(0, 3500));
    world.run(us(300));
    let before = world.received_count(Counter::DiscardWrongSize);
    let good = bytes_of(&world.sent[1]);
    let bend = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    let short = good[..good.len() - 1].to_vec();
    let long = [&good[..], &[0]].concat();
    let other_total = bend(23, good[23] ^ 1);
    let beyond_the_end = bend(19, 200);
    let beyond_the_largest = bend(20, 1);
    for bytes in [short, long, other_total, beyond_the_end, beyond_the_largest] {
        world.inject(0, &bytes, true);
    }
    assert_eq!(world.received_count(Counter::DiscardWrongSize), before + 5);
    world.lose = Box::new(|_| false);
    world.run(ms(10));
    assert_eq!(world.read(0).unwrap().1, state(0, 3500));
}

#[test]
fn a_state_taken_over_when_a_session_ends_is_not_dropped_by_its_own_mark() {
    let mut world = Plan::links(1).build();
    world.publish(0, &state(0, 100_000));
    world.run(us(100));
    world.publish(0, &state(1, 100_000));
    world.run(us(100));
    // The driver does not learn of this one before the session changes.
    world.publish(0, &state(2, 100_000));
    world.set_session(Some(TAG + 1));
    world.run(ms(10));
    assert_eq!(
        world.read(0).map(|(_, state)| state),
        Some(state(2, 100_000))
    );
    let superseded = world
        .events
        .iter()
        .any(|(_, event)| matches!(event, SenderEvent::Superseded { .. }));
    assert!(!superseded, "{:?}", world.events);
}
