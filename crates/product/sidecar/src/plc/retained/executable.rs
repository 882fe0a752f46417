//! The table of retained variables in an executable (H-32).

use bumpless_controller::retain::Retained;

use crate::plc::elementary::value;
use crate::plc::tools::STATE_ADDRESS;
use crate::sidecar::HEAD;

/// What stands in front of the table.
pub(super) const MARK: &[u8; 16] = b"BUMPLESSRETAINED";
/// The table's version.
pub(super) const VERSION: u32 = 1;
/// Bytes of one of its rows: address, length, type, name.
const ROW: usize = 8 + 4 + OF + NAME;
/// Longest name of a type, bytes.
pub(super) const OF: usize = 16;
/// Longest name, bytes.
pub(super) const NAME: usize = 116;
/// Most variables: a table that is believed has no more.
pub(super) const MOST: usize = 4096;

/// The variables that an executable of [`build`](crate::plc::build) retains; offsets are in what a
/// [`Sidecar`](crate::Sidecar) saves (H-19).
/// An executable of an older build has none.
///
/// # Errors
/// The table in it is damaged.
pub fn retained(binary: &[u8]) -> Result<Vec<Retained>, Damaged> {
    let mut found = binary
        .windows(MARK.len())
        .enumerate()
        .filter(|(_, it)| *it == MARK);
    let Some((at, _)) = found.next() else {
        return Ok(Vec::new());
    };
    if found.next().is_some() {
        return Err(Damaged);
    }
    rows(&binary[at + MARK.len()..]).ok_or(Damaged)
}

/// The table of retained variables in an executable is not one that `program build` makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("its table of retained variables is damaged; build it again with bumpless program build")
    }
}

impl std::error::Error for Damaged {}

fn rows(table: &[u8]) -> Option<Vec<Retained>> {
    let (version, rest) = table.split_first_chunk::<4>()?;
    let (count, rest) = rest.split_first_chunk::<4>()?;
    let count = usize::try_from(u32::from_le_bytes(*count)).ok()?;
    if u32::from_le_bytes(*version) != VERSION || count > MOST {
        return None;
    }
    let rows = rest.get(..count * ROW)?;
    rows.chunks_exact(ROW).map(row).collect()
}

fn row(row: &[u8]) -> Option<Retained> {
    let (address, rest) = row.split_first_chunk::<8>()?;
    let (len, rest) = rest.split_first_chunk::<4>()?;
    let (of, name) = rest.split_at_checked(OF)?;
    let offset = u64::from_le_bytes(*address).checked_sub(STATE_ADDRESS)?;
    let offset = offset.checked_add(HEAD as u64)?;
    let len = u32::from_le_bytes(*len);
    let of = text(of)?;
    value(&of)?.has(len).then_some(())?;
    Some(Retained {
        name: text(name)?,
        of,
        offset: usize::try_from(offset).ok()?,
        len: usize::try_from(len).ok()?,
    })
}

/// A text that ends with its field, or with a zero before.
fn text(field: &[u8]) -> Option<String> {
    let len = field
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(field.len());
    let text = std::str::from_utf8(&field[..len]).ok()?;
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table as the compiler makes it.
    fn compiled(rows: &[(u64, u32, &str, &str)]) -> Vec<u8> {
        let mut bytes = [b"\x7fELF before", &MARK[..]].concat();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((rows.len() as u32).to_le_bytes());
        for (address, len, of, name) in rows {
            bytes.extend(address.to_le_bytes());
            bytes.extend(len.to_le_bytes());
            for (text, width) in [(of, OF), (name, NAME)] {
                let mut field = text.as_bytes().to_vec();
                field.resize(width, 0);
                bytes.extend(field);
            }
        }
        bytes.extend(b"behind");
        bytes
    }

    const COUNT: (u64, u32, &str, &str) = (STATE_ADDRESS + 40, 2, "INT", "COUNT");

    #[test]
    fn the_table_in_an_executable_is_read_back() {
        let expected = Retained {
            name: "COUNT".into(),
            of: "INT".into(),
            offset: HEAD + 40,
            len: 2,
        };
        assert_eq!(retained(&compiled(&[COUNT])), Ok(vec![expected]));
        assert_eq!(retained(&compiled(&[])), Ok(vec![]));
        assert_eq!(retained(b"of an older build"), Ok(vec![]));
        let more = [
            (STATE_ADDRESS, 127, "STRING", "LABEL"),
            (STATE_ADDRESS + 128, 24, "INT[3][4]", "TABLE"),
        ];
        let read = retained(&compiled(&more)).unwrap();
        let lens = read.iter().map(|it| (&*it.of, it.len));
        assert!(lens.eq([("STRING", 127), ("INT[3][4]", 24)]), "{read:?}");
        let longest = "N".repeat(NAME);
        let read = retained(&compiled(&[(STATE_ADDRESS, 16, "TIME", &longest)])).unwrap();
        assert_eq!(read[0].name, longest);
    }

    #[test]
    fn a_damaged_table_is_refused() {
        let wrong = [
            (STATE_ADDRESS - 1, 2, "INT", "COUNT"),
            (STATE_ADDRESS, 4, "INT", "COUNT"),
            (STATE_ADDRESS, u32::MAX, "INT", "COUNT"),
            (STATE_ADDRESS, 2, "WIDE", "COUNT"),
            (STATE_ADDRESS, 2, "INT", ""),
            (STATE_ADDRESS, 1, "STRING", "LABEL"),
            (STATE_ADDRESS, 24, "INT[3][5]", "TABLE"),
            (STATE_ADDRESS, 24, "INT[3", "TABLE"),
        ];
        for row in wrong {
            assert_eq!(retained(&compiled(&[row])), Err(Damaged), "{row:?}");
        }
        let whole = compiled(&[COUNT]);
        assert_eq!(retained(&whole[..whole.len() - 20]), Err(Damaged), "cut");
        assert_eq!(
            retained(&[&whole[..], &whole].concat()),
            Err(Damaged),
            "twice"
        );
        let at = b"\x7fELF before".len() + MARK.len();
        for (place, value) in [(at, 2), (at + 7, 0xff)] {
            let mut bent = whole.clone();
            bent[place] = value;
            assert_eq!(retained(&bent), Err(Damaged), "{place}");
        }
    }
}
