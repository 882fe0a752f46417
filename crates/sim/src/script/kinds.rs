//! The faults of a scenario file, by kind.

use crate::variants::LAST;
use bumpless_config::Config;
use toml_edit::TableLike;

use super::entry::Entry;
use super::scenario::Reader;
use super::{Class, End, Fault, Junk, PathFault, Paths, Timed};

/// The names of a configuration.
struct Names<'a> {
    nodes: Vec<&'a str>,
    ends: Vec<&'a str>,
    networks: Vec<&'a str>,
    references: Vec<&'a str>,
    applications: Vec<&'a str>,
    groups: Vec<&'a str>,
}

impl<'a> Names<'a> {
    fn of(config: &'a Config) -> Self {
        let nodes: Vec<_> = config.nodes.iter().map(|n| n.name.as_str()).collect();
        let references: Vec<_> = config.references.iter().map(|r| r.name.as_str()).collect();
        Self {
            ends: nodes.iter().chain(&references).copied().collect(),
            networks: config.networks.iter().map(|n| n.name.as_str()).collect(),
            applications: config
                .applications
                .iter()
                .map(|a| a.name.as_str())
                .collect(),
            groups: config.groups.iter().map(|g| g.name.as_str()).collect(),
            nodes,
            references,
        }
    }

    fn end(&self, at: usize) -> End {
        match at.checked_sub(self.nodes.len()) {
            Some(reference) => End::Reference(reference),
            None => End::Node(at),
        }
    }
}

const PATH_KINDS: [&str; 10] = [
    "cut",
    "loss",
    "bursts",
    "delay",
    "duplicate",
    "reorder",
    "corrupt",
    "truncate",
    "bandwidth",
    "flap",
];
const KINDS: [&str; 14] = [
    "junk",
    "buffer",
    "unreachable",
    "pause",
    "crash",
    "old_configuration",
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
    let lasts = match entry.item("for_ms") {
        Some(_) => entry.span(reader, "for_ms")?,
        None if fault.is_instant() || fault.restarts() => 0,
        None => {
            entry.wrong(
                reader,
                "for_ms",
                "this kind of fault needs for_ms: how long it lasts".into(),
            );
            return None;
        }
    };
    if fault.is_instant() && lasts > 0 {
        entry.wrong(
            reader,
            "for_ms",
            format!("{kind} happens at one instant; leave for_ms out"),
        );
    }
    let at = at?;
    if at + lasts > time {
        let what = format!(
            "the fault ends at {} ms, the scenario at {} ms",
            (at + lasts) / 1_000_000,
            time / 1_000_000
        );
        entry.wrong(reader, if at > time { "at_ms" } else { "for_ms" }, what);
    }
    Some(Timed {
        at,
        until: at + lasts,
        fault,
    })
}

/// The nodes and reference points on a network.
fn ends_on(config: &Config, network: usize) -> Vec<End> {
    let nodes = config.nodes.iter().enumerate();
    let nodes = nodes.filter(|(_, node)| node.addresses[network].is_some());
    let references = config.references.iter().enumerate();
    let references = references.filter(|(_, it)| usize::from(it.network.0) == network);
    nodes
        .map(|(at, _)| End::Node(at))
        .chain(references.map(|(at, _)| End::Reference(at)))
        .collect()
}

/// Whether datagrams ever take one of `paths`: nodes talk to each other and to reference points.
fn leads_anywhere(config: &Config, paths: &Paths) -> bool {
    let given = |wanted: Option<End>, end: &End| wanted.is_none_or(|wanted| wanted == *end);
    let is_node = |end: &End| matches!(end, End::Node(_));
    let networks = 0..config.networks.len();
    let mut concerned = networks.filter(|&at| paths.network.is_none_or(|wanted| wanted == at));
    concerned.any(|network| {
        let ends = ends_on(config, network);
        let from = ends.iter().filter(|end| given(paths.from, end));
        from.into_iter().any(|from| {
            let mut to = ends.iter().filter(|end| given(paths.to, end));
            to.any(|to| from != to && (is_node(from) || is_node(to)))
        })
    })
}

/// Refuses an interface that the fault would make faster than it is.
fn no_faster(
    reader: &mut Reader<'_>,
    entry: &Entry<'_>,
    config: &Config,
    network: Option<usize>,
    bits: u64,
) {
    let networks = config.networks.iter().enumerate();
    let concerned = networks.filter(|(at, _)| network.is_none_or(|wanted| wanted == *at));
    let slower = |bandwidth: &u64| (1..=bits).contains(bandwidth);
    let slowest = concerned.map(|(_, network)| network.bandwidth);
    if let Some(bandwidth) = slowest.filter(slower).min() {
        let what = format!(
            "the network sends at {} Mbit/s anyway; give less",
            bandwidth as f64 / 1e6
        );
        entry.wrong(reader, "mbit", what);
    }
}

