//! The policies beside twins that look at all that has happened (V-30 to V-36).

use bumpless_base::{Duration, Instant};
use bumpless_guard::metric::{Earliness, Fill};
use bumpless_guard::mitigation::{
    Budget, Burst, Gates, Hysteresis, Mitigation, Queue, Slack, SlackSettings,
};
use proptest::collection::vec;
use proptest::prelude::*;

const TARGET: Duration = Duration::from_nanos(100);

/// What can happen. Numbers are nanoseconds or packets.
#[derive(Clone, Copy, Debug)]
enum Event {
    Packet { waiting: u32 },
    Driver { waiting: u32 },
    Processed { spent: u64, waiting: u32 },
    Release,
    Completion { took: u64 },
}

const CAPACITY: u32 = 4;

fn fill(waiting: u32) -> Fill {
    Fill {
        waiting,
        capacity: CAPACITY,
    }
}

fn events() -> impl Strategy<Value = Vec<(u64, Event)>> {
    let waiting = 0..=CAPACITY;
    let event = prop_oneof![
        4 => waiting.clone().prop_map(|waiting| Event::Packet { waiting }),
        1 => waiting.clone().prop_map(|waiting| Event::Driver { waiting }),
        2 => (0u64..30, waiting).prop_map(|(spent, waiting)| Event::Processed { spent, waiting }),
        1 => Just(Event::Release),
        1 => (0u64..150).prop_map(|took| Event::Completion { took }),
    ];
    vec((0u64..15, event), 0..100)
}

/// Tells a policy everything, its timeouts when they are due, and compares its gates with what `twin` makes of the history.
fn compare(
    mut policy: impl Mitigation,
    events: &[(u64, Event)],
    twin: impl Fn(&[(Instant, Event)], Instant) -> Gates,
) -> Result<(), TestCaseError> {
    let mut now = Instant::from_nanos(1_000);
    let mut history = Vec::new();
    for &(later, event) in events {
        let then = now + Duration::from_nanos(later);
        while let Some(due) = policy.poll_timeout().filter(|&due| due <= then) {
            policy.handle_timeout(due);
            let again = policy.poll_timeout();
            prop_assert!(
                again.is_none_or(|again| again > due),
                "a timeout that is always due"
            );
        }
        now = then;
        tell(&mut policy, now, event);
        history.push((now, event));
        prop_assert_eq!(policy.gates(), twin(&history, now), "{:?}", history);
    }
    Ok(())
}

fn tell(policy: &mut impl Mitigation, now: Instant, event: Event) {
    match event {
        Event::Packet { waiting } => policy.handle_packet(now, fill(waiting)),
        Event::Driver { waiting } => policy.handle_driver(now, fill(waiting)),
        Event::Processed { spent, waiting } => {
            policy.handle_processed(now, Duration::from_nanos(spent), fill(waiting));
        }
        Event::Release => policy.handle_release(now),
        Event::Completion { took } => policy.handle_completion(now, earliness(took)),
    }
}

fn earliness(took: u64) -> Earliness {
    Earliness {
        target: TARGET,
        took: Duration::from_nanos(took),
    }
}

