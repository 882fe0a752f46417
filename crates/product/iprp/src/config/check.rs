//! Checks across fields, and the result of them all.

use std::path::PathBuf;

use bumpless_base::Duration;
use bumpless_config::reading::Reader;
use bumpless_iprp::{Ind, MAX_GROUPS, MAX_MONITORED, Monitored, Side, TCP, UDP};

use super::schema::{File, MonitorEntry, NetworkEntry, Way};
use super::{Config, Group, Host, Limits, Monitor, NetworkRule, Rule, Security, Timing};

/// Checks `file`; `None` where anything is wrong, now or before.
pub fn resolve(reader: &mut Reader, file: &File) -> Option<Config> {
    let security = security(reader, file);
    let networks = networks(reader, &file.networks);
    let monitors = monitors(reader, file);
    let groups = groups(reader, file);
    if file.networks.is_empty() && !reader.incomplete {
        let right = "write [[network]] for each network, with ind and interface, prefix or name";
        reader.wrong_on(1, "network".into(), "is missing", right);
    }
    if let (Some(control), Some(data)) = (file.control_port, file.data_port)
        && control == data
    {
        let right = "give each its own port";
        let wrong = format!("is {data}, as control_port");
        reader.wrong(&file.host_place, "data_port", wrong, right);
    }
    if let (Some(every), Some(lifetime)) = (file.advertise_every_ms, file.key_lifetime_s)
        && lifetime * 1000 < 2 * every
    {
        let wrong = format!("is {lifetime} s, and a key is told every {every} ms");
        let right = "let a key last for two advertisements at least";
        reader.wrong(&file.timing_place, "key_lifetime_s", wrong, right);
    }
    if !reader.is_clean() {
        return None;
    }
    Some(Config {
        host: Host {
            control_port: file.control_port?,
            data_port: file.data_port?,
            queue: file.queue?,
            capture: file.capture?,
            socket: file.socket.clone()?.map(PathBuf::from),
        },
        security: security?,
        timing: Timing {
            advertise_every: Duration::from_millis(file.advertise_every_ms?),
            inactivity: Duration::from_millis(file.inactivity_ms?),
            key_lifetime: Duration::from_secs(file.key_lifetime_s?),
        },
        limits: Limits {
            sessions: usize::try_from(file.sessions?).ok()?,
            max_lost: u32::try_from(file.max_lost?).ok()?,
        },
        networks,
        monitors,
        groups,
    })
}

fn security(reader: &mut Reader, file: &File) -> Option<Security> {
    let (keys, certificates) = (file.keys.clone()?, file.certificates.clone()?);
    let peers = file.peers.clone()?;
    let (field, wrong, right) = match (keys, certificates, peers) {
        (Some(_), Some(_), _) => (
            "certificates",
            "stands beside keys",
            "give one of both: certificates, or files with keys",
        ),
        (Some(_), None, Some(_)) => (
            "peers",
            "stands beside keys",
            "leave it out: whoever has the key is let in; with certificates, hosts are let in by their names",
        ),
        (Some(keys), None, None) => {
            return Some(Security::Keys(
                keys.into_iter().map(PathBuf::from).collect(),
            ));
        }
        (None, Some(folder), peers) => {
            let folder = PathBuf::from(folder);
            return Some(Security::Certificates { folder, peers });
        }
        (None, None, _) if reader.incomplete => return None,
        (None, None, _) => (
            "",
            "says nothing of what protects messages between hosts",
            "give certificates = \"FOLDER\" with this host's certificate (`bumpless pki issue HOST.GROUP`), or keys = [\"group.key\"] \
             with a file that all hosts share (`bumpless key new group.key`)",
        ),
    };
    reader.wrong(&file.security_place, field, wrong.to_owned(), right);
    None
}

fn networks(reader: &mut Reader, entries: &[NetworkEntry]) -> Vec<NetworkRule> {
    let mut rules: Vec<NetworkRule> = Vec::new();
    for entry in entries {
        let Some(rule) = one_rule(reader, entry) else {
            continue;
        };
        for other in &rules {
            if let Some(wrong) = overlap(&rule, &other.rule) {
                let wrong = format!("{wrong} (line {})", other.line);
                let right = "let each address be on one network: make one of the rules narrower, or leave it out";
                reader.wrong(&entry.place, key(&rule), wrong, right);
            }
        }
        // A wrong number is reported, and the rule still says what it overlaps.
        let number = entry.ind.and_then(|ind| u8::try_from(ind).ok());
        let ind = number.and_then(Ind::new).or_else(|| Ind::new(0));
        if let Some(ind) = ind {
            let line = entry.place.line;
            rules.push(NetworkRule { ind, rule, line });
        }
    }
    rules
}

fn one_rule(reader: &mut Reader, entry: &NetworkEntry) -> Option<Rule> {
    let interface = entry.interface.clone()?.map(Rule::Interface);
    let prefix = entry.prefix?.map(Rule::Prefix);
    let name = entry.name.clone()?.map(Rule::Name);
    let mut rules = [interface, prefix, name].into_iter().flatten();
    match (rules.next(), rules.next()) {
        (Some(rule), None) => Some(rule),
        (None, _) => {
            let right = "give one of interface, prefix and name";
            reader.wrong(
                &entry.place,
                "",
                "does not say which address is meant",
                right,
            );
            None
        }
        (Some(_), Some(second)) => {
            let right = "give one of interface, prefix and name";
            reader.wrong(&entry.place, key(&second), "is a second rule", right);
            None
        }
    }
}

const fn key(rule: &Rule) -> &'static str {
    match rule {
        Rule::Interface(_) => "interface",
        Rule::Prefix(_) => "prefix",
        Rule::Name(_) => "name",
    }
}

