//! `bumpless sim`: the whole pair in a seeded simulator, with checkers.

mod kept_promise;
mod runs;
mod site_failures;
mod trace;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bumpless_config::Config;
use bumpless_sim::check::{Exemption, Forgiven};
use bumpless_sim::{Complaint, Distances, FloodCounts, Report, Scenario, Settings, Size, Window};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use self::kept_promise::Promise;
use self::runs::{Done, Runs};
use self::site_failures::SiteFailures;
use crate::output::{self, Failure, Outcome};
use crate::stop;

const SECOND: f64 = 1e9;
const MS: f64 = 1e6;

/// Run the whole pair in a seeded, simulated world under faults, and judge it
///
/// The same seed and version give the same run to the byte. Exit status 1 if an invariant is
/// broken; what is printed then has the command that replays it.
#[derive(Debug, Args)]
pub struct Sim {
    /// The first seed [default: 1, or what the scenario says; with --kept-promise and --site-failures 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=Scenario::LARGEST_SEED))]
    seed: Option<u64>,
    /// How many seeds, one after the other
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// Simulated seconds of each seed [default: 60, or what the scenario says]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time: Option<f64>,
    /// Simulated time as cycles of the fastest application
    #[arg(long, value_name = "COUNT", conflicts_with = "time", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    cycles: Option<u64>,
    /// Which pair
    #[arg(long, value_enum, default_value_t)]
    size: PairSize,
    /// The pair of this configuration, programs of yours included: a wasm program under faults before it sees a plant
    #[arg(long, value_name = "FILE", conflicts_with_all = ["size", "scenario", "changes"])]
    config: Option<PathBuf>,
    /// Besides, an operator changes the configuration now and then (spec/apply.md), and processes die at its steps
    #[arg(long, conflicts_with_all = ["scenario", "calm"])]
    changes: bool,
    /// Besides, nodes are flooded with packets, as many as they bear by plan (spec/simulation.md, S-18; with --kept-promise spec/plan.md,
    /// P-74)
    #[arg(long, conflicts_with = "scenario")]
    floods: bool,
    /// Besides, somebody has a network, or a witness with its keys: holds back, splices, repeats, downgrades, lies
    #[arg(long, conflicts_with_all = ["scenario", "calm"])]
    attacks: bool,
    /// No faults drawn by the seed
    #[arg(long)]
    calm: bool,
    /// Faults, pair and time from this file (spec/simulation.md); no others unless it says so
    #[arg(long, value_name = "FILE", conflicts_with_all = ["size", "calm"])]
    scenario: Option<PathBuf>,
    /// Go on with further seeds until one fails
    #[arg(long, conflicts_with = "seeds")]
    until_failure: bool,
    /// Seeds that run at the same time
    #[arg(long, value_name = "THREADS", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: u16,
    /// Write a packet capture to this file (for Wireshark), and an event log beside it (.jsonl)
    #[arg(long, value_name = "FILE.pcap")]
    trace: Option<PathBuf>,
    /// Leave out the faults that this seed's failure does not need, and print what is left as a
    /// scenario
    #[arg(long, conflicts_with_all = ["seeds", "until_failure", "trace", "json"])]
    shrink: bool,
    /// Judge the plan instead: each seed draws a set of channels; a yes of the plan must not miss a deadline,
    /// and for a no a miss is looked for (spec/plan.md, "Kept promise")
    #[arg(long, conflicts_with_all = ["time", "size", "config", "calm", "scenario", "trace", "shrink", "until_failure", "changes", "attacks", "cycles"])]
    kept_promise: bool,
    /// With --kept-promise: look for no misses of what the plan refuses, which takes most of the time; with --floods none is looked for
    #[arg(long)]
    no_search: bool,
    /// Judge the plan's distances instead: each seed spreads a pair over sites, with the times that the plan has for it, and ends
    /// one; no promise of the plan may be broken (spec/plan.md, "Sites that end")
    #[arg(long, conflicts_with_all = ["time", "size", "config", "calm", "scenario", "trace", "shrink", "until_failure", "changes", "floods", "attacks", "cycles", "kept_promise"])]
    site_failures: bool,
    /// Print the result as JSON (bumpless.sim/1; with --kept-promise bumpless.promise/1; with --site-failures
    /// bumpless.site-failures/1)
    #[arg(long)]
    json: bool,
}

