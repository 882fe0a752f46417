//! One network carries, the others wait (`spec/iprp.md`, I-50 to I-56): what is kept until it is known to have arrived, and
//! when it leaves again elsewhere.

use crate::flow::Flow;
use crate::header::Answer;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use bumpless_base::{Duration, Instant};

/// A packet that has left again as often is given up: nothing arrives anywhere.
pub(crate) const MAX_TRIES: u8 = 6;

const NONE: u32 = u32::MAX;

/// How often a network that carries nothing is asked.
pub(crate) const PROBE_EVERY: Duration = Duration::from_millis(500);
/// After a path went silent, or all of them: in this time each has been asked, and has answered if it can.
const DOUBT: Duration = Duration::from_secs(1);
/// Questions in a row that a network which went silent must have answered before it carries again.
pub(crate) const PROBATION: u8 = 4;

/// A packet that may be lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub flow: Flow,
    pub number: u32,
    pub sent: Instant,
    /// The path on which it left last.
    pub path: u8,
    /// It is to leave again on this path.
    pub again_on: Option<u8>,
    /// How often it has left again.
    pub tries: u8,
    len: u32,
    next: u32,
}

/// Packets that may be lost, of all sessions together.
pub(crate) struct Keep {
    slots: Box<[Option<Kept>]>,
    bytes: Box<[u8]>,
    len_each: usize,
    free: Vec<u32>,
}

/// A packet whose answer has not come in time on the path on which it left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unanswered {
    pub number: u32,
    pub sent: Instant,
}

/// The packets of one session that may be lost, oldest first, and which path carries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standby {
    head: u32,
    tail: u32,
    pub count: u32,
    /// The path that carries, once a packet has left.
    pub carrier: Option<u8>,
    /// Of each path, how many questions in a row it has answered since it went silent, or came while another one carried;
    /// `None` if it has answered enough, or neither is so.
    pub probation: [Option<u8>; crate::ind::MAX_NETWORKS],
    /// Of each path, the first packet that had no answer in time, and none on this path since then.
    pub unanswered: [Option<Unanswered>; crate::ind::MAX_NETWORKS],
    /// Until then packets ask whatever is known of the other paths: one has gone silent, and others may have with it.
    pub doubt_until: Instant,
    /// When paths that carry nothing are asked next.
    pub probe_at: Instant,
    /// Paths that are to be asked, a bit each.
    pub to_probe: u8,
}

impl Default for Standby {
    fn default() -> Self {
        Self {
            head: NONE,
            tail: NONE,
            count: 0,
            carrier: None,
            probation: [None; crate::ind::MAX_NETWORKS],
            unanswered: [None; crate::ind::MAX_NETWORKS],
            doubt_until: Instant::ZERO,
            probe_at: Instant::ZERO,
            to_probe: 0,
        }
    }
}

impl Standby {
    /// The path at `at` has not answered `kept` in time.
    pub(crate) fn note_unanswered(&mut self, at: usize, kept: &Kept) {
        if let Some(unanswered) = self.unanswered.get_mut(at) {
            let Kept { number, sent, .. } = *kept;
            unanswered.get_or_insert(Unanswered { number, sent });
        }
    }

