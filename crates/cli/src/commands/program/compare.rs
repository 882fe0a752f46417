//! `bumpless program compare`: what becomes of the state of a program in its next version.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bumpless_host::subject::{Named, UnfitCause};
use bumpless_host::{Kind, Subject, subject};
use bumpless_sidecar::plc::{self, Succession};
use bumpless_sidecar::{Command, Hash, Limits, Told, ask};
use clap::Args;
use serde_json::{Value, json};

use crate::output::{self, Failure, Outcome};

/// Most bytes of a state.
const STATE_MAX: usize = 1 << 28;

/// Tell what of its state a program's next version goes on with, when `bumpless apply` puts that in its place
///
/// Of a PLC program, each variable: kept, of another type, new, or lost (spec/sidecar.md, H-34). Of programs in processes of
/// their own, which are started for that, and of WebAssembly modules: whether the next version takes over such a state as it is,
/// converts it, or neither.
///
/// Exit status 0: it goes on. 1: it does not, or not with every variable (then the configuration must say so, `state`), or one of the
/// files is no program, or cannot be read or started. 2: wrong usage.
#[derive(Debug, Args)]
pub struct Compare {
    /// The file of the version that runs
    old: PathBuf,
    /// The file of the next one
    new: PathBuf,
    /// Print the result as JSON (schema bumpless.program-compare/1)
    #[arg(long)]
    pub json: bool,
}

/// How the next version goes on.
enum How {
    /// It is the same file.
    Same,
    Variables(Succession),
    /// The state is taken over as it is.
    AsItIs,
    /// By a function of the next version.
    ByFunction,
    /// Not at all, for this reason.
    Not(&'static str),
}

impl How {
    fn word(&self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Variables(_) => "by_variables",
            Self::AsItIs => "as_it_is",
            Self::ByFunction => "by_function",
            Self::Not(_) => "not",
        }
    }

    fn is_whole(&self) -> bool {
        match self {
            Self::Variables(succession) => succession.other_type.is_empty(),
            Self::Not(_) => false,
            _ => true,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Same => "it is the same file".into(),
            Self::Variables(succession) => succession.to_string(),
            Self::AsItIs => "the next version takes over the state as it is".into(),
            Self::ByFunction => {
                "the next version converts the state by a function of its own".into()
            }
            Self::Not(why) => format!(
                "the next version begins anew: {why}; say state = \"fresh\" if that is meant"
            ),
        }
    }
}

impl Compare {
    /// Runs the command.
    pub fn execute(&self) -> Outcome {
        let [old, new] = [read(&self.old)?, read(&self.new)?];
        let hashes = [&old, &new].map(|bytes| Hash::of(bytes).to_string());
        let how = self.how(&old, &new)?;
        if self.json {
            output::print_line(self.as_json(&how, &hashes));
        } else {
            output::print_line(how.text());
        }
        Ok(match how.is_whole() {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        })
    }

    fn how(&self, old: &[u8], new: &[u8]) -> Result<How, Failure> {
        if old == new {
            return self.is_program().map(|()| How::Same);
        }
        let of = |bytes: &[u8]| (plc::is_built(bytes), Kind::of(bytes) == Kind::Wasm);
        match (of(old), of(new)) {
            ((true, _), (true, _)) => self.variables(old, new),
            ((_, true), (_, true)) => self.modules(),
            ((false, false), (false, false)) => self.processes(),
            ((true, _), _) if plc::is_built_and_changed(new) => Ok(How::Not(
                "the file of the next version is a PLC program that has changed since bumpless program build made it; copy or \
                 build it again",
            )),
            (_, (true, _)) if plc::is_built_and_changed(old) => Ok(How::Not(
                "the file of the version that runs is a PLC program that has changed since bumpless program build made it; \
                 compare with the one that runs",
            )),
            _ => Ok(How::Not("the two are programs of different kinds")),
        }
    }

