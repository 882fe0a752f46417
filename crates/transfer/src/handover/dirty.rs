//! Which channels have something published, found without looking at every channel.

use crate::sync::{AtomicUsize, Ordering};
use alloc::boxed::Box;

const BITS: usize = usize::BITS as usize;

/// A set of channels that many threads add to and one thread empties. A bit in `summary` says that
/// a word of `words` may have bits, so that emptying costs what was added.
pub(crate) struct DirtyMap {
    words: Box<[AtomicUsize]>,
    summary: Box<[AtomicUsize]>,
}

impl DirtyMap {
    pub fn new(channels: usize) -> Self {
        let words = channels.div_ceil(BITS);
        let zeros = |n: usize| (0..n).map(|_| AtomicUsize::new(0)).collect();
        Self {
            words: zeros(words),
            summary: zeros(words.div_ceil(BITS)),
        }
    }

    /// Adds `channel`. What the caller wrote before is seen by whoever takes it out.
    pub fn mark(&self, channel: usize) {
        let word = channel / BITS;
        // Word first: whoever clears the summary's bit before this sets it finds it set again.
        self.words[word].fetch_or(1 << (channel % BITS), Ordering::AcqRel);
        self.summary[word / BITS].fetch_or(1 << (word % BITS), Ordering::AcqRel);
    }

    /// Whether nothing is marked; one read for every 4,096 channels.
    pub fn is_clear(&self) -> bool {
        self.summary
            .iter()
            .all(|bits| bits.load(Ordering::Relaxed) == 0)
    }

    /// Takes every channel out that was marked before, and gives it to `each`. One pass: what is
    /// marked meanwhile may stay for the next, so nobody who keeps marking keeps the caller here.
    pub fn take(&self, mut each: impl FnMut(usize)) {
        for (at, summary) in self.summary.iter().enumerate() {
            for_bits(summary.swap(0, Ordering::AcqRel), |bit| {
                let word = at * BITS + bit;
                for_bits(self.words[word].swap(0, Ordering::AcqRel), |bit| {
                    each(word * BITS + bit);
                });
            });
        }
    }
}

fn for_bits(mut bits: usize, mut each: impl FnMut(usize)) {
    while bits != 0 {
        each(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}
