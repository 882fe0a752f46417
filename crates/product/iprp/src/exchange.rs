//! What the data plane and the control plane tell each other. Neither waits for the other.

use std::net::IpAddr;

use bumpless_capture::{MemberInjector, Ports};
use bumpless_iprp::{
    Group, Ind, MessageError, Mode, Monitored, Networks, PeerId, ReceiverEvent, Scope, SenderEvent,
};

use crate::closed::Kind;
use crate::members::Members;
use crate::snapshot::Snapshot;
use crate::unanswered::Change;
use crate::unheard;

/// Messages that wait, each way.
pub const LENGTH: usize = 4096;

/// The host's networks with the sockets of its data port.
#[derive(Debug)]
pub struct Attached {
    /// The sockets, by number of the card.
    pub ports: Ports,
    /// Whether the data port is given whole what comes in segments.
    pub coalesces: bool,
    /// The networks, in the same order.
    pub networks: Networks,
    /// Discriminators by number of the card.
    pub inds: Vec<Ind>,
    /// The kernel's numbers of interfaces by number of the card.
    pub indexes: Vec<u32>,
    /// Gives packets for groups to programs.
    pub injector: MemberInjector,
    /// Longest copy that leaves whole on every network, bytes behind the UDP header.
    pub room: usize,
}

impl Attached {
    /// Number of the card on this network.
    pub fn card(&self, ind: Ind) -> Option<usize> {
        self.inds.iter().position(|it| *it == ind)
    }
}

/// For the data plane.
#[derive(Debug)]
pub enum ToData {
    /// A message that the channel has authenticated.
    Message {
        /// From which process.
        peer: PeerId,
        /// Addresses that its host says it has.
        addresses: Vec<IpAddr>,
        /// For whom it is.
        kind: Kind,
        /// The message.
        message: Vec<u8>,
    },
    /// What is monitored from here on, and how packets leave.
    Monitored(Vec<Monitored>, Vec<(Monitored, Mode)>),
    /// The host's networks from here on.
    Attached(Box<Attached>),
    /// A host that has had these addresses is not believed any more.
    Disown(PeerId, Vec<IpAddr>),
    /// Of which groups programs of this host are members from here on.
    Members(Members),
    /// Secrets of groups from here on: for the sending and the receiving end.
    Groups(Vec<Group>, Vec<Group>),
    /// A snapshot is wanted.
    Snapshot,
    /// Senders are told that packets are wanted as they are; then the end.
    Stop,
}

/// For the control plane.
#[derive(Debug)]
pub enum ToControl {
    /// A message for the host at an address.
    Send {
        /// To whom.
        to: IpAddr,
        /// For which end there.
        kind: Kind,
        /// The message.
        message: Vec<u8>,
    },
    /// A message for all members of a group.
    Spread {
        /// The group.
        group: IpAddr,
        /// The message.
        message: Vec<u8>,
    },
    /// Which members are known from here on.
    MembersKnown(u64),
    /// Packets of this are captured from here on, or no more.
    Capture(Scope, bool),
    /// Something has happened at the sending end.
    Sender(SenderEvent),
    /// Something has happened at the receiving end.
    Receiver(ReceiverEvent),
    /// A network of a session has stopped answering, or answers again.
    Unanswered(Change),
    /// On a network nothing of a group comes, or something comes again.
    Unheard(unheard::Change),
    /// A message of a known process was refused.
    Refused(Vec<IpAddr>, MessageError),
    /// What was wanted.
    Snapshot(Box<Snapshot>),
    /// The end.
    Ended,
}
