//! `bumpless program test`: whether a program can be made redundant.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use bumpless_base::{Duration, Instant};
use bumpless_host::Subject;
use bumpless_host::kit::{self, Inputs, Report, Stage, Surroundings, Table, Trial};
use bumpless_net_linux::Clock;
use clap::Args;

use super::subject::{self, Subjected, milliseconds, span, table};
use super::verdict::Verdict;
use crate::output::{self, Failure, Outcome};
use crate::stop;

/// Between two lines about how far a test is.
const PROGRESS: Duration = Duration::from_secs(2);

/// Most values that a test keeps to compare with.
const VALUES: u64 = 32 << 20;

/// Run a program side by side with itself, move its state between instances at random cycles, and compare every output
///
/// FILE is an executable, a script, what `program build` has made, or, in a build with the feature `wasm`, a WebAssembly
/// module. Says whether the program can be made redundant, else what hinders it and in which cycle that was first seen; how
/// long it computes, how large its state is and how much of that changes in a cycle. Inputs are drawn, or come from a file.
///
/// Exit status 0: it can be made redundant. 1: it cannot, or FILE cannot be read or started. 2: wrong usage, such as inputs that it
/// does not have. 130: ended early (Ctrl-C) with nothing found until then.
#[derive(Debug, Args)]
pub struct Test {
    #[command(flatten)]
    subject: Subjected,
    /// Cycles of each run
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    cycles: u64,
    /// How often the state is moved in a run, before cycles that are drawn
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    moves: u64,
    /// Draws inputs and cycles; the same seed gives the same test
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Time that a cycle may take [default: the period; 1000 for a process, of which nothing is judged by its speed]
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    limit: Option<f64>,
    /// Most bytes of the state
    #[arg(long, value_name = "BYTES", default_value_t = 32 << 20, value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    state_max: u32,
    /// Inputs from this file: comma-separated numbers, a line for each cycle, over and over
    #[arg(long, value_name = "FILE.csv")]
    data: Option<PathBuf>,
    /// Print the result as JSON (schema bumpless.program-test/1)
    #[arg(long)]
    pub json: bool,
}

impl Test {
    /// Runs the command.
    pub fn execute(&self) -> Outcome {
        let table = self.data.as_deref().map(table).transpose()?;
        let stop = stop::stop_flag()?;
        let wanted = || !stop.load(Ordering::Acquire);
        let opened = self.open(table.as_ref(), &wanted);
        let subject = opened.map_err(|failure| match wanted() {
            true => failure,
            false => {
                Failure::interrupted("interrupted before the program had begun; nothing was tested")
            }
        })?;
        let outputs = subject.shape().outputs;
        if self.cycles.saturating_mul(outputs as u64) > VALUES {
            return Err(Failure::usage(format_args!(
                "--cycles: {} cycles of {outputs} outputs are more than a test can keep ({VALUES} values); give fewer",
                self.cycles
            )));
        }
        let trial = Trial {
            cycles: self.cycles,
            moves: self.moves,
            seed: self.seed,
            period: subject.period(),
            inputs: table.map_or(Inputs::Drawn { seed: self.seed }, Inputs::Table),
        };
        let subject = RefCell::new(subject);
        let report = examine(&subject, &trial, &stop);
        let verdict = Verdict {
            subject: &subject.borrow(),
            report: &report,
            seed: self.seed,
        };
        match self.json {
            true => output::print_line(verdict.as_json()),
            false => output::print_line(verdict.as_text()),
        }
        Ok(
            match (report.can_be_redundant(), report.hindrances.is_empty()) {
                (true, _) => ExitCode::SUCCESS,
                (false, true) => ExitCode::from(output::INTERRUPTED),
                (false, false) => ExitCode::from(1),
            },
        )
    }

    fn open(&self, table: Option<&Table>, wanted: &dyn Fn() -> bool) -> Result<Subject, Failure> {
        let mut named = self.subject.named();
        named.limit = self.limit.map(span);
        named.state_max = self.state_max as usize;
        subject::open(named, table, wanted)
    }
}

fn examine(subject: &RefCell<Subject>, trial: &Trial, stop: &AtomicBool) -> Report {
    let told = Cell::new(Clock.now());
    kit::examine(
        trial,
        Surroundings {
            make: &mut || subject.borrow_mut().make(),
            look: &mut || subject.borrow().look(),
            time: &|| Clock.now(),
            progress: &mut |stage, cycle| progress(stage, cycle, trial.cycles, &told, stop),
        },
    )
}

fn progress(
    stage: Stage,
    cycle: u64,
    cycles: u64,
    told: &Cell<Instant>,
    stop: &AtomicBool,
) -> ControlFlow<()> {
    let now = Clock.now();
    if now.since(told.get()) >= PROGRESS {
        told.set(now);
        output::warn(format_args!("{}: cycle {cycle} of {cycles}", doing(stage)));
    }
    match stop.load(Ordering::Acquire) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

fn doing(stage: Stage) -> &'static str {
    match stage {
        Stage::Alone => "running it undisturbed",
        Stage::Twin => "comparing a second instance",
        Stage::MovedToNew => "moving its state to new instances",
        Stage::MovedToUsed => "moving its state to used instances",
        Stage::Reset => "comparing it after a reset",
    }
}
