//! What is kept: `bumpless.wan-sites/1` (spec/wan.md, U-76).

use bumpless_plan::distance::Ending;
use serde::{Deserialize, Serialize};

use crate::kept::{Head, Kept as _};
use crate::torture::ledger::Count;
use crate::torture::result::{Outcome, Want};

/// Where everybody is, how far apart, and what the plan made of it. Times in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    /// Nodes and links of the network, and what delays its links.
    pub network: (usize, usize, String),
    /// The controllers' sites.
    pub nodes: [String; 2],
    /// The witness's site.
    pub witness: String,
    /// The field device's site.
    pub field: String,
    /// There and back between the controllers, by the links of the way.
    pub pair_ms: f64,
    /// From the farther controller to the witness.
    pub to_witness_ms: f64,
    /// From the farther controller to the field device.
    pub to_field_ms: f64,
    /// Between two heartbeats.
    pub heartbeat_ms: f64,
    /// The lease.
    pub lease_ms: f64,
    /// The shortest that the plan permits.
    pub least_lease_ms: f64,
    /// Between two cycles.
    pub period_ms: f64,
    /// From a state's publication to its acknowledgement.
    pub deadline_ms: f64,
    /// From the end of a primary until its backup has the role, at most.
    pub takeover_ms: f64,
    /// The longest gap when the primary's site ends.
    pub unordered_ms: f64,
    /// The same in order.
    pub ordered_ms: f64,
    /// When the backup's site ends.
    pub backup_ms: f64,
}

/// One end of a site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Its number, from 1.
    pub number: u32,
    /// How.
    pub ending: Ending,
    /// The controller that was primary.
    pub primary: String,
    /// The longest time between two accepted outputs, milliseconds.
    pub gap_ms: Option<f64>,
    /// For how long of that the machine stood still, milliseconds.
    pub stalled_ms: f64,
    /// What the plan promises, milliseconds.
    pub promised_ms: f64,
    /// From the site's return until the pair was redundant, milliseconds.
    pub healed_ms: Option<f64>,
    /// What the field device took.
    pub writes: Count,
    /// Starts from the initial state.
    pub initial_starts: u64,
    /// The promises.
    pub wants: Vec<Want>,
}

impl Failure {
    /// The worst of its promises.
    pub fn outcome(&self) -> Outcome {
        let outcomes = self.wants.iter().map(|want| want.outcome);
        outcomes.max().unwrap_or(Outcome::Broken)
    }
}

/// Everything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SitesResult {
    /// What every result begins with.
    #[serde(flatten)]
    pub head: Head,
    /// What all chance was drawn from.
    pub seed: u64,
    /// What was planned.
    pub planned: Planned,
    /// How many sites were to end.
    pub asked: u32,
    /// Those that have.
    pub failures: Vec<Failure>,
    /// Stalls that the meter saw: how many, and the longest, milliseconds.
    pub stalls: (usize, f64),
    /// Why it ended early, if not by the user.
    pub error: Option<String>,
    /// Whether no promise was broken.
    pub held: bool,
}

impl SitesResult {
    /// One that begins.
    pub fn begin(seed: u64, asked: u32) -> Self {
        Self {
            head: Head::begin(Self::SCHEMA),
            seed,
            asked,
            ..Self::default()
        }
    }

    /// Judges what there is.
    pub fn conclude(&mut self) {
        let broken = self
            .failures
            .iter()
            .any(|it| it.outcome() == Outcome::Broken);
        self.head.complete = self.failures.len() == self.asked as usize;
        self.held = !broken && self.error.is_none() && !self.failures.is_empty();
    }
}
