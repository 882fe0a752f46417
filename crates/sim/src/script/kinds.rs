//! The faults of a scenario file, by kind.

use crate::variants::LAST;
use bumpless_config::Config;
use toml_edit::TableLike;

use super::entry::Entry;
use super::path_kinds::{PATH_KINDS, no_faster, path_fault, paths};
use super::places::{Names, ends_on};
use super::scenario::Reader;
use super::words::WRONG;
use super::{Fault, Junk, PathFault, Timed, Wrong};

const KINDS: [&str; 15] = [
    "junk",
    "buffer",
    "unreachable",
    "pause",
    "crash",
    "old_configuration",
    "wrong_configuration",
    "slow",
    "clock",
    "witness",
    "device",
    "slow_application",
    "switchover",
    "apply",
    "crash_in_change",
];

/// The fault that a `[[fault]]` table describes.
pub(super) fn fault(
    reader: &mut Reader<'_>,
    table: &dyn TableLike,
    line: usize,
    config: &Config,
    time: u64,
) -> Option<Timed> {
    let entry = Entry::new(table, line);
    let names = Names::of(config);
    let at = entry.span(reader, "at_ms");
    let Some(kind) = entry.text(reader, "kind") else {
        entry.wrong(reader, "kind", "a fault needs a kind".into());
        return None;
    };
    let fault = if PATH_KINDS.contains(&kind.as_str()) {
        let paths = paths(reader, &entry, &names, config);
        let fault = path_fault(reader, &entry, &kind);
        if let (Some(paths), Some(PathFault::Bandwidth { bits }), false) =
            (paths, fault, reader.drawn)
        {
            no_faster(reader, &entry, config, paths.network, bits);
        }
        paths
            .zip(fault)
            .map(|(paths, fault)| Fault::Path { paths, fault })
    } else {
        other_fault(reader, &entry, &kind, &names, config)
    }?;
    let lasts = duration(reader, &entry, &kind, &fault)?;
    let at = at?;
    if at + lasts > time {
        let what = format!(
            "the fault ends at {} ms, the scenario at {} ms",
            (at + lasts) as f64 / 1e6,
            time as f64 / 1e6
        );
        entry.wrong(reader, if at > time { "at_ms" } else { "for_ms" }, what);
    }
    Some(Timed {
        at,
        until: at + lasts,
        fault,
    })
}

/// How long `fault` lasts, nanoseconds. One that does not end by itself, and whose end starts nothing
/// again, must last for a while: the world ends nothing that has not lasted.
fn duration(reader: &mut Reader<'_>, entry: &Entry<'_>, kind: &str, fault: &Fault) -> Option<u64> {
    let ends_at_once = fault.is_instant() || fault.restarts();
    if entry.item("for_ms").is_none() {
        if !ends_at_once {
            let what = "this kind of fault needs for_ms: how long it lasts".into();
            entry.wrong(reader, "for_ms", what);
        }
        return ends_at_once.then_some(0);
    }
    let lasts = entry.span(reader, "for_ms")?;
    if lasts == 0 && !ends_at_once {
        let what = format!("{kind} must last for a while; give at least 0.000001 (1 ns)");
        entry.wrong(reader, "for_ms", what);
        return None;
    }
    if fault.is_instant() && lasts > 0 {
        let what = format!("{kind} happens at one instant; leave for_ms out");
        entry.wrong(reader, "for_ms", what);
    }
    Some(lasts)
}

