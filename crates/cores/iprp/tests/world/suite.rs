//! Cryptography that is quick and tells forgeries apart, but hides nothing from anybody who reads this file.

use bumpless_base::random::mix64;
use bumpless_secure::{Nonce, Suite, Tag};

pub struct TestSuite;

fn absorb(mut state: u64, bytes: &[u8]) -> u64 {
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = mix64(state ^ u64::from_le_bytes(word)).wrapping_add(chunk.len() as u64);
    }
    mix64(state)
}

fn tag(key: u64, nonce: Nonce, header: &[u8], body: &[u8]) -> Tag {
    let state = absorb(absorb(absorb(key, &nonce), header), body);
    let mut tag = [0; 16];
    tag[..8].copy_from_slice(&state.to_le_bytes());
    tag[8..].copy_from_slice(&mix64(state).to_le_bytes());
    tag
}

impl Suite for TestSuite {
    type Key = u64;
    const NAME: &'static [u8] = b"test";

    fn derive(secret: &[u8; 32], info: &[&[u8]]) -> [u8; 32] {
        let state = info
            .iter()
            .fold(absorb(1, secret), |state, part| absorb(state, part));
        let mut bytes = [0; 32];
        for (at, word) in bytes.chunks_mut(8).enumerate() {
            word.copy_from_slice(&mix64(state + at as u64).to_le_bytes());
        }
        bytes
    }

    fn key(bytes: &[u8; 32]) -> u64 {
        absorb(2, bytes)
    }

    fn seal(key: &u64, nonce: Nonce, header: &[u8], body: &mut [u8]) -> Tag {
        let tag = tag(*key, nonce, header, body);
        body.iter_mut().for_each(|byte| *byte ^= *key as u8 | 1);
        tag
    }

    fn open(key: &u64, nonce: Nonce, header: &[u8], body: &mut [u8]) -> bool {
        let Some((body, found)) = body.split_last_chunk_mut::<16>() else {
            return false;
        };
        body.iter_mut().for_each(|byte| *byte ^= *key as u8 | 1);
        tag(*key, nonce, header, body) == *found
    }
}
