//! The receiving end: who sends to monitored ports, what is advertised to them, which packets are handed on.
//!
//! | module | owns |
//! |---|---|
//! | `active` | the list of active senders (algorithm 1), windows of their sequence numbers |
//! | `cycle`, `control` | advertisements and who answers them (algorithm 2) |
//! | `processes`, `key_numbers` | which keys open |
//! | `discard` | from a datagram to a packet (algorithms 5, 6) |
//! | `answers` | answers to senders that ask |
//! | `state` | the parts together, and what ends with time |

mod active;
mod answers;
mod control;
mod cycle;
mod discard;
mod key_numbers;
mod processes;
mod spaces;
mod state;

pub use answers::Feedback;
pub use control::Outgoing;

use crate::counters::{Arrivals, Discard, ReceiverTotals};
use crate::event::{Origin, PeerId, ReceiverEvent, SessionId};
use crate::flow::{Flow, Monitored, Scope};
use crate::header::FEEDBACK_LEN;
use crate::ind::{Ind, Networks};
use crate::message::{MAX_MESSAGE, MessageError};
use crate::setup::{Group, ReceiverSetup, SetupError};
use active::{Active, Standing};
use alloc::vec::Vec;
use bumpless_base::Instant;
use bumpless_secure::Suite;
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use discard::Arrival;
use state::{State, check_monitored};

/// The receiver of a host (iPRP, algorithms 1, 2, 5 and 6).
pub struct Receiver<S: Suite> {
    state: State<S>,
}

/// A packet for an application of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery<'a> {
    /// From where to where, as its application has sent it.
    pub flow: Flow,
    /// What follows the UDP header, or for other protocols the IP header.
    pub payload: &'a [u8],
    /// Its session.
    pub session: SessionId,
    /// The network on which its first copy was sent.
    pub ind: Ind,
}

/// What status says of a sender.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverSession<'a> {
    /// Its place.
    pub session: SessionId,
    active: &'a Active,
}

impl ReceiverSession<'_> {
    /// Whose packets.
    pub const fn source(&self) -> IpAddr {
        self.active.subject.source
    }

    /// Which packets.
    pub const fn scope(&self) -> Scope {
        self.active.subject.scope
    }

    /// Whether its packets are replicated; otherwise it is advertised to and has not begun.
    pub const fn is_replicated(&self) -> bool {
        self.active.begun
    }

    /// Who has authenticated itself as the sender, if somebody has.
    pub const fn peer(&self) -> Option<PeerId> {
        match self.active.standing {
            Standing::Known(peer) => peer,
            Standing::Candidate => None,
        }
    }

    /// When something of it came last.
    pub const fn last_seen(&self) -> Instant {
        self.active.last_seen
    }

    /// What came, by the network on which it was sent.
    pub fn arrivals(&self) -> impl Iterator<Item = (Ind, &Arrivals)> {
        self.active.arrivals.iter()
    }
}

impl<S: Suite> Receiver<S> {
    /// A receiver at its start. All its memory is taken here.
    ///
    /// # Errors
    /// [`SetupError`] says what is wrong.
    pub fn new(setup: ReceiverSetup, now: Instant) -> Result<Self, SetupError> {
        State::new(setup, now).map(|state| Self { state })
    }

    /// The host's networks are these from here on: every sender is told.
    pub fn set_networks(&mut self, now: Instant, networks: Networks) {
        self.state.networks = networks;
        self.state.advertise_all(now);
    }

    /// What is monitored is this from here on. Senders of what is not any more are told so.
    ///
    /// # Errors
    /// [`SetupError`] says what is wrong; then nothing changes.
    pub fn set_monitored(&mut self, monitored: &[Monitored]) -> Result<(), SetupError> {
        check_monitored(monitored)?;
        self.state.monitored.clear();
        self.state.monitored.extend_from_slice(monitored);
        self.state.withdraw(false);
        Ok(())
    }

