//! A fault as the fields of a scenario file: what the reader of `entry` takes.

use std::fmt::Write;

use bumpless_config::Config;

use super::{Class, End, Fault, Field, Junk, PathFault, Paths, Wrong};

/// The fields of `fault`, each as `key = value`.
pub fn words(config: &Config, fault: &Fault) -> Vec<String> {
    let mut fields = Fields {
        config,
        fields: Vec::new(),
    };
    fields.fault(fault);
    fields.fields
}

/// `text` as a basic string of TOML: everything but quotes, backslashes and control characters is itself.
pub(super) fn quoted(text: &str) -> String {
    let mut written = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => written.extend(['\\', c]),
            c if c.is_ascii_control() => {
                let _ = write!(written, "\\u{:04X}", u32::from(c));
            }
            c => written.push(c),
        }
    }
    written.push('"');
    written
}

struct Fields<'a> {
    config: &'a Config,
    fields: Vec<String>,
}

impl Fields<'_> {
    fn plain(&mut self, key: &str, value: impl std::fmt::Display) {
        self.fields.push(format!("{key} = {value}"));
    }

    fn text(&mut self, key: &str, value: &str) {
        self.plain(key, quoted(value));
    }

    fn truth(&mut self, key: &str, value: bool) {
        if value {
            self.plain(key, true);
        }
    }

    fn kind(&mut self, kind: &str) {
        self.text("kind", kind);
    }

    fn ms(&mut self, key: &str, nanos: u64) {
        self.plain(key, nanos as f64 / 1e6);
    }

    fn node(&mut self, node: usize) {
        let config = self.config;
        self.text("node", &config.nodes[node].name);
    }

    fn network(&mut self, network: usize) {
        let config = self.config;
        self.text("network", &config.networks[network].name);
    }

    fn application(&mut self, application: usize) {
        let config = self.config;
        self.text("application", &config.applications[application].name);
    }

    fn end(&mut self, key: &str, end: End) {
        let config = self.config;
        let name = match end {
            End::Node(node) => &config.nodes[node].name,
            End::Reference(reference) => &config.references[reference].name,
        };
        self.text(key, name);
    }

    fn fault(&mut self, fault: &Fault) {
        match *fault {
            Fault::Path { ref paths, fault } => {
                self.path_fault(&fault);
                self.paths(paths);
            }
            Fault::Junk {
                network,
                to,
                rate,
                kind,
            } => {
                self.kind("junk");
                self.network(network);
                self.end("to", to);
                self.plain("rate", rate);
                let what = match kind {
                    Junk::Noise => "noise",
                    Junk::Forged => "forged",
                    Junk::Replay => "replay",
                };
                self.text("what", what);
            }
            Fault::Buffer { node, bytes } => {
                self.kind("buffer");
                self.node(node);
                self.plain("bytes", bytes);
            }
            Fault::Unreachable { node, network } => {
                self.kind("unreachable");
                self.node(node);
                self.network(network);
            }
            _ => self.computer_fault(fault),
        }
    }

    fn computer_fault(&mut self, fault: &Fault) {
        match *fault {
            Fault::Pause { node, in_turn } => {
                self.kind("pause");
                self.node(node);
                self.truth("in_turn", in_turn);
            }
            Fault::Crash { node, reboot } => {
                self.kind("crash");
                self.node(node);
                self.truth("reboot", reboot);
            }
            Fault::Apply { node, number } => {
                self.kind("apply");
                self.node(node);
                self.plain("number", number);
            }
            Fault::CrashInChange { node, steps } => {
                self.kind("crash_in_change");
                self.node(node);
                self.plain("steps", steps);
            }
            Fault::OldConfiguration { node } => {
                self.kind("old_configuration");
                self.node(node);
            }
            Fault::WrongConfiguration { node, what } => {
                self.kind("wrong_configuration");
                self.node(node);
                self.text("what", name_of(&WRONG, what));
            }
            Fault::Slow { node, by } => {
                self.kind("slow");
                self.node(node);
                self.ms("by_ms", by);
            }
            Fault::Clock { end, ppb, ahead } => {
                self.kind("clock");
                self.end("of", end);
                self.plain("ppm", ppb as f64 / 1000.0);
                if ahead > 0 {
                    self.ms("ahead_ms", ahead);
                }
            }
            Fault::Witness { reference } => {
                self.kind("witness");
                self.end("reference", End::Reference(reference));
            }
            Fault::Device {
                application,
                node,
                late,
            } => {
                self.kind("device");
                self.application(application);
                if let Some(node) = node {
                    self.node(node);
                }
                self.truth("late", late);
            }
            Fault::SlowApplication {
                node,
                application,
                by,
                jumps,
            } => {
                self.kind("slow_application");
                self.node(node);
                self.application(application);
                self.ms("by_ms", by);
                self.truth("jumps", jumps);
            }
            Fault::Switchover { node, group } => {
                self.kind("switchover");
                self.node(node);
                let config = self.config;
                self.text("group", &config.groups[group].name);
            }
            Fault::Path { .. }
            | Fault::Junk { .. }
            | Fault::Buffer { .. }
            | Fault::Unreachable { .. } => {}
        }
    }

    fn class(&mut self, class: Class) {
        if class != Class::All {
            self.text("of", name_of(&CLASSES, class));
        }
    }

    fn paths(&mut self, paths: &Paths) {
        if let Some(network) = paths.network {
            self.network(network);
        }
        if let Some(from) = paths.from {
            self.end("from", from);
        }
        if let Some(to) = paths.to {
            self.end("to", to);
        }
        self.truth("both_ways", paths.both);
    }

    fn path_fault(&mut self, fault: &PathFault) {
        match *fault {
            PathFault::Cut => self.kind("cut"),
            PathFault::Loss { share, class } => {
                self.kind("loss");
                self.plain("share", share);
                self.class(class);
            }
            PathFault::Bursts(bursts) => {
                self.kind("bursts");
                self.plain("enter", bursts.enter);
                self.plain("leave", bursts.leave);
                self.plain("within", bursts.within);
                self.plain("between", bursts.between);
            }
            PathFault::Delay { by, jitter } => {
                self.kind("delay");
                self.ms("by_ms", by);
                self.ms("jitter_ms", jitter);
            }
            PathFault::Duplicate { share } => {
                self.kind("duplicate");
                self.plain("share", share);
            }
            PathFault::Reorder { share, by } => {
                self.kind("reorder");
                self.plain("share", share);
                self.ms("by_ms", by);
            }
            PathFault::Corrupt {
                share,
                unnoticed,
                class,
                bit,
            } => {
                self.kind("corrupt");
                self.plain("share", share);
                self.truth("unnoticed", unnoticed);
                match bit {
                    Some((field, bit)) => {
                        self.text("field", name_of(&FIELDS, field));
                        self.plain("bit", bit);
                    }
                    None => self.class(class),
                }
            }
            PathFault::Mtu { bytes } => {
                self.kind("mtu");
                self.plain("bytes", bytes);
            }
            PathFault::Truncate { share } => {
                self.kind("truncate");
                self.plain("share", share);
            }
            PathFault::Bandwidth { bits } => {
                self.kind("bandwidth");
                self.plain("mbit", bits as f64 / 1e6);
            }
            PathFault::Flap { period } => {
                self.kind("flap");
                self.ms("period_ms", period);
            }
        }
    }
}

/// The names of classes.
pub(super) const CLASSES: [(&str, Class); 7] = [
    ("all", Class::All),
    ("first", Class::First),
    ("last", Class::Last),
    ("middle", Class::Middle),
    ("acknowledgements", Class::Acknowledgements),
    ("heartbeats", Class::Heartbeats),
    ("witness", Class::Witness),
];

/// The names of fields.
pub(super) const FIELDS: [(&str, Field); 3] = [
    ("sent_at", Field::SentAt),
    ("lease_echo", Field::LeaseEcho),
    ("epoch", Field::Epoch),
];

/// The names of what is wrong with a configuration.
pub(super) const WRONG: [(&str, Wrong); 4] = [
    ("period", Wrong::Period),
    ("application", Wrong::Application),
    ("references", Wrong::References),
    ("field", Wrong::Field),
];

fn name_of<T: PartialEq>(names: &[(&'static str, T)], wanted: T) -> &'static str {
    let mut fitting = names.iter().filter(|(_, it)| *it == wanted);
    fitting.next().map_or("", |(name, _)| name)
}
