//! How long outputs may be missing (P-85, P-86).

use super::limits::{self, field, nanos};
use super::{Application, Commit, Duration, Serialize, Timing, Ways, part};

/// Heartbeats of silence after which a partner is silent (R-11; `peer_timeout` of the driver).
const SILENCE: u64 = 3;
/// Between two rounds of a node that hears nobody, in heartbeats.
const ROUND: (u64, u64) = (9, 8);
/// What is urgent waits for no longer, in heartbeats.
const HASTE: (u64, u64) = (1, 8);

/// The longest time between two outputs that the field devices accept, by what ends. What an application computes adds to each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Gaps {
    /// The primary's site, all at once.
    #[serde(rename = "unordered_ns", serialize_with = "nanos")]
    pub unordered: Duration,
    /// The primary's site, after an ordered switchover.
    #[serde(rename = "ordered_ns", serialize_with = "nanos")]
    pub ordered: Duration,
    /// The backup's site, all at once.
    #[serde(rename = "backup_ns", serialize_with = "nanos")]
    pub backup: Duration,
}

impl Gaps {
    pub(super) fn of(app: &Application, timing: &Timing, ways: &Ways, takeover: Duration) -> Self {
        let (request, jitter) = (field(app), ways.jitter);
        let haste = part(timing.heartbeat, HASTE.0, HASTE.1);
        let certain = ways.witness + haste + jitter;
        // Until the backup's answer an output waits for at most the deadline; one cycle may wait, and the one before not.
        let (waits, first) = match app.commit {
            Commit::BeforeOutput => (app.deadline, request.max(certain)),
            Commit::Async => (Duration::ZERO, request),
        };
        let before = app.period + waits + jitter;
        // A right that ends before the witness has answered: the state is published under the next, and waited for again.
        let right = limits::right(timing.heartbeat, ways) + request + app.deadline + certain;
        let again = match app.commit {
            Commit::BeforeOutput if timing.lease < right => app.deadline + certain,
            _ => Duration::ZERO,
        };
        let offered = timing.heartbeat + haste + half(ways.pair) + jitter;
        // A cycle that takes longer than the period costs the grid points that it passes over.
        let skips = |takes: Duration| {
            let periods = (takes + jitter * 2)
                .as_nanos()
                .div_ceil(app.period.as_nanos().max(1));
            app.period * periods + jitter
        };
        let unordered = before + takeover + first + request + jitter * 2;
        // The last state is made safe, the role offered once more if that is lost, and the successor waits for its first state.
        let handed = app.period + app.deadline + jitter + offered;
        let ordered = handed + request + waits + request + jitter * 2;
        let backup = app.period + app.deadline + certain + again + jitter;
        Self {
            unordered: unordered.max(skips(first + request)),
            ordered: ordered.max(skips(request + waits + request)),
            backup: backup.max(skips(request + app.deadline + certain + again + request)),
        }
    }
}

fn half(span: Duration) -> Duration {
    part(span, 1, 2)
}

/// From the end of a primary until its backup holds it for silent.
pub(super) fn detection(timing: &Timing, ways: &Ways) -> Duration {
    half(ways.pair) + timing.heartbeat * SILENCE + ways.jitter
}

/// From the end of a primary until its backup has the role, although one request may be lost.
pub(super) fn takeover(timing: &Timing, ways: &Ways) -> Duration {
    let promise = timing.lease.stretched(timing.clock_drift_ppm);
    let own = half(ways.pair) + promise + ways.jitter;
    let asked = detection(timing, ways) + ways.witness + ways.jitter;
    let rounds = part(timing.heartbeat, ROUND.0, ROUND.1) * 2;
    // The primary's last request was on its way when it ended, and so is the backup's that comes too early.
    let granted =
        ways.witness + promise.stretched(timing.clock_drift_ppm) + rounds + ways.jitter * 2;
    let leased = if ways.witness == Duration::ZERO {
        Duration::ZERO
    } else {
        granted
    };
    own.max(asked).max(leased)
}
