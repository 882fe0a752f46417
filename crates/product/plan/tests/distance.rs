//! What a distance permits and promises, each figure by hand (spec/plan.md, P-80 to P-87).

use bumpless_base::Duration;
use bumpless_config::Config;
use bumpless_plan::distance::{Distance, distances};
use bumpless_plan::report::Report;
use bumpless_plan::{Machine, Verdict, pair, plan};

/// A pair with heartbeats of 2 ms, 6 ms there and back between its nodes, 8 to its witness, 3 to its tanks.
const FAR: &str = r#"
[pair]
name = "far"
[security]
keys = ["far.key"]
[timing]
heartbeat_ms = 2
lease_ms = 30
clock_drift_ppm = 500
[plan]
jitter_ms = 0.25
[[network]]
name = "wan"
bandwidth_mbit = 1000
round_trip_max_ms = 6
[[node]]
name = "left"
addresses = { wan = "10.0.1.1:4700" }
[[node]]
name = "right"
addresses = { wan = "10.0.1.2:4700" }
[[reference]]
name = "substation"
kind = "witness"
network = "wan"
address = "10.0.1.9:4710"
round_trip_max_ms = 8
[[group]]
name = "grid"
nodes = ["left", "right"]
references = ["substation"]
[[application]]
name = "tank"
group = "grid"
kind = "quadruple_tank"
channel = 1
period_ms = 40
deadline_ms = 20
commit = "before_output"
[application.field]
address = "10.0.1.10:502"
timeout_ms = 7
round_trip_max_ms = 3
"#;

fn config(text: &str) -> Config {
    Config::parse(text, "far").unwrap_or_else(|problems| panic!("{problems:#?}"))
}

fn of(text: &str) -> Distance {
    distances(&config(text)).remove(0)
}

fn with(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(FAR.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    })
}

fn us(micros: f64) -> Duration {
    Duration::from_nanos((micros * 1e3).round() as u64)
}

#[test]
fn a_lease_holds_what_the_partner_and_the_witness_take_to_answer() {
    // With async no cycle waits for its right (P-89).
    let of = |text: &str| of(&text.replace("before_output", "async"));
    let far = of(FAR);
    // Promise: 27/8 of 2 ms, 6 ms, 0.25 ms late: 13. Witness: 9/2 of 2 ms, 8 ms, 0.25 ms late: 17.25.
    assert_eq!(far.least_lease, us(17_250.0));
    assert!(far.refusals.is_empty(), "{:?}", far.refusals);
    // A witness within 3/2 heartbeats of 2 ms, late by 0.25, asks for nothing.
    let near = of(&with(&[(
        "round_trip_max_ms = 8",
        "round_trip_max_ms = 2.75",
    )]));
    assert_eq!(near.least_lease, us(13_000.0));
    let beyond = of(&with(&[(
        "round_trip_max_ms = 8",
        "round_trip_max_ms = 2.751",
    )]));
    assert_eq!(
        beyond.least_lease,
        us(13_000.0),
        "9 + 2.751 + 0.25 = 12.001"
    );
    let longer = of(&with(&[(
        "round_trip_max_ms = 8",
        "round_trip_max_ms = 3.76",
    )]));
    assert_eq!(longer.least_lease, us(13_010.0));
    // Left out, it is as far as the partner: 9 + 6 + 0.25.
    let same = of(&with(&[("round_trip_max_ms = 8\n", "")]));
    assert_eq!(same.least_lease, us(15_250.0));
}

#[test]
fn a_takeover_waits_for_silence_for_promises_and_for_the_witness() {
    let far = of(FAR);
    // Half of 6 ms, three heartbeats of 2 ms, 0.25 ms late.
    assert_eq!(far.detection, us(9_250.0));
    // The witness's promise is the longest: a lease of 30 ms with both drifts, 30 * 1.0005 * 1.0005 = 30.0300075; there and
    // back 8; two rounds of 9/4 ms; twice 0.25.
    assert_eq!(far.takeover, us(43_030.007_5));
    // Without a witness the backup's own promise is: half of 6 ms, 30.015, 0.25.
    let alone = of(&with(&[
        ("references = [\"substation\"]", "without_reference = true"),
        (
            "[[reference]]\nname = \"substation\"\nkind = \"witness\"\nnetwork = \"wan\"\naddress = \"10.0.1.9:4710\"\nround_trip_max_ms = 8\n",
            "",
        ),
    ]));
    assert_eq!(alone.takeover, us(33_265.0));
}

