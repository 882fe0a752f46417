//! Times of failure detection that must fit each other.

use bumpless_base::Duration;

use crate::model::Timing;
use crate::reader::Reader;
use crate::schema;

/// Fewest heartbeats in a lease: with two lost in a row the third still renews it.
const HEARTBEATS_PER_LEASE: u64 = 3;
/// Fewest leases that a starting node waits: whatever it promised before it stopped has run out.
const LEASES_PER_START: u64 = 2;

pub(crate) fn check(reader: &mut Reader, given: &schema::Timing) -> Option<Timing> {
    let place = &given.place;
    if let (Some(heartbeat), Some(lease)) = (given.heartbeat, given.lease) {
        let least = heartbeat * HEARTBEATS_PER_LEASE;
        if lease < least {
            let wrong = format!(
                "{} ms is shorter than {HEARTBEATS_PER_LEASE} heartbeats of {} ms",
                ms(lease),
                ms(heartbeat)
            );
            let right = format!("give at least {}, or send heartbeats more often", ms(least));
            reader.wrong(
                place,
                nearer(place, "lease_ms", "heartbeat_ms"),
                wrong,
                right,
            );
        }
    }
    if let (Some(lease), Some(start_wait), Some(drift)) =
        (given.lease, given.start_wait, given.clock_drift)
    {
        let drift = u32::try_from(drift).unwrap_or(u32::MAX);
        let least = lease.stretched(drift) * LEASES_PER_START;
        if start_wait < least {
            let wrong = format!(
                "{} ms is shorter than {LEASES_PER_START} leases of {} ms with clock drift",
                ms(start_wait),
                ms(lease)
            );
            let right = format!("give at least {}, or shorten lease_ms", ms(least));
            reader.wrong(
                place,
                nearer(place, "start_wait_ms", "lease_ms"),
                wrong,
                right,
            );
        }
    }
    Some(Timing {
        heartbeat: given.heartbeat?,
        lease: given.lease?,
        clock_drift_ppm: u32::try_from(given.clock_drift?).ok()?,
        start_wait: given.start_wait?,
    })
}

/// `first` if the file gives it, else `second`: a default is nobody's mistake.
fn nearer<'k>(place: &crate::reader::Place, first: &'k str, second: &'k str) -> &'k str {
    if place.has(first) || !place.has(second) {
        first
    } else {
        second
    }
}

/// Milliseconds for people: no more digits than needed.
pub(crate) fn ms(span: Duration) -> String {
    format!("{}", span.as_millis_f64())
}
