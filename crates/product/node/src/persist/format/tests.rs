use proptest::prelude::*;

use super::*;

fn encoded(file: &StateFile<'_>) -> Vec<u8> {
    let mut bytes = vec![0xa5; 7];
    encode(file, &mut bytes);
    bytes
}

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
    }
}

#[test]
fn the_layout_is_the_documented_one() {
    let bytes = encoded(&example(&[9, 8, 7]));
    let mut expected = b"bumpless\0\x01\0\x04".to_vec();
    expected.extend([0x01, 0x02, 0x03, 0x04]);
    expected.extend([0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]);
    expected.extend([0x21, 0x22, 0x23, 0x24]);
    expected.extend([0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38]);
    expected.extend([0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48]);
    expected.extend([0, 0, 0, 3]);
    assert_eq!(expected.len(), FIXED);
    expected.extend(b"tank\x09\x08\x07");
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

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        pair: u32, program: u64, epoch: u32, cycle: u64, published_ns: u64,
        application in "[A-Za-z0-9_-]{1,32}",
        state in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let progress = Progress { epoch: Epoch(epoch), cycle };
        let file = StateFile {
            pair, program, application: &application, progress, published_ns, state: &state,
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
        mut bytes in proptest::collection::vec(any::<u8>(), 0..200), header: bool, check: bool,
    ) {
        if header {
            let begin: Vec<u8> = MAGIC.into_iter().chain(VERSION.to_be_bytes()).collect();
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
