//! What was found, as it is kept: `bumpless.wan-programs/1` (spec/wan.md).

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use bumpless_bench::result::{Host, Run as BenchRun};
use bumpless_bench::run::meter::Jitter;
use serde::{Deserialize, Serialize};

use super::plan::Outage;
use super::protocol::Protocol;
use crate::study::{Network, Promise};

/// The schema's name.
pub const SCHEMA: &str = "bumpless.wan-programs/1";
/// Most bytes of a kept result that are read.
const FILE_MAX: u64 = 64 << 20;

/// Everything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Programs {
    /// The form and its version: `bumpless.wan-programs/1`.
    pub schema: String,
    /// Whether everything was measured for which there are programs here.
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
    /// The network.
    pub network: Network,
    /// What was asked for.
    pub settings: Settings,
    /// The control centres, the primary first.
    pub centres: Vec<String>,
    /// The programs.
    pub software: Vec<Software>,
    /// What died, and what that is in the network.
    pub outages: Vec<Died>,
    /// What the meters of the machine saw, from the beginning of the first pass on.
    pub jitter: Jitter,
    /// What is promised, judged.
    pub promises: Vec<Promise>,
    /// What each centre saw in each outage.
    pub rows: Vec<Row>,
    /// The same over time.
    pub courses: Vec<Course>,
}

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Substations at once.
    pub substations: usize,
    /// How long each outage lasted, seconds; afterwards it was waited for twice as long.
    pub seconds: u64,
    /// Between two orders or questions to a substation, and two reports of it, milliseconds.
    pub every_ms: u64,
    /// Frames that each unit sends to each centre in a second.
    pub frames_each_second: u32,
    /// What the second way was like: `ethernet` or `lte`.
    pub backup: String,
    /// What all chance was drawn from.
    pub seed: u64,
}

/// What spoke a protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Software {
    /// The protocol.
    pub protocol: Protocol,
    /// Name and version; none if it was not run.
    pub program: Option<String>,
    /// Why it was not run, and how to get what is missing.
    pub not_run: Option<String>,
}

/// What died.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Died {
    /// Which kind of outage.
    pub outage: Outage,
    /// The nodes.
    pub nodes: Vec<String>,
    /// For each centre, how many substations have it on their way there or back.
    pub reached: Vec<usize>,
}

/// Whether iPRP protects the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pass {
    /// No.
    Plain,
    /// `bumpless iprp run` at each host, all protocols `redundant`.
    Protected,
}

impl Pass {
    /// Both, in the order in which they are made.
    pub const ALL: [Self; 2] = [Self::Plain, Self::Protected];
}

/// What a centre saw, by one protocol, in one outage, of the substations that it reached or of the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Whether the programs were protected.
    pub pass: Pass,
    /// What died.
    pub outage: Outage,
    /// The protocol.
    pub protocol: Protocol,
    /// The centre that saw it.
    pub centre: String,
    /// Whether these are the substations with the outage on their way, or all others.
    pub reached: bool,
    /// How many they are.
    pub substations: usize,
    /// Orders, questions or frames that were sent while it was dead.
    pub sent: usize,
    /// Those without an answer in time, or that never came.
    pub lost: usize,
    /// What half of the others took at most, microseconds: a round trip, or a frame's way.
    pub p50_us: Option<u64>,
    /// What 99 of 100 took at most.
    pub p99_us: Option<u64>,
    /// What the slowest took.
    pub max_us: Option<u64>,
    /// The longest time for which a substation was not heard, from the outage to the next one, milliseconds.
    pub silence_ms: u64,
    /// Connections that ended from the outage to the next one.
    pub ended: usize,
    /// From when it carried again until every substation was heard, milliseconds; none if one was not until the next outage.
    pub back_ms: Option<u64>,
}

/// What a centre saw by one protocol over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Course {
    /// Whether the programs were protected.
    pub pass: Pass,
    /// The protocol.
    pub protocol: Protocol,
    /// The centre.
    pub centre: String,
    /// What lies between two of the figures, milliseconds.
    pub step_ms: u64,
    /// A substation counts if it was heard within so many milliseconds.
    pub within_ms: u64,
    /// When each outage began and ended, milliseconds since the pass began.
    pub outages: Vec<(Outage, u64, u64)>,
    /// How many substations the centre had heard.
    pub heard: Vec<u16>,
}

impl Programs {
    /// One that begins.
    pub fn begin(settings: Settings) -> Self {
        let run = BenchRun::begin("");
        Self {
            schema: SCHEMA.to_owned(),
            began_unix_s: run.began_unix_s,
            command: run.command,
            version: run.version,
            commit: run.commit,
            host: run.host,
            settings,
            ..Self::default()
        }
    }

    /// Whether every promise held, as far as it went.
    pub fn held(&self) -> bool {
        self.promises.iter().all(|it| it.held)
    }
}

/// A kept result.
///
/// # Errors
/// The file cannot be read, or was written by something else.
pub fn read(file: &Path) -> Result<Programs, String> {
    let name = file.display();
    let mut text = String::new();
    File::open(file)
        .and_then(|it| it.take(FILE_MAX).read_to_string(&mut text))
        .map_err(|error: io::Error| format!("cannot read {name}: {error}"))?;
    let wrong = |why: String| {
        format!(
            "{name} is no kept result of this version ({SCHEMA}): {why}; unpack it with `xz -d` if it is packed"
        )
    };
    let programs: Programs =
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    match programs.schema == SCHEMA {
        true => Ok(programs),
        false => Err(wrong(format!("its schema is {:?}", programs.schema))),
    }
}
