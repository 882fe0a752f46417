//! What a driver may want to say or do: for logs, status and subscriptions.

use crate::flow::Scope;
use crate::ind::{Ind, Networks};
use core::net::IpAddr;

/// A session of a sender or receiver: the index of its place, which another one takes when it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u32);

/// Whom a driver's secure channel has authenticated, by a number of the driver's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u32);

/// The other end of a secure channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Who it is.
    pub peer: PeerId,
    /// Address at which the channel has found it, or at which a driver knows it to be.
    pub address: IpAddr,
}

/// Why a session has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndCause {
    /// No advertisement for three periods.
    NotAdvertised,
    /// Nothing was sent for the time of inactivity.
    Inactive,
    /// The receiver has withdrawn it.
    Withdrawn,
    /// No network is left that both ends have.
    NoNetwork,
    /// Its port is not monitored any more, or its group was left.
    NotMonitored,
    /// The other end is not believed any more.
    Disowned,
}

/// What has happened at a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SenderEvent {
    /// Packets of this scope are replicated from here on.
    Begun {
        /// The session.
        session: SessionId,
        /// What it replicates.
        scope: Scope,
        /// Who has asked for it.
        peer: PeerId,
    },
    /// Packets of this scope leave as they are again.
    Ended {
        /// The session.
        session: SessionId,
        /// What it replicated.
        scope: Scope,
        /// Why.
        cause: EndCause,
    },
    /// Copies leave on one network more.
    NetworkAdded {
        /// The session.
        session: SessionId,
        /// Which network.
        ind: Ind,
    },
    /// No copies leave on this network any more: several advertisements in a row have not named it, or the host has lost
    /// it.
    NetworkRemoved {
        /// The session.
        session: SessionId,
        /// Which network.
        ind: Ind,
    },
    /// The receiver has stopped answering on every network: packets leave as they are until it is heard.
    Suspended {
        /// The session.
        session: SessionId,
    },
    /// The receiver is heard again.
    Resumed {
        /// The session.
        session: SessionId,
    },
    /// In [`Mode::Standby`](crate::Mode::Standby): packets leave on another network.
    Moved {
        /// The session.
        session: SessionId,
        /// The network that had carried them.
        from: Ind,
        /// The one that carries them.
        to: Ind,
        /// Packets that left again.
        again: u32,
    },
}

/// What has happened at a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceiverEvent {
    /// An authenticated sender replicates packets of this scope.
    Begun {
        /// The session.
        session: SessionId,
        /// Whose packets.
        source: IpAddr,
        /// Which packets.
        scope: Scope,
    },
    /// Nothing of it is expected any more.
    Ended {
        /// The session.
        session: SessionId,
        /// Whose packets.
        source: IpAddr,
        /// Which packets.
        scope: Scope,
        /// Why.
        cause: EndCause,
    },
    /// A sender has named its networks: where its packets to a group come from (source-specific multicast). Of a group it is said
    /// with each acknowledgement, as members may join at any time.
    Networks {
        /// The session.
        session: SessionId,
        /// Addresses of the sender.
        networks: Networks,
    },
    /// A sender has no network that this host has.
    NoCommonNetwork {
        /// The sender.
        source: IpAddr,
        /// What it could replicate.
        scope: Scope,
    },
    /// A packet for one network came on another: cables or addresses are mixed up. Said once for a session and pair of networks.
    Miswired {
        /// The session.
        session: SessionId,
        /// The network on which it was sent.
        sent_on: Ind,
        /// The one on which it came.
        arrived_on: Ind,
    },
    /// The key has changed: whoever keeps it over a restart keeps this number.
    KeyChanged {
        /// Its number.
        number: u32,
    },
}
