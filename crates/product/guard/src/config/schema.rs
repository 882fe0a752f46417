//! Every field of the file, documented once.

use std::net::IpAddr;

use bumpless_config::reading::{
    Choice, Describe, Each, Examples, Fault, FieldInfo, InterfaceName, Item, Lines, Name, Place,
    PortRange, Presence, Reader, SectionInfo, Shape, TableReader, Text, Times, Whole, document,
    fault, many, once, show, unknown_sections,
};
use bumpless_guard::Transport;

const SOCKET: Text = Text {
    what: "a path",
    max: 100,
};
const PERCENT: Whole = Whole {
    min: 1,
    max: 10_000,
};
const RING: Whole = Whole {
    min: 16,
    max: 65_536,
};
const PACKET: Whole = Whole {
    min: 1,
    max: 1_000_000,
};
const PER_SECOND: Whole = Whole {
    min: 0,
    max: 10_000_000,
};
const CAPACITY: Whole = Whole {
    min: 0,
    max: bumpless_reception::CAPACITY_MAX as u64,
};
const PERIOD: Whole = Whole {
    min: 1,
    max: 60_000,
};
const GROUP: Text = Text {
    what: "the name or number of a group",
    max: 32,
};
const REGISTERED: Whole = Whole { min: 1, max: 256 };
const REGISTERED_PERCENT: Whole = Whole {
    min: 1,
    max: 10_000,
};
const PRIORITY: Whole = Whole { min: 0, max: 255 };
const BURST: Whole = Whole {
    min: 1,
    max: 8_388_608,
};
const PROTOCOLS: Choice<Transport> = Choice(&[("udp", Transport::Udp), ("tcp", Transport::Tcp)]);
const SIDES: Choice<Side> = Choice(&[("here", Side::Here), ("there", Side::There)]);
const INTERFACES: Each<InterfaceName> = Each {
    of: InterfaceName,
    several: "names of interfaces",
    max: 64,
    example: "[\"eth0\"]",
};
const SENDERS: Each<Address> = Each {
    of: Address,
    several: "addresses",
    max: 1024,
    example: "[\"10.0.0.2\", \"fd00::2\"]",
};

/// Whose port a flow's is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// This host's.
    Here,
    /// The sender's.
    There,
}

/// The address of a host.
pub struct Address;

impl Describe for Address {
    fn accepts(&self) -> String {
        "an address of IPv4 or IPv6, such as \"10.0.0.2\"".into()
    }
}

