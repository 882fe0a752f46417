//! What every policy is asked and answers.

use bumpless_base::{Duration, Instant};

use crate::metric::{Earliness, Fill};

/// What a policy lets the network do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates {
    /// The network may interrupt.
    pub interrupts: bool,
    /// The driver may work packets off.
    pub driver: bool,
}

impl Gates {
    /// Everything may run.
    pub const OPEN: Self = Self {
        interrupts: true,
        driver: true,
    };
    /// Nothing may.
    pub const SHUT: Self = Self {
        interrupts: false,
        driver: false,
    };
}

/// A policy. Each call says what happened; [`Mitigation::gates`] is asked after each.
pub trait Mitigation {
    /// An interrupt has brought a packet. `fill` is the queue's before it, so a full one takes it no more.
    fn handle_packet(&mut self, _now: Instant, _fill: Fill) {}

    /// The driver runs and takes a packet off the queue, whose fill after that is `fill`. Whatever a policy does in the driver's own
    /// time, it does here.
    fn handle_driver(&mut self, _now: Instant, _fill: Fill) {}

    /// The driver has worked a packet off in `spent` of its own time; `fill` is the queue's after it.
    fn handle_processed(&mut self, _now: Instant, _spent: Duration, _fill: Fill) {}

    /// The critical task is released.
    fn handle_release(&mut self, _now: Instant) {}

    /// The critical task has ended a job.
    fn handle_completion(&mut self, _now: Instant, _earliness: Earliness) {}

    /// [`Mitigation::poll_timeout`] has come.
    fn handle_timeout(&mut self, _now: Instant) {}

    /// When to call [`Mitigation::handle_timeout`].
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// What the network may do.
    fn gates(&self) -> Gates {
        Gates::OPEN
    }
}

/// No policy: the scheduler alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unmitigated;

impl Mitigation for Unmitigated {}
