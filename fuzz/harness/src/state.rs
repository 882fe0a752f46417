//! A file of a state on disk, and the retained variables in it (spec/persist.md).

use bumpless_controller::retain::{Record, Retained, Table};
use bumpless_node::persist::format::{StateFile, encode, parse};
use crc::{CRC_64_XZ, Crc};

/// Bytes of the state to which retained variables are applied.
const STATE: usize = 32;

const CRC: Crc<u64> = Crc::<u64>::new(&CRC_64_XZ);

/// Reads `bytes` as they are, and with the check sequence that is right for them: what lies behind that is reached by
/// nobody who only guesses.
///
/// # Panics
/// If what is accepted is not written back alike, or a record changes what is not retained.
pub fn run(bytes: &[u8]) {
    judge(bytes);
    let sum = CRC.checksum(bytes).to_be_bytes();
    judge(&[bytes, &sum[..]].concat());
    if let Some(record) = Record::parse(bytes) {
        apply(record);
    }
}

fn judge(bytes: &[u8]) {
    let Ok(file) = parse(bytes) else {
        return;
    };
    let mut again = Vec::new();
    encode(&file, &mut again);
    assert_eq!(parse(&again), Ok(file), "written and read again");
    if bytes[9] == again[9] {
        assert_eq!(again, bytes);
    } else {
        // A file of the version before has no record.
        assert_eq!(
            file.retained,
            StateFile {
                retained: Record::default(),
                ..file
            }
            .retained
        );
    }
    apply(file.retained);
}

/// Applies `record` to a table of which some names may stand in it.
fn apply(record: Record<'_>) {
    let variable = |(name, of, offset, len): (&str, &str, usize, usize)| Retained {
        name: name.into(),
        of: of.into(),
        offset,
        len,
    };
    let variables = [
        ("A", "INT", 0, 2),
        ("COUNT", "INT", 4, 2),
        ("X", "BOOL", 8, 1),
    ];
    let variables = variables.map(variable).to_vec();
    let table = Table::new(variables.clone(), STATE).expect("a table");
    let mut state = [0x5a; STATE];
    let applied = table.apply(record, &mut state);
    let entries: Vec<_> = record.entries().collect();
    assert!(entries.windows(2).all(|pair| pair[0].name < pair[1].name));
    let mut expected = [0x5a; STATE];
    let mut taken = 0;
    for it in &variables {
        let same = |entry: &&_| {
            let entry: &bumpless_controller::retain::Entry<'_> = entry;
            (entry.name, entry.of, entry.value.len()) == (it.name.as_str(), it.of.as_str(), it.len)
        };
        if let Some(entry) = entries.iter().find(same) {
            expected[it.offset..it.offset + it.len].copy_from_slice(entry.value);
            taken += 1;
        }
    }
    assert_eq!((state, applied.taken), (expected, taken));
    let named = applied.other_type.len() + applied.added.len();
    assert_eq!(applied.taken as usize + named, variables.len());
    let known = entries.len() - applied.unknown.len();
    assert_eq!(applied.taken as usize + applied.other_type.len(), known);
}
