//! What the rules say, in words of this program's, and why they could not be made.

use std::fmt;
use std::io;
use std::net::IpAddr;

use crate::diversion::Marks;

/// Which port of a packet is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The port that it goes to.
    Destination,
    /// The port that it comes from.
    Source,
}

/// Incoming packets of which heads are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Number of the protocol: UDP's or TCP's.
    pub protocol: u8,
    /// Which port is meant.
    pub side: Side,
    /// Lowest port.
    pub first: u16,
    /// Highest port.
    pub last: u16,
}

/// Outgoing packets that are queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Number of the protocol: UDP's or TCP's.
    pub protocol: u8,
    /// Which port is meant.
    pub side: Side,
    /// The port.
    pub port: u16,
    /// Where they go.
    pub destination: IpAddr,
}

/// Most bytes of a TCP segment that connections of watched ports may agree upon, header left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mss {
    /// Over IPv4.
    pub v4: u16,
    /// Over IPv6.
    pub v6: u16,
}

/// Datagrams of UDP that are not queued, but handed over by a [`Diversion`](crate::Diversion).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diverting {
    /// Marks, as it knows them.
    pub marks: Marks,
    /// Longest datagram, UDP's header and what follows it, over IPv4 and over IPv6. Longer ones are queued.
    pub longest: (u16, u16),
}

/// What the rules say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// NFQUEUE's number, to which captured packets go.
    pub queue: u16,
    /// NFLOG's group, to which heads of watched packets go.
    pub group: u16,
    /// Which those are.
    pub watched: Vec<Watched>,
    /// What connections of watched TCP ports agree upon.
    pub mss: Mss,
    /// What is not queued, but handed over. `None`: all is queued.
    pub diverting: Option<Diverting>,
}

/// Why the rules could not be made.
#[derive(Debug)]
pub enum FirewallError {
    /// A process has the table already.
    Taken(String),
    /// The kernel lacks something.
    Unsupported(io::Error),
    /// The kernel refuses.
    System(io::Error),
}

impl fmt::Display for FirewallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken(name) => write!(
                f,
                "another process has the firewall table {name}: stop it first, two cannot capture on one host"
            ),
            Self::Unsupported(error) => write!(
                f,
                "the kernel has no nf_tables, NFQUEUE or NFLOG ({error}): load the modules nf_tables, nfnetlink_queue, \
                 nfnetlink_log and nft_queue or nft_compat"
            ),
            Self::System(error) => write!(f, "the kernel refuses the firewall rules: {error}"),
        }
    }
}

impl std::error::Error for FirewallError {}
