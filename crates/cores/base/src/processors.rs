//! Sets of processors, as Linux writes them.

use core::fmt;

/// Words of 64 processors each.
const WORDS: usize = 16;

/// A set of processors, by number.
///
/// Shown as a list, `0,2-3`, as in `smp_affinity_list` and `isolcpus=` (the kernel's admin-guide/kernel-parameters); the empty
/// one shows as nothing. [`Processors::mask`] shows it as `rps_cpus` takes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Processors([u64; WORDS]);

impl Processors {
    /// Processors have numbers below this.
    pub const END: u16 = (WORDS * 64) as u16;
    /// No processor.
    pub const NONE: Self = Self([0; WORDS]);

    /// Reads a list. `None`: it is none, a range ends before it begins, or a number is [`Self::END`] or above.
    pub fn read_list(text: &str) -> Option<Self> {
        let mut set = Self::NONE;
        if text.is_empty() {
            return Some(set);
        }
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return None;
            }
            (first..=last).for_each(|processor| set.insert(processor));
        }
        Some(set)
    }

    /// Reads a mask: words of 32 bits in hexadecimal digits, separated by commas, the last one for the processors 0 to 31.
    /// `None`: it is none.
    pub fn read_mask(text: &str) -> Option<Self> {
        let mut set = Self::NONE;
        for (at, word) in text.rsplit(',').enumerate() {
            if word.len() > 8 || word.starts_with('+') {
                return None;
            }
            let word = u64::from(u32::from_str_radix(word, 16).ok()?);
            match set.0.get_mut(at / 2) {
                Some(held) => *held |= word << (at % 2 * 32),
                None if word == 0 => {}
                None => return None,
            }
        }
        Some(set)
    }

    /// Those of one number; none if it is [`Self::END`] or above.
    pub fn one(processor: u16) -> Self {
        let mut set = Self::NONE;
        set.insert(processor);
        set
    }

    /// Adds a processor. A number of [`Self::END`] or above is left out.
    pub fn insert(&mut self, processor: u16) {
        if let Some(word) = self.0.get_mut(usize::from(processor / 64)) {
            *word |= 1 << (processor % 64);
        }
    }

    /// Adds all of another set.
    pub fn add(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word |= other;
        }
    }

    /// Whether a processor is in it.
    pub fn contains(&self, processor: u16) -> bool {
        let word = self.0.get(usize::from(processor / 64));
        word.is_some_and(|word| word >> (processor % 64) & 1 == 1)
    }

    /// Whether there is none in it.
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    /// Those that are not in `other`.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut left = *self;
        for (word, other) in left.0.iter_mut().zip(other.0) {
            *word &= !other;
        }
        left
    }

    /// The numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        (0..Self::END).filter(|&processor| self.contains(processor))
    }

    /// It as a mask.
    pub const fn mask(&self) -> Mask<'_> {
        Mask(self)
    }
}

fn number(text: &str) -> Option<u16> {
    let number = { !text.starts_with('+') }.then(|| text.parse().ok())??;
    (number < Processors::END).then_some(number)
}

impl fmt::Display for Processors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut next = 0;
        while let Some(first) = (next..Self::END).find(|&at| self.contains(at)) {
            let end = (first..Self::END).find(|&at| !self.contains(at));
            let end = end.unwrap_or(Self::END);
            match end - first {
                1 => write!(f, "{separator}{first}")?,
                _ => write!(f, "{separator}{first}-{}", end - 1)?,
            }
            (separator, next) = (",", end);
        }
        Ok(())
    }
}

/// A set of processors that shows as a mask.
#[derive(Clone, Copy, Debug)]
pub struct Mask<'a>(&'a Processors);

impl fmt::Display for Mask<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let halves = self.0.0.iter().rev();
        let halves = halves.flat_map(|word| [word >> 32, word & u64::from(u32::MAX)]);
        let mut has_begun = false;
        for word in halves.skip_while(|&word| word == 0) {
            match has_begun {
                false => write!(f, "{word:x}")?,
                true => write!(f, ",{word:08x}")?,
            }
            has_begun = true;
        }
        match has_begun {
            true => Ok(()),
            false => f.write_str("0"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn set(numbers: &[u16]) -> Processors {
        let mut set = Processors::NONE;
        numbers.iter().for_each(|&number| set.insert(number));
        set
    }

    #[test]
    fn processors_are_read_and_shown_as_the_kernel_does() {
        for (list, mask, numbers) in [
            ("", "0", &[][..]),
            ("0", "1", &[0]),
            ("0-1", "3", &[0, 1]),
            ("0,2-3,31", "8000000d", &[0, 2, 3, 31]),
            ("32", "1,00000000", &[32]),
            ("63-64", "1,80000000,00000000", &[63, 64]),
        ] {
            let set = set(numbers);
            assert_eq!(Processors::read_list(list), Some(set), "{list}");
            assert_eq!(Processors::read_mask(mask), Some(set), "{mask}");
            assert_eq!(
                (set.to_string(), set.mask().to_string()),
                (list.into(), mask.into())
            );
        }
        // With more words than there are processors, as kernels built for many show it.
        assert_eq!(
            Processors::read_mask("00000000,00000003"),
            Some(set(&[0, 1]))
        );
    }

    #[test]
    fn what_is_no_set_of_processors_is_refused() {
        for list in ["a", "1-", "-1", "3-2", "1,,2", "1024", "+1", " 1", "1:2"] {
            assert_eq!(Processors::read_list(list), None, "{list:?}");
        }
        for mask in ["", "g", "123456789", "1,", "+1"] {
            assert_eq!(Processors::read_mask(mask), None, "{mask:?}");
        }
        assert_eq!(Processors::read_mask(&["1"; 33].join(",")), None);
    }

    proptest! {
        #[test]
        fn every_set_is_read_as_it_was_shown(numbers in prop::collection::btree_set(0u16..1100, 0..40)) {
            let numbers: Vec<_> = numbers.into_iter().collect();
            let shown = set(&numbers);
            prop_assert_eq!(Processors::read_list(&shown.to_string()), Some(shown));
            prop_assert_eq!(Processors::read_mask(&shown.mask().to_string()), Some(shown));
            let possible: Vec<_> = numbers.into_iter().filter(|&it| it < Processors::END).collect();
            prop_assert_eq!(shown.iter().collect::<Vec<_>>(), possible);
        }
    }
}
