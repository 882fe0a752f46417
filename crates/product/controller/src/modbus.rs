//! Field I/O over Modbus TCP (spec/field.md).
//!
//! One connection carries reads and writes in turn. A request that is not answered in time costs
//! the connection: closing it is what keeps the late answer from being taken for the next
//! request's. Reconnecting goes on between and during later calls, each of which still returns by
//! its own deadline; after a failed attempt the next one waits, longer each time.
//!
//! [`ModbusField`] is one device with one block; `device::Device` is one of any number with any register map.

mod connection;
pub(crate) mod device;
mod link;
mod refused;
pub mod registers;
mod requests;
mod secure_dialer;
pub mod values;

use crate::{FieldError, FieldErrorKind, FieldIo, FieldSample, OutputStamp, TimeSource};
use bumpless_base::{Duration, Epoch, Instant};
use bumpless_pki::DeviceName;
use connection::{Connection, SecureWay, Way};
use registers::{OUTPUT_BLOCK, OUTPUTS_MAX, READ_REGISTERS_MAX};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio_modbus::{ExceptionCode, Request, Response};

pub(crate) use requests::Told;

pub use refused::FieldNote;
pub use secure_dialer::SecureDialer;

/// Where a device keeps its inputs: one block of input registers, read at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModbusMap {
    /// First input register of the block.
    pub first: u16,
    /// Registers in the block, 1 to 125.
    pub count: u16,
    /// For each input in turn, where in the block its two registers (binary32) are.
    pub inputs: Vec<u16>,
    /// Where in the block the accepted epoch is (two registers), if the device tells.
    pub epoch: Option<u16>,
    /// Where in the block the cycle of the last accepted write is (four registers), if the device tells.
    pub cycle: Option<u16>,
}

impl ModbusMap {
    fn check(&self) -> io::Result<()> {
        let numbers = self.inputs.iter().chain(&self.epoch).map(|at| (*at, 2));
        let places = numbers.chain(self.cycle.map(|at| (at, 4)));
        let fits =
            { places }.all(|(at, registers)| u32::from(at) + registers <= u32::from(self.count));
        if self.count == 0 || usize::from(self.count) > READ_REGISTERS_MAX || !fits {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "register map: every value must lie in one block of 1 to 125 input registers",
            ));
        }
        Ok(())
    }
}

/// Settings of a Modbus TCP device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModbusSettings {
    /// The device's address.
    pub address: SocketAddr,
    /// Unit identifier; 255 for a device that is addressed by its IP address alone.
    pub unit: u8,
    /// Where the inputs are.
    pub map: ModbusMap,
    /// How long one attempt to connect may take.
    pub connect_timeout: Duration,
    /// Longest wait between attempts to connect; the first wait is a sixty-fourth of it.
    pub reconnect_max: Duration,
}

impl ModbusSettings {
    /// The quadruple-tank plant at `address`, with the usual times: 1 s to connect, at most
    /// 500 ms between attempts.
    pub fn quadruple_tank(address: SocketAddr) -> Self {
        Self {
            address,
            unit: 255,
            map: ModbusMap::quadruple_tank(),
            connect_timeout: Duration::from_secs(1),
            reconnect_max: Duration::from_millis(500),
        }
    }
}

/// A Modbus TCP device as [`FieldIo`].
///
/// Deadlines are kept as well as the runtime's timer allows, which counts milliseconds: a call
/// whose deadline is nearer than 2 ms may return up to 1 ms after it.
pub struct ModbusField<T> {
    map: ModbusMap,
    runtime: Runtime,
    connection: Connection<T>,
    place: Arc<str>,
}

impl<T: TimeSource> ModbusField<T> {
    /// A device that is connected to on first use. Fails if the register map is impossible or the
    /// system gives no event queue.
    pub fn new(settings: ModbusSettings, clock: T) -> io::Result<Self> {
        Self::by(settings, None, clock)
    }

    /// The same over TLS (Modbus/TCP Security), with the device of this name.
    pub fn secure(
        settings: ModbusSettings,
        (dialer, name): (SecureDialer, DeviceName),
        clock: T,
    ) -> io::Result<Self> {
        let secure = SecureWay {
            dialer,
            name: Arc::new(name),
            device: settings.address.to_string().into(),
            greeting: Request::ReadInputRegisters(settings.map.first, settings.map.count),
        };
        Self::by(settings, Some(secure), clock)
    }