    /// Whether the file is a program at all: whoever compares two copies of something else has mistaken what they are.
    fn is_program(&self) -> Result<(), Failure> {
        let named = Named {
            state_max: STATE_MAX,
            ..Named::new(&self.old)
        };
        match Subject::open(named, &|| true) {
            // How many values it has decides nothing here, and a module that this build does not run is one.
            Err(unfit) if !unfit.is_usage() && !matches!(unfit.cause, UnfitCause::WithoutWasm) => {
                Err(Failure::refused(unfit))
            }
            _ => Ok(()),
        }
    }

    fn variables(&self, old: &[u8], new: &[u8]) -> Result<How, Failure> {
        let told = |path: &Path, bytes: &[u8]| {
            let found = plc::variables(bytes);
            found.map_err(|error| Failure::refused(format_args!("{}: {error}", path.display())))
        };
        let (old, new) = (told(&self.old, old)?, told(&self.new, new)?);
        if old.is_empty() || new.is_empty() {
            return Ok(How::Not(
                "one of the files does not tell its variables; build it again with bumpless program build",
            ));
        }
        Ok(How::Variables(Succession::between(&old, &new)))
    }

    #[cfg(feature = "wasm")]
    fn modules(&self) -> Result<How, Failure> {
        let module = bumpless_host::wasm::Module::open(&self.new, Default::default())
            .map_err(Failure::refused)?;
        Ok(match module.exports("bumpless_convert") {
            true => How::ByFunction,
            false => How::Not("it does not export bumpless_convert (spec/program.md, G-31)"),
        })
    }

    #[cfg(not(feature = "wasm"))]
    fn modules(&self) -> Result<How, Failure> {
        Err(Failure::refused(
            "this program was built without WebAssembly; build it with `cargo build --features wasm`",
        ))
    }

    fn processes(&self) -> Result<How, Failure> {
        let (old, new) = (told(&self.old)?, told(&self.new)?);
        let same = old.state_version != 0 && old.state_version == new.state_version;
        Ok(match (same, new.converts) {
            (true, _) if old.state_len == new.state_len => How::AsItIs,
            (true, _) => How::Not("its state has another length with the same state_version"),
            (false, true) => How::ByFunction,
            (false, false) => How::Not(
                "it has another state_version or none, and no function that converts (spec/sidecar.md, H-36)",
            ),
        })
    }

    fn as_json(&self, how: &How, [old, new]: &[String; 2]) -> Value {
        let mut line = json!({
            "schema": "bumpless.program-compare/1",
            "ok": how.is_whole(),
            "old": {"file": self.old.display().to_string(), "sha256": old},
            "new": {"file": self.new.display().to_string(), "sha256": new},
            "goes_on": how.word(),
            "why": match how {
                How::Not(why) => Some(why),
                _ => None,
            },
        });
        if let How::Variables(succession) = how {
            line["variables"] = variables(succession);
        }
        line
    }
}

/// What becomes of each variable.
pub fn variables(succession: &Succession) -> Value {
    let other = succession.other_type.iter();
    let other: Vec<_> = other
        .map(|it| json!({"name": it.name, "was": it.was, "is": it.is}))
        .collect();
    json!({
        "kept": succession.kept,
        "other_type": other,
        "added": succession.added,
        "lost": succession.lost,
        "addresses": succession.addresses,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    subject::read(path)
        .map_err(|cause| Failure::refused(format_args!("{}: {cause}", path.display())))
}

/// What a program says of itself when it is started.
fn told(path: &Path) -> Result<Told, Failure> {
    let file = std::path::absolute(path).map_err(Failure::refused)?;
    let is_python = file.extension().is_some_and(|ending| ending == "py");
    let command = match is_python {
        true => Command::new("python3").script(file),
        false => Command::new(file),
    };
    ask(&command, STATE_MAX, Limits::default(), &|| true).map_err(Failure::refused)
}