#[test]
fn gaps_are_a_cycle_the_takeover_and_the_first_output() {
    let far = of(FAR);
    let gaps = far.applications[0].gaps;
    // One cycle of 40 ms in which the output waits 20 ms longer than in the one before, 0.25 late: 60.25. Take over: 43.0300075.
    // First output: while the tanks are read (3), the witness is asked (8, an eighth of a heartbeat, 0.25 late: 8.5);
    // written 3, and late twice.
    assert_eq!(
        gaps.unordered,
        us(60_250.0 + 43_030.007_5 + 8_500.0 + 3_000.0 + 500.0)
    );
    // In order: the cycle, its state made safe within 20 ms; the offer, lost once, within 9/8 heartbeats, half of 6 ms and
    // 0.25 ms; read, wait for the backup for 20, write, late twice.
    assert_eq!(
        gaps.ordered,
        us(60_250.0 + 2_250.0 + 3_000.0 + 250.0 + 3_000.0 + 20_000.0 + 3_000.0 + 500.0)
    );
    // The backup's end: the output waits for its deadline and then for the witness, twice: the right has ended meanwhile.
    assert_eq!(gaps.backup, us(60_000.0 + 8_500.0 + 28_500.0 + 250.0));
    // With async no output waits for the backup, and the first one not for the witness.
    let far = of(&with(&[("before_output", "async")]));
    let gaps = far.applications[0].gaps;
    assert_eq!(
        gaps.unordered,
        us(40_250.0 + 43_030.007_5 + 3_000.0 + 3_000.0 + 500.0)
    );
    assert_eq!(
        gaps.ordered,
        us(60_250.0 + 5_500.0 + 3_000.0 + 3_000.0 + 500.0)
    );
}

#[test]
fn an_application_must_have_time_for_the_ways_of_a_cycle() {
    let least = of(FAR).applications[0].least;
    // A state of 1,024 bytes with 30 of header, 39 of protection and 66 below: 9,272 bits, 9.272 us; 6 ms; 0.25 late.
    assert_eq!(least.deadline, us(6_259.272));
    // Read 3, write 3, and that between.
    assert_eq!(least.period, us(12_259.272));
    // Two periods of 40, a deadline of 20, the takeover.
    assert_eq!(least.expiry, us(143_030.007_5));
    let least = of(&with(&[("before_output", "async")])).applications[0].least;
    assert_eq!(least.period, us(6_259.272));
}

#[test]
fn a_right_outlasts_reading_and_the_way_of_the_state() {
    let far = of(FAR);
    // A promise 9/8 of 2 ms old, 6 ms on its way, 0.25 late: 8.5; read 3; acknowledged within 6.259272.
    assert_eq!(far.applications[0].least.lease, us(17_759.272));
    assert_eq!(far.least_lease, us(17_759.272));
    let devices = of(&with(&[
        ("round_trip_max_ms = 3\n", "round_trip_max_ms = 20\n"),
        ("timeout_ms = 7", "timeout_ms = 41"),
        (
            "period_ms = 40\ndeadline_ms = 20",
            "period_ms = 60\ndeadline_ms = 20",
        ),
    ]));
    assert_eq!(devices.least_lease, us(34_759.272));
    let refused = &devices.refusals[..];
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!((refused[0].clause, refused[0].field), ("P-89", "lease_ms"));
    assert!(
        refused[0].text.contains("at least 34.76, or commit"),
        "{}",
        refused[0].text
    );
}

#[test]
fn a_backup_that_ends_costs_a_second_wait_where_the_right_ends_meanwhile_and_cycles_that_are_passed_over()
 {
    // Right 8.5, read 3, the whole deadline of 20, the witness 8.5: 40. A lease that is as long waits once.
    let once = of(&with(&[("lease_ms = 30", "lease_ms = 40")]));
    assert_eq!(
        once.applications[0].gaps.backup,
        us(60_000.0 + 8_500.0 + 250.0)
    );
    // Read 3, wait 20 and 8.5 twice, write 3, late by 0.5: 63.5, so that a grid point is passed over; the cycle itself is longer.
    let twice = of(FAR);
    assert_eq!(
        twice.applications[0].gaps.backup,
        us(60_000.0 + 8_500.0 + 28_500.0 + 250.0)
    );
    // With a deadline of 39: read 3, wait 39 and 8.5, write 3, late by 0.5: 54 of 40; two periods, late by 0.25, is less than
    // 40 + 39 + 8.5 + 0.25. With devices 30 away: 30, 39, 8.5, 30, 0.5: 108 of 70, so 140.25, beyond 70 + 39 + 8.5 + 0.25.
    let passed = of(&with(&[
        ("lease_ms = 30", "lease_ms = 100"),
        (
            "period_ms = 40\ndeadline_ms = 20",
            "period_ms = 70\ndeadline_ms = 39",
        ),
        (
            "timeout_ms = 7\nround_trip_max_ms = 3",
            "timeout_ms = 61\nround_trip_max_ms = 30",
        ),
    ]));
    assert_eq!(passed.applications[0].gaps.backup, us(140_250.0));
}

