//! One run of a world, from its settings to its report.

use std::path::PathBuf;
use std::sync::Arc;

use bumpless_base::Counters;
use bumpless_config::{Config, Security};
use serde_json::Value;

use crate::check::{Forgiven, Seen, Violation, Window};
use crate::distance::Distances;
use crate::processor::FloodCounts;
use crate::script::{
    Timed, attack_now_and_then, broken_assumptions, change_now_and_then, flood_now_and_then, storm,
};
use crate::trace::Trace;
use crate::variants::Everybody;
use crate::wide::{Counts, Wide};
use crate::world::{World, heal_within};

/// After the start, before the first fault of a storm.
const SETTLING: u64 = 2_500_000_000;

/// Simulated time between two questions whether to go on.
const SLICE: u64 = 1_000_000_000;

/// What to run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The pair.
    pub config: Arc<Config>,
    /// Everything random comes from this.
    pub seed: u64,
    /// Simulated time, nanoseconds.
    pub time: u64,
    /// Faults written by hand.
    pub script: Vec<Timed>,
    /// Faults drawn by the seed besides.
    pub storm: bool,
    /// The storm's operator changes the configuration now and then.
    pub changes: bool,
    /// Floods that the nodes bear by plan come besides.
    pub floods: bool,
    /// Somebody has a network besides, or a witness.
    pub attacks: bool,
    /// How far apart everybody is.
    pub distances: Distances,
    /// What the first network is, if that is a wide-area one.
    pub wide: Option<Arc<Wide>>,
    /// When outputs are counted.
    pub window: Window,
    /// Write a packet capture to this file and an event log beside it.
    pub trace: Option<PathBuf>,
}

impl Settings {
    /// A calm run of `config` over so many nanoseconds: no faults, no changes, no trace, neighbours, all outputs counted.
    pub fn new(config: Arc<Config>, seed: u64, time: u64) -> Self {
        Self {
            config,
            seed,
            time,
            script: Vec::new(),
            storm: false,
            changes: false,
            floods: false,
            attacks: false,
            distances: Distances::default(),
            wide: None,
            window: Window::default(),
            trace: None,
        }
    }
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// Digest of all that happened.
    pub trace_hash: u64,
    /// Simulated time, nanoseconds.
    pub simulated: u64,
    /// What was violated first.
    pub violations: Vec<Violation>,
    /// Assumptions that the faults until then broke: what is violated then is no fault of the pair.
    pub broken_assumptions: Vec<String>,
    /// The last events before it, as lines of the event log.
    pub last_events: Vec<Value>,
    /// Faults that have begun.
    pub faults: usize,
    /// How often a node has changed its configuration.
    pub changes: u64,
    /// How often an end has begun to seal with another key.
    pub key_changes: u64,
    /// What the processes that run at the end have counted.
    pub counters: Counters,
    /// By application, what was accepted of its outputs within the window.
    pub outputs: Vec<Seen>,
    /// How often an application began from its initial state after its first output.
    pub cold_starts: u64,
    /// How often an application began from a state that was on disk.
    pub restored: u64,
    /// What the checkers forgave.
    pub forgiven: Forgiven,
    /// Datagrams handed to the networks.
    pub datagrams: u64,
    /// How many of them were lost.
    pub lost: u64,
    /// What became of the packets of floods.
    pub flood_counts: FloodCounts,
    /// What became of packets on the wide-area network.
    pub wide: Option<Counts>,
    /// Why the trace is not whole.
    pub trace_error: Option<String>,
}

/// After the last fault of a storm.
fn calm(config: &Config) -> u64 {
    heal_within(config).as_nanos() + 1_000_000_000
}

/// How long a run of `config` must be for a storm to have room, nanoseconds.
pub fn shortest_storm(config: &Config) -> u64 {
    SETTLING + calm(config) + 1
}

