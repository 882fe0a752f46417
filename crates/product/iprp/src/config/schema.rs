//! Every field of the file, documented once.

use std::net::IpAddr;

use bumpless_config::reading::{
    Choice, Examples, FieldInfo, InterfaceName, Place, PortRange, Presence, Reader, SectionInfo,
    TableReader, Text, Times, Whole, document, many, once, unknown_sections,
};
use bumpless_iprp::{Mode, TCP, UDP};

use super::Capture;
use super::prefix::Prefix;
use super::shapes::{AddressPrefix, GroupAddress, HOSTS, NamePattern, PATHS};

const PORT: Whole = Whole {
    min: 1,
    max: 65_535,
};
const SOCKET: Text = Text {
    what: "a path",
    max: 100,
};
const EVERY: Whole = Whole {
    min: 50,
    max: 3_600_000,
};
const LIFETIME: Whole = Whole {
    min: 1,
    max: 2_592_000,
};
const SESSIONS: Whole = Whole {
    min: 1,
    max: 10_000,
};
const LOST: Whole = Whole {
    min: 64,
    max: 65_536,
};
const IND: Whole = Whole { min: 0, max: 15 };
const PROTOCOLS: Choice<u8> = Choice(&[("udp", UDP), ("tcp", TCP)]);
const MODES: Choice<Mode> = Choice(&[("redundant", Mode::Redundant), ("standby", Mode::Standby)]);
const CAPTURES: Choice<Capture> = Choice(&[("queue", Capture::Queue), ("ring", Capture::Ring)]);
const WAYS: Choice<Way> = Choice(&[("both", Way::Both), ("to", Way::To), ("from", Way::From)]);

/// Which packets of a monitored port are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Those to it and those from it.
    Both,
    /// Those to it.
    To,
    /// Those from it.
    From,
}

macro_rules! field {
    ($key:literal, $unit:literal, $shape:expr, $presence:expr, $about:literal) => {
        FieldInfo {
            key: $key,
            unit: $unit,
            about: $about,
            presence: $presence,
            shape: &$shape,
        }
    };
}

const HOST: SectionInfo = SectionInfo {
    path: "host",
    times: Times::Once,
    about: "The host itself. All hosts that protect flows between them have the same ports.",
    fields: &[
        field!(
            "control_port",
            "port",
            PORT,
            Presence::Default("4760"),
            "UDP port, and with certificates TCP port, at which hosts tell each other what to replicate. Firewalls between them must let it pass."
        ),
        field!(
            "data_port",
            "port",
            PORT,
            Presence::Default("4761"),
            "UDP port at which copies arrive. Firewalls must let it pass, on every network."
        ),
        field!(
            "queue",
            "number",
            PORT,
            Presence::Default("4760"),
            "Number of the kernel's queue for outgoing packets (NFQUEUE) and of its group for the heads of incoming ones (NFLOG). \
             Another one is needed only where another program has it."
        ),
        field!(
            "capture",
            "none",
            CAPTURES,
            Presence::Default("\"queue\""),
            "How outgoing packets are captured: `queue`, by the kernel's queue; `ring`, datagrams by programs in the kernel where it has them \
             (Linux 6.6, cgroup2, CAP_BPF), which takes less of a processor, and all others by the queue. The ring is not for hosts \
             that translate the addresses of their own packets (NAT), encrypt them (IPsec), route by their source or mark them."
        ),
        field!(
            "socket",
            "path",
            SOCKET,
            Presence::Computed("bumpless/iprp.sock below $XDG_RUNTIME_DIR or /run"),
            "Path of the socket at which `bumpless iprp status` asks. A path that is not absolute begins at the folder of this file."
        ),
    ],
    parts: &[],
};