    /// When each path is to count as silent, by the `timeouts` for an answer: it has had the time twice.
    pub(crate) fn silent_at<'a>(
        &'a self,
        timeouts: &'a [Duration; crate::ind::MAX_NETWORKS],
    ) -> impl Iterator<Item = (usize, Instant)> + 'a {
        let both = self.unanswered.iter().zip(timeouts).enumerate();
        both.filter_map(|(at, (unanswered, &timeout))| {
            unanswered.map(|unanswered| (at, unanswered.sent + timeout * 2))
        })
    }

    /// The path at `at` has stopped answering, as is found at `now`.
    pub(crate) fn set_silent(&mut self, now: Instant, at: usize) {
        if !self.is_silent(at) {
            self.doubt_until = now + DOUBT;
        }
        if let Some(unanswered) = self.unanswered.get_mut(at) {
            *unanswered = None;
        }
        if let Some(probation) = self.probation.get_mut(at) {
            *probation = Some(0);
        }
    }

    pub(crate) fn is_silent(&self, at: usize) -> bool {
        self.probation.get(at).is_some_and(Option::is_some)
    }

    /// Whether the path at `at` may carry what another one loses: it has not gone silent, or has answered since.
    pub(crate) fn may_answer(&self, at: usize) -> bool {
        let probation = self.probation.get(at).copied().flatten();
        probation.is_none_or(|answered| answered > 0)
    }

    /// Another path is at `at` from here on, or none: nothing is known of it.
    pub(crate) fn forget(&mut self, at: usize) {
        if let Some(probation) = self.probation.get_mut(at) {
            *probation = None;
        }
        if let Some(unanswered) = self.unanswered.get_mut(at) {
            *unanswered = None;
        }
        self.carrier = self.carrier.filter(|&carrier| usize::from(carrier) != at);
        self.to_probe &= !(1 << at);
    }

    /// The path at `at` is there while another one carries. Nobody knows yet whether it answers.
    pub(crate) fn try_first(&mut self, at: usize) {
        if let Some(probation) = self.probation.get_mut(at) {
            *probation = Some(0);
        }
    }

    /// The path at `at` has not answered a question in time: those that it has answered before count as nothing.
    pub(crate) fn begin_again(&mut self, at: usize) {
        if let Some(answered) = self.probation.get_mut(at).and_then(Option::as_mut) {
            *answered = 0;
        }
    }

    /// Whether a packet that leaves at `now` on `carrier` asks although no other path is known to answer: a path that has just gone
    /// silent may have done so with all others, and one that carries while it is silent says so. A computer between them that
    /// stands still explains that better than the death of each.
    pub(crate) fn is_in_doubt(&mut self, now: Instant, carrier: usize) -> bool {
        if self.is_silent(carrier) {
            self.doubt_until = now + DOUBT;
        }
        now < self.doubt_until
    }

    /// The path at `at` has answered question `asked`. Whether it may carry again from here on.
    pub(crate) fn answered(&mut self, at: usize, asked: u32, enough: u8) -> bool {
        if let Some(unanswered) = self.unanswered.get_mut(at) {
            unanswered.take_if(|unanswered| unanswered.number <= asked);
        }
        let Some(probation) = self.probation.get_mut(at) else {
            return false;
        };
        let Some(count) = probation else {
            return false;
        };
        *count += 1;
        let is_enough = *count >= enough;
        if is_enough {
            *probation = None;
        }
        is_enough
    }
}

impl Keep {
    pub(crate) fn new(packets: usize, len: usize) -> Self {
        Self {
            slots: vec![None; packets].into_boxed_slice(),
            bytes: vec![0; packets * len].into_boxed_slice(),
            len_each: len,
            free: (0..packets as u32).rev().collect(),
        }
    }

    fn slot(&mut self, at: u32) -> Option<&mut Kept> {
        self.slots.get_mut(at as usize)?.as_mut()
    }

    pub(crate) fn get(&self, at: u32) -> Option<&Kept> {
        self.slots.get(at as usize)?.as_ref()
    }

    /// What the packet in slot `at` carries.
    pub(crate) fn payload(&self, at: u32) -> &[u8] {
        let begin = at as usize * self.len_each;
        let len = self.get(at).map_or(0, |kept| kept.len as usize);
        self.bytes.get(begin..begin + len).unwrap_or_default()
    }

    /// Keeps a packet of `session`; `false` if it is too long or there is no place.
    pub(crate) fn keep(
        &mut self,
        session: &mut Standby,
        (flow, payload): (&Flow, &[u8]),
        number: u32,
        (path, sent): (u8, Instant),
    ) -> bool {
        if payload.len() > self.len_each {
            return false;
        }
        let Some(at) = self.free.pop() else {
            return false;
        };
        let begin = at as usize * self.len_each;
        if let Some(place) = self.bytes.get_mut(begin..begin + payload.len()) {
            place.copy_from_slice(payload);
        }
        if let Some(slot) = self.slots.get_mut(at as usize) {
            *slot = Some(Kept {
                flow: *flow,
                number,
                sent,
                path,
                again_on: None,
                tries: 0,
                len: payload.len() as u32,
                next: NONE,
            });
        }
        match self.slot(session.tail) {
            Some(last) => last.next = at,
            None => session.head = at,
        }
        session.tail = at;
        session.count += 1;
        true
    }

