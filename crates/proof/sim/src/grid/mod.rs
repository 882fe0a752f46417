//! A pair across a wide-area network that has outages: times from the plan, every checker, and the plan's promise where an
//! outage amounts to the end of a site or reaches nobody (`spec/wan.md`, U-100 and further).
//!
//! | module | owns |
//! |---|---|
//! | `outage` | what dies, drawn from the seed |
//! | `reach` | whom an outage cuts off from whom, and what is promised then |

mod outage;
mod reach;

use std::sync::Arc;

use bumpless_base::Duration;
use bumpless_config::Config;
use bumpless_plan::distance::{Gaps, Sizes, distances};
use bumpless_wan::{Step, Topology};
use serde::Serialize;

pub use self::outage::Kind;
pub use self::reach::Promised;
use crate::check::Window;
use crate::pair_file::{APPLICATIONS, Apart};
use crate::run::{Report, Settings, run_unless};
use crate::sites::{NEIGHBOURS, Obeyed, SETTLED};
use crate::wide::{Counts, Places, Routing, Wide};
use crate::world::heal_within;
use outage::{LASTING, Outages};
use reach::Reach;

/// A pair has settled after so many periods at the latest, however long they are.
const SETTLED_PERIODS: u64 = 10;

const MS: u64 = 1_000_000;

/// What is the same for all seeds.
#[derive(Clone, Debug)]
pub struct Options {
    /// The network.
    pub topology: Arc<Topology>,
    /// Where everybody is on it.
    pub places: Places,
    /// How packets find their way.
    pub routing: Routing,
    /// How long a second network takes from end to end, nanoseconds, if there is one.
    pub backup: Option<u64>,
    /// Between two heartbeats.
    pub heartbeat: Duration,
    /// Between two cycles at least.
    pub period: Duration,
    /// What changes from when the pair has settled; without it each seed draws an outage.
    pub script: Option<Vec<Step>>,
}

/// Times that the plan has for the distance, and how far that is, milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Planned {
    /// There and back between the controllers.
    pub pair_ms: f64,
    /// From the farther controller to the witness.
    pub to_witness_ms: f64,
    /// From the farther controller to the field devices.
    pub to_field_ms: f64,
    /// Between two heartbeats.
    pub heartbeat_ms: f64,
    /// The lease.
    pub lease_ms: f64,
    /// Between two cycles.
    pub period_ms: f64,
    /// A state's.
    pub deadline_ms: f64,
}

/// A pair on a network, ready to be judged.
#[derive(Debug)]
pub struct Grid {
    options: Options,
    config: Arc<Config>,
    gaps: Vec<Gaps>,
    period: Duration,
    /// Its times.
    pub planned: Planned,
    reach: Reach,
    outages: Outages,
}

/// What came of one seed.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// What it was drawn from.
    pub seed: u64,
    /// What died; null: the script was played.
    pub outage: Option<Kind>,
    /// Nodes and links as `bumpless wan cut` takes them.
    pub what: Vec<String>,
    /// From when, and for how long, milliseconds.
    pub at_ms: f64,
    /// See `at_ms`; of a script, until its last step.
    pub for_ms: f64,
    /// What the plan promises.
    pub promised: Promised,
    /// By application: the longest time between two outputs, and what is promised if anything is, milliseconds.
    pub gaps_ms: Vec<(f64, Option<f64>)>,
    /// How often an application began from its initial state after its first output.
    pub cold_starts: u64,
    /// What became of packets.
    pub packets: Counts,
    /// Simulated seconds.
    pub simulated_s: f64,
    /// Digest of all that happened, 16 hex digits.
    pub trace_hash: String,
    /// What was promised and not kept.
    pub broken: Vec<String>,
}

impl Grid {
    /// A pair on this network with the times that the plan has for it.
    ///
    /// # Errors
    /// The plan has no times for the distance.
    pub fn new(options: Options) -> Result<Self, String> {
        let reach = Reach::new(&options);
        let [pair, witness, field] = reach.round_trips_us().map(Duration::from_micros);
        let (mut networks, mut to_field) = (vec![(pair, witness)], field);
        if let Some(takes) = options.backup {
            let there_and_back = Duration::from_nanos(2 * takes);
            networks.push((there_and_back, there_and_back));
            to_field = to_field.max(there_and_back);
        }
        for (pair, witness) in &mut networks {
            (*pair, *witness) = (*pair + NEIGHBOURS, *witness + NEIGHBOURS);
        }
        let apart = Apart {
            networks,
            field: to_field + NEIGHBOURS,
        };
        let fit = Sizes::fit(options.heartbeat, options.period, |sizes| apart.text(sizes));
        let (sizes, config) =
            fit.map_err(|why| format!("the plan has no times for this distance: {why}"))?;
        let all = distances(&config);
        let applications = all.iter().flat_map(|it| &it.applications);
        let ms = Duration::as_millis_f64;
        Ok(Self {
            gaps: applications.map(|far| far.gaps).collect(),
            planned: Planned {
                pair_ms: ms(pair),
                to_witness_ms: ms(witness),
                to_field_ms: ms(field),
                heartbeat_ms: ms(sizes.heartbeat),
                lease_ms: ms(sizes.lease),
                period_ms: ms(sizes.period),
                deadline_ms: ms(sizes.deadline),
            },
            period: sizes.period,
            config: Arc::new(config),
            outages: Outages::new(&options, reach.on_ways()),
            reach,
            options,
        })
    }

