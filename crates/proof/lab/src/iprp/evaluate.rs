//! The paper's evaluation (IX): losses in the six scenarios of table II as in table III, delays as in figure 5, and what it costs as
//! in table IV, each beside the paper's figures; and what is promised of cuts.

mod bars;
mod cost;
mod losses;
mod page;
mod scenario;
mod statistics;
mod table;
mod traffic;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bumpless_bench::output_folder::OutputFolder;
use bumpless_bench::statistics::Summary;
use serde_json::{Value, json};

use super::hosts::NAMES;
use super::stalls::Stalls;
use super::{LabError, impossible, rights};
use crate::demo::meter::Meter;
use crate::demo::progress::Progress;
use bars::Bar;
use losses::Measured;
use scenario::{Row, Share};
use traffic::Traffic;

/// The scenario of which figure 5 shows delays.
const FIGURE_5: usize = 5;

/// What is measured.
#[derive(Debug)]
pub struct Plan {
    /// This program.
    pub binary: PathBuf,
    /// Which scenarios; none: all of them.
    pub scenarios: Vec<usize>,
    /// Flows at once.
    pub flows: usize,
    /// How long each scenario takes.
    pub length: Duration,
    /// Sessions up to which the cost is measured; `None`: not at all.
    pub cpu_sessions: Option<usize>,
    /// How long each cell of that takes.
    pub cpu_length: Duration,
    /// How often networks are cut under streams that must not feel it; `None`: not at all.
    pub cuts: Option<usize>,
    /// How long each program of others runs; `None`: not at all.
    pub traffic_length: Option<Duration>,
    /// Losses and delays are drawn from this.
    pub seed: u64,
    /// Where everything goes, with raw data and a report; it is made.
    pub output: Option<PathBuf>,
    /// Set to end at once.
    pub stop: Arc<AtomicBool>,
}

/// What came of it.
#[derive(Debug)]
pub struct Evaluated {
    /// Whether every scenario's losses are those of theory, every bar was met, other programs missed no more than all networks lost, and
    /// nothing came twice.
    pub held: bool,
    /// The tables.
    pub text: String,
    /// As `bumpless.iprp.evaluate/1`, without raw data.
    pub json: Value,
    /// Why not everything was kept in the output's folder, if so.
    pub output_failure: Option<String>,
}

/// Everything that was measured.
struct Results {
    measured: Vec<Measured>,
    bars: Vec<Bar>,
    /// How often this machine stood still while bars were measured, and for how long at the longest, milliseconds.
    stalls: (usize, f64),
    cost: Vec<Row>,
    traffic: Option<Traffic>,
    settings: Value,
    flows: usize,
    seconds: f64,
}

/// Delays of figure 5, of datagrams that came.
struct Delays {
    /// Of each network's copies.
    networks: Vec<Summary>,
    /// The least of a datagram's copies.
    least: Summary,
    /// At the program.
    program: Summary,
    /// What the program's is above the least: the way through both daemons and both hosts.
    added: Summary,
}

/// Measures it.
///
/// # Errors
/// The machine does not permit it, it was told to stop, or the output's folder takes nothing. Nothing is left then.
pub fn evaluate(plan: &Plan) -> Result<Evaluated, LabError> {
    let folder = plan.output.as_deref().map(OutputFolder::find);
    let folder = folder.transpose().map_err(impossible)?;
    rights::ensure()?;
    let chosen = scenario::ALL
        .iter()
        .filter(|it| plan.scenarios.is_empty() || plan.scenarios.contains(&it.number));
    let chosen: Vec<_> = chosen.copied().collect();
    let costs = plan.cpu_sessions.map_or(0, |_| scenario::PAPER_COST.len());
    let planned = (plan.length + Duration::from_secs(3)) * chosen.len() as u32
        + (plan.cpu_length * 2 + Duration::from_secs(2)) * costs as u32
        + plan.cuts.map_or(Duration::ZERO, bars::takes)
        + plan.traffic_length.map_or(Duration::ZERO, |length| {
            (length + Duration::from_secs(4)) * 6
        });
    // Before anything is loaded by the measurement itself.
    let settings = settings(plan);
    let mut progress = Progress::new(planned);
    let (mut measured, mut bars, mut stalls) = (Vec::new(), Vec::new(), Vec::new());
    for scenario in chosen {
        progress.now(format!("scenario {}", scenario.number));
        // Programs and daemons have no real-time priority.
        let meter = Meter::patient().map_err(impossible)?;
        let it = losses::measure(plan, scenario)?;
        let still = Stalls::of(meter.end());
        if scenario.number == FIGURE_5 {
            let judged = bars::delay::judge(&it, &still);
            bars.push(judged.ok_or_else(|| {
                impossible(
                    "no datagram came over networks that delay evenly, by which figure 5 is judged; measure again",
                )
            })?);
            stalls.push(still);
        }
        measured.push(it);
    }
    if let Some(cuts) = plan.cuts {
        let tell = |what: &str| progress.now(what.to_owned());
        let (judged, still) = bars::measure(plan, cuts, tell)?;
        bars.extend(judged);
        stalls.push(still);
    }
    let cost = match plan.cpu_sessions {
        None => Vec::new(),
        Some(most) => cost::measure(plan, most, |sessions| {
            progress.now(format!("cost of {sessions} sessions"));
        })?,
    };
    let traffic = plan
        .traffic_length
        .map(|length| traffic::measure(plan, length, |what| progress.now(what.to_owned())));
    let traffic = traffic.transpose()?;
    progress.clear();
    let longest = stalls.iter().map(Stalls::longest_ms).fold(0.0, f64::max);
    let results = Results {
        measured,
        bars,
        stalls: (stalls.iter().map(Stalls::count).sum(), longest),
        cost,
        traffic,
        settings,
        flows: plan.flows,
        seconds: plan.length.as_secs_f64(),
    };
    let text = table::text(&results);
    let mut output_failure = None;
    if let Some(folder) = &folder {
        let mut whole = results.json();
        whole["raw"] = results.raw();
        let files = [
            ("run.json", whole.to_string()),
            ("tables.txt", text.clone()),
            ("report.html", page::render(&results, &text)),
        ];
        output_failure = folder.write(files).err();
    }
    Ok(Evaluated {
        held: results.held(),
        output_failure,
        text,
        json: results.json(),
    })
}