    /// Drops the packets of `session` for which `is_done`.
    pub(crate) fn drop_if(&mut self, session: &mut Standby, is_done: impl Fn(&Kept) -> bool) {
        let (mut at, mut before) = (session.head, NONE);
        while let Some(kept) = self.get(at).copied() {
            if is_done(&kept) {
                match self.slot(before) {
                    Some(slot) => slot.next = kept.next,
                    None => session.head = kept.next,
                }
                if session.tail == at {
                    session.tail = before;
                }
                session.count -= 1;
                if let Some(slot) = self.slots.get_mut(at as usize) {
                    *slot = None;
                }
                self.free.push(at);
            } else {
                before = at;
            }
            at = kept.next;
        }
    }

    /// What an answer says has arrived needs not be kept.
    pub(crate) fn acknowledge(&mut self, session: &mut Standby, answer: &Answer) {
        self.drop_if(session, |kept| {
            let back = answer.high.wrapping_sub(kept.number);
            let is_behind = (1..=64).contains(&back) && answer.behind >> (back - 1) & 1 != 0;
            kept.number == answer.high || is_behind
        });
    }

    /// Changes each packet of `session`; oldest first.
    pub(crate) fn each(&mut self, session: &Standby, mut change: impl FnMut(&mut Kept)) {
        let mut at = session.head;
        while let Some(kept) = self.slot(at) {
            change(kept);
            at = kept.next;
        }
    }

    /// The oldest packet of `session` that `is_it`, and its slot.
    pub(crate) fn first(
        &self,
        session: &Standby,
        is_it: impl Fn(&Kept) -> bool,
    ) -> Option<(u32, Kept)> {
        let mut at = session.head;
        while let Some(kept) = self.get(at) {
            if is_it(kept) {
                return Some((at, *kept));
            }
            at = kept.next;
        }
        None
    }

    /// The earliest of what `when` says of the packets of `session`.
    pub(crate) fn earliest(
        &self,
        session: &Standby,
        when: impl Fn(&Kept) -> Instant,
    ) -> Option<Instant> {
        let (mut at, mut earliest) = (session.head, None);
        while let Some(kept) = self.get(at) {
            let this = when(kept);
            earliest = Some(earliest.map_or(this, |before: Instant| before.min(this)));
            at = kept.next;
        }
        earliest
    }

    /// The packet in slot `at` has left again.
    pub(crate) fn left_again(&mut self, at: u32, path: u8, now: Instant) {
        if let Some(kept) = self.slot(at) {
            (kept.again_on, kept.path, kept.sent) = (None, path, now);
            kept.tries = kept.tries.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec as List;

    const FLOW: Flow = Flow {
        protocol: 17,
        source: core::net::IpAddr::V4(core::net::Ipv4Addr::LOCALHOST),
        destination: core::net::IpAddr::V4(core::net::Ipv4Addr::LOCALHOST),
        source_port: 1,
        destination_port: 2,
    };

    proptest! {
        #[test]
        fn what_is_kept_is_what_two_plain_lists_keep(
            steps in proptest::collection::vec((0usize..2, 0u8..3, any::<u64>(), 0u32..80), 0..200),
        ) {
            let mut keep = Keep::new(24, 8);
            let mut sessions = [Standby::default(); 2];
            let mut twins: [List<(u32, u8)>; 2] = Default::default();
            let mut next = [0u32; 2];
            for (which, op, behind, back) in steps {
                let session = &mut sessions[which];
                if op < 2 {
                    let number = next[which];
                    next[which] += 1;
                    let payload = [number as u8; 8];
                    let len = (number % 9) as usize;
                    let total = twins[0].len() + twins[1].len();
                    let kept = keep.keep(session, (&FLOW, &payload[..len]), number, (0, Instant::ZERO));
                    prop_assert_eq!(kept, total < 24);
                    if kept {
                        twins[which].push((number, len as u8));
                    }
                } else {
                    let high = next[which].saturating_sub(back);
                    keep.acknowledge(session, &Answer { asked: 0, high, behind });
                    twins[which].retain(|(number, _)| {
                        let gone = *number < high && high - number <= 64
                            && behind & (1 << (high - number - 1)) != 0;
                        *number != high && !gone
                    });
                }
                for (session, twin) in sessions.iter().zip(&twins) {
                    let mut seen = List::new();
                    let mut at = session.head;
                    while let Some(kept) = keep.get(at) {
                        let payload = keep.payload(at);
                        prop_assert!(payload.iter().all(|byte| *byte == kept.number as u8));
                        seen.push((kept.number, payload.len() as u8));
                        at = kept.next;
                    }
                    prop_assert_eq!(&seen, twin);
                    prop_assert_eq!(session.count as usize, twin.len());
                }
            }
        }
    }
}
