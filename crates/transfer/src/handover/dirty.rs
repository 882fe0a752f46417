//! Which channels have something published, found without looking at every channel.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicUsize, Ordering};

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

    /// Takes the marked channels of one word out of the set and returns them as (first, bits).
    pub fn take_word(&self) -> Option<(usize, usize)> {
        for (at, summary) in self.summary.iter().enumerate() {
            let seen = summary.load(Ordering::Acquire);
            if seen == 0 {
                continue;
            }
            let bit = seen.trailing_zeros() as usize;
            summary.fetch_and(!(1 << bit), Ordering::AcqRel);
            let word = at * BITS + bit;
            return Some((word * BITS, self.words[word].swap(0, Ordering::AcqRel)));
        }
        None
    }
}
