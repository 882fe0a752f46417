use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Bytes of the states here.
const STATE: usize = 64;

fn retained(name: &str, of: &str, offset: usize, len: usize) -> Retained {
    Retained {
        name: name.into(),
        of: of.into(),
        offset,
        len,
    }
}

fn record_of(table: &Table, state: &[u8]) -> Vec<u8> {
    let mut record = Vec::new();
    table.cut(state, &mut record);
    record
}

/// One entry as the documentation lays it out.
fn raw(name: &[u8], of: &[u8], len: u32, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![name.len() as u8];
    bytes.extend(name);
    bytes.push(of.len() as u8);
    bytes.extend(of);
    bytes.extend(len.to_be_bytes());
    bytes.extend(value);
    bytes
}

#[test]
fn the_layout_is_the_documented_one_in_the_order_of_the_names() {
    let state: Vec<u8> = (0..STATE as u8).collect();
    let variables = vec![
        retained("PUMP.B", "DINT", 8, 4),
        retained("A", "BOOL", 63, 1),
    ];
    let table = Table::new(variables, STATE).unwrap();
    let expected = [
        raw(b"A", b"BOOL", 1, &[63]),
        raw(b"PUMP.B", b"DINT", 4, &[8, 9, 10, 11]),
    ];
    assert_eq!(record_of(&table, &state), expected.concat());
    assert_eq!(table.record_len(), expected.concat().len());
}

#[test]
fn variables_that_cannot_be_told_apart_or_do_not_lie_in_the_state_make_no_table() {
    let table = |variables: &[Retained]| Table::new(variables.to_vec(), STATE).unwrap_err();
    let a = retained("A", "INT", 0, 2);
    assert_eq!(
        table(&[a.clone(), retained("B", "INT", 4, 2), a]),
        TableError::Twice("A".into())
    );
    for wrong in [
        retained("", "INT", 0, 2),
        retained("A", "", 0, 2),
        retained(&"x".repeat(256), "INT", 0, 2),
    ] {
        assert!(matches!(table(&[wrong]), TableError::Name(_)));
    }
    for (offset, len) in [(STATE, 1), (STATE - 1, 2), (usize::MAX, 2), (0, usize::MAX)] {
        assert!(matches!(
            table(&[retained("A", "INT", offset, len)]),
            TableError::Outside(..)
        ));
    }
    assert!(Table::new(vec![retained("A", "INT", STATE - 2, 2)], STATE).is_ok());
}

/// K-15: a file with more would be refused when it is read.
#[test]
fn variables_of_more_bytes_than_a_file_has_room_for_make_no_table() {
    let of = |len| retained("A", "USINT[9]", 0, len);
    let table = |len| Table::new(vec![of(len)], RECORD_MAX * 2);
    let most = RECORD_MAX - of(0).entry_len();
    assert!(table(most).is_ok());
    let more = TableError::TooLarge(RECORD_MAX + 1);
    assert_eq!(table(most + 1).unwrap_err(), more);
}

#[test]
fn what_is_no_record_is_refused_as_a_whole() {
    let one = raw(b"A", b"INT", 2, &[1, 2]);
    assert_eq!(Record::parse(&one).unwrap().entries().count(), 1);
    let twice = [&one[..], &one[..]].concat();
    let unordered = [raw(b"B", b"INT", 0, &[]), one.clone()].concat();
    let giant = raw(b"A", b"INT", u32::MAX, &[1, 2]);
    let no_name = raw(b"", b"INT", 0, &[]);
    let no_type = raw(b"A", b"", 0, &[]);
    let no_text = raw(&[0xff], b"INT", 0, &[]);
    for wrong in [twice, unordered, giant, no_name, no_type, no_text] {
        assert_eq!(Record::parse(&wrong), None, "{wrong:?}");
    }
    for cut in 1..one.len() {
        assert_eq!(Record::parse(&one[..cut]), None, "{cut}");
    }
}

#[test]
fn what_does_not_fit_is_named_and_keeps_its_value() {
    let before = Table::new(
        vec![
            retained("COUNT", "INT", 0, 2),
            retained("OLD", "BOOL", 2, 1),
            retained("SUM", "INT", 4, 2),
        ],
        STATE,
    );
    let after = Table::new(
        vec![
            retained("COUNT", "INT", 20, 2),
            retained("NEW", "BOOL", 2, 1),
            retained("SUM", "DINT", 4, 4),
        ],
        STATE,
    );
    let record = record_of(&before.unwrap(), &[7; STATE]);
    let mut state = [1; STATE];
    let applied = after
        .unwrap()
        .apply(Record::parse(&record).unwrap(), &mut state);
    assert_eq!(applied.taken, 1);
    let mut expected = [1; STATE];
    expected[20..22].fill(7);
    assert_eq!(state, expected);
    assert_eq!(
        applied.to_string(),
        "1 retained, 1 of another type, 1 no longer there, 1 not kept before: SUM (DINT, not INT); OLD; NEW"
    );
}