const SECURITY: SectionInfo = SectionInfo {
    path: "security",
    times: Times::Once,
    about: "What protects messages between hosts: certificates, or a key file. Copies are always sealed, with keys that are told in \
            these messages.",
    fields: &[
        field!(
            "certificates",
            "path",
            SOCKET,
            Presence::Computed("keys"),
            "The folder with this host's certificate, HOST.GROUP, as `bumpless pki issue` makes it. Hosts of one group and site then prove to each \
             other who they are, and each two agree on a key of their own. A path that is not absolute begins at the folder of this file."
        ),
        field!(
            "peers",
            "names",
            HOSTS,
            Presence::Computed("every host of the group"),
            "With certificates: which hosts of the group are let in, HOST as in HOST.GROUP. Which group and site that is says this host's own certificate."
        ),
        field!(
            "keys",
            "paths",
            PATHS,
            Presence::Computed("certificates"),
            "Instead of certificates: files with the secret that all hosts share, made by `bumpless key new FILE`. The first one seals, all of \
             them open, so that a secret changes without a gap. A path that is not absolute begins at the folder of this file."
        ),
    ],
    parts: &[],
};

const TIMING: SectionInfo = SectionInfo {
    path: "timing",
    times: Times::Once,
    about: "Periods.",
    fields: &[
        field!(
            "advertise_every_ms",
            "milliseconds",
            EVERY,
            Presence::Default("30000"),
            "How often a receiver tells a sender of itself. A session ends when nothing was told for three of them."
        ),
        field!(
            "inactivity_ms",
            "milliseconds",
            EVERY,
            Presence::Default("10000"),
            "A sender of which nothing comes for this long is told nothing more."
        ),
        field!(
            "key_lifetime_s",
            "seconds",
            LIFETIME,
            Presence::Default("3600"),
            "How long a key for copies is used, and with certificates one that two hosts have agreed on."
        ),
    ],
    parts: &[],
};

const LIMITS: SectionInfo = SectionInfo {
    path: "limits",
    times: Times::Once,
    about: "Bounds.",
    fields: &[
        field!(
            "sessions",
            "number",
            SESSIONS,
            Presence::Default("10000"),
            "Sessions at once, each way. Memory is taken for all of them at the start."
        ),
        field!(
            "max_lost",
            "packets",
            LOST,
            Presence::Default("1024"),
            "By how many packets one may be overtaken and be accepted still: more than the rate of a flow, in packets a second, times \
             the latest useful delay."
        ),
    ],
    parts: &[],
};

const NETWORK: SectionInfo = SectionInfo {
    path: "network",
    times: Times::Many,
    about: "A network, and which of this host's addresses is on it: exactly one of interface, prefix and name. A rule that \
            matches nothing on this host says nothing, so that all hosts can have the same file.",
    fields: &[
        field!(
            "ind",
            "number",
            IND,
            Presence::Required,
            "Its discriminator: the same number at all hosts on this network, another one for each network."
        ),
        field!(
            "interface",
            "name",
            InterfaceName,
            Presence::Computed("another rule"),
            "The interface with this name: its first address of IPv4, or else of IPv6."
        ),
        field!(
            "prefix",
            "prefix",
            AddressPrefix,
            Presence::Computed("another rule"),
            "The address that begins so."
        ),
        field!(
            "name",
            "pattern",
            NamePattern,
            Presence::Computed("another rule"),
            "The address of which the hosts file (/etc/hosts) has a name like this. Name servers are not asked: one that is dead must not \
             keep the host from starting."
        ),
    ],
    parts: &[],
};

const MONITOR: SectionInfo = SectionInfo {
    path: "monitor",
    times: Times::Many,
    about: "Packets that are to come over several networks. The end that receives them says so; with the same file at both ends, \
            both directions are protected.",
    fields: &[
        field!(
            "protocol",
            "none",
            PROTOCOLS,
            Presence::Required,
            "The protocol above IP."
        ),
        field!(
            "port",
            "port",
            PortRange,
            Presence::Required,
            "The port that a server listens at, or several in a row."
        ),
        field!(
            "packets",
            "none",
            WAYS,
            Presence::Default("\"both\""),
            "`to`: packets to this port, such as a stream's or a client's. `from`: packets from it, a server's answers. `both`: each where it \
             comes."
        ),
        field!(
            "mode",
            "none",
            MODES,
            Presence::Default("\"redundant\""),
            "How packets leave this host: `redundant`, on all networks; `standby`, on one, and when that is silent those that \
             may be lost leave again on the next one. With `packets`, those to or from the port; those of the other direction, too, unless \
             another [[monitor]] names them."
        ),
    ],
    parts: &[],
};