/// How two rules can mean one address; `None`: as far as the file tells, they cannot.
fn overlap(rule: &Rule, other: &Rule) -> Option<String> {
    match (rule, other) {
        (Rule::Interface(a), Rule::Interface(b)) if a == b => {
            Some(format!("is {a:?}, as of another network"))
        }
        (Rule::Prefix(a), Rule::Prefix(b)) if a.overlaps(b) => {
            Some(format!("{a} and {b} of another network overlap"))
        }
        (Rule::Name(a), Rule::Name(b)) if a == b => {
            Some(format!("is {a:?}, as of another network"))
        }
        _ => None,
    }
}

fn monitors(reader: &mut Reader, file: &File) -> Vec<Monitor> {
    let mut all: Vec<Monitor> = Vec::new();
    for entry in &file.monitors {
        let Some(watched) = watched(entry) else {
            continue;
        };
        for other in &all {
            let twice = other
                .watched
                .iter()
                .find(|it| watched.iter().any(|own| meet(own, it)));
            if let Some(twice) = twice {
                let wrong = format!(
                    "is monitored already ({}, line {})",
                    told(twice),
                    other.line
                );
                reader.wrong(
                    &entry.place,
                    "port",
                    wrong,
                    "name each port of a protocol once",
                );
            }
        }
        let own = [
            ("control_port", file.control_port),
            ("data_port", file.data_port),
        ];
        let has_certificates = matches!(file.certificates, Some(Some(_)));
        for (name, port) in own {
            let Some(port) = port else { continue };
            let is_own = |protocol: u8| {
                protocol == UDP || has_certificates && protocol == TCP && name == "control_port"
            };
            let is_in =
                |it: &Monitored| is_own(it.protocol) && (it.first..=it.last).contains(&port);
            if watched.iter().any(is_in) {
                let wrong = format!("has {port}, which is {name} of [host]");
                reader.wrong(
                    &entry.place,
                    "port",
                    wrong,
                    "give iPRP ports that no application has",
                );
            }
        }
        let line = entry.place.line;
        let mode = entry.mode.unwrap_or_default();
        all.push(Monitor {
            watched,
            mode,
            line,
        });
    }
    let count: usize = all.iter().map(|it| it.watched.len()).sum();
    if count > MAX_MONITORED {
        let wrong = format!("are {count} rules, where packets to and from a port are two");
        let right = format!("write ports in a row as one: {MAX_MONITORED} rules at most");
        reader.wrong_on(1, "monitor".into(), wrong, right);
    }
    all
}

fn groups(reader: &mut Reader, file: &File) -> Vec<Group> {
    let shared = file.keys.clone().flatten();
    let mut all: Vec<Group> = Vec::new();
    for entry in &file.groups {
        let line = entry.place.line;
        if let Some(other) = all.iter().find(|it| Some(it.address) == entry.address) {
            let wrong = format!("is {}, as in line {}", other.address, other.line);
            reader.wrong(&entry.place, "address", wrong, "name each group once");
        }
        let keys = match &entry.keys {
            None => continue,
            Some(Some(keys)) => keys,
            Some(None) => match &shared {
                Some(keys) => keys,
                None if reader.incomplete
                    || file.certificates.as_ref().is_none_or(Option::is_none) =>
                {
                    continue;
                }
                None => {
                    let wrong = "is missing, and with certificates there is no key that all hosts of a group have";
                    let right = "give keys = [\"FILE\"] with a file that all hosts of the group have (`bumpless key new FILE`)";
                    reader.wrong(&entry.place, "keys", wrong.to_owned(), right);
                    continue;
                }
            },
        };
        if let Some(address) = entry.address {
            all.push(Group {
                address,
                keys: keys.iter().map(PathBuf::from).collect(),
                line,
            });
        }
    }
    if file.groups.len() > MAX_GROUPS {
        let wrong = format!("are {} groups", file.groups.len());
        let right = format!("name those of this host alone: {MAX_GROUPS} at most");
        reader.wrong_on(1, "group".into(), wrong, right);
    }
    let to_groups = |entry: &MonitorEntry| {
        entry.protocol == Some(UDP) && entry.way.is_some_and(|way| way != Way::From)
    };
    // A host that only sends needs none; one that monitors nothing but TCP has forgotten it.
    if let Some(entry) = file.groups.first()
        && !file.monitors.is_empty()
        && !file.monitors.iter().any(to_groups)
        && reader.is_clean()
    {
        let wrong = "is named, and no [[monitor]] is of packets of udp to a port";
        let right = "add [[monitor]] with protocol = \"udp\" and the port that programs of the group listen at";
        reader.wrong(&entry.place, "", wrong.to_owned(), right);
    }
    all
}

fn watched(entry: &MonitorEntry) -> Option<Vec<Monitored>> {
    let (protocol, (first, last)) = (entry.protocol?, entry.ports?);
    let sides: &[Side] = match entry.way? {
        Way::Both => &[Side::Destination, Side::Source],
        Way::To => &[Side::Destination],
        Way::From => &[Side::Source],
    };
    let one = |&side: &Side| Monitored {
        protocol,
        side,
        first,
        last,
    };
    Some(sides.iter().map(one).collect())
}

fn meet(a: &Monitored, b: &Monitored) -> bool {
    a.protocol == b.protocol && a.side == b.side && a.first <= b.last && b.first <= a.last
}

fn told(it: &Monitored) -> String {
    let protocol = if it.protocol == TCP { "tcp" } else { "udp" };
    match it.first == it.last {
        true => format!("{protocol} {}", it.first),
        false => format!("{protocol} {}-{}", it.first, it.last),
    }
}
