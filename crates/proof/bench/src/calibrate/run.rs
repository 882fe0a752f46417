//! Going through the sessions: this computer's ends, their progress, what they have measured.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bumpless_guarded_file::write_whole;
use bumpless_plan::cost::Costs;

use super::end::{Outcome, Said};
use super::session::{self, Purpose, Session};
use super::verify::{self, Row, Verification};
use super::{Options, summary};
use crate::peer::Side;
use crate::run::Trouble;
use crate::run::process::Process;
use crate::run::progress::Progress;

/// Longest time without a word of an end: while it waits for the other, or in the slowest of transfers.
const TIMEOUT: Duration = Duration::from_secs(150);

/// Goes through all sessions and tells what transfers cost, and how well that predicts sizes from which it was not
/// told.
///
/// # Errors
/// An end cannot run or its partner does not answer, too little could be measured, or the user wants to stop.
pub fn calibrate(options: &Options) -> Result<(Costs, Verification), Trouble> {
    let done = measure(options, Purpose::Calibrate)?;
    let mut costs = summary::costs(&options.config, &options.nodes, &done)?;
    let verification = verify::compare(&options.config, &costs, &done)?;
    for path in &mut costs.paths {
        let told_from = |size| path.sizes.iter().any(|measured| measured.size == size);
        let held_out = verification
            .rows
            .iter()
            .filter(|row| path.is_of(&row.from, &row.networks, row.spread) && !told_from(row.size));
        path.held_out_error = held_out.map(Row::error).reduce(f64::max);
    }
    Ok((costs, verification))
}

/// What each session has measured.
pub(super) fn measure(
    options: &Options,
    purpose: Purpose,
) -> Result<Vec<(Session, Outcome)>, Trouble> {
    let sessions = session::sessions(&options.config, &options.nodes, purpose, options.rounds);
    let planned = sessions
        .iter()
        .map(|session| session.estimate(&options.config))
        .sum();
    let mut progress = Progress::new(planned, options.silent);
    let mut done = Vec::new();
    for session in sessions {
        let outcome = one(options, &session, &mut progress);
        if outcome.is_err() {
            progress.end();
        }
        done.push((session, outcome?));
    }
    progress.end();
    Ok(done)
}

/// This computer's part of a session.
fn one(options: &Options, session: &Session, progress: &mut Progress) -> Result<Outcome, Trouble> {
    let estimate = session.estimate(&options.config);
    let states = ((session.rounds + 1) * session.round().len()).max(1) as f64;
    let is_here = |name: &String| options.here.contains(name);
    let mut receiver = is_here(&session.to)
        .then(|| start(options, session, Side::Receive))
        .transpose()?;
    let mut sender = is_here(&session.from)
        .then(|| start(options, session, Side::Send))
        .transpose()?;
    let mut told = 0.0;
    if sender.is_none() || receiver.is_none() {
        progress.show(&format!("{}: waiting for the other node", session.what()));
    }
    let watched = sender.as_mut().or(receiver.as_mut());
    let Some(watched) = watched else {
        return Err(Trouble::Failed(
            "no node of the measurement is on this computer".into(),
        ));
    };
    let outcome = loop {
        match watched.says(TIMEOUT, &options.stop)? {
            Said::Ready => {}
            Said::Progress { states: now } => {
                let share = (now as f64 / states).min(1.0) * estimate;
                progress.ends(share - told);
                told = share;
                progress.show(&session.what());
            }
            Said::Result(outcome) => break outcome,
        }
    };
    progress.ends(estimate - told);
    // Both are gone, and their ports free, before the next session begins.
    if let Some(process) = &mut receiver {
        finish(process, &options.stop);
    }
    Ok(outcome)
}

/// Reads until the process ends by itself.
fn finish(process: &mut Process, stop: &AtomicBool) {
    while process.says::<Said>(Duration::from_secs(2), stop).is_ok() {}
}

fn start(options: &Options, session: &Session, side: Side) -> Result<Process, Trouble> {
    let mut command = Command::new(&options.program);
    let session = serde_json::to_string(session).map_err(|error| error.to_string())?;
    let side = if side == Side::Send {
        "send"
    } else {
        "receive"
    };
    command
        .arg("calibration-end")
        .arg(&options.file)
        .args([side, &session]);
    Ok(Process::start(command)?)
}

/// Writes `costs` to `file`: beside it first, so that a half-written one never takes its place.
///
/// # Errors
/// The directory cannot be written to.
pub fn keep(costs: &Costs, file: &Path) -> Result<(), String> {
    let refused = |error: std::io::Error| {
        format!(
            "cannot write {}: {error}; name a place with --costs",
            file.display()
        )
    };
    let mut text = serde_json::to_string_pretty(costs).map_err(|error| error.to_string())?;
    text.push('\n');
    write_whole(file, text.as_bytes()).map_err(refused)
}
