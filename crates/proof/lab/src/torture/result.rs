//! What a torture run found, for people and programs: `bumpless.torture/1` (spec/torture.md).

use serde::{Deserialize, Serialize};

use super::ledger::Count;
use super::switch::Tally;

/// The schema's name.
pub const SCHEMA: &str = "bumpless.torture/1";

/// What became of a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Kept.
    Held,
    /// Missed, by no more than the stall meter saw the machine stand still.
    Explained,
    /// Missed.
    Broken,
}

/// A promise in one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Want {
    /// Short stable name.
    pub id: String,
    /// What was promised.
    pub promised: String,
    /// What was seen.
    pub seen: String,
    /// What became of it.
    pub outcome: Outcome,
}

impl Want {
    /// A promise that no stall excuses.
    pub fn strict(
        id: &str,
        promised: impl Into<String>,
        held: bool,
        seen: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            promised: promised.into(),
            seen: seen.into(),
            outcome: if held { Outcome::Held } else { Outcome::Broken },
        }
    }
}

/// What a node said in `status --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// The node.
    pub node: String,
    /// Its role; `silent` if it did not answer.
    pub role: String,
    /// Whether it wrote outputs.
    pub writes_outputs: bool,
    /// Its word on redundancy.
    pub redundancy: String,
    /// And why.
    pub cause: String,
    /// Networks that it called down.
    pub links_down: Vec<String>,
    /// Weaknesses that it did not name before the fault.
    pub weaknesses: Vec<String>,
}

/// One repetition of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Its number, from 1.
    pub number: u32,
    /// What was done, in particular.
    pub what: String,
    /// Primary before.
    pub primary: String,
    /// How long the fault lasted.
    pub fault_ms: f64,
    /// The longest time between two accepted outputs that touches the fault or its aftermath.
    pub gap_ms: Option<f64>,
    /// How much of that the stall meter saw the machine stand still.
    pub stalled_ms: f64,
    /// From the end of the fault until the pair was redundant again, at least the time that is waited
    /// before that is believed; absent if it never was.
    pub healed_ms: Option<f64>,
    /// Writes.
    pub writes: Count,
    /// Starts from the initial state that the nodes reported, of the application that had most.
    pub initial_starts: u64,
    /// Starts from the initial state by plan, because no state was left anywhere: 0 or 1.
    pub planned_cold_starts: u64,
    /// Role changes to primary.
    pub takeovers: u64,
    /// The promises.
    pub wants: Vec<Want>,
    /// What the nodes said meanwhile: milliseconds since the fault began, and the position in the
    /// case's list.
    pub said: Vec<(f64, usize)>,
    /// How much more they said.
    pub said_more: u64,
    /// If a promise was broken, events of the nodes, each with milliseconds since the fault began.
    pub events: Vec<String>,
}

impl Trial {
    /// The worst of its promises.
    pub fn outcome(&self) -> Outcome {
        let outcomes = self.wants.iter().map(|want| want.outcome);
        outcomes.max().unwrap_or(Outcome::Broken)
    }

    /// Times that the process began anew or went back, but for a start by plan.
    pub fn resets(&self) -> u64 {
        let all = self.writes.resets.max(self.initial_starts);
        all.saturating_sub(self.planned_cold_starts)
    }
}

/// One case and all its repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    /// Its name.
    pub id: String,
    /// What is done.
    pub title: String,
    /// What is promised.
    pub promised: String,
    /// The repetitions.
    pub trials: Vec<Trial>,
    /// What nodes said in them, each once.
    pub said: Vec<Said>,
    /// Times that the pair did not become redundant by itself and was started anew.
    pub started_anew: u64,
    /// What ended the case early, if so.
    pub error: Option<String>,
}

impl CaseResult {
    /// How many trials ended so.
    pub fn count(&self, outcome: Outcome) -> usize {
        let of = |trial: &&Trial| trial.outcome() == outcome;
        self.trials.iter().filter(of).count()
    }

    /// Whether it was done and no promise was broken.
    pub fn held(&self) -> bool {
        self.error.is_none() && !self.trials.is_empty() && self.count(Outcome::Broken) == 0
    }

    /// The sum of a figure over all trials.
    pub fn sum(&self, figure: impl Fn(&Trial) -> u64) -> u64 {
        self.trials.iter().map(figure).sum()
    }
}

/// What one process took at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Resident memory, kB.
    pub resident_kb: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Threads.
    pub threads: u64,
}

/// How one process grew.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// Which.
    pub process: String,
    /// Samples that were taken; of a node, one of each of its processes before that was killed.
    pub samples: usize,
    /// Medians of the first quarter of them.
    pub early: Usage,
    /// Medians of the last quarter.
    pub late: Usage,
    /// Whether the late ones are beyond what is allowed for.
    pub grew: bool,
}

/// The long run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Soak {
    /// How long it was to be.
    pub planned_s: u64,
    /// How long it was.
    pub seconds: f64,
    /// Kills of a primary.
    pub primaries_killed: u64,
    /// Kills of a backup.
    pub backups_killed: u64,
    /// Times that the pair was not redundant when the next kill was due, and the kill waited.
    pub waited: u64,
    /// Writes.
    pub writes: Count,
    /// Starts from the initial state that the nodes reported.
    pub initial_starts: u64,
    /// Longest time between two accepted outputs around each kill: p50, p99, longest.
    pub gaps_ms: [f64; 3],
    /// Gaps beyond the limit of a failover, and how many of them the stall meter explains.
    pub gaps_missed: [u64; 2],
    /// What the processes took.
    pub growth: Vec<Growth>,
    /// Bytes that logs grew by in an hour, by file.
    pub log_bytes_per_hour: Vec<(String, u64)>,
    /// The promises.
    pub wants: Vec<Want>,
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TortureResult {
    /// `bumpless.torture/1`.
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// Operating system and kernel.
    pub kernel: String,
    /// Processors that the run could use.
    pub processors: usize,
    /// What all chance was drawn from.
    pub seed: u64,
    /// Repetitions that were asked for.
    pub repetitions: u32,
    /// Whether it was the short run.
    pub quick: bool,
    /// Whether it was ended early.
    pub interrupted: bool,
    /// How long it took.
    pub seconds: f64,
    /// Whether no promise was broken.
    pub held: bool,
    /// Stalls that the meter saw: how many, and the longest, in milliseconds.
    pub stalls: (usize, f64),
    /// What the switch did to frames.
    pub frames: Tally,
    /// The cases.
    pub cases: Vec<CaseResult>,
    /// The long run, if it was one.
    pub soak: Option<Soak>,
}

impl TortureResult {
    /// Trials by outcome, over all cases: held, explained, broken.
    pub fn counts(&self) -> [usize; 3] {
        [Outcome::Held, Outcome::Explained, Outcome::Broken]
            .map(|outcome| self.cases.iter().map(|case| case.count(outcome)).sum())
    }
}

#[cfg(test)]
pub mod tests;
