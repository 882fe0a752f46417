//! `bumpless torture`: the real programs behind networks that do what networks do.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use bumpless_lab::torture::{self, TortureOptions, TortureResult, run_torture};
use clap::Args;

use crate::output::{self, Failure, INTERRUPTED, Outcome};

/// Do to a real pair what networks, machines and people do, and judge it by what the plant saw
///
/// Starts nodes, witnesses and a plant as processes in network namespaces of their own, behind a switch
/// that cuts, loses, delays and inverts bits; kills, stops and misconfigures nodes (spec/torture.md).
/// Needs root. Nothing else of the computer is touched, and nothing is left. Exit status 0 only if no
/// promise was broken.
#[derive(Debug, Args)]
pub struct Torture {
    /// Only cases whose names begin with one of these
    #[arg(
        long,
        value_name = "CASE",
        value_delimiter = ',',
        conflicts_with = "soak"
    )]
    cases: Vec<String>,
    /// How often each case is repeated; 20 if left out, 1 with --quick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000), conflicts_with = "soak")]
    repetitions: Option<u32>,
    /// A short run of the most telling cases, under a minute
    #[arg(long, conflicts_with = "soak")]
    quick: bool,
    /// Instead of the cases: so many seconds with 2 % loss and a kill every 7 s
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(30..=604_800))]
    soak: Option<u64>,
    /// What all chance is drawn from; the time if left out
    #[arg(long)]
    seed: Option<u64>,
    /// Keep result.json, table.txt, report.html, and all logs, in this new or empty directory
    #[arg(long, value_name = "DIRECTORY")]
    keep: Option<PathBuf>,
    /// The `bumpless` program to torture; this one if left out
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Do nothing: show a kept result.json again
    #[arg(long, value_name = "FILE", conflicts_with_all = ["soak", "cases", "quick"])]
    show: Option<PathBuf>,
    /// Print the result as JSON (schema bumpless.torture/1)
    #[arg(long)]
    json: bool,
}

const REPETITIONS: u32 = 20;

impl Torture {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let json = self.json;
        self.execute().map_err(|failure| failure.in_json(json))
    }

    fn execute(self) -> Outcome {
        let json = self.json;
        let result = match &self.show {
            Some(file) => torture::read(file).map_err(Failure::refused)?,
            None => self.torture()?,
        };
        if json {
            output::print_line(torture::to_json(&result));
        } else {
            output::print_line(torture::text(&result));
        }
        Ok(ExitCode::from(match (result.held, result.interrupted) {
            (false, _) => 1,
            (true, true) => INTERRUPTED,
            (true, false) => 0,
        }))
    }

    fn torture(self) -> Result<TortureResult, Failure> {
        let own = std::env::current_exe().map_err(|error| {
            Failure::refused(format_args!("cannot find this program's own file: {error}"))
        })?;
        let repetitions = match self.quick {
            true => 1,
            false => REPETITIONS,
        };
        let options = TortureOptions {
            binary: self.binary.unwrap_or(own),
            cases: self.cases,
            repetitions: self.repetitions.unwrap_or(repetitions),
            quick: self.quick,
            soak: self.soak,
            seed: self.seed.unwrap_or_else(time_as_seed),
            keep: self.keep,
            stop: crate::stop::stop_flag()?,
        };
        run_torture(&options).map_err(|error| match error.is_usage() {
            true => Failure::usage(error),
            false => Failure::refused(error),
        })
    }
}

fn time_as_seed() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    // Short enough to be typed again.
    now.as_secs() ^ u64::from(now.subsec_nanos())
}
