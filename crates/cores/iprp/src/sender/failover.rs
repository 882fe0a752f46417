//! What a session sends by itself: packets again on the next network when one falls silent, probes of those that carry nothing, and
//! of all while the receiver does not answer.

use super::keep::Kept;
use super::liveness::Liveness;
use super::peer_base::Session;
use super::seal::{Content, Copy, note_sent};
use super::standby::{MAX_TRIES, PROBATION, PROBE_EVERY, Unanswered};
use super::state::State;
use crate::event::{SenderEvent, SessionId};
use crate::ind::{Ind, MAX_NETWORKS, Networks};
use crate::setup::Mode;
use bumpless_base::{Duration, Instant};
use bumpless_secure::Suite;

/// Without packets for this long, networks that carry nothing are not asked.
const IDLE: Duration = Duration::from_secs(5);

impl<S: Suite> State<S> {
    /// The next datagram that leaves without a packet of an application.
    pub(crate) fn poll_transmit<'a>(
        &mut self,
        now: Instant,
        scratch: &'a mut [u8],
    ) -> Option<Copy<'a>> {
        while let Some((at, place)) = self.base.next_wake()
            && at <= now
        {
            let session = self.base.get(place);
            if session.is_some_and(|session| session.asking.has_lapsed(now)) {
                self.suspend(place);
            }
            self.judge_silence(now, place);
            let next = self.next_again(place).map(Leaving::Again);
            let next = next.or_else(|| self.next_probe(now, place).map(Leaving::Probe));
            match next {
                Some(Leaving::Again(slot)) => {
                    if let Some((len, ind, to)) = self.send_again(now, place, slot, scratch) {
                        let bytes = scratch.get(..len)?;
                        return Some(Copy { ind, to, bytes });
                    }
                }
                Some(Leaving::Probe(path)) => {
                    if let Some((len, ind, to)) = self.send_probe(now, place, path, scratch) {
                        let bytes = scratch.get(..len)?;
                        return Some(Copy { ind, to, bytes });
                    }
                }
                None => {
                    let wake = self.next_wake(now, place);
                    self.base.set_wake(place, wake);
                }
            }
        }
        None
    }

    /// Packets of the session at `place` leave as they are from here on: its receiver has not answered for too long.
    #[cold]
    pub(super) fn suspend(&mut self, place: usize) {
        let Some(session) = self.base.get_mut(place) else {
            return;
        };
        session.asking.liveness = Liveness::Suspended;
        self.totals.kept_at_end += self.keep.drop_all(&mut session.standby.kept);
        self.notify(SenderEvent::Suspended {
            session: SessionId(place as u32),
        });
    }

    /// Which of the kept packets leave again, and on which path.
    fn judge_silence(&mut self, now: Instant, place: usize) {
        while let Some(session) = self.base.get_mut(place) {
            let timeouts = session.timeouts();
            let mut silent = session.standby.silent_at(&timeouts);
            if let Some((path, _)) = silent.find(|(_, at)| now >= *at) {
                drop(silent);
                self.leave(now, place, path);
                continue;
            }
            drop(silent);
            let is_late = |kept: &Kept| kept.again_on.is_none() && now >= due(kept, &timeouts);
            let Some((_, kept)) = self.keep.first(&session.standby.kept, is_late) else {
                return;
            };
            let path = usize::from(kept.path);
            let answered = session.path_at(path).and_then(|path| path.answered);
            if answered.is_none_or(|answered| answered < kept.number) {
                let Kept { number, sent, .. } = kept;
                session
                    .standby
                    .note_unanswered(path, Unanswered { number, sent });
            }
            let other = choose(session, &self.networks, Some(path));
            match other.filter(|_| kept.tries < MAX_TRIES) {
                Some(other) => self.keep.each(&session.standby.kept, |it| {
                    if it.number == kept.number {
                        it.again_on = Some(other as u8);
                    }
                }),
                None => {
                    match kept.tries < MAX_TRIES {
                        true => self.totals.no_other_network += 1,
                        false => self.totals.given_up += 1,
                    }
                    self.keep
                        .drop_if(&mut session.standby.kept, |it| it.number == kept.number);
                }
            }
        }
    }

    /// The session's `path` is silent: what is kept of it leaves again on the next one, which carries if this one did.
    fn leave(&mut self, now: Instant, place: usize, path: usize) {
        let Some(session) = self.base.get_mut(place) else {
            return;
        };
        session.standby.set_silent(now, path);
        let Some(other) = choose(session, &self.networks, Some(path)) else {
            return;
        };
        let mut again = 0;
        self.keep.each(&session.standby.kept, |it| {
            if usize::from(it.path) == path && it.again_on.is_none() {
                it.again_on = Some(other as u8);
                again += 1;
            }
        });
        if session.standby.carrier == Some(path as u8) {
            session.standby.carrier = Some(other as u8);
            let inds = (session.ind_at(path), session.ind_at(other));
            if let (Some(from), Some(to)) = inds {
                self.notify(SenderEvent::Moved {
                    session: SessionId(place as u32),
                    from,
                    to,
                    again,
                });
            }
        }
    }

    fn next_again(&self, place: usize) -> Option<u32> {
        let session = self.base.get(place)?;
        let (slot, _) = self
            .keep
            .first(&session.standby.kept, |kept| kept.again_on.is_some())?;
        Some(slot)
    }

    fn send_again(
        &mut self,
        now: Instant,
        place: usize,
        slot: u32,
        scratch: &mut [u8],
    ) -> Option<(usize, Ind, core::net::IpAddr)> {
        let kept = *self.keep.get(slot)?;
        let path = usize::from(kept.again_on?);
        self.keep.left_again(slot, path as u8, now);
        let session = self.base.get_mut(place)?;
        let content = Content {
            flow: &kept.flow,
            payload: self.keep.payload(slot),
            probe: false,
            space: session.space,
            number: kept.number,
            ask: true,
        };
        let copy = session.seal_on(path, &content, scratch)?;
        let sent = (copy.bytes.len(), copy.ind, copy.to);
        note_sent(session, path, now, &content, true);
        self.totals.copies += 1;
        Some(sent)
    }

    /// The path that is to be asked next, if one is.
    fn next_probe(&mut self, now: Instant, place: usize) -> Option<usize> {
        let session = self.base.get_mut(place)?;
        let (_, last) = session.last_flow?;
        if session.standby.to_probe == 0 {
            let is_past = |at: Instant| now >= at;
            let asks_all = session.asks_all_at().is_some_and(is_past);
            let asks_idle = session.asks_idle_at().is_some_and(is_past);
            if now.since(last) >= IDLE || !asks_all && !asks_idle {
                return None;
            }
            let carrier = session.standby.carrier.map(usize::from);
            let carrier = carrier.filter(|_| !asks_all);
            let paths = session
                .usable()
                .map(|(at, _)| at)
                .filter(|&at| Some(at) != carrier);
            session.standby.to_probe = paths.fold(0, |bits, at| bits | 1 << at);
            session.standby.probe_at = now + PROBE_EVERY;
            if asks_all {
                session.asking.ask(now);
            }
        }
        let bits = session.standby.to_probe;
        (bits != 0).then(|| {
            session.standby.to_probe = bits & (bits - 1);
            bits.trailing_zeros() as usize
        })
    }

    fn send_probe(
        &mut self,
        now: Instant,
        place: usize,
        path: usize,
        scratch: &mut [u8],
    ) -> Option<(usize, Ind, core::net::IpAddr)> {
        if !self.make_number(place) {
            return None;
        }
        let session = self.base.get_mut(place)?;
        let (flow, _) = session.last_flow?;
        let content = Content {
            flow: &flow,
            payload: &[],
            probe: true,
            space: session.space,
            number: session.next,
            ask: true,
        };
        let copy = session.seal_on(path, &content, scratch)?;
        let sent = (copy.bytes.len(), copy.ind, copy.to);
        session.next += 1;
        let is_late = |(_, asked): (u32, Instant), timeout| now.since(asked) >= timeout;
        let before = session.path_at(path);
        if before.is_some_and(|it| {
            it.asked
                .is_some_and(|it_was| is_late(it_was, it.round_trip.timeout()))
        }) {
            session.standby.begin_again(path);
        }
        if let Some(path) = session.path_mut(path) {
            path.ask(now, content.number);
        }
        Some(sent)
    }

    /// When the session at `place` has to be looked at again.
    fn next_wake(&self, now: Instant, place: usize) -> Option<Instant> {
        let session = self.base.get(place)?;
        let (_, last) = session.last_flow?;
        let timeouts = session.timeouts();
        let kept = self
            .keep
            .earliest(&session.standby.kept, |kept| due(kept, &timeouts));
        let silent = session.standby.silent_at(&timeouts).map(|(_, at)| at).min();
        let probes = [session.asks_all_at(), session.asks_idle_at()];
        // Not what was due before the flow paused, and was missed.
        let is_asked = |at: &Instant| now.max(*at).since(last) < IDLE;
        let probes = probes.map(|at| at.filter(is_asked));
        // Never at once again: what is due was done.
        let soon = now + Duration::from_micros(100);
        [kept, silent, session.asking.lapses()]
            .into_iter()
            .chain(probes)
            .flatten()
            .min()
            .map(|at| at.max(soon))
    }
}

