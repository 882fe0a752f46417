//! `bumpless wan sim`: the pair across the network, in the simulator.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bumpless_base::Duration;
use bumpless_lab::sites::Sites;
use bumpless_sim::grid::{Grid, Judged, Kind, Options, Promised};
use bumpless_sim::sites::Obeyed;
use bumpless_sim::{Counts, Places, Routing};
use bumpless_wan::{Script, Topology, emulation};
use clap::Args;
use serde_json::{Value, json};

use super::network;
use super::sites::{assignment, millis, placed, span};
use super::{Network, kept, listed, read};
use crate::commands::each_seed::Seeds;
use crate::commands::sim::for_shell;
use crate::output::{self, Failure, Outcome};
use crate::stop;

/// Run a pair across the network in the simulator, have links, routers, loops or sites die, and judge it
///
/// Packets travel hop by hop, with the delays, losses and rates of the links; who is where is as for `sites`. Each seed draws an
/// outage, or all play a script. Every checker of `bumpless sim` judges, and where an outage amounts to the end of a site or reaches
/// nobody, the gap is held to what the plan says (spec/wan.md, U-100 and further). It takes no root, and a seed gives the same run
/// on every machine. Exit status 0: nothing was broken. 1: something was, or the plan has no times for the distance. 2: wrong
/// usage. 130: ended early.
#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    network: Network,
    /// Where everybody is, any of left=SITE,right=SITE,witness=SITE,field=SITE; the others are in control centres and substations
    #[arg(long, value_name = "NAME=SITE", value_delimiter = ',', value_parser = assignment)]
    sites: Vec<(String, String)>,
    /// Who decides where packets go: fixed routes with the fewest hops, equal-cost, which are the same over all links that are
    /// equally near, or ospf, a daemon on each router that finds out of an outage
    #[arg(long, value_name = "WHO", default_value = "fixed", value_parser = network::routing)]
    routing: emulation::Routing,
    /// With --routing ospf: how long after a link has died routers find other ways
    #[arg(long, value_name = "MS", value_parser = millis)]
    failure_ms: Option<f64>,
    /// With --routing ospf: how long after a link carries again routers use it
    #[arg(long, value_name = "MS", value_parser = millis)]
    healing_ms: Option<f64>,
    /// A second network between all of them, which takes so long from end to end: 1800 is the Ethernet-like backup of `study`
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    backup_us: Option<u64>,
    /// Outages and impairments from this file (schema bumpless.wan-script/1, as `script` plays it) from when the pair has settled
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Between two heartbeats
    #[arg(long, value_name = "MS", default_value_t = 5.0, value_parser = millis)]
    heartbeat_ms: f64,
    /// Between two cycles, unless the distance asks for more
    #[arg(long, value_name = "MS", default_value_t = 20.0, value_parser = millis)]
    period_ms: f64,
    /// The first seed [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How many seeds, one after the other, or which: COUNT, or FIRST..END without END
    #[arg(long, value_name = "SEEDS", default_value = "1", value_parser = which)]
    seeds: Which,
    /// Seeds that run at the same time
    #[arg(long, value_name = "THREADS", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: u16,
    /// Print the result as JSON (schema bumpless.wan-sim/1)
    #[arg(long)]
    pub json: bool,
}

/// Seeds as people say which.
#[derive(Clone, Copy, Debug)]
enum Which {
    Count(u64),
    Range(u64, u64),
}

fn which(text: &str) -> Result<Which, String> {
    let wrong = || "give a number from 1 on, or FIRST..END with END above FIRST".to_owned();
    match text.split_once("..") {
        None => match text.parse() {
            Ok(count) if count > 0 => Ok(Which::Count(count)),
            _ => Err(wrong()),
        },
        Some((first, end)) => match (first.parse(), end.parse()) {
            (Ok(first), Ok(end)) if first < end => Ok(Which::Range(first, end)),
            _ => Err(wrong()),
        },
    }
}

