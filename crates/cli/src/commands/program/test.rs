//! `bumpless program test`: whether a program can be made redundant.

use std::cell::Cell;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bumpless_base::{Duration, Instant};
use bumpless_controller::Application;
use bumpless_host::kit::{self, Inputs, Report, Stage, Surroundings, Table, Trial};
use bumpless_host::wasm::{Counts, Module, Wasm};
use bumpless_host::{Limits, Shape};
use bumpless_net_linux::Clock;
use clap::Args;
use serde_json::{Value, json};

use super::figures::{hexadecimal, spread, times};
use crate::output::{self, Failure, Outcome};
use crate::stop;

/// Between two lines about how far a test is.
const PROGRESS: Duration = Duration::from_secs(2);

/// Most values that a test keeps to compare with.
const VALUES: u64 = 32 << 20;

/// Run a program side by side with itself, move its state between instances at random cycles, and compare every output
///
/// Says whether the program can be made redundant, else what hinders it and in which cycle that was first seen; how long
/// it computes, how large its state is and how much of that changes in a cycle. Inputs are drawn, or come from a file.
#[derive(Debug, Args)]
pub struct Test {
    /// The program's file
    file: PathBuf,
    /// Number of input values; may be left out if the program tells it, or with --data
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(..=10_000))]
    inputs: Option<u16>,
    /// Number of output values; may be left out if the program tells it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(..=10_000))]
    outputs: Option<u16>,
    /// Cycles of each run
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    cycles: u64,
    /// How often the state is moved in a run, before cycles that are drawn
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    moves: u64,
    /// Draws inputs and cycles; the same seed gives the same test
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The program's period
    #[arg(long, value_name = "MS", default_value_t = 10.0, value_parser = milliseconds)]
    period: f64,
    /// Time that a cycle may take; if left out, the period
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

fn milliseconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (0.001..=60_000.0).contains(&number) => Ok(number),
        _ => Err("give milliseconds from 0.001 to 60000".into()),
    }
}

fn span(milliseconds: f64) -> Duration {
    Duration::from_nanos((milliseconds * 1e6).round() as u64)
}

impl Test {
    /// Runs the command.
    pub fn execute(&self) -> Outcome {
        let limits = Limits::within(span(self.limit.unwrap_or(self.period)));
        let module = Module::open(&self.file).map_err(Failure::refused)?;
        let counts = Counts::told_by(&module, &limits).map_err(Failure::refused)?;
        let table = self.table()?;
        let shape = self.shape(counts, table.as_ref())?;
        if self.cycles.saturating_mul(shape.outputs as u64) > VALUES {
            return Err(Failure::usage(format_args!(
                "--cycles: {} cycles of {} outputs are more than a test can keep ({VALUES} values); give fewer",
                self.cycles, shape.outputs
            )));
        }
        let trial = Trial {
            cycles: self.cycles,
            moves: self.moves,
            seed: self.seed,
            period: span(self.period),
            inputs: table.map_or(Inputs::Drawn { seed: self.seed }, Inputs::Table),
        };
        let module = Arc::new(module);
        // What is wrong with the module is no finding of the test.
        Wasm::new(Arc::clone(&module), shape, limits).map_err(Failure::refused)?;
        let report = examine(&module, shape, limits, &trial)?;
        if self.json {
            output::print_line(self.as_json(&module, &report));
        } else {
            output::print_line(self.as_text(&module, &report));
        }
        Ok(
            match (report.can_be_redundant(), report.hindrances.is_empty()) {
                (true, _) => ExitCode::SUCCESS,
                (false, true) => ExitCode::from(output::INTERRUPTED),
                (false, false) => ExitCode::from(1),
            },
        )
    }

    fn table(&self) -> Result<Option<Table>, Failure> {
        let Some(path) = &self.data else {
            return Ok(None);
        };
        let told =
            |cause: String| Failure::usage(format_args!("--data {}: {cause}", path.display()));
        let text = fs::read_to_string(path).map_err(|error| told(error.to_string()))?;
        let table = Table::parse(&text).map_err(|error| told(error.to_string()))?;
        Ok(Some(table))
    }

