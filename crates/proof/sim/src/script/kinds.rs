//! The faults of a scenario file by kind: one table of what each kind has for fields reads and writes them.

use bumpless_config::Config;
use toml_edit::TableLike;

use super::entry::Entry;
use super::forms::{EndName, Form, Name, SHARE, SPAN, Truth, Word, number, whole};
use super::places::{Names, ends_on, is_among, real_paths};
use super::scenario::Reader;
use super::{Aim, Bursts, Class, End, Fault, Field, Junk, Lie, PathFault, Paths, Timed, Wrong};
use crate::variants::LAST;

const NODE: Name = Name(|names| &names.nodes);
const NETWORK: Name = Name(|names| &names.networks);
const REFERENCE: Name = Name(|names| &names.references);
const APPLICATION: Name = Name(|names| &names.applications);
const GROUP: Name = Name(|names| &names.groups);

const JUNK: Word<Junk> = Word {
    words: &[
        ("noise", Junk::Noise),
        ("forged", Junk::Forged),
        ("replay", Junk::Replay),
        ("redirected", Junk::Redirected),
        ("stripped", Junk::Stripped),
        ("spliced", Junk::Spliced),
        ("downgraded", Junk::Downgraded),
    ],
    otherwise: None,
};

const LIE: Word<Lie> = Word {
    words: &[
        ("grants", Lie::Grants),
        ("old", Lie::Old),
        ("fresh", Lie::Fresh),
        ("repeats", Lie::Repeats),
    ],
    otherwise: None,
};

const AIM: Word<Aim> = Word {
    words: &[
        ("data_port", Aim::DataPort),
        ("closed_port", Aim::ClosedPort),
        ("fragments", Aim::Fragments),
        ("icmp", Aim::Icmp),
        ("resolution", Aim::Resolution),
    ],
    otherwise: None,
};

/// Whether the source is forged.
const SOURCE: Word<bool> = Word {
    words: &[("stranger", false), ("partner", true)],
    otherwise: Some(false),
};

const WRONG: Word<Wrong> = Word {
    words: &[
        ("period", Wrong::Period),
        ("application", Wrong::Application),
        ("references", Wrong::References),
        ("field", Wrong::Field),
    ],
    otherwise: None,
};

const FIELD: Word<Field> = Word {
    words: &[
        ("sent_at", Field::SentAt),
        ("lease_echo", Field::LeaseEcho),
        ("epoch", Field::Epoch),
    ],
    otherwise: None,
};

const CLASS: Word<Class> = Word {
    words: &[
        ("all", Class::All),
        ("first", Class::First),
        ("last", Class::Last),
        ("middle", Class::Middle),
        ("acknowledgements", Class::Acknowledgements),
        ("heartbeats", Class::Heartbeats),
        ("witness", Class::Witness),
    ],
    otherwise: Some(Class::All),
};

/// The bits that turn over: one of one field of heartbeats, or any of a class.
struct Bits;

impl Form<(Class, Option<(Field, u8)>)> for Bits {
    fn read(
        &self,
        entry: &mut Entry<'_, '_>,
        names: &Names<'_>,
        key: &'static str,
    ) -> (Class, Option<(Field, u8)>) {
        if let (None, None) = (entry.item("field"), entry.item("bit")) {
            return (CLASS.read(entry, names, key), None);
        }
        if entry.item(key).is_some() {
            entry.wrong(key, "field says already which datagrams: heartbeats");
        }
        let field = FIELD.read(entry, names, "field");
        let last = u64::from(field.bits() - 1);
        let bit = whole(0, last).read(entry, names, "bit");
        (Class::Heartbeats, Some((field, bit)))
    }

    fn write(
        &self,
        names: &Names<'_>,
        key: &str,
        (class, bit): (Class, Option<(Field, u8)>),
        to: &mut Vec<String>,
    ) {
        match bit {
            None => CLASS.write(names, key, class, to),
            Some((field, bit)) => {
                FIELD.write(names, "field", field, to);
                to.push(format!("bit = {bit}"));
            }
        }
    }
}