fn paths(
    reader: &mut Reader<'_>,
    entry: &Entry<'_>,
    names: &Names<'_>,
    config: &Config,
) -> Option<Paths> {
    let before = reader.complaints.len();
    let network = entry.named(reader, "network", &names.networks, false);
    let from = entry.named(reader, "from", &names.ends, false);
    let to = entry.named(reader, "to", &names.ends, false);
    if from.is_some() && from == to {
        entry.wrong(
            reader,
            "to",
            "from and to are the same; no path leads there".into(),
        );
    }
    let both = entry.truth(reader, "both_ways");
    let paths = Paths {
        network,
        from: from.map(|at| names.end(at)),
        to: to.map(|at| names.end(at)),
        both,
    };
    let sound = reader.complaints.len() == before && !reader.drawn;
    if sound && !leads_anywhere(config, &paths) {
        let key = if to.is_some() { "to" } else { "from" };
        let what = "no path leads there: witnesses are on one network each, and talk to nodes only";
        entry.wrong(reader, key, what.into());
    }
    (reader.complaints.len() == before).then_some(paths)
}

const WHERE: [&str; 7] = [
    "at_ms",
    "for_ms",
    "kind",
    "network",
    "from",
    "to",
    "both_ways",
];

fn path_fault(reader: &mut Reader<'_>, entry: &Entry<'_>, kind: &str) -> Option<PathFault> {
    let mut allow = |more: &[&str]| {
        let known: Vec<&str> = WHERE.iter().chain(more).copied().collect();
        entry.only(reader, &known);
    };
    Some(match kind {
        "cut" => {
            allow(&[]);
            PathFault::Cut
        }
        "loss" => {
            allow(&["share", "of"]);
            PathFault::Loss {
                share: entry.share(reader, "share")?,
                class: class(reader, entry)?,
            }
        }
        "bursts" => {
            allow(&["enter", "leave", "within", "between"]);
            PathFault::Bursts {
                enter: entry.share(reader, "enter")?,
                leave: entry.share(reader, "leave")?,
                within: entry.share_or(reader, "within", 1.0)?,
                between: entry.share_or(reader, "between", 0.0)?,
            }
        }
        "delay" => {
            allow(&["by_ms", "jitter_ms"]);
            PathFault::Delay {
                by: entry.span(reader, "by_ms")?,
                jitter: match entry.item("jitter_ms") {
                    Some(_) => entry.span(reader, "jitter_ms")?,
                    None => 0,
                },
            }
        }
        "duplicate" => {
            allow(&["share"]);
            PathFault::Duplicate {
                share: entry.share(reader, "share")?,
            }
        }
        "reorder" => {
            allow(&["share", "by_ms"]);
            PathFault::Reorder {
                share: entry.share(reader, "share")?,
                by: entry.span(reader, "by_ms")?,
            }
        }
        "corrupt" => {
            allow(&["share", "unnoticed"]);
            PathFault::Corrupt {
                share: entry.share(reader, "share")?,
                unnoticed: entry.truth(reader, "unnoticed"),
            }
        }
        "truncate" => {
            allow(&["share"]);
            PathFault::Truncate {
                share: entry.share(reader, "share")?,
            }
        }
        "bandwidth" => {
            allow(&["mbit"]);
            PathFault::Bandwidth {
                bits: (entry.needed(reader, "mbit", 0.001, 1e6)? * 1e6) as u64,
            }
        }
        _ => {
            allow(&["period_ms"]);
            PathFault::Flap {
                period: entry.span(reader, "period_ms")?,
            }
        }
    })
}

fn class(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<Class> {
    const CLASSES: [(&str, Class); 7] = [
        ("all", Class::All),
        ("first", Class::First),
        ("last", Class::Last),
        ("middle", Class::Middle),
        ("acknowledgements", Class::Acknowledgements),
        ("heartbeats", Class::Heartbeats),
        ("witness", Class::Witness),
    ];
    if entry.item("of").is_none() {
        return Some(Class::All);
    }
    let names = CLASSES.map(|(name, _)| name);
    entry
        .named(reader, "of", &names, true)
        .map(|at| CLASSES[at].1)
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
        "slow" => Fault::Slow {
            node: node(true)?,
            by: entry.span(reader, "by_ms")?,
        },
        "clock" => Fault::Clock {
            end: names.end(entry.named(reader, "of", &names.ends, true)?),
            ppb: (entry.needed(reader, "ppm", -100_000.0, 100_000.0)? * 1000.0) as i64,
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
