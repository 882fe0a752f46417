//! States of every size reach the backup whole and survive a failover.

mod support;

use serde_json::Value;
use support::plan::Plan;
use support::process::{bumpless, outcome};
use support::site::Site;
use support::wait_until;

/// Bytes of state in a protected packet of version 2 over IPv4 with an MTU of 1500 (C-14).
const PAYLOAD: u64 = 1403;
/// The same with the smallest MTU and version 1.
const SMALLEST_PAYLOAD_V1: u64 = 491;
/// What the executor adds to an application's state (C-15).
const EXECUTOR: u64 = 64;

/// A pair with one synthetic application; `period_ms` leaves a loaded machine all the time it needs.
fn pair(size: u64, period_ms: u32, more: &str) -> Plan {
    Plan::pair(2).synthetic("tank", size, period_ms, more)
}

/// States arrive, the primary is killed, and the backup goes on from what it received.
fn survives_a_failover(plan: Plan) {
    let mut site = Site::new(plan);
    site.start_witnesses();
    site.start("left");
    site.start("right");
    let (primary, backup, epoch) = site.await_redundant("tank");
    wait_until("two states are safe", || {
        site.counter(&primary, "states_safe") >= 2
    });
    let safe = site.status(&primary).unwrap()["applications"][0]["transfers_safe"].clone();
    assert!(safe.as_u64() >= Some(2), "{safe}");
    wait_until("two states came", || {
        site.counter(&backup, "states_delivered") >= 2
    });
    site.kill(&primary);
    assert!(site.await_primary(&backup, "tank") > epoch);
    let resumed = site.await_event(&backup, "resumed", |_| true);
    let cause = resumed["cause"].as_str().unwrap();
    assert!(
        cause.ends_with(&format!("of epoch {epoch}, received from the partner")),
        "{cause}"
    );
}

#[test]
fn a_state_of_nothing_but_its_frame_survives() {
    survives_a_failover(pair(0, 50, ""));
}

#[test]
fn a_state_of_one_byte_survives() {
    survives_a_failover(pair(1, 50, ""));
}

#[test]
fn states_around_one_packet_survive() {
    // The executor's frame of a synthetic application is 16 bytes (F-18).
    for size in [
        PAYLOAD - 17,
        PAYLOAD - 16,
        PAYLOAD - 15,
        PAYLOAD,
        PAYLOAD + 1,
    ] {
        survives_a_failover(pair(size, 50, ""));
    }
}

#[test]
fn a_state_of_a_megabyte_survives() {
    survives_a_failover(pair(1_000_000, 500, "deadline_ms = 400"));
}

#[test]
fn a_state_of_a_megabyte_survives_spread_over_the_networks() {
    survives_a_failover(pair(
        1_000_000,
        500,
        "deadline_ms = 400\ndistribution = \"spread\"",
    ));
}

#[test]
fn a_state_of_64_megabytes_survives() {
    let more = "deadline_ms = 3500\nchanged_share = 0.001\nnetworks = [\"A\"]\ncommit = \"async\"";
    let mut plan = pair(64_000_000, 4000, more);
    plan.network = "mtu = 9000\nbandwidth_mbit = 0".into();
    survives_a_failover(plan);
}

/// The largest state that version 1 can number, with the smallest packets, plus `excess` bytes.
fn at_the_limit_of_version_1(excess: u64) -> Plan {
    let size = 65_536 * SMALLEST_PAYLOAD_V1 - EXECUTOR + excess;
    let more = "deadline_ms = 3500\nchanged_share = 0.001\nnetworks = [\"A\"]\ncommit = \"async\"";
    let mut plan = pair(size, 4000, more);
    plan.transfer = "wire_version = 1".into();
    plan.network = "mtu = 576\nbandwidth_mbit = 0".into();
    plan
}

#[test]
fn the_largest_state_of_version_1_survives() {
    survives_a_failover(at_the_limit_of_version_1(0));
}

#[test]
fn one_byte_more_than_version_1_can_carry_is_refused_with_the_reason() {
    let site = Site::new(at_the_limit_of_version_1(1));
    let config = site.config();
    let arguments = ["check", config.to_str().unwrap(), "--json"];
    let (stdout, _, status) = outcome(&bumpless(&arguments));
    assert_eq!(status, Some(2), "{stdout}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    let problems = report["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 1, "{report}");
    assert_eq!(problems[0]["field"], "application[1].size", "{report}");
    let said = problems[0].to_string();
    assert!(
        said.contains("65536") && said.contains("wire_version"),
        "{said}"
    );
}