/// Makes of a table of kinds the list of their names, what reads and what writes them. Each row has a name, the fault,
/// which is a pattern as well as an expression, and of each field the key and the form.
macro_rules! kinds {
    ($type:ty, $kinds:ident, $read:ident, $write:ident, [$($other:pat)?],
     $($kind:literal [$($fault:tt)*] { $($field:tt: $key:literal $form:expr),* })*) => {
        const $kinds: &[&str] = &[$($kind),*];

        fn $read(kind: &str, entry: &mut Entry<'_, '_>, names: &Names<'_>) -> Option<$type> {
            match kind {
                $($kind => {
                    $(let $field = $form.read(entry, names, $key);)*
                    Some($($fault)*)
                })*
                _ => None,
            }
        }

        fn $write(names: &Names<'_>, fault: $type, to: &mut Vec<String>) {
            match fault {
                $($($fault)* => {
                    to.push(format!("kind = \"{}\"", $kind));
                    $($form.write(names, $key, $field, to);)*
                })*
                $($other => {})?
            }
        }
    };
}

kinds! { PathFault, PATH_KINDS, read_path_fault, write_path_fault, [],
    "cut" [PathFault::Cut] {}
    "hold" [PathFault::Hold] {}
    "loss" [PathFault::Loss { share, class }] { share: "share" SHARE, class: "of" CLASS }
    "bursts" [PathFault::Bursts(Bursts { enter, leave, within, between })] {
        enter: "enter" SHARE, leave: "leave" SHARE, within: "within" SHARE.or(1.0), between: "between" SHARE.or(0.0)
    }
    "delay" [PathFault::Delay { by, jitter }] { by: "by_ms" SPAN, jitter: "jitter_ms" SPAN.or(0.0) }
    "duplicate" [PathFault::Duplicate { share }] { share: "share" SHARE }
    "reorder" [PathFault::Reorder { share, by }] { share: "share" SHARE, by: "by_ms" SPAN }
    "corrupt" [PathFault::Corrupt { share, unnoticed, class, bit }] {
        share: "share" SHARE, unnoticed: "unnoticed" Truth, (class, bit): "of" Bits
    }
    "mtu" [PathFault::Mtu { bytes }] { bytes: "bytes" whole(0, 65_535) }
    "truncate" [PathFault::Truncate { share }] { share: "share" SHARE }
    "bandwidth" [PathFault::Bandwidth { bits }] { bits: "mbit" number(0.001, 1e6).scaled(1e6) }
    "flap" [PathFault::Flap { period }] { period: "period_ms" SPAN }
}

