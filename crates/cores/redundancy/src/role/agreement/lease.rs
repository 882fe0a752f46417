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
    /// Before this instant the witness grants nothing: it has just started.
    pub(super) quiet_until: Instant,
    /// When anybody last held or renewed the lease, as the witness said last; what it has granted to this node since
    /// is left out.
    pub(crate) last_renewal: Option<Instant>,
    /// When the last answer came.
    pub(crate) answered_at: Option<Instant>,
    /// This node has yielded there: what it asked for at or before this never counts.
    pub(super) yielded_at: Instant,
    /// Send time of the request that was last answered.
    pub(super) answered: u64,
    /// Whether the last answer granted what was asked.
    pub(crate) granted: bool,
    /// The last answer refused a lease although nobody else has one: the witness finds it too long, or has no room
    /// for the group.
    pub(crate) refused: bool,
    /// When the next request is due.
    pub(crate) next_request: Instant,
    /// When the last request left.
    pub(crate) requested_at: Instant,
    /// Whether the reference point was reported to the driver as one that answers.
    pub(crate) heard: bool,
    /// The witness's incarnation that answered last, 0 for none.
    pub(crate) witness: u64,
    /// Whether the last answer said that what this node holds is not known to be the newest; as an answer to
    /// RenewSimplex, that what any other node holds is not.
    pub(crate) simplex: bool,
    /// The witness has confirmed its mark since this primary last began to say SIMPLEX.
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

/// Whether a refusal says that a promise or the witness's quiet period has to end first.
pub(crate) const fn waits(reply: &WitnessReply) -> bool {
    // A witness rounds up by one.
    reply.retry_after_us > 1
}