impl Shape for Address {
    type Out = IpAddr;
    fn read(&self, item: &Item, _: &Lines) -> Result<IpAddr, Vec<Fault>> {
        let address = item.as_str().and_then(|text| text.parse::<IpAddr>().ok());
        match address.map(|address| address.to_canonical()) {
            Some(address) if !address.is_multicast() && !address.is_unspecified() => Ok(address),
            _ => fault(show(item)),
        }
    }
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

const GUARD: SectionInfo = SectionInfo {
    path: "guard",
    times: Times::Once,
    about: "The host itself.",
    fields: &[
        field!(
            "interfaces",
            "names",
            INTERFACES,
            Presence::Required,
            "Where frames are judged before the kernel makes buffers of them. Each of these interfaces has every budget for itself, so that a \
             flood on one costs no flow its packets on another. Of a bond or a bridge name the cards; VLANs are looked through. Interfaces \
             without an Ethernet header (WireGuard, TUN, PPP, tunnels) are refused: name those that carry them."
        ),
        field!(
            "socket",
            "path",
            SOCKET,
            Presence::Computed("bumpless/guard.sock below $XDG_RUNTIME_DIR or /run"),
            "Path of the socket at which `bumpless guard status` asks. A path that is not absolute begins at the folder of this file."
        ),
        field!(
            "processor_percent",
            "percent",
            PERCENT,
            Presence::Default("50"),
            "What share of one processor all budgets may take together; with more the file is refused. Above 100 only where several \
             processors receive."
        ),
        field!(
            "packet_ns",
            "nanoseconds",
            PACKET,
            Presence::Default("2000"),
            "What a packet that is let in costs of a processor's time until its program has it. It is only reckoned with."
        ),
        field!(
            "dropped_ns",
            "nanoseconds",
            PACKET,
            Presence::Default("150"),
            "What a packet that is dropped at the driver costs. It is only reckoned with: `check` says how much of a flood is borne until \
             `processor_percent` are used."
        ),
        field!(
            "ring",
            "packets",
            RING,
            Presence::Default("256"),
            "Packets that wait in an interface's ring at most (`ethtool -g` shows it, `ethtool -G` sets it). It is only reckoned with."
        ),
    ],
    parts: &[],
};

const REST: SectionInfo = SectionInfo {
    path: "rest",
    times: Times::Once,
    about: "Budgets of what belongs to no flow, on each interface, renewed a hundred times a second, those of addresses and fragments ten times. 0: nothing of it is received. Sessions of yours, \
            answers of name servers and downloads are among `other_per_s` unless a flow of their own is below: with 0 you may cut yourself off.",
    fields: &[
        field!(
            "resolution_per_s",
            "packets a second",
            PER_SECOND,
            Presence::Default("500"),
            "Finding addresses: ARP, and neighbour discovery of IPv6. With 0 nobody reaches this host after a while."
        ),
        field!(
            "icmp_per_s",
            "packets a second",
            PER_SECOND,
            Presence::Default("500"),
            "The rest of ICMP: pings, and what routers say of packets that are too long."
        ),
        field!(
            "fragment_per_s",
            "packets a second",
            PER_SECOND,
            Presence::Default("500"),
            "Pieces of IP packets, whatever they are for."
        ),
        field!(
            "other_per_s",
            "packets a second",
            PER_SECOND,
            Presence::Default("10000"),
            "Ports of TCP and UDP that no flow below names."
        ),
        field!(
            "unknown_per_s",
            "packets a second",
            PER_SECOND,
            Presence::Default("500"),
            "Everything else, and what contradicts itself: spanning tree, LACP, PTP, IGMP, IPsec. What IPsec encrypts (ESP) or signs (AH) is \
             of no flow: give as many as come so."
        ),
    ],
    parts: &[],
};

const FLOW: SectionInfo = SectionInfo {
    path: "flow",
    times: Times::Many,
    about: "A flow: packets that a program of this host is there for, and how many of them it is to get at most. Who sends more loses what is \
            beyond, and costs no other flow anything. If several match, one with `from` counts first.",
    fields: &[
        field!(
            "name",
            "none",
            Name,
            Presence::Required,
            "What `status` calls it."
        ),
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
            "Its port, or several in a row."
        ),
        field!(
            "side",
            "none",
            SIDES,
            Presence::Default("\"here\""),
            "Whose port: `here`, at which a program of this host listens; `there`, the one of a server from which a program of this host gets \
             answers, with `from`."
        ),
        field!(
            "from",
            "addresses",
            SENDERS,
            Presence::Computed("from anywhere"),
            "Only packets with one of these senders."
        ),
        field!(
            "capacity",
            "packets",
            CAPACITY,
            Presence::Required,
            "So many in a period at most, on each interface. 0: nothing of it is received."
        ),
        field!(
            "period_ms",
            "milliseconds",
            PERIOD,
            Presence::Default("100"),
            "The period after which the capacity is whole again. Short ones bound bursts, long ones permit them."
        ),
    ],
    parts: &[],
};

const REGISTRATION: SectionInfo = SectionInfo {
    path: "registration",
    times: Times::Once,
    about: "What programs of this host may register for sockets of their own while they run, in the manner of setsockopt: capacity, period and \
            priority. Without `group` no program may.",
    fields: &[
        field!(
            "group",
            "none",
            GROUP,
            Presence::Computed("no program may register"),
            "Members of this group may, and root. With \"root\" nobody else."
        ),
        field!(
            "socket",
            "path",
            SOCKET,
            Presence::Computed("/run/bumpless-guard.sock, where programs look"),
            "Path of the socket at which programs register, in a folder that the group may enter. A path that is not absolute begins at the \
             folder of this file."
        ),
        field!(
            "flows",
            "sockets",
            REGISTERED,
            Presence::Default("32"),
            "So many sockets may be registered at a time."
        ),
        field!(
            "processor_percent",
            "percent",
            REGISTERED_PERCENT,
            Presence::Default("10"),
            "What share of one processor their packets may take together. It is set aside of `processor_percent` in [guard], used or not."
        ),
        field!(
            "priority_max",
            "priority",
            PRIORITY,
            Presence::Default("99"),
            "The highest priority that a socket may be registered with. Status shows it; on Linux it has no effect yet."
        ),
        field!(
            "burst_max",
            "packets",
            BURST,
            Presence::Computed("as many as `processor_percent` permits, and not in the plan"),
            "So many packets the capacities of all registered sockets may come to together. `check` then says how much of a flood is borne \
             whatever programs register."
        ),
    ],
    parts: &[],
};

const SECTIONS: [&SectionInfo; 4] = [&GUARD, &REST, &REGISTRATION, &FLOW];

/// The sections as written; wrong fields are `None` and reported.
pub struct File {
    pub guard: Place,
    pub interfaces: Option<Vec<String>>,
    pub socket: Option<Option<String>>,
    pub processor_percent: Option<u64>,
    pub packet_ns: Option<u64>,
    pub dropped_ns: Option<u64>,
    pub ring: Option<u64>,
    /// In the order of the section.
    pub rest: [Option<u64>; 5],
    pub registration: RegistrationEntry,
    pub flows: Vec<FlowEntry>,
}