    /// Plays the script, or an outage of `seed`, and judges what comes of it; `None`: it was stopped. The pair's times are the
    /// plan's as far as they are obeyed.
    ///
    /// # Errors
    /// A core refuses its setup.
    pub fn judge(
        &self,
        seed: u64,
        obeyed: Obeyed,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Judged>, String> {
        let drawn = match self.options.script {
            Some(_) => None,
            None => Some(self.outages.draw(&self.options, seed, self.settled())),
        };
        let steps = match (&drawn, &self.options.script) {
            (Some(outage), _) => outage.steps(),
            (None, script) => later(script.as_deref().unwrap_or_default(), self.settled()),
        };
        let nanos = |step: &Step| u64::try_from(step.at.as_nanos()).unwrap_or(u64::MAX);
        let first = steps.first().map_or(self.settled(), nanos);
        let last = steps.last().map_or(self.settled(), nanos);
        let promised = self.promised(&steps);
        let settings = self.settings(seed, steps, (first, last), obeyed);
        let report = run_unless(&settings, stopped)?;
        if report.violations.is_empty() && report.simulated < settings.time {
            return Ok(None);
        }
        let (gaps_ms, broken) = self.held_against(promised, &report);
        let ms = |nanos: u64| nanos as f64 / MS as f64;
        Ok(Some(Judged {
            seed,
            outage: drawn.as_ref().map(|outage| outage.kind),
            what: drawn.map_or_else(Vec::new, |outage| outage.what),
            at_ms: ms(first),
            for_ms: ms(last - first),
            promised,
            gaps_ms,
            cold_starts: report.cold_starts,
            packets: report.wide.unwrap_or_default(),
            simulated_s: report.simulated as f64 / 1e9,
            trace_hash: format!("{:016x}", report.trace_hash),
            broken,
        }))
    }

    /// A world in which these steps are played, from the first to the last of these times, until the pair must have healed.
    fn settings(
        &self,
        seed: u64,
        steps: Vec<Step>,
        (first, last): (u64, u64),
        obeyed: Obeyed,
    ) -> Settings {
        let known = last + self.options.routing.found_after().as_nanos();
        let until = known + heal_within(&self.config).as_nanos() + 500 * MS;
        Settings {
            wide: Some(Arc::new(Wide {
                topology: Arc::clone(&self.options.topology),
                places: self.options.places.clone(),
                routing: self.options.routing,
                steps,
                backup: self.options.backup,
            })),
            window: Window {
                from: first - 2 * self.period.as_nanos(),
                until,
            },
            ..Settings::new(self.obeyed(obeyed), seed, until)
        }
    }

    /// By application the longest gap and what is promised of it, and everything that was promised and not kept.
    fn held_against(
        &self,
        promised: Promised,
        report: &Report,
    ) -> (Vec<(f64, Option<f64>)>, Vec<String>) {
        let violations = report.violations.iter();
        let mut broken: Vec<String> = violations
            .map(|violation| format!("{}: {}", violation.invariant, violation.what))
            .collect();
        if report.cold_starts > 0 && promised != Promised::Nothing {
            broken.push(format!(
                "{} starts from the initial state",
                report.cold_starts
            ));
        }
        let mut gaps_ms = Vec::new();
        for ((seen, gaps), (name, _)) in report.outputs.iter().zip(&self.gaps).zip(APPLICATIONS) {
            let gap = seen.longest_gap as f64 / MS as f64;
            let limit = promised.gap(gaps, self.period);
            let limit = limit.map(Duration::as_millis_f64);
            if let Some(limit) = limit.filter(|limit| gap > *limit) {
                broken.push(format!(
                    "{name} wrote nothing for {gap:.3} ms, and {limit:.3} are promised"
                ));
            }
            gaps_ms.push((gap, limit));
        }
        (gaps_ms, broken)
    }

    /// What is promised while these steps are played.
    fn promised(&self, steps: &[Step]) -> Promised {
        if self.options.backup.is_some() {
            return Promised::Unnoticed;
        }
        // What ends a site stays away for long enough to be replaced.
        match self.reach.promised(&self.options, steps) {
            (Promised::PrimaryCut | Promised::BackupCut, lasts) if lasts < LASTING => {
                Promised::Nothing
            }
            (promised, _) => promised,
        }
    }

    /// When the pair has settled, however long its periods are, nanoseconds.
    fn settled(&self) -> u64 {
        SETTLED.max(SETTLED_PERIODS * self.period.as_nanos())
    }

    fn obeyed(&self, obeyed: Obeyed) -> Arc<Config> {
        match obeyed {
            Obeyed::Whole => Arc::clone(&self.config),
            Obeyed::Lease(percent) => {
                let mut config = Config::clone(&self.config);
                let timing = &mut config.timing;
                timing.lease = (timing.lease * (100 - percent) / 100).max(timing.heartbeat * 3);
                Arc::new(config)
            }
        }
    }
}

/// The steps of a script that begins when the pair has settled.
fn later(steps: &[Step], settled: u64) -> Vec<Step> {
    let settled = std::time::Duration::from_nanos(settled);
    let later = steps.iter().map(|step| Step {
        at: step.at + settled,
        ..step.clone()
    });
    later.collect()
}

#[cfg(test)]
mod tests;
