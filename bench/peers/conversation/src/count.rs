//! What the whole process has allocated, if `--count` was given.

// SAFETY: the signatures are those in `c/count.c`; each touches atomic variables only.
unsafe extern "C" {
    safe fn peer_count_start();
    safe fn peer_count_allocations() -> u64;
    safe fn peer_count_peak() -> u64;
}

/// Starts to count.
pub fn start() {
    peer_count_start();
}

/// Allocations since the start.
pub fn allocations() -> u64 {
    peer_count_allocations()
}

/// The most bytes that were allocated at once.
pub fn peak_bytes() -> u64 {
    peer_count_peak()
}
