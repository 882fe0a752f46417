//! Conversations decoded from bytes, and what must hold in them.
//!
//! Each module has one function `run` that takes any bytes, does what they say, and panics when a
//! promise is broken. The fuzz targets in `fuzz/fuzz_targets` call it, and so do the property tests
//! of this crate; the same bytes always do the same.
//!
//! | module | what the bytes are | what is checked |
//! |---|---|---|
//! | [`guard`] | flows, then frames, time and work at a guard | bounded, most urgent first, every frame counted once |
//! | [`parse`] | a datagram | read and encoded back to the same bytes, or refused with a cause |
//! | [`config`] | a configuration file, or edits of a good one | read, or explained with a remedy |
//! | [`pem`] | a file with certificates, keys or revocation lists | read, or refused with a cause and a remedy |
//! | [`state`] | a file of a state on disk | read and encoded back to the same bytes, or refused; of its record only what fits is taken over |
//! | [`messages`] | what comes in a session, cut anywhere | read and written back alike, or refused for good |
//! | [`keys`] | what comes in a session with a key server, cut anywhere | read and written back alike, or refused for good; the keys of a member always make a ring |
//! | [`session`] | what somebody does to a session's bytes, or says in a session's place | both ends agree on one secret, or not at all |
//! | [`transfer`] | calls and a network's doings between sender and receiver | whole, forward, fresh, bounded, kept promise, heals |
//! | [`roles`] | the same between two nodes and their witnesses | one writer in true time, epochs grow, promises, bounded |
//! | [`iprp`] | what anybody with or without keys does to two hosts of iPRP | bounded, each datagram counted once, everything ends |
//! | [`open`] | what an attacker does to envelopes and sealed states on their way | opened once, as it was, where it belongs; otherwise refused with a cause |
#![forbid(unsafe_code)]

mod input;

pub mod config;
pub mod guard;
pub mod iprp;
pub mod keys;
pub mod messages;
pub mod open;
pub mod parse;
pub mod pem;
pub mod roles;
pub mod session;
pub mod state;
pub mod transfer;
