//! `bumpless guard`: any program's ports kept from floods of packets.

mod check;
mod picture;
mod run;
mod show;

use std::io;
use std::path::{Path, PathBuf};

use bumpless_guard_daemon::{Config, Request, socket_path};
use bumpless_node::control;
use bumpless_node::key_file::folder_of;
use clap::{Args, Subcommand};
use serde_json::Value;

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
}

impl Guard {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        match self.action {
            Action::Run(command) => command.run(),
            Action::Check(command) => command.run(),
            Action::Status(command) => command.run(),
            Action::Top(command) => command.run(),
        }
    }
}

/// Reads and checks the file at `path`.
fn load(path: &Path, as_json: bool) -> Result<Config, Failure> {
    Config::load(path)
        .map_err(|problems| Failure::file(&problems, "bumpless.guard.check/1", as_json))
}

/// The daemon on this host, as another process reaches it.
struct Daemon {
    file: PathBuf,
    socket: PathBuf,
}

impl Daemon {
    fn of(file: &Path, as_json: bool) -> Result<Self, Failure> {
        let config = load(file, as_json)?;
        Ok(Self {
            file: file.to_owned(),
            socket: socket_path(&config, folder_of(Some(file))),
        })
    }

    fn status(&self) -> Result<Value, Failure> {
        let reply = control::request(&self.socket, &Request::Status);
        let reply = reply.map_err(|error| self.not_reached(&error))?;
        match reply["error"].as_str() {
            Some(error) => Err(Failure::refused(error)),
            None => Ok(reply),
        }
    }

    fn not_reached(&self, error: &io::Error) -> Failure {
        let (file, socket) = (self.file.display(), self.socket.display());
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                Failure::refused(format_args!(
                    "no guard runs on this host with {file} (nobody answers at {socket}): start it with `sudo bumpless guard run \
                     {file}`, or name the file with which it runs"
                ))
            }
            _ => Failure::refused(error),
        }
    }
}
