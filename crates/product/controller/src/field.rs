//! Field I/O: how an application's inputs are read and its outputs written.

use bumpless_base::{Epoch, Instant, NodeId};
use std::fmt;
use std::sync::Arc;

use crate::driver_link::{DriverFailures, DriverNumber, HandedOver};

/// What came with a set of inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldSample {
    /// The highest epoch that the device has accepted, if it tells.
    pub epoch_seen: Option<Epoch>,
    /// The cycle of the last write that it has accepted in that epoch, if it tells.
    pub cycle_seen: Option<u64>,
}

/// What each output carries, so that a device can refuse a predecessor's late write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputStamp {
    /// The epoch in which the writer holds the primary role.
    pub epoch: Epoch,
    /// The node that writes.
    pub writer: NodeId,
    /// The application's cycle that computed the outputs.
    pub cycle: u64,
}

/// Access to the field devices of one application.
///
/// No call blocks beyond `until` by more than the timer resolution of the implementation. A
/// failed call leaves the connection in a state in which no late answer can be taken for the
/// answer to a later request.
pub trait FieldIo: Send {
    /// Copy-in. On an error, `inputs` is unchanged.
    fn read(&mut self, inputs: &mut [f64], until: Instant) -> Result<FieldSample, FieldError>;

    /// Copy-out of all outputs in one indivisible write. The write is not started after `until`.
    /// After [`FieldErrorKind::Timeout`] the device may or may not have taken it.
    fn write(
        &mut self,
        outputs: &[f64],
        stamp: OutputStamp,
        until: Instant,
    ) -> Result<(), FieldError>;

    /// Which devices did not answer the last call, a bit for each of the first 64 by position.
    fn silent(&self) -> u64 {
        0
    }

    /// Failures of the process of a field driver that have not been told yet.
    fn driver_failures(&mut self) -> Option<DriverFailures> {
        None
    }

    /// Before anybody else asks: has the field drivers that were begun for it probe their devices. Returns whether all
    /// answer.
    fn warm_up(&mut self, _: Instant) -> bool {
        true
    }

    /// Goes on with the field drivers of `before`, whose place it takes, as far as it is to.
    fn take_over(&mut self, _before: &mut dyn FieldIo) {}

    /// Gives this field driver away, if it is here.
    fn hand_over(&mut self, _: DriverNumber) -> Option<HandedOver> {
        None
    }

    /// For a backup: keeps connections up and reads the device's epoch, so that a takeover costs
    /// no connect.
    fn keep_warm(&mut self, until: Instant) -> Result<FieldSample, FieldError>;
}

/// A failed field request: what went wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// What went wrong.
    pub kind: FieldErrorKind,
    /// The device, as configured.
    pub place: Arc<str>,
}

/// What can go wrong with a field request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// No answer in time.
    Timeout,
    /// The device answered with this Modbus exception code.
    Exception(u8),
    /// The device has accepted a later epoch, so this node is no longer the one to write.
    RejectedEpoch {
        /// The epoch that the device has accepted.
        seen: Epoch,
    },
    /// There is no connection, or it broke.
    NotConnected(std::io::ErrorKind),
    /// There is no connection, since this process or the system has no file left to open.
    OutOfFiles,
    /// The answer does not fit the request.
    Malformed,
    /// TLS with it fails (Modbus/TCP Security); what is told besides says why.
    Refused,
    /// Its driver had the order too late to send anything.
    Late,
    /// It refused, with this status of its bus.
    Status(u32),
    /// An input, by position, has a bad value, with this status of its bus.
    BadValue {
        /// The input's position.
        input: u32,
        /// The status.
        status: u32,
    },
    /// Its driver does not run.
    DriverGone,
    /// Its driver has not answered an earlier order.
    DriverBusy,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "field device {}: ", self.place)?;
        match self.kind {
            FieldErrorKind::Timeout => f.write_str(
                "no answer in time; check the device and its network, or raise timeout_ms",
            ),
            FieldErrorKind::Exception(code) => write!(
                f,
                "Modbus exception {code} ({}); compare the register map with the device's",
                exception_name(code)
            ),
            FieldErrorKind::RejectedEpoch { seen } => write!(
                f,
                "outputs rejected, it has accepted epoch {seen}; another node is primary, \
                 nothing to do unless this repeats"
            ),
            FieldErrorKind::NotConnected(
                cause @ (std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::ConnectionReset),
            ) => write!(
                f,
                "not connected ({cause}); check that the device runs, and whether it has TLS at this port"
            ),
            FieldErrorKind::NotConnected(cause) => write!(
                f,
                "not connected ({cause}); check address and port, and that the device runs"
            ),
            FieldErrorKind::OutOfFiles => f.write_str(
                "not connected, this process has too many open files; raise their limit (`ulimit -n`)",
            ),
            FieldErrorKind::Malformed => f.write_str(
                "the answer does not fit the request; check that it is a Modbus TCP device, and has no TLS at this port",
            ),
            FieldErrorKind::Late => f.write_str(
                "its driver had the order too late; give the computer time for it, or raise timeout_ms",
            ),
            FieldErrorKind::Status(status) => write!(
                f,
                "refused with status {status:#010x}; compare the outputs with what the device has"
            ),
            FieldErrorKind::BadValue { input, status } => write!(
                f,
                "input number {} has a bad value (status {status:#010x}); check the device, or give the program an input \
                 with area = \"quality\" for it",
                input + 1
            ),
            FieldErrorKind::DriverGone => f.write_str(
                "its driver does not run; status and log of this node say why",
            ),
            FieldErrorKind::DriverBusy => f.write_str(
                "its driver has not answered an earlier order; check the device and its network",
            ),
            FieldErrorKind::Refused => {
                f.write_str("not connected, TLS fails; status and log of this node say why")
            }
        }
    }
}

impl std::error::Error for FieldError {}

/// Names of the Modbus Application Protocol Specification V1.1b3, section 7.
fn exception_name(code: u8) -> &'static str {
    match code {
        1 => "illegal function",
        2 => "illegal data address",
        3 => "illegal data value",
        4 => "server device failure",
        5 => "acknowledge",
        6 => "server device busy",
        8 => "memory parity error",
        10 => "gateway path unavailable",
        11 => "gateway target device failed to respond",
        _ => "not in the standard",
    }
}

/// The field of an application without one: reads nothing, takes every write.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoField;

impl FieldIo for NoField {
    fn read(&mut self, _: &mut [f64], _: Instant) -> Result<FieldSample, FieldError> {
        Ok(FieldSample::default())
    }
    fn write(&mut self, _: &[f64], _: OutputStamp, _: Instant) -> Result<(), FieldError> {
        Ok(())
    }
    fn keep_warm(&mut self, _: Instant) -> Result<FieldSample, FieldError> {
        Ok(FieldSample::default())
    }
}
