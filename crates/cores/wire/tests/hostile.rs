//! Bytes from anywhere: never a panic, always one cause (W-3).

mod common;

use bumpless_base::Random;
use bumpless_wire::{Field, Packet, WireError, parse, parse_data};
use common::strategies::datagram;
use common::{describe, vector_files, vectors};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Reads `bytes` and everything that can be read out of the result.
fn read_all(bytes: &[u8]) {
    let data = match parse(bytes) {
        Ok(Packet::Data { header, payload }) => Some((header, payload)),
        _ => None,
    };
    assert_eq!(parse_data(bytes), data);
    match parse(bytes) {
        Ok(packet) => drop(describe(&packet)),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(error.counter().name().starts_with("discard_"));
        }
    }
}

/// A shorter message is refused as such; a data packet may also have lost payload only.
fn check_truncations(bytes: &[u8]) {
    let Ok(whole) = parse(bytes) else { return };
    for len in 0..bytes.len() {
        match (whole, parse(&bytes[..len])) {
            (_, Err(WireError::Truncated { needed, got })) => {
                assert!(got == len && needed > len && needed <= bytes.len());
            }
            (
                Packet::Data { header, payload },
                Ok(Packet::Data {
                    header: cut,
                    payload: left,
                }),
            ) => {
                assert_eq!(header, cut);
                assert!(left.len() < payload.len() && payload.starts_with(left));
            }
            (_, other) => panic!("{len} of {} bytes: {other:?}", bytes.len()),
        }
    }
}

/// W-4.
fn check_trailing(bytes: &[u8]) {
    let longer = [bytes, &[0]].concat();
    match (parse(bytes), parse(&longer)) {
        (Ok(Packet::Data { payload, .. }), Ok(Packet::Data { payload: more, .. })) => {
            assert_eq!(more.len(), payload.len() + 1);
        }
        (Ok(Packet::Heartbeat(heartbeat)), longer) if heartbeat.padded => {
            assert_eq!(longer, Ok(Packet::Heartbeat(heartbeat)));
        }
        (Ok(_), result) => assert_eq!(result, Err(WireError::Malformed(Field::Length))),
        (Err(_), _) => {}
    }
}

/// W-12 by the book (first paper, 7.2.1): `blocks` are the maximal ranges of the numbers they hold.
fn are_maximal_ranges(blocks: &[(u16, u16)]) -> bool {
    let numbers: BTreeSet<u16> = blocks.iter().flat_map(|&(low, high)| low..=high).collect();
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, high)) if *high + 1 == number => *high = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges == blocks
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in vec(any::<u8>(), 0..1_600)) {
        read_all(&bytes);
    }

    /// Random bytes seldom get past the type, so these start with a known one.
    #[test]
    fn random_bytes_after_a_known_type_never_panic(
        htype in prop_oneof![Just([0, 1]), Just([0x10, 1]), Just([0x20, 1]), Just([0x20, 2]), Just([0x20, 3])],
        version in 0u8..5,
        bytes in vec(any::<u8>(), 0..1_400),
    ) {
        read_all(&[&htype[..], &[0, version], &bytes].concat());
    }

    #[test]
    fn changed_messages_never_panic(
        mut bytes in datagram(),
        edits in vec((any::<usize>(), any::<u8>()), 1..9),
        length in 0usize..1_600,
    ) {
        for (at, value) in edits {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        read_all(&bytes);
        bytes.resize(length, 0xA5);
        read_all(&bytes);
    }

    #[test]
    fn a_cut_message_is_refused_at_every_length(bytes in datagram()) {
        check_truncations(&bytes);
        check_trailing(&bytes);
    }

    #[test]
    fn blocks_are_accepted_exactly_when_they_are_maximal_ranges(blocks in vec((0u16..12, 0u16..12), 0..5)) {
        let mut bytes = vec![0x10, 0x01, 0, 1, 0, 1, 0, 1, blocks.len() as u8];
        for (low, high) in &blocks {
            bytes.extend(low.to_be_bytes());
            bytes.extend(high.to_be_bytes());
        }
        let expected = if are_maximal_ranges(&blocks) { None } else { Some(WireError::Malformed(Field::Blocks)) };
        prop_assert_eq!(parse(&bytes).err(), expected);
    }
}

#[test]
fn every_flipped_bit_of_every_vector_is_read_or_refused() {
    for vector in vector_files().iter().flat_map(|file| vectors(file)) {
        let mut bytes = vector.bytes;
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            read_all(&bytes);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn every_vector_is_refused_at_every_shorter_length() {
    for vector in vector_files().iter().flat_map(|file| vectors(file)) {
        check_truncations(&vector.bytes);
        check_trailing(&vector.bytes);
        (0..vector.bytes.len()).for_each(|len| read_all(&vector.bytes[..len]));
    }
}

/// W-31: these messages decide roles, and no flipped bit may. Three can make the type that of a state's packet,
/// which its own clauses judge.
#[test]
fn no_heartbeat_or_witness_message_with_up_to_three_flipped_bits_is_taken() {
    let mut random = Random::new(1);
    for vector in ["heartbeat.txt", "witness.txt"]
        .iter()
        .flat_map(|file| vectors(file))
    {
        let bits = vector.bytes.len() * 8;
        let flipped = |places: &[usize]| {
            let mut bytes = vector.bytes.clone();
            places
                .iter()
                .for_each(|bit| bytes[bit / 8] ^= 1 << (bit % 8));
            let of_a_state = matches!(parse(&bytes), Ok(Packet::Data { .. } | Packet::Ack(_)));
            let refused = parse(&bytes).is_err() || (places.len() == 3 && of_a_state);
            assert!(refused, "{}: {places:?}", vector.name);
        };
        (0..bits).for_each(|bit| flipped(&[bit]));
        for _ in 0..20_000 {
            let [a, b, c] = [(); 3].map(|()| random.below(bits as u64) as usize);
            if a != b && b != c && a != c {
                flipped(&[a, b]);
                flipped(&[a, b, c]);
            }
        }
    }
}

/// Every type and version there can be, so that no pair is routed by accident (W-2).
#[test]
fn only_the_types_and_versions_of_the_table_are_known() {
    let known = |htype: u16| [0x0001, 0x1001, 0x2001, 0x2002, 0x2003].contains(&htype);
    let versions = |htype: u16| match htype {
        0x0001 | 0x1001 => 1..=2,
        0x2001 => 3..=3,
        _ => 2..=2,
    };
    for htype in 0..=u16::MAX {
        for version in [0, 1, 2, 3, 0x0100, 0x0200, u16::MAX] {
            let bytes = [htype.to_be_bytes(), version.to_be_bytes()].concat();
            let expected = match (known(htype), version) {
                (false, _) => Some(WireError::UnknownType(htype)),
                (true, version) if versions(htype).contains(&version) => None,
                (true, version) => Some(WireError::UnknownVersion { htype, version }),
            };
            match expected {
                Some(error) => assert_eq!(parse(&bytes), Err(error)),
                None => assert!(matches!(
                    parse(&bytes),
                    Err(WireError::Truncated { got: 4, .. })
                )),
            }
        }
    }
}
