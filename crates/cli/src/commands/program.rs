//! `bumpless program`: programs of users before they see a plant.

#[cfg(not(feature = "wasm"))]
mod absent;
mod build;
pub mod compare;
mod figures;
mod resume;
#[cfg(feature = "wasm")]
mod show;
pub mod subject;
mod test;
mod verdict;

#[cfg(not(feature = "wasm"))]
use absent::Absent as Show;
#[cfg(feature = "wasm")]
use show::Show;

use clap::{Args, Subcommand};

use crate::output::Outcome;

/// Build a PLC program, test whether a program can be made redundant, tell what it is or what its next version makes of its state, or let one go on that is stopped
///
/// `build` takes a PLC's generated C, `test` programs in processes of their own (spec/sidecar.md) and WebAssembly modules
/// that export `cycle` (spec/program.md), `show` modules, `compare` two versions of any; `resume` asks a running primary. Exit status: 0 done (of a test: the program can be made redundant), 1 not or refused, 2 wrong usage, 130 a test that was ended early.
#[derive(Debug, Args)]
pub struct Program {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Build(build::Build),
    Test(test::Test),
    Show(Show),
    Compare(compare::Compare),
    Resume(resume::Resume),
}

impl Program {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let (done, json) = match &self.action {
            Action::Build(it) => (it.execute(), it.json),
            Action::Test(it) => (it.execute(), it.json),
            Action::Show(it) => (it.execute(), it.json),
            Action::Compare(it) => (it.execute(), it.json),
            Action::Resume(it) => (it.execute(), it.json),
        };
        done.map_err(|failure| failure.in_json(json))
    }
}
