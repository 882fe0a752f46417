//! The time by which certificates are judged.

use std::sync::Arc;

use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use rustls_pki_types::UnixTime;
use x509_cert::der::DateTime;

/// Tells the time by which certificates are judged.
pub type Clock = Arc<dyn TimeProvider>;

/// The computer's clock.
pub fn system_clock() -> Clock {
    Arc::new(DefaultTimeProvider)
}

/// A time as it is told to people and programs, in UTC: `2026-11-24T04:23:16Z`.
pub fn told(time: UnixTime) -> String {
    let since = std::time::Duration::from_secs(time.as_secs());
    let date = DateTime::from_unix_duration(since).unwrap_or(DateTime::INFINITY);
    date.to_string()
}

/// The time, or the oldest one if the system does not tell it: no certificate is valid then.
pub fn now(clock: &Clock) -> UnixTime {
    let oldest = UnixTime::since_unix_epoch(std::time::Duration::ZERO);
    clock.current_time().unwrap_or(oldest)
}
