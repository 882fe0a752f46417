//! The states that are sent, and what the receiver says of them.

use std::hash::{BuildHasher, RandomState};

use bytes::Bytes;

/// How far apart the beginnings of two states can lie in the pool.
const SPREAD: usize = 64 * 1024;

/// Pseudo-random bytes from which every state is a slice at a pseudo-random place: each transfer has other
/// bytes, and making them costs nothing beside the transfer.
pub struct Pool {
    bytes: Bytes,
}

impl Pool {
    pub fn new(max_size: usize) -> Self {
        let mut random = Random::new();
        let words = (max_size + SPREAD).div_ceil(8);
        let bytes: Vec<u8> = (0..words)
            .flat_map(|_| random.next().to_le_bytes())
            .collect();
        Self {
            bytes: bytes.into(),
        }
    }

    pub fn payloads(&self) -> Payloads {
        Payloads {
            pool: self.bytes.clone(),
            random: Random::new(),
        }
    }
}

/// One channel's states.
pub struct Payloads {
    pool: Bytes,
    random: Random,
}

impl Payloads {
    /// The next state; `size` is at most the pool's largest.
    pub fn next(&mut self, size: usize) -> Bytes {
        let place = usize::try_from(self.random.next() >> 48).unwrap_or_default() / 8 * 8;
        self.pool.slice(place..place + size)
    }
}

/// Vigna's xorshift64*, "An experimental exploration of Marsaglia's xorshift generators" (2016).
struct Random(u64);

impl Random {
    fn new() -> Self {
        Self(RandomState::new().hash_one(0) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// What the receiving application sends back of a whole state: it depends on the length and on the first
/// and last eight bytes, so that only who has read the end can tell it.
pub fn digest(state: &[u8]) -> u64 {
    let edge = state.len().min(8);
    let word = |part: &[u8]| {
        let mut word = [0; 8];
        word[..edge].copy_from_slice(part);
        u64::from_le_bytes(word)
    };
    let first = word(&state[..edge]);
    let last = word(&state[state.len() - edge..]);
    let mixed = (state.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ first.wrapping_mul(0xbf58_476d_1ce4_e5b9)
        ^ last.rotate_left(32);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_depends_on_the_length_and_on_both_ends() {
        let state = [7_u8; 100];
        let mut other = state;
        other[0] = 8;
        assert_ne!(digest(&state), digest(&other));
        let mut other = state;
        other[99] = 8;
        assert_ne!(digest(&state), digest(&other));
        assert_ne!(digest(&state), digest(&state[..99]));
        assert_ne!(digest(&[]), digest(&[0]));
    }

    #[test]
    fn states_differ_and_the_largest_fits() {
        let mut payloads = Pool::new(1000).payloads();
        let states: Vec<_> = (0..1000).map(|_| payloads.next(1000)).collect();
        assert!(states.iter().all(|state| state.len() == 1000));
        assert!(states.windows(2).filter(|two| two[0] == two[1]).count() < 5);
    }
}
