//! The admission test: quick against plain on random sets, by hand on small ones, and its speed by steps.

use bumpless_plan::demand::{Condition, Interference, Refusal, Task, TaskSet};
use bumpless_plan::response::{spare, worst_cases};
use proptest::prelude::*;

fn task(cost: u64, period: u64, deadline: u64, blocking: u64) -> Task {
    Task {
        cost,
        period,
        deadline,
        blocking: Some(blocking),
        again: 0,
        left: 0,
        queued: 0,
        room: 0,
    }
}

/// Ignores which window is named. Where a resource is full to the last nanosecond, the quick test looks
/// for a window that shows it, and the plain one says at once that there is no last window to test.
fn answer(result: Result<(), Refusal>) -> Result<(), Condition> {
    result.map_err(|refusal| match refusal.condition {
        Condition::Undecidable => Condition::Demand,
        certain => certain,
    })
}

prop_compose! {
    fn tasks()(
        raw in prop::collection::vec(
            (1u64..40, 2u64..60, 1u64..100, prop::option::weighted(0.8, 0u64..20), 0u64..4, 0u64..20, (0u64..9, 0u64..9)),
            1..7,
        )
    ) -> Vec<Task> {
        raw.into_iter()
            .map(|(cost, period, share, blocking, again, left, (queued, room))| Task {
                cost: cost * period / 100,
                period,
                deadline: (period * share / 100).max(1),
                blocking,
                again: again.min(cost * period / 100),
                left,
                queued: queued.min(cost * period / 100),
                room,
            })
            .collect()
    }
}

prop_compose! {
    fn interference()(raw in prop::collection::vec((0u64..3, 10u64..50), 0..3)) -> Vec<Interference> {
        raw.into_iter().map(|(cost, period)| Interference { cost, period }).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 100_000, ..ProptestConfig::with_cases(4_000) })]

    #[test]
    fn quick_and_plain_agree(tasks in tasks(), interference in interference()) {
        let set = TaskSet::new(&tasks, &interference);
        prop_assert_eq!(answer(set.admit()), answer(set.admit_plainly()));
    }

    #[test]
    fn a_refused_window_is_too_short(tasks in tasks(), interference in interference()) {
        let set = TaskSet::new(&tasks, &interference);
        if let Err(refusal) = set.admit()
            && let (Some(window), Some(demand)) = (refusal.window_ns, refusal.demand_ns)
        {
            prop_assert!(demand > u128::from(window));
            prop_assert_eq!(demand, set.load(window));
            // And none before it.
            for shorter in set.shortest().unwrap_or(0)..window {
                let ends = tasks.iter().any(|t| shorter >= t.deadline && (shorter - t.deadline).is_multiple_of(t.period));
                prop_assert!(!ends || set.load(shorter) <= u128::from(shorter), "{shorter}");
            }
        }
    }

    #[test]
    fn more_of_anything_never_turns_a_no_into_a_yes(tasks in tasks(), at in any::<prop::sample::Index>(), more in 1u64..5) {
        let before = TaskSet::new(&tasks, &[]).admit().is_ok();
        let mut tasks = tasks;
        let chosen = at.index(tasks.len());
        tasks[chosen].cost += more;
        tasks[chosen].blocking = tasks[chosen].blocking.map(|blocking| blocking + more);
        let after = TaskSet::new(&tasks, &[]).admit().is_ok();
        prop_assert!(before || !after);
    }

    #[test]
    fn no_schedule_takes_longer_than_the_worst_case(tasks in tasks(), phases in prop::collection::vec(0u64..60, 7)) {
        let tasks: Vec<Task> = tasks.into_iter().map(|t| Task { blocking: Some(0), ..t }).collect();
        let set = TaskSet::new(&tasks, &[]);
        prop_assume!(set.admit().is_ok());
        let worst = worst_cases(&set);
        for phases in [vec![0; 7], phases] {
            for (at, longest) in simulated(&tasks, &phases).into_iter().enumerate() {
                let bound = worst[at].expect("asked about");
                prop_assert!(longest <= bound, "task {at}: {longest} beyond {bound}");
                prop_assert!(bound <= tasks[at].deadline);
            }
        }
    }
}

/// Longest response of each task under earliest deadline first, one nanosecond at a time.
fn simulated(tasks: &[Task], phases: &[u64]) -> Vec<u64> {
    let mut longest = vec![0; tasks.len()];
    // Published, left to do, deadline, task.
    let mut jobs: Vec<(u64, u64, u64, usize)> = Vec::new();
    for now in 0..2_000 {
        for (at, task) in tasks.iter().enumerate() {
            if now >= phases[at] && (now - phases[at]).is_multiple_of(task.period) && task.cost > 0
            {
                jobs.push((now, task.cost, now + task.deadline, at));
            }
        }
        if let Some(next) = (0..jobs.len()).min_by_key(|&job| (jobs[job].2, job)) {
            jobs[next].1 -= 1;
            if jobs[next].1 == 0 {
                let (published, _, _, at) = jobs.remove(next);
                longest[at] = longest[at].max(now + 1 - published);
            }
        }
    }
    longest
}

#[test]
fn a_state_that_just_fits_is_admitted_and_a_nanosecond_more_is_not() {
    assert!(TaskSet::new(&[task(7, 20, 10, 3)], &[]).admit().is_ok());
    let refusal = TaskSet::new(&[task(8, 20, 10, 3)], &[])
        .admit()
        .expect_err("11 in 10");
    assert_eq!(refusal.condition, Condition::Demand);
    assert_eq!((refusal.window_ns, refusal.demand_ns), (Some(10), Some(11)));
}

