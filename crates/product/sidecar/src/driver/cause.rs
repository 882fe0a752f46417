//! Why a driver failed, in words.

use std::fmt;
use std::io;

use bumpless_base::Duration;
use bumpless_controller::DriverFault;
use bumpless_field_driver::Fault;

use super::board::cleaned;
use crate::HowItEnded;

/// Why a driver failed.
#[derive(Debug)]
pub enum DriverCause {
    /// The system does not start it.
    Start(io::Error),
    /// It ended.
    Ended(HowItEnded),
    /// It was not ready in time.
    Slow(Duration),
    /// It says that it cannot do what it is asked to.
    Refused(String),
    /// It was given up.
    Fault(DriverFault),
}

impl From<DriverFault> for DriverCause {
    fn from(fault: DriverFault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Fault> for DriverCause {
    fn from(fault: Fault) -> Self {
        Self::Fault(DriverFault::Said(fault))
    }
}

impl fmt::Display for DriverCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(error) => write!(
                f,
                "it cannot be started: {error}; check the file that driver names"
            ),
            Self::Ended(how) => write!(f, "{how}; see what it printed"),
            Self::Slow(limit) => write!(
                f,
                "it was not ready {} ms after its start; check that it is a field driver",
                limit.as_millis()
            ),
            Self::Refused(why) => write!(f, "it refuses: {}", cleaned(why)),
            Self::Fault(DriverFault::Hung(owed)) => write!(
                f,
                "it has not answered an order for {} ms, and was ended",
                owed.as_millis()
            ),
            Self::Fault(DriverFault::Said(fault @ Fault::Version(_))) => write!(
                f,
                "it speaks {fault}; install the driver of this node's release"
            ),
            Self::Fault(DriverFault::Said(fault)) => {
                write!(f, "it said {fault}, and was ended; tell whoever made it")
            }
            Self::Fault(DriverFault::LetGo) => f.write_str(
                "it let go of the connection with the node, and was ended; a driver ends when it has no more to do",
            ),
            Self::Fault(DriverFault::Unasked) => f.write_str(
                "it said something else than it was asked, and was ended; tell whoever made it",
            ),
        }
    }
}
