//! What a script breaks of the assumptions on which the invariants rest (spec/redundancy.md R-1,
//! a violation under it is no fault of the pair.

use bumpless_base::NodeId;
use bumpless_config::{Config, ReceptionGuard, ReferenceKind, Security};
use bumpless_node::reception::budgets;

use super::{Class, End, Fault, Junk, PathFault, Timed};
use crate::check::Exemption;

/// The assumptions that `config` does without and that `faults` break, each in words: what is violated under them is
/// forgiven.
pub fn broken_assumptions(config: &Config, faults: &[Timed]) -> Vec<(Exemption, String)> {
    let breaking = faults
        .iter()
        .filter_map(|timed| breaks(config, &timed.fault));
    let mut broken: Vec<_> = breaking
        .chain(without_lease(config))
        .chain(beyond_the_plan(config, faults))
        .collect();
    broken.sort();
    broken.dedup();
    broken
}

/// So many packets of floods a second `node` bears by plan (V-90).
pub fn borne(config: &Config, node: usize) -> u64 {
    match config.reception.guard {
        ReceptionGuard::Off => 0,
        ReceptionGuard::Auto => budgets::load(config, NodeId(node as u8)).flood_per_s,
    }
}

/// Floods of more packets than a node bears by plan, all together that it meets at a time.
fn beyond_the_plan(config: &Config, faults: &[Timed]) -> Vec<(Exemption, String)> {
    let flood = |timed: &Timed| match timed.fault {
        Fault::Flood { node, rate, .. } => Some((timed.at, timed.until, node, rate)),
        _ => None,
    };
    let floods: Vec<_> = faults.iter().filter_map(flood).collect();
    let mut found = Vec::new();
    for &(at, _, node, _) in &floods {
        let meets = |it: &&(u64, u64, usize, u64)| it.2 == node && it.0 <= at && at < it.1;
        let rate: u64 = floods.iter().filter(meets).map(|it| it.3).sum();
        let borne = borne(config, node);
        if rate > borne {
            let name = &config.nodes[node].name;
            let what = match config.reception.guard {
                ReceptionGuard::Off => format!(
                    "V-73, guard: {name} is flooded with {rate} packets a second and not guarded"
                ),
                ReceptionGuard::Auto => format!(
                    "V-90, reserve: {name} is flooded with {rate} packets a second and bears {borne}"
                ),
            };
            found.push((Exemption::Flooded, what));
        }
    }
    found
}

/// Groups for whose role nobody grants a lease.
fn without_lease(config: &Config) -> impl Iterator<Item = (Exemption, String)> {
    let grants = |&at: &usize| matches!(config.references[at].kind, ReferenceKind::Witness(_));
    let groups = config.groups.iter();
    groups.filter(move |group| !group.references.iter().any(grants)).map(|group| {
        let what = format!(
            "R-46, lease: no witness is among the reference points of group {}, so nobody decides between two sides of a split",
            group.name
        );
        (Exemption::NoLease, what)
    })
}

fn breaks(config: &Config, fault: &Fault) -> Option<(Exemption, String)> {
    let bound = config.timing.clock_drift_ppm;
    let open = config.security == Security::Open;
    match *fault {
        Fault::Clock { end, ahead, .. } if ahead > 0 => {
            let what = format!(
                "R-1, clock: {}'s jumps ahead by {} ms; clocks run, they do not jump",
                name(config, end),
                ahead as f64 / 1e6
            );
            Some((Exemption::ClockJumps, what))
        }
        Fault::Clock { end, ppb, .. } if ppb.unsigned_abs() * 2 > u64::from(bound) * 1000 => {
            let whose = name(config, end);
            let what = format!(
                "R-1, clock drift: {whose}'s clock is {} ppm off; with clock_drift_ppm = {bound} one clock \
                 may be off by {}, so that two differ by no more than {bound}",
                ppb as f64 / 1e3,
                f64::from(bound) / 2.0
            );
            Some((Exemption::ClockDrifts, what))
        }
        Fault::Junk {
            kind: Junk::Forged | Junk::Redirected | Junk::Stripped,
            ..
        } if open => {
            let what = "R-2, forgery: datagrams come from a partner's address that it did not send";
            Some((Exemption::Forged, what.into()))
        }
        Fault::Path {
            fault:
                PathFault::Corrupt {
                    unnoticed: true,
                    class,
                    ..
                },
            ..
            // Heartbeats and messages of witnesses have a check of their own.
        } if open && !matches!(class, Class::Heartbeats | Class::Witness) => {
            let what = "R-2 and T-37, integrity: bits turn over behind the checksums' back";
            Some((Exemption::Bent, what.into()))
        }
        _ => None,
    }
}

fn name(config: &Config, end: End) -> &str {
    match end {
        End::Node(node) => &config.nodes[node].name,
        End::Reference(reference) => &config.references[reference].name,
    }
}
