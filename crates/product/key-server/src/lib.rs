//! The server of groups' keys: `bumpless key-server` (`spec/security.md`, N-87 and further).
//!
//! | module | owns |
//! |---|---|
//! | `config` | the server's file: where it answers, groups with their members |
//! | `store` | what is kept on disk, so that a restart goes on |
//! | `group` | one group: its keys, who has them, when they are rolled |
//! | `callers` | connections: who has shown who it is, and who has not |
//! | `error` | why it does not start, in words |
//! | `start` | starting: certificate, state, sockets |
//! | `obstacles` | what would keep this computer from running it |
//! | `service` | one turn after the other, and what is said of it |
//! | `request`, `event` | what can be asked of a running server, and what it says of what happens |
#![forbid(unsafe_code)]

mod callers;
mod config;
mod error;
mod event;
mod group;
mod obstacles;
mod request;
mod service;
mod start;
mod store;

pub use bumpless_sessions::absent;
pub use config::{Config, Group, sample};
pub use error::RunError;
pub use obstacles::obstacles;
pub use request::{Request, socket_path};
pub use start::{Options, load_identity, run};
pub use store::StoreError;
