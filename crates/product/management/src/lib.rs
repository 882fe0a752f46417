//! Management of a pair (RSTP-MM; first paper, 7.3): sessions between its nodes, and with witnesses, in which each shows
//! by its certificate who it is. They give fresh keys for packets and tell what both must agree upon.
//!
//! `spec/management.md` has the clauses (M-1, M-2, ...). Nothing here has a deadline: a pair goes on with the keys that it
//! has when every session is lost.
//!
//! | module | owns |
//! |---|---|
//! | `message` | what is said in a session, and how it is written |
//! | `session` | TLS, who is at the other end, the secret; no socket, no clock |
//! | `keys` | which secrets open and seal when |
//! | `connection`, `listen` | a session on a TCP connection; where others' are taken |
//! | `identities` | certificate and revocation list, read again when they change |
//! | `service` | the thread that calls and answers |
#![forbid(unsafe_code)]

mod connection;
mod identities;
mod keys;
mod listen;
mod message;
mod service;
mod session;

pub use connection::{Connection, Ended};
pub use identities::Identities;
pub use keys::{Keys, RETIRED_AFTER, Ring};
pub use listen::{BACKLOG, listen};
pub use message::{LONGEST, LinkProfile, Malformed, Message, Profile, take, write};
pub use service::{Carried, Errand, Host, Partner, PartnerState, Path, Running, Setup, start};
pub use session::{Event, Session, SessionError, SessionSecret};