    /// Whether [`set_groups`](Self::set_groups) would take these.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check_groups(groups: Vec<Group>) -> Result<(), SetupError> {
        state::check_groups::<S>(groups).map(drop)
    }

    /// Groups have these secrets from here on. What was sealed with a secret that is none of them is not opened, though its sender is
    /// known.
    ///
    /// # Errors
    /// [`SetupError`] says what is wrong; then nothing changes.
    pub fn set_groups(&mut self, groups: Vec<Group>) -> Result<(), SetupError> {
        self.state.set_groups(groups)
    }

    /// Number of the present key, for whoever keeps the root over a restart: the next process begins with the one after.
    pub const fn key_number(&self) -> u32 {
        self.state.numbers.present()
    }

    /// A plain packet of `flow` was seen; it goes on to its application. What is not monitored is ignored.
    pub fn handle_monitored(&mut self, now: Instant, flow: &Flow) {
        self.state.handle_monitored(now, flow);
    }

    /// A datagram came at the data port, on the network `arrived_on` if it is known, from `from`. Returns the packet
    /// that is to be handed on.
    ///
    /// # Errors
    /// Why there is none: the datagram is to be dropped. It has been counted.
    #[inline]
    pub fn handle_data<'a>(
        &mut self,
        now: Instant,
        arrived_on: Option<Ind>,
        from: SocketAddr,
        datagram: &'a mut [u8],
    ) -> Result<Delivery<'a>, Discard> {
        let arrival = Arrival {
            now,
            on: arrived_on,
            from,
        };
        match self.state.handle_data(arrival, datagram) {
            Ok(opened) => Ok(Delivery {
                flow: opened.flow,
                payload: datagram.get(opened.payload).unwrap_or_default(),
                session: opened.session,
                ind: opened.ind,
            }),
            Err(discard) => {
                self.state.totals.discarded[discard as usize] += 1;
                Err(discard)
            }
        }
    }

    /// The next control message that is due, to be sent on a secure channel to the host that it names.
    pub fn poll_advertisement(
        &mut self,
        now: Instant,
        message: &mut [u8; MAX_MESSAGE],
    ) -> Option<Outgoing> {
        self.state.poll_advertisement(now, message)
    }

    /// A message that a secure channel has authenticated: a sender's acknowledgement.
    ///
    /// # Errors
    /// Why it has changed nothing.
    pub fn handle_message(
        &mut self,
        now: Instant,
        from: Origin,
        message: &[u8],
    ) -> Result<(), MessageError> {
        self.state.handle_message(now, from, message)
    }

    /// `peer`, whose host has had `addresses`, is not believed any more: nothing that was sealed by it or at these addresses
    /// opens from here on. Of all others, what only an earlier process of this receiver knew is not opened either.
    pub fn disown(&mut self, peer: PeerId, addresses: &[IpAddr]) {
        self.state.disown(peer, addresses);
    }

    /// The next answer to a sender, to be sent from the host's data port. Its bytes are in `out`.
    pub fn poll_feedback(&mut self, out: &mut [u8; FEEDBACK_LEN]) -> Option<Feedback> {
        self.state.poll_feedback(out)
    }

    /// When [`handle_timeout`](Self::handle_timeout) and then [`poll_advertisement`](Self::poll_advertisement) are to be
    /// called.
    pub fn poll_timeout(&self) -> Instant {
        self.state.poll_timeout()
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.state.handle_timeout(now);
    }

    /// What has happened.
    pub fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.state.poll_event()
    }

    /// The driver stops: [`poll_advertisement`](Self::poll_advertisement) then gives a message for every sender that its
    /// packets are wanted as they are. Copies that come until the driver ends are still taken, each once (I-65).
    pub fn withdraw(&mut self) {
        self.state.withdraw(true);
    }

    /// All senders that are known and heard, in order of their places.
    pub fn sessions(&self) -> impl Iterator<Item = ReceiverSession<'_>> {
        let all = self.state.active.iter();
        let all = all.filter(|(_, active)| !active.silent);
        all.map(|(place, active)| ReceiverSession {
            session: SessionId(place as u32),
            active,
        })
    }

    /// The sender at a place.
    pub fn session(&self, session: SessionId) -> Option<ReceiverSession<'_>> {
        let active = self.state.active.get(session.0 as usize)?;
        Some(ReceiverSession { session, active })
    }

    /// How many senders are known, candidates included, and those to groups that are remembered in silence.
    pub fn len(&self) -> usize {
        self.state.active.len()
    }

    /// Whether no sender is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The host's networks.
    pub const fn networks(&self) -> &Networks {
        &self.state.networks
    }

    /// What is counted over all sessions.
    pub const fn totals(&self) -> &ReceiverTotals {
        &self.state.totals
    }
}

impl<S: Suite> fmt::Debug for Receiver<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("networks", &self.state.networks)
            .field("senders", &self.len())
            .finish_non_exhaustive()
    }
}
