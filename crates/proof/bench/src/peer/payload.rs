//! What is transferred: bytes that differ from state to state, made and checked at small cost.
//!
//! The first 8 bytes of a state are its stamp, the last 8 follow from stamp and length; between them
//! lie pseudo-random bytes at a place that changes. A receiver that checks both ends has seen that the
//! state is whole; no sender can leave out what was sent before.

use bumpless_base::Random;
use bumpless_base::random::mix64;

const STEP: usize = 64;
const PLACES: usize = 64;

/// Makes states.
pub struct Payload {
    bytes: Vec<u8>,
    made: u64,
    channel: u64,
}

impl Payload {
    /// States of at most `max_size` bytes; `channel` makes them differ from other channels'.
    pub fn new(max_size: usize, channel: u64) -> Self {
        let mut random = Random::new(channel + 1);
        let words = (max_size + PLACES * STEP).div_ceil(8);
        let bytes = (0..words)
            .flat_map(|_| random.next_u64().to_ne_bytes())
            .collect();
        Self {
            bytes,
            made: 0,
            channel,
        }
    }

    /// The next state, `size` bytes of at most `max_size`.
    pub fn next(&mut self, size: usize) -> &[u8] {
        self.made += 1;
        let place = (self.made as usize % PLACES) * STEP;
        let end = (place + size).min(self.bytes.len());
        let state = &mut self.bytes[place..end];
        stamp(state, mix64(self.made ^ (self.channel << 40)));
        state
    }
}

fn stamp(state: &mut [u8], value: u64) {
    let size = state.len();
    if let Some(first) = state.first_chunk_mut() {
        *first = value.to_be_bytes();
    }
    if size >= 16
        && let Some(last) = state.last_chunk_mut()
    {
        *last = mix64(value ^ size as u64).to_be_bytes();
    }
}

/// Whether `state` is whole: its end follows from its beginning and its length. States below 16 bytes
/// have no room for that and pass.
pub fn is_whole(state: &[u8]) -> bool {
    if state.len() < 16 {
        return true;
    }
    let (Some(first), Some(last)) = (state.first_chunk(), state.last_chunk()) else {
        return true;
    };
    mix64(u64::from_be_bytes(*first) ^ state.len() as u64) == u64::from_be_bytes(*last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_whole_and_no_two_alike() {
        let mut payload = Payload::new(1000, 0);
        let mut before = payload.next(1000).to_vec();
        for _ in 0..200 {
            let state = payload.next(1000).to_vec();
            assert!(is_whole(&state));
            let same = state.iter().zip(&before).filter(|(a, b)| a == b).count();
            assert!(same < 50, "{same} of 1000 bytes are alike");
            before = state;
        }
        assert_ne!(
            Payload::new(100, 1).next(100),
            Payload::new(100, 2).next(100)
        );
    }

    #[test]
    fn a_cut_or_mixed_state_is_not_whole() {
        let mut payload = Payload::new(128, 0);
        let one = payload.next(128).to_vec();
        let other = payload.next(128).to_vec();
        assert!(!is_whole(&one[..127]));
        let mixed = [&one[..64], &other[64..]].concat();
        assert!(!is_whole(&mixed));
    }
}
