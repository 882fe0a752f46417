//! What a sender and a receiver are made of: networks, periods, bounds.

use crate::flow::Monitored;
use crate::ind::Networks;
use alloc::vec::Vec;
use bumpless_base::Duration;
use bumpless_secure::Secret;
use core::fmt;
use core::net::IpAddr;

/// Most entries of [`ReceiverSetup::monitored`].
pub const MAX_MONITORED: usize = 64;
/// Most groups of a host.
pub const MAX_GROUPS: usize = 16;

/// Periods of the control plane (iPRP V).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How often a receiver advertises itself (`T_CAP`). A session ends three of them after the last advertisement.
    pub advertise_every: Duration,
    /// Longest back-off of an advertisement for a group (`D`), at most `advertise_every`.
    pub back_off: Duration,
    /// An advertisement that nobody has acknowledged is repeated after this, then after twice as long each time, at
    /// most `advertise_every`.
    pub retry: Duration,
    /// A sender of which nothing comes for this long is forgotten (`T_inactivity`).
    pub inactivity: Duration,
    /// A receiver's key changes after this, at least two periods of advertisements; past ones stay valid for four.
    pub key_lifetime: Duration,
}

impl Default for Timing {
    /// The paper's: 30 s, 10 s and 10 s; one second and an hour.
    fn default() -> Self {
        Self {
            advertise_every: Duration::from_secs(30),
            back_off: Duration::from_secs(10),
            retry: Duration::from_secs(1),
            inactivity: Duration::from_secs(10),
            key_lifetime: Duration::from_secs(3600),
        }
    }
}

/// A group and the key that its members share.
#[derive(Debug)]
pub struct Group {
    /// Its multicast address.
    pub address: IpAddr,
    /// Its secrets. The first one seals, the others open still, or already.
    pub secrets: Vec<Secret>,
}

/// Bounds of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverLimits {
    /// Senders and scopes that are replicated at once.
    pub sessions: usize,
    /// Senders that have sent something to a monitored port and shown nothing of themselves yet. They take no place of
    /// sessions.
    pub candidates: usize,
    /// By how much a packet may be overtaken and be accepted still (`MaxLost`): rounded up to a multiple of 64, at
    /// most 65,536. More than the rate times the latest useful delay.
    pub max_lost: u32,
}

impl Default for ReceiverLimits {
    fn default() -> Self {
        Self {
            sessions: 10_000,
            candidates: 1_024,
            max_lost: 1_024,
        }
    }
}

/// How a receiver begins.
#[derive(Debug)]
pub struct ReceiverSetup {
    /// The host's networks, which it advertises.
    pub networks: Networks,
    /// What is to be replicated.
    pub monitored: Vec<Monitored>,
    /// Groups whose packets it takes.
    pub groups: Vec<Group>,
    /// What its keys are derived from. Random, and never told to anybody. A driver that keeps it over a restart,
    /// together with [`Receiver::key_number`](crate::Receiver::key_number), opens what senders seal meanwhile.
    pub root: Secret,
    /// Number of the first key.
    pub key_number: u32,
    /// Periods.
    pub timing: Timing,
    /// Bounds.
    pub limits: ReceiverLimits,
    /// Random, another one at each start: back-offs, and places in tables.
    pub seed: u64,
}

/// How the packets of a session use its networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Each packet on every network (iPRP).
    #[default]
    Redundant,
    /// Each packet on one network. When it goes silent, the packets that may be lost leave again on the next one.
    Standby,
}

/// Bounds of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderLimits {
    /// Sessions at once.
    pub sessions: usize,
    /// Packets of sessions in [`Mode::Standby`] that are kept, all sessions together, until they are known to have
    /// arrived. 0 if there is no such session.
    pub kept_packets: usize,
    /// Longest packet that is kept, bytes.
    pub kept_len: usize,
}

impl Default for SenderLimits {
    fn default() -> Self {
        Self {
            sessions: 10_000,
            kept_packets: 0,
            kept_len: 1_500,
        }
    }
}

/// How a sender begins.
#[derive(Debug)]
pub struct SenderSetup {
    /// The host's networks.
    pub networks: Networks,
    /// Groups to which it sends.
    pub groups: Vec<Group>,
    /// Bounds.
    pub limits: SenderLimits,
    /// 64 random bits of the operating system's generator, others at each start: **two sealers with the same seed would use
    /// the same nonces**, which breaks the cipher.
    pub seed: u64,
}

/// Why a sender or receiver cannot begin so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupError {
    /// A bound is zero where it must not be, or beyond what numbers can tell; its name.
    Limit(&'static str),
    /// More than [`MAX_MONITORED`] entries.
    TooManyMonitored,
    /// More than [`MAX_GROUPS`] groups.
    TooManyGroups,
    /// No multicast address, or one named twice.
    Group(IpAddr),
    /// A group without a secret, with more than four, or with two of one identifier.
    GroupSecrets(IpAddr),
    /// A monitored range whose first port is above its last.
    EmptyRange(Monitored),
    /// A period is zero, `back_off` is longer than `advertise_every` or `key_lifetime` shorter than two of it; its name.
    Period(&'static str),
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit(name) => write!(f, "{name} is zero or too large: choose another bound"),
            Self::TooManyMonitored => write!(
                f,
                "more than {MAX_MONITORED} monitored ranges: join some of them"
            ),
            Self::TooManyGroups => write!(f, "more than {MAX_GROUPS} groups: leave some out"),
            Self::Group(address) => write!(
                f,
                "{address} is no multicast address or is named twice: name each group once"
            ),
            Self::GroupSecrets(address) => write!(
                f,
                "group {address} has no secret, more than four, or two alike: give it one to four"
            ),
            Self::EmptyRange(Monitored { first, last, .. }) => {
                write!(f, "ports {first} to {last}: name the lowest one first")
            }
            Self::Period(name) => write!(
                f,
                "{name} is zero, or does not fit advertise_every: back_off is at most that, key_lifetime at least twice that"
            ),
        }
    }
}

impl core::error::Error for SetupError {}
