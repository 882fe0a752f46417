//! `bumpless demo`: the demonstration, and the node that it runs with faults made in its links.

use std::path::PathBuf;
use std::process::ExitCode;

use bumpless_lab::fault::FaultBench;
use bumpless_node::{OpenedLink, RunOptions};
use clap::Args;

use crate::output::{self, Failure, Outcome};

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
            log_file: Some(self.log),
            log_stdout: None,
            log_transfers: true,
            log_outputs: true,
            stop: output::stop_flag()?,
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

/// Show a control loop that goes on through loss, a cut network, a kill and a hand-over
#[derive(Debug, Args)]
pub struct Demo {}

impl Demo {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        Err(Failure::refused("being built"))
    }
}
