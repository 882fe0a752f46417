//! What tells a binary from every other one (H-25).

use std::fs;
use std::path::Path;

use super::BuildFault;
use crate::Hash;

/// What stands in front of the place for it; plc.c has it.
const MARK: &[u8] = b"BUMPLESSIDENTITY";
const LEN: usize = 32;
/// No PLC program is larger by far; what is, is not searched.
const LARGEST: usize = 16 << 20;

/// Marks that are looked behind: a binary with this crate in it has one, too.
const MARKS: usize = 8;

/// Whether `binary` is an executable that [`build`](super::build) has made, and nothing has changed since.
pub fn is_built(binary: &[u8]) -> bool {
    places(binary).any(|at| is_identity(binary, at))
}

/// Whether `binary` is what [`build`](super::build) makes, or was: it has a place for an identity, and none fits that is
/// there. That is so of any executable with this crate in it as well.
pub fn is_built_and_changed(binary: &[u8]) -> bool {
    places(binary).next().is_some() && !is_built(binary)
}

/// Where an identity may stand in an executable.
fn places(binary: &[u8]) -> impl Iterator<Item = usize> {
    let searched = binary.starts_with(b"\x7fELF") && binary.len() <= LARGEST;
    let parts = binary.windows(MARK.len() + LEN).enumerate();
    let marked = parts.filter(move |(_, part)| searched && part.starts_with(MARK));
    marked.map(|(at, _)| at + MARK.len()).take(MARKS)
}

/// Whether the bytes from `at` on are the hash of `binary` without them.
fn is_identity(binary: &[u8], at: usize) -> bool {
    let place = at..at + LEN;
    let mut before = binary.to_vec();
    before[place.clone()].fill(0);
    Hash::of(&before).0[..] == binary[place]
}

/// Puts the SHA-256 of the file at `executable` behind the mark in it.
pub(super) fn put(executable: &Path) -> Result<(), BuildFault> {
    let cannot = |error: std::io::Error| {
        BuildFault::one(format!(
            "{} cannot be finished: {error}",
            executable.display()
        ))
    };
    let mut binary = fs::read(executable).map_err(cannot)?;
    let hash = Hash::of(&binary);
    let place = place(&mut binary).ok_or_else(|| {
        BuildFault::one("what was linked has not one place for its identity: the compiler has removed or doubled it; name another one with --cc")
    })?;
    place.copy_from_slice(&hash.0);
    fs::write(executable, binary).map_err(cannot)
}

/// The bytes behind the only mark, all still zero.
fn place(binary: &mut [u8]) -> Option<&mut [u8]> {
    let whole = MARK.len() + LEN;
    let marked = |part: &[u8]| part.starts_with(MARK) && part[MARK.len()..].iter().all(|&b| b == 0);
    let mut found = binary
        .windows(whole)
        .enumerate()
        .filter(|(_, part)| marked(part));
    let (at, _) = found.next()?;
    if found.next().is_some() {
        return None;
    }
    Some(&mut binary[at + MARK.len()..at + whole])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_has_one_place_or_none() {
        let once = [b"x", MARK, &[0; LEN], b"y"].concat();
        let mut binary = once.clone();
        let place_of = place(&mut binary).unwrap();
        assert_eq!(place_of, [0; LEN]);
        place_of.fill(7);
        assert_eq!(binary, [b"x", MARK, &[7; LEN], b"y"].concat());
        assert!(place(&mut binary).is_none(), "it is put once");
        assert!(place(&mut [&once[..], &once[..]].concat()).is_none());
    }

    #[test]
    fn only_what_was_built_and_is_as_it_was_built_is_known_by_its_identity() {
        let mut binary = [
            &b"\x7fELF"[..],
            MARK,
            b"not this one",
            MARK,
            &[0; LEN],
            b"code",
        ]
        .concat();
        assert!(!is_built(&binary));
        let at = binary.len() - LEN - 4;
        let hash = Hash::of(&binary);
        binary[at..at + LEN].copy_from_slice(&hash.0);
        assert!(is_built(&binary) && !is_built_and_changed(&binary));
        *binary.last_mut().unwrap() ^= 1;
        assert!(
            !is_built(&binary) && is_built_and_changed(&binary),
            "changed since"
        );
        // This program has the mark as well.
        let own = fs::read("/proc/self/exe").unwrap();
        assert!(!is_built(&own));
    }
}
