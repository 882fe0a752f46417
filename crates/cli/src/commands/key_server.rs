//! `bumpless key-server`: keys for the nodes of pairs, made and rolled in one place.

mod check;
mod picture;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bumpless_key_server::{Config, Options, Request, socket_path};
use bumpless_net_linux::secrets;
use bumpless_node::key_file::folder_of;
use clap::{Args, Subcommand};

use crate::local::Local;
use crate::output::{self, Failure, Outcome};
use crate::stop;

/// Give the nodes of pairs their keys, and roll them: in time, on order, and when a certificate is revoked
///
/// Nodes ask for keys that name it in `key_servers` of their configuration. `bumpless key-server check --sample`
/// prints a file for the server in which every field is explained.
#[derive(Debug, Args)]
pub struct KeyServer {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Run(Run),
    Check(check::Check),
    Status(Status),
    Roll(Roll),
}

/// Run the server until Ctrl-C
///
/// SIGINT (Ctrl-C), SIGTERM, SIGQUIT and SIGHUP end it in order. However it ends, members go on with the keys that they were
/// given in advance, and a server that is started again goes on where this one was.
#[derive(Debug, Args)]
struct Run {
    /// The server's file
    config: PathBuf,
    /// Print events as JSON (schema bumpless.key-server.event/1) instead of words
    #[arg(long)]
    json: bool,
}

/// Show groups, their keys by number and identifier, and who is there; no command shows a key
///
/// Exit status 1 if the server does not answer.
#[derive(Debug, Args)]
struct Status {
    /// The server's file
    config: PathBuf,
    /// Print JSON (schema bumpless.key-server.status/1)
    #[arg(long)]
    json: bool,
}

/// Give up the keys of a group before their time, those given in advance included
///
/// Members that the server does not reach lose the others until they reach it. Exit status 1 if the server does not answer, or
/// takes its keys from another one.
#[derive(Debug, Args)]
struct Roll {
    /// The server's file
    config: PathBuf,
    /// The group; may be left out where there is only one
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// Print JSON (schema bumpless.key-server.roll/1)
    #[arg(long)]
    json: bool,
}

impl KeyServer {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        match self.action {
            Action::Run(command) => {
                let json = command.json;
                command.run().map_err(|failure| failure.in_json(json))
            }
            Action::Check(command) => command.run(),
            Action::Status(Status { config, json }) => {
                let status = ask(&config, json, &Request::Status)?;
                match json {
                    true => output::print_line(&status),
                    false => picture::lines(&status).iter().for_each(output::print_line),
                }
                Ok(ExitCode::SUCCESS)
            }
            Action::Roll(Roll {
                config,
                group,
                json,
            }) => {
                let reply = ask(&config, json, &Request::Roll { group })?;
                output::done("the keys are rolled");
                match json {
                    true => output::print_line(&reply),
                    false => output::print_line(format_args!(
                        "the keys of group '{}' are rolled: the next one is sealed with in half a second",
                        reply["group"].as_str().unwrap_or_default()
                    )),
                }
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

impl Run {
    fn run(self) -> Outcome {
        secrets::keep_out_of_core_dumps().map_err(Failure::refused)?;
        let config = load(&self.config, self.json)?;
        let options = Options {
            json: self.json,
            stop: stop::stop_flag()?,
        };
        bumpless_key_server::run(&config, &self.config, &options).map_err(Failure::refused)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Reads and checks the file at `path`.
fn load(path: &Path, as_json: bool) -> Result<Config, Failure> {
    Config::load(path)
        .map_err(|problems| Failure::file(&problems, "bumpless.key-server.check/1", as_json))
}

/// What the server that runs with `file` answers.
fn ask(file: &Path, as_json: bool, request: &Request) -> Result<serde_json::Value, Failure> {
    let asked = load(file, as_json).and_then(|config| {
        let socket = socket_path(&config, folder_of(Some(file)));
        Local::new(file, socket, "key server", "bumpless key-server run").ask(request)
    });
    asked.map_err(|failure| failure.in_json(as_json))
}
