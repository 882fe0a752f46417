//! What the plan reads: its defaults, what no plan can be made from, and running although refused.

mod common;

use bumpless_base::Duration;
use bumpless_config::{Config, Loss, WeaknessCode, sample};
use common::{changed, one};

#[test]
fn what_the_plan_reads_has_defaults_that_follow_each_other() {
    let config = Config::parse(&sample(), "t").unwrap();
    let network = &config.networks[0];
    assert_eq!(network.loss, Loss::BitErrors(1e-10));
    assert_eq!(network.round_trip_max, Duration::from_micros(500));
    assert_eq!(network.other_traffic, 1538);
    let app = &config.applications[0];
    assert_eq!(
        (app.retransmissions, app.accepted_loss_per_year),
        (None, Some(1e-6))
    );
    let given = |to: &str| {
        let text = changed("#retransmissions =", to).0;
        let config = Config::parse(&text, "t").unwrap();
        let app = &config.applications[0];
        (app.retransmissions, app.accepted_loss_per_year)
    };
    assert_eq!(given("retransmissions = 3"), (Some(3), None));
    assert_eq!(given("accepted_loss_per_year = 2"), (None, Some(2.0)));
    assert_eq!(
        given("retransmissions = 3\naccepted_loss_per_year = 1e-9"),
        (Some(3), Some(1e-9))
    );
    let text = changed("#frame_loss =", "frame_loss = 0.01").0;
    let config = Config::parse(&text, "t").unwrap();
    assert_eq!(config.networks[0].loss, Loss::Frames(0.01));
}

#[test]
fn values_that_no_plan_can_be_made_from_are_refused_where_they_stand() {
    for (from, key, bad, right) in [
        (
            "#bit_error_rate =",
            "bit_error_rate",
            "-1e-12",
            "from 0 to 0.5",
        ),
        (
            "#bit_error_rate =",
            "bit_error_rate",
            "1.5",
            "from 0 to 0.5",
        ),
        (
            "#bit_error_rate =",
            "bit_error_rate",
            "nan",
            "from 0 to 0.5",
        ),
        ("#frame_loss =", "frame_loss", "1", "from 0 to 0.9"),
        (
            "#round_trip_max_ms = 0.5",
            "round_trip_max_ms",
            "0",
            "0.001",
        ),
        (
            "#round_trip_max_ms = 0.5",
            "round_trip_max_ms",
            "inf",
            "0.001",
        ),
        (
            "#other_traffic_bytes =",
            "other_traffic_bytes",
            "-1",
            "65535",
        ),
    ] {
        let field = format!("network[1].{key}");
        one(from, &format!("{key} = {bad}"), &field, "is ", right);
    }
    for (from, key, bad, right) in [
        (
            "#accepted_loss_per_year =",
            "accepted_loss_per_year",
            "0",
            "above 0",
        ),
        (
            "#accepted_loss_per_year =",
            "accepted_loss_per_year",
            "-1",
            "above 0",
        ),
        (
            "#accepted_loss_per_year =",
            "accepted_loss_per_year",
            "inf",
            "1e9",
        ),
        (
            "#retransmissions =",
            "retransmissions",
            "101",
            "from 0 to 100",
        ),
    ] {
        let field = format!("application[1].{key}");
        one(from, &format!("{key} = {bad}"), &field, "is ", right);
    }
    one(
        "#jitter_ms = 0.25",
        "jitter_ms = -0.5",
        "plan.jitter_ms",
        "is -0.5",
        "from 0 to 1000",
    );
    one(
        "#frame_loss =",
        "frame_loss = 0.01 # \nbit_error_rate = 1e-9",
        "network[1].frame_loss",
        "beside a bit_error_rate",
        "one of the two",
    );
}

#[test]
fn running_although_refused_is_a_weakness_for_as_long_as_it_is_permitted() {
    let weak = |text: &str| {
        let config = Config::parse(text, "t").unwrap();
        let codes = config.weaknesses.iter().map(|weakness| weakness.code);
        codes
            .filter(|code| *code == WeaknessCode::RunAlthoughRefused)
            .count()
    };
    assert_eq!(weak(&sample()), 0);
    let (from, to) = (
        "#run_although_refused = false",
        "run_although_refused = true",
    );
    assert_eq!(weak(&changed(from, to).0), 1);
}
