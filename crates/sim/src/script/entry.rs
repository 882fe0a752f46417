//! One table of a scenario file: its fields, taken one by one, each checked.

use bumpless_config::Config;
use toml_edit::{Item, TableLike};

use super::scenario::Reader;
use super::{Class, End, Fault, Junk, PathFault, Paths, Timed};

const MS: f64 = 1e6;
/// Longest span in a scenario, milliseconds.
const LONGEST: f64 = 1e10;

/// A table while its fields are taken.
pub(super) struct Entry<'a> {
    table: &'a dyn TableLike,
    line: usize,
}

impl<'a> Entry<'a> {
    pub(super) fn new(table: &'a dyn TableLike, line: usize) -> Self {
        Self { table, line }
    }

    /// The line of `key`, or of the table without it.
    pub(super) fn line_of(&self, reader: &Reader<'_>, key: &str) -> usize {
        self.table
            .get(key)
            .map_or(self.line, |item| reader.line(item))
    }

    fn wrong(&self, reader: &mut Reader<'_>, key: &str, what: String) {
        let line = self.line_of(reader, key);
        reader.wrong(line, what);
    }

    /// Refuses fields that are not among `known`.
    pub(super) fn only(&self, reader: &mut Reader<'_>, known: &[&str]) {
        for (key, item) in self.table.iter() {
            if !known.contains(&key) {
                let line = reader.line(item);
                let what = format!(
                    "there is no field {key:?} here; there are {}",
                    known.join(", ")
                );
                reader.wrong(line, what);
            }
        }
    }

    fn item(&self, key: &str) -> Option<&'a Item> {
        self.table.get(key)
    }

    pub(super) fn text(&self, reader: &mut Reader<'_>, key: &str) -> Option<String> {
        let item = self.item(key)?;
        let text = item.as_str().map(str::to_owned);
        if text.is_none() {
            self.wrong(reader, key, format!("{key} must be a text in quotes"));
        }
        text
    }

    pub(super) fn truth(&self, reader: &mut Reader<'_>, key: &str) -> bool {
        let Some(item) = self.item(key) else {
            return false;
        };
        item.as_bool().unwrap_or_else(|| {
            self.wrong(reader, key, format!("{key} must be true or false"));
            false
        })
    }

    /// A number from `least` to `most`, if the field is there.
    pub(super) fn number(
        &self,
        reader: &mut Reader<'_>,
        key: &str,
        least: f64,
        most: f64,
    ) -> Option<f64> {
        let item = self.item(key)?;
        let number = item
            .as_float()
            .or_else(|| item.as_integer().map(|number| number as f64));
        let fits = number.filter(|number| (least..=most).contains(number));
        if fits.is_none() {
            let given = number.map_or(String::new(), |number| format!(", not {number}"));
            let what = format!("{key} must be a number from {least} to {most}{given}");
            self.wrong(reader, key, what);
        }
        fits
    }

    /// As [`number`](Self::number), of a field that must be there.
    fn needed(&self, reader: &mut Reader<'_>, key: &str, least: f64, most: f64) -> Option<f64> {
        if self.item(key).is_none() {
            self.wrong(reader, key, format!("this kind of fault needs {key}"));
        }
        self.number(reader, key, least, most)
    }

    fn share(&self, reader: &mut Reader<'_>, key: &str) -> Option<f64> {
        self.needed(reader, key, 0.0, 1.0)
    }

    /// A span in milliseconds, in nanoseconds.
    fn span(&self, reader: &mut Reader<'_>, key: &str) -> Option<u64> {
        self.needed(reader, key, 0.0, LONGEST)
            .map(|ms| (ms * MS) as u64)
    }

    /// The position of the thing that `key` names.
    fn named(
        &self,
        reader: &mut Reader<'_>,
        key: &str,
        names: &[&str],
        needed: bool,
    ) -> Option<usize> {
        if self.item(key).is_none() {
            if needed {
                let what = format!(
                    "this kind of fault needs {key}: one of {}",
                    names.join(", ")
                );
                self.wrong(reader, key, what);
            }
            return None;
        }
        let name = self.text(reader, key)?;
        let at = names.iter().position(|known| *known == name);
        if at.is_none() {
            let what = format!(
                "no {key} is called {name:?}; there are {}",
                names.join(", ")
            );
            self.wrong(reader, key, what);
        }
        at
    }
}

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
const KINDS: [&str; 11] = [
    "junk",
    "buffer",
    "unreachable",
    "pause",
    "crash",
    "slow",
    "clock",
    "witness",
    "device",
    "slow_application",
    "switchover",
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
        let paths = paths(reader, &entry, &names);
        let fault = path_fault(reader, &entry, &kind);
        paths
            .zip(fault)
            .map(|(paths, fault)| Fault::Path { paths, fault })
    } else {
        other_fault(reader, &entry, &kind, &names)
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

fn paths(reader: &mut Reader<'_>, entry: &Entry<'_>, names: &Names<'_>) -> Option<Paths> {
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
    (reader.complaints.len() == before).then(|| Paths {
        network,
        from: from.map(|at| names.end(at)),
        to: to.map(|at| names.end(at)),
        both,
    })
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
            allow(&["enter", "leave"]);
            PathFault::Bursts {
                enter: entry.share(reader, "enter")?,
                leave: entry.share(reader, "leave")?,
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
) -> Option<Fault> {
    let fields: &[&str] = match kind {
        "junk" => &["network", "node", "rate", "what"],
        "buffer" => &["node", "bytes"],
        "unreachable" => &["node", "network"],
        "pause" => &["node", "in_turn"],
        "crash" => &["node", "reboot"],
        "slow" => &["node", "by_ms"],
        "clock" => &["of", "ppm"],
        "witness" => &["reference"],
        "device" => &["application", "node", "late"],
        "slow_application" => &["node", "application", "by_ms"],
        "switchover" => &["node", "group"],
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
        "junk" => junk(reader, entry, names)?,
        "buffer" => Fault::Buffer {
            node: node(true)?,
            bytes: entry.needed(reader, "bytes", 0.0, 1e9)? as usize,
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
        "slow" => Fault::Slow {
            node: node(true)?,
            by: entry.span(reader, "by_ms")?,
        },
        "clock" => Fault::Clock {
            end: names.end(entry.named(reader, "of", &names.ends, true)?),
            ppb: (entry.needed(reader, "ppm", -100_000.0, 100_000.0)? * 1000.0) as i64,
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
        },
        _ => Fault::Switchover {
            node: node(true)?,
            group: entry.named(reader, "group", &names.groups, true)?,
        },
    })
}

fn junk(reader: &mut Reader<'_>, entry: &Entry<'_>, names: &Names<'_>) -> Option<Fault> {
    const WHAT: [(&str, Junk); 3] = [
        ("noise", Junk::Noise),
        ("forged", Junk::Forged),
        ("replay", Junk::Replay),
    ];
    Some(Fault::Junk {
        network: entry.named(reader, "network", &names.networks, true)?,
        node: entry.named(reader, "node", &names.nodes, true)?,
        rate: entry.needed(reader, "rate", 1.0, 1e7)? as u64,
        kind: WHAT[entry.named(reader, "what", &WHAT.map(|(name, _)| name), true)?].1,
    })
}
