//! A program on the command line: which it is, and how it is started.

use std::path::{Path, PathBuf};

use bumpless_base::Duration;
use bumpless_config::read_text_file;
use bumpless_host::Subject;
use bumpless_host::kit::Table;
use bumpless_host::subject::{Named, Unfit, UnfitCause};
use clap::Args;

use crate::output::Failure;

/// Longest file of inputs, bytes.
const DATA_MAX: usize = 64 << 20;

/// A program's file and what belongs to it.
#[derive(Clone, Debug, Args)]
pub struct Subjected {
    /// The program's file
    pub file: PathBuf,
    #[command(flatten)]
    pub how: How,
}

/// How a program is started, and with which period.
#[derive(Clone, Debug, Args)]
#[group(skip)]
pub struct How {
    /// What starts the file, with spaces between words, as `command` in the configuration [default for a .py: python3]
    #[arg(long, value_name = "WORDS", value_parser = words)]
    command: Option<String>,
    /// An argument behind the file, as in `arguments` in the configuration; once for each
    #[arg(long = "argument", value_name = "WORD", allow_hyphen_values = true)]
    arguments: Vec<String>,
    /// Number of its input values; may be left out if the program tells it, or with --data
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(..=10_000))]
    inputs: Option<u16>,
    /// Number of its output values; may be left out if the program tells it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(..=10_000))]
    outputs: Option<u16>,
    /// What runs a WebAssembly module, as `engine` in the configuration [default: wasmi]
    #[arg(long, value_name = "NAME", value_parser = ["wasmi", "wasmtime"])]
    engine: Option<String>,
    /// Most bytes of a WebAssembly module's memory, as `memory_max` in the configuration [default: 16777216]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(65_536..=4_294_967_296))]
    memory_max: Option<u64>,
    /// The program's period [default: what the program needs, else 10]
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    period: Option<f64>,
}

impl Subjected {
    /// The program that is meant.
    pub fn named(&self) -> Named {
        self.how.named(&self.file)
    }
}

impl How {
    /// Whether nothing is said.
    pub fn is_silent(&self) -> bool {
        let counts = (self.inputs, self.outputs);
        let started = (self.command.as_ref(), &self.arguments[..]);
        let runs = self.engine.is_none() && self.memory_max.is_none();
        let others = self.period.is_none() && runs;
        started == (None, &[]) && counts == (None, None) && others
    }

    /// The program in `file`, started like that.
    pub fn named(&self, file: &Path) -> Named {
        let command = self.command.as_deref().unwrap_or_default();
        Named {
            command: command.split_whitespace().map(str::to_owned).collect(),
            arguments: self.arguments.clone(),
            inputs: self.inputs.map(usize::from),
            outputs: self.outputs.map(usize::from),
            period: self.period.map(span),
            engine: self.engine.clone(),
            memory_max: self.memory_max,
            ..Named::new(file)
        }
    }
}

/// Words that start a file.
fn words(text: &str) -> Result<String, String> {
    match text.trim().is_empty() {
        false => Ok(text.to_owned()),
        true => Err("give what starts the file, such as python3, or leave it out".into()),
    }
}

/// Milliseconds as an option has them.
pub fn milliseconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (0.001..=60_000.0).contains(&number) => Ok(number),
        _ => Err("give milliseconds from 0.001 to 60000".into()),
    }
}

/// As a span of time.
pub fn span(milliseconds: f64) -> Duration {
    Duration::from_nanos((milliseconds * 1e6).round() as u64)
}

/// Why a program is not taken.
pub fn refused(unfit: &Unfit) -> Failure {
    match unfit.is_usage() {
        true => Failure::usage(unfit),
        false => Failure::refused(unfit),
    }
}

/// The inputs in the file of `--data`.
///
/// # Errors
/// It cannot be read, or is no table.
pub fn table(path: &Path) -> Result<Table, Failure> {
    let told = |cause: String| Failure::usage(format_args!("--data {}: {cause}", path.display()));
    let text = read_text_file(path, DATA_MAX).map_err(|error| told(error.to_string()))?;
    Table::parse(&text).map_err(|error| told(error.to_string()))
}

/// Looks at a program, for as long as that is wanted; the table tells how many inputs it has, if nobody else does.
///
/// # Errors
/// It is none, does not fit the table, or is not wanted any more.
pub fn open(
    mut named: Named,
    table: Option<&Table>,
    wanted: &dyn Fn() -> bool,
) -> Result<Subject, Failure> {
    let opened = match (Subject::open(named.clone(), wanted), table) {
        (Err(unfit), Some(table)) if matches!(unfit.cause, UnfitCause::NotTold("inputs")) => {
            named.inputs = Some(table.columns());
            Subject::open(named, wanted)
        }
        (opened, _) => opened,
    };
    let subject = opened.map_err(|unfit| refused(&unfit))?;
    fits(table, subject.shape().inputs)?;
    Ok(subject)
}

/// Whether the table has a column for each of the program's inputs.
///
/// # Errors
/// It has not.
fn fits(table: Option<&Table>, inputs: usize) -> Result<(), Failure> {
    match table.map(Table::columns) {
        Some(columns) if columns != inputs => Err(Failure::usage(format_args!(
            "--data: the table has {columns} columns, and the program has {inputs} inputs; give a column for each"
        ))),
        _ => Ok(()),
    }
}
