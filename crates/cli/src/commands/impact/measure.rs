//! `bumpless impact measure`: a critical task and a flood on this computer.

use std::path::PathBuf;
use std::process::ExitCode;

use bumpless_lab::flood::{self, FloodOptions, RATE_MAX, RATES_MAX, SECONDS_MAX};
use clap::Args;

use super::{can_be_written, progress_line};
use crate::output::{self, Failure, INTERRUPTED, Outcome};
use crate::stop;

/// Measure a critical task under a flood on this computer, with a guard and without
///
/// In network namespaces that nobody but this process has, so that nothing is left: a task that computes in each period, and who sends to it
/// from another processor. What comes is worked off on the task's processor, above the task. Beside it stands what the model says of such a
/// computer. It takes root and two processors, of which the task's is busy meanwhile. Exit status 0: it was measured. 1: this computer
/// cannot do it. 2: wrong usage. 130: ended early.
#[derive(Debug, Args)]
pub struct Measure {
    /// Packets of the flood a second, one rate after the other
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "0,25000,50000,100000,150000,200000", value_parser = clap::value_parser!(u64).range(..=RATE_MAX))]
    rates: Vec<u64>,
    /// For each rate, once with the guard and once without
    #[arg(long, value_name = "S", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=SECONDS_MAX))]
    seconds: u64,
    /// What a job takes of its period of 10 ms, percent
    #[arg(long, value_name = "PERCENT", default_value_t = 80, value_parser = clap::value_parser!(u64).range(1..=90))]
    work: u64,
    /// Write a page with pictures
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print the result as JSON (schema bumpless.impact-measured/1)
    #[arg(long)]
    json: bool,
}

impl Measure {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let json = self.json;
        self.execute().map_err(|failure| failure.in_json(json))
    }

    fn execute(self) -> Outcome {
        if self.rates.len() > RATES_MAX {
            return Err(Failure::usage(format_args!(
                "--rates has {} rates: give {RATES_MAX} at most",
                self.rates.len()
            )));
        }
        self.report.as_deref().map_or(Ok(()), can_be_written)?;
        let options = FloodOptions {
            rates: self.rates,
            seconds: self.seconds,
            work_percent: self.work,
            stop: stop::stop_flag()?,
        };
        let mut line = progress_line();
        let mut told = |at: usize, count: usize| {
            line.show(|_| format!("step {} of {count}", at + 1));
        };
        let measured = flood::measure(&options, &mut told);
        line.end();
        let measured = measured.map_err(Failure::refused)?;
        // What was measured is told, whatever becomes of the file.
        match self.json {
            true => output::print_line(measured.json()),
            false => measured.lines().into_iter().for_each(output::print_line),
        }
        if let Some(file) = &self.report {
            output::write_whole(file, &measured.page(env!("CARGO_PKG_VERSION")))?;
        }
        Ok(ExitCode::from(match measured.interrupted {
            true => INTERRUPTED,
            false => 0,
        }))
    }
}
