//! The jitter meters beside a measurement: one on each processor, since one can stand still while
//! another runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bumpless_base::{Duration, Instant};
use bumpless_net_linux::{JitterMeter, Stall, realtime};
use serde::{Deserialize, Serialize};

use crate::conversation::Miss;

const PERIOD: Duration = Duration::from_millis(1);
/// A wake-up later than this is a stall.
pub const THRESHOLD: Duration = Duration::from_micros(500);
const REMEMBERED: usize = 65_536;
/// Most processors that are watched.
const METERS: usize = 64;
/// Above whatever is measured without real-time priority, so that only the machine makes a meter late. Where it is not granted the
/// meter competes with the rest.
const PRIORITY: u8 = 1;

/// What the meters saw during a measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jitter {
    /// Wake-ups, one each millisecond on each processor.
    pub wakes: u64,
    /// How many stalls of half a millisecond or more there were; what overlaps on two processors is one.
    pub stalled: u64,
    /// The latest wake-up, nanoseconds.
    pub longest_ns: u64,
    /// The stalls: nanoseconds from the measurement's beginning to when the wake-up was due, and how long
    /// it lasted.
    pub stalls: Vec<(u64, u64)>,
}

/// What the meters of all processors saw.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    wakes: u64,
    longest: Duration,
    /// In order of time, none overlapping another.
    stalls: Vec<Stall>,
}

impl Seen {
    fn of(meters: &[JitterMeter]) -> Self {
        let mut all: Vec<Stall> = meters.iter().flat_map(|it| it.stalls().copied()).collect();
        all.sort_unstable_by_key(|stall| stall.asked);
        let mut stalls: Vec<Stall> = Vec::with_capacity(all.len());
        for stall in all {
            match stalls.last_mut() {
                Some(last) if stall.asked <= last.woke => last.woke = last.woke.max(stall.woke),
                _ => stalls.push(stall),
            }
        }
        let longest = meters.iter().map(JitterMeter::longest).max();
        Self {
            wakes: meters.iter().map(JitterMeter::wakes).sum(),
            longest: longest.unwrap_or_default(),
            stalls,
        }
    }

    /// Adds what was seen later.
    pub fn append(&mut self, later: Self) {
        self.wakes += later.wakes;
        self.longest = self.longest.max(later.longest);
        self.stalls.extend(later.stalls);
    }

    /// The stalls, oldest first.
    pub fn stalls(&self) -> impl Iterator<Item = &Stall> {
        self.stalls.iter()
    }

    /// Whether the machine stood still at any time from `from` to `to`.
    pub fn touches(&self, from: Instant, to: Instant) -> bool {
        let next = self.stalls.partition_point(|stall| stall.woke < from);
        self.stalls.get(next).is_some_and(|stall| stall.asked <= to)
    }

    /// How long it did, nanoseconds.
    pub fn stood_still(&self, from: Instant, to: Instant) -> u64 {
        let next = self.stalls.partition_point(|stall| stall.woke < from);
        let within = self.stalls[next..].iter();
        overlap(within.take_while(|stall| stall.asked <= to), from, to)
    }
}

/// Runs `work` with a meter on each processor beside it; gives what both have found.
pub fn beside<T>(work: impl FnOnce() -> T) -> (T, Seen) {
    let meter = || JitterMeter::new(THRESHOLD, REMEMBERED);
    let (result, meters) = on_each_processor(METERS, meter, Some(PRIORITY), work);
    (result, Seen::of(&meters))
}

/// The same beside what has the real-time `priority` itself: the meters have one more.
pub fn beside_urgent<T>(priority: u8, work: impl FnOnce() -> T) -> (T, Seen) {
    let meter = || JitterMeter::new(THRESHOLD, REMEMBERED);
    let (result, meters) = on_each_processor(METERS, meter, Some(priority + 1), work);
    (result, Seen::of(&meters))
}

/// The same with meters that are ordinary threads: they are late, too, when others have the processors.
pub fn beside_ordinary<T>(work: impl FnOnce() -> T) -> (T, Seen) {
    let meter = || JitterMeter::new(THRESHOLD, REMEMBERED);
    let (result, meters) = on_each_processor(METERS, meter, None, work);
    (result, Seen::of(&meters))
}

/// Runs `work` with a new `meter` on each of at most `most` processors beside it, every one with the
/// real-time `priority`, if any, that is granted.
pub(crate) fn on_each_processor<T>(
    most: usize,
    meter: impl Fn() -> JitterMeter,
    priority: Option<u8>,
    work: impl FnOnce() -> T,
) -> (T, Vec<JitterMeter>) {
    let stop = AtomicBool::new(false);
    let count = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let watchers: Vec<_> = (0..count.min(most))
            .map(|cpu| {
                let (meter, stop) = (meter(), &stop);
                scope.spawn(move || watch(cpu, meter, priority, stop))
            })
            .collect();
        let result = work();
        stop.store(true, Ordering::Relaxed);
        let meters = watchers.into_iter().filter_map(|it| it.join().ok());
        (result, meters.collect())
    })
}

