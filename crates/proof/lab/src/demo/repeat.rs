//! One fault again and again, for the distribution of the time without output.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bumpless_base::Random;
use serde_json::{Value, json};

use super::configuration::{self, NETWORKS};
use super::laboratory::{Laboratory, Load, Waiter, now_ns};
use super::progress::Progress;
use super::{DemoError, DemoOptions, DemoOutcome, FaultKind, gather, result};
use crate::evaluate::statistics::OrderStatistics;
use crate::evaluate::{Limits, Promise, longest_gap, safety};
use crate::fault::{Cut, LinkFaults};
use crate::runlog::{Phase, Run};

const MS: u64 = 1_000_000;
/// How long the pair may take to be redundant again.
const TIMEOUT: Duration = Duration::from_secs(15);
/// How long each fault is watched.
const WATCH_MS: u64 = 300;
/// About how long one repetition takes.
const ONE: Duration = Duration::from_millis(600);
/// What the median and the 99th percentile of a failover's gap must not exceed, in milliseconds.
const FAILOVER_LIMITS_MS: (f64, f64) = (20.0, 40.0);

/// The time without output around one fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Its length in milliseconds.
    pub gap_ms: f64,
    /// How much of it the machine itself stalled, in milliseconds.
    pub stalled_ms: f64,
}

/// Makes the fault `count` times.
///
/// # Errors
/// As [`super::run_demo`].
pub fn run(
    options: &DemoOptions,
    directory: &Path,
    fault: FaultKind,
    count: u32,
) -> Result<DemoOutcome, DemoError> {
    let tank = configuration::controller(&[]);
    let progress = Progress::new(ONE * (count + 3));
    let waiter = Waiter::new(Arc::clone(&options.stop), progress);
    let mut laboratory = Laboratory::start(&options.binary, directory, Load::Tank(&tank), waiter)?;
    let mut random = Random::new(now_ns());
    let mut phases = Vec::new();
    let ready = laboratory.witnesses_ready_ns();
    laboratory.wait_time(ready)?;
    for n in 1..=count {
        laboratory
            .waiter
            .progress
            .now(format!("{}: {n} of {count}", fault.title()));
        laboratory.wait_redundant(TIMEOUT)?;
        // The moment in the cycle at which the fault comes is a matter of chance.
        laboratory.wait_time(now_ns() + 100 * MS + random.below(20 * MS))?;
        phases.push(once(&mut laboratory, fault)?);
    }
    let run = gather::gather(&mut laboratory, Load::Tank(&tank), phases)?;
    Ok(outcome(&run, fault))
}

fn once(laboratory: &mut Laboratory, fault: FaultKind) -> Result<Phase, DemoError> {
    let primary = laboratory.primary().unwrap_or(0);
    let from_ns = now_ns();
    match fault {
        FaultKind::Kill => {
            laboratory.kill_node(primary);
        }
        FaultKind::Switchover => {
            laboratory.switch_over(primary)?;
        }
        FaultKind::CutA => {
            laboratory.set_faults(&NETWORKS[..1], &LinkFaults::cut(Cut::All))?;
        }
        FaultKind::CutBoth => {
            laboratory.set_faults(&NETWORKS, &LinkFaults::cut(Cut::Partners))?;
        }
    }
    laboratory.wait_time(from_ns + WATCH_MS * MS)?;
    let to_ns = now_ns();
    match fault {
        FaultKind::Kill => laboratory.start_node(primary)?,
        FaultKind::Switchover => {}
        FaultKind::CutA | FaultKind::CutBoth => {
            laboratory.set_faults(&[], &LinkFaults::default())?;
        }
    }
    let fault_ns = Some((from_ns, to_ns));
    Ok(Phase {
        kind: fault.phase(),
        from_ns,
        to_ns,
        fault: fault_ns,
        primary_before: primary,
    })
}

