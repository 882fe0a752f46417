use proptest::prelude::*;

use super::*;

fn encoded(file: &StateFile<'_>) -> Vec<u8> {
    let mut bytes = vec![0xa5; 7];
    encode(file, &mut bytes);
    bytes
}

/// Two variables as spec/persist.md lays them out.
const RECORD: &[u8] = b"\x01A\x04BOOL\0\0\0\x01\x01\x05COUNT\x03INT\0\0\0\x02\x2a\0";

fn example(state: &[u8]) -> StateFile<'_> {
    StateFile {
        pair: 0x0102_0304,
        program: 0x1112_1314_1516_1718,
        application: "tank",
        progress: Progress {
            epoch: Epoch(0x2122_2324),
            cycle: 0x3132_3334_3536_3738,
        },
        published_ns: 0x4142_4344_4546_4748,
        state,
        retained: Record::parse(RECORD).unwrap(),
    }
}

#[test]
fn the_layout_is_the_documented_one() {
    let bytes = encoded(&example(&[9, 8, 7]));
    let mut expected = b"bumpless\0\x02\0\x04".to_vec();
    expected.extend([0x01, 0x02, 0x03, 0x04]);
    expected.extend([0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]);
    expected.extend([0x21, 0x22, 0x23, 0x24]);
    expected.extend([0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38]);
    expected.extend([0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48]);
    expected.extend([0, 0, 0, 3]);
    expected.extend([0, 0, 0, RECORD.len() as u8]);
    assert_eq!(expected.len(), FIXED);
    expected.extend(b"tank\x09\x08\x07");
    expected.extend(RECORD);
    assert_eq!(bytes[..expected.len()], expected);
    assert_eq!(bytes.len(), expected.len() + CHECK);
    assert!(bytes.len() <= size_max(3));
    // CRC-64/XZ of "123456789" by its catalogue.
    assert_eq!(CRC.checksum(b"123456789"), 0x995d_c9bb_df19_39fa);
}

#[test]
fn another_version_is_named_and_nothing_is_read_of_it() {
    let mut bytes = encoded(&example(&[1]));
    bytes[9] = 7;
    assert_eq!(parse(&bytes), Err(FormatError::Version(7)));
    bytes[0] = b'B';
    assert_eq!(parse(&bytes), Err(FormatError::Foreign));
}

/// A file of version 1: the same without the record and its length.
fn of_version_1(file: &StateFile<'_>) -> Vec<u8> {
    let mut bytes = encoded(&StateFile {
        retained: Record::default(),
        ..*file
    });
    bytes[9] = 1;
    bytes.drain(FIXED - 4..FIXED);
    bytes.truncate(bytes.len() - CHECK);
    signed(bytes)
}

/// `bytes` with the check sequence that is right for them.
fn signed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = CRC.checksum(&bytes).to_be_bytes();
    bytes.extend(sum);
    bytes
}

#[test]
fn a_file_of_version_1_is_read_and_has_no_record() {
    let file = example(&[9, 8, 7]);
    let expected = StateFile {
        retained: Record::default(),
        ..file
    };
    assert_eq!(parse(&of_version_1(&file)), Ok(expected));
}

/// Bends the bytes of a file.
type Change<'a> = &'a dyn Fn(&mut Vec<u8>);

#[test]
fn a_record_that_is_none_makes_the_file_none_whatever_its_check_sequence_says() {
    let whole = encoded(&example(&[1]));
    let record = whole.len() - CHECK - RECORD.len();
    let bent = |change: Change<'_>| {
        let mut bytes = whole[..whole.len() - CHECK].to_vec();
        change(&mut bytes);
        parse(&signed(bytes)).map(|_| ())
    };
    assert!(bent(&|_| {}).is_ok());
    // The second name is that of the first one; a name, a value, the record, the state are longer than what there is.
    let second = record + 12;
    let changes: [Change<'_>; 5] = [
        &|bytes| {
            bytes
                .splice(second.., RECORD[..12].iter().copied())
                .for_each(drop)
        },
        &|bytes| bytes[record] = 0xff,
        &|bytes| bytes[record + 7..record + 11].fill(0xff),
        &|bytes| bytes[FIXED - 4..FIXED].fill(0xff),
        &|bytes| bytes[FIXED - 8..FIXED - 4].fill(0xff),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        assert_eq!(bent(change), Err(FormatError::Torn), "{number}");
    }
}

/// The record of some variables.
fn record() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::btree_map(
        "[A-Z.]{1,9}",
        proptest::collection::vec(any::<u8>(), 0..9),
        0..5,
    )
    .prop_map(|values| {
        let one = |(name, value): (&String, &Vec<u8>)| {
            let head = [&[name.len() as u8][..], name.as_bytes(), b"\x03INT"].concat();
            [
                head,
                (value.len() as u32).to_be_bytes().to_vec(),
                value.clone(),
            ]
            .concat()
        };
        values.iter().flat_map(one).collect()
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        pair: u32, program: u64, epoch: u32, cycle: u64, published_ns: u64,
        application in "[A-Za-z0-9_-]{1,32}",
        state in proptest::collection::vec(any::<u8>(), 0..300), record in record(),
    ) {
        let progress = Progress { epoch: Epoch(epoch), cycle };
        let file = StateFile {
            pair, program, application: &application, progress, published_ns, state: &state,
            retained: Record::parse(&record).unwrap(),
        };
        let bytes = encoded(&file);
        prop_assert_eq!(parse(&bytes), Ok(file));
    }

    #[test]
    fn whatever_is_not_whole_is_refused(
        state in proptest::collection::vec(any::<u8>(), 0..200),
        cut: prop::sample::Index, bit: prop::sample::Index, more in proptest::collection::vec(any::<u8>(), 1..20),
    ) {
        let whole = encoded(&example(&state));
        prop_assert!(parse(&whole[..cut.index(whole.len())]).is_err());
        let mut flipped = whole.clone();
        let at = bit.index(8 * whole.len());
        flipped[at / 8] ^= 1 << (at % 8);
        prop_assert!(parse(&flipped).is_err());
        let longer: Vec<u8> = whole.into_iter().chain(more).collect();
        prop_assert_eq!(parse(&longer), Err(FormatError::Torn));
    }

    #[test]
    fn any_bytes_are_read_without_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..200), header: bool, check: bool, version in 1..3_u16,
    ) {
        if header {
            let begin: Vec<u8> = MAGIC.into_iter().chain(version.to_be_bytes()).collect();
            let len = begin.len().min(bytes.len());
            bytes[..len].copy_from_slice(&begin[..len]);
        }
        if check {
            // With a right check sequence what it covers is looked at.
            let sum = CRC.checksum(&bytes).to_be_bytes();
            bytes.extend(sum);
        }
        let _ = parse(&bytes);
    }
}
