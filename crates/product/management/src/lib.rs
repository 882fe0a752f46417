//! Management of a pair (RSTP-MM; first paper, 7.3): sessions between its nodes, and with witnesses, in which each shows
//! by its certificate who it is. They give fresh keys for packets and tell what both must agree upon.
//!
//! `spec/management.md` has the clauses (M-1, M-2, ...). Nothing here has a deadline: a pair goes on with the keys that it
//! has when every session is lost.
//!
//! | module | owns |
//! |---|---|
//! | `message` | what is said in a session, and how it is written |
//! | `session` | what happens by what is said, and the secret; TLS and connections are those of `bumpless-sessions` |
//! | `keys` | which secrets open and seal when |
//! | `service` | the thread that calls and answers |
#![forbid(unsafe_code)]

mod keys;
mod message;
mod service;
mod session;

pub use keys::{Keys, RETIRED_AFTER, Ring, SECRETS_MAX};
pub use message::{LONGEST, LinkProfile, Malformed, Message, Profile, take, write};
pub use service::{Carried, Errand, Host, Partner, PartnerState, Path, Running, Setup, start};
pub use session::{Event, Session, SessionSecret};

/// A session and its TCP connection.
pub type Connection = bumpless_sessions::Connection<Session>;