/// The section `[registration]`.
pub struct RegistrationEntry {
    pub place: Place,
    pub group: Option<Option<String>>,
    pub socket: Option<Option<String>>,
    pub flows: Option<u64>,
    pub processor_percent: Option<u64>,
    pub priority_max: Option<u64>,
    pub burst_max: Option<Option<u64>>,
}

/// A `[[flow]]`.
pub struct FlowEntry {
    pub place: Place,
    pub name: Option<String>,
    pub protocol: Option<Transport>,
    pub ports: Option<(u16, u16)>,
    pub side: Option<Side>,
    pub from: Option<Option<Vec<IpAddr>>>,
    pub capacity: Option<u64>,
    pub period_ms: Option<u64>,
}

/// Reads the sections of `text`. `None`: its syntax does not permit it; reported.
pub fn read(reader: &mut Reader, text: &str) -> Option<File> {
    let document = document(reader, text)?;
    let root = document.as_table();
    unknown_sections(reader, root, &SECTIONS);
    let mut guard = once(reader, root, &GUARD);
    let interfaces = guard.required("interfaces", &INTERFACES);
    let socket = guard.optional("socket", &SOCKET);
    let processor_percent = guard.or_default("processor_percent", &PERCENT, "50");
    let packet_ns = guard.or_default("packet_ns", &PACKET, "2000");
    let dropped_ns = guard.or_default("dropped_ns", &PACKET, "150");
    let ring = guard.or_default("ring", &RING, "256");
    let place = guard.finish(&GUARD, &SECTIONS);
    let mut rest = once(reader, root, &REST);
    let budgets = [
        ("resolution_per_s", "500"),
        ("icmp_per_s", "500"),
        ("fragment_per_s", "500"),
        ("other_per_s", "10000"),
        ("unknown_per_s", "500"),
    ];
    let budgets = budgets.map(|(key, usual)| rest.or_default(key, &PER_SECOND, usual));
    rest.finish(&REST, &SECTIONS);
    Some(File {
        guard: place,
        interfaces,
        socket,
        processor_percent,
        packet_ns,
        dropped_ns,
        ring,
        rest: budgets,
        registration: registration(once(reader, root, &REGISTRATION)),
        flows: many(reader, root, &FLOW, flow),
    })
}

fn registration(mut table: TableReader<'_>) -> RegistrationEntry {
    RegistrationEntry {
        group: table.optional("group", &GROUP),
        socket: table.optional("socket", &SOCKET),
        flows: table.or_default("flows", &REGISTERED, "32"),
        processor_percent: table.or_default("processor_percent", &REGISTERED_PERCENT, "10"),
        priority_max: table.or_default("priority_max", &PRIORITY, "99"),
        burst_max: table.optional("burst_max", &BURST),
        place: table.finish(&REGISTRATION, &SECTIONS),
    }
}

fn flow(mut table: TableReader<'_>) -> FlowEntry {
    FlowEntry {
        name: table.required("name", &Name),
        protocol: table.required("protocol", &PROTOCOLS),
        ports: table.required("port", &PortRange),
        side: table.or_default("side", &SIDES, "\"here\""),
        from: table.optional("from", &SENDERS),
        capacity: table.required("capacity", &CAPACITY),
        period_ms: table.or_default("period_ms", &PERIOD, "100"),
        place: table.finish(&FLOW, &SECTIONS),
    }
}

/// A file in which every field is explained.
pub fn sample() -> String {
    let given = |path: &str| -> Examples {
        match path {
            "guard" => &[&[("interfaces", "[\"eth0\"]")]],
            "flow" => &[
                &[
                    ("name", "\"setpoints\""),
                    ("protocol", "\"udp\""),
                    ("port", "4713"),
                    ("from", "[\"10.0.0.2\"]"),
                    ("capacity", "200"),
                ],
                &[
                    ("name", "\"field\""),
                    ("protocol", "\"tcp\""),
                    ("port", "502"),
                    ("side", "\"there\""),
                    ("from", "[\"10.0.0.30\", \"10.0.0.31\"]"),
                    ("capacity", "300"),
                ],
                &[
                    ("name", "\"ssh\""),
                    ("protocol", "\"tcp\""),
                    ("port", "22"),
                    ("capacity", "200"),
                ],
            ],
            _ => &[&[]],
        }
    };
    let intro = "# What this host receives of each kind, however much is sent to it.\n\
         # `bumpless guard check FILE` says everything that is wrong in it, `bumpless guard run FILE` starts.\n";
    bumpless_config::reading::sample(intro, &SECTIONS, given)
}
