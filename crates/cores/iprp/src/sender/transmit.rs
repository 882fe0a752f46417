//! What leaves: copies of packets (iPRP, algorithm 4), packets that leave again, questions; and what is answered.

use super::liveness::Liveness;
use super::peer_base::Session;
use super::seal::{Content, Copy, copy_len};
use super::standby::{Kept, MAX_TRIES, PROBATION, PROBE_EVERY};
use super::state::State;
use crate::counters::Discard;
use crate::event::{SenderEvent, SessionId};
use crate::flow::{Flow, Side};
use crate::header::{Answer, CLEAR, FEEDBACK_LEN, Header, PROBE};
use crate::ind::{Ind, MAX_NETWORKS, Networks};
use crate::keys::answer_key;
use crate::setup::Mode;
use bumpless_base::{Duration, Instant};
use bumpless_secure::Suite;

/// Without packets for this long, networks that carry nothing are not asked.
const IDLE: Duration = Duration::from_secs(5);

/// What has become of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// So many copies were handed out, at least one. The packet itself is to be dropped.
    Copies(usize),
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
            ask: !session.sealing.group
                && (session.mode == Mode::Standby || session.asking.is_due(now)),
        };
        let copies = match session.mode {
            Mode::Redundant => send_on_all(session, now, &content, scratch, emit),
            Mode::Standby => self.send_on_one(now, place, &content, scratch, emit),
        };
        if copies == 0 {
            self.totals.unreplicated += 1;
            return Replication::Unreplicated;
        }
        if let Some(session) = self.base.get_mut(place) {
            session.next += 1;
        }
        self.totals.replicated += 1;
        self.totals.copies += copies as u64;
        Replication::Copies(copies)
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
        session.asking.liveness = Liveness::Suspended;
        self.keep.drop_if(&mut session.standby, |_| true);
        self.notify(SenderEvent::Suspended {
            session: SessionId(place as u32),
        });
        self.wake_earlier(place, now);
        false
    }

    fn wake_earlier(&mut self, place: usize, at: Instant) {
        let is_set = self.base.wake_of(place).is_some_and(|wake| wake <= at);
        if !is_set {
            self.base.set_wake(place, Some(at));
        }
    }

    /// Sees to it that the session at `place` has a number for one packet more.
    #[inline]
    fn make_number(&mut self, place: usize) -> bool {
        let session = self.base.get(place);
        if session.is_some_and(|session| session.next < u32::MAX) {
            return true;
        }
        self.begin_space(place)
    }

    /// The numbers of a space are used up: they begin anew in another one.
    #[cold]
    fn begin_space(&mut self, place: usize) -> bool {
        let side = self.base.get(place).map(|session| session.scope.side);
        let Some(space) = self.next_space(u32::from(side == Some(Side::Source))) else {
            return false;
        };
        let Some(session) = self.base.get_mut(place) else {
            return false;
        };
        let before = session.space;
        self.keep.drop_if(&mut session.standby, |_| true);
        session.begin_space(space);
        self.base.move_space(place, before, space);
        true
    }

    /// In standby: on the path that carries.
    fn send_on_one(
        &mut self,
        now: Instant,
        place: usize,
        content: &Content<'_>,
        scratch: &mut [u8],
        mut emit: impl FnMut(Copy<'_>),
    ) -> usize {
        let own = self.networks;
        let Some(session) = self.base.get_mut(place) else {
            return 0;
        };
        let carrier = session.standby.carrier.map(usize::from);
        let carrier = carrier.filter(|&at| session.path_at(at).is_some_and(|path| path.usable));
        let Some(carrier) = carrier.or_else(|| choose(session, &own, None)) else {
            return 0;
        };
        session.standby.carrier = Some(carrier as u8);
        let Some(copy) = session.seal_on(carrier, content, scratch) else {
            return 0;
        };
        emit(copy);
        note_sent(session, carrier, now, content, false);
        session.asking.ask(now);
        let what = (content.flow, content.payload);
        if !self.keep.keep(
            &mut session.standby,
            what,
            content.number,
            (carrier as u8, now),
        ) {
            self.totals.not_kept += 1;
        }
        let session = self.base.get(place);
        let path = session.and_then(|session| session.path_at(carrier));
        let timeout = path.map_or(PROBE_EVERY, |path| path.round_trip.timeout());
        self.wake_earlier(place, now + timeout);
        1
    }

    /// The next datagram that leaves without a packet of an application.
    pub(crate) fn poll_transmit<'a>(
        &mut self,
        now: Instant,
        scratch: &'a mut [u8],
    ) -> Option<Copy<'a>> {
        while let Some((at, place)) = self.base.next_wake()
            && at <= now
        {
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

    /// Which of the kept packets leave again, and on which path.
    fn judge_silence(&mut self, now: Instant, place: usize) {
        loop {
            let own = self.networks;
            let Some(session) = self.base.get_mut(place) else {
                return;
            };
            let timeouts = session.timeouts();
            let is_late = |kept: &Kept| kept.again_on.is_none() && now >= due(kept, &timeouts);
            let Some((_, kept)) = self.keep.first(&session.standby, is_late) else {
                return;
            };
            let path = usize::from(kept.path);
            let other = choose(session, &own, Some(path)).filter(|_| kept.tries < MAX_TRIES);
            let Some(other) = other else {
                // Nowhere to go.
                self.keep
                    .drop_if(&mut session.standby, |it| it.number == kept.number);
                continue;
            };
            let answered = session.path_at(path).and_then(|path| path.answered);
            if answered.is_some_and(|answered| answered > kept.number) {
                // The path carries; this one packet was lost.
                self.keep.each(&session.standby, |it| {
                    if it.number == kept.number {
                        it.again_on = Some(other as u8);
                    }
                });
                continue;
            }
            session.standby.set_silent(path);
            let mut again = 0;
            self.keep.each(&session.standby, |it| {
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
    }

    fn next_again(&self, place: usize) -> Option<u32> {
        let session = self.base.get(place)?;
        let (slot, _) = self
            .keep
            .first(&session.standby, |kept| kept.again_on.is_some())?;
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
            let is_due = now.since(last) < IDLE
                && match session.asking.next_probe() {
                    Some(at) => now >= at,
                    None => session.mode == Mode::Standby && now >= session.standby.probe_at,
                };
            if !is_due {
                return None;
            }
            let suspended = session.asking.next_probe().is_some();
            let carrier = session
                .standby
                .carrier
                .map(usize::from)
                .filter(|_| !suspended);
            let paths = session
                .usable()
                .map(|(at, _)| at)
                .filter(|&at| Some(at) != carrier);
            session.standby.to_probe = paths.fold(0, |bits, at| bits | 1 << at);
            session.standby.probe_at = now + PROBE_EVERY;
            if suspended {
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
        if let Some(path) = session.path_mut(path) {
            path.departures.asked += 1;
            path.asked = Some((content.number, now));
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
            .earliest(&session.standby, |kept| due(kept, &timeouts));
        let probe = match session.asking.next_probe() {
            Some(at) => Some(at),
            None => Some(session.standby.probe_at).filter(|_| session.mode == Mode::Standby),
        };
        let probe = probe.filter(|at| at.since(last) < IDLE);
        // Never at once again: what is due was done.
        let soon = now + Duration::from_micros(100);
        [kept, probe]
            .into_iter()
            .flatten()
            .min()
            .map(|at| at.max(soon))
    }

    /// A receiver's answer.
    pub(crate) fn handle_feedback(
        &mut self,
        now: Instant,
        datagram: &mut [u8],
    ) -> Result<(), Discard> {
        let header = Header::decode(datagram)?;
        if !header.feedback {
            return Err(Discard::Malformed);
        }
        let datagram = datagram
            .get_mut(..)
            .filter(|it| it.len() == FEEDBACK_LEN)
            .ok_or(Discard::Truncated)?;
        let place = self
            .base
            .find_space(header.space)
            .ok_or(Discard::UnknownKey)?;
        let answer = self.open_answer(now, place, &header, datagram)?;
        let session = self.base.get_mut(place).ok_or(Discard::UnknownKey)?;
        if answer.asked >= session.next || answer.high >= session.next {
            return Err(Discard::Malformed);
        }
        let at = session.position(header.ind).ok_or(Discard::UnknownKey)?;
        let path = session.path_mut(at).ok_or(Discard::UnknownKey)?;
        let is_later = path.handle_answer(now, answer.asked);
        self.keep.acknowledge(&mut session.standby, &answer);
        if !is_later {
            return Err(Discard::Duplicate);
        }
        let is_resumed = session.asking.heard();
        let own = self.networks;
        let back = session.answered(at, &own);
        let id = SessionId(place as u32);
        if is_resumed {
            self.notify(SenderEvent::Resumed { session: id });
        }
        if let Some((from, to)) = back {
            self.notify(SenderEvent::Moved {
                session: id,
                from,
                to,
                again: 0,
            });
        }
        Ok(())
    }

    fn open_answer(
        &mut self,
        now: Instant,
        place: usize,
        header: &Header,
        datagram: &mut [u8],
    ) -> Result<Answer, Discard> {
        let session = self.base.get_mut(place).ok_or(Discard::UnknownKey)?;
        let sealing = &mut session.sealing;
        let is_ours = header.tag == sealing.tag && header.key == (sealing.number & 15) as u8;
        if !is_ours || sealing.group {
            return Err(Discard::UnknownKey);
        }
        let (clear, body) = datagram
            .split_at_mut_checked(CLEAR + 8)
            .ok_or(Discard::Truncated)?;
        let boot = clear
            .last_chunk()
            .map_or(0, |bytes| u64::from_be_bytes(*bytes));
        match &sealing.answers {
            Some((known, key)) if *known == boot => {
                if !S::open(key, header.nonce(), clear, body) {
                    return Err(Discard::Forged);
                }
            }
            _ => {
                if !self.trials.spend(now) {
                    return Err(Discard::Untried);
                }
                let key = answer_key::<S>(&sealing.material, boot);
                if !S::open(&key, header.nonce(), clear, body) {
                    return Err(Discard::Forged);
                }
                sealing.answers = Some((boot, key));
            }
        }
        Answer::decode(body).ok_or(Discard::Truncated)
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

#[inline]
fn note_sent<S: Suite>(
    session: &mut Session<S>,
    at: usize,
    now: Instant,
    content: &Content<'_>,
    again: bool,
) {
    let Some(path) = session.path_mut(at) else {
        return;
    };
    path.departures.sent += 1;
    path.departures.again += u64::from(again);
    if content.ask {
        path.departures.asked += 1;
        let is_open = path
            .asked
            .is_some_and(|(_, at)| now.since(at) < path.round_trip.timeout());
        if !is_open {
            path.asked = Some((content.number, now));
        }
    }
}

/// The path that is to carry: the first of the host's networks that has not gone silent, or else the first that is
/// another one than `but`.
fn choose<S: Suite>(session: &Session<S>, own: &Networks, but: Option<usize>) -> Option<usize> {
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

    fn ind_at(&self, at: usize) -> Option<Ind> {
        self.path_at(at).map(|path| path.ind)
    }

    /// The path at `at` has answered. It carries again, if it did before and has answered often enough: from which network
    /// to which.
    fn answered(&mut self, at: usize, own: &Networks) -> Option<(Ind, Ind)> {
        if !self.standby.answered(at, PROBATION) {
            return None;
        }
        let carrier = self.standby.carrier.map(usize::from)?;
        let first = choose(self, own, None)?;
        if first == carrier || first != at {
            return None;
        }
        self.standby.carrier = Some(first as u8);
        Some((self.ind_at(carrier)?, self.ind_at(first)?))
    }
}
