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
        .chain(lied_to_apart(config, faults))
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

/// Whether nodes of `config` hear each other all the time under `faults`: none of them ends or stands still, and they have a
/// network that nothing happens to.
pub fn hear_each_other(config: &Config, faults: &[Timed]) -> bool {
    let mut disturbed = None;
    faults.iter().all(|timed| match timed.fault {
        Fault::Path { .. } | Fault::Unreachable { .. } => {
            let network = timed.fault.network();
            let only = *disturbed.get_or_insert(network);
            network.is_some() && only == network && config.networks.len() > 1
        }
        Fault::Junk { .. }
        | Fault::Flood { forged: false, .. }
        | Fault::Switchover { .. }
        | Fault::Keys { .. }
        | Fault::Liar { .. }
        | Fault::Witness { .. }
        | Fault::Device { .. }
        | Fault::Clock { ahead: 0, .. } => true,
        _ => false,
    })
}

/// A witness that lies to nodes which do not hear each other.
fn lied_to_apart(config: &Config, faults: &[Timed]) -> Option<(Exemption, String)> {
    let liar = faults.iter().find_map(|timed| match timed.fault {
        Fault::Liar { reference, .. } => Some(reference),
        _ => None,
    })?;
    let what = || {
        format!(
            "R-13, witness: {} lies, and nodes do not hear each other all the time",
            config.references[liar].name
        )
    };
    (!hear_each_other(config, faults)).then(|| (Exemption::LiedTo, what()))
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
            kind:
                Junk::Forged
                | Junk::Redirected
                | Junk::Stripped
                | Junk::Spliced
                | Junk::Downgraded,
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
