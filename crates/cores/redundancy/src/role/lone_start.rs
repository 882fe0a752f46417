//! How long a node without a claim waits before it starts alone: for as long as anybody could still go on from
//! what it lacks.

use crate::id::ReferenceId;
use crate::role::{RoleMachine, Surroundings};
use crate::setup::Timing;
use bumpless_base::{Duration, Instant};

impl RoleMachine {
    /// A witness that knows of a primary not long ago. A node without a claim leaves the role to that primary: its
    /// lease may have lapsed for a moment, and it knows more. One that holds nothing, or less than was written,
    /// does so for as long as that primary could still go on; another may find at the field device that it has the
    /// newest.
    pub(crate) fn lately_held(&self, s: &Surroundings<'_>) -> Option<ReferenceId> {
        let needed = self.agreement.needed();
        let span = match self.newest.holds_some(s.now) {
            true => self.lone_start_wait(s.timing, s.now),
            false => s.timing.start_wait.max(self.terms.hot_restart),
        };
        self.agreement.lately_leased(needed, span, s.now)
    }

    /// Since when this node is without its partner and not primary. A node that learns late that it has lost the role
    /// knows as little then as one that starts.
    pub(crate) fn alone_since(&self, unreachable_since: Instant) -> Instant {
        unreachable_since.max(self.lasting.resigned_at)
    }

    /// How long a node without a claim waits for its partner. Where a field device shows outputs that this node lacks,
    /// or is silent and may have taken such, for as long as whoever has written them could still go on. So it does
    /// where what it holds has become too old: a pause makes that older than it is, and the partner may hold the same.
    fn lone_start_wait(&self, timing: &Timing, now: Instant) -> Duration {
        let holding = &self.newest.holding;
        let aged = holding.some_usable_until.is_some_and(|until| until <= now);
        match holding.outdated_until.is_some() || !holding.fit || aged {
            true => timing.start_wait.max(self.terms.hot_restart),
            false => timing.start_wait,
        }
    }

    /// When a node without a claim may start alone.
    pub(crate) fn lone_start_at(
        &self,
        unreachable_since: Instant,
        timing: &Timing,
        now: Instant,
    ) -> Instant {
        let at = self.alone_since(unreachable_since) + self.lone_start_wait(timing, now);
        let outdated_until = self.newest.holding.outdated_until;
        outdated_until.map_or(at, |until| at.max(until))
    }
}
