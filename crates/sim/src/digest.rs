//! A fast digest for traces and states. Not for secrets: nobody attacks his own simulation.

use bumpless_base::random::mix64;

const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;

/// A digest of `bytes` that starts from `seed`; equal on every machine.
pub fn digest(seed: u64, bytes: &[u8]) -> u64 {
    let mut lanes = [seed, seed ^ 0x5851_f42d_4c95_7f2d, !seed, seed ^ PRIME];
    let (pairs, rest) = bytes.as_chunks::<64>();
    for pair in pairs {
        absorb(&mut lanes, pair, 0);
        absorb(&mut lanes, pair, 32);
    }
    let mut last = [0; 64];
    last[..rest.len()].copy_from_slice(rest);
    if !rest.is_empty() {
        absorb(&mut lanes, &last, 0);
    }
    if rest.len() > 32 {
        absorb(&mut lanes, &last, 32);
    }
    let folded = lanes.iter().fold(bytes.len() as u64, |sum, &lane| {
        mix64(sum.rotate_left(17) ^ lane)
    });
    mix64(folded)
}

/// Takes in the 32 bytes of `pair` from `start` on.
#[inline(always)]
fn absorb(lanes: &mut [u64; 4], pair: &[u8; 64], start: usize) {
    for (at, lane) in lanes.iter_mut().enumerate() {
        let word = pair[start + 8 * at..].first_chunk().copied();
        *lane = (*lane ^ u64::from_le_bytes(word.unwrap_or_default()))
            .wrapping_mul(PRIME)
            .rotate_left(29);
    }
}

/// `sum` with `word` mixed in.
pub const fn mix_in(sum: u64, word: u64) -> u64 {
    (sum ^ word).wrapping_mul(PRIME).rotate_left(31) ^ (sum >> 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_and_the_length_count() {
        let bytes = [7u8; 100];
        let whole = digest(1, &bytes);
        for bit in 0..800 {
            let mut other = bytes;
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(digest(1, &other), whole);
        }
        assert_ne!(digest(1, &bytes[..99]), whole);
        assert_ne!(digest(1, &[0; 32]), digest(1, &[0; 33]));
        assert_ne!(digest(2, &bytes), whole);
    }
}
