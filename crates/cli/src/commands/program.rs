//! `bumpless program`: programs of users before they see a plant.

#[cfg(not(feature = "wasm"))]
mod absent;
mod build;
#[cfg(feature = "wasm")]
mod figures;
#[cfg(feature = "wasm")]
mod show;
#[cfg(feature = "wasm")]
mod test;

#[cfg(not(feature = "wasm"))]
use absent::{Absent as Test, Absent as Show};
#[cfg(feature = "wasm")]
use {show::Show, test::Test};

use clap::{Args, Subcommand};

use crate::output::Outcome;

/// Build a PLC program, test whether a program can be made redundant, or tell what it is
///
/// `build` takes a PLC's generated C (spec/sidecar.md), `test` and `show` take WebAssembly modules that export `cycle`
/// (spec/program.md). Exit status: 0 done (of a test: the program can be made redundant), 1 not or refused, 2 wrong usage.
#[derive(Debug, Args)]
pub struct Program {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Build(build::Build),
    Test(Test),
    Show(Show),
}

impl Program {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let (done, json) = match &self.action {
            Action::Build(it) => (it.execute(), it.json),
            Action::Test(it) => (it.execute(), it.json),
            Action::Show(it) => (it.execute(), it.json),
        };
        done.map_err(|failure| failure.in_json(json))
    }
}
