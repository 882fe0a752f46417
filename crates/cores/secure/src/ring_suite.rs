//! The suite in use: AES-256-GCM and HKDF-SHA-256, by `ring`.

use crate::state::StateSuite;
use crate::suite::{Nonce, Suite, Tag};
use crc::{CRC_64_XZ, Crc, Table};
use ring::{aead, hkdf};
use zeroize::Zeroizing;

/// AES-256-GCM (NIST SP 800-38D) with keys by HKDF-SHA-256 (RFC 5869).
///
/// On processors with instructions for AES it enciphers and authenticates a full packet in less time than any keyed
/// hash takes to authenticate it alone (`spec/security.md`).
#[derive(Clone, Copy, Debug, Default)]
pub struct RingSuite;

struct Bytes32;

impl hkdf::KeyType for Bytes32 {
    fn len(&self) -> usize {
        32
    }
}

fn key(algorithm: &'static aead::Algorithm, bytes: &[u8; 32]) -> aead::LessSafeKey {
    let bytes = Zeroizing::new(*bytes);
    match aead::UnboundKey::new(algorithm, &*bytes) {
        Ok(key) => aead::LessSafeKey::new(key),
        Err(_) => unreachable!("the key has the length that the algorithm asks for"),
    }
}

fn seal(key: &aead::LessSafeKey, nonce: Nonce, header: &[u8], body: &mut [u8]) -> Tag {
    let nonce = aead::Nonce::assume_unique_for_key(nonce);
    let sealed = key.seal_in_place_separate_tag(nonce, aead::Aad::from(header), body);
    let mut tag = [0; 16];
    // It fails only for more than 64 GB. A tag of zeros opens nowhere.
    if let Ok(sealed) = sealed {
        tag.copy_from_slice(sealed.as_ref());
    }
    tag
}

fn open(key: &aead::LessSafeKey, nonce: Nonce, header: &[u8], body: &mut [u8]) -> bool {
    let nonce = aead::Nonce::assume_unique_for_key(nonce);
    key.open_in_place(nonce, aead::Aad::from(header), body)
        .is_ok()
}

fn derive(secret: &[u8; 32], info: &[&[u8]]) -> [u8; 32] {
    let mut bytes = [0; 32];
    let secret = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(secret);
    let derived = secret.expand(info, Bytes32);
    let filled = derived.and_then(|derived| derived.fill(&mut bytes));
    // It fails only for more than 255 times 32 bytes.
    debug_assert!(filled.is_ok());
    bytes
}

macro_rules! suite {
    ($suite:ty, $name:literal, $algorithm:expr) => {
        impl Suite for $suite {
            type Key = aead::LessSafeKey;

            const NAME: &'static [u8] = $name;

            fn derive(secret: &[u8; 32], info: &[&[u8]]) -> [u8; 32] {
                derive(secret, info)
            }
            fn key(bytes: &[u8; 32]) -> Self::Key {
                key($algorithm, bytes)
            }
            fn seal(key: &Self::Key, nonce: Nonce, header: &[u8], body: &mut [u8]) -> Tag {
                seal(key, nonce, header, body)
            }
            fn open(key: &Self::Key, nonce: Nonce, header: &[u8], body: &mut [u8]) -> bool {
                open(key, nonce, header, body)
            }
        }
    };
}

suite!(RingSuite, b"AES-256-GCM", &aead::AES_256_GCM);
suite!(RingChaCha, b"ChaCha20-Poly1305", &aead::CHACHA20_POLY1305);

/// ChaCha20-Poly1305 (RFC 8439): fast where the processor has no instructions for AES.
#[derive(Clone, Copy, Debug, Default)]
pub struct RingChaCha;

/// What seals states.
#[derive(Clone, Copy, Debug, Default)]
pub struct RingStates;

const CHECKSUM: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_XZ);

impl StateSuite for RingStates {
    type Aes = RingSuite;
    type ChaCha = RingChaCha;

    fn checksum(bytes: &[u8]) -> u64 {
        CHECKSUM.checksum(bytes)
    }
}
