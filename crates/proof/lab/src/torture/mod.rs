//! Torture: the real programs in namespaces of their own, behind a switch that does to them what
//! networks do, judged by what the plant saw (spec/torture.md).

mod case;
mod configuration;
mod hosts;
pub(crate) mod judge;
pub(crate) mod ledger;
mod leftovers;
mod page;
pub(crate) mod pair;
pub(crate) mod result;
mod run;
mod soak;
mod stage;
mod switch;
mod table;
pub(crate) mod tail;
mod usage;
mod watch;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use case::names as case_names;
pub use result::TortureResult;
pub use run::run_torture;
pub use table::text;

/// What to do, and where to put what comes of it.
#[derive(Clone, Debug)]
pub struct TortureOptions {
    /// The `bumpless` program of which the processes are started.
    pub binary: PathBuf,
    /// Only cases whose names begin with one of these; all if empty.
    pub cases: Vec<String>,
    /// How often each case is repeated.
    pub repetitions: u32,
    /// A short run: fewer cases, shorter ones.
    pub quick: bool,
    /// Instead of the cases, the long run of so many seconds.
    pub soak: Option<u64>,
    /// What all chance is drawn from.
    pub seed: u64,
    /// Keep the result, and below `logs` everything else, in this directory, which must be new or empty.
    pub keep: Option<PathBuf>,
    /// Set to end early.
    pub stop: Arc<AtomicBool>,
}

/// Why nothing was judged.
#[derive(Debug)]
pub enum TortureError {
    /// The user ended it.
    Interrupted,
    /// The machine or the user's rights do not permit it; with the remedy.
    Impossible(String),
    /// No case has such a name.
    NoCase(String),
    /// The system refused something.
    System {
        /// What it was about.
        what: String,
        /// What the system said.
        cause: io::Error,
    },
    /// A process ended by itself: which, how, its last words.
    Ended(String, String, String),
    /// The pair did not become redundant without any fault; with what the nodes said last.
    NotRedundant(String),
}

impl TortureError {
    fn system(what: impl Into<String>, cause: io::Error) -> Self {
        Self::System {
            what: what.into(),
            cause,
        }
    }

    /// Whether the remedy lies with whoever called: wrong arguments, or rights that are missing.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Impossible(_) | Self::NoCase(_))
    }
}

impl fmt::Display for TortureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("ended early; nothing was judged"),
            Self::Impossible(why) => f.write_str(why),
            Self::NoCase(name) => write!(
                f,
                "no case is called '{name}'; there are {}",
                case_names().join(", ")
            ),
            Self::System { what, cause } => write!(f, "{what}: {cause}"),
            Self::Ended(process, how, words) => write!(
                f,
                "the process {process} ended by itself ({how}); its last words:\n{words}"
            ),
            Self::NotRedundant(nodes) => write!(
                f,
                "without any fault the pair did not become redundant in time; is the machine \
                 overloaded?\n{nodes}"
            ),
        }
    }
}

impl std::error::Error for TortureError {}

/// A result that was kept.
///
/// # Errors
/// The file cannot be read, or is none.
pub fn read(file: &Path) -> Result<TortureResult, String> {
    let fail = |error: String| {
        format!(
            "{}: {error}; give a result.json that --keep has written",
            file.display()
        )
    };
    let text = std::fs::read_to_string(file).map_err(|error| fail(error.to_string()))?;
    let found: TortureResult = serde_json::from_str(&text).map_err(|e| fail(e.to_string()))?;
    match found.schema == result::SCHEMA {
        true => Ok(found),
        false => Err(fail(format!(
            "schema '{}' is not '{}'",
            found.schema,
            result::SCHEMA
        ))),
    }
}

/// A result for programs: one line of `bumpless.torture/1`.
pub fn to_json(result: &TortureResult) -> String {
    // Text, numbers and lists of them have a JSON form.
    serde_json::to_string(result).unwrap_or_default()
}

/// CLOCK_BOOTTIME in nanoseconds.
fn now_ns() -> u64 {
    bumpless_net_linux::Clock.now().as_nanos()
}
