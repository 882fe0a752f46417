//! Which state is too old to be believed.

use super::{StateHeader, StateRefusal};
use bumpless_base::Duration;

/// A clock may be so much ahead of another one.
const AHEAD_NS: u64 = 1_000_000_000;
/// Processes of a sender that are remembered as past.
const PAST: usize = 16;

/// By what a state that comes again shows (table 19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// By nothing.
    None,
    /// Counters of one process of the sender grow.
    Counter,
    /// As with `Counter`, and a process that another one has followed does not come back. Secrets are of the session.
    Session,
    /// As with `Session`, but for the secrets; besides, times grow, and are not older than this.
    Timestamp {
        /// How old a state may be.
        max_age: Duration,
    },
}

/// What was opened before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    newest: Option<(u64, u64)>,
    past: [Option<u64>; PAST],
    next: usize,
    newest_ns: u64,
}

impl Seen {
    /// Whether a state with `header` may be opened when the computer's clock shows `now_ns`. The one that was opened last
    /// may be, again and again.
    pub(super) fn check(
        &self,
        replay: Replay,
        header: &StateHeader,
        now_ns: u64,
    ) -> Result<(), StateRefusal> {
        let older = self
            .newest
            .is_some_and(|(origin, counter)| origin == header.origin && header.counter < counter);
        let past = self.past.contains(&Some(header.origin));
        match replay {
            Replay::None => Ok(()),
            Replay::Counter if older => Err(StateRefusal::Replayed),
            Replay::Session | Replay::Timestamp { .. } if older || past => {
                Err(StateRefusal::Replayed)
            }
            Replay::Counter | Replay::Session => Ok(()),
            Replay::Timestamp { max_age } => {
                // A clock that was ahead was set right: times of then are no measure. What was opened then comes no more when
                // they come true, since counters are compared as well.
                let ahead = self.newest_ns > now_ns.saturating_add(AHEAD_NS);
                let newest_ns = if ahead { 0 } else { self.newest_ns };
                check_time(header.published_ns, (newest_ns, now_ns), max_age)
            }
        }
    }

    /// A state with `header` was opened.
    pub(super) fn note(&mut self, header: &StateHeader) {
        if let Some((origin, _)) = self.newest
            && origin != header.origin
        {
            self.past[self.next % PAST] = Some(origin);
            self.next = (self.next + 1) % PAST;
        }
        self.newest = Some((header.origin, header.counter));
        // Of what may be opened by times, an earlier one comes only after a clock was set back.
        self.newest_ns = header.published_ns;
    }
}

/// Whether a state of `at` may be opened after one of `newest_ns`, when the clock shows `now_ns`.
fn check_time(
    at: u64,
    (newest_ns, now_ns): (u64, u64),
    max_age: Duration,
) -> Result<(), StateRefusal> {
    if at > now_ns.saturating_add(AHEAD_NS) {
        return Err(StateRefusal::Future);
    }
    if at < newest_ns {
        return Err(StateRefusal::Replayed);
    }
    match now_ns.saturating_sub(at) > max_age.as_nanos() {
        true => Err(StateRefusal::Old),
        false => Ok(()),
    }
}
