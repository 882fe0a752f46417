//! `bumpless program build`: the C or C++ of a PLC program becomes an executable that a pair runs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bumpless_sidecar::plc::{self, Built, Located, Options};
use clap::Args;
use serde_json::{Value, json};

use crate::output::{self, Failure, Outcome};

/// Build a PLC program for the pair from the C that MATIEC (OpenPLC, Beremiz) generates, or the C++ of STruC++ (later OpenPLC)
///
/// DIR has what the editor's compiler generates. MATIEC: Config0.c, Res0.c, POUS.c, LOCATED_VARIABLES.h and, in `lib`, its
/// headers. STruC++: generated.hpp, the C++ files and, in `strucpp_runtime/include`, its headers. `io.toml` in it says which
/// located variable is which input or output, without it their order is that of the addresses, and which variables are
/// retained (by their names in VARIABLES.csv, or as INSTANCE.VARIABLE). Copy the executable to both
/// computers: only the same one can go on from its states.
#[derive(Debug, Args)]
pub struct Build {
    /// The folder with the generated files
    dir: PathBuf,
    /// The executable [default: the folder's name, here]
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// The C compiler [default: $CC, else cc]
    #[arg(long)]
    cc: Option<PathBuf>,
    /// The C++ compiler, for projects of STruC++ [default: $CXX, else c++]
    #[arg(long)]
    cxx: Option<PathBuf>,
    /// A further folder with headers, as MATIEC's lib/C
    #[arg(long, value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Print the result as JSON (schema bumpless.program-build/1)
    #[arg(long)]
    pub json: bool,
}

impl Build {
    /// Runs the command.
    pub fn execute(&self) -> Outcome {
        if let Some(folder) = self.include.iter().find(|folder| !folder.is_dir()) {
            return Err(Failure::usage(format_args!(
                "--include {}: there is no such folder; give one that has the headers",
                folder.display()
            )));
        }
        let options = Options {
            compiler: compiler(self.cc.as_ref(), "CC", "cc"),
            cpp_compiler: compiler(self.cxx.as_ref(), "CXX", "c++"),
            includes: self.include.clone(),
            output: self.executable()?,
        };
        let mut progress = |step: &str| {
            if !self.json {
                output::warn(format_args!("building {step}"));
            }
        };
        let built = plc::build(&self.dir, &options, &mut progress).map_err(Failure::refused)?;
        if self.json {
            output::print_line(as_json(&built));
        } else {
            output::print_line(as_text(&built));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn executable(&self) -> Result<PathBuf, Failure> {
        if let Some(output) = &self.output {
            return Ok(output.clone());
        }
        let folder = self.dir.canonicalize().unwrap_or_else(|_| self.dir.clone());
        let Some(name) = folder.file_name() else {
            return Err(Failure::usage(
                "the folder has no name that the executable could have; name it with --output",
            ));
        };
        if Path::new(name).is_dir() {
            return Err(Failure::usage(format_args!(
                "{} is a folder here, so the executable cannot have its name; name it with --output",
                Path::new(name).display()
            )));
        }
        Ok(name.into())
    }
}

/// The compiler that is named, or else the one that this variable of the environment has.
fn compiler(named: Option<&PathBuf>, variable: &str, otherwise: &str) -> PathBuf {
    let named = named.cloned().map(OsString::from);
    let told = named.or_else(|| std::env::var_os(variable).filter(|it| !it.is_empty()));
    told.unwrap_or_else(|| otherwise.into()).into()
}

fn as_json(built: &Built) -> Value {
    let values = |list: &[Located]| -> Vec<Value> {
        let value = |it: &Located| json!({"address": it.address, "type": it.of.to_string()});
        list.iter().map(value).collect()
    };
    let left_out = built.left_out.iter();
    let left_out: Vec<_> = left_out
        .map(|(file, why)| json!({"file": file, "why": why}))
        .collect();
    json!({
        "schema": "bumpless.program-build/1",
        "file": built.output.display().to_string(),
        "sha256": built.hash.to_string(),
        "period_ns": built.period.as_nanos(),
        "state_bytes": built.state_len,
        "inputs": values(&built.inputs),
        "outputs": values(&built.outputs),
        "retained": built.retained.iter().map(|it| json!({
            "name": it.name,
            "type": it.of,
        })).collect::<Vec<_>>(),
        "self_contained": built.self_contained,
        "tasks": built.tasks.iter().map(|task| json!({
            "name": task.name,
            "every": task.every,
            "interval_ns": task.interval(built.period).as_nanos(),
        })).collect::<Vec<_>>(),
        "compiled": built.sources,
        "left_out": left_out,
    })
}

fn tasks(built: &Built) -> String {
    let tasks = built.tasks.iter().map(|task| {
        let interval = task.interval(built.period).as_millis_f64();
        format!("{} every {interval} ms", task.name)
    });
    match built.tasks.is_empty() {
        true => "each cycle".into(),
        false => tasks.collect::<Vec<_>>().join(", "),
    }
}

fn as_text(built: &Built) -> String {
    let values = |list: &[Located]| -> String {
        let value = |it: &Located| format!("{} {}", it.address, it.of);
        match list {
            [] => "none".into(),
            list => list.iter().map(value).collect::<Vec<_>>().join(", "),
        }
    };
    let left_out = built.left_out.iter();
    let left_out: String = left_out
        .map(|(file, why)| format!("\n  not compiled {file}: {why}"))
        .collect();
    let libraries = match built.self_contained {
        true => "",
        false => {
            "\n  It needs the C library of the system, which should be of the same version on both computers"
        }
    };
    format!(
        "{}\n  sha256   {}\n  period   {} ms\n  tasks    {}\n  state    {} bytes\n  inputs   {}\n  outputs  {}\n  retained {}{left_out}{libraries}\n\
         Copy it to both computers as it is: only the same file goes on from its states.",
        built.output.display(),
        built.hash,
        built.period.as_millis_f64(),
        tasks(built),
        built.state_len,
        values(&built.inputs),
        values(&built.outputs),
        retained(built),
    )
}

fn retained(built: &Built) -> String {
    let each = built
        .retained
        .iter()
        .map(|it| format!("{} {}", it.name, it.of));
    match built.retained.is_empty() {
        true => "none".into(),
        false => each.collect::<Vec<_>>().join(", "),
    }
}
