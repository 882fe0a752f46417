//! Sessions by certificate (TLS 1.3) over TCP connections that never block, whatever is said in them: the management of a
//! pair, keys of a group.
//!
//! | module | owns |
//! |---|---|
//! | `tls` | TLS, and who is at the other end; no socket, no clock |
//! | `connection` | what is said over TLS on a TCP connection, and for how long somebody may be silent |
//! | `ended` | why a session, or its connection, ends |
//! | `listen` | where connections of others are taken |
//! | `identities` | certificate and revocation list, read again when they change |
#![forbid(unsafe_code)]

mod connection;
mod ended;
mod identities;
mod listen;
mod tls;

pub use connection::{Connection, Conversation};
pub use ended::{Ended, SessionError};
pub use identities::Identities;
pub use listen::{BACKLOG, absent, listen};
pub use tls::{Step, Tls};
