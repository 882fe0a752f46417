//! Any number of devices as the field of one program: Modbus TCP with any register map, and those of field drivers
//! (spec/field.md, F-32 to F-37; spec/field-driver.md).
//!
//! Each device has a connection and a state of its own, and all are asked at the same time, so that a call takes as
//! long as the slowest of them. One that has not answered in time costs no further call anything: it is tried beside
//! the calls, and counts as there when it has answered (F-35).

#[cfg(test)]
mod tests;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bumpless_base::{Epoch, Instant};
use bumpless_config::{Bus, DeviceSecurity, FieldDevice, Input, Output};
use bumpless_pki::DeviceName;
use tokio::runtime::Runtime;

use crate::driven;
use crate::driver_link::{DriverFailures, DriverLink, DriverNumber, HandedOver};
use crate::modbus::device::Device as Modbus;
use crate::modbus::{SecureDialer, Told, runtime};
use crate::{FieldError, FieldErrorKind, FieldIo, FieldSample, OutputStamp, TimeSource};

/// The devices of one program as [`FieldIo`].
pub struct Devices<T> {
    runtime: Runtime,
    devices: Vec<Device<T>>,
    /// What was read last, by input.
    inputs: Vec<f64>,
    /// How often inputs were read.
    reads: u64,
}

/// One of them.
enum Device<T> {
    Modbus(Modbus<T>),
    Driven(driven::Device<T>),
}

/// What one call asks of each device.
#[derive(Clone, Copy)]
enum Call<'a> {
    Read(u64),
    Write(&'a [f64], OutputStamp),
    KeepWarm,
}

impl<T: TimeSource> Device<T> {
    fn place(&self) -> &Arc<str> {
        match self {
            Self::Modbus(device) => device.place(),
            Self::Driven(device) => device.place(),
        }
    }

    const fn is_required(&self) -> bool {
        match self {
            Self::Modbus(device) => device.is_required(),
            Self::Driven(device) => device.is_required(),
        }
    }

    const fn failure(&self) -> Option<FieldErrorKind> {
        match self {
            Self::Modbus(device) => device.failure(),
            Self::Driven(device) => device.failure(),
        }
    }

    const fn is_silent(&self) -> bool {
        match self {
            Self::Modbus(device) => device.is_silent(),
            Self::Driven(device) => device.is_silent(),
        }
    }

    fn told(&self) -> Told {
        match self {
            Self::Modbus(device) => device.told(),
            // A driver tells nothing of epochs.
            Self::Driven(_) => Told::default(),
        }
    }

    async fn asked(&mut self, call: Call<'_>, until: Instant) {
        match (self, call) {
            (Self::Modbus(device), Call::Read(number)) => device.read(number, until).await,
            (Self::Modbus(device), Call::Write(outputs, stamp)) => {
                device.write(outputs, stamp, until).await;
            }
            (Self::Modbus(device), Call::KeepWarm) => device.keep_warm(until).await,
            (Self::Driven(device), Call::Read(number)) => device.read(number, until).await,
            (Self::Driven(device), Call::Write(outputs, stamp)) => {
                device.write(outputs, stamp, until).await;
            }
            (Self::Driven(device), Call::KeepWarm) => device.keep_warm(until).await,
        }
    }

    fn give(&mut self, inputs: &mut [f64]) {
        match self {
            Self::Modbus(device) => device.give(inputs),
            Self::Driven(device) => device.give(inputs),
        }
    }
}

