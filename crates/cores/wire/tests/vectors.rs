//! The vectors in `spec/vectors` against parser and encoder (W-30).

mod common;

use bumpless_wire::{Field, MAX_ACK_LEN, MAX_HEARTBEAT_LEN, WireError, parse};
use common::{describe, describe_error, encode, vector_files, vectors};
use std::collections::BTreeSet;

const MALFORMED: &str = "malformed.txt";

const FIELDS: [Field; 15] = [
    Field::Channel,
    Field::Link,
    Field::Flags,
    Field::Trigger,
    Field::Received,
    Field::AckBlocks,
    Field::Blocks,
    Field::Length,
    Field::Session,
    Field::Groups,
    Field::Role,
    Field::Candidates,
    Field::Form,
    Field::Kind,
    Field::Granted,
];

/// Both directions at once: the vector's fields come out of its bytes, and encoding what came out
/// gives the bytes again.
#[test]
fn every_vector_parses_to_its_fields_and_encodes_to_its_bytes() {
    for file in vector_files().iter().filter(|file| *file != MALFORMED) {
        for vector in vectors(file) {
            let packet = parse(&vector.bytes).unwrap_or_else(|e| panic!("{}: {e}", vector.name));
            assert_eq!(describe(&packet), vector.fields, "{}", vector.name);
            assert_eq!(encode(&packet), vector.bytes, "{}", vector.name);
        }
    }
}

#[test]
fn every_malformed_vector_is_refused_with_its_cause_and_counter() {
    for vector in vectors(MALFORMED) {
        let error = parse(&vector.bytes).expect_err(&vector.name);
        assert_eq!(describe_error(&error), vector.fields, "{}", vector.name);
    }
}

/// Every message in every version, the longest ones, and every cause of refusal.
#[test]
fn the_vectors_leave_no_message_and_no_cause_out() {
    let good: Vec<_> = vector_files()
        .iter()
        .filter(|file| *file != MALFORMED)
        .flat_map(|file| vectors(file))
        .collect();
    let kinds: BTreeSet<_> = good
        .iter()
        .map(|vector| vector.bytes[..4].to_vec())
        .collect();
    assert_eq!(kinds.len(), 7);
    let lengths: BTreeSet<_> = good.iter().map(|vector| vector.bytes.len()).collect();
    assert!(lengths.contains(&MAX_ACK_LEN) && lengths.contains(&MAX_HEARTBEAT_LEN));

    let bad = vectors(MALFORMED);
    let causes: Vec<_> = bad
        .iter()
        .filter_map(|vector| parse(&vector.bytes).err())
        .collect();
    for field in FIELDS {
        assert!(causes.contains(&WireError::Malformed(field)), "{field:?}");
    }
    let found = |is: fn(&WireError) -> bool| causes.iter().any(is);
    assert!(found(|e| matches!(e, WireError::Truncated { .. })));
    assert!(found(|e| matches!(e, WireError::UnknownType(_))));
    assert!(found(|e| matches!(e, WireError::UnknownVersion { .. })));
    assert!(found(|e| matches!(e, WireError::Corrupt)));
}
