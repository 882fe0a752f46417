//! A fast digest for traces and states. Not for secrets: nobody attacks his own simulation.
//!
//! It multiplies pairs of words and folds the product, as wyhash (Wang Yi, 2019) does: of a state that is
//! digested every cycle, every bit must reach every bit at no more than one product for 16 bytes.

use std::hash::Hasher;

const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
/// Without pattern: a word like one of these would hide what stands before it.
const KEYS: [u64; 4] = [
    0xa076_1d64_78bd_642f,
    0xe703_7ed1_a0b4_28db,
    0x8ebc_6af0_9c88_c6e3,
    0x5899_65cc_7537_4cc3,
];

/// Up to here one lane is quicker than to begin and end with four.
const SHORT: usize = 256;

/// A digest of `bytes` that starts from `seed`; equal on every machine.
pub fn digest(seed: u64, bytes: &[u8]) -> u64 {
    match bytes.len() {
        0..16 => few(seed, bytes),
        16..SHORT => short(seed, bytes),
        _ => long(seed, bytes),
    }
}

fn short(seed: u64, bytes: &[u8]) -> u64 {
    let pair = |chunk: &[u8; 16], sum: u64| {
        let (words, _) = chunk.as_chunks::<8>();
        let [a, b] = [words[0], words[1]].map(u64::from_le_bytes);
        folded(a ^ KEYS[0], b ^ sum)
    };
    let begun = folded(seed ^ KEYS[1], bytes.len() as u64 ^ KEYS[2]);
    let (chunks, rest) = bytes.as_chunks::<16>();
    let mut sum = chunks.iter().fold(begun, |sum, chunk| pair(chunk, sum));
    // With some bytes once more before them, which costs less than to put something else there.
    if let (false, Some(last)) = (rest.is_empty(), bytes.last_chunk()) {
        sum = pair(last, sum);
    }
    folded(sum ^ KEYS[3], PRIME)
}

fn long(seed: u64, bytes: &[u8]) -> u64 {
    let mut lanes = KEYS.map(|key| seed ^ key.rotate_left(32));
    let (blocks, rest) = bytes.as_chunks::<64>();
    for block in blocks {
        let (halves, _) = block.as_chunks::<32>();
        absorb(&mut lanes, 0, words(&halves[0]));
        absorb(&mut lanes, 2, words(&halves[1]));
    }
    let (halves, rest) = rest.as_chunks::<32>();
    for half in halves {
        absorb(&mut lanes, 0, words(half));
    }
    if let (false, Some(last)) = (rest.is_empty(), bytes.last_chunk()) {
        absorb(&mut lanes, 2, words(last));
    }
    let halves = [
        folded(lanes[0] ^ bytes.len() as u64, lanes[1] ^ KEYS[1]),
        folded(lanes[2] ^ KEYS[2], lanes[3] ^ KEYS[3]),
    ];
    folded(halves[0] ^ KEYS[0], halves[1] ^ PRIME)
}

/// Takes 32 bytes into the lanes `at` and the next.
#[inline(always)]
fn absorb(lanes: &mut [u64; 4], at: usize, words: [u64; 4]) {
    lanes[at] = folded(words[0] ^ KEYS[at], words[1] ^ lanes[at]);
    lanes[at + 1] = folded(words[2] ^ KEYS[at + 1], words[3] ^ lanes[at + 1]);
}

#[inline(always)]
fn words(bytes: &[u8; 32]) -> [u64; 4] {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|at| u64::from_le_bytes(words[at]))
}

/// Fewer than 16 bytes; some may stand in both words.
fn few(seed: u64, bytes: &[u8]) -> u64 {
    let word = |from: usize| {
        let word = bytes[from..].first_chunk().copied();
        u64::from_le_bytes(word.unwrap_or_default())
    };
    let [a, b] = match bytes.len().checked_sub(8) {
        Some(last) => [word(0), word(last)],
        None => {
            let join = |sum, &byte| sum << 8 | u64::from(byte);
            [bytes.iter().fold(0, join), 0]
        }
    };
    let begun = folded(seed ^ KEYS[1], bytes.len() as u64 ^ KEYS[2]);
    folded(folded(a ^ KEYS[0], b ^ begun) ^ KEYS[3], PRIME)
}

/// Both halves of the product.
#[inline(always)]
const fn folded(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

/// Digests what can be hashed: numbers of any width as the same word, so that machines whose `usize` differs agree.
pub struct Digester(u64);

impl Digester {
    /// One that starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }
}

impl Hasher for Digester {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0 = digest(self.0, bytes);
    }
    fn write_u8(&mut self, word: u8) {
        self.write_u64(word.into());
    }
    fn write_u16(&mut self, word: u16) {
        self.write_u64(word.into());
    }
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = mix_in(self.0, word);
    }
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as i64 as u64);
    }
}

/// `sum` with `word` mixed in.
pub const fn mix_in(sum: u64, word: u64) -> u64 {
    (sum ^ word).wrapping_mul(PRIME).rotate_left(31) ^ (sum >> 7)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::hash::Hash;

    use super::*;

    #[test]
    fn every_bit_and_the_length_count() {
        let mut seen = BTreeSet::new();
        for len in (0..150).chain([255, 256, 257, 300, 320]) {
            let bytes = vec![7u8; len];
            let whole = digest(1, &bytes);
            assert!(seen.insert(whole), "{len} bytes");
            for bit in 0..8 * len {
                let mut other = bytes.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                assert!(seen.insert(digest(1, &other)), "bit {bit} of {len} bytes");
            }
            assert_ne!(digest(2, &bytes), whole);
        }
        assert_ne!(digest(1, &[0; 32]), digest(1, &[0; 33]));
    }

    #[test]
    fn a_hash_depends_on_every_bit_and_is_the_same_on_every_machine() {
        let of = |what: &dyn Fn(&mut Digester)| {
            let mut digester = Digester::new(3);
            what(&mut digester);
            digester.finish()
        };
        let sum = of(&|it| (7usize, -7isize, Some(9u16), "word", true).hash(it));
        assert_eq!(sum, 13_187_582_983_068_249_470);
        let others = [
            of(&|it| (6usize, -7isize, Some(9u16), "word", true).hash(it)),
            of(&|it| (7usize, 7isize, Some(9u16), "word", true).hash(it)),
            of(&|it| (7usize, -7isize, None::<u16>, "word", true).hash(it)),
            of(&|it| (7usize, -7isize, Some(9u16), "work", true).hash(it)),
            of(&|it| (7usize, -7isize, Some(9u16), "word", false).hash(it)),
        ];
        assert!(others.iter().all(|other| *other != sum));
    }
}
