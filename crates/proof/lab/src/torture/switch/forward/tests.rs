use super::super::faults::{Cut, Faults, Flapping, WITNESS};
use super::super::frame::tests::frame;
use super::*;

const MS: u64 = 1_000_000;
const HEARTBEAT: [u8; 105] = {
    let mut bytes = [0; 105];
    (bytes[0], bytes[1]) = (0x20, 0x01);
    bytes
};

fn for_ever(faults: Faults) -> Episode {
    Episode {
        networks: [true, false],
        from_ns: 0,
        to_ns: u64::MAX,
        flapping: None,
        faults,
    }
}

/// What comes out until `now_ns`: port and frame.
fn out(forwarder: &mut Forwarder, now_ns: u64) -> Vec<(usize, Vec<u8>)> {
    std::iter::from_fn(|| forwarder.depart(now_ns))
        .map(|outgoing| (outgoing.to, outgoing.frame))
        .collect()
}

#[test]
fn without_faults_each_frame_comes_once_unchanged_and_in_order() {
    let mut forwarder = Forwarder::new(1);
    let frames: Vec<_> = (0..50u8)
        .map(|n| frame(1 + usize::from(n) % 2, &[n; 9]))
        .collect();
    frames
        .iter()
        .for_each(|frame| forwarder.arrive(7, 0, 0, frame.clone()));
    let expected: Vec<_> = frames
        .iter()
        .map(|f| (usize::from(f[5]), f.clone()))
        .collect();
    assert_eq!(out(&mut forwarder, 7), expected);
    forwarder.arrive(7, 0, 1, frame(1, &[1]));
    forwarder.arrive(7, 1, 0, frame(1, &[1]));
    assert_eq!((forwarder.tally.passed, forwarder.tally.refused), (50, 2));
}

#[test]
fn a_cut_holds_for_its_time_on_its_ways_and_its_network() {
    let mut forwarder = Forwarder::new(1);
    forwarder.begin(Episode {
        from_ns: 10 * MS,
        to_ns: 20 * MS,
        ..for_ever(Faults {
            cut: Cut::from(0),
            ..Faults::default()
        })
    });
    let mut passes = |ms: u64, from: usize, to: usize| {
        forwarder.arrive(ms * MS, 0, from, frame(to, &[1]));
        !out(&mut forwarder, ms * MS).is_empty()
    };
    assert!(passes(9, 0, 1) && !passes(10, 0, 1) && !passes(19, 0, WITNESS));
    assert!(passes(19, 1, 0), "the other way is open");
    assert!(passes(20, 0, 1), "it ends by itself");
    assert_eq!(forwarder.tally.cut, 2);
}

#[test]
fn long_packets_vanish_and_short_ones_pass() {
    let mut forwarder = Forwarder::new(1);
    forwarder.begin(for_ever(Faults {
        longest: Some(600),
        ..Faults::default()
    }));
    for length in [105, 572, 573, 1454] {
        forwarder.arrive(0, 0, 0, frame(1, &vec![0; length]));
    }
    let lengths: Vec<_> = out(&mut forwarder, 0)
        .iter()
        .map(|(_, f)| f.len() - 42)
        .collect();
    assert_eq!(lengths, [105, 572], "28 bytes are headers");
    assert_eq!(forwarder.tally.too_long, 2);
}

#[test]
fn chance_takes_its_share_and_one_seed_makes_one_course() {
    let course = |seed: u64| {
        let mut forwarder = Forwarder::new(seed);
        forwarder.begin(for_ever(Faults {
            loss: 0.2,
            duplication: 0.1,
            reordering: 0.1,
            corruption: 0.1,
            ..Faults::default()
        }));
        for n in 0..10_000u64 {
            forwarder.arrive(n * MS / 10, 0, 0, frame(1, &n.to_be_bytes()));
        }
        (out(&mut forwarder, u64::MAX), forwarder.tally)
    };
    let (frames, tally) = course(1);
    assert_eq!(course(1), (frames.clone(), tally));
    assert_ne!(course(2).0, frames);
    let near = |count: u64, expected: u64| count.abs_diff(expected) < expected / 5;
    assert!(
        near(tally.lost, 2_000) && near(tally.duplicated, 800),
        "{tally:?}"
    );
    assert!(
        near(tally.reordered, 800) && near(tally.corrupted, 800),
        "{tally:?}"
    );
    assert_eq!(frames.len() as u64, tally.passed + tally.duplicated);
    let numbers: Vec<_> = frames
        .iter()
        .map(|(_, frame)| frame[42..].to_vec())
        .collect();
    assert!(!numbers.is_sorted(), "some were overtaken");
}

#[test]
fn a_delay_moves_every_frame_by_as_much_and_flapping_moves_some() {
    let mut forwarder = Forwarder::new(1);
    forwarder.begin(Episode {
        flapping: Some(Flapping {
            there_ns: 5 * MS,
            gone_ns: 5 * MS,
        }),
        ..for_ever(Faults {
            delay_ns: 12 * MS,
            ..Faults::default()
        })
    });
    forwarder.arrive(4 * MS, 0, 0, frame(1, &[1]));
    forwarder.arrive(5 * MS, 0, 0, frame(1, &[2]));
    assert_eq!(out(&mut forwarder, 5 * MS).len(), 1);
    assert_eq!(forwarder.next_due_ns(), Some(16 * MS));
    assert_eq!(out(&mut forwarder, 16 * MS - 1).len(), 0);
    assert_eq!(out(&mut forwarder, 16 * MS).len(), 1);
}

#[test]
fn one_bit_of_the_next_message_that_fits_is_inverted_where_ordered() {
    let mut forwarder = Forwarder::new(1);
    forwarder.flip(Flip {
        network: 0,
        from: 0,
        to: 1,
        message: 0x2001,
        bytes: 52..60,
    });
    let (heartbeat, other) = (frame(1, &HEARTBEAT), frame(1, &[0x10, 0x01, 5]));
    forwarder.arrive(1, 0, 0, other.clone());
    forwarder.arrive(2, 0, 0, heartbeat.clone());
    forwarder.arrive(3, 0, 0, heartbeat.clone());
    let frames = out(&mut forwarder, 3);
    assert_eq!((&frames[0].1, &frames[2].1), (&other, &heartbeat));
    let Flipped { at_ns, byte, mask } = forwarder.flipped[0];
    assert!(at_ns == 2 && (52..60).contains(&byte) && mask.count_ones() == 1);
    assert_eq!(frames[1].1[42 + byte], heartbeat[42 + byte] ^ mask);
    assert_eq!(forwarder.flipped.len(), 1);
}

#[test]
fn what_is_cleared_is_over_and_a_full_memory_refuses() {
    let mut forwarder = Forwarder::new(1);
    forwarder.begin(for_ever(Faults {
        delay_ns: MS,
        ..Faults::default()
    }));
    for _ in 0..WAITING_MAX + 3 {
        forwarder.arrive(0, 0, 0, frame(1, &[1]));
    }
    assert_eq!(forwarder.tally.refused, 3);
    forwarder.clear();
    assert_eq!(out(&mut forwarder, MS).len(), WAITING_MAX);
    forwarder.arrive(2 * MS, 0, 0, frame(1, &[1]));
    assert_eq!(out(&mut forwarder, 2 * MS).len(), 1);
}