impl Run {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let seeds = self.which_seeds()?;
        kept::without_pool(&self.network, "the simulated pair has")?;
        let routing = self.routing()?;
        let topology = Arc::new(self.network.topology()?);
        let sites = placed(&topology, &self.sites)?;
        let script = match &self.script {
            None => None,
            Some(file) => {
                let text = read(file).map_err(Failure::usage)?;
                let script = Script::from_json(&text, &topology)
                    .map_err(|wrong| Failure::usage(listed(&file.display().to_string(), &wrong)))?;
                Some(script.steps().to_vec())
            }
        };
        let grid = Grid::new(Options {
            places: places(&topology, &sites)?,
            topology: Arc::clone(&topology),
            routing,
            backup: self.backup_us.map(|us| us * 1_000),
            heartbeat: span(self.heartbeat_ms),
            period: span(self.period_ms),
            script,
        });
        let grid = grid.map_err(Failure::refused)?;
        let stop = stop::stop_flag()?;
        let began = Instant::now();
        let stopped = || stop.load(Ordering::Relaxed);
        let one = |seed| grid.judge(seed, Obeyed::Whole, &stopped);
        let done = seeds.all(&stop, one, "seeds have run");
        let all: Result<Vec<Option<Judged>>, String> = done.into_iter().collect();
        let all = all.map_err(Failure::refused)?;
        let mut all: Vec<Judged> = all.into_iter().flatten().collect();
        all.sort_by_key(|judged| judged.seed);
        let told = Told {
            run: &self,
            seeds,
            sites: &sites,
            grid: &grid,
            interrupted: (all.len() as u64) < seeds.count,
            wall_s: began.elapsed().as_secs_f64(),
            all,
        };
        match self.json {
            true => output::print_line(told.json(&topology, routing)),
            false => told.tell(&topology),
        }
        Ok(ExitCode::from(match told.broken() {
            Some(_) => 1,
            None if told.interrupted => output::INTERRUPTED,
            None => 0,
        }))
    }

    fn which_seeds(&self) -> Result<Seeds, Failure> {
        let (first, count) = match (self.seeds, self.seed) {
            (Which::Count(count), first) => (first.unwrap_or(0), count),
            (Which::Range(first, end), None) => (first, end - first),
            (Which::Range(..), Some(_)) => {
                return Err(Failure::usage(
                    "--seeds FIRST..END says the first one; leave --seed out",
                ));
            }
        };
        Ok(Seeds {
            first,
            count,
            jobs: self.jobs,
        })
    }

    fn routing(&self) -> Result<Routing, Failure> {
        let given = self.failure_ms.is_some() || self.healing_ms.is_some();
        let routing = match self.routing {
            emulation::Routing::Fixed => Routing::Fixed,
            emulation::Routing::EqualCost => Routing::EqualCost,
            emulation::Routing::Ospf => Routing::DAEMON,
        };
        match routing {
            Routing::Daemon { failure, healing } => Ok(Routing::Daemon {
                failure: self.failure_ms.map_or(failure, span),
                healing: self.healing_ms.map_or(healing, span),
            }),
            _ if given => Err(Failure::usage(
                "--failure-ms and --healing-ms are of --routing ospf; nobody else finds out of an outage",
            )),
            routing => Ok(routing),
        }
    }

    /// The command that gives this run again.
    fn replay(&self, seed: u64) -> String {
        let words = std::env::args().skip(1);
        let mut kept = vec!["bumpless".to_owned()];
        let mut is_value = false;
        for word in words {
            let is_seed = ["--seed", "--seeds", "--jobs"]
                .iter()
                .any(|option| word == *option || word.starts_with(&format!("{option}=")));
            if !is_seed && !is_value && word != "--json" {
                kept.push(for_shell(&word));
            }
            is_value = is_seed && !word.contains('=');
        }
        kept.push(format!("--seed {seed}"));
        kept.join(" ")
    }
}

fn places(topology: &Topology, sites: &Sites) -> Result<Places, Failure> {
    let find = |name: &str| {
        let lacking = || Failure::usage(format_args!("no node is called {name:?}"));
        topology.find(name).ok_or_else(lacking)
    };
    Ok(Places {
        nodes: vec![find(&sites.nodes[0])?, find(&sites.nodes[1])?],
        witness: find(&sites.witness)?,
        field: find(&sites.field)?,
    })
}

/// What came of all seeds.
struct Told<'a> {
    run: &'a Run,
    seeds: Seeds,
    sites: &'a Sites,
    grid: &'a Grid,
    all: Vec<Judged>,
    interrupted: bool,
    wall_s: f64,
}

/// What was promised of some of them, and what came of that.
struct Row {
    promised: Promised,
    count: usize,
    broken: usize,
    /// The longest gap, milliseconds, and as a share of what was promised.
    gap_ms: f64,
    share: Option<f64>,
}