fn watch(
    cpu: usize,
    mut meter: JitterMeter,
    priority: Option<u8>,
    stop: &AtomicBool,
) -> JitterMeter {
    // What is refused makes the meter coarser: it then wakes where and when there is room.
    let _ = realtime::tighten_timers();
    let _ = realtime::pin(cpu);
    if let Some(priority) = priority {
        let _ = realtime::set_fifo(priority);
    }
    meter.run(PERIOD, stop);
    meter
}

/// Whether `stalls` between the release of what was missed and its end add up to what it was late by; of what
/// was given up, to so much that what was left until the deadline was less than states `take` there.
pub fn explains<'a>(
    stalls: impl Iterator<Item = &'a Stall>,
    miss: &Miss,
    deadline: Duration,
    take: Duration,
) -> bool {
    let late = miss.late.map(Duration::from_nanos);
    let from = Instant::from_nanos(miss.released);
    let to = from + deadline + late.unwrap_or_default();
    let enough = match late {
        Some(late) => late.as_nanos(),
        None => deadline.as_nanos().saturating_sub(take.as_nanos()),
    };
    overlap(stalls, from, to) >= enough.max(1)
}

/// How much of the time from `from` to `to` lies in `stalls`, nanoseconds.
fn overlap<'a>(stalls: impl Iterator<Item = &'a Stall>, from: Instant, to: Instant) -> u64 {
    let within = |stall: &Stall| stall.woke.min(to).since(stall.asked.max(from));
    stalls.map(|stall| within(stall).as_nanos()).sum()
}

/// What was `seen`, told relative to `began`.
pub fn told(seen: &Seen, began: Instant) -> Jitter {
    let since = |stall: &Stall| stall.asked.since(began).as_nanos();
    let stalls = seen.stalls();
    Jitter {
        wakes: seen.wakes,
        stalled: seen.stalls.len() as u64,
        longest_ns: seen.longest.as_nanos(),
        stalls: stalls
            .map(|stall| (since(stall), stall.length().as_nanos()))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_processors_see_at_once_is_one_stall() {
        let at = |micros: u64| Instant::from_nanos(micros * 1000);
        let meter = |stalls: &[(u64, u64)]| {
            let mut meter = JitterMeter::new(THRESHOLD, 8);
            for &(asked, woke) in stalls {
                meter.record(at(asked), at(woke));
            }
            meter
        };
        let first = meter(&[(1_000, 1_100), (2_000, 5_000), (9_000, 9_700)]);
        let other = meter(&[(4_500, 6_000), (8_000, 8_499), (11_000, 11_600)]);
        let seen = Seen::of(&[first, other]);
        let told = told(&seen, at(1_000));
        let micros: Vec<_> = told
            .stalls
            .iter()
            .map(|s| (s.0 / 1000, s.1 / 1000))
            .collect();
        assert_eq!(micros, [(1_000, 4_000), (8_000, 700), (10_000, 600)]);
        assert_eq!(
            (told.wakes, told.stalled, told.longest_ns),
            (6, 3, 3_000_000)
        );
        assert!(seen.touches(at(5_900), at(7_000)) && seen.touches(at(0), at(2_000)));
        assert!(!seen.touches(at(6_001), at(8_999)) && !seen.touches(at(11_601), at(20_000)));

        let stood_still = |from, to| seen.stood_still(at(from), at(to)) / 1000;
        assert_eq!(stood_still(1_000, 20_000), 4_000 + 700 + 600);
        assert_eq!(stood_still(5_000, 9_100), 1_000 + 100);
        assert_eq!(stood_still(6_001, 8_999), 0);

        let mut whole = seen;
        whole.append(Seen::of(&[meter(&[(20_000, 24_000)])]));
        assert!(whole.touches(at(5_900), at(7_000)) && whole.touches(at(23_000), at(25_000)));
        let told = super::told(&whole, at(1_000));
        assert_eq!(
            (told.wakes, told.stalled, told.longest_ns),
            (7, 4, 4_000_000)
        );
    }

    #[test]
    fn a_miss_is_the_machines_only_if_it_stalled_for_as_long() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let stall = |from, to| Stall {
            asked: at(from),
            woke: at(to),
        };
        let miss = |late| Miss {
            released: 100_000_000,
            late,
            periods: 1,
        };
        let deadline = Duration::from_millis(10);
        let judge = |stalls: &[Stall], late: Option<u64>| {
            let late = late.map(|millis| millis * 1_000_000);
            explains(
                stalls.iter(),
                &miss(late),
                deadline,
                Duration::from_millis(4),
            )
        };
        assert!(judge(&[stall(102, 105)], Some(3)));
        assert!(judge(&[stall(101, 103), stall(109, 110)], Some(3)));
        assert!(!judge(&[stall(102, 104)], Some(3)));
        // Only what lies between release and acknowledgement counts.
        assert!(!judge(&[stall(90, 101), stall(112, 140)], Some(3)));
        assert!(!judge(&[], Some(1)));
        // Given up, where states take 4 ms of 10.
        assert!(judge(&[stall(101, 107)], None));
        assert!(!judge(&[stall(101, 106)], None));
    }
}
