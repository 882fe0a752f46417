//! What can go wrong in the world. Positions are those of the configuration.

use bumpless_wire::heartbeat_len;

/// One end of a path: nodes first, then reference points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A controller.
    Node(usize),
    /// A witness.
    Reference(usize),
}

/// The paths that a fault concerns; `None` is all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// The network.
    pub network: Option<usize>,
    /// The sender.
    pub from: Option<End>,
    /// The receiver.
    pub to: Option<End>,
    /// The other direction as well.
    pub both: bool,
}

/// The datagrams that a fault concerns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// Every one.
    #[default]
    All,
    /// The first packet of each state.
    First,
    /// The last packet of each state.
    Last,
    /// State packets between first and last.
    Middle,
    /// Acknowledgements.
    Acknowledgements,
    /// Heartbeats.
    Heartbeats,
    /// Requests to witnesses and their answers.
    Witness,
}

/// The model of Gilbert and Elliott, by datagram: bursts begin and end, and datagrams are lost in them and between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// Probability that a burst begins with a datagram.
    pub enter: f64,
    /// Probability that it ends with a datagram.
    pub leave: f64,
    /// Share that is lost in a burst.
    pub within: f64,
    /// Share that is lost between bursts.
    pub between: f64,
}

/// A field of a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// When it was sent.
    SentAt,
    /// The highest `SentAt` heard.
    LeaseEcho,
    /// The epoch of the first group entry.
    Epoch,
}

impl Field {
    /// How many bits it has.
    pub const fn bits(self) -> u8 {
        match self {
            Self::SentAt | Self::LeaseEcho => 64,
            Self::Epoch => 32,
        }
    }

    /// Where it begins in a heartbeat (`spec/wire.md`, W-21 and W-25).
    pub const fn offset(self) -> usize {
        match self {
            Self::SentAt => 52,
            Self::LeaseEcho => 68,
            Self::Epoch => heartbeat_len(0) + 5,
        }
    }
}

/// What happens to the datagrams of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PathFault {
    /// None passes.
    Cut,
    /// This share of a class is lost, independently.
    Loss {
        /// 0 to 1.
        share: f64,
        /// Which.
        class: Class,
    },
    /// Losses come in bursts.
    Bursts(Bursts),
    /// Who has the network keeps all of them, and lets them through at the end of the fault, in order.
    Hold,
    /// It takes longer.
    Delay {
        /// Added to every datagram, nanoseconds.
        by: u64,
        /// Added at random, at most; keeps the order.
        jitter: u64,
    },
    /// This share comes twice.
    Duplicate {
        /// 0 to 1.
        share: f64,
    },
    /// This share is overtaken.
    Reorder {
        /// 0 to 1.
        share: f64,
        /// By how much it is late, at most.
        by: u64,
    },
    /// One to four bits turn over in this share of a class; UDP's checksum finds it unless `unnoticed`.
    Corrupt {
        /// 0 to 1.
        share: f64,
        /// Behind the checksum's back.
        unnoticed: bool,
        /// Which.
        class: Class,
        /// Only this bit, counted from the lowest, of this field of heartbeats.
        bit: Option<(Field, u8)>,
    },
    /// What is longer does not pass, and nobody is told.
    Mtu {
        /// Bytes of a datagram, without its UDP and IP headers.
        bytes: usize,
    },
    /// This share loses its end.
    Truncate {
        /// 0 to 1.
        share: f64,
    },
    /// The sender's interface becomes this slow, bit/s.
    Bandwidth {
        /// More than zero.
        bits: u64,
    },
    /// Cut in the second half of each period.
    Flap {
        /// Nanoseconds.
        period: u64,
    },
}

/// What is thrown at a node's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Junk {
    /// Random bytes from an address that is nobody's.
    Noise,
    /// From the partner's address: random bytes, or what it sent before with a few bytes changed.
    Forged,
    /// What was sent before, also in earlier sessions, from its true source.
    Replay,
    /// What was sent before on another network or to somebody else, from the partner's address.
    Redirected,
    /// What was sent before, out of its envelope, with a few bytes changed or none: what a node would take that can be brought to
    /// do without protection.
    Stripped,
    /// The front of something that was sent before and the rest of something else.
    Spliced,
    /// What was sent before as if it were of an earlier version, in its envelope or out of it.
    Downgraded,
}

/// What a witness says that has the keys and lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// It grants everything to everybody, and says that nobody holds the role and no state is old.
    Grants,
    /// It says that every state is old.
    Old,
    /// It says that no state is old.
    Fresh,
    /// It says what it said before.
    Repeats,
}

/// What the packets of a flood are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// The node's own port.
    DataPort,
    /// A port at which nobody listens.
    ClosedPort,
    /// Nothing that is known before it is put together: pieces of IP packets.
    Fragments,
    /// Echo replies that nobody asked for.
    Icmp,
    /// Whoever is on the network: broadcasts of address resolution.
    Resolution,
}

/// In what a configuration differs from the partner's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The first application has a period longer by a tenth.
    Period,
    /// There is one application more.
    Application,
    /// Each group lacks its first reference point, or has its only one at another address.
    References,
    /// Every application has its field device at another address, where another one answers.
    Field,
}

