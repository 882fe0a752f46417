//! iPRP: any application's packets over several networks at once, without I/O or clock.
//!
//! The parallel redundancy protocol for IP networks (Popovic, Mohiuddin, Tomozei, Le Boudec, IEEE Transactions on
//! Industrial Informatics 12(5), 2016). `spec/iprp.md` has the clauses (I-1, I-2, ...). A [`Receiver`] finds who sends to
//! monitored ports and advertises its networks and a key; a [`Sender`] replicates what is in a session that was
//! advertised to it, one sealed copy for each network that both have; the receiver hands on the first copy of each packet.
//!
//! # How a driver uses it
//!
//! Sending host:
//! - each outgoing packet that could be in a session: [`Sender::replicate`]. It hands out the copies to be sent to the
//!   peer's data port, or says that the packet leaves as it was.
//! - each message that its secure channel has authenticated: [`Sender::handle_message`]. The answer goes back on that channel;
//!   about a group, to every member.
//! - each datagram at its own data port: [`Sender::handle_feedback`] (what a receiver answers; two hosts that send to
//!   each other have both cores at one port: [`is_feedback`] tells whose it is).
//! - [`Sender::poll_timeout`], [`Sender::handle_timeout`], [`Sender::poll_transmit`] (standby), [`Sender::poll_event`].
//!
//! Receiving host:
//! - each plain packet to a monitored port (it goes on to its application): [`Receiver::handle_monitored`].
//! - each datagram at the data port: [`Receiver::handle_data`]. It hands out the packet to be delivered.
//! - [`Receiver::poll_advertisement`] until there is none: a message for the host at an address, to be sent on a secure
//!   channel to it, which the driver opens if it has none. What comes back: [`Receiver::handle_message`].
//! - [`Receiver::poll_feedback`] after data; [`Receiver::poll_timeout`], [`Receiver::handle_timeout`], [`Receiver::poll_event`].
//!
//! What is carried of a packet: of UDP what follows its header, of all other protocols what follows the IP header
//! ([`ports`] reads the ports of those). The ends rebuild the rest from [`Flow`]; checksums are the driver's.
//!
//! # Who is believed
//!
//! Packets that open with a key of the session, and messages that a driver's secure channel has authenticated. Whatever else
//! comes changes nothing, but for plain packets to monitored ports: those make a candidate, in a table of its own that
//! is bounded in size and time, and cost one advertisement at most, to be sent on a secure channel.
//!
//! | module | owns |
//! |---|---|
//! | `flow`, `ind` | whose packets, which networks |
//! | `header`, `message` | bytes of packets and of control messages |
//! | `keys` | keys of receivers and groups, their identifiers |
//! | `window` | which sequence numbers have come (algorithm 6) |
//! | `receiver` | active senders (algorithm 1), advertisements (2), discard (5) |
//! | `sender` | the peer base (algorithm 3), replication (4), standby |
//! | `index`, `back_off` | finding sessions, the back-off of V-F |
//!
//! After construction nothing is allocated.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod back_off;
mod counters;
mod event;
mod flow;
mod header;
mod ind;
mod index;
mod keys;
mod message;
mod receiver;
mod sender;
mod setup;
mod slab;
mod trials;
mod window;

pub use counters::{Arrivals, Departures, Discard, ReceiverTotals, SenderTotals};
pub use event::{EndCause, Origin, PeerId, ReceiverEvent, SenderEvent, SessionId};
pub use flow::{Flow, Monitored, Scope, Side, TCP, UDP, ports};
pub use header::{FEEDBACK_LEN, MAX_OVERHEAD, MAX_OVERHEAD_IPV4, is_feedback};
pub use ind::{Ind, MAX_NETWORKS, Network, Networks, NetworksError};
pub use message::{MAX_MESSAGE, MessageError, group_of_message};
pub use receiver::{Delivery, Feedback, Outgoing, Receiver, ReceiverSession};
pub use sender::{Copy, PathStatus, Replication, Sender, SenderSession};
pub use setup::{
    Group, MAX_GROUPS, MAX_MONITORED, Mode, ReceiverLimits, ReceiverSetup, SenderLimits,
    SenderSetup, SetupError, Timing,
};