    fn shape(&self, counts: Counts, table: Option<&Table>) -> Result<Shape, Failure> {
        let told = |count: Option<i32>| count.and_then(|count| usize::try_from(count).ok());
        let columns = table.map(Table::columns);
        let inputs = self
            .inputs
            .map(usize::from)
            .or(told(counts.inputs))
            .or(columns);
        let outputs = self.outputs.map(usize::from).or(told(counts.outputs));
        let missing = |what: &str| {
            Failure::usage(format_args!(
                "{} does not tell how many {what} it has; give --{what}",
                self.file.display()
            ))
        };
        let inputs = inputs.ok_or_else(|| missing("inputs"))?;
        if let Some(columns) = columns.filter(|&columns| columns != inputs) {
            return Err(Failure::usage(format_args!(
                "--data: the table has {columns} columns, and the program has {inputs} inputs; give a column for each"
            )));
        }
        Ok(Shape {
            inputs,
            outputs: outputs.ok_or_else(|| missing("outputs"))?,
            state_max: self.state_max as usize,
        })
    }

    fn as_json(&self, module: &Module, report: &Report) -> Value {
        let hindrances: Vec<_> = report
            .hindrances
            .iter()
            .map(|hindrance| {
                json!({
                    "name": hindrance.name(),
                    "cycle": hindrance.cycle(),
                    "output": hindrance.difference().map(|difference| difference.output),
                    "what": hindrance.to_string(),
                })
            })
            .collect();
        let notes: Vec<_> = report
            .notes
            .iter()
            .map(|note| json!({"name": note.name(), "what": note.to_string()}))
            .collect();
        json!({
            "schema": "bumpless.program-test/1",
            "ok": report.can_be_redundant(),
            "file": module.file(),
            "kind": "wasm",
            "sha256": hexadecimal(&module.sha256()),
            "inputs": report.inputs,
            "outputs": report.outputs,
            "seed": self.seed,
            "cycles": report.cycles,
            "moves": report.moves,
            "hindrances": hindrances,
            "notes": notes,
            "execute_ns": spread(report.executing),
            "save_ns": spread(report.saving),
            "state_bytes": spread(report.state_bytes),
            "changed_share": {"mean": report.changed.mean, "max": report.changed.max},
            "interrupted": report.interrupted,
        })
    }

    fn as_text(&self, module: &Module, report: &Report) -> String {
        let verdict = match (report.can_be_redundant(), report.hindrances.is_empty()) {
            (true, _) => "can be made redundant",
            (false, true) => "nothing found until it was interrupted",
            (false, false) => "cannot be made redundant",
        };
        let mut lines = vec![format!("{}: {verdict}", module.file())];
        let hindrances = report.hindrances.iter();
        lines.extend(hindrances.map(|hindrance| format!("  hindered: {hindrance}")));
        lines.extend(report.notes.iter().map(|note| format!("  note: {note}")));
        lines.push(format!(
            "  tested    {} cycles with seed {}, the state moved {} times, to new instances and to used ones",
            report.cycles, self.seed, report.moves
        ));
        if report.cycles > 0 {
            lines.push(format!("  a cycle   {}", times(report.executing)));
            lines.push(format!(
                "  state     {} bytes at the median, {} at most; saving takes {}",
                report.state_bytes.p50,
                report.state_bytes.max,
                times(report.saving)
            ));
            lines.push(format!(
                "  changed   {:.1} % of it in a cycle, {:.1} % at most",
                report.changed.mean * 100.0,
                report.changed.max * 100.0
            ));
        }
        lines.join("\n")
    }
}

fn examine(
    module: &Arc<Module>,
    shape: Shape,
    limits: Limits,
    trial: &Trial,
) -> Result<Report, Failure> {
    let stop = stop::stop_flag()?;
    let mut make = || {
        let program = Wasm::new(Arc::clone(module), shape, limits);
        let program = program.map_err(|fault| fault.to_string())?;
        Ok(Box::new(program) as Box<dyn Application>)
    };
    let told = Cell::new(Clock.now());
    Ok(kit::examine(
        trial,
        Surroundings {
            make: &mut make,
            time: &|| Clock.now(),
            progress: &mut |stage, cycle| progress(stage, cycle, trial.cycles, &told, &stop),
        },
    ))
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
