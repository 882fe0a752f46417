//! Which sequence numbers of a session have come (iPRP, algorithm 6), in constant time and space.

/// What a packet's number says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The first copy.
    First,
    /// A copy came before.
    Duplicate,
    /// Overtaken by a packet that is more than `MaxLost` ahead: nobody knows whether a copy came.
    VeryLate,
}

/// Words of a window that tells `max_lost` numbers behind the highest apart: one more than they fill, since the highest
/// can be anywhere in its own.
pub(crate) const fn words(max_lost: u32) -> usize {
    (max_lost / 64) as usize + 1
}

/// The state of one sequence-number space, but for its words, which lie in an arena.
///
/// A bit that is set stands for a number that has come. The paper keeps those that have not (`ListSN`); at the first
/// packet its list is empty, and whatever the first one overtook would be rejected. Here all before it may still come
/// (I-32).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    /// The highest number that has come (`HighSN`), none before the first packet.
    high: Option<u32>,
}

impl Window {
    /// The highest number that has come.
    pub(crate) const fn high(&self) -> Option<u32> {
        self.high
    }

    /// Judges `number` and notes that it has come. `words` are this window's, [`words()`] of them for each of which
    /// `max_lost` is a multiple of 64.
    #[inline]
    pub(crate) fn judge(&mut self, words: &mut [u64], number: u32) -> Verdict {
        let Some(high) = self.high else {
            words.fill(0);
            self.high = Some(number);
            mark(words, number);
            return Verdict::First;
        };
        if number > high {
            clear(words, high, number);
            self.high = Some(number);
        } else if (high - number) as usize > 64 * words.len().saturating_sub(1) {
            return Verdict::VeryLate;
        }
        match mark(words, number) {
            true => Verdict::First,
            false => Verdict::Duplicate,
        }
    }

    /// Which of the 64 numbers before the highest have come: the lowest bit is for the one right before.
    pub(crate) fn behind(&self, words: &[u64]) -> u64 {
        let Some(high) = self.high else { return 0 };
        let before = (1..=64u32).filter(|back| *back <= high);
        before.fold(0, |bits, back| {
            bits | u64::from(is_marked(words, high - back)) << (back - 1)
        })
    }
}

fn place(words: &[u64], number: u32) -> (usize, u64) {
    let word = (number / 64) as usize % words.len().max(1);
    (word, 1 << (number % 64))
}

/// Notes `number`; whether it was not noted.
#[inline]
fn mark(words: &mut [u64], number: u32) -> bool {
    let (word, bit) = place(words, number);
    let Some(word) = words.get_mut(word) else {
        return false;
    };
    let is_new = *word & bit == 0;
    *word |= bit;
    is_new
}

fn is_marked(words: &[u64], number: u32) -> bool {
    let (word, bit) = place(words, number);
    words.get(word).is_some_and(|word| word & bit != 0)
}

/// Empties the words after that of `high` up to that of `number`.
#[inline]
fn clear(words: &mut [u64], high: u32, number: u32) {
    let (first, last) = (high / 64 + 1, number / 64);
    for word in (first..=last).take(words.len()) {
        let at = word as usize % words.len();
        words[at] = 0;
    }
}

#[cfg(test)]
mod tests;
