//! Whose packets: a flow, and the scope of a session.

use core::fmt;
use core::net::IpAddr;

/// UDP's protocol number. Of a UDP packet what follows its header is carried.
pub const UDP: u8 = 17;
/// TCP's protocol number. Of TCP, as of all but UDP, what follows the IP header is carried.
pub const TCP: u8 = 6;
const DCCP: u8 = 33;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

/// From where to where a packet goes, as its application sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Number of the protocol above IP.
    pub protocol: u8,
    /// Source address.
    pub source: IpAddr,
    /// Destination address, of the same family.
    pub destination: IpAddr,
    /// Source port; 0 for a protocol without ports.
    pub source_port: u16,
    /// Destination port; 0 for a protocol without ports.
    pub destination_port: u16,
}

impl Flow {
    /// Whether both addresses are of one family.
    pub fn is_sound(&self) -> bool {
        self.source.is_ipv4() == self.destination.is_ipv4()
    }

    /// The port on `side`.
    pub const fn port(&self, side: Side) -> u16 {
        match side {
            Side::Destination => self.destination_port,
            Side::Source => self.source_port,
        }
    }
}

/// Source and destination port at the beginning of `payload`, which follows the IP header, where `protocol` has them
/// there; `None` where the payload is too short for them. Zeros for a protocol without ports.
pub fn ports(protocol: u8, payload: &[u8]) -> Option<(u16, u16)> {
    if !matches!(protocol, TCP | UDP | DCCP | SCTP | UDP_LITE) {
        return Some((0, 0));
    }
    let &[a, b, c, d] = payload.first_chunk()?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

/// On which side of a flow its monitored port is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Packets to this port: requests to a server, streams.
    Destination,
    /// Packets from this port: a server's answers, whose destination port is another one for each connection.
    Source,
}

/// Ports that a receiver monitors: flows to or from them are to be replicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Monitored {
    /// Number of the protocol above IP.
    pub protocol: u8,
    /// Which port of a packet is meant.
    pub side: Side,
    /// Lowest port. 0 for a protocol without ports.
    pub first: u16,
    /// Highest port.
    pub last: u16,
}

impl Monitored {
    /// The scope of `flow`, if it is monitored by this.
    pub fn scope(&self, flow: &Flow) -> Option<Scope> {
        let port = flow.port(self.side);
        let is_meant = flow.protocol == self.protocol && (self.first..=self.last).contains(&port);
        is_meant.then_some(Scope {
            protocol: self.protocol,
            side: self.side,
            port,
            destination: flow.destination,
        })
    }
}

/// What one session of a sender replicates: packets of a protocol to one address, to or from one port.
///
/// All flows in it share networks, key and sequence numbers, so that the first packet of another connection to a port
/// that is replicated is replicated, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    /// Number of the protocol above IP.
    pub protocol: u8,
    /// Which port of a packet is meant.
    pub side: Side,
    /// The port; 0 for a protocol without ports.
    pub port: u16,
    /// Destination address, a host's or a group's.
    pub destination: IpAddr,
}

impl Scope {
    /// The scope on `side` that `flow` would be in.
    pub const fn of(flow: &Flow, side: Side) -> Self {
        Self {
            protocol: flow.protocol,
            side,
            port: flow.port(side),
            destination: flow.destination,
        }
    }

    /// Whether `flow` is in it.
    pub fn contains(&self, flow: &Flow) -> bool {
        *self == Self::of(flow, self.side)
    }

    /// Whether packets go to a group.
    pub const fn is_multicast(&self) -> bool {
        self.destination.is_multicast()
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = match self.side {
            Side::Destination => "to",
            Side::Source => "from",
        };
        let Self {
            protocol,
            port,
            destination,
            ..
        } = self;
        match *protocol {
            UDP => write!(f, "UDP {way} port {port}, to {destination}"),
            TCP => write!(f, "TCP {way} port {port}, to {destination}"),
            _ => write!(f, "protocol {protocol} {way} port {port}, to {destination}"),
        }
    }
}