fn other_fault(
    reader: &mut Reader<'_>,
    entry: &Entry<'_>,
    kind: &str,
    names: &Names<'_>,
    config: &Config,
) -> Option<Fault> {
    let fields: &[&str] = match kind {
        "junk" => &["network", "to", "rate", "what"],
        "buffer" => &["node", "bytes"],
        "unreachable" => &["node", "network"],
        "pause" => &["node", "in_turn"],
        "crash" => &["node", "reboot"],
        "old_configuration" => &["node"],
        "wrong_configuration" => &["node", "what"],
        "slow" => &["node", "by_ms"],
        "clock" => &["of", "ppm", "ahead_ms"],
        "witness" => &["reference"],
        "device" => &["application", "node", "late"],
        "slow_application" => &["node", "application", "by_ms", "jumps"],
        "switchover" => &["node", "group"],
        "apply" => &["node", "number"],
        "crash_in_change" => &["node", "steps"],
        _ => {
            let known = [&PATH_KINDS[..], &KINDS[..]].concat().join(", ");
            let what = format!("no fault is called {kind:?}; there are {known}");
            entry.wrong(reader, "kind", what);
            return None;
        }
    };
    entry.only(reader, &[&["at_ms", "for_ms", "kind"], fields].concat());
    let mut node = |needed| entry.named(reader, "node", &names.nodes, needed);
    Some(match kind {
        "junk" => junk(reader, entry, names, config)?,
        "buffer" => Fault::Buffer {
            node: node(true)?,
            bytes: entry.whole(reader, "bytes", 0, 1_000_000_000)? as usize,
        },
        "unreachable" => Fault::Unreachable {
            node: node(true)?,
            network: entry.named(reader, "network", &names.networks, true)?,
        },
        "pause" => Fault::Pause {
            node: node(true)?,
            in_turn: entry.truth(reader, "in_turn"),
        },
        "crash" => Fault::Crash {
            node: node(true)?,
            reboot: entry.truth(reader, "reboot"),
        },
        "old_configuration" => Fault::OldConfiguration { node: node(true)? },
        "wrong_configuration" => Fault::WrongConfiguration {
            node: node(true)?,
            what: wrong(reader, entry)?,
        },
        "slow" => Fault::Slow {
            node: node(true)?,
            by: entry.span(reader, "by_ms")?,
        },
        "clock" => Fault::Clock {
            end: names.end(entry.named(reader, "of", &names.ends, true)?),
            ppb: (entry.needed(reader, "ppm", -100_000.0, 100_000.0)? * 1000.0).round() as i64,
            ahead: match entry.item("ahead_ms") {
                Some(_) => entry.span(reader, "ahead_ms")?,
                None => 0,
            },
        },
        "witness" => Fault::Witness {
            reference: entry.named(reader, "reference", &names.references, true)?,
        },
        "device" => {
            let node = node(false);
            if node.is_none() && entry.item("node").is_some() {
                return None;
            }
            Fault::Device {
                application: entry.named(reader, "application", &names.applications, true)?,
                node,
                late: entry.truth(reader, "late"),
            }
        }
        "slow_application" => Fault::SlowApplication {
            node: node(true)?,
            application: entry.named(reader, "application", &names.applications, true)?,
            by: entry.span(reader, "by_ms")?,
            jumps: entry.truth(reader, "jumps"),
        },
        "apply" => Fault::Apply {
            node: node(true)?,
            number: entry.whole(reader, "number", 0, LAST as u64)? as usize,
        },
        "crash_in_change" => Fault::CrashInChange {
            node: node(true)?,
            steps: entry.whole(reader, "steps", 0, 1000)? as u32,
        },
        _ => Fault::Switchover {
            node: node(true)?,
            group: entry.named(reader, "group", &names.groups, true)?,
        },
    })
}

fn wrong(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<Wrong> {
    let names = WRONG.map(|(name, _)| name);
    entry
        .named(reader, "what", &names, true)
        .map(|at| WRONG[at].1)
}

fn junk(
    reader: &mut Reader<'_>,
    entry: &Entry<'_>,
    names: &Names<'_>,
    config: &Config,
) -> Option<Fault> {
    const WHAT: [(&str, Junk); 3] = [
        ("noise", Junk::Noise),
        ("forged", Junk::Forged),
        ("replay", Junk::Replay),
    ];
    let network = entry.named(reader, "network", &names.networks, true)?;
    let to = names.end(entry.named(reader, "to", &names.ends, true)?);
    if !ends_on(config, network).contains(&to) {
        let what = "it is not on this network; no datagram reaches it here".into();
        entry.wrong(reader, "to", what);
    }
    Some(Fault::Junk {
        network,
        to,
        rate: entry.whole(reader, "rate", 1, 10_000_000)?,
        kind: WHAT[entry.named(reader, "what", &WHAT.map(|(name, _)| name), true)?].1,
    })
}
