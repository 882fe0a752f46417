//! A pair across sites, of which one ends: drawn distances, times from the plan, and outputs that may be missing for no longer
//! than the plan says (`spec/plan.md`, P-90 to P-93).

use std::sync::Arc;

use bumpless_base::random::mix64;
use bumpless_base::{Duration, Random};
use bumpless_config::Config;
pub use bumpless_plan::distance::Ending;
use bumpless_plan::distance::{Sizes, distances};
use serde::Serialize;

use crate::check::Window;
use crate::distance::Distances;
use crate::pair_file::{APPLICATIONS, Apart};
use crate::run::{Settings, run};
use crate::script::{End, Fault, PathFault, Paths, Timed};
use crate::world::heal_within;

const MS: u64 = 1_000_000;
/// The pair has settled by then.
pub(crate) const SETTLED: u64 = 3_000 * MS;
/// What neighbours take there and back in this world, at most: networks, threads and devices.
pub(crate) const NEIGHBOURS: Duration = Duration::from_micros(500);
/// The shortest way that is drawn, and how often the next is half as long again.
const NEAREST_NS: f64 = 100_000.0;
/// Doublings to the longest: 40 ms.
const DOUBLINGS: f64 = 8.64;
/// The same for field devices: 10 ms.
const FIELD_DOUBLINGS: f64 = 6.64;
/// From an ordered switchover until the site that has given the role away ends.
const BEFORE_THE_END: u64 = 500 * MS;
/// The node that is primary once the pair has settled, and its backup.
const PRIMARY: usize = 0;
const BACKUP: usize = 1;
const NODES: usize = 2;

/// What a seed draws.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    heartbeat: Duration,
    period: Duration,
    networks: usize,
    /// One way, nanoseconds: between the nodes, from each to the witnesses, to field devices.
    pair: u64,
    witness: [u64; 2],
    field: u64,
    ending: Ending,
    /// The moment of the cycle, and how long the site is gone.
    at: u64,
    lasts: u64,
}

impl Drawn {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(mix64(seed ^ 0x5173));
        let mut way = |doublings: f64| {
            let share = random.below(1 << 32) as f64 / (1u64 << 32) as f64;
            (NEAREST_NS * (doublings * share).exp2()) as u64
        };
        let (pair, witness, field) = (
            way(DOUBLINGS),
            [way(DOUBLINGS), way(DOUBLINGS)],
            way(FIELD_DOUBLINGS),
        );
        let heartbeat = Duration::from_millis([1, 2, 5, 10][random.below(4) as usize]);
        let period = Duration::from_millis(10 + random.below(50));
        Self {
            heartbeat,
            period,
            networks: 1 + random.below(2) as usize,
            pair,
            witness,
            field,
            ending: Ending::ALL[(seed % 5) as usize],
            at: SETTLED + random.below(200 * MS),
            lasts: 1_000 * MS + random.below(2_000 * MS),
        }
    }

    fn apart(&self) -> Apart {
        let round_trip = |one_way: u64| NEIGHBOURS + Duration::from_nanos(2 * one_way);
        let farthest = self.witness[0].max(self.witness[1]);
        Apart {
            networks: vec![(round_trip(self.pair), round_trip(farthest)); self.networks],
            field: round_trip(self.field),
        }
    }

    fn distances(&self) -> Distances {
        let mut between = vec![(PRIMARY, BACKUP, self.pair)];
        for (node, &way) in self.witness.iter().enumerate() {
            let witnesses = 0..self.networks;
            between.extend(witnesses.map(|at| (node, NODES + at, way)));
        }
        Distances {
            between,
            field: self.field,
        }
    }

    /// The end of the site, and its return.
    fn faults(&self) -> Vec<Timed> {
        let node = match self.ending.is_of_primary() {
            true => PRIMARY,
            false => BACKUP,
        };
        let timed = |at, fault| Timed {
            at,
            until: at + self.lasts,
            fault,
        };
        let killed = |at| timed(at, Fault::Crash { node, reboot: true });
        let order = Fault::Switchover {
            node: (self.lasts % 2) as usize,
            group: 0,
        };
        match self.ending {
            Ending::PrimaryKilled | Ending::BackupKilled => vec![killed(self.at)],
            Ending::Ordered => vec![
                Timed {
                    at: self.at,
                    until: self.at,
                    fault: order,
                },
                killed(self.at + BEFORE_THE_END),
            ],
            Ending::PrimaryCut | Ending::BackupCut => {
                let end = Some(End::Node(node));
                let cut = |paths| Fault::Path {
                    paths,
                    fault: PathFault::Cut,
                };
                let away = Paths {
                    from: end,
                    ..Paths::default()
                };
                let back = Paths {
                    to: end,
                    ..Paths::default()
                };
                let silent = |application| Fault::Device {
                    application,
                    node: Some(node),
                    late: true,
                };
                [cut(away), cut(back), silent(0), silent(1)]
                    .map(|fault| timed(self.at, fault))
                    .into()
            }
        }
    }
}

