//! What carries messages between a control centre and a substation.

use bumpless_wan::emulation::Line;

/// How a flow is protected: by iPRP at its hosts, or by the transfer of states itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// On all networks at once.
    Redundant,
    /// On one, and on the next when that is silent.
    Standby,
}

/// Which socket the programs have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Socket {
    /// The kernel's TCP.
    Tcp,
    /// The kernel's multipath TCP.
    Mptcp,
    /// UDP.
    Udp,
    /// QUIC over one path.
    Quic,
    /// QUIC over both paths at once.
    MultipathQuic,
    /// SCTP between hosts with two addresses each.
    Sctp,
    /// Channels of a pair of controllers: what is sent is a state, and what comes back its acknowledgement.
    State,
}

impl Socket {
    /// The program that has it, which is built apart (`spec/wan.md`, U-58). `None`: the kernel.
    pub const fn program(self) -> Option<&'static str> {
        match self {
            Self::Tcp | Self::Mptcp | Self::Udp | Self::State => None,
            Self::Quic => Some("echo-quinn"),
            Self::MultipathQuic => Some("echo-tquic"),
            Self::Sctp => Some("echo-usrsctp"),
        }
    }

    /// The protocol of its packets, as a daemon's rules name it.
    pub const fn protocol(self) -> &'static str {
        match self {
            Self::Tcp | Self::Mptcp => "tcp",
            // SCTP in user space is in datagrams (RFC 6951).
            Self::Udp | Self::Quic | Self::MultipathQuic | Self::Sctp | Self::State => "udp",
        }
    }
}

/// A transport with its settings.
#[derive(Debug, PartialEq, Eq)]
pub struct Transport {
    /// Its name on the command line and in results.
    pub name: &'static str,
    /// What people read.
    pub title: &'static str,
    /// The socket.
    pub socket: Socket,
    /// Whether TLS 1.3 is on it.
    pub tls: bool,
    /// Whether the program itself goes to the backup when an answer is late.
    pub reconnects: bool,
    /// How it is protected, if it is.
    pub protection: Option<Protection>,
    /// Where the substation listens.
    pub port: u16,
    /// Which row of the paper's table I it is, if it is in it.
    pub paper: Option<u8>,
}

const fn plain(
    name: &'static str,
    title: &'static str,
    (socket, tls): (Socket, bool),
    (port, paper): (u16, u8),
) -> Transport {
    Transport {
        name,
        title,
        socket,
        tls,
        reconnects: !matches!(socket, Socket::Mptcp),
        protection: None,
        port,
        paper: Some(paper),
    }
}

/// What the paper did not measure and somebody would take.
const fn further(
    name: &'static str,
    title: &'static str,
    (socket, tls): (Socket, bool),
    port: u16,
) -> Transport {
    Transport {
        reconnects: false,
        paper: None,
        ..plain(name, title, (socket, tls), (port, 0))
    }
}

const fn ours(
    name: &'static str,
    title: &'static str,
    (socket, tls): (Socket, bool),
    (protection, port): (Protection, u16),
) -> Transport {
    Transport {
        name,
        title,
        socket,
        tls,
        reconnects: false,
        protection: Some(protection),
        port,
        paper: None,
    }
}

impl Transport {
    /// How daemons of iPRP at both hosts protect it, if they do.
    pub fn by_daemons(&self) -> Option<Protection> {
        self.protection.filter(|_| self.socket != Socket::State)
    }

    /// Whether it may use the backup while the network is whole: it sends on both, or takes the quicker one.
    pub const fn spreads(&self) -> bool {
        matches!(self.protection, Some(Protection::Redundant))
            || matches!(self.socket, Socket::Mptcp | Socket::MultipathQuic)
    }
}

/// Every transport, in the order in which they are shown.
pub const ALL: [Transport; 14] = [
    plain("tcp", "TCP", (Socket::Tcp, false), (4801, 1)),
    plain("tcp-tls", "TCP, TLS 1.3", (Socket::Tcp, true), (4802, 2)),
    plain("quic", "QUIC", (Socket::Quic, true), (4805, 3)),
    plain("mptcp", "MPTCP v1", (Socket::Mptcp, false), (4803, 6)),
    plain(
        "mptcp-tls",
        "MPTCP v1, TLS 1.3",
        (Socket::Mptcp, true),
        (4804, 7),
    ),
    further(
        "quic-multipath",
        "Multipath QUIC, redundant",
        (Socket::MultipathQuic, true),
        4806,
    ),
    further("sctp", "SCTP, two addresses", (Socket::Sctp, false), 4807),
    ours(
        "redundant-tcp",
        "TCP under iPRP redundant",
        (Socket::Tcp, false),
        (Protection::Redundant, 4811),
    ),
    ours(
        "redundant-tls",
        "TCP, TLS 1.3 under iPRP redundant",
        (Socket::Tcp, true),
        (Protection::Redundant, 4812),
    ),
    ours(
        "redundant-udp",
        "UDP under iPRP redundant",
        (Socket::Udp, false),
        (Protection::Redundant, 4813),
    ),
    ours(
        "standby-tcp",
        "TCP under iPRP standby",
        (Socket::Tcp, false),
        (Protection::Standby, 4821),
    ),
    ours(
        "standby-tls",
        "TCP, TLS 1.3 under iPRP standby",
        (Socket::Tcp, true),
        (Protection::Standby, 4822),
    ),
    ours(
        "standby-udp",
        "UDP under iPRP standby",
        (Socket::Udp, false),
        (Protection::Standby, 4823),
    ),
    ours(
        "state",
        "State transfer",
        (Socket::State, false),
        (Protection::Redundant, 4840),
    ),
];

/// The transport of this name.
pub fn named(name: &str) -> Option<&'static Transport> {
    ALL.iter().find(|it| it.name == name)
}

/// The name of a kind of backup, in results.
pub const fn line_name(line: Line) -> &'static str {
    match line {
        Line::Ethernet => "ethernet",
        Line::Lte => "lte",
    }
}

/// What people read of a kind of backup.
pub const fn line_title(line: Line) -> &'static str {
    match line {
        Line::Ethernet => "Ethernet-like",
        Line::Lte => "LTE-like",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ports_are_told_apart_and_table_i_is_as_the_paper_has_it() {
        for (place, one) in ALL.iter().enumerate() {
            assert_eq!(named(one.name), Some(one));
            let others = &ALL[place + 1..];
            assert!(others.iter().all(|it| it.port != one.port));
        }
        let rows: Vec<_> = ALL
            .iter()
            .filter_map(|it| Some((it.paper?, it.socket, it.tls, it.reconnects)))
            .collect();
        assert_eq!(
            rows,
            [
                (1, Socket::Tcp, false, true),
                (2, Socket::Tcp, true, true),
                (3, Socket::Quic, true, true),
                (6, Socket::Mptcp, false, false),
                (7, Socket::Mptcp, true, false),
            ]
        );
    }
}
