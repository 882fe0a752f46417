//! iPRP between two hosts of this machine: the demonstration, the evaluation of the paper, and torture.
//!
//! | module | owns |
//! |---|---|
//! | `rights` | what it takes, and a user namespace where that is missing |
//! | `relay`, `port` | the networks: loss, delay, cuts, and a record of every copy |
//! | `hosts`, `site` | two hosts in namespaces, their daemons and files |
//! | `flow` | ordinary programs that send and receive |
//! | `stalls` | when this machine stood still |
//! | `demo` | a stream, a network that is cut, and a picture |
//! | `evaluate` | the tables and the figure of the paper |
//! | `torture` | what networks, hosts and people do, in every combination, and what others are known to fail at |

pub mod demo;
pub mod evaluate;
mod flow;
mod hosts;
mod port;
mod relay;
mod rights;
mod site;
mod stalls;
pub mod torture;

use std::fmt;

/// Why nothing came of it. Nothing is left.
#[derive(Debug)]
pub enum LabError {
    /// The machine does not permit it, or lacks something; what, and what to do.
    Impossible(String),
    /// It was told to stop.
    Stopped,
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Impossible(why) => f.write_str(why),
            Self::Stopped => f.write_str("stopped before the end; nothing is left of it"),
        }
    }
}

impl std::error::Error for LabError {}

fn impossible(error: impl fmt::Display) -> LabError {
    LabError::Impossible(error.to_string())
}
