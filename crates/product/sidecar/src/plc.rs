//! PLC programs: the C that MATIEC generates, or the C++ of STruC++, becomes a program for [`Sidecar`] (H-21 to H-44).
//!
//! Everything that the generated code can write is gathered in one section at a fixed address of an executable that is
//! not position independent. That section is the state: it can be copied as it is into another process of the same
//! binary, pointers included.

mod elementary;
mod generate;
mod identity;
mod located;
mod retained;
mod sources;
mod strucpp;
mod succession;
mod symbols;
mod tasks;
mod tools;
mod undefined;
mod variables;

use std::fmt;
use std::path::{Path, PathBuf};

use bumpless_base::Duration;

use crate::{Command, Hash, Limits, Shape, Sidecar};
use located::Table;
use sources::Sources;
use tools::Tools;

pub use identity::{is_built, is_built_and_changed};
pub use located::{Located, Type};
pub use retained::{Damaged, Variable, retained};
pub use succession::{OtherType, Succession};
pub use tasks::Task;
pub use variables::{StateVariable, Unreadable, variables};

/// What is built how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The C compiler, GCC or Clang.
    pub compiler: PathBuf,
    /// The C++ compiler for projects of STruC++, G++ or Clang.
    pub cpp_compiler: PathBuf,
    /// Where the generated code's headers are, besides the project's folder and its `lib`.
    pub includes: Vec<PathBuf>,
    /// The executable.
    pub output: PathBuf,
}

/// What was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// The executable.
    pub output: PathBuf,
    /// Its SHA-256, by which both nodes know that they have the same.
    pub hash: Hash,
    /// What its states are told by.
    pub owner: u64,
    /// Bytes of its state.
    pub state_len: usize,
    /// Its variables, by which the next version goes on with its state.
    pub variables: Vec<StateVariable>,
    /// The period that it needs.
    pub period: Duration,
    /// Its inputs in their order.
    pub inputs: Vec<Located>,
    /// Its outputs in their order.
    pub outputs: Vec<Located>,
    /// Its retained variables, as they are named.
    pub retained: Vec<Variable>,
    /// Whether it takes nothing from the system's libraries, so that both nodes compute with the same.
    pub self_contained: bool,
    /// Its tasks that run by interval, by priority.
    pub tasks: Vec<Task>,
    /// What was compiled.
    pub sources: Vec<String>,
    /// What was left out, with the reason.
    pub left_out: Vec<(String, &'static str)>,
}

/// Why nothing was built: everything that was found, each with its place and remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildFault(pub Vec<String>);

impl BuildFault {
    fn one(problem: impl Into<String>) -> Self {
        Self(vec![problem.into()])
    }
}

impl fmt::Display for BuildFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for BuildFault {}

/// The library and what is specific to PLC programs, as this binary carries them.
const LIBRARY: [(&str, &str); 6] = [
    ("bumpless.h", include_str!("../../program/c/bumpless.h")),
    ("bumpless.c", include_str!("../../program/c/bumpless.c")),
    ("plc.h", include_str!("../../program/c/plc.h")),
    ("plc.c", include_str!("../../program/c/plc.c")),
    ("plc_matiec.c", include_str!("../../program/c/plc_matiec.c")),
    (
        "plc_strucpp.cpp",
        include_str!("../../program/c/plc_strucpp.cpp"),
    ),
];

/// Builds the project in the folder `project`. `progress` is told each step before it begins.
///
/// # Errors
/// Tools, files, symbols or variables are missing or wrong; nothing is left but an older executable.
pub fn build(
    project: &Path,
    options: &Options,
    progress: &mut dyn FnMut(&str),
) -> Result<Built, BuildFault> {
    let sources = Sources::find(project)?;
    let table = match &sources.strucpp {
        Some(it) => it.table(project),
        None => Table::of_matiec(project),
    };
    let table = table.and_then(|it| it.in_order(project));
    let (table, retained) = both(table, retained::find(project, sources.strucpp.as_ref()))?;
    let place = tempfile::tempdir().map_err(|error| {
        BuildFault::one(format!("no folder for what is built can be made: {error}"))
    })?;
    let tools = Tools::new(project, options, place.path(), sources.strucpp.is_some())?;
    for (name, text) in LIBRARY {
        tools.write(name, text)?;
    }

    let mut objects = Vec::new();
    for source in &sources.compiled {
        progress(source);
        objects.push(tools.compile_generated(source)?);
    }
    objects.push(match &sources.strucpp {
        Some(it) => {
            tools.write("program.hpp", &it.header())?;
            tools.compile_beside("plc_strucpp.cpp", strucpp::UNKNOWN)?
        }
        None => {
            let given = symbols::of(&tools, &objects)?;
            tools.write("located.c", &generate::missing(&table, &given))?;
            tools.compile("located.c")?
        }
    });
    let (name, text) = retained::table(&retained, sources.strucpp.as_ref());
    tools.write(name, &text)?;
    objects.push(tools.compile_beside(name, retained::OTHER)?);
    progress("one object of what can be written");
    let gathered = tools.gather(&objects)?;
    symbols::judge(&tools, &gathered)?;

    tools.write("table.c", &generate::table(&table))?;
    progress("the executable");
    let (executable, self_contained) = tools.link(gathered)?;
    let state_len = symbols::state_len(&tools, &executable)?;
    let variables = variables::find(&tools, &executable, state_len)?;
    retained::judge(&executable, &variables)?;
    tools.add_table(&executable, &variables::table(&variables))?;
    identity::put(&executable)?;
    let (period, owner) = try_out(&executable, &table, state_len, tools.is_cpp())?;
    tools.put_in_place(&executable, &options.output)?;
    let hash = Hash::of_file(&options.output).map_err(|error| {
        BuildFault::one(format!(
            "{} cannot be read: {error}",
            options.output.display()
        ))
    })?;
    Ok(Built {
        output: options.output.clone(),
        hash,
        owner,
        state_len,
        variables,
        period,
        inputs: table.inputs,
        outputs: table.outputs,
        retained,
        self_contained,
        tasks: sources.tasks,
        sources: sources.compiled,
        left_out: sources.left_out,
    })
}

/// Both, or all that is wrong with either.
fn both<A, B>(a: Result<A, BuildFault>, b: Result<B, BuildFault>) -> Result<(A, B), BuildFault> {
    match (a, b) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(a), Err(b)) => Err(BuildFault([a.0, b.0].concat())),
        (Err(fault), _) | (_, Err(fault)) => Err(fault),
    }
}

/// Starts what was built, which tells the rest of itself.
fn try_out(
    executable: &Path,
    table: &Table,
    state_len: usize,
    is_cpp: bool,
) -> Result<(Duration, u64), BuildFault> {
    let shape = Shape {
        inputs: table.inputs.len(),
        outputs: table.outputs.len(),
        state_max: state_len,
    };
    let started = Sidecar::start(&Command::new(executable), shape, Limits::default());
    let sidecar = started
        .map_err(|fault| BuildFault::one(format!("what was built does not start: {fault}")))?;
    let Some(period) = sidecar.period() else {
        return Err(BuildFault::one(match is_cpp {
            true => {
                "the project has no task: give its CONFIGURATION a TASK that runs a program, and generate the code again"
            }
            false => {
                "common_ticktime__ is 0, so nobody knows the period: give each task of the project an INTERVAL, and generate \
                 its code again"
            }
        }));
    };
    Ok((period, sidecar.owner()))
}
