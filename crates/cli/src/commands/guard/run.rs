//! `bumpless guard run`: the daemon.

use std::path::PathBuf;
use std::process::ExitCode;

use bumpless_guard_daemon::Options;
use clap::Args;

use crate::output::{Failure, Outcome};
use crate::stop;

/// Guard this host until Ctrl-C
///
/// Needs the capabilities CAP_NET_ADMIN, CAP_BPF and CAP_PERFMON. SIGINT (Ctrl-C), SIGTERM and SIGQUIT end it in order; SIGHUP
/// has it read its file again, as `bumpless guard reload` does. However it ends, the kernel takes its program from the interfaces, and frames arrive as they are.
#[derive(Debug, Args)]
pub struct Run {
    /// The host's file
    config: PathBuf,
    /// Print events as JSON (schema bumpless.guard.event/1) instead of words
    #[arg(long)]
    json: bool,
}

impl Run {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let json = self.json;
        self.execute().map_err(|failure| failure.in_json(json))
    }

    fn execute(self) -> Outcome {
        let config = super::load(&self.config, self.json)?;
        let (stop, reload) = stop::stop_and_reload_flags()?;
        let options = Options {
            json: self.json,
            stop,
            reload,
        };
        bumpless_guard_daemon::run(config, &self.config, &options).map_err(Failure::refused)?;
        Ok(ExitCode::SUCCESS)
    }
}
