use super::*;
use crate::study::result::Passed;

fn run(rtt_us: &[Option<u32>], cut_ms: u64, healed_ms: u64) -> Run {
    Run {
        transport: "redundant-tcp".into(),
        backup: "ethernet".into(),
        over: "network".into(),
        cut_ns: Some(cut_ms * 1_000_000),
        healed_ns: Some(healed_ms * 1_000_000),
        late_us: vec![0; rtt_us.len()],
        rtt_us: rtt_us.to_vec(),
        ..Run::default()
    }
}

fn study(runs: Vec<Run>) -> Study {
    Study {
        runs,
        ..Study::default()
    }
}

#[test]
fn a_failover_is_the_longest_of_what_was_under_way_and_the_first_after() {
    // Messages leave at 0, 50, 100, ... ms; the way dies at 103 ms, with one under way, and is back at 220 ms.
    let one = run(
        &[
            Some(6_000),
            Some(6_000),
            Some(70_000),
            Some(22_000),
            Some(4_000),
            Some(6_000),
        ],
        103,
        220,
    );
    use Phase::{After, Before, During, Failover};
    assert_eq!(
        phases(&one),
        [Before, Before, Failover, Failover, During, After]
    );
    // One that was answered in time does not count as under way.
    let other = run(
        &[Some(6_000), Some(2_000), Some(80_000), Some(5_000)],
        60,
        120,
    );
    assert_eq!(phases(&other), [Before, Before, Failover, After]);
    let study = study(vec![one, other]);
    let cells = cells(&study);
    assert_eq!(cells.len(), 1);
    let cell = &cells[0];
    assert_eq!(cell.failovers, Trips::of([70_000, 80_000]));
    assert_eq!(cell.during, Trips::of([4_000]));
    assert_eq!(cell.through.count(), 4);
    assert_eq!(cell.before.count(), 4);
}

#[test]
fn what_is_late_breaks_the_promise_unless_the_machine_was_late_as_long() {
    let late = |rtt: Option<u32>| study(vec![run(&[Some(6_000), rtt, Some(5_000)], 40, 400)]);
    let judged = |study: &Study| {
        let all = promises(study);
        assert_eq!(all.len(), 1, "{all:?}");
        (all[0].above, all[0].explained, all[0].held)
    };
    assert_eq!(judged(&late(Some(10_000))), (0, 0, true));
    assert_eq!(judged(&late(Some(14_000))), (1, 0, false));
    assert_eq!(judged(&late(None)), (1, 0, false));
    let mut stalled = late(Some(14_000));
    // Sent at 50 ms, above by 4 ms: only what lies within its round trip counts.
    stalled.jitter.stalls = vec![(45_000_000, 8_900_000)];
    assert_eq!(judged(&stalled), (1, 0, false));
    stalled.jitter.stalls.push((56_000_000, 500_000));
    assert_eq!(judged(&stalled), (1, 1, true));
    // What only others' load explains, explains nothing.
    stalled.lack = std::mem::take(&mut stalled.jitter);
    assert_eq!(judged(&stalled), (1, 0, false));
    let mut lost = late(None);
    lost.jitter.stalls = vec![(50_000_000, 5_000_000_000)];
    assert_eq!(judged(&lost), (1, 0, false));
}

#[test]
fn going_to_the_backup_before_anything_is_dead_is_not_a_failover() {
    let mut early = run(
        &[Some(6_000), Some(60_000), Some(4_000), Some(4_000)],
        90,
        400,
    );
    early.transport = "tcp".into();
    early.switched_ns = Some(80_000_000);
    let study = study(vec![early]);
    let cells = cells(&study);
    assert_eq!((cells[0].premature, cells[0].failovers.count()), (1, 0));
}

#[test]
fn a_program_that_was_on_the_backup_all_the_time_has_no_failover() {
    let over = |transport: &str, us| Run {
        transport: transport.into(),
        path_us: 5_500,
        ..run(&[Some(us), Some(us), Some(us), Some(us)], 103, 180)
    };
    let of = |transport, us| {
        let study = study(vec![over(transport, us)]);
        let cell = cells(&study).remove(0);
        (cell.premature, cell.failovers.count())
    };
    // The Ethernet-like backup is quicker than the way, the LTE-like one much slower.
    assert_eq!(of("sctp", 3_600), (1, 0));
    assert_eq!(of("sctp", 82_000), (1, 0));
    assert_eq!(of("sctp", 5_600), (0, 1));
    assert_eq!(of("standby-tcp", 3_600), (1, 0));
    // Whoever sends on both ways, or on the quicker one, is judged all the same.
    for spreads in ["redundant-tcp", "quic-multipath", "mptcp"] {
        assert_eq!(of(spreads, 3_600), (0, 1), "{spreads}");
    }
}

#[test]
fn a_program_whose_messages_the_backup_carried_before_has_no_failover_either() {
    let of = |backup: u64| {
        // As quick over the backup as over the network.
        let mut one = run(&[Some(5_600), Some(5_600), Some(5_600)], 103, 140);
        (one.transport, one.path_us) = ("standby-tcp".into(), 5_500);
        let before = Passed {
            us: 2_000_000,
            network: 1_000,
            backup,
        };
        one.bytes = Some([before, Passed::default()]);
        let study = study(vec![one]);
        let cell = cells(&study).remove(0);
        (cell.premature, cell.failovers.count())
    };
    assert_eq!(of(2_000), (0, 1));
    // One direction of messages is enough.
    assert_eq!(of(40_000), (1, 0));
}

