//! `bumpless demo`: the demonstration, and the node that it runs with faults made in its links.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use std::net::SocketAddr;

use bumpless_controller::plant::Rights;
use bumpless_host::kit::Inputs;
use bumpless_lab::demo::{
    CannotShow, DemoError, DemoOptions, DemoProgram, DeviceOptions, FaultKind, SEED, run_demo,
    run_device,
};
use bumpless_lab::fault::FaultBench;
use bumpless_net_linux::realtime;
use bumpless_node::{OpenedLink, RunOptions};
use bumpless_pki::Role;
use clap::Args;

use super::plant::door;
use super::program::subject::{How, refused, table};
use crate::output::{self, Failure, Outcome};
use crate::stop;

/// Run one node with faults injected into its links (used by `demo`)
#[derive(Debug, Args)]
pub struct DemoNode {
    config: PathBuf,
    #[arg(long)]
    node: String,
    #[arg(long)]
    log: PathBuf,
    #[arg(long)]
    faults: PathBuf,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl DemoNode {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let config = output::load(&self.config, false)?;
        let node = output::find_node(&config, &self.node)?;
        let bench =
            FaultBench::start(&config, node, &self.faults, self.seed).map_err(Failure::refused)?;
        let options = RunOptions {
            config_file: Some(self.config),
            log_file: Some(self.log),
            log_stdout: None,
            log_transfers: true,
            log_outputs: true,
            keeper: None,
            stop: stop::stop_flag()?,
        };
        bumpless_node::run(&config, node, options, &mut |link, settings| {
            let opened = bumpless_node::open_udp(link, settings)?;
            match bench.wrap(link, opened.driver) {
                Ok(driver) => Ok(OpenedLink { driver, ..opened }),
                Err(_) => bumpless_node::open_udp(link, settings),
            }
        })
        .map_err(Failure::refused)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Run the field device of a program (used by `demo --program`)
#[derive(Debug, Args)]
pub struct DemoDevice {
    #[arg(long)]
    listen: SocketAddr,
    #[arg(long)]
    log: PathBuf,
    #[arg(long)]
    inputs: usize,
    #[arg(long)]
    outputs: usize,
    #[arg(long)]
    data: Option<PathBuf>,
    /// Modbus/TCP Security with the certificate in this folder; without, as open as Modbus TCP is
    #[arg(long)]
    certificates: Option<PathBuf>,
    #[arg(long = "may-write", requires = "certificates", value_parser = |text: &str| Role::new(text))]
    may_write: Vec<Role>,
    #[arg(long)]
    priority: u8,
}

impl DemoDevice {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let stop = stop::stop_flag()?;
        if let Err(refused) = realtime::set_fifo(self.priority) {
            output::warn(refused);
        }
        let device = DeviceOptions {
            listen: self.listen,
            log: self.log,
            given: given(self.data.as_deref())?,
            inputs: self.inputs,
            outputs: self.outputs,
        };
        let rights = Rights {
            read: Vec::new(),
            write: self.may_write,
        };
        let folder = self.certificates.as_deref();
        let door = folder.map(|folder| door(folder, rights)).transpose()?;
        run_device(device, door, &stop).map_err(Failure::refused)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What the device of a program gives.
fn given(data: Option<&Path>) -> Result<Inputs, Failure> {
    Ok(match data {
        Some(data) => Inputs::Table(table(data)?),
        None => Inputs::Drawn { seed: SEED },
    })
}

/// Show a control loop that goes on through loss, a cut network, a kill, a hand-over and a change
///
/// Starts a simulated plant, two witnesses and two controllers as processes on loopback addresses of
/// their own, makes faults, and compares what was promised with what was seen. Takes under a minute,
/// needs no root. Exit status 0 only if every promise held and the report was written.
///
/// With --program the controllers run a program of yours on a device that gives it inputs, and every output is compared with
/// what the program gives when it runs alone. What cannot be judged of it is said, and counted apart.
#[derive(Debug, Args)]
pub struct Demo {
    /// Write the report to this file
    #[arg(
        long,
        value_name = "FILE",
        default_value = "report.html",
        conflicts_with = "repeat"
    )]
    report: PathBuf,
    /// Run this program in place of the tanks' controller: an executable, a script, what `program build` has made, or a
    /// WebAssembly module
    #[arg(long, value_name = "FILE", conflicts_with = "repeat")]
    program: Option<PathBuf>,
    #[command(flatten)]
    how: How,
    /// Inputs of the program from this file: comma-separated numbers, a line for each cycle, over and over
    #[arg(long, value_name = "FILE.csv", requires = "program")]
    data: Option<PathBuf>,
    /// Repeat one fault this many times and print how long outputs paused
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: Option<u32>,
    /// Which fault to repeat: kill, switchover, cut-a or cut-both; kill if left out
    #[arg(long, value_name = "FAULT", requires = "repeat")]
    fault: Option<FaultKind>,
    /// Keep configuration and logs in this new or empty directory
    #[arg(long, value_name = "DIRECTORY")]
    keep: Option<PathBuf>,
    /// Print the result as JSON (schema bumpless.demo/1; with --repeat bumpless.demo-repeat/1)
    #[arg(long)]
    json: bool,
}

impl Demo {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let json = self.json;
        self.execute().map_err(|failure| failure.in_json(json))
    }

    fn own_program(&self) -> Result<Option<DemoProgram>, Failure> {
        let Some(file) = &self.program else {
            return match self.how.is_silent() {
                true => Ok(None),
                false => Err(Failure::usage(
                    "--command, --argument, --inputs, --outputs and --period are for a program; name it with --program",
                )),
            };
        };
        let inputs = given(self.data.as_deref())?;
        Ok(Some(DemoProgram {
            named: self.how.named(file),
            inputs,
            data: self.data.clone(),
        }))
    }

    fn execute(self) -> Outcome {
        let program = self.own_program()?;
        let binary = std::env::current_exe().map_err(|error| {
            Failure::refused(format_args!("cannot find this program's own file: {error}"))
        })?;
        let outcome = run_demo(&DemoOptions {
            binary,
            report: self.report,
            program,
            repeat: self.repeat,
            fault: self.fault,
            keep: self.keep,
            stop: stop::stop_flag()?,
        })
        .map_err(|error| match &error {
            DemoError::Program(CannotShow::Unfit(unfit)) if unfit.is_usage() => refused(unfit),
            _ => Failure::refused(error),
        })?;
        if self.json {
            output::print_line(&outcome.json);
        } else {
            output::print_line(outcome.text.trim_end());
        }
        if let Some(failure) = &outcome.report_failure {
            output::warn(failure);
        }
        let done = outcome.held && outcome.report_failure.is_none();
        Ok(ExitCode::from(u8::from(!done)))
    }
}
