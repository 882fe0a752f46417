//! The file of a host: which networks it has, which ports are protected, and with what its messages are.

mod check;
mod prefix;
mod schema;
mod shapes;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use bumpless_base::Duration;
use bumpless_config::reading::Reader;
use bumpless_config::{Problem, read_configuration};
use bumpless_iprp::{Ind, Mode, Monitored};

pub use prefix::Prefix;
pub use schema::sample;

/// What a host's file says.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The host itself.
    pub host: Host,
    /// What protects its messages to other hosts.
    pub security: Security,
    /// Periods.
    pub timing: Timing,
    /// Bounds.
    pub limits: Limits,
    /// Rules that say which of the host's addresses is on which network.
    pub networks: Vec<NetworkRule>,
    /// What is protected.
    pub monitors: Vec<Monitor>,
    /// Groups to which this host sends, or in which it has programs.
    pub groups: Vec<Group>,
}

/// The host itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// UDP port, and with certificates TCP port, at which hosts tell each other what to send.
    pub control_port: u16,
    /// UDP port at which copies arrive.
    pub data_port: u16,
    /// Number of the kernel's queue for outgoing packets, and of its group for incoming ones.
    pub queue: u16,
    /// How outgoing packets are captured.
    pub capture: Capture,
    /// Path of the socket for status; `None`: the usual one.
    pub socket: Option<PathBuf>,
}

/// How outgoing packets are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// By the kernel's queue.
    Queue,
    /// Datagrams by the ring, where the host has it.
    Ring,
}

/// What protects messages between hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Security {
    /// Files with a secret that all hosts share, as `bumpless key new` makes them. The first one seals.
    Keys(Vec<PathBuf>),
    /// A certificate for each host.
    Certificates {
        /// The folder with that of this host, as `bumpless pki issue` makes it.
        folder: PathBuf,
        /// Which hosts of its group are let in; `None`: all.
        peers: Option<Vec<String>>,
    },
}

/// Periods (iPRP V).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How often a receiver advertises itself.
    pub advertise_every: Duration,
    /// A sender of which nothing comes for this long is forgotten.
    pub inactivity: Duration,
    /// A key for data lasts for this long.
    pub key_lifetime: Duration,
}

/// Bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sessions at once, each way.
    pub sessions: usize,
    /// By how many packets a packet may be overtaken and still be accepted.
    pub max_lost: u32,
}

/// Which of the host's addresses is on which network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkRule {
    /// The network's discriminator.
    pub ind: Ind,
    /// Which address is meant.
    pub rule: Rule,
    /// Its line in the file.
    pub line: usize,
}

/// Which address of a host is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// That of the interface with this name: the first one of IPv4, or else of IPv6.
    Interface(String),
    /// That in these addresses.
    Prefix(Prefix),
    /// That of which a name in the hosts file is like this, where `*` stands for anything.
    Name(String),
}

/// What is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitor {
    /// Packets that are replicated when they come to this host.
    pub watched: Vec<Monitored>,
    /// How packets of such flows use the networks when they leave this host.
    pub mode: Mode,
    /// Its line in the file.
    pub line: usize,
}

/// A multicast group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its address.
    pub address: IpAddr,
    /// Files with the secret that its hosts share. The first one seals.
    pub keys: Vec<PathBuf>,
    /// Its line in the file.
    pub line: usize,
}

impl Config {
    /// Reads and checks `text`, which messages call `name`.
    ///
    /// # Errors
    /// Everything that is wrong, each with its line and what would be right.
    pub fn parse(text: &str, name: &str) -> Result<Self, Vec<Problem>> {
        let mut reader = Reader::new(name, text);
        let file = schema::read(&mut reader, text);
        let config = file.and_then(|file| check::resolve(&mut reader, &file));
        config.ok_or_else(|| reader.into_problems())
    }

    /// Reads and checks the file at `path`.
    ///
    /// # Errors
    /// As [`Config::parse`]; also if there is no such file that can be read.
    pub fn load(path: &Path) -> Result<Self, Vec<Problem>> {
        Self::parse(&read_configuration(path)?, &path.display().to_string())
    }

    /// All packets that are watched on their way in.
    pub fn watched(&self) -> Vec<Monitored> {
        self.monitors
            .iter()
            .flat_map(|monitor| monitor.watched.iter().copied())
            .collect()
    }
}
