//! Protected datagrams: every message in an envelope of its own, enciphered and authenticated.
//!
//! `spec/security.md` has the clauses (N-1, N-2, ...). A [`Sealer`] makes envelopes, an [`Opener`] for each sender
//! opens them. What it returns was sealed by a holder of the secret, for this node, on this link, and was not returned
//! before. Whatever else comes changes nothing and is named as a [`Refusal`].
//!
//! | module | owns |
//! |---|---|
//! | `keys` | secrets, their identifiers, which of them are in use |
//! | `suite` | what is asked of the cryptography; `ring_suite` gives it |
//! | `sealer` | making envelopes |
//! | `opener` | opening them: keys of processes that are known, and how many unknown ones are tried |
//! | `window` | which counters have been seen |
//! | `group` | keys that a key server gives to many: which seals and which open when |
//! | `state` | the same for whole states: sealed before they are sent, opened when they are read |
//!
//! No clock is read and no randomness drawn here: `now` and the origin come in. After start nothing is allocated.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod group;
mod keys;
mod opener;
mod place;
#[cfg(feature = "ring")]
mod ring_suite;
mod sealer;
pub mod state;
mod suite;
mod window;

pub use keys::{Keyring, KeyringError, Secret};
pub use opener::{Opener, Refusal, Route};
pub use place::place;
#[cfg(feature = "ring")]
pub use ring_suite::{RingChaCha, RingStates, RingSuite};
pub use sealer::{Destination, SealError, Sealer, SealingKey};
pub use suite::{Nonce, Suite, Tag};
