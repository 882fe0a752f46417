//! Replication: copies of packets of applications (iPRP, algorithm 4), on all networks or on the one that carries.

use super::failover::choose;
use super::liveness::Liveness;
use super::peer_base::Session;
use super::seal::{Content, Copy, copy_len, note_sent};
use super::standby::PROBE_EVERY;
use super::state::State;
use crate::flow::Flow;
use crate::header::PROBE;
use crate::ind::MAX_NETWORKS;
use crate::setup::Mode;
use bumpless_base::Instant;
use bumpless_secure::Suite;

/// What has become of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// Copies were handed out. The packet itself is to be dropped.
    Copies {
        /// How many, at least one.
        count: usize,
        /// In [`Mode::Standby`]: it is kept, and leaves again on another network if nothing comes of this copy. Otherwise nobody but
        /// the driver has it.
        kept: bool,
    },
    /// It is in no session, or is too long, or the receiver does not answer: it leaves as it is.
    Unreplicated,
}

impl<S: Suite> State<S> {
    #[inline]
    pub(crate) fn replicate(
        &mut self,
        now: Instant,
        flow: &Flow,
        payload: &[u8],
        scratch: &mut [u8],
        emit: impl FnMut(Copy<'_>),
    ) -> Replication {
        let Some(place) = self.base.find_flow(flow) else {
            self.totals.unreplicated += 1;
            return Replication::Unreplicated;
        };
        if copy_len(flow, payload.len(), false) > scratch.len()
            || flow.protocol == PROBE
            || !flow.is_sound()
        {
            self.totals.too_long += 1;
            return Replication::Unreplicated;
        }
        if !self.is_there(now, place, flow) || !self.make_number(place) {
            self.totals.suspended += 1;
            return Replication::Unreplicated;
        }
        let Some(session) = self.base.get_mut(place) else {
            return Replication::Unreplicated;
        };
        let content = Content {
            flow,
            payload,
            probe: false,
            space: session.space,
            number: session.next,
            ask: !session.sealing.group && session.asking.is_due(now),
        };
        let (count, kept) = match session.mode {
            Mode::Redundant => {
                let count = send_on_all(session, now, &content, scratch, emit);
                if content.ask {
                    self.await_answer(place);
                }
                (count, false)
            }
            Mode::Standby => self.send_on_one(now, place, &content, scratch, emit),
        };
        if count == 0 {
            self.totals.unreplicated += 1;
            return Replication::Unreplicated;
        }
        if let Some(session) = self.base.get_mut(place) {
            session.next += 1;
        }
        self.totals.replicated += 1;
        self.totals.copies += count as u64;
        Replication::Copies { count, kept }
    }

    /// Whether the receiver of the session at `place` is there, as far as is known.
    #[inline]
    fn is_there(&mut self, now: Instant, place: usize, flow: &Flow) -> bool {
        let Some(session) = self.base.get_mut(place) else {
            return false;
        };
        session.last_flow = Some((*flow, now));
        if session.asking.liveness == Liveness::Suspended {
            self.wake_earlier(place, now);
            return false;
        }
        if !session.asking.has_lapsed(now) {
            return true;
        }
        self.suspend(place);
        self.wake_earlier(place, now);
        false
    }

    /// A packet has asked on all networks: if neither an answer nor another packet comes, probes ask.
    fn await_answer(&mut self, place: usize) {
        let session = self.base.get(place);
        if let Some(at) = session.and_then(|session| session.asking.next_probe()) {
            self.wake_earlier(place, at);
        }
    }

    fn wake_earlier(&mut self, place: usize, at: Instant) {
        let is_set = self.base.wake_of(place).is_some_and(|wake| wake <= at);
        if !is_set {
            self.base.set_wake(place, Some(at));
        }
    }

    /// In standby: on the path that carries. It asks, and is kept, if it could leave again elsewhere: a thin network that is the
    /// last one carries no answers to speak of. How many copies left, and whether it is kept and has somewhere else to go.
    fn send_on_one(
        &mut self,
        now: Instant,
        place: usize,
        content: &Content<'_>,
        scratch: &mut [u8],
        mut emit: impl FnMut(Copy<'_>),
    ) -> (usize, bool) {
        let own = self.networks;
        let Some(session) = self.base.get_mut(place) else {
            return (0, false);
        };
        let carrier = session.standby.carrier.map(usize::from);
        let carrier = carrier.filter(|&at| session.path_at(at).is_some_and(|path| path.usable));
        let Some(carrier) = carrier.or_else(|| choose(session, &own, None)) else {
            return (0, false);
        };
        session.standby.carrier = Some(carrier as u8);
        let is_in_doubt = session.standby.is_in_doubt(now, carrier);
        let content = Content {
            ask: content.ask || is_in_doubt || has_next(session, carrier),
            ..*content
        };
        let Some(copy) = session.seal_on(carrier, &content, scratch) else {
            return (0, false);
        };
        emit(copy);
        note_sent(session, carrier, now, &content, false);
        if !content.ask {
            return (1, false);
        }
        session.asking.ask(now);
        let is_elsewhere = session.usable().any(|(at, _)| at != carrier);
        let what = (content.flow, content.payload);
        let kept = self.keep.keep(
            &mut session.standby.kept,
            what,
            content.number,
            (carrier as u8, now),
        );
        self.totals.not_kept += u64::from(!kept);
        let session = self.base.get(place);
        let path = session.and_then(|session| session.path_at(carrier));
        let timeout = path.map_or(PROBE_EVERY, |path| path.round_trip.timeout());
        self.wake_earlier(place, now + timeout);
        (1, kept && is_elsewhere)
    }
}

/// Whether there is another path than `carrier` that may carry what that one loses.
fn has_next<S: Suite>(session: &Session<S>, carrier: usize) -> bool {
    let mut paths = session.usable();
    paths.any(|(at, _)| at != carrier && session.standby.may_answer(at))
}

/// One copy on every path.
#[inline]
fn send_on_all<S: Suite>(
    session: &mut Session<S>,
    now: Instant,
    content: &Content<'_>,
    scratch: &mut [u8],
    mut emit: impl FnMut(Copy<'_>),
) -> usize {
    let mut copies = 0;
    for at in 0..MAX_NETWORKS {
        if !session.path_at(at).is_some_and(|path| path.usable) {
            continue;
        }
        if let Some(copy) = session.seal_on(at, content, scratch) {
            emit(copy);
            copies += 1;
            note_sent(session, at, now, content, false);
        }
    }
    if content.ask && copies > 0 {
        session.asking.ask(now);
    }
    copies
}
