//! The window beside the paper's algorithm, taken literally, and both halves of theorem 1.

use super::*;
use bumpless_base::Random;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::vec::Vec;

/// Algorithms 5 and 6 as printed.
struct Paper {
    high_sn: Option<u32>,
    list_sn: BTreeSet<u32>,
    max_lost: usize,
}

impl Paper {
    fn new(max_lost: u32) -> Self {
        Self {
            high_sn: None,
            list_sn: BTreeSet::new(),
            max_lost: max_lost as usize,
        }
    }

    fn is_fresh(&mut self, current: u32) -> bool {
        let follows = |x: u32, y: u32| x.wrapping_sub(y) >> 31 == 0;
        let Some(high) = self.high_sn else {
            self.high_sn = Some(current);
            return true;
        };
        if current == high {
            return false;
        }
        if follows(current, high) {
            // Of a longer gap only the last are left in the next step.
            let from = high
                .wrapping_add(1)
                .max(current.saturating_sub(self.max_lost as u32));
            self.list_sn.extend(from..current);
            while self.list_sn.len() > self.max_lost {
                self.list_sn.pop_first();
            }
            self.high_sn = Some(current);
            return true;
        }
        self.list_sn.remove(&current)
    }
}

const MAX_LOST: u32 = 128;

/// Numbers as several networks deliver them: each loses and delays in its own way.
fn over_networks(seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed);
    let networks = 1 + random.below(3);
    let first = [0, 7, u32::MAX - 2_000][random.below(3) as usize];
    let mut arrivals = Vec::new();
    for _ in 0..networks {
        let (loss, skew, jitter) = (random.below(60), random.below(400), 1 + random.below(200));
        let (cut_from, cut_for) = (random.below(1_000), random.below(700));
        for at in 0..1_000u64 {
            let is_cut = (cut_from..cut_from + cut_for).contains(&at);
            let copies = if random.below(100) < 3 { 2 } else { 1 };
            for _ in 0..copies {
                if !is_cut && random.below(100) >= loss {
                    arrivals.push((at + skew + random.below(jitter), first + at as u32));
                }
            }
        }
    }
    arrivals.sort_by_key(|(at, _)| *at);
    arrivals.into_iter().map(|(_, number)| number).collect()
}

/// Numbers that go on, fall back, repeat and leap.
fn at_random() -> impl Strategy<Value = Vec<u32>> {
    let step = prop_oneof![
        8 => Just(1i64),
        4 => -6..6i64,
        3 => -150..150i64,
        1 => -600..600i64,
        1 => Just(1 << 20),
    ];
    let start = prop_oneof![Just(0i64), Just(500), Just(i64::from(u32::MAX) - 300)];
    (start, proptest::collection::vec(step, 1..500)).prop_map(|(start, steps)| {
        let mut at = start;
        let next = |step: i64| {
            at = (at + step).clamp(0, i64::from(u32::MAX));
            at as u32
        };
        steps.into_iter().map(next).collect()
    })
}

fn check(numbers: &[u32]) {
    let mut window = Window::default();
    let mut bits = std::vec![0; words(MAX_LOST)];
    let mut paper = Paper::new(MAX_LOST);
    let mut received = BTreeSet::new();
    for &number in numbers {
        let verdict = window.judge(&mut bits, number);
        let fresh = paper.is_fresh(number);
        let highest = received.last().copied();
        let is_valid =
            highest.is_none_or(|highest: u32| highest <= number.saturating_add(MAX_LOST));
        let is_first = received.insert(number);
        // Theorem 1: the first received valid copy is forwarded, and no duplicate is.
        let right = match (is_valid, is_first) {
            (false, _) => Verdict::VeryLate,
            (true, true) => Verdict::First,
            (true, false) => Verdict::Duplicate,
        };
        assert_eq!(verdict, right, "{number} after {highest:?}");
        let overtook_the_first = number < numbers[0];
        if is_valid && !overtook_the_first {
            assert_eq!(fresh, verdict == Verdict::First, "{number}, the paper");
        }
        if fresh {
            assert!(is_first, "the paper forwards {number} twice");
        }
    }
    let high = window.high().unwrap();
    let behind = window.behind(&bits);
    for back in 1..=64u32.min(high) {
        let has_come = received.contains(&(high - back));
        assert_eq!(behind >> (back - 1) & 1 != 0, has_come, "{high} - {back}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn of_several_networks_the_first_valid_copy_passes_and_no_second_one(seed: u64) {
        check(&over_networks(seed));
    }

    #[test]
    fn of_any_numbers_the_first_valid_one_passes_as_in_the_paper(numbers in at_random()) {
        check(&numbers);
    }
}

#[test]
fn what_the_first_packet_overtook_passes_where_the_paper_rejects_it() {
    let mut window = Window::default();
    let mut bits = [0; words(MAX_LOST)];
    let mut paper = Paper::new(MAX_LOST);
    for number in [1, 0] {
        assert_eq!(window.judge(&mut bits, number), Verdict::First);
    }
    assert!(
        paper.is_fresh(1) && !paper.is_fresh(0),
        "a legitimate packet"
    );
}

#[test]
fn after_any_gap_the_next_packet_passes_where_the_paper_rejects_it() {
    let mut window = Window::default();
    let mut bits = [0; words(MAX_LOST)];
    let mut paper = Paper::new(MAX_LOST);
    for number in [5, u32::MAX - 3] {
        assert_eq!(window.judge(&mut bits, number), Verdict::First);
    }
    assert!(paper.is_fresh(5) && !paper.is_fresh(u32::MAX - 3));
}

#[test]
fn the_last_packet_that_is_not_too_late_passes_and_the_one_before_does_not() {
    for high in [1_000u32, 1_023, 1_024, 1_087] {
        let mut window = Window::default();
        let mut bits = [0; words(MAX_LOST)];
        assert_eq!(window.judge(&mut bits, high), Verdict::First);
        assert_eq!(window.judge(&mut bits, high - MAX_LOST), Verdict::First);
        assert_eq!(window.judge(&mut bits, high - MAX_LOST), Verdict::Duplicate);
        assert_eq!(
            window.judge(&mut bits, high - MAX_LOST - 1),
            Verdict::VeryLate
        );
    }
}