enum Leaving {
    Again(u32),
    Probe(usize),
}
/// When `kept` counts as lost.
fn due(kept: &Kept, timeouts: &[Duration; MAX_NETWORKS]) -> Instant {
    let timeout = timeouts.get(usize::from(kept.path)).copied();
    kept.sent + timeout.unwrap_or_default()
}

/// The path that is to carry: the first of the host's networks that has not gone silent, or else the first that is
/// another one than `but`.
pub(super) fn choose<S: Suite>(
    session: &Session<S>,
    own: &Networks,
    but: Option<usize>,
) -> Option<usize> {
    let in_order = || {
        let all = own
            .iter()
            .filter_map(|network| session.position(network.ind));
        all.filter(|&at| Some(at) != but && session.path_at(at).is_some_and(|path| path.usable))
    };
    let sound = in_order().find(|&at| !session.standby.is_silent(at));
    sound.or_else(|| in_order().next())
}

impl<S: Suite> Session<S> {
    fn timeouts(&self) -> [Duration; MAX_NETWORKS] {
        core::array::from_fn(|at| {
            let path = self.path_at(at);
            path.map_or(Duration::ZERO, |path| path.round_trip.timeout())
        })
    }

    /// When probes ask on all networks.
    fn asks_all_at(&self) -> Option<Instant> {
        let at = self.asking.next_probe();
        at.filter(|_| self.usable().next().is_some())
    }