/// Where, with what and how it is measured.
fn settings(plan: &Plan) -> Value {
    let run = bumpless_bench::result::Run::begin("lab");
    json!({
        "version": run.version,
        "commit": run.commit,
        "host": run.host,
        "command": run.command.join(" "),
        "flows": plan.flows,
        "seconds": plan.length.as_secs_f64(),
        "bytes": losses::LEN,
        "every_ms": losses::EVERY.as_millis() as u64,
        "seed": plan.seed,
    })
}

impl Results {
    fn held(&self) -> bool {
        let traffic = self.traffic.as_ref();
        let bars = self.bars.iter().all(|bar| bar.held);
        self.measured.iter().all(Measured::holds) && bars && traffic.is_none_or(Traffic::held)
    }

    /// What figure 5 shows, if its scenario was measured.
    fn delays(&self) -> Option<Delays> {
        let measured = self
            .measured
            .iter()
            .find(|it| it.scenario.number == FIGURE_5)?;
        let all = || measured.samples.iter().flatten();
        let networks = 0..measured.scenario.networks.len();
        let networks =
            networks.map(|network| Summary::of(all().filter_map(|it| it.copies[network])));
        let came = || {
            all().filter_map(|it| Some((it.delay_ns?, it.copies.iter().flatten().min().copied()?)))
        };
        Some(Delays {
            networks: networks.collect::<Option<_>>()?,
            least: Summary::of(came().map(|(_, least)| least))?,
            program: Summary::of(came().map(|(delay, _)| delay))?,
            added: Summary::of(came().map(|(delay, least)| delay.saturating_sub(least)))?,
        })
    }

    fn json(&self) -> Value {
        let scenarios = self.measured.iter().map(|it| {
            let (least, most) = it.interval();
            let networks = 0..it.scenario.networks.len();
            let of = |network: usize| {
                json!({
                    "network": NAMES[network],
                    "conditions": it.scenario.networks[network].0,
                    "loss_percent": it.loss_of(network) * 100.0,
                })
            };
            json!({
                "scenario": it.scenario.number,
                "sent": it.sent(),
                "lost": it.lost(),
                "lost_though_a_copy_came": it.own_losses(),
                "doubled": it.doubled,
                "unseen": it.unseen,
                "networks": networks.map(of).collect::<Vec<_>>(),
                "iprp_percent": it.lost() as f64 / it.sent().max(1) as f64 * 100.0,
                "theory_percent": it.theory() * 100.0,
                "interval_99": [least, most],
                "held": it.holds(),
                "paper": {
                    "networks_percent": it.scenario.paper.0,
                    "iprp_percent": it.scenario.paper.1,
                    "theory_percent": it.scenario.paper.2,
                },
            })
        });
        let share = |share: Share| json!({"sender": share.0, "receiver": share.1});
        let cost = self.cost.iter().map(|row| {
            json!({
                "sessions": row.sessions,
                "together_1000_a_second_percent": share(row.together),
                "each_10_a_second_percent": share(row.each),
            })
        });
        json!({
            "schema": "bumpless.iprp.evaluate/1",
            "held": self.held(),
            "settings": self.settings,
            "scenarios": scenarios.collect::<Vec<_>>(),
            "delays": self.delays().map(|it| json!({
                "scenario": FIGURE_5,
                "networks_ns": it.networks,
                "least_ns": it.least,
                "program_ns": it.program,
                "added_ns": it.added,
            })),
            "bars": self.bars,
            "stalls": {"count": self.stalls.0, "longest_ms": self.stalls.1},
            "cost": cost.collect::<Vec<_>>(),
            "traffic": self.traffic.as_ref().map(Traffic::json),
        })
    }

    /// Of each datagram, by scenario and flow: how many microseconds its copy took on each network, and it itself; -1: lost.
    fn raw(&self) -> Value {
        let us = |ns: Option<u64>| ns.map_or(-1, |ns| (ns / 1000) as i64);
        let scenarios = self.measured.iter().map(|it| {
            let networks = it.scenario.networks.len();
            let flows = it.samples.iter().map(|flow| {
                let column = |network: usize| -> Vec<i64> {
                    flow.iter().map(|it| us(it.copies[network])).collect()
                };
                json!({
                    "networks": (0..networks).map(column).collect::<Vec<_>>(),
                    "program": flow.iter().map(|it| us(it.delay_ns)).collect::<Vec<_>>(),
                })
            });
            json!({"scenario": it.scenario.number, "flows": flows.collect::<Vec<_>>()})
        });
        scenarios.collect()
    }
}
