//! The way to a field driver's process, which whoever starts it gives: what it can be asked, and what is handed over with it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use bumpless_base::{Duration, Instant};
use bumpless_field_driver::Fault;

/// Why a driver is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverFault {
    /// It has not answered an order for so long.
    Hung(Duration),
    /// What it said is no message that it may send.
    Said(Fault),
    /// It answered something else than it was asked.
    Unasked,
    /// It has let go of the connection, or broken it.
    LetGo,
}

/// The way to a driver's process, which comes and goes. No call here may block.
pub trait DriverLink: Send {
    /// The connection with a process that has become ready since this was asked last.
    fn take(&mut self) -> Option<OwnedFd>;
    /// The process is of no use any more: another one is started in its place.
    fn give_up(&mut self, fault: DriverFault);
    /// Shows people what the driver tells them; returns whether that could be done at once.
    fn note(&mut self, text: &str) -> bool;
    /// The failures of the process that have not been told yet.
    fn failures(&mut self) -> Option<DriverFailures>;
    /// Which driver this leads to.
    fn number(&self) -> DriverNumber;
    /// The driver that this is to go on with, which another link leads to at present; `None`: it has one of its own.
    fn heir_to(&self) -> Option<DriverNumber>;
    /// The driver is to end; whoever drops this link waits for that.
    fn end(&mut self);
}

/// A driver, among all that this process has ever begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DriverNumber(pub u64);

/// Failures of a driver's process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverFailures {
    /// How many.
    pub count: u64,
    /// Why it failed last.
    pub why: Arc<str>,
}

/// A driver, and how far the conversation with it has come.
pub struct HandedOver {
    pub(crate) link: Box<dyn DriverLink>,
    pub(crate) socket: Option<OwnedFd>,
    /// Number of the order that is not answered yet, and when it was sent.
    pub(crate) pending: Option<(u32, Instant)>,
    /// Number of the last order.
    pub(crate) number: u32,
}