impl<T: TimeSource + Clone> Devices<T> {
    /// These devices, which are connected to on first use. With `check_epoch`, those that have their outputs in a block
    /// compare the epoch. Those that the configuration has secure are connected to by `dialer`; `links` leads to the
    /// driver of a device, by position.
    ///
    /// # Errors
    /// The system gives no event queue, or a secure device has no name, or there is no dialer for it, or a driver cannot
    /// be had.
    pub fn new(
        devices: &[FieldDevice],
        (inputs, outputs): (&[Input], &[Output]),
        check_epoch: bool,
        dialer: Option<&SecureDialer>,
        links: &mut dyn FnMut(usize) -> io::Result<Box<dyn DriverLink>>,
        clock: T,
    ) -> io::Result<Self> {
        let mut device = |(at, settings): (usize, &FieldDevice)| {
            let values = (inputs, outputs);
            Ok(match &settings.bus {
                Bus::Modbus(modbus) => {
                    let secure = modbus.security.as_ref();
                    let secure = secure.map(|it| by_tls(it, settings.address, dialer));
                    Device::Modbus(Modbus::new(
                        (at, settings, modbus),
                        values,
                        check_epoch,
                        secure.transpose()?,
                        clock.clone(),
                    ))
                }
                Bus::Driver(driver) => Device::Driven(driven::Device::new(
                    (at, settings, driver),
                    values,
                    links(at)?,
                    clock.clone(),
                )),
            })
        };
        let devices = devices.iter().enumerate().map(&mut device);
        let devices: Vec<_> = devices.collect::<io::Result<_>>()?;
        Ok(Self {
            runtime: runtime()?,
            devices,
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

impl<T> Device<T> {
    const fn driven(&mut self) -> Option<&mut driven::Device<T>> {
        match self {
            Self::Driven(device) => Some(device),
            Self::Modbus(_) => None,
        }
    }
}

impl<T> Drop for Devices<T> {
    fn drop(&mut self) {
        // Each is waited for in turn when it is dropped, and they are to end beside each other.
        let driven = self.devices.iter_mut().filter_map(Device::driven);
        driven.for_each(driven::Device::end);
    }
}

impl<T: TimeSource> Devices<T> {
    fn driven(&mut self) -> impl Iterator<Item = &mut driven::Device<T>> {
        self.devices.iter_mut().filter_map(Device::driven)
    }

    /// Asks all of them at the same time.
    fn ask(&mut self, call: Call<'_>, until: Instant) {
        let asked = self.devices.iter_mut();
        let all = asked.map(|device| {
            Box::pin(device.asked(call, until)) as Pin<Box<dyn Future<Output = ()> + '_>>
        });
        self.runtime.block_on(together(all.collect()));
    }

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

impl<T: TimeSource> FieldIo for Devices<T> {
    fn read(&mut self, inputs: &mut [f64], until: Instant) -> Result<FieldSample, FieldError> {
        let number = self.reads;
        self.reads += 1;
        self.ask(Call::Read(number), until);
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
        self.ask(Call::Write(outputs, stamp), until);
        self.failure().map_or(Ok(()), Err)
    }

    fn keep_warm(&mut self, until: Instant) -> Result<FieldSample, FieldError> {
        self.ask(Call::KeepWarm, until);
        match self.failure() {
            Some(error) => Err(error),
            None => Ok(self.sample()),
        }
    }

    fn silent(&self) -> u64 {
        let devices = self.devices.iter().take(64).enumerate();
        let silent = devices.filter(|(_, device)| device.is_silent());
        silent.fold(0, |silent, (at, _)| silent | 1 << at)
    }

    fn driver_failures(&mut self) -> Option<DriverFailures> {
        self.driven().find_map(driven::Device::driver_failures)
    }

    fn warm_up(&mut self, until: Instant) -> bool {
        let driven = self.devices.iter_mut().filter_map(Device::driven);
        let mut all = true;
        self.runtime.block_on(async {
            for device in driven {
                all &= device.warm_up(until).await;
            }
        });
        all
    }

    fn take_over(&mut self, before: &mut dyn FieldIo) {
        for device in self.driven() {
            let driver = device.heir_to().and_then(|it| before.hand_over(it));
            if let Some(driver) = driver {
                device.take_over(driver);
            }
        }
    }

    fn hand_over(&mut self, driver: DriverNumber) -> Option<HandedOver> {
        // What watches a connection is let go of where it was made.
        let _runtime = self.runtime.enter();
        let driven = self.devices.iter_mut().filter_map(Device::driven);
        { driven }.find_map(|device| device.hand_over(driver))
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