kinds! { Fault, KINDS, read_fault, write_fault, [Fault::Path { .. }],
    "junk" [Fault::Junk { network, to: end, rate, kind }] {
        network: "network" NETWORK, end: "to" EndName, rate: "rate" whole(1, 10_000_000), kind: "what" JUNK
    }
    "flood" [Fault::Flood { network, node, aim, forged, rate, bytes }] {
        network: "network" NETWORK, node: "to" NODE, aim: "at" AIM, forged: "from" SOURCE,
        rate: "rate" whole(1, 10_000_000), bytes: "bytes" whole(0, 1400).or(18.0)
    }
    "buffer" [Fault::Buffer { node, bytes }] { node: "node" NODE, bytes: "bytes" whole(0, 1_000_000_000) }
    "unreachable" [Fault::Unreachable { node, network }] { node: "node" NODE, network: "network" NETWORK }
    "pause" [Fault::Pause { node, in_turn }] { node: "node" NODE, in_turn: "in_turn" Truth }
    "crash" [Fault::Crash { node, reboot }] { node: "node" NODE, reboot: "reboot" Truth }
    "old_configuration" [Fault::OldConfiguration { node }] { node: "node" NODE }
    "wrong_configuration" [Fault::WrongConfiguration { node, what }] { node: "node" NODE, what: "what" WRONG }
    "slow" [Fault::Slow { node, by }] { node: "node" NODE, by: "by_ms" SPAN }
    "clock" [Fault::Clock { end, ppb, ahead }] {
        end: "of" EndName, ppb: "ppm" number(-100_000.0, 100_000.0).scaled(1e3), ahead: "ahead_ms" SPAN.or(0.0)
    }
    "witness" [Fault::Witness { reference }] { reference: "reference" REFERENCE }
    "liar" [Fault::Liar { reference, lie }] { reference: "reference" REFERENCE, lie: "says" LIE }
    "device" [Fault::Device { application, node, late }] {
        application: "application" APPLICATION, node: "node" NODE, late: "late" Truth
    }
    "slow_application" [Fault::SlowApplication { node, application, by, jumps }] {
        node: "node" NODE, application: "application" APPLICATION, by: "by_ms" SPAN, jumps: "jumps" Truth
    }
    "program" [Fault::Program { node, application, starved }] {
        node: "node" NODE, application: "application" APPLICATION, starved: "starved" Truth
    }
    "keys" [Fault::Keys { every }] { every: "every_ms" SPAN }
    "switchover" [Fault::Switchover { node, group }] { node: "node" NODE, group: "group" GROUP }
    "apply" [Fault::Apply { node, number }] { node: "node" NODE, number: "number" whole(0, LAST as u64) }
    "crash_in_change" [Fault::CrashInChange { node, steps }] { node: "node" NODE, steps: "steps" whole(0, 1000) }
}

/// The fields of `fault`, each as `key = value`.
pub fn words(config: &Config, fault: &Fault) -> Vec<String> {
    let names = &Names::of(config);
    let mut words = Vec::new();
    write_fault(names, *fault, &mut words);
    if let Fault::Path { paths, fault } = *fault {
        write_path_fault(names, fault, &mut words);
        NETWORK.write(names, "network", paths.network, &mut words);
        EndName.write(names, "from", paths.from, &mut words);
        EndName.write(names, "to", paths.to, &mut words);
        Truth.write(names, "both_ways", paths.both, &mut words);
    }
    words
}

fn read_paths(entry: &mut Entry<'_, '_>, names: &Names<'_>) -> Paths {
    Paths {
        network: NETWORK.read(entry, names, "network"),
        from: EndName.read(entry, names, "from"),
        to: EndName.read(entry, names, "to"),
        both: Truth.read(entry, names, "both_ways"),
    }
}

/// The fault that a `[[fault]]` table describes.
pub(super) fn fault(
    reader: &mut Reader<'_>,
    table: &dyn TableLike,
    line: usize,
    config: &Config,
    time: u64,
) -> Option<Timed> {
    let names = &Names::of(config);
    let before = reader.complaints.len();
    let entry = &mut Entry::new(reader, table, line);
    let at: u64 = SPAN.read(entry, names, "at_ms");
    let timed = entry.reader.complaints.len() == before;
    // Taken when the kind is known.
    entry.item("for_ms");
    let Some(kind) = entry.text("kind") else {
        entry.wrong("kind", "a fault needs a kind");
        return None;
    };
    let before = entry.reader.complaints.len();
    let fault = match read_path_fault(&kind, entry, names) {
        Some(fault) => Some(Fault::Path {
            paths: read_paths(entry, names),
            fault,
        }),
        None => read_fault(&kind, entry, names),
    };
    let Some(fault) = fault else {
        let known = [PATH_KINDS, KINDS].concat().join(", ");
        entry.wrong(
            "kind",
            format!("no fault is called {kind:?}; there are {known}"),
        );
        return None;
    };
    let sound = entry.reader.complaints.len() == before;
    entry.nothing_else();
    if sound {
        make_sense(entry, config, &fault);
    }
    let lasts = duration(entry, names, &kind, &fault)?;
    if timed && at + lasts > time {
        let what = format!(
            "the fault ends at {} ms, the scenario at {} ms",
            (at + lasts) as f64 / 1e6,
            time as f64 / 1e6
        );
        entry.wrong(if at > time { "at_ms" } else { "for_ms" }, what);
    }
    let until = at + lasts;
    (sound && timed).then_some(Timed { at, until, fault })
}

