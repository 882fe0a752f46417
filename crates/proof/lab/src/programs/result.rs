//! What was found, as it is kept: `bumpless.wan-programs/1` (spec/wan.md).

use bumpless_bench::run::meter::Jitter;
use serde::{Deserialize, Serialize};

use super::plan::Outage;
use super::protocol::Protocol;
use crate::kept::{Head, Kept as _};
use crate::study::{Network, Promise};

/// Everything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Programs {
    /// What every result begins with.
    #[serde(flatten)]
    pub head: Head,
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
    /// How many packets found no room where they were to be held, if the kernel told.
    #[serde(default)]
    pub overflowed: Option<u64>,
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
    /// The same of those that were sent later, until the next outage; results without a word on it did not count them.
    #[serde(default)]
    pub lost_after: Option<usize>,
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
    /// Those of them that a crash of the centre's program took.
    #[serde(default)]
    pub ended_by_crash: usize,
    /// How often the program of this protocol crashed at the centre from the outage to the next one, and began again.
    #[serde(default)]
    pub crashes: usize,
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
        Self {
            head: Head::begin(Self::SCHEMA),
            settings,
            ..Self::default()
        }
    }
}
