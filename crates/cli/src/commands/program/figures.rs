//! Numbers of a program, for people and for programs.

use bumpless_host::kit::Percentiles;
use serde_json::{Value, json};

const US: f64 = 1e3;

/// Spread of times in nanoseconds.
pub fn times(spread: Percentiles) -> String {
    let us = |nanos: u64| nanos as f64 / US;
    format!(
        "p50 {:.1} us, p99 {:.1} us, p99.9 {:.1} us, longest {:.1} us",
        us(spread.p50),
        us(spread.p99),
        us(spread.p999),
        us(spread.max)
    )
}

/// The same as JSON.
pub fn spread(spread: Percentiles) -> Value {
    json!({"p50": spread.p50, "p99": spread.p99, "p99_9": spread.p999, "max": spread.max})
}