/// What is refused: clause and field.
fn refused(text: &str) -> Vec<(&'static str, &'static str, String)> {
    let all = of(text).refusals.into_iter();
    all.map(|it| (it.clause, it.field, it.text)).collect()
}

#[test]
fn all_that_the_distance_does_not_permit_is_told_at_once_with_what_would() {
    let text = with(&[
        ("lease_ms = 30", "lease_ms = 10"),
        (
            "period_ms = 40\ndeadline_ms = 20",
            "period_ms = 10\ndeadline_ms = 5",
        ),
        ("timeout_ms = 7", "timeout_ms = 2"),
    ]);
    let all = refused(&text);
    let told: Vec<_> = all
        .iter()
        .map(|(clause, field, _)| (*clause, *field))
        .collect();
    assert_eq!(
        told,
        [
            ("P-81", "lease_ms"),
            ("P-82", "lease_ms"),
            ("P-89", "lease_ms"),
            ("P-83", "deadline_ms"),
            ("P-84", "timeout_ms"),
            ("P-84", "period_ms"),
        ]
    );
    let says = |at: usize, words: &[&str]| {
        for word in words {
            assert!(all[at].2.contains(word), "{word}: {}", all[at].2);
        }
    };
    says(0, &["lease_ms = 10", "left and right, 6 ms", "at least 13"]);
    says(1, &["8 ms there and back (substation)", "at least 17.25"]);
    says(3, &["deadline_ms = 5", "at least 6.26"]);
    says(4, &["timeout_ms = 2", "at least 7"]);
    says(5, &["period_ms = 10", "at least 12.26", "async"]);
    let config = config(&text);
    assert_eq!(pair::verdict(&config, Machine::default()), Verdict::No);
    let report = Report::new("far", plan(&config, None), |_, _| ());
    assert_eq!(report.plan.verdict, Verdict::No);
    let (shown, json) = (report.text(), report.json());
    for (_, _, refusal) in &all {
        assert!(shown.contains(refusal), "{refusal}\n{shown}");
        assert!(report.page().contains("P-84"));
        let reasons = json["reasons"].as_array().unwrap();
        assert!(reasons.iter().any(|reason| reason == refusal.as_str()));
    }
    assert_eq!(json["distances"][0]["refusals"][1]["least_ns"], 17_250_000);
}

#[test]
fn what_it_asks_for_is_enough_and_a_microsecond_less_is_not() {
    for (from, enough, less, field) in [
        (
            "lease_ms = 30",
            "lease_ms = 17.76",
            "lease_ms = 17.759",
            "lease_ms",
        ),
        (
            "deadline_ms = 20",
            "deadline_ms = 6.26",
            "deadline_ms = 6.259",
            "deadline_ms",
        ),
        (
            "timeout_ms = 7",
            "timeout_ms = 7 ",
            "timeout_ms = 6.999",
            "timeout_ms",
        ),
        (
            "period_ms = 40\ndeadline_ms = 20",
            "period_ms = 12.26\ndeadline_ms = 12.26",
            "period_ms = 12.259\ndeadline_ms = 12.259",
            "period_ms",
        ),
    ] {
        let enough = refused(&with(&[(from, enough)]));
        assert!(enough.is_empty(), "{enough:?}");
        let less = refused(&with(&[(from, less)]));
        assert!(less.iter().any(|it| it.1 == field), "{less:?}");
    }
}

#[test]
fn a_lease_that_must_be_longer_takes_its_start_wait_along() {
    let text = with(&[
        ("lease_ms = 30", "lease_ms = 20\nstart_wait_ms = 1000"),
        ("round_trip_max_ms = 8", "round_trip_max_ms = 600"),
    ]);
    // 9 + 600 + 0.25; twice that with drift: 1219.10925.
    let (_, _, told) = &refused(&text)[0];
    assert!(
        told.contains("at least 609.25 and start_wait_ms = 1219.11"),
        "{told}"
    );
    let lease = with(&[
        ("lease_ms = 30", "lease_ms = 1200\nstart_wait_ms = 3000"),
        ("round_trip_max_ms = 8", "round_trip_max_ms = 600"),
    ]);
    let report = Report::new("far", plan(&config(&lease), None), |_, _| ());
    assert!(
        report.text().contains("--longest-lease-ms 1200"),
        "{}",
        report.text()
    );
}

#[test]
fn computers_side_by_side_are_near_enough_for_what_is_left_out() {
    for name in ["two-computers.toml", "table20.toml", "quadruple-tank.toml"] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../../examples")
            .join(name);
        let text = std::fs::read_to_string(path).unwrap();
        for distance in distances(&config(&text)) {
            assert!(
                distance.refusals.is_empty(),
                "{name}: {:?}",
                distance.refusals
            );
        }
    }
}
