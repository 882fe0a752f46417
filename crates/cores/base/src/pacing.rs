//! How much may leave at once on a link that is sent to at a bandwidth: what the data plane's pacer
//! keeps to, and what a plan must expect to be ahead of a packet.

use crate::{Duration, frame};

/// Most bytes in a burst.
pub const MAX_BURST: u64 = 64 * 1024;
/// Longest time that a burst may occupy the wire.
pub const BURST_TIME: Duration = Duration::from_micros(500);

/// Bytes that go out in [`BURST_TIME`] at `bandwidth` bit/s.
pub const fn worth(bandwidth: u64) -> u64 {
    (bandwidth / 8_000).saturating_mul(BURST_TIME.as_micros()) / 1_000
}

/// Most bytes on the wire that go out at once at `bandwidth` bit/s, where a full packet has `packet` bytes: 64 KiB
/// or 500 us worth, whichever is less, but at least two packets.
pub const fn burst(bandwidth: u64, packet: u64) -> u64 {
    let worth = worth(bandwidth);
    let bounded = if worth < MAX_BURST { worth } else { MAX_BURST };
    let least = packet.saturating_mul(2);
    if bounded > least { bounded } else { least }
}

/// How much later than usual an answer may be at `bandwidth` bit/s although nothing is lost: a full frame of other
/// traffic may have begun, and small messages may go first, which do not take longer than another. Zero where the
/// bandwidth is not known.
pub const fn blocking(bandwidth: u64) -> Duration {
    if bandwidth == 0 {
        return Duration::ZERO;
    }
    Duration::from_nanos((2 * frame::FULL as u64 * 8_000_000_000).div_ceil(bandwidth))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_full_frames_block() {
        assert_eq!(blocking(1_000_000_000), Duration::from_nanos(24_608));
        assert_eq!(blocking(0), Duration::ZERO);
    }

    #[test]
    fn a_burst_is_bounded_in_bytes_and_time_and_never_below_two_packets() {
        assert_eq!(burst(1_000_000_000, 1538), 62_500);
        assert_eq!(burst(10_000_000_000, 1538), MAX_BURST);
        assert_eq!(burst(1_000_000, 1538), 2 * 1538);
        assert_eq!(burst(u64::MAX, 1538), MAX_BURST);
    }
}