/// The longest gap around each fault.
fn samples(run: &Run) -> Vec<Sample> {
    let one = |phase: &Phase| {
        let gap = longest_gap(run, phase.from_ns, phase.to_ns)?;
        let stalled = run.stalled_ns(gap.from_ns, gap.to_ns);
        let ms = |ns: u64| ns as f64 / 1e6;
        Some(Sample {
            gap_ms: ms(gap.length_ns()),
            stalled_ms: ms(stalled),
        })
    };
    run.phases.iter().filter_map(one).collect()
}

fn outcome(run: &Run, fault: FaultKind) -> DemoOutcome {
    let samples = samples(run);
    let quiet = OrderStatistics::new(
        samples
            .iter()
            .filter(|s| s.stalled_ms == 0.0)
            .map(|s| s.gap_ms),
    );
    let all = OrderStatistics::new(samples.iter().map(|s| s.gap_ms));
    let mut promises = safety(run);
    promises.push(in_limits(fault, &quiet, run.phases.len()));
    let held = promises.iter().all(|promise| promise.held);
    let stalled: Vec<_> = samples.iter().filter(|s| s.stalled_ms > 0.0).collect();
    DemoOutcome {
        held,
        text: text(run, fault, &quiet, &all, &stalled, &promises),
        json: json!({
            "schema": "bumpless.demo-repeat/1",
            "held": held,
            "fault": fault.name(),
            "count": run.phases.len(),
            "gap_ms": {"without_stall": figures(&quiet), "all": figures(&all)},
            "gaps_ms": samples.iter().map(|s| s.gap_ms).collect::<Vec<_>>(),
            "during_stalls": stalled.iter().map(|s| json!({"gap_ms": s.gap_ms, "stalled_ms": s.stalled_ms})).collect::<Vec<_>>(),
            "stalls": result::stalls(run),
            "promises": promises,
        }),
        report: None,
        report_failure: None,
    }
}

/// The median and the 99th percentile of the gaps in which the machine did not stall.
fn in_limits(fault: FaultKind, quiet: &OrderStatistics, count: usize) -> Promise {
    let limits = Limits::default();
    let (median, p99) = match fault {
        FaultKind::Kill => FAILOVER_LIMITS_MS,
        FaultKind::Switchover => (FAILOVER_LIMITS_MS.0, limits.gap_switchover_ns as f64 / 1e6),
        _ => (FAILOVER_LIMITS_MS.0, limits.gap_running_ns as f64 / 1e6),
    };
    let seen = match (quiet.median(), quiet.quantile(0.99)) {
        (Some(median), Some(p99)) => format!(
            "p50 {median:.1} ms, p99 {p99:.1} ms in {} of {count} without a stall",
            quiet.len()
        ),
        _ => "the machine stalled in every one".into(),
    };
    let held = quiet.median().is_some_and(|seen| seen <= median)
        && quiet.quantile(0.99).is_some_and(|seen| seen <= p99);
    Promise {
        id: format!("gap-distribution/{}", fault.name()),
        phase: None,
        promised: format!(
            "time without output p50 at most {median:.0} ms, p99 at most {p99:.0} ms, where the machine did not stall"
        ),
        seen,
        held,
    }
}

const RANKS: [(&str, f64); 5] = [
    ("min", 0.0),
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("max", 1.0),
];

fn figures(distribution: &OrderStatistics) -> Value {
    let mut figures = serde_json::Map::new();
    figures.insert("count".into(), distribution.len().into());
    for (name, rank) in RANKS {
        figures.insert(name.into(), json!(distribution.quantile(rank)));
    }
    Value::Object(figures)
}

fn row(name: &str, distribution: &OrderStatistics) -> String {
    let mut row = format!("  {name:<28}{:>6}", distribution.len());
    for (_, rank) in RANKS {
        let figure = distribution
            .quantile(rank)
            .map_or("-".into(), |ms| format!("{ms:.1}"));
        let _ = write!(row, "{figure:>8}");
    }
    row
}

