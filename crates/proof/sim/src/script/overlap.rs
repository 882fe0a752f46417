//! Faults that cannot be at the same time.

use std::mem::discriminant;

use bumpless_config::Config;

use super::places::{Names, is_among, real_paths};
use super::{Fault, PathFault, Paths, Timed};

/// The faults, by line, that contradict an earlier one, and how.
pub(super) fn contradictions(config: &Config, faults: &[(usize, Timed)]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, (line, later)) in faults.iter().enumerate() {
        for (other_line, earlier) in &faults[..at] {
            let overlaps = later.at < earlier.until.max(earlier.at + 1)
                && earlier.at < later.until.max(later.at + 1);
            if let Some(what) = clash(config, &earlier.fault, &later.fault).filter(|_| overlaps) {
                found.push((*line, format!("{what} (the other is on line {other_line})")));
            }
        }
    }
    found
}

fn clash(config: &Config, one: &Fault, other: &Fault) -> Option<String> {
    let name = |node: usize| &config.nodes[node].name;
    for (down, acts) in [(one, other), (other, one)] {
        if let Some(node) = is_down(down).filter(|&node| needs(acts) == Some(node)) {
            return Some(format!(
                "node {} is down for a part of this time and can do nothing then",
                name(node)
            ));
        }
    }
    if let Some(node) = restarted_twice(one, other) {
        return Some(format!(
            "node {} is restarted at the end of the other fault",
            name(node)
        ));
    }
    if discriminant(one) == discriminant(other)
        && let Some((place, what)) = only_one(config, one)
        && only_one(config, other).is_some_and(|(other, _)| other == place)
    {
        return Some(what);
    }
    match (*one, *other) {
        (Fault::Path { paths: a, fault: x }, Fault::Path { paths: b, fault: y })
            if is_one_at_a_time(&x, &y) && meet(config, &a, &b) =>
        {
            Some("a path cannot have two of these".into())
        }
        (
            Fault::Device {
                application: a,
                node: of_a,
                late: late_a,
            },
            Fault::Device {
                application: b,
                node: of_b,
                late: late_b,
            },
        ) if a == b && late_a != late_b && (of_a.is_none() || of_b.is_none() || of_a == of_b) => {
            Some(format!(
                "the device of application {} cannot both do and not do later what it is asked",
                config.applications[a].name
            ))
        }
        _ => None,
    }
}

/// Where there can be only one fault of this kind at a time, and what is said of a second one.
fn only_one(config: &Config, fault: &Fault) -> Option<((usize, usize), String)> {
    let name = |node: usize| &config.nodes[node].name;
    Some(match *fault {
        Fault::Crash { node, .. } => ((node, 0), format!("node {} is down already", name(node))),
        Fault::Clock { end, .. } => {
            let names = Names::of(config);
            let at = names.at(end);
            let what = format!("the clock of {} cannot have two rates", names.ends[at]);
            ((at, 0), what)
        }
        Fault::Buffer { node, .. } => {
            let name = name(node);
            let what = format!("the receive buffers of node {name} cannot have two sizes");
            ((node, 0), what)
        }
        Fault::Witness { reference } => {
            let name = &config.references[reference].name;
            ((reference, 0), format!("{name} is down already"))
        }
        Fault::Liar { reference, .. } => {
            let name = &config.references[reference].name;
            ((reference, 0), format!("{name} lies already"))
        }
        Fault::CrashInChange { node, .. } => {
            let name = name(node);
            let what = format!("node {name} can end at one step of a change only");
            ((node, 0), what)
        }
        Fault::Pause { node, .. } => {
            let what = format!("node {} stands still already", name(node));
            ((node, 0), what)
        }
        Fault::Slow { node, .. } => {
            let name = name(node);
            let what = format!("the threads of node {name} cannot be slow in two ways");
            ((node, 0), what)
        }
        Fault::Unreachable { node, network } => {
            let what = format!("node {} cannot send there already", name(node));
            ((node, network), what)
        }
        Fault::SlowApplication {
            node, application, ..
        } => {
            let name = &config.applications[application].name;
            let what = format!("application {name} cannot be slow in two ways");
            ((node, application), what)
        }
        Fault::Program {
            node, application, ..
        } => {
            let name = &config.applications[application].name;
            let what = format!("the program of {name} fails already");
            ((node, application), what)
        }
        _ => return None,
    })
}

/// The node that `fault` takes down.
fn is_down(fault: &Fault) -> Option<usize> {
    match fault {
        Fault::Crash { node, .. } => Some(*node),
        _ => None,
    }
}

/// The node that one of them restarts with another configuration while the other one restarts it, too.
fn restarted_twice(one: &Fault, other: &Fault) -> Option<usize> {
    let restarts = |fault: &Fault| fault.reconfigures().or(is_down(fault));
    let node = one.reconfigures().or(other.reconfigures())?;
    (restarts(one) == Some(node) && restarts(other) == Some(node)).then_some(node)
}

/// The node that must run for `fault` to make sense. Who is slow is so in the next process, too.
fn needs(fault: &Fault) -> Option<usize> {
    match fault {
        Fault::Pause { node, .. }
        | Fault::Apply { node, .. }
        | Fault::CrashInChange { node, .. }
        | Fault::Switchover { node, .. } => Some(*node),
        _ => None,
    }
}

/// Whether two faults of paths are of one kind of which a path has one: losses and delays add up, these do not.
fn is_one_at_a_time(one: &PathFault, other: &PathFault) -> bool {
    use PathFault::{Bandwidth, Bursts, Cut, Flap, Mtu};
    matches!(
        (one, other),
        (Cut, Cut)
            | (Bandwidth { .. }, Bandwidth { .. })
            | (Bursts(_), Bursts(_))
            | (Flap { .. }, Flap { .. })
            | (Mtu { .. }, Mtu { .. })
    )
}

/// Whether datagrams ever take a path that is among both.
fn meet(config: &Config, one: &Paths, other: &Paths) -> bool {
    real_paths(config).any(|path| is_among(one, path) && is_among(other, path))
}
