//! Any number of Modbus TCP devices with any register map as the field of one program (spec/field.md, F-32 to F-37).
//!
//! Each device has a connection and a state of its own, and all are asked at the same time, so that a call takes as
//! long as the slowest of them. One that has not answered in time costs no further call anything: it is tried beside
//! the calls, and counts as there when it has answered (F-35).

mod device;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bumpless_base::{Epoch, Instant};
use bumpless_config::{DeviceSecurity, FieldDevice, Input, Output};
use bumpless_pki::DeviceName;
use tokio::runtime::Runtime;

use super::{SecureDialer, runtime};
use crate::{FieldError, FieldErrorKind, FieldIo, FieldSample, OutputStamp, TimeSource};
use device::Device;

/// The devices of one program as [`FieldIo`].
pub struct ModbusDevices<T> {
    runtime: Runtime,
    devices: Vec<Device<T>>,
    /// What was read last, by input.
    inputs: Vec<f64>,
    /// How often inputs were read.
    reads: u64,
}

impl<T: TimeSource + Clone> ModbusDevices<T> {
    /// These devices, which are connected to on first use. With `check_epoch`, those that have their outputs in a block
    /// compare the epoch. Those that the configuration has secure are connected to by `dialer`.
    ///
    /// # Errors
    /// The system gives no event queue, or a secure device has no name, or there is no dialer for it.
    pub fn new(
        devices: &[FieldDevice],
        (inputs, outputs): (&[Input], &[Output]),
        check_epoch: bool,
        dialer: Option<&SecureDialer>,
        clock: T,
    ) -> io::Result<Self> {
        let device = |(at, settings): (usize, &FieldDevice)| {
            let secure = settings.security.as_ref();
            let secure = secure.map(|it| by_tls(it, settings.address, dialer));
            Ok(Device::new(
                (at, settings),
                (inputs, outputs),
                check_epoch,
                secure.transpose()?,
                clock.clone(),
            ))
        };
        Ok(Self {
            runtime: runtime()?,
            devices: { devices.iter().enumerate().map(device) }.collect::<io::Result<_>>()?,
            inputs: vec![0.0; inputs.len()],
            reads: 0,
        })
    }
}

/// How a device with this `security` is connected to.
fn by_tls(
    security: &DeviceSecurity,
    address: SocketAddr,
    dialer: Option<&SecureDialer>,
) -> io::Result<(SecureDialer, DeviceName)> {
    let dialer = dialer.ok_or_else(|| io::Error::other("no certificates for a secure device"))?;
    Ok((dialer.clone(), dialer.name_of(security, address)?))
}

impl<T: TimeSource> ModbusDevices<T> {
    /// The first failure of a device that the program cannot do without; that another node writes comes before all.
    fn failure(&self) -> Option<FieldError> {
        let failures = || {
            let failures = self.devices.iter();
            failures.filter_map(|device| Some((device, device.failure()?)))
        };
        let rejected = |kind: FieldErrorKind| matches!(kind, FieldErrorKind::RejectedEpoch { .. });
        let first = failures().find(|(_, kind)| rejected(*kind));
        let first = first.or_else(|| failures().find(|(device, _)| device.is_required()));
        first.map(|(device, kind)| FieldError {
            kind,
            place: Arc::clone(device.place()),
        })
    }

    /// The highest epoch that any device has accepted, and the last cycle of that.
    fn sample(&self) -> FieldSample {
        let told = self.devices.iter().map(Device::told);
        let newest = told
            .filter_map(|told| Some((told.epoch?, told.cycle)))
            .max();
        FieldSample {
            epoch_seen: newest.map(|(epoch, _)| Epoch(epoch)),
            cycle_seen: newest.and_then(|(_, cycle)| cycle),
        }
    }
}

impl<T: TimeSource> FieldIo for ModbusDevices<T> {
    fn read(&mut self, inputs: &mut [f64], until: Instant) -> Result<FieldSample, FieldError> {
        let number = self.reads;
        self.reads += 1;
        let asked = self.devices.iter_mut();
        let all = asked.map(|device| {
            Box::pin(device.read(number, until)) as Pin<Box<dyn Future<Output = ()> + '_>>
        });
        let all = together(all.collect());
        self.runtime.block_on(all);
        self.devices
            .iter_mut()
            .for_each(|device| device.give(&mut self.inputs));
        if let Some(error) = self.failure() {
            return Err(error);
        }
        inputs
            .iter_mut()
            .zip(&self.inputs)
            .for_each(|(slot, value)| *slot = *value);
        Ok(self.sample())
    }

    fn write(
        &mut self,
        outputs: &[f64],
        stamp: OutputStamp,
        until: Instant,
    ) -> Result<(), FieldError> {
        let asked = self.devices.iter_mut();
        let all = asked.map(|device| {
            Box::pin(device.write(outputs, stamp, until)) as Pin<Box<dyn Future<Output = ()> + '_>>
        });
        let all = together(all.collect());
        self.runtime.block_on(all);
        self.failure().map_or(Ok(()), Err)
    }

    fn keep_warm(&mut self, until: Instant) -> Result<FieldSample, FieldError> {
        let asked = self.devices.iter_mut();
        let all = asked.map(|device| {
            Box::pin(device.keep_warm(until)) as Pin<Box<dyn Future<Output = ()> + '_>>
        });
        let all = together(all.collect());
        self.runtime.block_on(all);
        match self.failure() {
            Some(error) => Err(error),
            None => Ok(self.sample()),
        }
    }

    fn silent(&self) -> u64 {
        let devices = self.devices.iter().take(64).enumerate();
        let silent = devices.filter(|(_, device)| device.failure().is_some());
        silent.fold(0, |silent, (at, _)| silent | 1 << at)
    }
}

/// Ends when all have ended.
async fn together(mut all: Vec<Pin<Box<dyn Future<Output = ()> + '_>>>) {
    std::future::poll_fn(move |context| {
        all.retain_mut(|one| one.as_mut().poll(context).is_pending());
        match all.is_empty() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}
