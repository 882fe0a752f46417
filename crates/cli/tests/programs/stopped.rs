//! Programs that have failed on both nodes.

use std::fs;

use serde_json::Value;

use crate::support::process::said;
use crate::support::site::Site;
use crate::support::{let_run, wait_until};
use crate::{PERIOD_MS, expected, plan, put_process, written};

/// As long as this file is beside it, a program that waits does not answer.
pub const WAIT: &str = "wait";

/// The last cycle in which a program that fails does not.
pub const LAST: u64 = 60;

/// The last cycle after which a program that ends after each answer does not.
pub const STAYS: u64 = 6;

/// As soon as this file is beside it, a program that fails does not any more.
pub const MENDED: &str = "mended";

fn fails_on_both(mut site: Site) {
    site.start_witnesses();
    site.start_plant(&["--check-epoch"]);
    site.start("left");
    site.start("right");
    let (first, second, epoch) = site.await_redundant("tank");
    wait_until("the safe values", || {
        written(&site)
            .last()
            .is_some_and(|(_, outputs)| *outputs == [1.5, 2.5])
    });
    let higher = site.await_primary(&second, "tank");
    assert_eq!(higher, epoch + 1, "handed over once");
    let_run(20 * PERIOD_MS);
    for node in [&first, &second] {
        assert_eq!(site.counter(node, "program_faults"), 2, "{node}");
        let fault = site.await_event(node, "program_fault", |_| true);
        assert_eq!(fault["application"], "ramp", "{fault}");
        let cause = fault["cause"].as_str().unwrap();
        assert!(
            cause.starts_with("cycle 61") && cause.contains(": trap"),
            "{cause}"
        );
        let status = site.status(node).unwrap();
        let program = &status["applications"][0]["program"];
        assert_eq!(
            (&program["stopped"], &program["last_fault"]["cycle"]),
            (&true.into(), &61.into())
        );
        let weaknesses = status["weaknesses"].to_string();
        assert!(
            weaknesses.contains("has failed in cycle 61"),
            "{weaknesses}"
        );
    }
    assert_eq!(
        site.await_primary(&second, "tank"),
        higher,
        "nor to and fro"
    );
    for (cycle, outputs) in written(&site) {
        assert!(cycle <= 60);
        assert!(
            outputs == [1.5, 2.5] || outputs == expected(cycle),
            "cycle {cycle}: {outputs:?}"
        );
    }
    // Who mends the program starts anew, and what was half made is nowhere.
    site.writes().judge();
}

/// F-29, F-31: what ends while nobody waits for it is as broken as what ends in a cycle.
pub fn a_process_that_ends_after_each_answer_is_told_of_and_stopped() {
    let mut plan = plan("process", "arguments = [\"leaves\"]", ["", ""]);
    // Longer than the next process takes to begin.
    plan.applications[0] = plan.applications[0].replace("period_ms = 50", "period_ms = 500");
    let mut site = Site::new(plan);
    put_process(&site, "ramp");
    site.start_surroundings();
    site.start("left");
    site.start("right");
    let (first, second, _) = site.await_redundant("tank");
    for node in [&first, &second] {
        let told = site.await_event(node, "program_fault", |event| {
            let cause = event["cause"].as_str().unwrap_or_default();
            cause.contains("stopped: crash")
        });
        let cause = told["cause"].as_str().unwrap();
        let named = cause.contains("ramp") && cause.contains("exit status 4");
        assert!(named && told["application"] == "ramp", "{told}");
        let status = site.status(node).unwrap();
        let last = &status["applications"][0]["program"]["last_fault"];
        let cause = last["cause"].as_str().unwrap();
        assert!(cause.starts_with("crash: "), "{last}");
    }
    // Each node has come past the cycle that failed on the other once: then neither hands over.
    wait_until("nothing is written any more", || {
        let before = written(&site).len();
        let_run(40 * PERIOD_MS);
        written(&site).len() == before
    });
    let told = |node: &String| {
        let events = site.events_of(node, "program_fault");
        let is = |it: &Value| {
            it["cause"]
                .as_str()
                .is_some_and(|it| it.contains("between two cycles"))
        };
        events.iter().any(is)
    };
    assert!(
        told(&first) || told(&second),
        "none of them found the next process ready"
    );
    let faults = [&first, &second].map(|node| site.counter(node, "program_faults"));
    assert!(
        faults.iter().all(|count| (2..=4).contains(count)),
        "{faults:?}"
    );
    for (cycle, outputs) in written(&site) {
        assert_eq!(outputs, expected(cycle), "cycle {cycle}");
    }
}

const SAFE: [&str; 2] = ["safe = 1.5", "safe = 2.5"];