fn interrupts(open: bool) -> Gates {
    Gates {
        interrupts: open,
        driver: true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn burst_shuts_after_a_slice_has_had_its_packets(events in events(), capacity in 1u32..6) {
        let length = Duration::from_nanos(40);
        compare(Burst::new(capacity, length), &events, |history, now| {
            // Slices follow one another: each begins with the first packet after the last one's end.
            let (mut end, mut count) = (Instant::ZERO, 0);
            for &(at, event) in history {
                if matches!(event, Event::Packet { .. }) {
                    if at >= end {
                        (end, count) = (at + length, 0);
                    }
                    count += 1;
                }
            }
            interrupts(count < capacity || now >= end)
        })?;
    }

    #[test]
    fn queue_shuts_from_a_packet_that_found_no_room_until_it_is_empty(events in events()) {
        compare(Queue::new(), &events, |history, _| {
            let found_full = |it: &(Instant, Event)| matches!(it.1, Event::Packet { waiting } if waiting >= CAPACITY);
            let emptied = |it: &(Instant, Event)| matches!(it.1, Event::Processed { waiting: 0, .. });
            let full = history.iter().rposition(found_full);
            let empty = history.iter().rposition(emptied);
            interrupts(full.is_none() || full < empty)
        })?;
    }

    #[test]
    fn budget_shuts_when_the_driver_has_spent_the_last_earliness(events in events()) {
        compare(Budget::new(), &events, |history, _| {
            let report = history.iter().rposition(|it| matches!(it.1, Event::Completion { .. }));
            let Some(report) = report else { return Gates::OPEN };
            let Event::Completion { took } = history[report].1 else { unreachable!() };
            let spent: u64 = history[report..].iter().map(|it| match it.1 {
                Event::Processed { spent, .. } => spent,
                _ => 0,
            }).sum();
            match spent >= TARGET.as_nanos().saturating_sub(took) {
                true => Gates::SHUT,
                false => Gates::OPEN,
            }
        })?;
    }

    #[test]
    fn slack_shuts_when_a_job_has_borne_its_interrupts_or_the_queue_is_full(events in events(), bears in 0u64..5) {
        let settings = SlackSettings {
            target: TARGET,
            work: TARGET - Duration::from_nanos(10 * (bears + 1)),
            interrupt: Duration::from_nanos(10),
        };
        prop_assert_eq!(Slack::new(settings).bears(), bears);
        compare(Slack::new(settings), &events, |history, now| {
            let full = history.iter().rev().find_map(|it| match it.1 {
                Event::Packet { waiting } => Some(waiting + 1 >= CAPACITY),
                Event::Driver { waiting } => Some(waiting >= CAPACITY),
                _ => None,
            });
            let ends = |it: &(Instant, Event)| matches!(it.1, Event::Release | Event::Completion { .. });
            let job = history.iter().rposition(ends).filter(|&at| matches!(history[at].1, Event::Release));
            let spent = job.is_some_and(|job| {
                // An overrun is counted from each multiple of the target.
                let begun = history[job].0;
                let whole = now.since(begun).as_nanos() / TARGET.as_nanos();
                let from = begun + TARGET * whole;
                let borne = history[job..].iter().filter(|it| {
                    matches!(it.1, Event::Packet { .. }) && it.0 >= from
                });
                borne.count() as u64 >= bears
            });
            interrupts(!full.unwrap_or(false) && !spent)
        })?;
    }

    #[test]
    fn hysteresis_shuts_between_its_two_thresholds(events in events()) {
        let nap = Duration::from_nanos(25);
        compare(Hysteresis::new(90, 60, nap), &events, |history, now| {
            let (mut latest, mut stopped): (u64, Option<Instant>) = (0, None);
            // Nanosecond by nanosecond.
            let mut at = Instant::ZERO;
            for &(then, event) in history.iter().chain([&(now, Event::Release)]) {
                while stopped.is_some_and(|due| due <= then) {
                    at = stopped.unwrap_or(at);
                    stopped = (latest > 60).then(|| at + nap);
                }
                match event {
                    Event::Completion { took } => latest = took,
                    Event::Driver { .. } if stopped.is_none() && latest > 90 => stopped = Some(then + nap),
                    _ => {}
                }
            }
            match stopped {
                Some(_) => Gates::SHUT,
                None => Gates::OPEN,
            }
        })?;
    }
}

#[test]
fn a_task_that_hangs_does_not_take_the_network_with_it() {
    let mut slack = Slack::new(SlackSettings {
        target: TARGET,
        work: Duration::from_nanos(70),
        interrupt: Duration::from_nanos(10),
    });
    slack.handle_release(Instant::ZERO);
    let mut heard = 0;
    for now in (0..1_000).map(Instant::from_nanos) {
        if slack.poll_timeout().is_some_and(|due| due <= now) {
            slack.handle_timeout(now);
        }
        if slack.gates().interrupts {
            slack.handle_packet(now, fill(0));
            heard += 1;
        }
    }
    assert_eq!(heard, 10 * slack.bears());
}

#[test]
fn a_task_without_slack_is_not_interrupted_while_it_works() {
    let mut slack = Slack::new(SlackSettings {
        target: TARGET,
        work: Duration::from_nanos(500),
        interrupt: Duration::ZERO,
    });
    assert!(slack.gates().interrupts, "between jobs nobody is disturbed");
    slack.handle_release(Instant::ZERO);
    assert!(!slack.gates().interrupts);
    slack.handle_completion(Instant::from_nanos(90), earliness(90));
    assert!(slack.gates().interrupts);
}