/// The pairs that come with the command.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum PairSize {
    /// Two applications of 1 kB every 10 ms, two networks, heartbeats every 2 ms
    #[default]
    Small,
    /// The eleven applications of the paper's table 20
    Large,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number <= 1e7 => Ok(number),
        _ => Err("give a number of seconds above 0, at most 10000000".into()),
    }
}

impl Sim {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let json = self.json;
        self.execute().map_err(|failure| failure.in_json(json))
    }

    fn execute(self) -> Outcome {
        self.check_seeds()?;
        // clap forgets what an option requires where that conflicts with another one that is given.
        if self.no_search && !self.kept_promise {
            return Err(Failure::usage(
                "--no-search is of --kept-promise; give both, or leave it out",
            ));
        }
        if self.kept_promise {
            return Promise {
                first: self.seed.unwrap_or(0),
                count: self.seeds,
                jobs: self.jobs,
                search: !self.no_search && !self.floods,
                floods: self.floods,
                json: self.json,
            }
            .run();
        }
        if self.site_failures {
            return SiteFailures {
                first: self.seed.unwrap_or(0),
                count: self.seeds,
                jobs: self.jobs,
                json: self.json,
            }
            .run();
        }
        if let Some(path) = &self.trace {
            trace::check(path, self.seeds > 1 || self.until_failure)?;
        }
        let (settings, pair) = self.settings()?;
        if self.shrink {
            return self.shrink(&settings, &pair);
        }
        let stop = stop::stop_flag()?;
        let began = Instant::now();
        let count = match self.until_failure {
            true => u64::MAX,
            false => self.seeds,
        };
        let done = Runs::new(settings.clone(), count).all(self.jobs, &stop);
        if let (Some(error), None) = (&done.error, &done.failure) {
            return Err(Failure::refused(error));
        }
        self.tell(&done, &settings, began.elapsed());
        if let Some(error) = &done.error {
            output::warn(error);
        }
        if settings.storm && done.faults == 0 && !done.interrupted {
            eprintln!("{}", too_short(&settings));
        }
        Ok(match done.failure {
            Some(_) => ExitCode::from(1),
            None if done.interrupted => ExitCode::from(output::INTERRUPTED),
            None => ExitCode::SUCCESS,
        })
    }

    /// Whether a scenario can say each seed, and with it the one that fails.
    fn check_seeds(&self) -> Result<(), Failure> {
        let last = self.seed.unwrap_or(0).saturating_add(self.seeds - 1);
        if last > Scenario::LARGEST_SEED {
            return Err(Failure::usage(format_args!(
                "--seeds: the last seed would be {last}, the largest is {}; give fewer, or a smaller --seed",
                Scenario::LARGEST_SEED
            )));
        }
        Ok(())
    }

    /// How long to simulate `config`, nanoseconds, if that was said.
    fn time(&self, config: &Config) -> Option<u64> {
        let fastest = config.applications.iter().map(|app| app.period.as_nanos());
        let cycles = self.cycles.zip(fastest.min());
        let cycles = cycles.map(|(count, period)| count.saturating_mul(period));
        cycles.or(self.time.map(|seconds| (seconds * SECOND).round() as u64))
    }

    /// What to run, and the line of a scenario that says which pair it is.
    fn settings(&self) -> Result<(Settings, String), Failure> {
        if let Some(path) = &self.scenario {
            let scenario = Scenario::load(path).map_err(|complaints| refused(&complaints))?;
            if let Some(trace) = &self.trace {
                trace::spares(trace, [Some(path), scenario.configuration.as_ref()])?;
            }
            let settings = Settings {
                seed: self.seed.unwrap_or(scenario.seed),
                time: self.time(&scenario.config).unwrap_or(scenario.time),
                config: scenario.config,
                script: scenario.faults,
                storm: scenario.storm,
                trace: self.trace.clone(),
                changes: self.changes,
                floods: self.floods,
                attacks: self.attacks,
                distances: Distances::default(),
                wide: None,
                window: Window::default(),
            };
            return Ok((settings, scenario.pair));
        }
        let (config, pair) = self.pair()?;
        let settings = Settings {
            seed: self.seed.unwrap_or(1),
            time: self.time(&config).unwrap_or((60.0 * SECOND) as u64),
            config,
            script: Vec::new(),
            storm: !self.calm,
            trace: self.trace.clone(),
            changes: self.changes,
            floods: self.floods,
            attacks: self.attacks,
            distances: Distances::default(),
            wide: None,
            window: Window::default(),
        };
        Ok((settings, pair))
    }

    /// Which pair to run unless a scenario says so, and the line of a scenario that does.
    fn pair(&self) -> Result<(Arc<Config>, String), Failure> {
        let Some(path) = &self.config else {
            let (size, name) = match self.size {
                PairSize::Small => (Size::Small, "small"),
                PairSize::Large => (Size::Large, "large"),
            };
            return Ok((size.config(), format!("size = \"{name}\"")));
        };
        let config = output::load(path, self.json)?;
        for settings in &config.applications {
            bumpless_sim::runs(settings).map_err(Failure::refused)?;
        }
        if let Some(trace) = &self.trace {
            trace::spares(trace, [Some(path), None])?;
        }
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let pair = format!("configuration = {:?}", absolute.display().to_string());
        Ok((Arc::new(config), pair))
    }

    fn shrink(&self, settings: &Settings, pair: &str) -> Outcome {
        let shrunk = bumpless_sim::shrink(settings).map_err(Failure::refused)?;
        let Some((kept, report)) = shrunk else {
            output::print_line(format_args!("seed {} breaks no invariant", settings.seed));
            return Ok(ExitCode::SUCCESS);
        };
        output::print_line(bumpless_sim::as_scenario(&kept, &report, pair));
        Ok(ExitCode::from(1))
    }

    fn tell(&self, done: &Done, settings: &Settings, took: Duration) {
        let simulated = done.simulated as f64 / SECOND;
        let speed = simulated / took.as_secs_f64().max(1e-9);
        if self.json {
            output::print_line(self.as_json(done, settings, (took, speed)));
            return;
        }
        if let Some(report) = &done.failure {
            self.tell_failure(report);
        }
        for assumption in &done.broken_assumptions {
            output::print_line(format_args!("assumption that does not hold: {assumption}"));
        }
        tell_forgiven(&done.forgiven);
        tell_outputs(done, &settings.config);
        tell_floods(&done.floods);
        let seeds = if done.runs == 1 { "seed" } else { "seeds" };
        output::print_line(format_args!(
            "{} {seeds}, {simulated:.1} simulated seconds in {:.1} s ({speed:.0} times real time), {} faults, \
             {} datagrams, trace hash {:016x}: {}",
            done.runs,
            took.as_secs_f64(),
            done.faults,
            done.datagrams,
            done.trace_hash,
            match (&done.failure, done.interrupted) {
                (Some(_), _) => "an invariant is broken",
                (None, true) => "no violation until it was interrupted",
                (None, false) => "no violation",
            },
        ));
    }

    fn tell_failure(&self, report: &Report) {
        for event in &report.last_events {
            output::print_line(event);
        }
        for violation in &report.violations {
            output::print_line(format_args!(
                "seed {}: broken at {:.6} s: {}: {}",
                report.seed,
                violation.at as f64 / SECOND,
                violation.invariant,
                violation.what
            ));
        }
        output::print_line(format_args!("replay: {}", self.replay(report.seed)));
    }

    /// The command that gives this run again.
    fn replay(&self, seed: u64) -> String {
        let mut command = format!("bumpless sim --seed {seed}");
        if let Some(time) = self.time {
            command.push_str(&format!(" --time {time}"));
        }
        if let Some(cycles) = self.cycles {
            command.push_str(&format!(" --cycles {cycles}"));
        }
        if let Some(path) = &self.scenario {
            let path = path.display().to_string();
            // A name that begins like an option is the value of one only behind an equals sign.
            let joint = if path.starts_with('-') { '=' } else { ' ' };
            command.push_str(&format!(" --scenario{joint}{}", for_shell(&path)));
        }
        if let Some(path) = &self.config {
            let path = path.display().to_string();
            let joint = if path.starts_with('-') { '=' } else { ' ' };
            command.push_str(&format!(" --config{joint}{}", for_shell(&path)));
        }
        if let PairSize::Large = self.size {
            command.push_str(" --size large");
        }
        if self.calm {
            command.push_str(" --calm");
        }
        if self.changes {
            command.push_str(" --changes");
        }
        if self.floods {
            command.push_str(" --floods");
        }
        if self.attacks {
            command.push_str(" --attacks");
        }
        command
    }

    fn as_json(&self, done: &Done, settings: &Settings, (took, speed): (Duration, f64)) -> Value {
        let violations: Vec<Value> = done
            .failure
            .iter()
            .flat_map(|report| {
                report.violations.iter().map(|violation| json!({
                "seed": report.seed, "invariant": violation.invariant, "time_ns": violation.at,
                "what": violation.what, "replay": self.replay(report.seed),
            }))
            })
            .collect();
        json!({
            "schema": "bumpless.sim/1",
            "ok": done.failure.is_none(),
            "first_seed": settings.seed,
            "seeds": done.runs,
            "simulated_s": done.simulated as f64 / SECOND,
            "wall_s": took.as_secs_f64(),
            "speed": speed,
            "faults": done.faults,
            "datagrams": done.datagrams,
            "lost": done.lost,
            "floods": floods_in_json(&done.floods),
            "trace_hash": format!("{:016x}", done.trace_hash),
            "violations": violations,
            "broken_assumptions": done.broken_assumptions,
            "longest_gap_ms": gaps_in_json(done, &settings.config),
            "cold_starts": done.cold_starts,
            "exemptions": forgiven_in_json(&done.forgiven),
            "interrupted": done.interrupted,
            "last_events": done.failure.as_ref().map(|report| &report.last_events),
        })
    }
}

