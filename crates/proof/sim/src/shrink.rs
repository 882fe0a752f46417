//! From a run that failed to the few faults that it takes.

use std::fmt::Write;

use crate::run::{Report, Settings, faults, run};
use crate::script::{Timed, words};

/// Leaves out whatever faults of a failed run are not needed to break the same invariant. Returns
/// the run without them and its report; `None` if the run does not fail.
///
/// # Errors
/// As [`run`].
pub fn shrink(settings: &Settings) -> Result<Option<(Settings, Report)>, String> {
    let mut kept = Settings {
        script: faults(settings),
        storm: false,
        trace: None,
        changes: false,
        floods: false,
        attacks: false,
        ..settings.clone()
    };
    let mut report = run(&kept)?;
    let Some(first) = report.violations.first() else {
        return Ok(None);
    };
    let invariant = first.invariant;
    let mut chunk = kept.script.len().div_ceil(2).max(1);
    loop {
        let before = kept.script.len();
        let mut at = 0;
        while at < kept.script.len() {
            let without = without(&kept, at, chunk);
            let shorter = run(&without)?;
            if shorter
                .violations
                .first()
                .is_some_and(|v| v.invariant == invariant)
            {
                (kept, report) = (without, shorter);
            } else {
                at += chunk;
            }
        }
        if chunk == 1 && kept.script.len() == before {
            return Ok(Some((kept, report)));
        }
        chunk = chunk.div_ceil(2);
    }
}

fn without(settings: &Settings, at: usize, chunk: usize) -> Settings {
    let script = settings.script.iter().enumerate();
    Settings {
        script: script
            .filter(|(place, _)| !(at..at + chunk).contains(place))
            .map(|(_, timed)| *timed)
            .collect(),
        ..settings.clone()
    }
}

/// The run as a scenario file. `pair` is the line of TOML that says which pair it is.
pub fn as_scenario(settings: &Settings, report: &Report, pair: &str) -> String {
    let mut text = String::new();
    for violation in &report.violations {
        let _ = writeln!(text, "# {}: {}", violation.invariant, violation.what);
    }
    for assumption in &report.broken_assumptions {
        let _ = writeln!(text, "# assumption that does not hold: {assumption}");
    }
    // A second more than it takes.
    let seconds = report.simulated / 1_000_000_000 + 2;
    let _ = writeln!(
        text,
        "name = \"seed {}\"\n{pair}\nseconds = {seconds}\nseed = {}\ndrawn = true",
        settings.seed, settings.seed
    );
    for Timed { at, until, fault } in &settings.script {
        let _ = writeln!(text, "\n[[fault]]\nat_ms = {}", *at as f64 / 1e6);
        if !fault.is_instant() && until > at {
            let most = seconds * 1_000_000_000 - at;
            let _ = writeln!(text, "for_ms = {}", (until - at).min(most) as f64 / 1e6);
        }
        for word in words(&settings.config, fault) {
            let _ = writeln!(text, "{word}");
        }
    }
    text
}