fn text(
    run: &Run,
    fault: FaultKind,
    quiet: &OrderStatistics,
    all: &OrderStatistics,
    stalled: &[&Sample],
    promises: &[Promise],
) -> String {
    let mut text = format!(
        "time without output, ms: {} x {}\n",
        run.phases.len(),
        fault.title()
    );
    let _ = write!(text, "  {:<28}{:>6}", "", "count");
    RANKS.iter().for_each(|(name, _)| {
        let _ = write!(text, "{name:>8}");
    });
    let _ = writeln!(
        text,
        "\n{}\n{}",
        row("the machine did not stall", quiet),
        row("all", all)
    );
    if !stalled.is_empty() {
        let list: Vec<_> = stalled
            .iter()
            .map(|s| format!("{:.1} ({:.1} stalled)", s.gap_ms, s.stalled_ms))
            .collect();
        let _ = writeln!(
            text,
            "  with a stall of the machine in it: {}",
            list.join(", ")
        );
    }
    // There is no course of phases here, so every promise is about the whole run.
    let whole = Run {
        phases: Vec::new(),
        ..Run::default()
    };
    text + &result::table(&whole, promises)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runlog::{PhaseKind, Stall, Write, synthetic};

    /// Outputs every 10 ms, with a gap of `gap_ms` after each of ten kills.
    fn run_with(gaps_ms: &[u64]) -> Run {
        let mut run = synthetic::run();
        (run.writes, run.phases) = Default::default();
        let (mut time_ns, mut cycle) = (1_000_000 * MS, 1);
        for &gap in gaps_ms {
            let kind = PhaseKind::Kill;
            let (from_ns, to_ns) = (time_ns + 201 * MS, time_ns + 501 * MS);
            run.phases.push(Phase {
                kind,
                from_ns,
                to_ns,
                fault: None,
                primary_before: 0,
            });
            for n in 0..60 {
                let outputs = vec![3.0; 2];
                run.writes.push(Write {
                    time_ns,
                    writer: 0,
                    epoch: 2,
                    cycle,
                    outputs,
                    accepted: true,
                });
                time_ns += if n == 20 { gap * MS } else { 10 * MS };
                cycle += 1;
            }
        }
        run
    }

    #[test]
    fn gaps_are_judged_by_percentile_and_a_tail_of_stalls_is_listed_apart() {
        let good = outcome(&run_with(&[15; 10]), FaultKind::Kill);
        assert!(good.held, "{}", good.text);
        assert_eq!(good.json["gap_ms"]["all"]["p99"], 15.0);

        let mut gaps = [15; 10];
        gaps[4] = 70;
        let mut run = run_with(&gaps);
        let tail = outcome(&run, FaultKind::Kill);
        assert!(!tail.held && tail.text.contains("BROKEN"), "{}", tail.text);

        let at = run.phases[4].from_ns;
        run.stalls = vec![Stall {
            time_ns: at + 40 * MS,
            length_ns: 35 * MS,
            seen_by: "meter".into(),
        }];
        let stalled = outcome(&run, FaultKind::Kill);
        assert!(stalled.held, "{}", stalled.text);
        assert_eq!(
            stalled.json["gap_ms"]["all"]["max"], 70.0,
            "it is not hidden"
        );
        assert!(
            stalled.text.contains("70.0 (35.0 stalled)"),
            "{}",
            stalled.text
        );
    }

    #[test]
    fn a_machine_that_always_stalls_proves_nothing() {
        let mut run = run_with(&[15; 3]);
        run.stalls = run
            .phases
            .iter()
            .map(|p| Stall {
                time_ns: p.from_ns + 2 * MS,
                length_ns: 3 * MS,
                seen_by: "meter".into(),
            })
            .collect();
        assert!(!outcome(&run, FaultKind::Kill).held);
    }

    #[test]
    fn two_writers_in_a_repeated_fault_are_found() {
        let mut run = run_with(&[15; 3]);
        run.writes[100].writer = 1;
        assert!(!outcome(&run, FaultKind::Kill).held);
    }
}