    /// When probes ask on the networks that carry nothing.
    fn asks_idle_at(&self) -> Option<Instant> {
        let is_suspended = self.asking.liveness == Liveness::Suspended;
        let asks = self.mode == Mode::Standby && !is_suspended;
        asks.then_some(self.standby.probe_at)
    }

    fn ind_at(&self, at: usize) -> Option<Ind> {
        self.path_at(at).map(|path| path.ind)
    }

    /// The path at `at` has answered question `asked`. It carries again, if it did before and has answered often enough: from
    /// which network to which.
    pub(super) fn answered(&mut self, at: usize, asked: u32, own: &Networks) -> Option<(Ind, Ind)> {
        let is_sound = self.standby.answered(at, asked, PROBATION);
        is_sound.then(|| self.prefer(own)).flatten()
    }

    /// The first of the host's networks that is sound carries, if another one does: from which network to which.
    pub(super) fn prefer(&mut self, own: &Networks) -> Option<(Ind, Ind)> {
        let carrier = self.standby.carrier.map(usize::from)?;
        let first = choose(self, own, None)?;
        if first == carrier || self.standby.is_silent(first) {
            return None;
        }
        self.standby.carrier = Some(first as u8);
        Some((self.ind_at(carrier)?, self.ind_at(first)?))
    }
}
