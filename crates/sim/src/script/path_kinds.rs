//! The faults of a scenario file that concern paths: where they are, and what happens there.

use bumpless_config::Config;

use super::entry::Entry;
use super::places::{Names, ends_on};
use super::scenario::Reader;
use super::words::{CLASSES, FIELDS};
use super::{Bursts, Class, End, Field, PathFault, Paths};

pub(super) const PATH_KINDS: [&str; 11] = [
    "cut",
    "loss",
    "bursts",
    "delay",
    "duplicate",
    "reorder",
    "corrupt",
    "mtu",
    "truncate",
    "bandwidth",
    "flap",
];

/// A network, a sender and a receiver.
type Path = (usize, End, End);

/// Every path that datagrams take: nodes talk to each other and to reference points.
pub(super) fn real_paths(config: &Config) -> impl Iterator<Item = Path> {
    let is_node = |end: &End| matches!(end, End::Node(_));
    (0..config.networks.len()).flat_map(move |network| {
        let ends = ends_on(config, network);
        let ways = ends
            .iter()
            .flat_map(|from| ends.iter().map(move |to| (from, to)));
        let ways = ways.filter(|(from, to)| from != to && (is_node(from) || is_node(to)));
        let paths: Vec<Path> = ways.map(|(from, to)| (network, *from, *to)).collect();
        paths
    })
}

/// Whether `path` is among `paths`.
pub(super) fn is_among(paths: &Paths, (network, from, to): Path) -> bool {
    let fits = |wanted: Option<End>, end| wanted.is_none_or(|wanted| wanted == end);
    let leads = |from, to| fits(paths.from, from) && fits(paths.to, to);
    paths.network.is_none_or(|wanted| wanted == network)
        && (leads(from, to) || paths.both && leads(to, from))
}

/// Refuses an interface that the fault would make faster than it is.
pub(super) fn no_faster(
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

pub(super) fn paths(
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
    if sound && !real_paths(config).any(|path| is_among(&paths, path)) {
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

pub(super) fn path_fault(
    reader: &mut Reader<'_>,
    entry: &Entry<'_>,
    kind: &str,
) -> Option<PathFault> {
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
            PathFault::Bursts(Bursts {
                enter: entry.share(reader, "enter")?,
                leave: entry.share(reader, "leave")?,
                within: entry.share_or(reader, "within", 1.0)?,
                between: entry.share_or(reader, "between", 0.0)?,
            })
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
            allow(&["share", "unnoticed", "of", "field", "bit"]);
            corrupt(reader, entry)?
        }
        "mtu" => {
            allow(&["bytes"]);
            PathFault::Mtu {
                bytes: entry.whole(reader, "bytes", 0, 65_535)? as usize,
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
                bits: (entry.needed(reader, "mbit", 0.001, 1e6)? * 1e6).round() as u64,
            }
        }
        _ => {
            allow(&["period_ms"]);
            PathFault::Flap {
                period: period(reader, entry)?,
            }
        }
    })
}

/// Bits that turn over: one of one field of heartbeats, or any of a class.
fn corrupt(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<PathFault> {
    let share = entry.share(reader, "share")?;
    let unnoticed = entry.truth(reader, "unnoticed");
    let (class, bit) = match (entry.item("field"), entry.item("bit")) {
        (None, None) => (class(reader, entry)?, None),
        _ => (Class::Heartbeats, Some(bit(reader, entry)?)),
    };
    Some(PathFault::Corrupt {
        share,
        unnoticed,
        class,
        bit,
    })
}

fn bit(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<(Field, u8)> {
    if entry.item("of").is_some() {
        let what = "field says already which datagrams: heartbeats";
        entry.wrong(reader, "of", what.into());
    }
    let names = FIELDS.map(|(name, _)| name);
    let field = FIELDS[entry.named(reader, "field", &names, true)?].1;
    let last = field.bits() - 1;
    let bit = entry.whole(reader, "bit", 0, last.into())?;
    Some((field, bit as u8))
}

/// A period that has two halves.
fn period(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<u64> {
    let period = entry.span(reader, "period_ms")?;
    if period < 2 {
        let what = "a period needs time for two halves; give at least 0.000002 (2 ns)";
        entry.wrong(reader, "period_ms", what.into());
    }
    (period >= 2).then_some(period)
}

fn class(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<Class> {
    if entry.item("of").is_none() {
        return Some(Class::All);
    }
    let names = CLASSES.map(|(name, _)| name);
    entry
        .named(reader, "of", &names, true)
        .map(|at| CLASSES[at].1)
}
