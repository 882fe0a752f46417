use super::*;
use proptest::prelude::*;

const GIGABIT: u64 = 1_000_000_000;

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

/// The obvious twin: credit is earned one nanosecond at a time.
struct Twin {
    bandwidth: u64,
    burst: u64,
    /// Bits times 10^9.
    credit: i128,
    now: u64,
}

impl Twin {
    fn pass_to(&mut self, now: u64) {
        while self.now < now {
            self.now += 1;
            let full = i128::from(self.burst) * 8_000_000_000;
            self.credit = (self.credit + i128::from(self.bandwidth)).min(full);
        }
    }
    fn allowance(&self) -> usize {
        (self.credit / 8_000_000_000).max(0) as usize
    }
    /// The first instant from now on at which `bytes` may be sent.
    fn ready_at(&self, bytes: u64) -> u64 {
        let mut ahead = Self { ..*self };
        while ahead.credit < i128::from(bytes.min(self.burst)) * 8_000_000_000 {
            ahead.pass_to(ahead.now + 1);
        }
        ahead.now
    }
}

proptest! {
    #[test]
    fn the_bucket_agrees_with_one_filled_every_nanosecond(
        bandwidth in prop_oneof![Just(GIGABIT), 8_000_000..40_000_000_000u64],
        steps in prop::collection::vec((0..30_000u64, 0..4_000usize), 1..20),
    ) {
        let mut pacer = Pacer::new(bandwidth, 66, 1_400, at(0));
        let burst = pacer.burst() as u64;
        let mut twin = Twin { bandwidth, burst, credit: i128::from(burst) * 8_000_000_000, now: 0 };
        let drain = pacer.burst();
        pacer.spent(drain, at(0));
        twin.credit = 0;
        for (pause, bytes) in steps {
            let now = twin.now + pause;
            twin.pass_to(now);
            prop_assert_eq!(pacer.allowance(at(now)), twin.allowance());
            if pacer.allowance(at(now)) >= bytes {
                pacer.spent(bytes, at(now));
                twin.credit -= bytes as i128 * 8_000_000_000;
            }
            let ready = pacer.ready_at(1_466, at(now)).map_or(now, Instant::as_nanos);
            prop_assert_eq!(ready, twin.ready_at(1_466));
        }
    }
}

/// Sends full packets whenever allowed, waking exactly when told, and returns bytes sent.
fn saturate(pacer: &mut Pacer, payload: usize, until: u64) -> u64 {
    let mut sent = 0;
    let mut now = at(0);
    while now.as_nanos() < until {
        let packet = pacer.wire_bytes(1, payload);
        let count = pacer.allowance(now) / packet;
        let bytes = pacer.wire_bytes(count, count * payload);
        pacer.spent(bytes, now);
        sent += bytes as u64;
        now = pacer.next(now).expect("a drained bucket asks for time");
    }
    sent
}

#[test]
fn the_long_run_rate_is_exact_at_rates_that_do_not_divide() {
    for bandwidth in [GIGABIT, 999_999_937, 100_000_007, 10_000_000] {
        let mut pacer = Pacer::new(bandwidth, 66, 1_400, at(0));
        let seconds = 20;
        let sent = saturate(&mut pacer, 1_400, seconds * 1_000_000_000);
        let exact = bandwidth * seconds / 8;
        let burst = pacer.burst() as u64;
        assert!(sent <= exact + burst, "{bandwidth}: sent {sent} of {exact}");
        assert!(sent + burst >= exact, "{bandwidth}: sent {sent} of {exact}");
    }
}

#[test]
fn no_interval_carries_more_than_its_worth_and_a_burst() {
    let mut pacer = Pacer::new(GIGABIT, 66, 1_400, at(0));
    let burst = pacer.burst();
    assert_eq!(pacer.allowance(at(0)), burst);
    pacer.spent(burst, at(0));
    assert_eq!(pacer.allowance(at(0)), 0);
    assert_eq!(pacer.allowance(at(80_000)), 10_000);
    assert_eq!(
        pacer.allowance(at(3_600_000_000_000)),
        burst,
        "a pause earns one burst only"
    );
}

