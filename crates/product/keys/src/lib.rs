//! How keys of a group come from a key server (`spec/security.md`, N-87 and further), in the manner of the security key
//! service of OPC UA (Part 14): a member asks, and is told of each change at once.
//!
//! | module | owns |
//! |---|---|
//! | `message` | what is said, and how it is written |
//! | `session` | what is heard in a session; TLS and connections are those of `bumpless-sessions` |
//! | `member` | which server is asked when, and what is taken over |
//! | `service` | the thread of a node that asks |
#![forbid(unsafe_code)]

mod member;
mod message;
mod service;
mod session;

pub use member::{Member, Server};
pub use message::{GROUP_MAX, LONGEST, Malformed, Message, Refused, take, write};
pub use service::{Host, Running, Setup, State, start};
pub use session::{PROTOCOL, Session};

/// A session and its TCP connection.
pub type Connection = bumpless_sessions::Connection<Session>;

/// The second part of the name in a key server's certificate, in which a node has its pair.
pub const KEYS: &str = "keys";
