//! `bumpless run`: one controller of the pair.

use std::path::PathBuf;
use std::process::ExitCode;

use bumpless_net_linux::secrets;
use bumpless_node::{LogFormat, RunOptions};
use clap::Args;

use super::guard::restore;
use crate::output::{self, Failure, Outcome};
use crate::stop;

/// Run one controller of the pair until Ctrl-C
///
/// SIGINT (Ctrl-C), SIGTERM, SIGQUIT and SIGHUP (a closed terminal; ignored under nohup) end it in order: a
/// primary hands over to its backup first. A second SIGINT or SIGQUIT ends it at once. SIGUSR1 and
/// SIGUSR2 do nothing.
#[derive(Debug, Args)]
pub struct Run {
    /// The pair's configuration file, the same on every node
    config: PathBuf,
    /// Which node of the configuration this is
    #[arg(long, value_name = "NAME")]
    node: String,
    #[command(flatten)]
    log: Log,
}

/// What a node logs and where.
#[derive(Debug, Args)]
pub struct Log {
    /// Append the event log to this file (JSON lines, schema bumpless.event/1)
    #[arg(long = "log", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Log every transfer, not only failed ones
    #[arg(long)]
    log_transfers: bool,
    /// Log every cycle's outputs, not only those that were not written
    #[arg(long)]
    log_outputs: bool,
    /// Print events as JSON instead of words
    #[arg(long)]
    json: bool,
}

impl Log {
    /// Whether errors are to be printed as JSON.
    pub fn json(&self) -> bool {
        self.json
    }

    /// The options of a run that stops on a signal.
    pub fn options(self) -> Result<RunOptions, Failure> {
        Ok(RunOptions {
            config_file: None,
            log_file: self.file,
            log_stdout: Some(if self.json {
                LogFormat::Json
            } else {
                LogFormat::Plain
            }),
            log_transfers: self.log_transfers,
            log_outputs: self.log_outputs,
            keeper: restore::keeper(),
            stop: stop::stop_flag()?,
        })
    }
}

impl Run {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let json = self.log.json();
        self.execute().map_err(|failure| failure.in_json(json))
    }

    fn execute(self) -> Outcome {
        secrets::keep_out_of_core_dumps().map_err(Failure::refused)?;
        let config = output::load(&self.config, self.log.json())?;
        let node = output::find_node(&config, &self.node)?;
        let mut options = self.log.options()?;
        options.config_file = Some(self.config);
        bumpless_node::run(&config, node, options, &mut bumpless_node::open_udp)
            .map_err(Failure::refused)?;
        Ok(ExitCode::SUCCESS)
    }
}
