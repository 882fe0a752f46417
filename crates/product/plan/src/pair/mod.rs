//! The plan of a pair, or pool, from its configuration.
//!
//! Any candidate of a group may be its primary. So each node is planned as if it were primary of all its
//! groups: that is the most it may have to send, and the most it may have to receive.

pub(crate) mod background;
mod change;
pub mod distance;
mod scenario;

use bumpless_base::{Duration, NodeId};
use bumpless_config::{Config, Timing};
use serde::Serialize;

use crate::cost::Costs;
use crate::evaluate::{Plan, evaluate, is_admitted};
use crate::input::{Fault, Machine, Scenario};

use distance::Distance;

pub use change::{PairChange, change};
pub use scenario::scenario;

/// The answer to: is every state in time and whole?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Yes, within the stated losses and jitter, and with any one network out of service.
    Yes,
    /// No: at least one condition is not met.
    No,
    /// Something that it depends on is not stated.
    CannotSay,
}

/// The plan of a whole configuration.
#[derive(Clone, Debug)]
pub struct PairPlan {
    /// The worst of all senders' answers, a no where the distance does not permit what is configured; a no counts as worse
    /// than what cannot be said.
    pub verdict: Verdict,
    /// Each node that may have something else to send than the ones before it.
    pub senders: Vec<Sender>,
    /// Networks of the configuration, whether or not they carry states.
    pub networks: usize,
    /// Of each group, how far apart its nodes are, and what follows.
    pub distances: Vec<Distance>,
}

/// Nodes that may have the same to send.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Their names.
    pub nodes: Vec<String>,
    /// Bytes that the state buffers of each of them take, and how many they may.
    pub memory: (u64, u64),
    /// The largest state that the configuration permits each channel, in the scenario's order.
    pub largest: Vec<u32>,
    /// The age at which states of each channel expire, in the scenario's order.
    pub expiry: Vec<Duration>,
    /// What says how short that may be.
    pub timing: Timing,
    /// Nodes that may send states to each of them.
    pub partners: usize,
    /// Whether costs were measured, and take the place of what is stated of jitter and round trips.
    pub measured: bool,
    /// What they may have to send.
    pub scenario: Scenario,
    /// Whether that is in time; what the plan would need to know where there is none.
    pub plan: Result<Plan, Vec<Fault>>,
}

impl Sender {
    /// The answer for these nodes.
    pub fn verdict(&self) -> Verdict {
        match &self.plan {
            Ok(plan) if plan.admitted => Verdict::Yes,
            Ok(_) => Verdict::No,
            Err(_) => Verdict::CannotSay,
        }
    }
}

/// The answer alone, as [`plan`] gives it, sooner.
pub fn verdict(config: &Config, machine: Machine) -> Verdict {
    if distance::is_refused(config) {
        return Verdict::No;
    }
    let nodes = (0..config.nodes.len()).map(|at| NodeId(at as u8));
    let mut verdict = Verdict::Yes;
    for scenario in nodes.map(|node| scenario(config, node, machine)) {
        if !scenario.faults().is_empty() {
            verdict = Verdict::CannotSay;
        } else if !is_admitted(&scenario) {
            return Verdict::No;
        }
    }
    verdict
}

/// The plan of `config`, with the measured `costs` of nodes and networks if there are any; otherwise nodes cost
/// nothing, and jitter and round trips are the configuration's.
pub fn plan(config: &Config, costs: Option<&Costs>) -> PairPlan {
    let mut senders: Vec<Sender> = Vec::new();
    for (at, node) in config.nodes.iter().enumerate() {
        let id = NodeId(at as u8);
        let mut scenario = scenario(config, id, Machine::default());
        if let Some(costs) = costs {
            costs.apply(&mut scenario);
        }
        let memory = (config.state_memory(id), config.transfer.memory_max);
        let partners = config.partners(id).len();
        let same = |known: &&mut Sender| {
            known.scenario == scenario && known.memory == memory && known.partners == partners
        };
        if let Some(known) = senders.iter_mut().find(same) {
            known.nodes.push(node.name.clone());
            continue;
        }
        senders.push(Sender {
            nodes: vec![node.name.clone()],
            memory,
            largest: scenario::applications(config, id)
                .map(|app| config.largest_state(app))
                .collect(),
            expiry: scenario::applications(config, id)
                .map(|app| app.expiry)
                .collect(),
            timing: config.timing.clone(),
            measured: costs.is_some(),
            partners,
            plan: evaluate(&scenario),
            scenario,
        });
    }
    let is = |verdict| senders.iter().any(|sender| sender.verdict() == verdict);
    let distances = distance::distances(config);
    let too_far = distances.iter().any(|it| !it.refusals.is_empty());
    let verdict = if is(Verdict::No) || too_far {
        Verdict::No
    } else if is(Verdict::CannotSay) {
        Verdict::CannotSay
    } else {
        Verdict::Yes
    };
    PairPlan {
        verdict,
        senders,
        networks: config.networks.len(),
        distances,
    }
}