#[test]
fn the_same_type_with_another_length_is_another_type() {
    let table = |len| Table::new(vec![retained("T", "TIME", 0, len)], STATE).unwrap();
    let record = record_of(&table(16), &[9; STATE]);
    for len in [8, 17] {
        let mut state = [1; STATE];
        let applied = table(len).apply(Record::parse(&record).unwrap(), &mut state);
        assert_eq!(
            (applied.taken, applied.other_type.len(), state),
            (0, 1, [1; STATE])
        );
    }
}

/// Variables side by side, so that no two share a byte: name, type, length.
fn variables() -> impl Strategy<Value = Vec<(String, String, usize)>> {
    let one = ("[A-D]{1,2}", "INT|DINT|BOOL", 0..5_usize);
    proptest::collection::btree_map(one.0, (one.1, one.2), 0..12)
        .prop_map(|map| {
            map.into_iter()
                .map(|(name, (of, len))| (name, of, len))
                .collect()
        })
        .prop_shuffle()
}

fn table_of(variables: &[(String, String, usize)]) -> Table {
    let mut at = 0;
    let place = |(name, of, len): &(String, String, usize)| {
        let it = retained(name, of, at, *len);
        at += len;
        it
    };
    Table::new(variables.iter().map(place).collect(), STATE).unwrap()
}

proptest! {
    #[test]
    fn values_go_over_by_name_type_and_length_and_nothing_else_changes(
        was in variables(), is in variables(),
        old in proptest::collection::vec(any::<u8>(), STATE), new in proptest::collection::vec(any::<u8>(), STATE),
    ) {
        let (before, after) = (table_of(&was), table_of(&is));
        let record = record_of(&before, &old);
        prop_assert_eq!(record.len(), before.record_len());
        let mut state = new.clone();
        let applied = after.apply(Record::parse(&record).unwrap(), &mut state);

        // The twin: a map, and a search for each.
        let kept: BTreeMap<_, _> = before
            .variables()
            .iter()
            .map(|it| (it.name.clone(), (it.of.clone(), old[it.offset..it.offset + it.len].to_vec())))
            .collect();
        let mut expected = new;
        let (mut taken, mut other, mut added) = (0, Vec::new(), Vec::new());
        for it in after.variables() {
            match kept.get(&it.name) {
                None => added.push(it.name.clone()),
                Some((of, value)) if *of == it.of && value.len() == it.len => {
                    expected[it.offset..it.offset + it.len].copy_from_slice(value);
                    taken += 1;
                }
                Some(_) => other.push(it.name.clone()),
            }
        }
        let here = |name: &String| after.variables().iter().any(|it| it.name == *name);
        let unknown: Vec<_> = kept.keys().filter(|name| !here(name)).cloned().collect();
        prop_assert_eq!(state, expected);
        prop_assert_eq!(applied.taken, taken);
        prop_assert_eq!(applied.other_type.into_iter().map(|it| it.name).collect::<Vec<_>>(), other);
        prop_assert_eq!((applied.added, applied.unknown), (added, unknown));
    }

    #[test]
    fn any_bytes_are_a_record_that_is_written_again_alike_or_none(
        bytes in proptest::collection::vec(prop_oneof![0..4_u8, b'A'..b'D', any::<u8>()], 0..60),
    ) {
        if let Some(record) = Record::parse(&bytes) {
            let entries = record.entries();
            let again: Vec<u8> = entries
                .flat_map(|it| raw(it.name.as_bytes(), it.of.as_bytes(), it.value.len() as u32, it.value))
                .collect();
            prop_assert_eq!(again, bytes);
        }
    }

    #[test]
    fn a_record_that_was_bent_changes_nothing_but_retained_values(
        was in variables(), old in proptest::collection::vec(any::<u8>(), STATE), bit: prop::sample::Index,
    ) {
        let table = table_of(&was);
        let mut record = record_of(&table, &old);
        prop_assume!(!record.is_empty());
        let at = bit.index(8 * record.len());
        record[at / 8] ^= 1 << (at % 8);
        if let Some(record) = Record::parse(&record) {
            let mut state = old.clone();
            table.apply(record, &mut state);
            let end = table.variables().iter().map(|it| it.len).sum::<usize>();
            prop_assert_eq!(&state[end..], &old[end..]);
            prop_assert_eq!(state.len(), old.len());
        }
    }
}