#[test]
fn a_burst_is_bounded_by_bytes_time_and_two_packets() {
    let burst = |bandwidth| Pacer::new(bandwidth, 66, 1_400, at(0)).burst();
    assert_eq!(burst(GIGABIT), 62_500);
    assert_eq!(burst(10 * GIGABIT), 64 * 1024);
    assert_eq!(burst(10_000_000), 2 * 1_466);
}

#[test]
fn a_message_occupies_the_wire_for_no_longer_than_half_a_burst() {
    let packets = |bandwidth| {
        let pacer = Pacer::new(bandwidth, 66, 1_400, at(0));
        let full = |count| !pacer.has_room(count, count * 1_400);
        (1..).find(|&count| full(count)).unwrap()
    };
    assert_eq!(packets(GIGABIT), 31_250 / 1_466);
    assert_eq!(packets(10 * GIGABIT), 64 * 1024 / 1_466);
    assert_eq!(packets(10_000_000), 1);
    assert!(Pacer::new(0, 66, 1_400, at(0)).has_room(1_000, 1_400_000));
}

#[test]
fn an_overdraft_delays_what_follows() {
    let mut pacer = Pacer::new(GIGABIT, 66, 1_400, at(0));
    pacer.spent(pacer.burst() + 125, at(0));
    assert_eq!(pacer.allowance(at(1_000)), 0);
    assert_eq!(pacer.allowance(at(1_008)), 1);
    assert_eq!(
        pacer.ready_at(1_466, at(1_008)),
        Some(at(1_000 + 1_466 * 8))
    );
}

#[test]
fn another_bandwidth_counts_from_its_moment_and_debts_are_earned_back_at_it() {
    let mut pacer = Pacer::new(GIGABIT, 66, 1_400, at(0));
    pacer.spent(pacer.burst() + 125, at(0));
    pacer.set_bandwidth(GIGABIT / 10, at(1_000));
    assert_eq!(pacer.allowance(at(1_079)), 0);
    assert_eq!(pacer.allowance(at(1_080)), 1);
    let mut full = Pacer::new(GIGABIT, 66, 1_400, at(0));
    full.set_bandwidth(GIGABIT / 100, at(0));
    assert_eq!(full.allowance(at(0)), 2 * 1_466, "a burst of the slow one");
    full.set_bandwidth(0, at(0));
    assert_eq!(full.allowance(at(0)), usize::MAX);
    full.set_bandwidth(GIGABIT, at(0));
    assert_eq!(full.allowance(at(0)), 2 * 1_466);
    assert_eq!(
        full.allowance(at(1_000_000)),
        Pacer::new(GIGABIT, 66, 1_400, at(0)).burst()
    );
}

#[test]
fn without_a_bandwidth_nothing_waits() {
    let mut pacer = Pacer::new(0, 66, 1_400, at(0));
    pacer.spent(usize::MAX, at(0));
    assert_eq!(pacer.allowance(at(0)), usize::MAX);
    assert_eq!(
        (pacer.next(at(0)), pacer.ready_at(usize::MAX, at(0))),
        (None, None)
    );
}

#[test]
fn instants_that_go_backwards_and_extreme_rates_do_no_harm() {
    let mut pacer = Pacer::new(u64::MAX, u16::MAX, u16::MAX, at(u64::MAX));
    pacer.spent(usize::MAX, at(0));
    assert!(pacer.next(at(5)).is_some());
    assert_eq!(pacer.allowance(Instant::FAR_FUTURE), 0);
    let mut slow = Pacer::new(1, 66, 1_400, at(0));
    slow.spent(usize::MAX, at(0));
    assert!(slow.next(at(0)).is_some());
}

#[test]
fn a_packet_costs_its_frame_too() {
    let pacer = Pacer::new(GIGABIT, 66, 1_400, at(0));
    assert_eq!(pacer.wire_bytes(3, 300), 300 + 3 * 66);
    assert_eq!(pacer.wire_bytes(usize::MAX, usize::MAX), usize::MAX);
}