impl Told<'_> {
    fn broken(&self) -> Option<&Judged> {
        self.all.iter().find(|judged| !judged.broken.is_empty())
    }

    fn rows(&self, kind: Option<Kind>) -> impl Iterator<Item = Row> + '_ {
        let row = move |promised| {
            let of = self
                .all
                .iter()
                .filter(move |judged| judged.outage == kind && judged.promised == promised);
            let gaps = of.clone().flat_map(|judged| &judged.gaps_ms);
            let shares = gaps
                .clone()
                .filter_map(|(gap, limit)| limit.map(|limit| gap / limit));
            Row {
                promised,
                count: of.clone().count(),
                broken: of.filter(|judged| !judged.broken.is_empty()).count(),
                gap_ms: gaps.map(|(gap, _)| *gap).fold(0.0, f64::max),
                share: shares.reduce(f64::max),
            }
        };
        Promised::ALL
            .into_iter()
            .map(row)
            .filter(|row| row.count > 0)
    }

    fn kinds() -> impl Iterator<Item = Option<Kind>> {
        Kind::ALL.into_iter().map(Some).chain([None])
    }

    fn packets(&self) -> Counts {
        let mut packets = Counts::default();
        self.all
            .iter()
            .for_each(|judged| packets.merge(&judged.packets));
        packets
    }

    fn json(&self, topology: &Topology, routing: Routing) -> Value {
        let ms = |span: Duration| span.as_millis_f64();
        let (failure, healing) = match routing {
            Routing::Daemon { failure, healing } => (Some(ms(failure)), Some(ms(healing))),
            Routing::Fixed | Routing::EqualCost => (None, None),
        };
        let outages = Self::kinds().flat_map(|kind| {
            self.rows(kind).map(move |row| {
                json!({
                    "outage": kind, "promised": row.promised, "count": row.count, "broken": row.broken,
                    "longest_gap_ms": row.gap_ms, "largest_share": row.share,
                })
            })
        });
        json!({
            "schema": "bumpless.wan-sim/1",
            "ok": self.broken().is_none(),
            "interrupted": self.interrupted,
            "network": {
                "nodes": topology.nodes().len(), "links": topology.links().len(), "routing": routing.name(),
                "failure_ms": failure, "healing_ms": healing, "backup_us": self.run.backup_us,
            },
            "sites": {
                "left": self.sites.nodes[0], "right": self.sites.nodes[1],
                "witness": self.sites.witness, "field": self.sites.field,
            },
            "planned": self.grid.planned,
            "first_seed": self.seeds.first,
            "seeds": self.all.len(),
            "simulated_s": self.all.iter().map(|judged| judged.simulated_s).sum::<f64>(),
            "wall_s": self.wall_s,
            "trace_hash": self.trace_hash(),
            "packets": self.packets(),
            "outages": outages.collect::<Vec<_>>(),
            "runs": self.all,
            "replay": self.broken().map(|judged| self.run.replay(judged.seed)),
        })
    }

    fn trace_hash(&self) -> String {
        let hashes = self.all.iter().map(|judged| {
            let parsed = u64::from_str_radix(&judged.trace_hash, 16);
            parsed.unwrap_or_default()
        });
        format!("{:016x}", hashes.fold(0, |all, one| all ^ one))
    }

    fn tell(&self, topology: &Topology) {
        let planned = &self.grid.planned;
        output::print_line(format_args!(
            "{} nodes, {} links; {} and {}, witness in {}, field device in {}: {:.3}, {:.3} and {:.3} ms there and back; \
             heartbeats each {} ms, lease {} ms, period {} ms",
            topology.nodes().len(),
            topology.links().len(),
            self.sites.nodes[0],
            self.sites.nodes[1],
            self.sites.witness,
            self.sites.field,
            planned.pair_ms,
            planned.to_witness_ms,
            planned.to_field_ms,
            planned.heartbeat_ms,
            planned.lease_ms,
            planned.period_ms,
        ));
        output::print_line(
            "outage   promised      seeds  BROKEN  longest gap  of what was promised",
        );
        for kind in Self::kinds() {
            for row in self.rows(kind) {
                let share = row.share.map(|share| format!("{:.1} %", share * 100.0));
                output::print_line(format_args!(
                    "{:<8} {:<12} {:>6} {:>7} {:>9.1} ms {:>13}",
                    kind.map_or("script", Kind::name),
                    row.promised.name(),
                    row.count,
                    row.broken,
                    row.gap_ms,
                    share.as_deref().unwrap_or("-"),
                ));
            }
        }
        let packets = self.packets();
        output::print_line(format_args!(
            "{} packets over {} links; lost {}: dead link {}, dead router {}, no way {}, queue full {}, at random {}",
            packets.entered,
            packets.hops,
            packets.lost(),
            packets.dead_link,
            packets.dead_router,
            packets.no_way,
            packets.queue_full,
            packets.loss,
        ));
        if let Some(judged) = self.broken() {
            judged
                .broken
                .iter()
                .for_each(|what| output::print_line(format_args!("seed {}: {what}", judged.seed)));
            let replay = self.run.replay(judged.seed);
            output::print_line(format_args!("replay: {replay}"));
        }
        let seeds = if self.all.len() == 1 { "seed" } else { "seeds" };
        output::print_line(format_args!(
            "{} {seeds}, {:.1} s, trace hash {}: {}",
            self.all.len(),
            self.wall_s,
            self.trace_hash(),
            match (self.broken(), self.interrupted) {
                (Some(_), _) => "something is broken",
                (None, true) => "nothing was broken until it was interrupted",
                (None, false) => "nothing is broken",
            }
        ));
    }
}
