//! `bumpless key-server check`: every error of a server's file at once, and what would keep this computer from running it.

use std::path::PathBuf;
use std::process::ExitCode;

use bumpless_key_server::{Config, absent, obstacles, sample};
use clap::Args;
use serde_json::json;

use super::picture;
use crate::output::{self, Outcome};

/// Check a server's file and print every error at once, with line and remedy; then what keeps this computer from running it
///
/// Looks at certificate, state, and the folders of locks and sockets as `run` does, and says which addresses of `listen` this
/// computer does not have. Says for how long each group goes on without any server. Exit status 0: it can run here. 1: the file is right, and something
/// is missing on this computer. 2: the file is wrong.
#[derive(Debug, Args)]
pub struct Check {
    /// The server's file
    #[arg(required_unless_present = "sample")]
    config: Option<PathBuf>,
    /// Print a file in which every field is explained, and exit
    #[arg(long, conflicts_with_all = ["config", "json"])]
    sample: bool,
    /// Print the result as JSON (schema bumpless.key-server.check/1)
    #[arg(long)]
    json: bool,
}

impl Check {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let Some(path) = self.config.filter(|_| !self.sample) else {
            output::print_line(sample().trim_end());
            return Ok(ExitCode::SUCCESS);
        };
        let config = super::load(&path, self.json)?;
        let missing = obstacles(&config, &path);
        let missing: Vec<_> = missing.iter().map(ToString::to_string).collect();
        let absent: Vec<_> = absent(&config.listen)
            .iter()
            .map(ToString::to_string)
            .collect();
        match self.json {
            true => output::print_line(json!({
                "schema": "bumpless.key-server.check/1",
                "ok": true,
                "problems": [],
                "leads": config.follow.is_empty(),
                "groups": config.groups.iter().map(|group| json!({
                    "group": group.name,
                    "members": group.members,
                    "outlasts_servers_s": group.outlasts().as_secs_f64(),
                })).collect::<Vec<_>>(),
                "runs_here": missing.is_empty(),
                "missing_here": (!missing.is_empty()).then(|| missing.join("\n")),
                "absent_addresses": absent,
            })),
            false => print(&config, &path.display().to_string(), &missing, &absent),
        }
        Ok(ExitCode::from(u8::from(!missing.is_empty())))
    }
}

fn print(config: &Config, name: &str, missing: &[String], absent: &[String]) {
    let listen: Vec<_> = config.listen.iter().map(ToString::to_string).collect();
    output::print_line(format_args!(
        "{name} is valid: {}.keys at {}",
        config.name,
        listen.join(", ")
    ));
    for group in &config.groups {
        output::print_line(format_args!(
            "group '{}' of {} goes on for {:.0} s without any server, and then nothing of it is sent",
            group.name,
            group.members.join(", "),
            group.outlasts().as_secs_f64()
        ));
    }
    absent
        .iter()
        .for_each(|address| output::print_line(picture::absent(address)));
    for why in missing {
        output::print_line(format_args!("this computer cannot run it: {why}"));
    }
    if missing.is_empty() {
        output::print_line("this computer can run it");
    }
}