/// One fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// On the way between nodes and witnesses.
    Path {
        /// Where.
        paths: Paths,
        /// What.
        fault: PathFault,
    },
    /// Datagrams that nobody should send.
    Junk {
        /// Through which network.
        network: usize,
        /// To which node or witness.
        to: End,
        /// Datagrams in a second.
        rate: u64,
        /// Of which kind.
        kind: Junk,
    },
    /// Packets without end at an interface of a node, of which the node's process need not see any.
    Flood {
        /// Through which network.
        network: usize,
        /// To which node.
        node: usize,
        /// What for.
        aim: Aim,
        /// From the partner's address in place of a stranger's.
        forged: bool,
        /// Packets in a second.
        rate: u64,
        /// Bytes of each behind its headers.
        bytes: usize,
    },
    /// A node's receive buffers hold no more than this.
    Buffer {
        /// The node.
        node: usize,
        /// Bytes.
        bytes: usize,
    },
    /// A node's own interface refuses to send.
    Unreachable {
        /// The node.
        node: usize,
        /// The network.
        network: usize,
    },
    /// Every thread of a node stands still.
    Pause {
        /// The node.
        node: usize,
        /// In the middle of a turn of the data plane, after it has received.
        in_turn: bool,
    },
    /// A node's process ends at once, and starts again at the end of the fault.
    Crash {
        /// The node.
        node: usize,
        /// The computer restarts, too: its clock has a new origin.
        reboot: bool,
    },
    /// A node's process is restarted with a configuration that has since been changed, and at the
    /// end of the fault with the right one.
    OldConfiguration {
        /// The node.
        node: usize,
    },
    /// A node's process is restarted with a configuration that differs from its partner's, and at the end of the
    /// fault with the right one.
    WrongConfiguration {
        /// The node.
        node: usize,
        /// In what.
        what: Wrong,
    },
    /// Every thread of a node goes on later by up to this.
    Slow {
        /// The node.
        node: usize,
        /// Nanoseconds.
        by: u64,
    },
    /// A node's clock runs at another rate.
    Clock {
        /// The node or witness.
        end: End,
        /// Parts per billion fast.
        ppb: i64,
        /// So far it jumps ahead at the beginning, nanoseconds.
        ahead: u64,
    },
    /// A witness process ends at once, and starts again, without memory, at the end of the fault.
    Witness {
        /// The reference point.
        reference: usize,
    },
    /// A witness lies, with its own keys.
    Liar {
        /// The reference point.
        reference: usize,
        /// What it says.
        lie: Lie,
    },
    /// A field device does not answer.
    Device {
        /// The application.
        application: usize,
        /// Only this node's requests.
        node: Option<usize>,
        /// What was asked meanwhile is done when it goes on; else it is never done.
        late: bool,
    },
    /// An application takes longer to execute.
    SlowApplication {
        /// The node.
        node: usize,
        /// The application.
        application: usize,
        /// Nanoseconds.
        by: u64,
        /// Each execution by another time, up to this.
        jumps: bool,
    },
    /// The program of an application fails in each execution, when it has done half of its work.
    Program {
        /// On which node.
        node: usize,
        /// The application.
        application: usize,
        /// It had no processor, in place of failing by itself.
        starved: bool,
    },
    /// Somebody asks a node to change to another configuration ([`crate::variants`]); if it has one
    /// prepared, to give that up.
    Apply {
        /// The node.
        node: usize,
        /// Which.
        number: usize,
    },
    /// A node's process ends at once when it has taken so many further steps in changing its
    /// configuration, and starts again at the end of the fault.
    CrashInChange {
        /// The node.
        node: usize,
        /// Steps that it still takes.
        steps: u32,
    },
    /// All partners agree on another key for their messages, again and again.
    Keys {
        /// Between two keys, nanoseconds.
        every: u64,
    },
    /// Somebody orders a hand-over.
    Switchover {
        /// On which node.
        node: usize,
        /// Of which group.
        group: usize,
    },
}

/// A fault and its time, nanoseconds of true time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    /// When it begins.
    pub at: u64,
    /// When it ends; `at` for what only happens once.
    pub until: u64,
    /// What.
    pub fault: Fault,
}

impl Fault {
    /// Whether it happens at one instant and leaves nothing to end.
    pub fn is_instant(&self) -> bool {
        matches!(self, Self::Switchover { .. } | Self::Apply { .. })
    }

    /// Whether the pair must bear it for ever: datagrams that nobody sent, unless they are forged, and other keys.
    pub fn must_do_no_harm(&self) -> bool {
        matches!(
            self,
            Self::Junk { .. } | Self::Flood { forged: false, .. } | Self::Keys { .. }
        )
    }

    /// The network, if it is a fault of one network alone.
    pub fn network(&self) -> Option<usize> {
        match self {
            Self::Path { paths, .. } => paths.network,
            Self::Unreachable { network, .. }
            | Self::Junk { network, .. }
            | Self::Flood { network, .. } => Some(*network),
            _ => None,
        }
    }

    /// How long after its end it is still felt: what it has delayed arrives, or goes on, nanoseconds.
    pub fn outlasts_by(&self) -> u64 {
        match *self {
            Self::Path {
                fault: PathFault::Delay { by, jitter },
                ..
            } => by + jitter,
            Self::Path {
                fault: PathFault::Reorder { by, .. },
                ..
            } => by,
            Self::Slow { by, .. } | Self::SlowApplication { by, .. } => by,
            _ => 0,
        }
    }

    /// Whether its end starts something again, so that it makes sense without a duration.
    pub fn restarts(&self) -> bool {
        matches!(
            self,
            Self::Crash { .. }
                | Self::OldConfiguration { .. }
                | Self::WrongConfiguration { .. }
                | Self::Witness { .. }
        )
    }

    /// The node that it restarts with another configuration.
    pub fn reconfigures(&self) -> Option<usize> {
        match self {
            Self::OldConfiguration { node } | Self::WrongConfiguration { node, .. } => Some(*node),
            _ => None,
        }
    }
}