/// What the checkers forgave and how often, if anything.
fn tell_forgiven(forgiven: &Forgiven) {
    let used = forgiven.iter().filter(|(_, count)| *count > 0);
    for (exemption, count) in used {
        let (name, clause) = (exemption.name(), exemption.clause());
        output::print_line(format_args!("forgiven: {count:>10}  {name} ({clause})"));
    }
}

/// The longest gaps between outputs, and how often one began anew.
fn tell_outputs(done: &Done, config: &Config) {
    let names = config.applications.iter().map(|app| &app.name);
    let gaps = names.zip(&done.longest_gaps);
    let gaps: Vec<String> = gaps
        .map(|(name, gap)| format!("{name} {:.1} ms", *gap as f64 / MS))
        .collect();
    output::print_line(format_args!(
        "longest gaps between outputs: {}; begun anew {} times",
        gaps.join(", "),
        done.cold_starts
    ));
}

/// What became of the packets of floods, if there were any.
fn tell_floods(floods: &FloodCounts) {
    if floods.came > 0 {
        output::print_line(format_args!(
            "floods: {} packets: {} discarded by full rings, {} beyond budgets, {} closed, {} that nobody asked for, {} handed on; \
             {} of the pair's own lost in reception",
            floods.came,
            floods.ring,
            floods.capacity,
            floods.closed,
            floods.nobody,
            floods.handed_on,
            floods.own_lost
        ));
    }
}