/// How long `fault` lasts, nanoseconds. One that does not end by itself, and whose end starts nothing
/// again, must last for a while: the world ends nothing that has not lasted.
fn duration(
    entry: &mut Entry<'_, '_>,
    names: &Names<'_>,
    kind: &str,
    fault: &Fault,
) -> Option<u64> {
    let ends_at_once = fault.is_instant() || fault.restarts();
    if entry.item("for_ms").is_none() {
        if !ends_at_once {
            entry.wrong(
                "for_ms",
                "this kind of fault needs for_ms: how long it lasts",
            );
        }
        return ends_at_once.then_some(0);
    }
    let before = entry.reader.complaints.len();
    let lasts: u64 = SPAN.read(entry, names, "for_ms");
    if entry.reader.complaints.len() > before {
        return None;
    }
    if lasts == 0 && !ends_at_once {
        let what = format!("{kind} must last for a while; give at least 0.000001 (1 ns)");
        entry.wrong("for_ms", what);
        return None;
    }
    if fault.is_instant() && lasts > 0 {
        entry.wrong(
            "for_ms",
            format!("{kind} happens at one instant; leave for_ms out"),
        );
    }
    Some(lasts)
}

/// Notes what no single field has wrong.
fn make_sense(entry: &mut Entry<'_, '_>, config: &Config, fault: &Fault) {
    match *fault {
        Fault::Junk { network, to, .. } if !ends_on(config, network).contains(&to) => {
            entry.wrong(
                "to",
                "it is not on this network; no datagram reaches it here",
            );
        }
        Fault::Flood { network, node, .. }
            if !ends_on(config, network).contains(&End::Node(node)) =>
        {
            entry.wrong("to", "it is not on this network; no packet reaches it here");
        }
        Fault::Keys { every: 0 } => {
            entry.wrong(
                "every_ms",
                "a key must last for a while; give at least 0.000001 (1 ns)",
            );
        }
        Fault::Path { paths, fault } => {
            lead_somewhere(entry, config, &paths);
            match fault {
                PathFault::Bandwidth { bits } => no_faster(entry, config, paths.network, bits),
                PathFault::Flap { period: 0..2 } => entry.wrong(
                    "period_ms",
                    "a period needs time for two halves; give at least 0.000002 (2 ns)",
                ),
                _ => {}
            }
        }
        _ => {}
    }
}

fn lead_somewhere(entry: &mut Entry<'_, '_>, config: &Config, paths: &Paths) {
    let drawn = entry.reader.drawn;
    if paths.from.is_some() && paths.from == paths.to {
        entry.wrong("to", "from and to are the same; no path leads there");
    } else if !drawn && !real_paths(config).any(|path| is_among(paths, path)) {
        let key = if paths.to.is_some() { "to" } else { "from" };
        let what = "no path leads there: witnesses are on one network each, and talk to nodes only";
        entry.wrong(key, what);
    }
}

/// Refuses an interface that the fault would make faster than it is.
fn no_faster(entry: &mut Entry<'_, '_>, config: &Config, network: Option<usize>, bits: u64) {
    let networks = config.networks.iter().enumerate();
    let concerned = networks.filter(|(at, _)| network.is_none_or(|wanted| wanted == *at));
    let slower = |bandwidth: &u64| (1..=bits).contains(bandwidth);
    let slowest = concerned.map(|(_, network)| network.bandwidth);
    if let Some(bandwidth) = slowest.filter(slower).min().filter(|_| !entry.reader.drawn) {
        let mbit = bandwidth as f64 / 1e6;
        let what = format!("the network sends at {mbit} Mbit/s anyway; give less");
        entry.wrong("mbit", what);
    }
}
