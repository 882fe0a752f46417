//! A suite that authenticates and does not encipher, so that checkers and traces read what nodes send. Who does not know
//! the key forges a tag once in 2^64 times: enough against an attacker that the simulation makes itself.

use std::cell::Cell;

use bumpless_secure::{Keyring, Nonce, Secret, Suite, Tag};
use bumpless_wire::EnvelopeHeader;

use crate::digest::digest;

/// See the module.
#[derive(Debug)]
pub enum Readable {}

thread_local! {
    /// Whether something has opened since that was asked last.
    static OPENED: Cell<bool> = const { Cell::new(false) };
}

/// Whether something has opened since this was asked last.
pub fn take_opened() -> bool {
    OPENED.replace(false)
}

/// Bytes before the message in `datagram`.
pub fn before_message(datagram: &[u8]) -> usize {
    match EnvelopeHeader::is_one(datagram) {
        true => EnvelopeHeader::LEN,
        false => 0,
    }
}

/// The message in `datagram`, with an envelope or without.
pub fn message_in(datagram: &[u8]) -> &[u8] {
    let end = datagram.len().saturating_sub(EnvelopeHeader::TAG_LEN);
    match datagram.get(EnvelopeHeader::LEN..end) {
        Some(message) if EnvelopeHeader::is_one(datagram) => message,
        _ => datagram,
    }
}

/// The secret of this number.
pub fn secret(number: u32) -> Secret {
    let mut bytes = [0xB5; 32];
    for (byte, of_number) in bytes.iter_mut().zip(number.to_be_bytes()) {
        *byte ^= of_number;
    }
    Secret::new(bytes)
}

/// The key with which processes of the simulated pair begin.
pub fn keys() -> Keyring<Readable> {
    let keys = Keyring::new(vec![secret(0)]);
    keys.unwrap_or_else(|error| unreachable!("one key is sound: {error}"))
}

impl Suite for Readable {
    type Key = u64;

    const NAME: &'static [u8] = b"readable";

    fn derive(secret: &[u8; 32], info: &[&[u8]]) -> [u8; 32] {
        let seed = digest(0, secret);
        let sum = info.iter().fold(seed, |sum, part| digest(sum, part));
        let mut out = [0; 32];
        for (at, word) in out.chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&digest(sum, &[at as u8]).to_be_bytes());
        }
        out
    }

    fn key(bytes: &[u8; 32]) -> u64 {
        digest(1, bytes)
    }

    fn seal(key: &u64, nonce: Nonce, header: &[u8], body: &mut [u8]) -> Tag {
        tag(*key, nonce, header, body)
    }

    fn open(key: &u64, nonce: Nonce, header: &[u8], body: &mut [u8]) -> bool {
        let Some((message, given)) = body.split_last_chunk() else {
            return false;
        };
        let opens = tag(*key, nonce, header, message) == *given;
        OPENED.with(|opened| opened.set(opened.get() | opens));
        opens
    }
}

fn tag(key: u64, nonce: Nonce, header: &[u8], message: &[u8]) -> Tag {
    let sum = digest(digest(digest(key, &nonce), header), message);
    let mut tag = [0; 16];
    tag[..8].copy_from_slice(&sum.to_be_bytes());
    tag[8..].copy_from_slice(&key.wrapping_mul(sum | 1).to_be_bytes());
    tag
}
