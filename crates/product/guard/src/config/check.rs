//! Checks across fields, and the result of them all.

use std::collections::HashMap;
use std::path::PathBuf;

use bumpless_base::Duration;
use bumpless_config::Registration;
use bumpless_config::reading::Reader;
use bumpless_guard::{Match, Rate, Setup};
use bumpless_reception::{NamedFlow, Rest, in_words};

use super::schema::{File, FlowEntry, Side};
use super::{Config, Host};

/// Most patterns of a file: each port of a flow is one, with each of its senders.
const PATTERNS_MAX: usize = 65_536;

/// Checks `file`; `None` where anything is wrong, now or before.
pub fn resolve(reader: &mut Reader, file: &File) -> Option<Config> {
    let flows = flows(reader, &file.flows);
    if !reader.is_clean() {
        return None;
    }
    let [resolution, icmp, fragments, unregistered, unknown] = file
        .rest
        .map(|budget| budget.and_then(|it| u32::try_from(it).ok()));
    let config = Config {
        host: Host {
            interfaces: file.interfaces.clone()?,
            socket: file.socket.clone()?.map(PathBuf::from),
            processor_percent: file.processor_percent?,
            packet_ns: file.packet_ns?,
            dropped_ns: file.dropped_ns?,
            ring: file.ring?,
        },
        rest: Rest {
            resolution: resolution?,
            icmp: icmp?,
            fragments: fragments?,
            unregistered: unregistered?,
            unknown: unknown?,
        },
        flows,
        registration: registration(reader, file)?,
    };
    let (load, share) = (config.reserved_percent(), config.host.processor_percent);
    if load > share as f64 {
        let registered = match &config.registration {
            Some(it) => format!(
                "; with {} % for registered sockets that is {load:.0} %",
                it.processor_percent
            ),
            None => String::new(),
        };
        let wrong = format!(
            "is {share}, and all budgets together let in {} packets a second, which take {:.0} % of a processor at {} ns each{registered}",
            config.cost().budgets_per_s,
            config.cost().budgets_percent(),
            config.host.packet_ns
        );
        let right = "lower capacities, guard fewer interfaces, or permit a larger share";
        reader.wrong(&file.guard, "processor_percent", wrong, right);
        return None;
    }
    Some(config)
}

/// What programs may register; the outer `None`: it is wrong.
fn registration(reader: &mut Reader, file: &File) -> Option<Option<Registration>> {
    let asked = &file.registration;
    let Some(group) = asked.group.clone()? else {
        return Some(None);
    };
    let flows = usize::try_from(asked.flows?).ok()?;
    if file.flows.len() + flows > Setup::MAX_FLOWS {
        let wrong = format!(
            "is {flows}, and the file has {} flows besides",
            file.flows.len()
        );
        let right = format!("{} flows at most, all together", Setup::MAX_FLOWS);
        reader.wrong(&asked.place, "flows", wrong, right);
        return None;
    }
    Some(Some(Registration {
        group,
        socket: asked.socket.clone()?.map(PathBuf::from),
        flows,
        processor_percent: asked.processor_percent?,
        priority_max: u8::try_from(asked.priority_max?).ok()?,
        burst_max: { asked.burst_max? }.map(u32::try_from).transpose().ok()?,
    }))
}

fn flows(reader: &mut Reader, entries: &[FlowEntry]) -> Vec<NamedFlow> {
    let mut flows: Vec<NamedFlow> = Vec::new();
    let mut names = HashMap::new();
    let mut claimed: HashMap<Match, usize> = HashMap::new();
    for entry in entries {
        let earlier = entry.name.as_ref().and_then(|name| {
            let line = names.insert(name.clone(), entry.place.line)?;
            Some((name, line))
        });
        if let Some((name, line)) = earlier {
            let wrong = format!("is {name:?}, as of the flow on line {line}");
            reader.wrong(&entry.place, "name", wrong, "give each flow its own name");
        }
        let Some(matches) = patterns(reader, entry) else {
            continue;
        };
        if claimed.len() + matches.len() > PATTERNS_MAX {
            let wrong = format!("brings the file to more than {PATTERNS_MAX} ports and senders");
            let right = "name fewer ports, or leave `from` out where there are many";
            reader.wrong(&entry.place, "port", wrong, right);
            continue;
        }
        overlaps(reader, entry, &matches, &mut claimed);
        if let Some(flow) = named(entry, matches) {
            flows.push(flow);
        }
    }
    if entries.len() > Setup::MAX_FLOWS {
        let wrong = format!("stands there {} times", entries.len());
        let right = format!(
            "{} flows at most: join those with the same terms",
            Setup::MAX_FLOWS
        );
        reader.wrong_on(1, "flow".into(), wrong, right);
    }
    flows
}

fn named(entry: &FlowEntry, matches: Vec<Match>) -> Option<NamedFlow> {
    Some(NamedFlow {
        name: entry.name.clone()?,
        matches,
        rate: Rate {
            capacity: u32::try_from(entry.capacity?).ok()?,
            period: Duration::from_millis(entry.period_ms?),
        },
    })
}

/// Tells each earlier flow with which this one overlaps, once.
fn overlaps(
    reader: &mut Reader,
    entry: &FlowEntry,
    matches: &[Match],
    claimed: &mut HashMap<Match, usize>,
) {
    let mut told = Vec::new();
    for &pattern in matches {
        match claimed.get(&pattern) {
            Some(&line) if !told.contains(&line) => {
                told.push(line);
                let wrong = format!("has {}, as the flow on line {line}", in_words(&pattern));
                let right = "let each packet belong to one flow: name the port in one of them, or tell them apart by `from`";
                reader.wrong(&entry.place, "port", wrong, right);
            }
            Some(_) => {}
            None => {
                claimed.insert(pattern, entry.place.line);
            }
        }
    }
}

fn patterns(reader: &mut Reader, entry: &FlowEntry) -> Option<Vec<Match>> {
    let (transport, (first, last)) = (entry.protocol?, entry.ports?);
    let (side, from) = (entry.side?, entry.from.as_ref()?);
    let ports = first..=last;
    match (side, from) {
        (Side::Here, None) => Some(ports.map(|port| Match::Port(transport, port)).collect()),
        (Side::There, None) => {
            let wrong = "is missing, and the port is that of senders";
            let right = "name the servers whose answers these are, such as from = [\"10.0.0.30\"]";
            reader.wrong(&entry.place, "from", wrong, right);
            None
        }
        (side, Some(from)) => {
            let count = ports.len() * from.len();
            if count > PATTERNS_MAX {
                let wrong = format!("with `from` makes {count} pairs");
                let right = format!("{PATTERNS_MAX} at most");
                reader.wrong(&entry.place, "port", wrong, right);
                return None;
            }
            let one = |port| {
                from.iter().map(move |&address| match side {
                    Side::Here => Match::PortFrom(transport, port, address),
                    Side::There => Match::Answers(transport, address, port),
                })
            };
            Some(ports.flat_map(one).collect())
        }
    }
}
