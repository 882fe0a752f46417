//! What a script breaks of the assumptions on which the invariants rest (spec/redundancy.md R-1,
//! a violation under it is no fault of the pair.

use bumpless_config::Config;

use super::{End, Fault, Junk, PathFault, Timed};

/// The assumptions that `faults` break, each in words.
pub fn broken_assumptions(config: &Config, faults: &[Timed]) -> Vec<String> {
    let mut broken: Vec<String> = faults
        .iter()
        .filter_map(|timed| breaks(config, &timed.fault))
        .collect();
    broken.sort();
    broken.dedup();
    broken
}

fn breaks(config: &Config, fault: &Fault) -> Option<String> {
    let bound = config.timing.clock_drift_ppm;
    match *fault {
        Fault::Clock { end, ppb } if ppb.unsigned_abs() * 2 > u64::from(bound) * 1000 => {
            let whose = match end {
                End::Node(node) => &config.nodes[node].name,
                End::Reference(reference) => &config.references[reference].name,
            };
            Some(format!(
                "R-1, clock drift: {whose}'s clock is {} ppm off; with clock_drift_ppm = {bound} two \
                 clocks may differ by no more than that",
                ppb / 1000
            ))
        }
        Fault::Junk {
            kind: Junk::Forged, ..
        } => Some(
            "R-2, forgery: datagrams come from a partner's address that it did not send".into(),
        ),
        Fault::Path {
            fault: PathFault::Corrupt {
                unnoticed: true, ..
            },
            ..
        } => Some("R-2 and T-37, integrity: bits turn over behind the checksums' back".into()),
        _ => None,
    }
}
