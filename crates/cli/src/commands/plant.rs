//! `bumpless plant`: the simulated quadruple-tank process as a Modbus TCP server.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use bumpless_base::{Duration, Instant};
use bumpless_controller::plant::{DoorSettings, Plant as Process, PlantOptions, Refused, Rights};
use bumpless_net_linux::{Clock, realtime};
use bumpless_pki::{Identity, IdentityPaths, Role, system_clock};
use clap::Args;
use serde_json::json;

use crate::output::{self, Failure, Outcome};
use crate::stop;

/// Run the simulated quadruple-tank process as a Modbus TCP server
#[derive(Debug, Args)]
pub struct Plant {
    /// Address and TCP port to listen on
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// Add every write and the levels to this file (JSON lines, spec/field.md)
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Refuse writes of an epoch older than the last accepted one
    #[arg(long)]
    check_epoch: bool,
    /// Seconds of process time per second
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = time_scale)]
    time_scale: f64,
    /// Standard deviation of the level sensors' noise, in centimetres
    #[arg(long, value_name = "CM", default_value_t = 0.0, value_parser = noise)]
    noise: f64,
    /// Seed of the noise
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Run at this real-time priority, 1 to 99, where the system permits it
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    priority: Option<u8>,
    /// Speak Modbus/TCP Security, with the certificate in this folder, which `bumpless pki issue NAME.field` makes
    #[arg(long, value_name = "DIR")]
    certificates: Option<PathBuf>,
    /// A role that may read, by the client's certificate; several times for several. Without roles all clients may do all
    #[arg(long = "may-read", value_name = "ROLE", requires = "certificates", value_parser = |text: &str| Role::new(text))]
    may_read: Vec<Role>,
    /// A role that may read and write; several times for several
    #[arg(long = "may-write", value_name = "ROLE", requires = "certificates", value_parser = |text: &str| Role::new(text))]
    may_write: Vec<Role>,
    /// Say where it listens as JSON (bumpless.plant/1)
    #[arg(long)]
    json: bool,
}

/// Most refusals are told this far apart.
const REFUSALS_EVERY: Duration = Duration::from_millis(200);

fn bounded(text: &str, least: f64, most: f64) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number >= least && number <= most => Ok(number),
        _ => Err(format!("give a number from {least} to {most}")),
    }
}

fn time_scale(text: &str) -> Result<f64, String> {
    bounded(text, 0.001, 1000.0)
}

fn noise(text: &str) -> Result<f64, String> {
    bounded(text, 0.0, 10.0)
}

fn now() -> Instant {
    Clock.now()
}

impl Plant {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let json = self.json;
        self.execute().map_err(|failure| failure.in_json(json))
    }

    fn execute(self) -> Outcome {
        let stop = stop::stop_flag()?;
        let door = self.certificates.as_deref().map(|folder| {
            let rights = Rights {
                read: self.may_read.clone(),
                write: self.may_write.clone(),
            };
            door(folder, rights)
        });
        let door = door.transpose()?;
        let process = Process::bind(PlantOptions {
            time_scale: self.time_scale,
            check_epoch: self.check_epoch,
            noise: self.noise,
            seed: self.seed,
            log: self.log,
            ..PlantOptions::at(self.listen)
        })
        .map_err(Failure::refused)?;
        let (process, protocol, security) = match door {
            Some(door) => (process.behind(door), "Modbus/TCP Security", "tls"),
            None => (process, "Modbus TCP", "open"),
        };
        let address = process.address().to_string();
        if self.json {
            output::print_line(json!({
                "schema": "bumpless.plant/1",
                "event": "listening",
                "address": address,
                "security": security,
            }));
        } else {
            output::print_line(format_args!("plant listens on {address} ({protocol})"));
        }
        if let Some(Err(refused)) = self.priority.map(realtime::set_fifo) {
            output::warn(refused);
        }
        process.run(now, &stop).map_err(Failure::refused)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Who is let in by the certificates in `folder`, and what they may do.
pub fn door(folder: &Path, rights: Rights) -> Result<DoorSettings, Failure> {
    let paths = IdentityPaths::in_folder(folder);
    let identity = Identity::load_as_named(&paths, system_clock()).map_err(Failure::refused)?;
    let told = Mutex::new(None::<Instant>);
    Ok(DoorSettings {
        paths,
        identity,
        rights,
        // Whoever knocks often does not fill a log.
        refused: Box::new(move |refused: &Refused| {
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.is_none_or(|at| now().since(at) >= REFUSALS_EVERY) {
                *told = Some(now());
                output::warn(refused);
            }
        }),
    })
}
