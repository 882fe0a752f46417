//! `bumpless program`: programs of users before they see a plant.

mod build;

use clap::{Args, Subcommand};

use crate::output::Outcome;

/// Build a PLC program
#[derive(Debug, Args)]
pub struct Program {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Build(build::Build),
}

impl Program {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let (done, json) = match &self.action {
            Action::Build(it) => (it.execute(), it.json),
        };
        done.map_err(|failure| failure.in_json(json))
    }
}
