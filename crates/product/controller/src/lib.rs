//! Cyclic executor, applications, field I/O and the simulated plant.
//!
//! An [`Executor`] runs one [`Application`] in the cycle of the first paper, section 2.2: copy-in,
//! execute, replicate state, copy-out. What surrounds it comes in through four traits: a
//! [`FieldIo`] (inputs and outputs), a [`Replication`] (the channel to the backup), an
//! [`OutputGate`] (role and right to write) and a [`Clock`]. The daemon implements them with
//! threads and sockets, a simulator with plain variables.
//!
//! Nothing here reads a clock of its own: each part that needs the time is handed a source.
#![forbid(unsafe_code)]

pub mod application;
pub mod devices;
pub mod driven;
pub mod driver_link;
pub mod executor;
pub mod fault;
pub mod field;
pub mod modbus;
pub mod pid;
pub mod plant;
pub mod quadruple_tank;
pub mod retain;
pub mod state;
pub mod successor;
pub mod synthetic;
pub mod tanks;

pub use application::{Application, CycleContext, LoadError};
pub use devices::Devices;
pub use driver_link::{DriverFailures, DriverFault, DriverLink, DriverNumber};
pub use executor::{
    Clock, CommitMode, CycleReport, Executor, ExecutorSettings, OnFailure, OnProgramFault,
    OutputGate, Permit, Ports, Replication, Role, StateInfo, TransferOutcome, Wake,
};
pub use fault::{Mishap, ProgramFault, ProgramFaultKind, Unanswered};
pub use field::{FieldError, FieldErrorKind, FieldIo, FieldSample, NoField, OutputStamp};
pub use modbus::{FieldNote, ModbusField, ModbusMap, ModbusSettings, SecureDialer};
pub use quadruple_tank::{QuadrupleTank, QuadrupleTankParameters, SetPointStep};
pub use synthetic::{Synthetic, SyntheticParameters};

use bumpless_base::{Duration, Instant};

/// Where a part reads the time from: nanoseconds of this node's monotonic clock.
///
/// Every function that returns an [`Instant`] is one.
pub trait TimeSource: Send + Sync {
    /// The time of this call.
    fn now(&self) -> Instant;

    /// Processor time that the calling thread has used so far; `None` where nobody counts it.
    fn computed(&self) -> Option<Duration> {
        None
    }
}

impl<F: Fn() -> Instant + Send + Sync> TimeSource for F {
    fn now(&self) -> Instant {
        self()
    }
}