    fn by(settings: ModbusSettings, secure: Option<SecureWay>, clock: T) -> io::Result<Self> {
        settings.map.check()?;
        let way = Way {
            address: settings.address,
            unit: settings.unit,
            connect_timeout: settings.connect_timeout,
            reconnect_max: settings.reconnect_max,
            probe: None,
            secure,
        };
        Ok(Self {
            place: settings.address.to_string().into(),
            map: settings.map,
            runtime: runtime()?,
            connection: Connection::new(way, clock),
        })
    }

    fn error(&self, kind: FieldErrorKind) -> FieldError {
        FieldError {
            kind,
            place: self.place.clone(),
        }
    }

    fn read_block(&mut self, until: Instant) -> Result<Vec<u16>, FieldErrorKind> {
        let request = Request::ReadInputRegisters(self.map.first, self.map.count);
        let answer = self.connection.exchange(request, until);
        match self.runtime.block_on(answer)? {
            Response::ReadInputRegisters(block) if block.len() == usize::from(self.map.count) => {
                Ok(block)
            }
            _ => Err(self.connection.distrust()),
        }
    }

    /// What the block tells of the writes that the device has accepted.
    fn sample(&self, block: &[u16]) -> FieldSample {
        let number = |at: u16| registers::get_u32(block, at.into());
        let long = |at: u16| registers::get_u64(block, at.into());
        FieldSample {
            epoch_seen: self.map.epoch.and_then(number).map(Epoch),
            cycle_seen: self.map.cycle.and_then(long),
        }
    }

    fn read_inputs(
        &mut self,
        inputs: &mut [f64],
        until: Instant,
    ) -> Result<FieldSample, FieldErrorKind> {
        let block = self.read_block(until)?;
        for (slot, at) in inputs.iter_mut().zip(&self.map.inputs) {
            if let Some(value) = registers::get_f32(&block, usize::from(*at)) {
                *slot = value.into();
            }
        }
        Ok(self.sample(&block))
    }

    fn write_outputs(
        &mut self,
        outputs: &[f64],
        stamp: OutputStamp,
        until: Instant,
    ) -> Result<(), FieldErrorKind> {
        if outputs.len() > OUTPUTS_MAX {
            return Err(FieldErrorKind::Exception(
                ExceptionCode::IllegalDataAddress.into(),
            ));
        }
        let mut block = Vec::new();
        registers::put_output_block(&mut block, stamp, outputs);
        let count = block.len() as u16;
        let request = Request::WriteMultipleRegisters(OUTPUT_BLOCK, block.into());
        let answer = self.connection.exchange(request, until);
        match self.runtime.block_on(answer) {
            Ok(Response::WriteMultipleRegisters(OUTPUT_BLOCK, n)) if n == count => Ok(()),
            Ok(_) => Err(self.connection.distrust()),
            Err(kind) => Err(self.explain(kind, stamp, until)),
        }
    }

    /// Tells a rejection for the epoch from other illegal values by asking which one the device
    /// has accepted.
    fn explain(
        &mut self,
        kind: FieldErrorKind,
        stamp: OutputStamp,
        until: Instant,
    ) -> FieldErrorKind {
        let illegal_value = FieldErrorKind::Exception(ExceptionCode::IllegalDataValue.into());
        if kind != illegal_value || self.map.epoch.is_none() {
            return kind;
        }
        let seen = self
            .read_block(until)
            .ok()
            .and_then(|block| self.sample(&block).epoch_seen);
        match seen {
            Some(seen) if seen > stamp.epoch => FieldErrorKind::RejectedEpoch { seen },
            _ => kind,
        }
    }
}

impl<T: TimeSource> FieldIo for ModbusField<T> {
    fn read(&mut self, inputs: &mut [f64], until: Instant) -> Result<FieldSample, FieldError> {
        self.read_inputs(inputs, until)
            .map_err(|kind| self.error(kind))
    }

    fn write(
        &mut self,
        outputs: &[f64],
        stamp: OutputStamp,
        until: Instant,
    ) -> Result<(), FieldError> {
        self.write_outputs(outputs, stamp, until)
            .map_err(|kind| self.error(kind))
    }

    fn keep_warm(&mut self, until: Instant) -> Result<FieldSample, FieldError> {
        self.read_inputs(&mut [], until)
            .map_err(|kind| self.error(kind))
    }
}

/// What runs the connections of one application, in its own thread and only during its calls.
pub(crate) fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
}

#[cfg(test)]
pub(crate) mod tests;
