//! `bumpless guard`: any program's ports kept from floods of packets.

mod check;
mod picture;
pub mod restore;
mod run;
mod show;

use std::path::Path;

use bumpless_guard_daemon::{Config, socket_path};
use bumpless_node::key_file::folder_of;
use clap::{Args, Subcommand};

use crate::local::Local;
use crate::output::{Failure, Outcome};

/// Keep floods of packets from a host's programs: each flow gets its budget, the rest is dropped at the driver
///
/// The flows that matter are named in the host's file; `bumpless guard check --sample` prints one in which every field is
/// explained.
#[derive(Debug, Args)]
pub struct Guard {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Run(run::Run),
    Check(check::Check),
    Status(show::Status),
    Top(show::Top),
    Reload(show::Reload),
    Restore(restore::Restore),
}

impl Guard {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        match self.action {
            Action::Run(command) => command.run(),
            Action::Check(command) => command.run(),
            Action::Status(command) => command.run(),
            Action::Top(command) => command.run(),
            Action::Reload(command) => command.run(),
            Action::Restore(command) => command.run(),
        }
    }
}

/// Reads and checks the file at `path`.
fn load(path: &Path, as_json: bool) -> Result<Config, Failure> {
    Config::load(path)
        .map_err(|problems| Failure::file(&problems, "bumpless.guard.check/1", as_json))
}

/// The guard that runs on this host with `file`.
fn daemon(file: &Path, as_json: bool) -> Result<Local, Failure> {
    Ok(local(&load(file, as_json)?, file))
}

/// The same, where that file says `config`.
fn local(config: &Config, file: &Path) -> Local {
    let socket = socket_path(config, folder_of(Some(file)));
    Local::new(file, socket, "guard", "bumpless guard run")
}
