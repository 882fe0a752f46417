//! Reception under load for any program on a host: `bumpless guard`.
//!
//! | module | owns |
//! |---|---|
//! | `config` | the host's file: interfaces, flows, budgets |
//! | `request` | what can be asked of a running daemon, and where |
//! | `event` | what it says of what happens |
//! | `daemon` | starting, looking after the interfaces, ending |
#![forbid(unsafe_code)]

mod config;
mod daemon;
mod event;
mod request;

pub use config::{Config, Host, sample};
pub use daemon::{Options, RunError, check_host, check_registration, flows_in_words, run};
pub use request::{Request, socket_path};