/// What came of one end of a site.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// What it was drawn from.
    pub seed: u64,
    /// How it ended.
    pub ending: Ending,
    /// There and back between the nodes, milliseconds.
    pub round_trip_ms: f64,
    /// There and back to the farthest witness, milliseconds.
    pub witness_ms: f64,
    /// Between two heartbeats, milliseconds.
    pub heartbeat_ms: f64,
    /// The lease that the plan gave, milliseconds.
    pub lease_ms: f64,
    /// The period, milliseconds.
    pub period_ms: f64,
    /// By application: the longest time between two outputs, and what the plan promises, milliseconds.
    pub gaps_ms: Vec<(f64, f64)>,
    /// What was promised and not kept.
    pub broken: Vec<String>,
}

/// What the pair does with the times that the plan has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obeyed {
    /// They are its own.
    Whole,
    /// Its lease is shorter, by this share in percent.
    Lease(u64),
}

/// Draws distances from `seed`, gives a pair the times that the plan has for them, ends one of its sites, and judges what comes
/// of it by every checker and by what the plan promises.
///
/// # Errors
/// The plan has no times for what was drawn, or a core refuses them.
pub fn judge(seed: u64, obeyed: Obeyed) -> Result<Judged, String> {
    let drawn = Drawn::new(seed);
    let apart = drawn.apart();
    let (sizes, mut config) = Sizes::fit(drawn.heartbeat, drawn.period, |sizes| apart.text(sizes))?;
    let promised = promises(&config, drawn.ending);
    if let Obeyed::Lease(percent) = obeyed {
        config.timing.lease = (sizes.lease * (100 - percent) / 100).max(sizes.heartbeat * 3);
    }
    let faults = drawn.faults();
    let last = faults.iter().map(|timed| timed.until).max().unwrap_or(0);
    let until = last + heal_within(&config).as_nanos() + 500 * MS;
    let settings = Settings {
        script: faults,
        distances: drawn.distances(),
        window: Window {
            from: drawn.at - 2 * sizes.period.as_nanos(),
            until,
        },
        ..Settings::new(Arc::new(config), seed, until)
    };
    let report = run(&settings)?;
    let mut broken: Vec<String> = report
        .violations
        .iter()
        .map(|violation| format!("{}: {}", violation.invariant, violation.what))
        .collect();
    if report.cold_starts > 0 {
        broken.push(format!(
            "{} starts from the initial state",
            report.cold_starts
        ));
    }
    let ms = |nanos: u64| nanos as f64 / MS as f64;
    let mut gaps_ms = Vec::new();
    for ((seen, promised), (name, _)) in report.outputs.iter().zip(promised).zip(APPLICATIONS) {
        let (gap, promised) = (ms(seen.longest_gap), promised.as_millis_f64());
        if gap > promised {
            broken.push(format!(
                "{name} wrote nothing for {gap:.3} ms, and the plan promises {promised:.3}"
            ));
        }
        gaps_ms.push((gap, promised));
    }
    let far = |way: u64| (NEIGHBOURS + Duration::from_nanos(2 * way)).as_millis_f64();
    Ok(Judged {
        seed,
        ending: drawn.ending,
        round_trip_ms: far(drawn.pair),
        witness_ms: far(drawn.witness[0].max(drawn.witness[1])),
        heartbeat_ms: sizes.heartbeat.as_millis_f64(),
        lease_ms: sizes.lease.as_millis_f64(),
        period_ms: sizes.period.as_millis_f64(),
        gaps_ms,
        broken,
    })
}

/// What the plan promises each application.
fn promises(config: &Config, ending: Ending) -> Vec<Duration> {
    let all = distances(config);
    let applications = all.iter().flat_map(|it| &it.applications);
    applications.map(|far| ending.promised(&far.gaps)).collect()
}
