//! The result of a run, as it is kept: `bumpless.bench/1` (spec/bench.md).

use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::run::cost::Cost;
use crate::run::cut::Cuts;
use crate::run::cyclic::Applications;
use crate::run::transfers::Cell;

/// The schema's name.
pub const SCHEMA: &str = "bumpless.bench/1";

/// A whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`SCHEMA`].
    pub schema: String,
    /// Whether everything that was planned was measured.
    pub complete: bool,
    /// When it began, seconds since 1970.
    pub began_unix_s: u64,
    /// How long it took, seconds.
    pub took_s: f64,
    /// The command line.
    pub command: Vec<String>,
    /// Version of Bumpless.
    pub version: String,
    /// The commit that was checked out where the command ran, if any.
    pub commit: Option<String>,
    /// The computer.
    pub host: Host,
    /// What is measured where: `loopback` or `lab`.
    pub place: String,
    /// The peers.
    pub peers: Vec<PeerReport>,
    /// Transfers of one size with one loss (tables 13, 15, 16, 21).
    pub transfers: Vec<Cell>,
    /// Many applications at once (tables 20 and 22), their growing load, and many channels.
    pub applications: Vec<Applications>,
    /// One network cut in the middle of a transfer.
    pub cuts: Vec<Cuts>,
    /// Processor time and memory.
    pub costs: Vec<Cost>,
}

/// The computer on which all of it ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Kernel's name, version and build.
    pub kernel: String,
    /// Kind of processor.
    pub processor: String,
    /// How many of them.
    pub processors: usize,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Load average at the start: what else was running.
    pub load: String,
    /// How long processors were allowed to take to wake while everything was measured, microseconds; null: as the
    /// computer is.
    #[serde(default)]
    pub wake_latency_us: Option<u16>,
}

/// What a peer told of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeerReport {
    /// Its name.
    pub name: String,
    /// Version of the library or kernel that does the work.
    pub version: String,
    /// What was set otherwise than by default.
    pub settings: String,
    /// Networks that it uses.
    pub networks: usize,
    /// Why it could not be measured, if so.
    pub error: Option<String>,
}

impl Run {
    /// The results of one case.
    pub fn of_case<'a>(&'a self, case: &'a str) -> impl Iterator<Item = &'a Applications> {
        let results = self.applications.iter();
        results.filter(move |result| result.case == case)
    }

    /// A run that begins.
    pub fn begin(place: &str) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            schema: SCHEMA.into(),
            began_unix_s: now.map_or(0, |since| since.as_secs()),
            command: command_line(),
            version: env!("CARGO_PKG_VERSION").into(),
            commit: commit(),
            host: Host::read(),
            place: place.into(),
            ..Self::default()
        }
    }
}

/// The arguments as given, the program by its name alone.
fn command_line() -> Vec<String> {
    let mut words: Vec<String> = std::env::args().collect();
    if let Some(program) = words.first_mut() {
        let name = Path::new(program.as_str()).file_name();
        *program = name.map_or_else(
            || "bumpless".into(),
            |name| name.to_string_lossy().into_owned(),
        );
    }
    words
}

/// The commit of the checkout in which the command runs; with a mark if files differ from it.
fn commit() -> Option<String> {
    let output = Command::new("git")
        .args([
            "describe",
            "--always",
            "--dirty",
            "--abbrev=12",
            "--exclude=*",
        ])
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

impl Host {
    fn read() -> Self {
        let file = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.split_once(':'))
                .map(|(_, value)| value.trim().to_owned())
                .unwrap_or_default()
        };
        let memory = field(&file("/proc/meminfo"), "MemTotal");
        let kilobytes = memory
            .split_whitespace()
            .next()
            .and_then(|word| word.parse().ok());
        Self {
            kernel: file("/proc/version")
                .split(" (")
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned(),
            processor: field(&file("/proc/cpuinfo"), "model name"),
            processors: std::thread::available_parallelism().map_or(0, usize::from),
            memory_bytes: kilobytes.unwrap_or(0u64) * 1024,
            load: file("/proc/loadavg").trim().to_owned(),
            wake_latency_us: None,
        }
    }
}