const GROUP: SectionInfo = SectionInfo {
    path: "group",
    times: Times::Many,
    about: "A multicast group, for the hosts that send to it and for those that have programs in it: **every receiver of a group needs iPRP with \
            this group, or receives nothing of it** once one of them has asked for copies. Its ports stand in [[monitor]], as others do.",
    fields: &[
        field!(
            "address",
            "address",
            GroupAddress,
            Presence::Required,
            "The group. Programs join it on any of this host's networks, with any source or with some (source-specific); the daemon joins \
             it on the others as long as they do."
        ),
        field!(
            "keys",
            "paths",
            PATHS,
            Presence::Computed("keys of [security]"),
            "Files with the secret that all hosts of the group share, made by `bumpless key new FILE`: what they send to it is sealed with that. With \
             certificates it has to be given, as each two hosts have a key of their own then. One file may be given for several groups. The first one seals, all of them open; `bumpless iprp reload` reads them again."
        ),
    ],
    parts: &[],
};

const SECTIONS: [&SectionInfo; 7] = [
    &HOST, &SECURITY, &TIMING, &LIMITS, &NETWORK, &MONITOR, &GROUP,
];

/// The sections as written; wrong fields are `None` and reported.
pub struct File {
    pub control_port: Option<u16>,
    pub data_port: Option<u16>,
    pub queue: Option<u16>,
    pub capture: Option<Capture>,
    pub socket: Option<Option<String>>,
    pub certificates: Option<Option<String>>,
    pub peers: Option<Option<Vec<String>>>,
    pub keys: Option<Option<Vec<String>>>,
    pub security_place: Place,
    pub advertise_every_ms: Option<u64>,
    pub inactivity_ms: Option<u64>,
    pub key_lifetime_s: Option<u64>,
    pub sessions: Option<u64>,
    pub max_lost: Option<u64>,
    pub host_place: Place,
    pub timing_place: Place,
    pub networks: Vec<NetworkEntry>,
    pub monitors: Vec<MonitorEntry>,
    pub groups: Vec<GroupEntry>,
}

/// A `[[network]]`.
pub struct NetworkEntry {
    pub place: Place,
    pub ind: Option<u64>,
    pub interface: Option<Option<String>>,
    pub prefix: Option<Option<Prefix>>,
    pub name: Option<Option<String>>,
}

/// A `[[monitor]]`.
pub struct MonitorEntry {
    pub place: Place,
    pub protocol: Option<u8>,
    pub ports: Option<(u16, u16)>,
    pub way: Option<Way>,
    pub mode: Option<Mode>,
}

/// A `[[group]]`.
pub struct GroupEntry {
    pub place: Place,
    pub address: Option<IpAddr>,
    pub keys: Option<Option<Vec<String>>>,
}

