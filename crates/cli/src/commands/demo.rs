//! `bumpless demo`: the demonstration, and the node that it runs with faults made in its links.

use std::path::PathBuf;
use std::process::ExitCode;

use bumpless_lab::demo::{DemoOptions, FaultKind, run_demo};
use bumpless_lab::fault::FaultBench;
use bumpless_node::{OpenedLink, RunOptions};
use clap::Args;

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

/// Show a control loop that goes on through loss, a cut network, a kill, a hand-over and a change
///
/// Starts a simulated plant, two witnesses and two controllers as processes on loopback addresses of
/// their own, makes faults, and compares what was promised with what was seen. Takes under a minute,
/// needs no root. Exit status 0 only if every promise held and the report was written.
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

    fn execute(self) -> Outcome {
        let binary = std::env::current_exe().map_err(|error| {
            Failure::refused(format_args!("cannot find this program's own file: {error}"))
        })?;
        let outcome = run_demo(&DemoOptions {
            binary,
            report: self.report,
            repeat: self.repeat,
            fault: self.fault,
            keep: self.keep,
            stop: stop::stop_flag()?,
        })
        .map_err(Failure::refused)?;
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
