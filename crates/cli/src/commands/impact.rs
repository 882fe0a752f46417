//! `bumpless impact`: what packets do to a processor's tasks.

mod measure;
mod model;
mod paper;
mod patterns;
mod raise;

use std::path::{Path, PathBuf};

use bumpless_bench::run::progress::ProgressLine;
use clap::{Args, Subcommand};

use self::measure::Measure;
use self::model::Model;
use self::raise::Raise;
use crate::output::{Failure, Outcome};

const SCHEMA: &str = "bumpless.impact/1";

/// Model what packets do to a critical task, with and without a policy against floods
///
/// One processor with interrupts, a driver's task, a critical task and a queue between; the same input always gives the same
/// output. Exit status 0; 1 where --patterns finds one in which slack is late or hands on less than queue.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Impact {
    #[command(subcommand)]
    command: Option<Command>,
    /// Draw the dissertation's figures beside what its text says of each, into this page
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "impact.html", conflicts_with_all = ["patterns", "Model", "seed"])]
    paper: Option<PathBuf>,
    /// Try every policy under so many random loads
    #[arg(long, value_name = "N", conflicts_with = "Model", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    patterns: Option<u64>,
    /// Draws what is random; with --patterns, the first one
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    model: Model,
    /// Print the result as JSON (schema bumpless.impact/1)
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Measure(Measure),
    Raise(Raise),
}

impl Impact {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        match self.command {
            Some(Command::Measure(measure)) => return measure.run(),
            Some(Command::Raise(raise)) => return raise.run(),
            None => {}
        }
        let json = self.json;
        self.execute().map_err(|failure| failure.in_json(json))
    }

    fn execute(self) -> Outcome {
        match (&self.paper, self.patterns) {
            (Some(file), _) => paper::draw(file, self.json),
            (None, Some(count)) => patterns::try_all(count, self.seed, self.json),
            (None, None) => self.model.run(self.seed, self.json),
        }
    }
}

/// Whether there is a folder for `file`, and it is none itself: said before the work and not after it.
fn can_be_written(file: &Path) -> Result<(), Failure> {
    let folder = file.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let refused = |why: String| {
        Err(Failure::refused(format_args!(
            "cannot write {}: {why}; name a file in a directory that may be written to",
            file.display()
        )))
    };
    match (folder.is_dir(), file.is_dir()) {
        (true, false) => Ok(()),
        (true, true) => refused("it is a directory".to_owned()),
        (false, _) => refused(format!("{} is no directory", folder.display())),
    }
}

/// Of what takes longer than a moment.
fn progress_line() -> ProgressLine {
    let seconds = std::time::Duration::from_secs;
    ProgressLine::new(
        std::time::Duration::from_millis(500),
        (seconds(2), seconds(10)),
    )
}
