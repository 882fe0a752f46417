//! A bounded stream between two hosts, from ordinary sockets as any application has them: what came of it, and what each
//! network did for it by the daemons' counters.
//!
//! The sender says hello until the listener answers and the port is replicated, falls silent while both look at the daemons'
//! counters, sends numbered datagrams, falls silent again, and asks for the listener's report.

mod carried;
mod datagram;
mod listen;
mod report;
mod send;
mod tally;

use std::fmt;
use std::io;
use std::net::IpAddr;

use serde_json::Value;

use crate::request::Request;

pub use carried::Carried;
pub use datagram::{LEN_MAX, LEN_MIN};
pub use listen::{Ending, Heard, ListenPlan, listen};
pub use report::{Came, Report, Spread};
pub use send::{SendPlan, Sent, send};

/// Datagrams of a stream at most.
pub const COUNT_MAX: u32 = 100_000;

/// How the daemon on this host is asked; what it refuses is told in words.
pub type Ask<'a> = &'a dyn Fn(&Request) -> Result<Value, String>;

/// Why a stream could not be sent or heard.
#[derive(Debug)]
pub enum TrialError {
    /// The daemon of this host.
    Daemon(String),
    /// Nobody answers there.
    NobodyListens(IpAddr, u16),
    /// The port is another program's.
    PortTaken(u16),
    /// Nobody has sent within the time, in seconds.
    NobodySends(u16, u64),
    /// The system.
    System {
        /// What was attempted.
        what: &'static str,
        /// What it said.
        cause: io::Error,
    },
}

impl fmt::Display for TrialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Daemon(words) => f.write_str(words),
            Self::NobodyListens(host, port) => write!(
                f,
                "nobody answers at {host}, UDP port {port}: begin there with `bumpless iprp test FILE --listen --port {port}`, and let a firewall \
                 pass that port"
            ),
            Self::PortTaken(port) => write!(
                f,
                "UDP port {port} is another program's on this host: stop that one meanwhile, or have a port monitored that nobody uses and test \
                 with that"
            ),
            Self::NobodySends(port, seconds) => write!(
                f,
                "nobody has sent to UDP port {port} within {seconds} s: begin on the other host with `bumpless iprp test FILE HOST --port {port}`, \
                 where HOST is an address of this one; --wait gives more time"
            ),
            Self::System { what, cause } => write!(f, "cannot {what}: {cause}"),
        }
    }
}

impl std::error::Error for TrialError {}

fn system(what: &'static str) -> impl Fn(io::Error) -> TrialError {
    move |cause| TrialError::System { what, cause }
}
