//! What a network takes that this machine may lack: said all at once, before anything is made.

use std::fs;
use std::process::Command;

use bumpless_capture::netlink::Message;
use bumpless_net_linux::capabilities::{Capability, Effective};
use bumpless_net_linux::open_files;

use super::{impairment, link, namespace, ospf};
use crate::address::Pool;
use crate::topology::Topology;

/// What the kernel takes for a node with its cables and routes, bytes. Measured, with a margin.
const NODE_BYTES: u64 = 700 << 10;
/// What a routing daemon takes, bytes. Measured, with a margin.
const DAEMON_BYTES: u64 = 3 << 20;
/// What is left for everything else, bytes.
const SPARE_BYTES: u64 = 64 << 20;
/// Files that the process of a network has open for a node: its namespace, a socket in it, the queue of a host.
const NODE_FILES: u64 = 3;
const SPARE_FILES: u64 = 64;
const RIGHTS: [(Capability, &str); 2] = [
    (Capability::NetAdmin, "cables and routes"),
    (Capability::SysAdmin, "network namespaces"),
];

/// Everything that keeps this machine from having `topology`; none if it can.
pub fn lacking(topology: &Topology) -> Vec<String> {
    let nodes = topology.nodes().len() as u64;
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let mut lacking = rights(Effective::of_this_thread());
    if lacking.is_empty() {
        lacking.extend(kernel(topology));
    }
    lacking.extend(memory(nodes, &read("/proc/meminfo")));
    lacking.extend(namespaces(
        nodes,
        &read("/proc/sys/user/max_net_namespaces"),
    ));
    if let Err(few) = open_files::ensure(nodes * NODE_FILES + SPARE_FILES) {
        lacking.push(few.to_string());
    }
    lacking
}

/// What keeps this machine from having routes over several links at once.
pub fn lacking_for_equal_cost() -> Option<String> {
    let is_there = fs::exists("/proc/sys/net/ipv4/fib_multipath_hash_policy").unwrap_or(false);
    (!is_there).then(|| {
        "the kernel lacks routes over several links (CONFIG_IP_ROUTE_MULTIPATH): --routing fixed takes the first".to_owned()
    })
}

/// What keeps this machine from having a routing daemon on each router besides.
pub fn lacking_for_daemons(topology: &Topology, pool: Pool) -> Vec<String> {
    let routers = topology.nodes().iter().filter(|node| node.kind.forwards());
    let routers = routers.count() as u64;
    let mut lacking = Vec::new();
    if pool.is_v6() {
        lacking.push(
            "routing daemons are told of IPv4: leave --pool out, or give one of IPv4".to_owned(),
        );
    }
    lacking.extend(daemon());
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let all = topology.nodes().len() as u64 * NODE_BYTES + routers * DAEMON_BYTES;
    if available(&meminfo).is_some_and(|available| all > available) {
        lacking.push(format!(
            "{routers} routing daemons and the network take some {} MiB of memory; fewer --backbone-pairs make them less",
            all >> 20
        ));
    }
    lacking
}

/// What is wrong with the program that is the routing daemon.
fn daemon() -> Option<String> {
    let (name, install) = (ospf::PROGRAM, "install BIRD 2 (`apt-get install bird2`)");
    let Ok(said) = Command::new(name).arg("--version").output() else {
        return Some(format!("the program {name} is missing: {install}"));
    };
    let said = [said.stdout, said.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    match ospf::version(&said) {
        Some(2..) => None,
        _ => Some(format!(
            "the program {name} is none of BIRD 2, it says {:?} of its version: {install}",
            said.trim()
        )),
    }
}

/// Memory that programs can have, bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

fn rights(effective: Effective) -> Vec<String> {
    let missing = effective.lacking(&RIGHTS);
    let names: Vec<_> = missing.iter().map(|it| it.name).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let names = names.join(" and ");
    vec![format!(
        "the right to make network namespaces is missing ({names}): run as root"
    )]
}

/// Tries a namespace with a cable in it, and with what impaired links take, on a thread of its own.
fn kernel(topology: &Topology) -> Vec<String> {
    let tried = namespace::apart(|| {
        let namespace = namespace::begin()
            .map_err(|error| format!("network namespaces ({error}): CONFIG_NET_NS"));
        let end = |place| link::End {
            place,
            hardware: link::hardware(0, place),
        };
        let made = namespace.and_then(|namespace| {
            let fd = std::os::fd::AsRawFd::as_raw_fd(&namespace);
            let cable = link::cable(Message::new(), end(0), end(1), fd);
            namespace::socket()
                .and_then(|socket| socket.transact(cable.bytes()))
                .map_err(|error| format!("veth cables ({error}): CONFIG_VETH, or the module veth"))
        });
        Ok(match made {
            Ok(()) => impairment::lacking_for(topology, link::number(0)),
            Err(what) => vec![what],
        })
    });
    let lacking = tried.unwrap_or_else(|error| vec![error.to_string()]);
    let told = lacking
        .iter()
        .map(|what| format!("the kernel lacks {what}"));
    told.collect()
}

fn memory(nodes: u64, meminfo: &str) -> Option<String> {
    let (available, needed) = (available(meminfo)?, nodes * NODE_BYTES + SPARE_BYTES);
    let fit = available.saturating_sub(SPARE_BYTES) / NODE_BYTES;
    (needed > available).then(|| {
        format!(
            "the network takes some {} MiB of memory and {} MiB are available: {fit} nodes would fit, this one has {nodes} \
             (fewer --backbone-pairs make it smaller)",
            needed >> 20,
            available >> 20
        )
    })
}

fn namespaces(nodes: u64, limit: &str) -> Option<String> {
    let limit: u64 = limit.trim().parse().ok()?;
    (nodes > limit).then(|| {
        format!(
            "{nodes} network namespaces are needed and {limit} are permitted: raise it \
             (`sysctl user.max_net_namespaces={nodes}`)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_what_would_fit() {
        assert!(rights(Effective::read("CapEff:\t000001ffffffffff\n")).is_empty());
        let none = rights(Effective::read("CapEff:\t0000000000000000\n"));
        assert!(
            none[0].contains("CAP_NET_ADMIN and CAP_SYS_ADMIN"),
            "{none:?}"
        );
        assert!(none[0].contains("root"), "{none:?}");
        let small = memory(602, "MemTotal: 9 kB\nMemAvailable:  204800 kB\n").unwrap();
        assert!(small.contains("198 nodes would fit"), "{small}");
        assert_eq!(memory(602, "MemAvailable: 2048000 kB\n"), None);
        assert_eq!(memory(602, ""), None);
        let few = namespaces(602, "100\n").unwrap();
        assert!(few.contains("user.max_net_namespaces=602"), "{few}");
        assert_eq!(namespaces(602, "96000\n"), None);
    }
}
