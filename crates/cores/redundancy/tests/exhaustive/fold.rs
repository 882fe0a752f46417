//! When two worlds are the same: a canonical form of what `derive(Hash)` tells of a world.
//!
//! Absolute values differ between worlds that behave alike, so four kinds of numbers are told apart
//! by their ranges and folded:
//!
//! - *Instants*. Each clock has its own range, so it shows to which clock a number belongs,
//!   wherever it is kept. It becomes its distance to what that clock shows at present. Instants
//!   that are older than the longest span that the machines ever add to one keep only their order
//!   and equality: they can still be compared with each other, but no deadline that derives from
//!   one lies ahead.
//! - *Identities* (sessions, challenges, secrets, states of generators, tags). They are only compared for
//!   equality, so each becomes the place of its first occurrence.
//! - *Epochs*. They are compared, and told apart by parity; so they become the distance to the last
//!   one that was written in, with its parity beside it.
//! - Everything else stays.

use std::hash::Hasher;

/// Clock number `n` shows values from `n << CLOCK_SHIFT`, `n` from 1.
pub const CLOCK_SHIFT: u32 = 40;
/// Longest time that a clock may run, nanoseconds.
const CLOCK_SPAN: u64 = 1 << 36;
const CLOCKS: u64 = 8;
/// Random numbers lie above, but for one in a million: those that are seen are checked.
pub const LOWEST_IDENTITY: u64 = 1 << 44;
/// Tags of state transfer, which follow from sessions, lie above, but for one in 4,096, which stays as it is. Spans of time
/// and rates that are kept in 32 bits lie below.
const LOWEST_TAG: u32 = 1 << 20;
/// The first epoch of a world lies here, far above all other numbers of 32 bits.
pub const FIRST_EPOCH: u32 = 1 << 30;
const EPOCH_SPAN: u32 = 1 << 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Number {
    Plain(u64),
    Instant(u64),
    Identity(u64),
    Epoch(u32),
}

/// Collects what `Hash` tells.
#[derive(Default)]
pub struct Recorder {
    numbers: Vec<Number>,
}

impl Recorder {
    fn plain(&mut self, number: u64) {
        self.numbers.push(Number::Plain(number));
    }

    fn word(&mut self, word: u64) {
        let clock = word >> CLOCK_SHIFT;
        let shown = word - (clock << CLOCK_SHIFT);
        self.numbers.push(match word {
            0 | u64::MAX => Number::Plain(word),
            _ if word >= LOWEST_IDENTITY => Number::Identity(word),
            _ if (1..=CLOCKS).contains(&clock) && shown < CLOCK_SPAN => Number::Instant(word),
            _ => Number::Plain(word),
        });
    }

    /// The canonical form. `clocks` shows each clock's present reading, `epoch` is the last one that
    /// was written in, and `old` the age from which instants keep their order only.
    pub fn fold(self, clocks: &[u64], epoch: u32, old: u64) -> Vec<u64> {
        let mut ancient: Vec<u64> = Vec::new();
        let mut known: Vec<u64> = Vec::new();
        let is_old = |at: u64| {
            let now = clocks[(at >> CLOCK_SHIFT) as usize - 1];
            at + old < now
        };
        for number in &self.numbers {
            match *number {
                Number::Instant(at) if is_old(at) && !ancient.contains(&at) => ancient.push(at),
                _ => {}
            }
        }
        ancient.sort_unstable();
        let numbers = self.numbers.into_iter();
        let tagged = numbers.map(|number| match number {
            Number::Plain(plain) => plain,
            // The clock stays in the upper bits, so ranks of several clocks can share one list.
            Number::Instant(at) if is_old(at) => {
                let rank = ancient.iter().position(|&other| other == at);
                1 << 60 | (at >> CLOCK_SHIFT) << 50 | rank.unwrap_or(0) as u64
            }
            Number::Instant(at) => {
                let now = clocks[(at >> CLOCK_SHIFT) as usize - 1];
                2 << 60 | (at >> CLOCK_SHIFT) << 50 | (at + (1 << CLOCK_SHIFT) - now)
            }
            Number::Identity(identity) => {
                let place = known.iter().position(|&other| other == identity);
                3 << 60
                    | place.unwrap_or_else(|| {
                        known.push(identity);
                        known.len() - 1
                    }) as u64
            }
            Number::Epoch(number) => {
                4 << 60 | (u64::from(number) + (1 << 32) - u64::from(epoch & !1))
            }
        });
        tagged.collect()
    }
}

impl Hasher for Recorder {
    fn finish(&self) -> u64 {
        unreachable!("only records")
    }
    /// Slices of integers come as bytes; the machines have such of 64 bits only.
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|w| self.word(u64::from_ne_bytes(*w)));
        assert!(
            rest.is_empty(),
            "what is not of 64 bits is hashed one by one"
        );
    }
    fn write_u8(&mut self, number: u8) {
        self.plain(number.into());
    }
    fn write_u16(&mut self, number: u16) {
        self.plain(number.into());
    }
    fn write_u32(&mut self, number: u32) {
        match number.checked_sub(FIRST_EPOCH) {
            Some(above) if above < EPOCH_SPAN => self.numbers.push(Number::Epoch(number)),
            _ if number >= LOWEST_TAG => self.numbers.push(Number::Identity(number.into())),
            _ => self.plain(number.into()),
        }
    }
    fn write_u64(&mut self, number: u64) {
        self.word(number);
    }
    fn write_usize(&mut self, number: usize) {
        self.plain(number as u64);
    }
    fn write_isize(&mut self, number: isize) {
        self.plain(number as u64);
    }
}
