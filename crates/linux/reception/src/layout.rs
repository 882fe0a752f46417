//! What program and process share: the maps, byte by byte, from the setup of a guard.

use std::collections::HashMap;
use std::net::IpAddr;

use bumpless_guard::{Match, Setup, Terms, Transport};

/// Bytes of a flow's budget: a cache line, so that processors that count different flows do not wait for each other.
pub const BUDGET_LEN: usize = 64;

/// Byte offsets in a budget.
pub mod budget {
    /// Frames in a period; zero: the flow is closed.
    pub const CAPACITY: i16 = 0;
    /// Nanoseconds; zero: no rate.
    pub const PERIOD: i16 = 8;
    /// When the first period began, on the kernel's monotonic clock.
    pub const START: i16 = 16;
    /// The period's number and, in the lower bits, what was used in it.
    pub const WORD: i16 = 24;
    /// When that period ends at the earliest, so that frames within it need no division.
    pub const END: i16 = 32;
}

/// Bits of [`budget::WORD`] for what was used. The rest has the number of the period: with the shortest one, 34 years.
pub const USED_BITS: i32 = 24;
/// All of them.
pub const USED_MAX: i32 = (1 << USED_BITS) - 1;
/// Frames in a period at most: half of what the bits hold, so that processors which count beyond it at once do not reach the period's number.
pub const CAPACITY_MAX: u32 = 1 << (USED_BITS - 1);
/// The shortest period, nanoseconds.
pub const PERIOD_MIN: u64 = 1_000_000;

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Passed on.
    Passed,
    /// Dropped beyond the flow's capacity.
    Capacity,
    /// Dropped since nothing of the flow is received.
    Closed,
}

impl Cause {
    /// Where it is counted in a flow's counts.
    pub const fn offset(self) -> i16 {
        match self {
            Self::Passed => 0,
            Self::Capacity => 8,
            Self::Closed => 16,
        }
    }
}

/// Bytes of a flow's counts, for each processor.
pub const COUNTS_LEN: usize = 24;

/// Bytes of a key: the family, shape with transport and port, the sender's address.
pub const KEY_LEN: usize = 24;
/// Shape "port here, from this address" in a key's second word; see [`key`].
pub const PORT_FROM: i32 = 1 << 17;
/// Shape "from this address and port".
pub const ANSWERS: i32 = 1 << 18;
/// Shape "echo replies from this address", without a port.
pub const ECHO: i32 = 1 << 19;
/// Shape "finding addresses by who has this address", without a port.
pub const RESOLUTION: i32 = 1 << 20;
/// Marks TCP beside a port.
pub const TCP_BIT: i32 = 1 << 16;
/// Marks an IPv6 address in a key's first word.
pub const V6_BIT: i32 = 1;
/// Bytes of the table of ports: two each, UDP's before TCP's.
pub const PORTS_LEN: usize = 2 << 17;
/// In the table of ports, the number of a port's flow.
pub const FLOW: i32 = 0x1fff;
/// There: some address has a pattern with this port here.
pub const HAS_PORT_FROM: i32 = 1 << 15;
/// There: some address has a pattern with this port of its own.
pub const HAS_ANSWERS: i32 = 1 << 14;

/// So many patterns are looked for before all others: those of a node's partners, and of what else its setup has first.
pub const QUICK_MAX: usize = 8;

/// A pattern that is looked for first: a port of UDP here, and the sender's IPv4 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quick {
    /// The port here.
    pub port: u16,
    /// The sender's address.
    pub address: [u8; 4],
    /// The flow that it belongs to.
    pub flow: u32,
}

/// The first ones of flows that stay as long as the program. None of another kind counts before them (V-10).
pub fn quick(setup: &Setup) -> Vec<Quick> {
    let flows = (0u32..).zip(&setup.flows);
    let patterns =
        flows.flat_map(|(flow, it)| it.matches.iter().map(move |pattern| (flow, pattern)));
    let quick = patterns.filter_map(|(flow, pattern)| match *pattern {
        Match::PortFrom(Transport::Udp, port, address) => match address.to_canonical() {
            IpAddr::V4(address) => Some(Quick {
                port,
                address: address.octets(),
                flow,
            }),
            IpAddr::V6(_) => None,
        },
        _ => None,
    });
    quick.take(QUICK_MAX).collect()
}

/// Which shapes of pattern with an address occur.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shapes {
    /// A port here and the sender's address.
    pub port_from: bool,
    /// The sender's address and port.
    pub answers: bool,
    /// The address of who sends echo replies.
    pub echo: bool,
    /// The address of who asks and answers to find addresses.
    pub resolution: bool,
}

impl Shapes {
    /// Every shape.
    pub const ALL: Self = Self {
        port_from: true,
        answers: true,
        echo: true,
        resolution: true,
    };

