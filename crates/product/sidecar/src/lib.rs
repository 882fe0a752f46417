//! Control programs of users in a process of their own (`spec/sidecar.md`).
//!
//! [`Sidecar::start`] starts one and is an [`Application`](bumpless_controller::Application) to the executor:
//! inputs and outputs pass through memory that both processes share, and so does the state, of which a copy is
//! kept here after each cycle that ended well. A program that dies, hangs or answers wrongly is ended and started
//! again from that copy.
//!
//! [`Driver`] does as much for a field driver, which speaks a field bus for the node.
//!
//! [`plc`] makes a program for it from the C that IEC 61131-3 compilers generate.

mod ask;
mod command;
mod committed;
mod conversion;
mod driver;
mod fault;
mod keeper;
pub mod plc;
mod process;
mod processor;
mod running;
mod sidecar;

pub use ask::{Told, ask};
pub use command::{Command, Hash, Limits, Shape};
pub use conversion::{ByProgram, ByVariables};
pub use driver::{Driver, DriverBoard, DriverCause, DriverOrder, DriverState};
pub use fault::{Cause, Fault, HowItEnded, StartCause, StartFault};
pub use sidecar::{Counts, Sidecar};
