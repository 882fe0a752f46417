//! Everything takes longer than the lease.

use super::{Done, words};
use crate::torture::judge::{Fault, Limits, TWO_PERIODS_NS};
use crate::torture::result::Want;
use crate::torture::stage::{MS, Stage};
use crate::torture::switch::faults::Faults;

/// How much longer each way is.
const DELAY_NS: u64 = 12 * MS;
/// The setting that this exceeds.
const SETTING: &str = "lease_ms";

/// How long that lasts.
pub const fn length_ms(quick: bool) -> u64 {
    if quick { 1_500 } else { 3_000 }
}

/// Does it.
pub fn run(stage: &mut Stage<'_>) -> Done {
    let scene = stage.open()?;
    let faults = Faults {
        delay_ns: DELAY_NS,
        ..Faults::default()
    };
    let episode = stage.fault([true; 2], length_ms(stage.quick) * MS, None, faults);
    let fault = Fault {
        from_ns: episode.from_ns,
        to_ns: episode.to_ns,
    };
    let mut finding = stage.close(
        scene,
        fault,
        &Limits::gap(fault.length_ns() + TWO_PERIODS_NS),
    )?;
    let said = words(&finding, fault.from_ns, fault.to_ns);
    let late = said
        .iter()
        .find(|(_, text)| text.contains("late") && text.contains(SETTING));
    finding.trial.wants.push(Want::strict(
        "says-late",
        "says that answers come too late, and that this exceeds lease_ms",
        late.is_some(),
        match (late, said.first()) {
            (Some((_, text)), _) => text.clone(),
            (None, Some((_, text))) => format!("only: {text}"),
            (None, None) => "nothing".into(),
        },
    ));
    Ok((finding, fault))
}