/// Reads the sections of `text`. `None`: its syntax does not permit it; reported.
pub fn read(reader: &mut Reader, text: &str) -> Option<File> {
    let document = document(reader, text)?;
    let root = document.as_table();
    unknown_sections(reader, root, &SECTIONS);
    let small = |port: Option<u64>| port.and_then(|port| u16::try_from(port).ok());
    let mut host = once(reader, root, &HOST);
    let control_port = small(host.or_default("control_port", &PORT, "4760"));
    let data_port = small(host.or_default("data_port", &PORT, "4761"));
    let queue = small(host.or_default("queue", &PORT, "4760"));
    let capture = host.or_default("capture", &CAPTURES, "\"queue\"");
    let socket = host.optional("socket", &SOCKET);
    let host_place = host.finish(&HOST, &SECTIONS);
    let mut security = once(reader, root, &SECURITY);
    let certificates = security.optional("certificates", &SOCKET);
    let peers = security.optional("peers", &HOSTS);
    let keys = security.optional("keys", &PATHS);
    let security_place = security.finish(&SECURITY, &SECTIONS);
    let mut timing = once(reader, root, &TIMING);
    let advertise_every_ms = timing.or_default("advertise_every_ms", &EVERY, "30000");
    let inactivity_ms = timing.or_default("inactivity_ms", &EVERY, "10000");
    let key_lifetime_s = timing.or_default("key_lifetime_s", &LIFETIME, "3600");
    let timing_place = timing.finish(&TIMING, &SECTIONS);
    let mut limits = once(reader, root, &LIMITS);
    let sessions = limits.or_default("sessions", &SESSIONS, "10000");
    let max_lost = limits.or_default("max_lost", &LOST, "1024");
    limits.finish(&LIMITS, &SECTIONS);
    Some(File {
        control_port,
        data_port,
        queue,
        capture,
        socket,
        certificates,
        peers,
        keys,
        security_place,
        advertise_every_ms,
        inactivity_ms,
        key_lifetime_s,
        sessions,
        max_lost,
        host_place,
        timing_place,
        networks: many(reader, root, &NETWORK, network),
        monitors: many(reader, root, &MONITOR, monitor),
        groups: many(reader, root, &GROUP, group),
    })
}

fn network(mut table: TableReader<'_>) -> NetworkEntry {
    NetworkEntry {
        ind: table.required("ind", &IND),
        interface: table.optional("interface", &InterfaceName),
        prefix: table.optional("prefix", &AddressPrefix),
        name: table.optional("name", &NamePattern),
        place: table.finish(&NETWORK, &SECTIONS),
    }
}

fn monitor(mut table: TableReader<'_>) -> MonitorEntry {
    MonitorEntry {
        protocol: table.required("protocol", &PROTOCOLS),
        ports: table.required("port", &PortRange),
        way: table.or_default("packets", &WAYS, "\"both\""),
        mode: table.or_default("mode", &MODES, "\"redundant\""),
        place: table.finish(&MONITOR, &SECTIONS),
    }
}

fn group(mut table: TableReader<'_>) -> GroupEntry {
    GroupEntry {
        address: table.required("address", &GroupAddress),
        keys: table.optional("keys", &PATHS),
        place: table.finish(&GROUP, &SECTIONS),
    }
}

/// A file in which every field is explained.
pub fn sample() -> String {
    let given = |path: &str| -> Examples {
        match path {
            "security" => &[&[("certificates", "\"certificate\"")]],
            "network" => &[
                &[("ind", "10"), ("prefix", "\"10.1.0.0/24\"")],
                &[("ind", "11"), ("prefix", "\"10.2.0.0/24\"")],
            ],
            "monitor" => &[
                &[("protocol", "\"udp\""), ("port", "4713")],
                &[("protocol", "\"tcp\""), ("port", "502")],
            ],
            "group" => &[&[
                ("address", "\"239.1.2.3\""),
                ("keys", "[\"239.1.2.3.key\"]"),
            ]],
            _ => &[&[]],
        }
    };
    let intro = "# What one host of several has in its file; all of them may have the same one.\n\
         # `bumpless iprp check FILE` says everything that is wrong in it, `bumpless iprp run FILE` starts.\n";
    // A group has a key file, which a host without groups has not: it is shown and left out.
    let (groups, others): (Vec<_>, Vec<_>) = SECTIONS.iter().partition(|it| it.path == GROUP.path);
    let mut text = bumpless_config::reading::sample(intro, &others, given);
    for line in bumpless_config::reading::sample("", &groups, given).lines() {
        let is_left_out = !line.is_empty() && !line.starts_with('#');
        text.push_str(if is_left_out { "#" } else { "" });
        text.push_str(line);
        text.push('\n');
    }
    text
}
