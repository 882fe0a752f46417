//! Spans in the unit that status shows.

use bumpless_base::Duration;

/// In milliseconds, to the microsecond.
pub fn millis(span: Duration) -> f64 {
    (span.as_nanos() as f64 / 1e3).round() / 1e3
}
