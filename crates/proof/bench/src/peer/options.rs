//! How a peer's process is started.

use std::net::IpAddr;

use bumpless_base::Duration;

/// What carries the states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ours, as the daemon runs it, with open messages.
    Transfer,
    /// The same with a data plane that looks for packets without sleeping, on both sides.
    TransferBusy,
    /// The same as the first with protected messages, as by default.
    TransferProtected,
    /// The same, and each state with a checksum of its own.
    TransferChecksum,
    /// The same, and each state with a tag of its own.
    TransferTagged,
    /// The same, and each state enciphered by itself as well, by what is fast here.
    TransferSealed,
    /// The same with ChaCha20-Poly1305.
    TransferChacha,
    /// The kernel's TCP as it comes.
    Tcp,
    /// The kernel's TCP with the shortest timers that it offers.
    TcpTuned,
    /// The kernel's multipath TCP.
    Mptcp,
    /// TLS 1.3 over the kernel's TCP.
    TcpTls,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Transfer,
        Self::TransferBusy,
        Self::TransferProtected,
        Self::TransferChecksum,
        Self::TransferTagged,
        Self::TransferSealed,
        Self::TransferChacha,
        Self::Tcp,
        Self::TcpTuned,
        Self::Mptcp,
        Self::TcpTls,
    ];

    /// The one with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Its name among the peers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transfer => "transfer",
            Self::TransferBusy => "transfer-busy",
            Self::TransferProtected => "transfer-protected",
            Self::TransferChecksum => "transfer-checksum",
            Self::TransferTagged => "transfer-tagged",
            Self::TransferSealed => "transfer-sealed",
            Self::TransferChacha => "transfer-chacha",
            Self::Tcp => "tcp",
            Self::TcpTuned => "tcp-tuned",
            Self::Mptcp => "mptcp",
            Self::TcpTls => "tcp-tls",
        }
    }

    /// Whether it is ours.
    pub const fn is_ours(self) -> bool {
        self.is_protected_transfer() || matches!(self, Self::Transfer | Self::TransferBusy)
    }

    /// Whether it is ours with protected messages.
    pub const fn is_protected_transfer(self) -> bool {
        matches!(
            self,
            Self::TransferProtected
                | Self::TransferChecksum
                | Self::TransferTagged
                | Self::TransferSealed
                | Self::TransferChacha
        )
    }
}

/// Which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Sends states and takes orders.
    Send,
    /// Receives them.
    Receive,
}

/// What a process is told on its command line (spec/bench.md).
#[derive(Clone, Debug)]
pub struct PeerOptions {
    /// What carries the states.
    pub kind: Kind,
    /// The sender's addresses, one for each network.
    pub from: Vec<IpAddr>,
    /// The receiver's addresses, one for each network.
    pub to: Vec<IpAddr>,
    /// UDP or TCP port.
    pub port: u16,
    /// Number of channels.
    pub channels: u32,
    /// Whether each channel has a connection of its own.
    pub many: bool,
    /// Largest state, bytes.
    pub max_size: u32,
    /// Ours only: what the link carries, Mbit/s; 0 = not paced.
    pub bandwidth_mbit: u32,
    /// Ours only: whether packets are shared out over the networks instead of sent on each.
    pub spread: bool,
    /// Ours only: the channels' deadlines; the timeout where there is none.
    pub deadlines: Vec<Duration>,
}
