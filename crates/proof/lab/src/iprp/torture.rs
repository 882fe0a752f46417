//! What networks, hosts and people do to a replicated stream, each with each, and what others are known to fail at.
//!
//! | module | owns |
//! |---|---|
//! | `case` | the matrix: conditions of the networks, and what befalls meanwhile |
//! | `run` | a case with the real daemons |
//! | `simulated` | a case with the product's cores in simulated time |
//! | `judge` | what is promised, and whether it was kept |
//! | `known`, `contest` | known failures of others, with iPRP and with those of them that can be had |
//! | `table`, `page` | the result for people |

mod case;
mod contest;
mod judge;
mod known;
mod page;
mod run;
mod simulated;
mod table;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bumpless_bench::output_folder::OutputFolder;
use serde::Serialize;
use serde_json::{Value, json};

use super::site::Site;
use super::{LabError, impossible, rights};
use crate::demo::meter::Meter;
use crate::demo::progress::Progress;
use case::{Case, NETWORKS, Place};
use judge::{Observed, Trial};

/// Of a row of a known failure and of a cell of the matrix, about.
const ROW: Duration = Duration::from_secs(20);
const CELL: Duration = Duration::from_secs(4);
/// The known failure in the short run, which takes under a minute with one.
const QUICK_ROWS: [&str; 1] = ["hsr-one-sided-loss"];

/// What is done.
#[derive(Debug)]
pub struct TortureOptions {
    /// This program.
    pub binary: PathBuf,
    /// Only what begins with one of these; none: all.
    pub cases: Vec<String>,
    /// How often each cell of the matrix is done.
    pub repetitions: u32,
    /// The short run.
    pub quick: bool,
    /// Losses and delays are drawn from this.
    pub seed: u64,
    /// Where programs of others are.
    pub peers: Option<PathBuf>,
    /// Where everything goes, with raw data and a report; it is made.
    pub output: Option<PathBuf>,
    /// Set to end at once.
    pub stop: Arc<AtomicBool>,
}

/// What came of it.
#[derive(Debug)]
pub struct Tortured {
    /// Whether every promise of iPRP was kept.
    pub held: bool,
    /// Whether it was told to stop, and no promise was broken until then.
    pub ended_early: bool,
    /// The tables.
    pub text: String,
    /// As `bumpless.iprp.torture/1`, without raw data.
    pub json: Value,
    /// Why not everything was kept in the output's folder, if so.
    pub output_failure: Option<String>,
}

/// A cell of the matrix.
#[derive(Clone, Debug, Serialize)]
struct Cell {
    #[serde(skip)]
    case: Case,
    id: String,
    title: &'static str,
    place: Place,
    held: bool,
    /// What ended it early.
    error: Option<String>,
    trials: Vec<Trial>,
    #[serde(skip)]
    raw: Vec<Value>,
}

/// Everything.
struct Results {
    cells: Vec<Cell>,
    rows: Vec<known::Row>,
    /// It was told to stop before everything was done.
    is_stopped: bool,
    settings: Value,
    /// How many, and the longest in milliseconds.
    stalls: (usize, f64),
}

/// Names of everything that can be done.
pub fn names() -> Vec<String> {
    let cells = Case::all().into_iter().map(Case::id);
    cells
        .chain(known::ALL.iter().map(|row| row.id.to_owned()))
        .collect()
}

impl TortureOptions {
    fn wants(&self, id: &str, is_quick: bool) -> bool {
        match self.cases.is_empty() {
            true => is_quick || !self.quick,
            false => self.cases.iter().any(|it| id.starts_with(it.as_str())),
        }
    }
}

