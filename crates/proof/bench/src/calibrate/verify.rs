//! Comparing kept costs with what is measured anew, in other processes and with other sizes.

use bumpless_base::{ChannelId, Duration, LinkId, LinkSet};
use bumpless_config::Config;
use bumpless_plan::cost::Costs;
use bumpless_plan::cost::file::{Path, route_of};
use bumpless_plan::{Channel, Distribution, evaluate, pair};
use serde::Serialize;

use super::end::{Outcome, STALL, Times};
use super::session::{self, Purpose, Session};
use super::{Options, run, summary};
use crate::run::Trouble;

/// By how much predicted and measured medians may differ.
const AGREES: f64 = 0.1;
/// Time that a channel alone is given, so that its worst case is not cut off by a deadline.
const AMPLE: Duration = Duration::from_secs(60);

/// Predicted and measured times of every size, route and direction.
#[derive(Clone, Debug, Serialize)]
pub struct Verification {
    /// Whether every median agrees within a tenth, and no worst case was exceeded.
    pub agrees: bool,
    /// One for each size, route and direction.
    pub rows: Vec<Row>,
}

/// Predicted and measured times of one size; nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The node that sent.
    pub from: String,
    /// The networks.
    pub networks: Vec<String>,
    /// Whether packets were shared out over them.
    pub spread: bool,
    /// Bytes of each state.
    pub size: u32,
    /// Transfers that count.
    pub count: usize,
    /// What the costs say.
    pub predicted_ns: f64,
    /// The measured median.
    pub measured_ns: u64,
    /// Predicted by measured.
    pub ratio: f64,
    /// The longest time that the plan gives a channel with such states and no other beside it, without losses; `None`: it gives
    /// none, because a network states no bandwidth.
    pub worst_ns: Option<u64>,
    /// The longest measured time of those during which the machine stood still for less than the plan's jitter in
    /// all.
    pub longest_ns: Option<u64>,
    /// The others.
    pub stalled: usize,
}

impl Row {
    /// Predicted by measured, beyond what would be equal.
    pub fn error(&self) -> f64 {
        (self.ratio - 1.0).abs()
    }

    /// Whether the medians agree.
    pub fn agrees(&self) -> bool {
        self.error() <= AGREES
    }

    /// Whether the worst case held.
    pub fn holds(&self) -> bool {
        self.worst_ns
            .zip(self.longest_ns)
            .is_none_or(|(worst, longest)| longest <= worst)
    }
}

/// Measures anew and compares with `costs`.
///
/// # Errors
/// As for calibrating.
pub fn verify(options: &Options, costs: &Costs) -> Result<Verification, Trouble> {
    let done = run::measure(options, Purpose::Verify)?;
    compare(&options.config, costs, &done)
}

/// Compares `costs` with the sizes of `done` that are for it.
///
/// # Errors
/// Costs or sessions lack a route or a size.
pub fn compare(
    config: &Config,
    costs: &Costs,
    done: &[(Session, Outcome)],
) -> Result<Verification, Trouble> {
    let mut rows = Vec::new();
    for (session, times) in &summary::together(done) {
        for times in times.iter().filter(|times| session::is_asked(times.size)) {
            rows.push(row(config, costs, session, times)?);
        }
    }
    let agrees = rows.iter().all(|row| row.agrees() && row.holds());
    Ok(Verification { agrees, rows })
}

fn row(config: &Config, costs: &Costs, session: &Session, times: &Times) -> Result<Row, Trouble> {
    let place = || format!("{}, {} bytes", session.what(), times.size);
    let same = |path: &&Path| path.is_of(&session.from, &session.networks, session.spread);
    let path = costs.paths.iter().find(same);
    let path = path.ok_or_else(|| {
        format!(
            "{}: the costs know nothing of this route; calibrate again",
            place()
        )
    })?;
    let (measured, _) = summary::measured(session, times);
    let measured = measured.ok_or_else(|| {
        format!(
            "{}: every transfer failed; see whether the networks are in order",
            place()
        )
    })?;
    let networks = named(config, &session.networks);
    let route = route_of(config, networks, session.spread, session.payload);
    let predicted_ns = path.cost.predict(&route, times.size);
    let jitter = costs.machine().jitter_ns.max(STALL.as_nanos());
    let both = || times.took.iter().zip(&times.stall);
    let undisturbed = both()
        .filter(|(_, stall)| **stall < jitter)
        .map(|(took, _)| *took);
    Ok(Row {
        from: session.from.clone(),
        networks: session.networks.clone(),
        spread: session.spread,
        size: times.size,
        count: measured.count,
        predicted_ns,
        measured_ns: measured.p50_ns,
        ratio: predicted_ns / measured.p50_ns as f64,
        worst_ns: worst(config, costs, session, networks, times.size),
        longest_ns: undisturbed.max(),
        stalled: both().filter(|(_, stall)| **stall >= jitter).count(),
    })
}

fn named(config: &Config, names: &[String]) -> LinkSet {
    let all = LinkSet::first(config.networks.len());
    all.iter()
        .filter(|link| names.contains(&config.networks[usize::from(link.0)].name))
        .collect()
}

/// The longest time of a state of `size` bytes whose channel is alone on its route and loses nothing.
fn worst(
    config: &Config,
    costs: &Costs,
    session: &Session,
    networks: LinkSet,
    size: u32,
) -> Option<u64> {
    let own = session.configuration(config).ok()?;
    let mut scenario = pair::scenario(&own, own.node(&session.from)?, costs.machine());
    costs.apply(&mut scenario);
    let links = (0..networks.len()).map(|at| LinkId(at as u8)).collect();
    scenario.channels = vec![Channel {
        id: ChannelId::new(1)?,
        name: "state".into(),
        size,
        period: AMPLE,
        deadline: AMPLE,
        budget: 0,
        budget_follows: false,
        accepted_loss_per_year: None,
        links,
        distribution: if session.spread {
            Distribution::Spread
        } else {
            Distribution::Replicate
        },
    }];
    let plan = evaluate(&scenario).ok()?;
    plan.situations.first()?.channels.first()?.response_ns
}
