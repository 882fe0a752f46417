//! One network carries, the others wait (`spec/iprp.md`, I-50 to I-56): which one carries, which ones are silent, and when
//! they are back.

use super::keep::List;
use bumpless_base::{Duration, Instant};

/// A packet that has left again as often is given up: nothing arrives anywhere.
pub(crate) const MAX_TRIES: u8 = 6;

/// How often a network that carries nothing is asked.
pub(crate) const PROBE_EVERY: Duration = Duration::from_millis(500);
/// After a path went silent, or all of them: in this time each has been asked, and has answered if it can.
const DOUBT: Duration = Duration::from_secs(1);
/// Questions in a row that a network which went silent must have answered before it carries again.
pub(crate) const PROBATION: u8 = 4;

/// A packet whose answer has not come in time on the path on which it left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unanswered {
    pub number: u32,
    pub sent: Instant,
}

/// Which path of one session carries, and what is known of the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standby {
    /// The packets that may be lost.
    pub kept: List,
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
            kept: List::default(),
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
    /// The path at `at` has not answered `unanswered` in time.
    pub(crate) fn note_unanswered(&mut self, at: usize, unanswered: Unanswered) {
        if let Some(first) = self.unanswered.get_mut(at) {
            first.get_or_insert(unanswered);
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
