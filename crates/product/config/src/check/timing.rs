//! Times of failure detection that must fit each other.

use bumpless_base::Duration;

use crate::model::Timing;
use crate::reader::{Place, Reader};
use crate::schema;

/// Fewest heartbeats in a lease: with two lost in a row the third still renews it.
const HEARTBEATS_PER_LEASE: u64 = 3;
/// Fewest leases that a starting node waits: whatever it promised before it stopped has run out.
const LEASES_PER_START: u64 = 2;

pub(crate) fn check(reader: &mut Reader, given: &schema::Timing) -> Option<Timing> {
    if let (Some(heartbeat), Some(lease)) = (given.heartbeat, given.lease) {
        let heartbeats = HEARTBEATS_PER_LEASE;
        let short = TooShort {
            field: ("lease_ms", lease, heartbeat * heartbeats),
            than: format!("{heartbeats} heartbeats of {} ms", ms(heartbeat)),
            // Of the shortest lease there is this is more than the shortest heartbeat.
            other: ("heartbeat_ms", Some(lease / heartbeats)),
        };
        short.tell(reader, &given.place);
    }
    if let (Some(lease), Some(start_wait), Some(drift)) =
        (given.lease, given.start_wait, given.clock_drift)
    {
        let drift = u32::try_from(drift).unwrap_or(u32::MAX);
        let whole = start_wait.as_nanos() / LEASES_PER_START;
        let longest = u128::from(whole) * 1_000_000 / (1_000_000 + u128::from(drift));
        let longest = Duration::from_nanos(longest as u64);
        // What the field does not accept is no remedy.
        let shortest = Duration::from_micros((schema::LEASE_MIN_MS * 1e3) as u64);
        let short = TooShort {
            field: (
                "start_wait_ms",
                start_wait,
                lease.stretched(drift) * LEASES_PER_START,
            ),
            than: format!(
                "{LEASES_PER_START} leases of {} ms with clock drift",
                ms(lease)
            ),
            other: ("lease_ms", (longest >= shortest).then_some(longest)),
        };
        short.tell(reader, &given.place);
    }
    Some(Timing {
        heartbeat: given.heartbeat?,
        lease: given.lease?,
        clock_drift_ppm: u32::try_from(given.clock_drift?).ok()?,
        start_wait: given.start_wait?,
    })
}

/// A time that another one lets be no shorter.
struct TooShort {
    /// Its field, what it is, and what it is at least.
    field: (&'static str, Duration, Duration),
    /// What it is to be as long as.
    than: String,
    /// The field of the other one, and what that may be at most, if it can be so little.
    other: (&'static str, Option<Duration>),
}

impl TooShort {
    /// Reported where it is so, on the line of the one that the file gives: a default is nobody's mistake.
    fn tell(self, reader: &mut Reader, place: &Place) {
        let (key, is, least) = self.field;
        let (other, most) = self.other;
        if is >= least {
            return;
        }
        let whose = if place.has(key) { "" } else { " by default" };
        let wrong = format!("{key} is {} ms{whose}, shorter than {}", ms(is), self.than);
        let mut right = format!("give {key} = {} or more", ms(least));
        if let Some(most) = most {
            let most = Duration::from_micros(most.as_micros());
            right.push_str(&format!(", or {other} = {} or less", ms(most)));
        }
        let nearer = if place.has(key) || !place.has(other) {
            key
        } else {
            other
        };
        reader.wrong_on(
            place.line_of(nearer),
            format!("{}.{key}", place.path),
            wrong,
            right,
        );
    }
}

/// Milliseconds for people: no more digits than needed.
pub(crate) fn ms(span: Duration) -> String {
    format!("{}", span.as_millis_f64())
}