/// Does it.
///
/// # Errors
/// The machine does not permit it, it was told to stop, or the output's folder takes nothing. Nothing is left then.
pub fn torture(options: &TortureOptions) -> Result<Tortured, LabError> {
    let folder = options.output.as_deref().map(OutputFolder::find);
    let folder = folder.transpose().map_err(impossible)?;
    rights::ensure()?;
    let wanted = |case: &Case| options.wants(&case.id(), case.is_quick());
    let cases: Vec<_> = Case::all().into_iter().filter(wanted).collect();
    let wanted = |row: &known::Failure| options.wants(row.id, QUICK_ROWS.contains(&row.id));
    let rows: Vec<_> = known::ALL.into_iter().filter(wanted).collect();
    let settings = settings(options);
    let real = cases.iter().filter(|it| it.place == Place::Namespaces);
    let planned = CELL * real.count() as u32 * options.repetitions + ROW * rows.len() as u32;
    let mut progress = Progress::new(planned);
    let meter = Meter::start().map_err(impossible)?;
    let (mut cells, mut seen) = (Vec::new(), Vec::new());
    let done = matrix(options, &cases, &mut cells, |what| progress.now(what))
        .and_then(|()| contest::run(options, &rows, &mut seen, |what| progress.now(what)));
    progress.clear();
    // What was seen is told, unless it is nothing.
    let is_stopped =
        matches!(done, Err(LabError::Stopped)) && !(cells.is_empty() && seen.is_empty());
    if !is_stopped {
        done?;
    }
    let stalls = meter.end();
    let longest = stalls.iter().map(|stall| stall.length_ns).max();
    let results = Results {
        cells,
        rows: seen,
        is_stopped,
        settings,
        stalls: (stalls.len(), longest.unwrap_or(0) as f64 / 1e6),
    };
    Ok(results.told(folder.as_ref()))
}

/// Where, with what and how it is done.
fn settings(options: &TortureOptions) -> Value {
    let run = bumpless_bench::result::Run::begin("lab");
    json!({
        "version": run.version,
        "commit": run.commit,
        "host": run.host,
        "command": run.command.join(" "),
        "seed": options.seed,
        "repetitions": options.repetitions,
        "quick": options.quick,
        "bytes": run::LEN,
        "every_us": run::EVERY.as_micros(),
    })
}

/// All cells, in one pair of hosts as long as that lives; they are added to `cells`.
///
/// # Errors
/// The machine does not permit hosts at all, or it was told to stop.
fn matrix(
    options: &TortureOptions,
    cases: &[Case],
    cells: &mut Vec<Cell>,
    mut tell: impl FnMut(String),
) -> Result<(), LabError> {
    // The first hosts show whether the machine permits any.
    let mut site = match cases.iter().any(|case| case.place == Place::Namespaces) {
        true => Some(start(options)?),
        false => None,
    };
    for &case in cases {
        let mut cell = Cell::of(case);
        for number in 1..=options.repetitions {
            tell(cell.id.clone());
            let seed = options.seed.wrapping_add(u64::from(number) - 1);
            match observe(options, case, seed, &mut site) {
                Ok(observed) => cell.take(number, &observed),
                Err(LabError::Stopped) => return Err(LabError::Stopped),
                Err(LabError::Impossible(why)) => {
                    // What is left of these hosts proves nothing.
                    site = None;
                    cell.error = Some(why);
                    break;
                }
            }
        }
        cell.held = cell.error.is_none() && cell.trials.iter().all(|trial| trial.held);
        cells.push(cell);
    }
    if let Some(site) = site {
        site.end();
    }
    Ok(())
}

fn start(options: &TortureOptions) -> Result<Site, LabError> {
    let TortureOptions {
        binary, seed, stop, ..
    } = options;
    Site::start(binary, (NETWORKS, 1), *seed, stop)
}

fn observe(
    options: &TortureOptions,
    case: Case,
    seed: u64,
    site: &mut Option<Site>,
) -> Result<Observed, LabError> {
    if case.place == Place::Simulated {
        return simulated::observe(case, seed);
    }
    let site = match site {
        Some(site) => site,
        None => site.insert(start(options)?),
    };
    run::observe(site, case)
}

impl Cell {
    fn of(case: Case) -> Self {
        Self {
            case,
            id: case.id(),
            title: case.event.title(),
            place: case.place,
            held: false,
            error: None,
            trials: Vec::new(),
            raw: Vec::new(),
        }
    }