fn floods_in_json(floods: &FloodCounts) -> Value {
    let named = floods.named().into_iter();
    Value::Object(
        named
            .map(|(name, count)| (name.to_owned(), json!(count)))
            .collect(),
    )
}

fn forgiven_in_json(forgiven: &Forgiven) -> Vec<Value> {
    let entry = |(exemption, count): (Exemption, u64)| json!({"name": exemption.name(), "clause": exemption.clause(), "count": count});
    forgiven.iter().map(entry).collect()
}

fn gaps_in_json(done: &Done, config: &Config) -> Value {
    let names = config.applications.iter().map(|app| app.name.clone());
    let gaps = done.longest_gaps.iter().map(|&gap| json!(gap as f64 / MS));
    Value::Object(names.zip(gaps).collect())
}

/// Why a storm had no fault.
fn too_short(settings: &Settings) -> String {
    let least = bumpless_sim::shortest_storm(&settings.config);
    format!(
        "note: no fault in {} s: the pair first settles and at last must heal; the storm has room from --time {} on",
        settings.time as f64 / SECOND,
        (least as f64 / SECOND).ceil()
    )
}

/// `text` as one word for a shell.
pub fn for_shell(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@=".contains(c);
    if text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A scenario that cannot be run, with everything that is wrong with it.
fn refused(complaints: &[Complaint]) -> Failure {
    let lines: Vec<String> = complaints.iter().map(ToString::to_string).collect();
    Failure::usage(format_args!(
        "the scenario cannot be run\n{}",
        lines.join("\n")
    ))
}
