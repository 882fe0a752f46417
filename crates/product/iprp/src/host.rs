//! What the file means on this host at present: its networks, their sockets, the firewall's rules.

use std::fmt;
use std::io;
use std::net::IpAddr;

use bumpless_capture::{
    Card, MemberInjector, Mss, Ports, Rules, Side as CapturedSide, Watched, interfaces,
};
use bumpless_config::Problem;
use bumpless_iprp::{MAX_OVERHEAD, Mode, Monitored, Network, Networks, Side};

use crate::closed;
use crate::config::Config;
use crate::diverting::Ways;
use crate::exchange::Attached;
use crate::networks::{Attachment, Names, attachments};

/// IP and UDP header, and TCP's.
const IPV4_UDP: u32 = 28;
const IPV6_UDP: u32 = 48;
const TCP_HEADER: usize = 20;
/// Sockets for each pair of networks, and one for the groups of each, are waited on beside a few others.
const ATTACHMENTS_MAX: usize = 7;

/// Hops that a control message to a group may take, as any packet. No router brings it where nobody is a member.
const CONTROL_HOPS: u8 = 64;

/// A socket of a network that could not be opened.
#[derive(Debug)]
pub struct SocketError {
    /// Which port.
    pub port: u16,
    /// At which address.
    pub address: IpAddr,
    /// What the system said.
    pub cause: io::Error,
}

impl fmt::Display for SocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            port,
            address,
            cause,
        } = self;
        match cause.kind() {
            io::ErrorKind::AddrInUse => write!(
                f,
                "UDP port {port} at {address} is another program's; stop that one, or give all hosts another port in [host]"
            ),
            _ => write!(f, "cannot open UDP port {port} at {address}: {cause}"),
        }
    }
}

impl std::error::Error for SocketError {}

/// The host's networks at present.
///
/// # Errors
/// Everything that keeps the rules of the file, which messages call `file`, from saying which these are.
pub fn find_attachments(config: &Config, file: &str) -> Result<Vec<Attachment>, Vec<Problem>> {
    let problem = |line: usize, wrong: String, right: &str| Problem {
        file: file.to_owned(),
        line,
        field: "network".into(),
        wrong,
        right: right.into(),
    };
    let interfaces = interfaces().map_err(|error| {
        let wrong = format!("the kernel does not tell the host's addresses: {error}");
        vec![problem(0, wrong, "look at what `ip address` says")]
    })?;
    let found = attachments(config, file, &interfaces, &Names::of_this_host())?;
    if found.len() > ATTACHMENTS_MAX {
        let wrong = format!("the rules find {} networks of this host", found.len());
        let right = format!("let them find {ATTACHMENTS_MAX} at most");
        return Err(vec![problem(0, wrong, &right)]);
    }
    Ok(found)
}

/// Whether this is an address of this host; what the kernel does not tell is none.
pub fn is_own(address: IpAddr) -> bool {
    let interfaces = interfaces().unwrap_or_default();
    let mut all = interfaces.iter().flat_map(|it| &it.addresses);
    address.is_loopback() || all.any(|it| *it == address)
}

/// The interface of this host on whose network `address` stands for all hosts, if there is one.
pub fn broadcast_on(address: IpAddr) -> Option<String> {
    let IpAddr::V4(address) = address else {
        return None;
    };
    let interfaces = interfaces().unwrap_or_default();
    let mut all = interfaces.into_iter();
    let found = all.find(|it| it.broadcasts.contains(&address));
    found.map(|it| it.name)
}

/// Longest copy that leaves whole on each of these, bytes behind the UDP header.
fn room(attachments: &[Attachment]) -> usize {
    let of = |it: &Attachment| {
        let headers = if it.address.is_ipv4() {
            IPV4_UDP
        } else {
            IPV6_UDP
        };
        it.mtu.saturating_sub(headers) as usize
    };
    attachments.iter().map(of).min().unwrap_or(0)
}

/// The firewall's rules for this file and these networks.
pub fn rules(config: &Config, attachments: &[Attachment], ways: &Ways) -> Rules {
    let room = room(attachments);
    let longest = room.saturating_sub(MAX_OVERHEAD + TCP_HEADER);
    // The least that every host takes (RFC 9293, 3.7.1).
    let mss = u16::try_from(longest.max(536)).unwrap_or(u16::MAX);
    Rules {
        queue: config.host.queue,
        group: config.host.queue,
        watched: config.watched().iter().map(watched).collect(),
        mss: Mss { v4: mss, v6: mss },
        diverting: ways.for_rules(room),
    }
}

const fn watched(it: &Monitored) -> Watched {
    Watched {
        protocol: it.protocol,
        side: side(it.side),
        first: it.first,
        last: it.last,
    }
}

/// How packets leave, by what they are.
pub fn modes(config: &Config) -> Vec<(Monitored, Mode)> {
    let all = config.monitors.iter();
    all.flat_map(|monitor| monitor.watched.iter().map(|it| (*it, monitor.mode)))
        .collect()
}

/// Sockets of the host's networks.
pub struct OpenPorts {
    /// Of the data port.
    pub data: Ports,
    /// Of the control port.
    pub control: Ports,
}

/// Opens the sockets of these networks, but for what stays of those that are open: of the data port, of the control port; and what others are
/// told of them.
pub fn attach(
    config: &Config,
    attachments: &[Attachment],
    open: Option<&OpenPorts>,
) -> Result<(Attached, OpenPorts, Vec<closed::Card>), SocketError> {
    let cards: Vec<_> = attachments
        .iter()
        .map(|it| Card {
            interface: it.interface.clone(),
            address: it.address,
        })
        .collect();
    let groups = !config.groups.is_empty();
    let ports = |port: u16, former: Option<&Ports>| {
        Ports::open_beside(&cards, port, groups, former).map_err(|(at, cause)| SocketError {
            port,
            address: attachments[at].address,
            cause,
        })
    };
    let networks: Vec<_> = attachments
        .iter()
        .map(|it| Network {
            ind: it.ind,
            address: it.address,
        })
        .collect();
    // The rules have found each discriminator once, and not too many.
    let networks = Networks::new(&networks).unwrap_or_default();
    let addresses: Vec<_> = attachments
        .iter()
        .map(|it| (it.address, it.index))
        .filter(|_| groups)
        .collect();
    let injector = MemberInjector::open(&addresses).map_err(|cause| SocketError {
        port: config.host.data_port,
        address: addresses[0].0,
        cause,
    })?;
    let data = ports(config.host.data_port, open.map(|it| &it.data))?;
    let attached = Attached {
        coalesces: data.coalesce(),
        ports: data.clone(),
        injector,
        indexes: attachments.iter().map(|it| it.index).collect(),
        networks,
        inds: attachments.iter().map(|it| it.ind).collect(),
        room: room(attachments),
    };
    let told = attachments.iter().map(|it| closed::Card {
        ind: it.ind,
        address: it.address,
    });
    let mut control = ports(config.host.control_port, open.map(|it| &it.control))?;
    control.set_group_hops(CONTROL_HOPS);
    Ok((attached, OpenPorts { data, control }, told.collect()))
}

/// The same side, as capturing calls it.
pub const fn side(side: Side) -> CapturedSide {
    match side {
        Side::Destination => CapturedSide::Destination,
        Side::Source => CapturedSide::Source,
    }
}