    fn take(&mut self, number: u32, observed: &Observed) {
        self.trials.push(judge::judge(self.case, number, observed));
        let first = observed.datagrams.first().map_or(0, |it| it.0);
        let us = |at: u64| at.saturating_sub(first) / 1_000;
        let sent: Vec<_> = observed.datagrams.iter().map(|it| us(it.0)).collect();
        let came = observed.datagrams.iter().map(|it| it.1);
        let took = came.map(|came| match came {
            Some(it) => (it.came_ns.saturating_sub(it.sent_ns) / 1_000) as i64,
            None => -1,
        });
        self.raw.push(json!({
            "number": number,
            "event_us": us(observed.began_ns),
            "sent_us": sent,
            "took_us": took.collect::<Vec<_>>(),
        }));
    }
}

/// What is to be said of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    Held,
    /// A promise was broken.
    Broken,
    /// No promise was broken, but not everything was done.
    NotDone,
}

impl Verdict {
    const fn words(self) -> &'static str {
        match self {
            Self::Held => "iPRP kept every promise",
            Self::Broken => "iPRP did NOT keep every promise",
            Self::NotDone => "NOT everything was done; iPRP broke no promise in what was",
        }
    }
}

impl Results {
    fn held(&self) -> bool {
        self.verdict() == Verdict::Held
    }

    fn verdict(&self) -> Verdict {
        let mut trials = self.cells.iter().flat_map(|cell| &cell.trials);
        let is_broken = |row: &known::Row| row.is_done() && !row.held();
        let is_done = !(self.is_stopped || self.cells.is_empty() && self.rows.is_empty())
            && self.cells.iter().all(|cell| cell.error.is_none())
            && self.rows.iter().all(known::Row::is_done);
        match trials.any(|trial| !trial.held) || self.rows.iter().any(is_broken) {
            true => Verdict::Broken,
            false if is_done => Verdict::Held,
            false => Verdict::NotDone,
        }
    }

    fn json(&self) -> Value {
        json!({
            "schema": "bumpless.iprp.torture/1",
            "held": self.held(),
            "verdict": self.verdict(),
            "stopped": self.is_stopped,
            "settings": self.settings,
            "stalls": {"count": self.stalls.0, "longest_ms": self.stalls.1},
            "cells": self.cells,
            "known": self.rows,
        })
    }

    fn told(&self, folder: Option<&OutputFolder>) -> Tortured {
        let (text, json) = (table::text(self), self.json());
        let output_failure = folder.and_then(|folder| {
            let mut whole = json.clone();
            let raw = self
                .cells
                .iter()
                .map(|cell| json!({"id": cell.id, "trials": cell.raw}));
            whole["raw"] = raw.collect();
            let files = [
                ("run.json", whole.to_string()),
                ("tables.txt", text.clone()),
                ("report.html", page::render(self)),
            ];
            folder.write(files).err()
        });
        Tortured {
            held: self.held(),
            ended_early: self.is_stopped && self.verdict() != Verdict::Broken,
            text,
            json,
            output_failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(error: Option<&str>, is_stopped: bool) -> Results {
        let mut cell = Cell::of(Case::all()[0]);
        cell.error = error.map(Into::into);
        cell.held = error.is_none();
        Results {
            cells: vec![cell],
            rows: Vec::new(),
            is_stopped,
            settings: Value::Null,
            stalls: (0, 0.0),
        }
    }

    #[test]
    fn what_was_not_done_is_no_broken_promise_and_none_that_was_kept() {
        assert_eq!(results(None, false).verdict(), Verdict::Held);
        let (undone, stopped) = (results(Some("no hosts"), false), results(None, true));
        for it in [&undone, &stopped] {
            assert_eq!(it.verdict(), Verdict::NotDone);
            assert!(!it.held() && table::text(it).contains("NOT everything was done"));
        }
        let ended_early = |it: &Results| it.told(None).ended_early;
        assert_eq!((ended_early(&undone), ended_early(&stopped)), (false, true));
        let mut broken = stopped;
        broken.cells[0].take(1, &Observed::default());
        assert_eq!(broken.json()["verdict"], "broken");
    }
}