#[test]
fn a_failover_without_an_answer_is_counted_and_not_left_out() {
    let answered = run(
        &[Some(6_000), Some(6_000), Some(70_000), Some(22_000)],
        103,
        220,
    );
    let open = run(&[Some(6_000), Some(6_000), None, Some(22_000)], 103, 220);
    let study = study(vec![answered, open]);
    let cell = &cells(&study)[0];
    assert_eq!((cell.failovers.count(), cell.endless, cell.lost), (1, 1, 1));
}

/// U-54: with nothing answered there is no percentile, and no promise kept either.
#[test]
fn where_nothing_is_answered_a_promise_is_broken_and_does_not_vanish() {
    let lte = |transport: &str, over: &str, rtt: &[Option<u32>]| Run {
        transport: transport.into(),
        backup: "lte".into(),
        over: over.into(),
        ..run(rtt, 103, 190)
    };
    let alone = lte("tcp", "backup", &[Some(80_000); 40]);
    let none = lte(
        "redundant-udp",
        "network",
        &[Some(6_000), Some(6_000), None, None],
    );
    let all = promises(&study(vec![alone, none]));
    assert_eq!(all.len(), 1, "{all:?}");
    assert!(
        !all[0].held && all[0].seen.starts_with("none was answered"),
        "{all:?}"
    );
}

#[test]
fn what_was_lost_long_before_the_way_died_is_no_failover() {
    let mut trips = vec![Some(6_000); 80];
    trips[10] = None;
    // At 3.525 s: what was due at 0.5 s was lost before, what was due at 3.5 s is under way.
    let before = run(&trips, 3_525, 3_700);
    assert_eq!(failover(&before), Some(6_000));
    let judged = promises(&study(vec![before]));
    assert!(
        !judged[0].held && judged[0].seen.ends_with("0 lost, and 1 before"),
        "it is lost all the same: {judged:?}"
    );
    trips[70] = None;
    assert_eq!(failover(&run(&trips, 3_525, 3_700)), None);
}

#[test]
fn what_is_lost_or_late_when_the_way_carries_again_breaks_the_promise_too() {
    // The way is dead from 103 to 120 ms: the last two messages are none of the failover.
    let after = |last: Option<u32>| {
        let quick = Some(4_000);
        study(vec![run(
            &[quick, quick, quick, quick, quick, last],
            103,
            120,
        )])
    };
    let judged = |study: &Study| promises(study).remove(0);
    let whole = judged(&after(Some(4_000)));
    assert!(whole.held && whole.seen.ends_with(", 0 lost"), "{whole:?}");
    assert_eq!(whole.count, 4, "two of the failover, two after it");
    let late = judged(&after(Some(14_000)));
    assert!(!late.held && late.above == 1, "{late:?}");
    assert!(late.seen.contains("longest message 14.0 ms"), "{late:?}");
    let lost = after(None);
    assert_eq!(cells(&lost)[0].lost_after, 1);
    let lost = judged(&lost);
    assert!(
        !lost.held && lost.seen.ends_with("0 lost, and 1 after"),
        "{lost:?}"
    );
    // Those that are judged by their failovers alone, or by quantiles, lose none either.
    let mut standby = after(None);
    standby.runs[0].transport = "standby-tcp".into();
    let alone = Run {
        over: "backup".into(),
        ..run(&[Some(80_000); 40], 103, 120)
    };
    standby.runs.push(alone.clone());
    let told = judged(&standby);
    assert!(!told.held && told.above == 0, "{told:?}");
    let mut lte = after(None);
    lte.runs.push(alone);
    lte.runs
        .iter_mut()
        .for_each(|run| run.backup = "lte".into());
    let told = judged(&lte);
    assert!(!told.held && told.above == 0, "{told:?}");
}

#[test]
fn standby_takes_no_more_of_its_backup_than_what_failed_over() {
    let judged = |backup: u64, seconds: u64| {
        let passed = |seconds: u64, network, backup| Passed {
            us: seconds * 1_000_000,
            network,
            backup,
        };
        let mut one = run(&[Some(6_000), Some(6_000), Some(20_000)], 70, 120);
        one.transport = "standby-tcp".into();
        // Twice as long before as it was dead.
        let before = passed(2 * seconds, 2_000_000, 9_000);
        one.bytes = Some([before, passed(seconds, 77, backup)]);
        let all = promises(&study(vec![one]));
        all.into_iter().find(|it| it.says.contains("bytes"))
    };
    let held = judged(1_049_000, 30).unwrap();
    assert!(held.held && held.seen.starts_with("+4.9 %"), "{held:?}");
    let broken = judged(1_051_000, 30).unwrap();
    assert!(!broken.held && broken.above == 1, "{broken:?}");
    assert_eq!(judged(5_000_000, 29), None, "single messages count");
}

/// Figure 6: another run may have a message of as many microseconds.
#[test]
fn the_typical_run_is_the_one_whose_failover_is_the_median() {
    let of = |before, failover| {
        run(
            &[Some(before), Some(6_000), Some(failover), Some(5_000)],
            103,
            120,
        )
    };
    let study = study(vec![of(8_000, 7_000), of(6_000, 8_000), of(6_000, 9_000)]);
    let cell = &cells(&study)[0];
    assert_eq!(cell.typical().map(|run| run.rtt_us[2]), Some(Some(8_000)));
}
