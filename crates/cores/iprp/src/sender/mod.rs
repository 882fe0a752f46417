//! The sending end: what is replicated, over which networks, and whether it arrives.
//!
//! | module | owns |
//! |---|---|
//! | `peer_base`, `control` | sessions and what changes them (algorithm 3) |
//! | `path`, `liveness` | one network of a session; whether the receiver is there |
//! | `seal` | making a copy |
//! | `transmit` | replication (algorithm 4) |
//! | `failover` | what a session sends by itself: packets again on the next network, probes, and when |
//! | `feedback` | what is answered |
//! | `keep` | what is kept until it is known to have arrived |
//! | `standby` | which network carries, which ones are silent, and when they are back |
//! | `state` | the parts together, and what ends with time |

mod control;
mod failover;
mod feedback;
mod keep;
mod liveness;
mod path;
mod peer_base;
mod seal;
mod standby;
mod state;
mod transmit;

pub use seal::Copy;
pub use transmit::Replication;

use crate::counters::{Departures, Discard, SenderTotals};
use crate::event::{Origin, PeerId, SenderEvent, SessionId};
use crate::flow::{Flow, Scope};
use crate::ind::{Ind, Networks};
use crate::message::{MAX_MESSAGE, MessageError};
use crate::setup::{Group, Mode, SenderSetup, SetupError};
use alloc::vec::Vec;
use bumpless_base::{Duration, Instant};
use bumpless_secure::Suite;
use core::fmt;
use core::net::IpAddr;
use liveness::Liveness;
use peer_base::Session;
use state::State;

/// The sender of a host (iPRP, algorithms 3 and 4).
pub struct Sender<S: Suite> {
    state: State<S>,
}

/// One network of a session, for status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStatus {
    /// The network.
    pub ind: Ind,
    /// Where copies go on it.
    pub to: IpAddr,
    /// Whether this host is on it, so that copies leave.
    pub usable: bool,
    /// In [`Mode::Standby`]: whether packets leave on it.
    pub carries: bool,
    /// In [`Mode::Standby`]: whether it has stopped answering.
    pub silent: bool,
    /// What left.
    pub departures: Departures,
    /// Smoothed round trip, once one was measured.
    pub round_trip: Option<Duration>,
}

/// What status says of a session.
pub struct SenderSession<'a, S: Suite> {
    /// Its place.
    pub session: SessionId,
    inner: &'a Session<S>,
}

impl<S: Suite> SenderSession<'_, S> {
    /// What it replicates.
    pub const fn scope(&self) -> Scope {
        self.inner.scope
    }

    /// Who has asked for it.
    pub const fn peer(&self) -> PeerId {
        self.inner.peer
    }

    /// How it uses its networks.
    pub const fn mode(&self) -> Mode {
        self.inner.mode
    }

    /// Whether the receiver does not answer, so that packets leave as they are.
    pub fn is_suspended(&self) -> bool {
        self.inner.asking.liveness == Liveness::Suspended
    }

    /// Packets that may be lost and are kept; 0 unless in [`Mode::Standby`].
    pub const fn kept(&self) -> u32 {
        self.inner.standby.kept.count
    }

    /// When it ends unless it is advertised again.
    pub const fn ends(&self) -> Instant {
        self.inner.ends
    }

    /// Its networks.
    pub fn paths(&self) -> impl Iterator<Item = PathStatus> {
        let standby = &self.inner.standby;
        let is_standby = self.inner.mode == Mode::Standby;
        let paths = self.inner.paths.iter().enumerate();
        paths.filter_map(move |(at, path)| {
            path.as_ref().map(|path| PathStatus {
                ind: path.ind,
                to: path.to,
                usable: path.usable,
                carries: is_standby && standby.carrier == Some(at as u8),
                silent: standby.is_silent(at),
                departures: path.departures,
                round_trip: path.round_trip.smoothed(),
            })
        })
    }
}

impl<S: Suite> fmt::Debug for SenderSession<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SenderSession")
            .field("session", &self.session)
            .field("scope", &self.inner.scope)
            .finish_non_exhaustive()
    }
}

impl<S: Suite> Sender<S> {
    /// A sender at its start. All its memory is taken here.
    ///
    /// # Errors
    /// [`SetupError`] says what is wrong.
    pub fn new(setup: SenderSetup) -> Result<Self, SetupError> {
        State::new(setup).map(|state| Self { state })
    }

    /// The host's networks are these from here on. Sessions use those that their receivers have, too, at once. Their order is
    /// that in which they carry in [`Mode::Standby`].
    pub fn set_networks(&mut self, networks: Networks) {
        self.state.set_networks(networks);
    }

