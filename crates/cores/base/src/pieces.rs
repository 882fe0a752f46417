//! A state that need not be copied all at once.

/// Which of the states that something has had. Two that are equal are the same state, byte for byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revision {
    /// Whose: no two in a process have the same number.
    pub of: u64,
    /// The how manyth; a later one is higher.
    pub number: u64,
}

/// A state that can be copied piece by piece from the front, or only where it has changed.
pub trait Pieces {
    /// Bytes of the whole state; the same in all states of which a [`Revision`] names the same owner.
    fn size(&self) -> usize;

    /// Which state it is; `None`: what has changed since an earlier one is not known.
    fn revision(&self) -> Option<Revision>;

    /// Copies the bytes from `at` on over `piece`. With `held`, `piece` has those of that earlier state already.
    fn copy(&self, at: usize, piece: &mut [u8], held: Option<Revision>);

    /// Copies all of it to the front of `into` and returns its length; nothing, and 0, if it does not fit.
    fn copy_whole(&self, into: &mut [u8]) -> usize {
        match into.get_mut(..self.size()) {
            Some(whole) => {
                self.copy(0, whole, None);
                whole.len()
            }
            None => 0,
        }
    }
}

/// Copies what of `part`, which begins at `from` in a whole, lies in `piece`, which begins at `at` in it.
pub fn overlay(piece: &mut [u8], at: usize, part: &[u8], from: usize) {
    let (start, end) = (at.max(from), (at + piece.len()).min(from + part.len()));
    if let Some(len) = end.checked_sub(start)
        && let Some(into) = piece.get_mut(start - at..start - at + len)
        && let Some(bytes) = part.get(start - from..start - from + len)
    {
        into.copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_laid_over_whatever_piece_of_it_is_asked_for() {
        let (part, from) = (*b"abcd", 3);
        for at in 0..10 {
            for len in 0..10 {
                let mut piece = [b'.'; 10];
                overlay(&mut piece[..len], at, &part, from);
                for (offset, &byte) in piece.iter().enumerate() {
                    let within = (at + offset).checked_sub(from).filter(|_| offset < len);
                    let expected = within.and_then(|it| part.get(it)).unwrap_or(&b'.');
                    assert_eq!(byte, *expected, "{at} {len} {offset}");
                }
            }
        }
    }
}
