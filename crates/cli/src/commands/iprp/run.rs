//! `bumpless iprp run`: the daemon.

use std::path::PathBuf;
use std::process::ExitCode;

use bumpless_iprp_daemon::Options;
use bumpless_net_linux::secrets;
use clap::Args;

use crate::output::{Failure, Outcome};
use crate::stop;

/// Run the daemon of this host until Ctrl-C
///
/// Needs the capabilities CAP_NET_ADMIN and CAP_NET_RAW. SIGINT (Ctrl-C), SIGTERM and SIGQUIT end it in order; SIGHUP has it read
/// its file again, as `bumpless iprp reload` does. However it ends, no firewall rule of it is left, and packets leave as they are.
#[derive(Debug, Args)]
pub struct Run {
    /// The host's file
    config: PathBuf,
    /// Print events as JSON (schema bumpless.iprp.event/1) instead of words
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
        secrets::keep_out_of_core_dumps().map_err(Failure::refused)?;
        let config = super::load(&self.config, self.json)?;
        let (stop, reload) = stop::stop_and_reload_flags()?;
        let options = Options {
            json: self.json,
            stop,
            reload,
        };
        bumpless_iprp_daemon::run(config, &self.config, options).map_err(Failure::refused)?;
        Ok(ExitCode::SUCCESS)
    }
}