#[test]
fn each_channel_bears_its_own_blocking_and_not_before_its_deadline() {
    let set = |longer| TaskSet::new(&[task(1, 100, 10, 2), task(1, 100, 50, longer)], &[]);
    assert!(set(48).admit().is_ok(), "50 in 50, and 3 in 10");
    assert!(set(49).admit().is_err());
    assert_eq!([9, 10, 49, 50].map(|t| set(48).blocking(t)), [0, 2, 2, 48]);
}

/// A task that may still send `again` of its `cost` when others begin.
fn waiting(cost: u64, period: u64, deadline: u64, again: u64) -> Task {
    Task {
        again,
        ..task(cost, period, deadline, 0)
    }
}

#[test]
fn a_state_that_awaits_its_losses_counts_beside_those_after_it() {
    let load = |again: Task, t| TaskSet::new(&[task(1, 100, 10, 0), again], &[]).load(t);
    // Its deadline may be in the window, and that of the next state is a period later.
    let with = |t| load(waiting(20, 50, 40, 7), t);
    assert_eq!([10, 39, 40, 50, 51].map(with), [8, 8, 21, 21, 28]);
    // Of one that is never nearer than 15 to its deadline none is in a shorter window.
    let later = |t| {
        load(
            Task {
                left: 15,
                ..waiting(20, 50, 40, 7)
            },
            t,
        )
    };
    assert_eq!([10, 14, 15, 64, 65].map(later), [1, 1, 8, 21, 28]);
}

#[test]
fn the_time_left_is_what_a_state_is_always_done_before_its_deadline() {
    let tasks = [task(2, 100, 10, 1), waiting(20, 200, 100, 5)];
    let set = TaskSet::new(&tasks, &[]).with_time_left();
    let left: Vec<u64> = set.tasks().map(|(_, task)| task.left).collect();
    // Of 100, the other state takes 2. Of 10, the state takes 2 and there is 1 on top; the other one is done long before.
    assert_eq!(left, [7, 78]);
}

#[test]
fn a_queued_less_urgent_state_counts_only_if_not_counted_whole() {
    let urgent = |room| Task {
        room,
        ..task(1, 100, 10, 2)
    };
    let big = Task {
        queued: 6,
        ..task(30, 200, 90, 0)
    };
    let blocking = |room, t| TaskSet::new(&[urgent(room), big], &[]).blocking(t);
    assert_eq!(
        [10, 89, 90, 200, 201].map(|t| blocking(9, t)),
        [8, 8, 2, 2, 8]
    );
    assert_eq!(blocking(4, 10), 6, "no more than there is room for");
}

#[test]
fn at_its_own_deadline_a_state_counts() {
    // With the ceiling taken literally, as the paper prints it, this would be a yes.
    assert!(TaskSet::new(&[task(11, 100, 10, 0)], &[]).admit().is_err());
}

#[test]
fn a_full_link_is_admitted_only_if_nothing_comes_on_top() {
    let full = |blocking| {
        [
            task(1, 2, 2, blocking),
            task(1, 3, 3, blocking),
            task(1, 6, 6, blocking),
        ]
    };
    assert!(TaskSet::new(&full(0), &[]).admit().is_ok());
    assert!(TaskSet::new(&full(1), &[]).admit().is_err());
    let over = [task(1, 2, 2, 0), task(1, 3, 3, 0), task(2, 6, 6, 0)];
    let refusal = TaskSet::new(&over, &[]).admit().expect_err("seven sixths");
    assert_eq!(refusal.condition, Condition::Utilisation);
    assert_eq!(refusal.window_ns, Some(6));
}

#[test]
fn numbers_at_the_end_of_the_range_are_refused_and_nothing_overflows() {
    let most = u64::MAX;
    for set in [
        vec![task(most, most, most, most)],
        vec![task(most, 1, 1, most), task(most, 1, 1, most)],
        vec![task(1, most, most, most)],
        vec![
            task(most / 2, most, most / 2, 0),
            task(most / 2, most, most, 0),
        ],
    ] {
        assert!(TaskSet::new(&set, &[]).admit().is_err(), "{set:?}");
    }
    let nearly = TaskSet::new(
        &[task(
            999_999_999_999,
            1_000_000_000_000,
            1_000_000_000_000,
            0,
        )],
        &[],
    );
    assert!(nearly.admit().is_ok());
}

#[test]
fn spare_time_is_what_deadlines_can_lose() {
    let set = TaskSet::new(&[task(10, 100, 50, 5), task(20, 200, 120, 5)], &[]);
    assert_eq!(spare(&set, None), 35);
    assert_eq!(spare(&set, Some(1)), 120 - 5 - 30);
}

/// Ten thousand channels of a full link, with periods from 1 ms to 60 s.
fn many(utilisation: f64) -> Vec<Task> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let count = 10_000;
    (0..count)
        .map(|_| {
            let period = 1_000_000 * (1 + random() % 1_000) * (1 + random() % 60);
            let cost = (period as f64 * utilisation / f64::from(count)) as u64;
            let deadline = period / 2 + random() % (period / 2);
            task(cost.max(1), period, deadline, 50_000)
        })
        .collect()
}

#[test]
fn ten_thousand_channels_are_answered_within_a_second() {
    // The verdict does not hang on the clock of a shared machine: looks at tasks are counted, of which a
    // processor makes some hundred million in a second.
    for utilisation in [0.5, 0.9, 0.99, 0.999, 1.001] {
        let set = TaskSet::new(&many(utilisation), &[]);
        let (result, looks) = set.admit_counting();
        assert!(looks < 50_000_000, "{utilisation}: {looks}");
        assert_eq!(result.is_ok(), utilisation < 0.9995);
    }
}
