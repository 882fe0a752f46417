//! The simulated plant: a Modbus TCP server that is the quadruple-tank process in real time
//! (spec/field.md).
//!
//! Requests move the model on to the present before they are answered. Every write is logged,
//! accepted or not, and the levels with it, as JSON lines; a thread of its own writes the file.

pub mod baseline;
mod door;
pub mod log;
mod server;

use crate::{ModbusMap, TimeSource};
use bumpless_base::Duration;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fmt, io};

pub use door::{DoorSettings, Refused, Rights};
pub use server::{Simulated, input};

/// Settings of a plant.
#[derive(Clone, Debug, PartialEq)]
pub struct PlantOptions {
    /// Where to listen. Port 0 takes a free one.
    pub address: SocketAddr,
    /// Seconds of process time per second.
    pub time_scale: f64,
    /// Rejects writes of an epoch older than the accepted one, and in the accepted epoch writes
    /// of an older cycle.
    pub check_epoch: bool,
    /// Standard deviation of the level sensors' noise in cm; zero for none.
    pub noise: f64,
    /// Seed of the noise.
    pub seed: u64,
    /// Distance of the logged levels.
    pub log_interval: Duration,
    /// The log file, to which lines are added; none without.
    pub log: Option<PathBuf>,
}

impl PlantOptions {
    /// A plant in real time at `address` that checks epochs, without noise and log.
    pub fn at(address: SocketAddr) -> Self {
        Self {
            address,
            time_scale: 1.0,
            check_epoch: true,
            noise: 0.0,
            seed: 0,
            log_interval: Duration::from_millis(20),
            log: None,
        }
    }
}

/// Why a plant did not start or stopped.
#[derive(Debug)]
pub enum PlantError {
    /// The address could not be listened on.
    Listen(SocketAddr, io::Error),
    /// The log file could not be opened or written.
    Log(PathBuf, io::Error),
    /// The system gave no event queue or thread, or the listening socket broke.
    System(io::Error),
}

impl fmt::Display for PlantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen(address, error) => write!(
                f,
                "plant: cannot listen on {address}: {error}; choose an address of this machine \
                 and a free port"
            ),
            Self::Log(path, error) => write!(
                f,
                "plant: cannot write the log {}: {error}; choose a writable place with room",
                path.display()
            ),
            Self::System(error) => write!(
                f,
                "plant: {error}; raise this process's limits (`ulimit -n` for open files)"
            ),
        }
    }
}

impl std::error::Error for PlantError {}

/// How often the order to stop is looked at.
const STOP_INTERVAL: Duration = Duration::from_millis(20);

/// A plant that listens. Driving contract: [`bind`](Self::bind), then [`run`](Self::run).
pub struct Plant {
    options: PlantOptions,
    listener: std::net::TcpListener,
    address: SocketAddr,
    device: Option<Box<dyn Simulated>>,
    door: Option<Arc<door::Door>>,
    log: log::Log,
}

impl Plant {
    /// Starts to listen, and opens the log.
    pub fn bind(options: PlantOptions) -> Result<Self, PlantError> {
        let failed = |error| PlantError::Listen(options.address, error);
        let listener = std::net::TcpListener::bind(options.address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        // Whoever hears that it listens can rely on the log, and a plant that cannot listen adds nothing to it.
        let log = log::Log::open(options.log.clone(), &options)?;
        Ok(Self {
            options,
            listener,
            address,
            device: None,
            door: None,
            log,
        })
    }

    /// With `device` in place of the quadruple-tank process.
    #[must_use]
    pub fn simulating(mut self, device: Box<dyn Simulated>) -> Self {
        self.device = Some(device);
        self
    }

    /// Letting in only who shows a certificate (Modbus/TCP Security).
    #[must_use]
    pub fn behind(mut self, door: DoorSettings) -> Self {
        self.door = Some(Arc::new(door::Door::new(door)));
        self
    }

    /// The address with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Runs until `stop` is set, which is looked at every 20 ms. Process time zero is now.
    pub fn run(
        self,
        clock: impl TimeSource + 'static,
        stop: &AtomicBool,
    ) -> Result<(), PlantError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(PlantError::System)?;
        let bench = Arc::new(server::Bench::new(
            &self.options,
            self.device,
            Box::new(clock),
            self.log,
        ));
        let served = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            tokio::select! {
                served = server::serve(listener, bench.clone(), self.door.clone()) => served,
                () = watch((&bench, self.door.as_deref()), self.options.log_interval, stop) => Ok(()),
            }
        });
        // Ends the connections, which hold the bench and with it the log.
        runtime.shutdown_background();
        bench.close()?;
        served.map_err(PlantError::System)
    }
}

/// Logs the levels at each interval, until `stop` is set.
async fn watch(
    (bench, door): (&server::Bench, Option<&door::Door>),
    interval: Duration,
    stop: &AtomicBool,
) {
    let mut levels = ticks(interval.max(Duration::from_millis(1)));
    let mut looks = ticks(STOP_INTERVAL);
    while !stop.load(Ordering::Acquire) {
        tokio::select! {
            _ = levels.tick() => bench.log_levels(),
            _ = looks.tick() => door.into_iter().for_each(door::Door::look_again),
        }
    }
}

fn ticks(interval: Duration) -> tokio::time::Interval {
    let mut ticks = tokio::time::interval(interval.to_std());
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    ticks
}

impl ModbusMap {
    /// The map of the quadruple-tank plant as its controller needs it: levels 1 and 2, process
    /// time, accepted epoch.
    pub fn quadruple_tank() -> Self {
        Self {
            first: 0,
            count: input::COUNT,
            inputs: vec![input::LEVELS, input::LEVELS + 2, input::PROCESS_TIME],
            epoch: Some(input::EPOCH),
            cycle: Some(input::CYCLE),
        }
    }
}

#[cfg(test)]
mod tests;
