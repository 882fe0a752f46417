//! What one reference point granted and answered.

use bumpless_base::{Epoch, Instant};
use bumpless_wire::WitnessReply;

/// What one reference point granted and answered to this node for one group.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(crate) struct Lease {
    /// The lease allows output before this, on this node's clock.
    pub(crate) until: Instant,
    /// Highest epoch on record there when it was granted.
    pub(crate) epoch: Epoch,
    /// The witness's incarnation that granted it; 0 for none.
    pub(crate) session: u64,
    /// A witness that has just started grants nothing before.
    pub(super) quiet_until: Instant,
    /// When anybody last held or renewed the lease, as far as the witness said; but for what it granted to this
    /// node since.
    pub(crate) last_renewal: Option<Instant>,
    /// When the last answer came.
    pub(crate) answered_at: Option<Instant>,
    /// This node has yielded there: what it asked for at or before this never counts.
    pub(super) yielded_at: Instant,
    /// Send time of the request that was last answered.
    pub(super) answered: u64,
    /// Whether the last answer granted what was asked.
    pub(crate) granted: bool,
    /// The last answer refused a lease although nobody else's stood in the way: it is too long for
    /// the witness, or that has no room.
    pub(crate) refused: bool,
    /// When the next request is due.
    pub(crate) next_request: Instant,
    pub(crate) requested_at: Instant,
    /// Whether the driver has been told that it answers.
    pub(crate) heard: bool,
    /// The witness's incarnation that answered last, 0 for none.
    pub(crate) witness: u64,
    /// Whether the last answer said that the role is marked: what others hold is old.
    pub(crate) simplex: bool,
    /// The mark is on record for what this primary says at present.
    pub(crate) marked: bool,
}

impl Lease {
    /// This node yields: with the request that leaves at `now`, the witness promises nothing any more.
    pub(crate) fn yield_at(&mut self, now: Instant) {
        (self.until, self.yielded_at) = (Instant::ZERO, now);
    }

    /// Send time of the request that was last answered.
    pub(crate) const fn answered_request(&self) -> Instant {
        Instant::from_nanos(self.answered)
    }
}

/// Whether a refusal says that something has to end first.
pub(crate) const fn waits(reply: &WitnessReply) -> bool {
    // A witness rounds up by one.
    reply.retry_after_us > 1
}