/// F-38: what kept it from computing is over, and nobody has to do anything.
pub fn a_process_that_had_no_processor_on_both_nodes_goes_on_by_itself_when_it_has() {
    let mut site = Site::new(plan("process", "arguments = [\"waits\"]", ["", ""]));
    put_process(&site, "ramp");
    site.start_surroundings();
    site.start("left");
    site.start("right");
    site.await_redundant("tank");
    site.await_writes(5);
    fs::write(site.path(WAIT), "").unwrap();
    let program = |node: &str| {
        let status = site.status(node);
        status.map_or(Value::Null, |it| it["applications"][0]["program"].clone())
    };
    let pauses = |node: &str| program(node)["tried_again_after_ms"].as_u64() >= Some(200);
    wait_until("trials at growing intervals", || {
        pauses("left") || pauses("right")
    });
    let node = if pauses("left") { "left" } else { "right" };
    let status = site.status(node).unwrap();
    let weaknesses = status["weaknesses"].to_string();
    let told = ["(starved: ", "it is tried again by itself"];
    assert!(
        told.iter().all(|it| weaknesses.contains(it)),
        "{weaknesses}"
    );
    let fault = site.await_event(node, "program_fault", |event| {
        let cause = event["cause"].as_str().unwrap_or_default();
        cause.contains("stopped for 200 ms: starved")
    });
    assert_eq!(fault["application"], "ramp");
    fs::remove_file(site.path(WAIT)).unwrap();
    site.await_writes(10);
    site.await_redundant("tank");
    for (cycle, outputs) in written(&site) {
        assert_eq!(outputs, expected(cycle), "cycle {cycle}");
    }
    site.writes().judge();
}

pub fn a_process_that_fails_on_both_is_handed_over_once_and_its_safe_values_are_written() {
    let more = "arguments = [\"fails\"]\non_program_fault = \"safe\"";
    let site = Site::new(plan("process", more, SAFE));
    put_process(&site, "ramp");
    fails_on_both(site);
}

#[cfg(feature = "wasm")]
pub fn a_module_that_fails_on_both_is_handed_over_once_and_its_safe_values_are_written() {
    let site = Site::new(plan("wasm", "on_program_fault = \"safe\"", SAFE));
    fs::write(site.path("ramp"), crate::module(LAST)).unwrap();
    fails_on_both(site);
}

/// F-39: who is sure that the program was not the cause lets it go on, on the primary.
pub fn a_program_that_is_stopped_on_both_goes_on_from_its_state_when_that_is_ordered() {
    let mut plan = plan("process", "arguments = [\"fails\"]", ["", ""]);
    plan.group = "hot_restart_ms = 120000".into();
    let mut site = Site::new(plan);
    put_process(&site, "ramp");
    site.start_surroundings();
    site.start("left");
    site.start("right");
    site.await_redundant("tank");
    let config = site.config().display().to_string();
    let resume = |node: &str, more: &[&str]| {
        let order = ["program", "resume", &config, "--node", node];
        said(&[&order, more].concat())
    };
    let refused = |node: &str, more: &[&str], why: &str| {
        let (stdout, stderr, status) = resume(node, more);
        assert_eq!((stdout.as_str(), status), ("", Some(1)), "{stderr}");
        assert!(stderr.contains(why), "{stderr}");
    };
    refused("left", &[], "not stopped on this node");
    let stopped = |node: &str| {
        let status = site.status(node);
        status.is_some_and(|it| it["applications"][0]["program"]["stopped"] == true)
    };
    wait_until("both to stop it", || stopped("left") && stopped("right"));
    let is_primary = |node: &&str| site.group(node, "tank").unwrap()["role"] == "primary";
    let primary = ["left", "right"].into_iter().find(is_primary).unwrap();
    let backup = if primary == "left" { "right" } else { "left" };
    refused(backup, &[], "not primary");
    refused(primary, &["--application", "ramp"], "has failed again");
    assert_eq!(resume(primary, &["--application", "slope"]).2, Some(2));
    fs::write(site.path(MENDED), "").unwrap();
    let (stdout, stderr, status) = resume(primary, &["--json"]);
    assert_eq!(status, Some(0), "{stderr}");
    let done: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(done["schema"], "bumpless.resume/1");
    assert_eq!(
        (&done["application"], &done["node"]),
        (&"ramp".into(), &primary.into())
    );
    site.await_writes(10);
    // The backup is fit again when its partner has come past the cycle that failed.
    site.await_redundant("tank");
    let written = written(&site);
    assert!(written.windows(2).all(|pair| pair[1].0 >= pair[0].0));
    assert!(written.last().is_some_and(|(cycle, _)| *cycle > LAST));
    for (cycle, outputs) in written {
        assert_eq!(outputs, expected(cycle), "cycle {cycle}");
    }
    site.writes().judge();
}
