//! What the demonstration says at its end, to people and to programs.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;
use std::thread;

use serde_json::{Value, json};

use super::DemoOutcome;
use crate::evaluate::statistics::OrderStatistics;
use crate::evaluate::{Promise, longest_gap, not_judged};
use crate::report::About;
use crate::runlog::Run;

/// Where the run was made.
pub fn about() -> About {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    About {
        version: env!("CARGO_PKG_VERSION").into(),
        kernel: format!("Linux {}", release.trim()),
        processors: thread::available_parallelism().map_or(1, usize::from),
    }
}

/// The outcome of the whole course, whose report is at this path if it was written.
pub fn of_course(
    run: &Run,
    promises: &[Promise],
    (report, written): (&Path, io::Result<()>),
) -> DemoOutcome {
    let name = report.display().to_string();
    let failure = written.err().map(|error| {
        format!(
            "the report could not be written to {name}: {error}; the judgement stands without it"
        )
    });
    let held = promises.iter().all(|promise| promise.held);
    let origin = run.phases.first().map_or(0, |phase| phase.from_ns);
    let seconds = |time_ns: u64| time_ns.saturating_sub(origin) as f64 / 1e9;
    let phases: Vec<Value> = run
        .phases
        .iter()
        .map(|phase| {
            let gap = longest_gap(run, phase.from_ns, phase.to_ns);
            json!({
                "id": phase.kind.id(),
                "title": phase.kind.title(),
                "from_s": seconds(phase.from_ns),
                "to_s": seconds(phase.to_ns),
                "fault_s": phase.fault.map(|(from, to)| [seconds(from), seconds(to)]),
                "longest_gap_ms": gap.map(|gap| gap.length_ns() as f64 / 1e6),
                "stalled_ms": run.stalled_ns(phase.from_ns, phase.to_ns) as f64 / 1e6,
            })
        })
        .collect();
    DemoOutcome {
        held,
        text: format!(
            "{}\n{}{}",
            table(run, promises),
            without(run),
            failure.clone().unwrap_or_else(|| format!("report: {name}"))
        ),
        json: json!({
            "schema": "bumpless.demo/1",
            "held": held,
            "promises": promises,
            "not_judged": not_judged(run),
            "program": program(run),
            "phases": phases,
            "packets_taken_away": run.injected,
            "stalls": stalls(run),
            "report": failure.is_none().then_some(name),
            "report_failure": failure,
        }),
        report: failure.is_none().then(|| report.to_owned()),
        report_failure: failure,
    }
}

/// The user's program, if one ran.
fn program(run: &Run) -> Option<Value> {
    let program = run.program.as_ref()?;
    let differing = program.compared.iter().filter(|it| it.differs.is_some());
    Some(json!({
        "file": program.file,
        "kind": program.kind,
        "sha256": program.sha256,
        "inputs": program.inputs,
        "outputs": program.outputs,
        "period_ns": run.period_ns,
        "state_bytes": program.state_bytes,
        "cycles_compared": program.compared.len(),
        "cycles_differing": differing.count(),
    }))
}

/// What is not judged of a user's program, for people: counted, with each reason once. Ends with a line end, if there is
/// any.
fn without(run: &Run) -> String {
    let without = not_judged(run);
    let mut reasons: Vec<(&str, &str, usize)> = Vec::new();
    for one in &without {
        match reasons
            .iter_mut()
            .find(|(promised, ..)| *promised == one.promised)
        {
            Some((.., count)) => *count += 1,
            None => reasons.push((one.promised, one.why, 1)),
        }
    }
    let mut text = String::new();
    for (promised, why, count) in reasons {
        let _ = writeln!(text, "not judged, in {count} phases: {promised}; {why}");
    }
    text
}

/// Stalls of the machine in numbers.
pub fn stalls(run: &Run) -> Value {
    let lengths = OrderStatistics::new(run.stalls.iter().map(|stall| stall.length_ns as f64 / 1e6));
    json!({"count": lengths.len(), "longest_ms": lengths.max()})
}

/// What was promised and what was seen, phase by phase.
pub fn table(run: &Run, promises: &[Promise]) -> String {
    let mut text = String::new();
    let groups = std::iter::once((None, "the whole run")).chain(
        run.phases
            .iter()
            .map(|phase| (Some(phase.kind.id()), phase.kind.title())),
    );
    for (id, title) in groups {
        let mut rows = promises
            .iter()
            .filter(|promise| promise.phase == id)
            .peekable();
        if rows.peek().is_some() {
            let _ = writeln!(text, "{title}");
        }
        for promise in rows {
            let word = if promise.held { "held  " } else { "BROKEN" };
            let _ = writeln!(text, "  {word}  {}", promise.promised);
            let _ = writeln!(text, "          {}", promise.seen);
        }
    }
    let broken = promises.iter().filter(|promise| !promise.held).count();
    let _ = match broken {
        0 => write!(text, "all {} promises held", promises.len()),
        n => write!(text, "{n} of {} promises BROKEN", promises.len()),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::{Limits, evaluate};
    use crate::runlog::synthetic;

    #[test]
    fn a_report_that_cannot_be_written_at_the_end_leaves_the_judgement() {
        let run = synthetic::run();
        let promises = evaluate(&run, &Limits::default());
        let path = Path::new("/full/report.html");
        let whole = of_course(&run, &promises, (path, Ok(())));
        let full = Err(io::ErrorKind::StorageFull.into());
        let without = of_course(&run, &promises, (path, full));
        assert_eq!(without.held, whole.held);
        assert_eq!(without.json["promises"], whole.json["promises"]);
        assert!(without.text.starts_with(&table(&run, &promises)));
        let failure = without.report_failure.expect("it is told");
        assert!(failure.contains("/full/report.html"), "{failure}");
        assert_eq!(without.json["report_failure"], failure.as_str());
        assert!(without.text.contains(&failure) && without.json["report"].is_null());
        assert_eq!((whole.report_failure, without.report), (None, None));
    }
}
