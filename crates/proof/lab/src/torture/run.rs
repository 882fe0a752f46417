//! The course of a run: every case, each on a pair of its own, and what came of it.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bumpless_base::Random;
use bumpless_base::random::mix64;
use bumpless_guarded_file::write_whole;

use super::case::Case;
use super::hosts::Hosts;
use super::leftovers::Directory;
use super::pair::Pair;
use super::result::{CaseResult, Outcome, SCHEMA, TortureResult};
use super::stage::{Stage, Waiter};
use super::switch::Tally;
use super::{TortureError, TortureOptions, configuration, page, soak, table};
use crate::demo::progress::Progress;
use crate::demo::result::about;
use crate::runlog::Stall;

/// About how long a pair takes to start and become redundant.
const START: Duration = Duration::from_millis(1_500);

/// Does what `options` ask for. Shows progress on standard error, prints nothing else.
///
/// # Errors
/// Whatever keeps it from judging anything. Broken promises are no error but in the result.
pub fn run_torture(options: &TortureOptions) -> Result<TortureResult, TortureError> {
    let cases = chosen(options)?;
    check_rights()?;
    let began = Instant::now();
    let directory = Directory::new(options.keep.as_deref())?;
    let hosts = Hosts::new(options.seed)?;
    let mut result = empty(options);
    let mut stalls = Vec::new();
    match options.soak {
        Some(seconds) => {
            let waiter = waiter(options, Duration::from_secs(seconds));
            let (soak, seen) = soak::run(options, &hosts, &directory.path, seconds, waiter)?;
            (result.soak, stalls) = (Some(soak), seen);
        }
        None => run_cases(
            options,
            &hosts,
            &directory.path,
            &cases,
            &mut result,
            &mut stalls,
        )?,
    }
    result.frames = hosts
        .switch
        .report()
        .map(|report| report.tally)
        .unwrap_or_default();
    result.interrupted = options.stop.load(Ordering::Relaxed);
    result.seconds = began.elapsed().as_secs_f64();
    let longest = stalls
        .iter()
        .map(|stall| stall.length_ns)
        .max()
        .unwrap_or(0);
    result.stalls = (stalls.len(), longest as f64 / 1e6);
    let soaked = result.soak.iter().flat_map(|soak| &soak.wants);
    result.held = result.cases.iter().all(CaseResult::held)
        && soaked
            .into_iter()
            .all(|want| want.outcome != Outcome::Broken);
    if let Some(keep) = &options.keep {
        write(&result, keep)?;
    }
    Ok(result)
}

fn chosen(options: &TortureOptions) -> Result<Vec<Case>, TortureError> {
    let mut cases = Case::all();
    for name in &options.cases {
        if !cases.iter().any(|case| case.is_called(name)) {
            return Err(TortureError::NoCase(name.clone()));
        }
    }
    match options.cases.is_empty() {
        true => cases.retain(|case| case.is_quick || !options.quick),
        false => {
            cases.retain(|case| options.cases.iter().any(|name| case.is_called(name)));
        }
    }
    Ok(cases)
}

fn check_rights() -> Result<(), TortureError> {
    match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err(TortureError::Impossible(
            "needs root, for network namespaces of its own; nothing else of the computer is touched: \
             run it with sudo. `bumpless demo` needs no root"
                .into(),
        )),
    }
}

fn empty(options: &TortureOptions) -> TortureResult {
    let about = about();
    TortureResult {
        schema: SCHEMA.into(),
        version: about.version,
        kernel: about.kernel,
        processors: about.processors,
        seed: options.seed,
        repetitions: options.repetitions,
        quick: options.quick,
        interrupted: false,
        seconds: 0.0,
        held: false,
        stalls: (0, 0.0),
        frames: Tally::default(),
        cases: Vec::new(),
        soak: None,
    }
}

fn waiter(options: &TortureOptions, planned: Duration) -> Waiter {
    Waiter::new(Arc::clone(&options.stop), Progress::new(planned))
}

fn run_cases(
    options: &TortureOptions,
    hosts: &Hosts,
    directory: &Path,
    cases: &[Case],
    result: &mut TortureResult,
    stalls: &mut Vec<Stall>,
) -> Result<(), TortureError> {
    let planned = |case: &Case| {
        let one = Duration::from_millis(case.planned_ms(options.quick));
        START + one * options.repetitions
    };
    let mut waiter = waiter(options, cases.iter().map(planned).sum());
    for (position, case) in cases.iter().enumerate() {
        let mut found = CaseResult {
            id: case.id.clone(),
            title: case.title(),
            promised: case.promised().into(),
            trials: Vec::new(),
            said: Vec::new(),
            started_anew: 0,
            error: None,
        };
        let progress = format!("{} of {}: {}", position + 1, cases.len(), found.title);
        waiter.progress.now(progress);
        let at = directory.join(&case.id);
        let text = match (case.needs_full_packets(), case.is_open()) {
            (true, _) => configuration::with_full_packets(&at),
            (false, true) => configuration::open(&at),
            (false, false) => configuration::right(&at),
        };
        let random = Random::new(mix64(options.seed ^ position as u64));
        let mut stage = Stage {
            pair: Pair::start(&options.binary, hosts, at.clone(), (&text, case.is_open()))?,
            random,
            waiter,
            quick: options.quick,
            started_anew: 0,
            stalls: Vec::new(),
        };
        let done = repeat(case, &mut stage, options.repetitions, &mut found);
        hosts.switch.clear();
        found.started_anew = stage.started_anew;
        stalls.append(&mut stage.stalls);
        waiter = stage.waiter;
        drop(stage.pair);
        if options.keep.is_none() {
            // Disk for one case at a time; what does not go now goes at the end.
            let _ = fs::remove_dir_all(&at);
        }
        let interrupted = matches!(done, Err(TortureError::Interrupted));
        if let Err(error) = done
            && !interrupted
        {
            found.error = Some(error.to_string());
        }
        if found.error.is_some() || !found.trials.is_empty() {
            result.cases.push(found);
        }
        if interrupted {
            break;
        }
    }
    waiter.progress.clear();
    match result.cases.is_empty() {
        true => Err(TortureError::Interrupted),
        false => Ok(()),
    }
}

fn repeat(
    case: &Case,
    stage: &mut Stage<'_>,
    repetitions: u32,
    into: &mut CaseResult,
) -> Result<(), TortureError> {
    stage.make_redundant()?;
    // Only what comes after the first time counts as having been started anew.
    stage.started_anew = 0;
    (1..=repetitions).try_for_each(|number| case.run(stage, (number, repetitions), into))
}

/// Writes `result.json`, `table.txt` and `report.html` into `directory`.
///
/// # Errors
/// A file cannot be written.
pub fn write(result: &TortureResult, directory: &Path) -> Result<(), TortureError> {
    let files = [
        ("result.json", super::to_json(result)),
        ("table.txt", table::text(result)),
        ("report.html", page::page(result)),
    ];
    for (name, text) in files {
        let path = directory.join(name);
        write_whole(&path, (text + "\n").as_bytes())
            .map_err(|error| TortureError::system(path.display().to_string(), error))?;
    }
    Ok(())
}