    /// Groups have these secrets from here on: the same groups, or others. What is sealed for them is sealed with the first of each at once.
    ///
    /// # Errors
    /// [`SetupError`] says what is wrong; then nothing changes.
    pub fn set_groups(&mut self, groups: Vec<Group>) -> Result<(), SetupError> {
        self.state.set_groups(groups)
    }

    /// How a session uses its networks; a session begins in [`Mode::Redundant`]. A group's stays in that.
    pub fn set_mode(&mut self, session: SessionId, mode: Mode) {
        self.state.set_mode(session.0 as usize, mode);
    }

    /// A message that a secure channel has authenticated: what a receiver advertises or withdraws. Returns the length of
    /// the answer that is to go back on the channel, 0 for none.
    ///
    /// # Errors
    /// Why it has changed nothing.
    pub fn handle_message(
        &mut self,
        now: Instant,
        from: Origin,
        message: &[u8],
        answer: &mut [u8; MAX_MESSAGE],
    ) -> Result<usize, MessageError> {
        self.state.handle_message(now, from, message, answer)
    }

    /// A packet of `flow` is to leave. `payload` is what follows its UDP header, or for other protocols its IP header.
    /// Each copy is made in `scratch`, which must have room for `payload` and [`MAX_OVERHEAD`](crate::MAX_OVERHEAD)
    /// bytes, and handed to `emit`.
    #[inline]
    pub fn replicate(
        &mut self,
        now: Instant,
        flow: &Flow,
        payload: &[u8],
        scratch: &mut [u8],
        emit: impl FnMut(Copy<'_>),
    ) -> Replication {
        self.state.replicate(now, flow, payload, scratch, emit)
    }

    /// `peer` is not believed any more: its sessions end, and their packets leave as they are.
    pub fn disown(&mut self, peer: PeerId) {
        self.state.disown(peer);
    }

    /// A datagram came at the data port that [`is_feedback`](crate::is_feedback).
    ///
    /// # Errors
    /// Why it was dropped. It has been counted, unless it was late or repeated.
    pub fn handle_feedback(&mut self, now: Instant, datagram: &mut [u8]) -> Result<(), Discard> {
        let result = self.state.handle_feedback(now, datagram);
        if result.is_err_and(|discard| discard != Discard::Duplicate) {
            self.state.totals.answers_refused += 1;
        }
        result
    }

    /// The next datagram that is to leave without a packet of an application: one that leaves again, or a question.
    /// To be called when [`poll_timeout`](Self::poll_timeout) says so, until there is none.
    pub fn poll_transmit<'a>(&mut self, now: Instant, scratch: &'a mut [u8]) -> Option<Copy<'a>> {
        self.state.poll_transmit(now, scratch)
    }

    /// When [`handle_timeout`](Self::handle_timeout) and then [`poll_transmit`](Self::poll_transmit) are to be called.
    pub fn poll_timeout(&self) -> Instant {
        self.state.poll_timeout()
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.state.handle_timeout(now);
    }

    /// What has happened.
    pub fn poll_event(&mut self) -> Option<SenderEvent> {
        self.state.events.pop()
    }

    /// Whether a packet of `flow` would be replicated.
    pub fn is_replicated(&self, flow: &Flow) -> bool {
        self.state.base.find_flow(flow).is_some()
    }

    /// All sessions, in order of their places.
    pub fn sessions(&self) -> impl Iterator<Item = SenderSession<'_, S>> {
        let all = self.state.base.iter();
        all.map(|(place, inner)| SenderSession {
            session: SessionId(place as u32),
            inner,
        })
    }

    /// The session at a place.
    pub fn session(&self, session: SessionId) -> Option<SenderSession<'_, S>> {
        let inner = self.state.base.get(session.0 as usize)?;
        Some(SenderSession { session, inner })
    }

    /// The host's networks.
    pub const fn networks(&self) -> &Networks {
        &self.state.networks
    }

    /// What is counted over all sessions.
    pub const fn totals(&self) -> &SenderTotals {
        &self.state.totals
    }

    /// A session goes on with its last `left` packet numbers. For tests of what comes after years.
    #[doc(hidden)]
    pub fn skip_to_end(&mut self, session: SessionId, left: u32) {
        if let Some(inner) = self.state.base.get_mut(session.0 as usize) {
            inner.next = inner.next.max(u32::MAX - left);
        }
    }
}

impl<S: Suite> fmt::Debug for Sender<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("networks", &self.state.networks)
            .field("sessions", &self.sessions().count())
            .finish_non_exhaustive()
    }
}