/// The faults of `settings`: those of its script and those of its storm.
pub fn faults(settings: &Settings) -> Vec<Timed> {
    let mut faults = settings.script.clone();
    let until = settings.time.saturating_sub(calm(&settings.config));
    if settings.storm && until > SETTLING {
        faults.extend(storm(
            &with_security(settings),
            settings.seed,
            SETTLING,
            until,
            settings.time,
        ));
        if settings.changes {
            change_now_and_then(settings.seed, (SETTLING, until), &mut faults);
        }
    }
    if settings.floods {
        let span = (SETTLING, settings.time, until);
        flood_now_and_then(&settings.config, settings.seed, span, &mut faults);
    }
    // Last: who has a witness leaves no fault that keeps nodes from hearing each other.
    if settings.attacks && until > SETTLING {
        let config = with_security(settings);
        attack_now_and_then(&config, settings.seed, (SETTLING, until), &mut faults);
    }
    faults.sort_by_key(|timed| (timed.at, timed.until));
    faults
}

/// The configuration of `settings`: in one world of four, by its seed, messages are open; in the others keys last, however
/// the configuration says that they are come by (S-16).
fn with_security(settings: &Settings) -> Arc<Config> {
    let mut config = Config::clone(&settings.config);
    if settings.seed % 4 == 3 {
        config.security = Security::Open;
        for network in &mut config.networks {
            network.protection = 0;
        }
    } else if let Security::Certificates(_) = config.security {
        config.security = Security::Protected(Vec::new());
    }
    Arc::new(config)
}

/// Runs the world of `settings`.
///
/// # Errors
/// A configuration that a core refuses, or a file that cannot be written.
pub fn run(settings: &Settings) -> Result<Report, String> {
    run_unless(settings, || false)
}

/// The same, but it ends early once `stopped`, which is asked after every simulated second.
///
/// # Errors
/// As [`run`].
pub fn run_unless(settings: &Settings, stopped: impl Fn() -> bool) -> Result<Report, String> {
    let faults = faults(settings);
    let config = with_security(settings);
    let everybody = Everybody::of(&config, &faults);
    let mut trace = Trace::new(Arc::clone(&everybody.config));
    if let Some(path) = &settings.trace {
        let create = |path: PathBuf| -> Result<Box<dyn std::io::Write>, String> {
            let file = std::fs::File::create(&path)
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
            Ok(Box::new(std::io::BufWriter::new(file)))
        };
        let (capture, log) = (create(path.clone())?, create(path.with_extension("jsonl"))?);
        trace
            .write_to(capture, log)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    let mut begun = faults.clone();
    let happens = (faults, settings.window);
    let mut world = World::new(&everybody, settings.seed, happens, trace)?;
    world.put_apart(&settings.distances);
    if let Some(wide) = &settings.wide {
        world.spread_out(wide, settings.seed);
    }
    while world.now() < settings.time && world.checks.violations.is_empty() && !stopped() {
        world.run(settings.time.min(world.now() + SLICE));
    }
    // What would have come later has broken nothing.
    begun.retain(|timed| timed.at <= world.now());
    let broken = broken_assumptions(&config, &begun);
    if !world.checks.violations.is_empty() {
        broken
            .iter()
            .for_each(|(exemption, _)| world.checks.forgives(*exemption));
    }
    // What was found counts, whether or not it can be written down.
    let trace_error = world.trace.finish().err();
    Ok(Report {
        trace_error: trace_error.map(|error| format!("cannot write the trace: {error}")),
        seed: settings.seed,
        trace_hash: world.trace.digest(),
        simulated: world.now(),
        broken_assumptions: broken.into_iter().map(|(_, what)| what).collect(),
        last_events: if world.checks.violations.is_empty() {
            Vec::new()
        } else {
            world.trace.last()
        },
        violations: std::mem::take(&mut world.checks.violations),
        faults: begun.len(),
        changes: world.changes,
        key_changes: world.keys.changes,
        counters: world.counters(),
        outputs: {
            let mut seen = world.checks.outputs(world.now());
            seen.truncate(everybody.stay);
            seen
        },
        cold_starts: world.checks.cold_starts().iter().sum(),
        restored: world.checks.restored_starts(),
        forgiven: world.checks.forgiven(),
        datagrams: world.network.datagrams,
        lost: world.trace.lost,
        flood_counts: world.floods,
        wide: world.wide_counts(),
    })
}