    /// Whether any does.
    pub const fn with_addresses(self) -> bool {
        self.port_from || self.answers || self.echo || self.resolution
    }
}

/// The content of the maps.
#[derive(Debug)]
pub struct Layout {
    /// Registered flows.
    pub registered: u32,
    /// Shapes that occur.
    pub shapes: Shapes,
    /// The table of ports.
    pub ports: Vec<u8>,
    /// Flows by pattern with address.
    pub senders: HashMap<[u8; KEY_LEN], u32>,
    /// Terms of all flows, the five that every guard has behind the registered ones.
    terms: Vec<Terms>,
}

impl Layout {
    /// The maps of a setup that `bumpless_guard::Guard` accepts, but for flows to which nothing belongs.
    pub fn new(setup: &Setup) -> Self {
        let registered = setup.flows.len() as u32;
        let unregistered = (registered + 3) as u16;
        let mut ports = vec![unregistered; PORTS_LEN / 2];
        let mut senders = HashMap::new();
        let mut shapes = Shapes::default();
        for (at, flow) in (0u16..).zip(&setup.flows) {
            for pattern in &flow.matches {
                match *pattern {
                    Match::Port(transport, port) => {
                        let entry = &mut ports[place(transport, port)];
                        *entry = *entry & !(FLOW as u16) | at;
                    }
                    Match::PortFrom(transport, port, address) => {
                        shapes.port_from = true;
                        ports[place(transport, port)] |= HAS_PORT_FROM as u16;
                        senders.insert(key(PORT_FROM, transport, port, address), u32::from(at));
                    }
                    Match::Answers(transport, address, port) => {
                        shapes.answers = true;
                        ports[place(transport, port)] |= HAS_ANSWERS as u16;
                        senders.insert(key(ANSWERS, transport, port, address), u32::from(at));
                    }
                    Match::EchoReplies(address) => {
                        shapes.echo = true;
                        senders.insert(key(ECHO, Transport::Udp, 0, address), u32::from(at));
                    }
                    Match::Resolution(address) => {
                        shapes.resolution = true;
                        let key = key(RESOLUTION, Transport::Udp, 0, address);
                        senders.insert(key, u32::from(at));
                    }
                }
            }
        }
        let of_flows = setup.flows.iter().map(|flow| flow.terms);
        let built_in = [
            setup.resolution,
            setup.icmp,
            setup.fragments,
            setup.unregistered,
            setup.unknown,
        ];
        Self {
            registered,
            shapes,
            ports: ports.iter().flat_map(|entry| entry.to_ne_bytes()).collect(),
            senders,
            terms: of_flows.chain(built_in).collect(),
        }
    }

    /// Flows, the five that every guard has among them.
    pub fn flows(&self) -> usize {
        self.terms.len()
    }

    /// Budgets whose first periods begin at `now`, nanoseconds on the kernel's monotonic clock.
    pub fn budgets(&self, now: u64) -> Vec<[u8; BUDGET_LEN]> {
        self.terms.iter().map(|terms| budget(terms, now)).collect()
    }
}

/// The budget of these terms whose first period begins at `now`, nanoseconds on the kernel's monotonic clock.
pub fn budget(terms: &Terms, now: u64) -> [u8; BUDGET_LEN] {
    let (capacity, period) = match (terms.queue, terms.rate) {
        (0, _) => (0, 0),
        (_, None) => (1, 0),
        (_, Some(rate)) => (u64::from(rate.capacity), rate.period.as_nanos()),
    };
    let mut bytes = [0; BUDGET_LEN];
    for (at, value) in [
        (budget::CAPACITY, capacity),
        (budget::PERIOD, period),
        (budget::START, now),
        (budget::END, now + period),
    ] {
        let at = at as usize;
        bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    }
    bytes
}

const fn bit(transport: Transport) -> i32 {
    match transport {
        Transport::Udp => 0,
        Transport::Tcp => TCP_BIT,
    }
}

/// Which entry a port has in the table.
const fn place(transport: Transport, port: u16) -> usize {
    port as usize | bit(transport) as usize
}

/// The key of a pattern, as the program puts it on its stack.
fn key(shape: i32, transport: Transport, port: u16, address: IpAddr) -> [u8; KEY_LEN] {
    let (family, octets) = match address.to_canonical() {
        IpAddr::V4(address) => {
            let mut octets = [0; 16];
            octets[12..].copy_from_slice(&address.octets());
            (0, octets)
        }
        IpAddr::V6(address) => (V6_BIT, address.octets()),
    };
    let what = shape | bit(transport) | i32::from(port);
    let mut bytes = [0; KEY_LEN];
    bytes[..4].copy_from_slice(&family.to_ne_bytes());
    bytes[4..8].copy_from_slice(&what.to_ne_bytes());
    bytes[8..].copy_from_slice(&octets);
    bytes
}
