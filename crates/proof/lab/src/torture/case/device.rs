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

/// Does it.
pub fn run(stage: &mut Stage<'_>) -> Done {
    let mut scene = stage.open()?;
    let from_ns = now_ns();
    stage.pair.kill_plant();
    stage.waiter.ms(AWAY_MS)?;
    stage.take_writes(&mut scene);
    stage.pair.start_plant()?;
    let fault = Fault {
        from_ns,
        to_ns: now_ns(),
    };
    let limits = Limits::gap(fault.length_ns() + RECONNECT_NS + TWO_PERIODS_NS);
    let mut finding = stage.close(scene, fault, &limits)?;
    let wants = [named(&finding, &fault), no_false_cause(&finding, &fault)];
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

/// Nothing else is blamed.
fn no_false_cause(finding: &Finding, fault: &Fault) -> Want {
    let said = words(finding, fault.from_ns, fault.to_ns);
    let said: Vec<_> = said
        .into_iter()
        .filter(|(_, text)| text.contains(FALSE_CAUSE))
        .collect();
    only_in_stalls(
        "no-false-cause",
        "nobody says that the backup has no fresh state",
        &finding.evidence.run,
        &said,
    )
}
