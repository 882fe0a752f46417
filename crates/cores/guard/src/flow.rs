//! What is asked of a guard.

use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;

use bumpless_base::Duration;

use crate::frame::Transport;

/// How urgent a flow is: the priority of the task that it is for, the higher the more urgent. One scale with the priorities of
/// the scheduler's tasks (5.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub u8);

/// Which flow: the index among [`Setup::flows`], or one that every guard has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlowId {
    /// A registered one.
    Registered(u16),
    /// Finding link-layer addresses.
    Resolution,
    /// ICMP, but for echo replies that are registered.
    Icmp,
    /// Pieces of IP packets.
    Fragments,
    /// TCP and UDP to ports that nobody registered.
    Unregistered,
    /// What is not understood.
    Unknown,
}

impl FlowId {
    /// Flows that every guard has, in their order behind the registered ones.
    pub const BUILT_IN: [Self; 5] = [
        Self::Resolution,
        Self::Icmp,
        Self::Fragments,
        Self::Unregistered,
        Self::Unknown,
    ];
}

/// Which packets belong to a flow. If several match, the first of this list counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Match {
    /// To this port here, from this address.
    PortFrom(Transport, u16, IpAddr),
    /// From this address and port: what a server answers to a client here, whose own port is not known beforehand.
    Answers(Transport, IpAddr, u16),
    /// To this port here, from anywhere.
    Port(Transport, u16),
    /// What this address answers to echo requests.
    EchoReplies(IpAddr),
    /// What this address asks and answers to find link-layer addresses.
    Resolution(IpAddr),
}

impl Match {
    /// The same with an IPv4 address in IPv6's notation as the IPv4 address that it is: two that are equal so claim the same packets.
    pub fn canonical(self) -> Self {
        match self {
            Self::PortFrom(transport, port, from) => {
                Self::PortFrom(transport, port, from.to_canonical())
            }
            Self::Answers(transport, from, port) => {
                Self::Answers(transport, from.to_canonical(), port)
            }
            Self::Port(..) => self,
            Self::EchoReplies(from) => Self::EchoReplies(from.to_canonical()),
            Self::Resolution(from) => Self::Resolution(from.to_canonical()),
        }
    }
}

/// At most so many frames in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Frames in a period.
    pub capacity: u32,
    /// Its length, above zero.
    pub period: Duration,
}

/// On which terms a flow is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How urgent.
    pub priority: Priority,
    /// How many at most; `None`: as many as come.
    pub rate: Option<Rate>,
    /// So many frames wait at most; none: every frame is refused.
    pub queue: u16,
}

impl Terms {
    /// Nothing of it is received.
    pub const CLOSED: Self = Self {
        priority: Priority(0),
        rate: None,
        queue: 0,
    };
}

/// A registered flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// What belongs to it.
    pub matches: Vec<Match>,
    /// How it is received.
    pub terms: Terms,
}

impl Flow {
    /// One to which nothing belongs: the place of a flow that comes later.
    pub const NONE: Self = Self {
        matches: Vec::new(),
        terms: Terms::CLOSED,
    };
}

/// What is asked of a guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Registered flows, at most [`Setup::MAX_FLOWS`].
    pub flows: Vec<Flow>,
    /// Terms of finding link-layer addresses.
    pub resolution: Terms,
    /// Terms of ICMP.
    pub icmp: Terms,
    /// Terms of pieces of IP packets.
    pub fragments: Terms,
    /// Terms of TCP and UDP to ports that nobody registered.
    pub unregistered: Terms,
    /// Terms of what is not understood.
    pub unknown: Terms,
    /// What is received at most, of all flows together.
    pub overall: Option<Rate>,
    /// Buffers that the network's ring and the queues share.
    pub buffers: u32,
    /// So many of them stay in the ring; below, the least urgent frames are given up (5.4.3: half of all).
    pub reserve: u32,
}

impl Setup {
    /// Registered flows of one guard at most.
    pub const MAX_FLOWS: usize = 4096;
    /// Buffers of one guard at most.
    pub const MAX_BUFFERS: u32 = 1 << 20;

    /// A guard that receives nothing: the place to begin from.
    pub fn closed(buffers: u32) -> Self {
        Self {
            flows: Vec::new(),
            resolution: Terms::CLOSED,
            icmp: Terms::CLOSED,
            fragments: Terms::CLOSED,
            unregistered: Terms::CLOSED,
            unknown: Terms::CLOSED,
            overall: None,
            buffers,
            reserve: buffers / 2,
        }
    }
}

/// Why a guard cannot be set up so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupError {
    /// More flows than [`Setup::MAX_FLOWS`].
    TooManyFlows(usize),
    /// More buffers than [`Setup::MAX_BUFFERS`].
    TooManyBuffers(u32),
    /// No buffer is left for frames that wait: the reserve takes all.
    NoRoom {
        /// All buffers.
        buffers: u32,
        /// Of them kept.
        reserve: u32,
    },
    /// Two flows claim the same packets.
    Overlap {
        /// The earlier flow.
        first: u16,
        /// The later flow.
        second: u16,
        /// What both claim.
        both: Match,
    },
    /// A flow to which nothing belongs.
    NoMatch(u16),
    /// A rate without a period.
    NoPeriod(Option<FlowId>),
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooManyFlows(count) => write!(
                f,
                "{count} flows are more than {}: join those with the same terms",
                Setup::MAX_FLOWS
            ),
            Self::TooManyBuffers(count) => write!(
                f,
                "{count} buffers are more than {}: give fewer",
                Setup::MAX_BUFFERS
            ),
            Self::NoRoom { buffers, reserve } => write!(
                f,
                "of {buffers} buffers {reserve} are kept for the ring, so that no frame can wait: keep fewer"
            ),
            Self::Overlap {
                first,
                second,
                both,
            } => write!(
                f,
                "flows {first} and {second} both claim {both:?}: name it in one of them"
            ),
            Self::NoMatch(flow) => write!(
                f,
                "nothing belongs to flow {flow}: name a port or take the flow out"
            ),
            Self::NoPeriod(Some(flow)) => {
                write!(
                    f,
                    "the rate of {flow:?} has the period 0: give a longer one"
                )
            }
            Self::NoPeriod(None) => {
                write!(f, "the overall rate has the period 0: give a longer one")
            }
        }
    }
}

impl core::error::Error for SetupError {}
