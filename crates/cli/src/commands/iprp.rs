//! `bumpless iprp`: packets of unmodified programs over several networks at once.

mod check;
mod ping;
mod run;
mod show;

use std::path::{Path, PathBuf};

use bumpless_iprp_daemon::{Config, Request, socket_path};
use bumpless_node::control;
use bumpless_node::key_file::folder_of;
use clap::{Args, Subcommand};
use serde_json::Value;

use crate::output::{Failure, Outcome};

/// Protect any application's packets over several networks at once, without touching it
///
/// One daemon on each host; the ports that matter are named in its file. `bumpless iprp check --sample` prints a
/// file in which every field is explained.
#[derive(Debug, Args)]
pub struct Iprp {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Run(run::Run),
    Check(check::Check),
    Status(show::Status),
    Senders(show::Senders),
    Receivers(show::Receivers),
    Reload(show::Reload),
    Ping(ping::Ping),
}

impl Iprp {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        match self.action {
            Action::Run(command) => command.run(),
            Action::Check(command) => command.run(),
            Action::Status(command) => command.run(),
            Action::Senders(command) => command.run(),
            Action::Receivers(command) => command.run(),
            Action::Reload(command) => command.run(),
            Action::Ping(command) => command.run(),
        }
    }
}

/// Reads and checks the file at `path`.
fn load(path: &Path, as_json: bool) -> Result<Config, Failure> {
    Config::load(path)
        .map_err(|problems| Failure::file(&problems, "bumpless.iprp.check/1", as_json))
}

/// The daemon on this host, as another process reaches it.
struct Daemon(PathBuf);

impl Daemon {
    fn of(file: &Path, as_json: bool) -> Result<Self, Failure> {
        let config = load(file, as_json)?;
        Ok(Self(socket_path(&config, folder_of(Some(file)))))
    }

    fn ask(&self, request: &Request) -> Result<Value, Failure> {
        let reply = control::request(&self.0, request).map_err(Failure::refused)?;
        match reply["error"].as_str() {
            Some(error) => Err(Failure::refused(error)),
            None => Ok(reply),
        }
    }
}
