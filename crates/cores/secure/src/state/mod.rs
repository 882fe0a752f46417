//! The security handler of states (first paper, 7.5, table 19): a whole state is sealed where it lies before it is sent,
//! and opened when it is read. It works in the threads of applications, above the transfer and its packets.
//!
//! `spec/security.md` has the clauses (N-60 and further). A [`StateSealer`] makes sealed states, a [`StateOpener`] opens
//! those of one channel. Neither reads a clock or draws randomness: times and origins come in.

mod header;
mod key;
mod opener;
mod refusal;
mod replay;
mod sealer;

pub use header::{Method, StateHeader};
pub use opener::{Expected, StateOpener};
pub use refusal::StateRefusal;
pub use replay::Replay;
pub use sealer::{StateSealError, StateSealer};

use crate::suite::Suite;

/// What the handler asks of the cryptography.
pub trait StateSuite {
    /// AES-256-GCM, and the derivation of all keys.
    type Aes: Suite;
    /// ChaCha20-Poly1305.
    type ChaCha: Suite;
    /// A check sequence over bytes, against faults and not against people.
    fn checksum(bytes: &[u8]) -> u64;
}

/// Of which channel in which direction states are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateWay {
    /// The channel's number.
    pub channel: u16,
    /// The number of the node that seals.
    pub from: u8,
}
