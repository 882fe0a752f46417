//! Arithmetic that rounds to the safe side.

/// Nanoseconds that `bytes` take at `rate` bit/s, rounded up.
pub fn nanos(bytes: u128, rate: u64) -> u128 {
    (bytes * 8_000_000_000).div_ceil(u128::from(rate.max(1)))
}

/// `nanos`, or the largest that a `u64` holds.
pub(crate) fn saturated(nanos: u128) -> u64 {
    u64::try_from(nanos).unwrap_or(u64::MAX)
}
