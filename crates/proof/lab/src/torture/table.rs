//! The result for people, on a terminal.

use std::fmt::Write;

use super::result::{CaseResult, Growth, Outcome, Soak, TortureResult, Trial};
use crate::evaluate::statistics::OrderStatistics;

/// Broken promises of one case that are told.
const BROKEN_MAX: usize = 4;

/// Everything, without a last line end.
pub fn text(result: &TortureResult) -> String {
    let mut text = format!(
        "bumpless {}, {}, {} processors, seed {}, {:.0} s{}{}\n",
        result.version,
        result.kernel,
        result.processors,
        result.seed,
        result.seconds,
        if result.quick { ", short run" } else { "" },
        if result.interrupted {
            ", ended early"
        } else {
            ""
        },
    );
    if !result.cases.is_empty() {
        matrix(&mut text, result);
    }
    if let Some(soak) = &result.soak {
        self::soak(&mut text, soak);
    }
    let (count, longest) = result.stalls;
    let _ = writeln!(
        text,
        "the stall meter saw {count} stalls of 2 ms or more, the longest {longest:.1} ms"
    );
    text.push_str(if result.held {
        "no promise was broken"
    } else {
        "promises were BROKEN"
    });
    text
}

fn matrix(text: &mut String, result: &TortureResult) {
    let width = result
        .cases
        .iter()
        .map(|case| case.id.len())
        .max()
        .unwrap_or(0);
    let _ = writeln!(
        text,
        "\n  {:<width$}  {:>4} {:>5} {:>7} {:>6}  {:>6} {:>7} {:>5}  {:>8} {:>8}  {:>9}",
        "case",
        "runs",
        "held",
        "stalled",
        "BROKEN",
        "resets",
        "writers",
        "anew",
        "gap p50",
        "longest",
        "healed ms"
    );
    for case in &result.cases {
        let _ = writeln!(text, "  {:<width$}  {}", case.id, row(case));
    }
    let [held, explained, broken] = result.counts();
    let _ = writeln!(
        text,
        "\n  {held} trials held, {explained} missed a limit by no more than stalls of the machine \
         explain (\"stalled\"), {broken} BROKEN.\n  resets: times that the process went back; writers: outputs of a \
         second writer in an epoch or of an older epoch;\n  anew: times that the pair did not come back \
         by itself; gap: longest time between two accepted outputs, ms.\n"
    );
    let cold: u64 = result
        .cases
        .iter()
        .map(|case| case.sum(|trial| trial.planned_cold_starts))
        .sum();
    if cold > 0 {
        let _ = writeln!(
            text,
            "  {cold} cold starts are not counted as resets: both nodes had lost their power.\n"
        );
    }
    for case in result.cases.iter().filter(|case| !case.held()) {
        broken_promises(text, case);
    }
}

/// A row of figures.
fn row(case: &CaseResult) -> String {
    let figure = |figure: Option<f64>| figure.map_or("-".into(), |ms| format!("{ms:.1}"));
    let gaps = OrderStatistics::new(case.trials.iter().filter_map(|trial| trial.gap_ms));
    let healed = OrderStatistics::new(case.trials.iter().filter_map(|trial| trial.healed_ms));
    let writers = case.sum(|trial| trial.writes.dual_writers + trial.writes.older_epochs);
    format!(
        "{:>4} {:>5} {:>7} {:>6}  {:>6} {:>7} {:>5}  {:>8} {:>8}  {:>9}{}",
        case.trials.len(),
        case.count(Outcome::Held),
        case.count(Outcome::Explained),
        case.count(Outcome::Broken),
        case.sum(Trial::resets),
        writers,
        case.started_anew,
        figure(gaps.median()),
        figure(gaps.max()),
        figure(healed.median()),
        if case.error.is_some() {
            "  ended early"
        } else {
            ""
        },
    )
}

/// Which promises were broken how often, with an example each.
fn broken_promises(text: &mut String, case: &CaseResult) {
    let _ = writeln!(text, "  {}: {}", case.id, case.title);
    if let Some(error) = &case.error {
        let _ = writeln!(text, "    ended early: {error}");
    }
    let mut told: Vec<(&str, usize, String)> = Vec::new();
    for trial in &case.trials {
        for want in trial
            .wants
            .iter()
            .filter(|want| want.outcome == Outcome::Broken)
        {
            match told.iter_mut().find(|(id, ..)| *id == want.id) {
                Some((_, count, _)) => *count += 1,
                None => told.push((
                    &want.id,
                    1,
                    format!(
                        "{}; seen in run {}: {}",
                        want.promised, trial.number, want.seen
                    ),
                )),
            }
        }
    }
    let more = told.len().saturating_sub(BROKEN_MAX);
    for (_, count, example) in told.into_iter().take(BROKEN_MAX) {
        let _ = writeln!(text, "    BROKEN {count} times: {example}");
    }
    if more > 0 {
        let _ = writeln!(text, "    and {more} promises more");
    }
}

/// The figures of the long run.
pub fn soak(text: &mut String, soak: &Soak) {
    let [p50, p99, longest] = soak.gaps_ms;
    let _ = writeln!(
        text,
        "\n  {:.0} of {} s with 2 % loss: {} primaries and {} backups killed ({} kills waited for \
         redundancy)\n  {} accepted outputs, {} resets, {} of a second writer, {} of an older epoch\n  \
         gap around a kill: p50 {p50:.1}, p99 {p99:.1}, longest {longest:.1} ms",
        soak.seconds,
        soak.planned_s,
        soak.primaries_killed,
        soak.backups_killed,
        soak.waited,
        soak.writes.accepted,
        soak.writes.resets.max(soak.initial_starts),
        soak.writes.dual_writers,
        soak.writes.older_epochs,
    );
    for Growth {
        process,
        samples,
        early,
        late,
        grew,
    } in &soak.growth
    {
        let _ = writeln!(
            text,
            "  {process:<12} {:>6} -> {:>6} kB, {:>2} -> {:>2} descriptors, {:>2} -> {:>2} threads, \
             {samples} samples{}",
            early.resident_kb,
            late.resident_kb,
            early.descriptors,
            late.descriptors,
            early.threads,
            late.threads,
            if *grew { ": GREW" } else { "" },
        );
    }
    for (file, bytes) in &soak.log_bytes_per_hour {
        let _ = writeln!(
            text,
            "  log {file} grows by {:.1} MB an hour",
            *bytes as f64 / 1e6
        );
    }
    for want in &soak.wants {
        let word = match want.outcome {
            Outcome::Held => "held  ",
            Outcome::Explained => "stalled",
            Outcome::Broken => "BROKEN",
        };
        let _ = writeln!(text, "  {word}  {}: {}", want.promised, want.seen);
    }
}
