//! Which counters of one sender have been seen.

/// Counters that a window tells apart: packets may overtake each other by as many.
const SPAN: u64 = 2048;
const WORDS: usize = (SPAN / 64) as usize;

/// The counters seen last (as in RFC 6479, a ring of words that is never shifted).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    words: [u64; WORDS],
    /// The counter above all that were seen.
    next: u64,
}

impl Window {
    /// Nothing has been seen.
    pub(crate) const fn new() -> Self {
        Self {
            words: [0; WORDS],
            next: 0,
        }
    }

    /// Whether `counter` has not been seen. One that is too far behind to tell counts as seen.
    pub(crate) fn is_new(&self, counter: u64) -> bool {
        let (word, bit) = place(counter);
        counter >= self.next || (self.oldest() <= counter && self.words[word] & bit == 0)
    }

    /// Notes that `counter` has been seen.
    pub(crate) fn note(&mut self, counter: u64) {
        if counter < self.oldest() {
            return;
        }
        if counter >= self.next {
            self.advance(counter);
        }
        let (word, bit) = place(counter);
        self.words[word] |= bit;
    }

    /// The lowest counter of which it is known whether it was seen: in the word that is overwritten next, none is.
    const fn oldest(&self) -> u64 {
        (self.next.div_ceil(64) * 64).saturating_sub(SPAN)
    }

    /// Empties the words up to that of `counter`.
    fn advance(&mut self, counter: u64) {
        let (first, last) = (self.next.div_ceil(64), counter / 64);
        for word in (first..=last).take(WORDS) {
            self.words[(word % WORDS as u64) as usize] = 0;
        }
        self.next = counter + 1;
    }
}

const fn place(counter: u64) -> (usize, u64) {
    ((counter / 64 % WORDS as u64) as usize, 1 << (counter % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    /// Steps that go on, overtake, repeat, fall far back, and leap.
    fn counters() -> impl Strategy<Value = alloc::vec::Vec<u64>> {
        let step = prop_oneof![
            8 => Just(1i64),
            4 => -5..5i64,
            2 => -2100..2100i64,
            1 => -9000..9000i64,
            1 => Just(1 << 40),
        ];
        proptest::collection::vec(step, 1..400).prop_map(|steps| {
            let mut at = 0i64;
            let next = |step: i64| {
                at = (at + step).max(0);
                at as u64
            };
            steps.into_iter().map(next).collect()
        })
    }

    proptest! {
        #[test]
        fn a_counter_is_new_once_and_what_is_not_far_behind_is(counters in counters()) {
            let (mut window, mut seen) = (Window::new(), BTreeSet::new());
            for counter in counters {
                let highest = seen.last().copied().unwrap_or(0);
                let new = window.is_new(counter);
                if seen.contains(&counter) {
                    prop_assert!(!new, "{counter} came twice");
                } else if counter + SPAN - 64 > highest {
                    prop_assert!(new, "{counter}, after {highest}");
                }
                if new {
                    window.note(counter);
                    seen.insert(counter);
                }
            }
        }
    }
}
