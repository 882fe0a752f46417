//! Full packets no longer pass network A while heartbeats do; later B is cut as well.

use super::Done;
use crate::demo::configuration::NODES;
use crate::torture::judge::{Fault, Limits, TWO_PERIODS_NS, only_in_stalls};
use crate::torture::result::Want;
use crate::torture::stage::{Finding, MS, Stage};
use crate::torture::switch::faults::{Cut, Faults};

/// How long the hole is there.
pub const LENGTH_MS: u64 = 3_000;
/// When in it B is cut, and how long.
const CUT_MS: (u64, u64) = (1_700, 800);
/// Longest IP packet that passes: a heartbeat does, a piece of a state that fills packets does not.
const LONGEST: u16 = 576;
/// Within this the hole is told.
const TOLD_NS: u64 = 1_000 * MS;

/// Does it.
pub fn run(stage: &mut Stage<'_>) -> Done {
    let scene = stage.open()?;
    let primary = scene.primary;
    let hole = Faults {
        longest: Some(LONGEST),
        ..Faults::default()
    };
    let episode = stage.fault([true, false], LENGTH_MS * MS, None, hole);
    let fault = Fault {
        from_ns: episode.from_ns,
        to_ns: episode.to_ns,
    };
    stage.waiter.until(fault.from_ns + CUT_MS.0 * MS)?;
    let cut = Faults {
        cut: Cut::all(),
        ..Faults::default()
    };
    let cut = stage.fault([false, true], CUT_MS.1 * MS, None, cut);
    let mut finding = stage.close(scene, fault, &Limits::gap(TWO_PERIODS_NS))?;
    let told = told(&finding, primary, (fault.from_ns, cut.from_ns));
    let on_b = over_b(&finding, (fault.from_ns, cut.from_ns));
    finding.trial.wants.extend([told, on_b]);
    Ok((finding, fault))
}

/// Within a second, status calls redundancy degraded and names network A.
fn told(finding: &Finding, primary: usize, (from_ns, to_ns): (u64, u64)) -> Want {
    let name = NODES[primary];
    let mut heard = finding.heard.iter().filter(|heard| heard.said.node == name);
    let first = heard.find(|heard| {
        let said = &heard.said;
        let names_a = |text: &String| text.split(|c: char| !c.is_alphanumeric()).any(|w| w == "A");
        let mut texts = said.weaknesses.iter().chain([&said.cause]);
        (from_ns..to_ns).contains(&heard.at_ns)
            && said.redundancy == "degraded"
            && (texts.any(names_a) || said.links_down.iter().any(|link| link == "A"))
    });
    Want::strict(
        "degraded",
        "degraded within a second, and network A is named",
        first.is_some_and(|heard| heard.at_ns - from_ns <= TOLD_NS),
        match first {
            Some(heard) => {
                let ms = (heard.at_ns - from_ns) as f64 / 1e6;
                format!("after {ms:.0} ms: {}", heard.said.cause)
            }
            None => "not said before B was cut".into(),
        },
    )
}

/// While B is fine, no state is lost.
fn over_b(finding: &Finding, (from_ns, to_ns): (u64, u64)) -> Want {
    let failed = finding.evidence.events.iter().filter(|event| {
        event.text("event") == "transfer"
            && event.text("outcome") == "failed"
            && (from_ns..to_ns).contains(&event.time_ns)
    });
    let failed: Vec<_> = failed
        .map(|event| (event.time_ns, "a transfer failed while B was fine".into()))
        .collect();
    only_in_stalls(
        "over-b",
        "states go on over B",
        &finding.evidence.run,
        &failed,
    )
}
