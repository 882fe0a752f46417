//! The field device dies and comes back.

use super::{Done, words};
use crate::torture::hosts::Hosts;
use crate::torture::judge::{Fault, Limits, TWO_PERIODS_NS, only_in_stalls};
use crate::torture::now_ns;
use crate::torture::result::Want;
use crate::torture::stage::{Finding, MS, Stage};

/// How long the device is away.
const AWAY_MS: u64 = 1_500;
/// Longest wait of a node before it connects again (spec/field.md, F-11).
const RECONNECT_NS: u64 = 500 * MS;
/// Within this the nodes name the device.
const TOLD_NS: u64 = 1_000 * MS;
/// How a cause begins to be false: states go on between the nodes as before.
const FALSE_CAUSE: &str = "no fresh state";

/// Events of a node whose role or epoch is another one from there on.
const MOVES: [&str; 2] = ["epoch_raised", "role"];

/// Does it.
pub fn run(stage: &mut Stage<'_>) -> Done {
    let mut scene = stage.open()?;
    let from_ns = now_ns();
    stage.pair.kill_plant();
    stage.waiter.ms(AWAY_MS)?;
    let returns_ns = now_ns();
    stage.take_writes(&mut scene);
    stage.pair.start_plant()?;
    let fault = Fault {
        from_ns,
        to_ns: now_ns(),
    };
    let limits = Limits::gap(fault.length_ns() + RECONNECT_NS + TWO_PERIODS_NS);
    let mut finding = stage.close(scene, fault, &limits)?;
    let wants = [
        named(&finding, &fault),
        no_false_cause(&finding, from_ns, returns_ns),
    ];
    finding.trial.wants.extend(wants);
    Ok((finding, fault))
}

/// Status names the device while it is away.
fn named(finding: &Finding, fault: &Fault) -> Want {
    let plant = Hosts::addresses().plant.to_string();
    let mut heard = finding
        .heard
        .iter()
        .filter(|heard| heard.at_ns < fault.to_ns);
    let first = heard.find_map(|heard| {
        let mut texts = heard.said.weaknesses.iter().chain([&heard.said.cause]);
        let text = texts.find(|text| text.contains("field") || text.contains(&plant));
        text.map(|text| (heard.at_ns.saturating_sub(fault.from_ns), text))
    });
    Want::strict(
        "device-named",
        "status names the device as the cause within a second",
        first.is_some_and(|(after_ns, _)| after_ns <= TOLD_NS),
        match first {
            Some((after_ns, text)) => format!("after {:.0} ms: {text}", after_ns as f64 / 1e6),
            None => "no status named it".into(),
        },
    )
}

/// Nothing else is blamed while the device is away. Once roles have moved without it no state is made, so then it is true
/// that the backup has no fresh one: what is said from there on is as false as what has moved them was avoidable.
fn no_false_cause(finding: &Finding, from_ns: u64, returns_ns: u64) -> Want {
    let moved = finding.evidence.events.iter().filter(|event| {
        (from_ns..returns_ns).contains(&event.time_ns) && MOVES.contains(&event.text("event"))
    });
    let moved_ns = moved.map(|event| event.time_ns).min();
    let cause_ns = |at_ns: u64| moved_ns.map_or(at_ns, |moved_ns| at_ns.min(moved_ns));
    let said: Vec<_> = words(finding, from_ns, returns_ns)
        .into_iter()
        .filter(|(_, text)| text.contains(FALSE_CAUSE))
        .map(|(at_ns, text)| (cause_ns(at_ns), text))
        .collect();
    only_in_stalls(
        "no-false-cause",
        "nobody says that the backup has no fresh state while the device is away",
        &finding.evidence.run,
        &said,
    )
}
