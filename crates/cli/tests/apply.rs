//! `bumpless apply`: a running pair changes its applications without harm to those that stay; the real
//! program as separate processes on loopback addresses.

mod support;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use support::change::{BOTH, Pair, application, three};
use support::plan::Plan;
use support::process::{BUMPLESS, outcome, said};
use support::site::Site;

#[test]
fn applications_change_without_a_lost_cycle_of_those_that_stay() {
    let pair = Pair::running(&three());
    for name in ["stays", "tuned", "goes"] {
        pair.await_cycles(name, 3);
    }
    let before = pair.in_force();
    let new = [
        application("stays", 1, 100, ""),
        application("tuned", 2, 50, ""),
        application("comes", 4, 100, ""),
    ];
    let file = pair.write("next.toml", &new);
    let (said, error, status) = pair.apply(&[&file, "--json"]);
    assert_eq!(status, Some(0), "{said}{error}");
    let told: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(told["schema"], "bumpless.apply/1");
    for (what, name) in [("removed", "goes"), ("tuned", "tuned"), ("added", "comes")] {
        assert_eq!(told[what], serde_json::json!([name]), "{told}");
    }
    assert_eq!(told["in_force_on"], serde_json::json!(BOTH), "{told}");
    let at_change = pair.written("tuned").len();
    for (name, more) in [("stays", 5), ("tuned", 10), ("comes", 5)] {
        pair.await_cycles(name, more);
    }
    let after = pair.await_settled();
    assert_eq!(told["fingerprint"], after);
    assert_ne!(before, after);
    pair.site.await_redundant("tank");
    for node in BOTH {
        assert_eq!(pair.names(node), ["stays", "tuned", "comes"]);
        assert!(
            pair.site
                .events_of(node, "configuration_differs")
                .is_empty()
        );
    }
    // The numbers of the tuned one went on.
    assert!(pair.written("tuned")[at_change] > at_change as u64 - 1);
    for name in ["stays", "tuned", "comes"] {
        pair.judge(name);
    }
    assert_eq!(pair.written("comes").first(), Some(&1), "it begins anew");
    assert_eq!(pair.file(), fs::read_to_string(&file).unwrap());
    assert_eq!(pair.drafts(), Vec::<PathBuf>::new());
    // Who went is silent.
    let gone = pair.written("goes").len();
    pair.await_cycles("stays", 3);
    assert_eq!(pair.written("goes").len(), gone);
}

/// Two applications, one with a short deadline and the other with a budget.
fn short_and_patient(short: &str, patient: &str) -> Vec<String> {
    let more = |name: &str| match name == short {
        true => "deadline_ms = 40\nretransmissions = 0\ncommit = \"async\"",
        false => "deadline_ms = 72\nretransmissions = 3\ncommit = \"async\"",
    };
    let mut names = [short, patient];
    names.sort_unstable();
    let each = names.iter().zip(1..).map(|(name, channel)| {
        application(name, channel, 200, more(name)).replace("size = 2000", "size = \"20 kB\"")
    });
    each.collect()
}

/// with both deadlines short, or both budgets, the network would be overloaded on the way.
#[test]
fn what_no_order_permits_changes_together() {
    let mut plan = Plan::pair(1);
    plan.open = true;
    plan.network = "bandwidth_mbit = 10\nbit_error_rate = 1e-10".into();
    plan.applications = short_and_patient("one", "two");
    let mut pair = Pair {
        site: Site::new(plan),
    };
    let config = pair.site.config().display().to_string();
    let next = pair.write("next.toml", &short_and_patient("two", "one"));
    let (stdout, stderr, status) = said(&["plan", &config, &next]);
    assert_eq!(status, Some(0), "apply makes it: {stdout}{stderr}");
    for words in ["only all at once", "change together"] {
        assert!(stdout.contains(words), "{stdout}");
    }
    pair.site.run_options = vec!["--log-transfers"];
    pair.site.start_witnesses();
    BOTH.iter().for_each(|node| pair.site.start(node));
    pair.site.await_redundant("tank");
    for name in ["one", "two"] {
        pair.await_cycles(name, 2);
    }
    let (said, error, status) = pair.apply(&[&next, "--json"]);
    assert_eq!(status, Some(0), "{said}{error}");
    let told: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(told["together"], true, "{told}");
    assert_eq!(told["tuned"], serde_json::json!(["one", "two"]), "{told}");
    pair.await_settled();
    for node in BOTH {
        // What has not taken its settings is a weakness until it has.
        pair.site
            .await_status("both go on with their settings", node, |status| {
                !status["weaknesses"]
                    .to_string()
                    .contains("go on as they were")
            });
    }
    for name in ["one", "two"] {
        pair.await_cycles(name, 3);
        pair.judge(name);
    }
    assert_eq!(pair.file(), fs::read_to_string(&next).unwrap());
}

#[test]
fn places_are_given_anew_and_a_channel_is_not() {
    let pair = Pair::running(&three()[..1]);
    // Twice as many as there is room for beside those that were there at the start.
    for round in 0..4u32 {
        let mut all = vec![three()[0].clone()];
        let more = (0..32).map(|at| {
            let name = format!("guest{round}-{at}");
            application(&name, 100 + round * 32 + at, 200, "deadline_ms = 100")
        });
        all.extend(more);
        pair.change(&all);
        assert_eq!(pair.names("left").len(), 33);
        pair.change(&three()[..1]);
        pair.await_settled();
    }
    assert_eq!(pair.names("right"), ["stays"]);
    let fingerprint = pair.in_force();
    let text = pair.file();
    // Of the first round: it ended long ago, and its packets may still be somewhere.
    let again = [three()[0].clone(), application("again", 100, 100, "")];
    let new = pair.write("next.toml", &again);
    let (said, error, status) = pair.apply(&[&new]);
    assert_eq!(status, Some(1), "{said}{error}");
    assert!(
        error.contains("channel 100") && error.contains("not used since"),
        "{error}"
    );
    pair.assert_unchanged(&fingerprint, &text);
    // No place on the way: all 64 taken, and one more.
    let many: Vec<_> = (0..66)
        .map(|at| application(&format!("many{at}"), 1000 + at, 500, ""))
        .collect();
    let new = pair.write("next.toml", &[&three()[..1], &many].concat());
    let (said, error, status) = pair.apply(&[&new]);
    assert_eq!(status, Some(1), "{said}{error}");
    assert!(error.contains("all places are taken"), "{error}");
    pair.assert_unchanged(&fingerprint, &text);
    pair.judge("stays");
}

#[test]
fn status_says_over_which_networks_states_go_while_applications_come_and_go() {
    let one = application("one", 1, 100, "networks = [\"A\"]");
    let two = application("two", 2, 100, "");
    let pair = Pair::running(std::slice::from_ref(&one));
    let go_over = |networks: [bool; 2]| {
        let carried = |status: &Value| {
            let links = status["links"].as_array().unwrap().iter();
            links.map(|it| it["carries_states"] == true).eq(networks)
        };
        for node in BOTH {
            let what = format!("states go over A and B: {networks:?}");
            pair.site.await_status(&what, node, carried);
        }
    };
    go_over([true, false]);
    pair.change(&[one.clone(), two]);
    go_over([true, true]);
    pair.change(&[one]);
    go_over([true, false]);
}

#[test]
fn the_memory_of_those_that_went_is_used_again() {
    const SIZE: u64 = 4_000_000;
    let mut pair = Pair::running(&three()[..1]);
    let mut resident = Vec::new();
    for round in 0..8u32 {
        let big = application("big", 100 + round, 200, "deadline_ms = 100");
        let big = big.replace("size = 2000", &format!("size = {SIZE}"));
        pair.change(&[three()[0].clone(), big]);
        pair.await_cycles("big", 2);
        pair.change(&three()[..1]);
        pair.await_settled();
        resident.push(BOTH.map(|node| pair.site.node(node).resident()));
    }
    // Two buffers at either end, at least, in each of four rounds; the system may keep some for later.
    for node in [0, 1] {
        let grown = resident[7][node].saturating_sub(resident[3][node]);
        assert!(grown < 4 * SIZE, "{node}: {resident:?}");
    }
}

#[test]
fn a_refused_change_names_every_reason_and_changes_nothing() {
    let pair = Pair::running(&three());
    let (fingerprint, text) = (pair.in_force(), pair.file());
    let refuse = |new: &str, status: i32, reasons: &[&str]| {
        let (said, error, ended) = pair.apply(&[new]);
        assert_eq!(ended, Some(status), "{said}{error}");
        for reason in reasons {
            assert!(error.contains(reason), "'{reason}' is not in: {error}");
        }
        pair.assert_unchanged(&fingerprint, &text);
        // The same as JSON.
        let (said, _, ended) = pair.apply(&[new, "--json"]);
        let told: Value = serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said}"));
        assert!(told["schema"].is_string(), "{told}");
        assert_eq!(ended, Some(status), "{told}");
    };
    let mut plan = pair.site.plan.clone();
    plan.lease_ms += 10;
    plan.network = "mtu = 1400".into();
    plan.applications[1] = application("tuned", 2, 100, "").replace("size = 2000", "size = 3000");
    let file = pair.write_plan("several.toml", &plan);
    refuse(
        &file,
        1,
        &[
            "timing",
            "network",
            "application[2].size",
            "nothing has changed",
        ],
    );

    // Each takes 33 ms of a network; one alone would be in time.
    let big = |name, channel| {
        application(name, channel, 200, "deadline_ms = 40").replace("size = 2000", "size = 4000000")
    };
    let file = pair.write(
        "big.toml",
        &[three()[0].clone(), big("one", 8), big("two", 9)],
    );
    refuse(
        &file,
        1,
        &["'left': the plan refuses", "too much in the 40.0 ms"],
    );

    let file = pair.write("bad.toml", &[three()[0].replace("period_ms", "perod_ms")]);
    refuse(&file, 2, &["perod_ms", "nothing has changed"]);
    refuse(
        pair.site.path("nowhere.toml").to_str().unwrap(),
        2,
        &["nowhere.toml"],
    );
    refuse(
        pair.site.config().to_str().unwrap(),
        2,
        &["a file of its own"],
    );
    let file = pair.write("same.toml", &three());
    refuse(&file, 1, &["in force already"]);

    let (said, error, status) = pair.apply(&["--withdraw"]);
    assert_eq!(status, Some(1), "{said}{error}");
    assert!(error.contains("no change is prepared"), "{error}");
    let (_, error, status) = pair.apply(&[&file, "--node", "nobody"]);
    assert_eq!(status, Some(2), "{error}");
    pair.await_cycles("stays", 3);
    pair.judge("stays");
}

#[test]
fn without_a_running_node_nothing_is_changed() {
    let mut plan = Plan::pair(1);
    plan.applications = three().to_vec();
    let pair = Pair {
        site: Site::new(plan),
    };
    let text = pair.file();
    let new = pair.write("next.toml", &three()[..2]);
    let (said, error, status) = pair.apply(&[&new]);
    assert_eq!(status, Some(1), "{said}{error}");
    assert!(
        error.contains("no node of 'black-box' answers on this machine"),
        "{error}"
    );
    assert_eq!(pair.file(), text);
    assert_eq!(pair.drafts(), Vec::<PathBuf>::new());
}

#[test]
fn the_nodes_of_a_pool_are_not_changed_while_they_run() {
    let groups = [("tank", ["left", "right"]), ("other", ["right", "third"])];
    let mut plan = Plan::nodes(1, &["left", "right", "third"], &groups);
    plan.applications = vec![three()[0].clone()];
    plan = plan.synthetic("other", 2000, 100, "");
    let mut pair = Pair {
        site: Site::new(plan),
    };
    pair.site.start_surroundings();
    for node in ["left", "right", "third"] {
        pair.site.start(node);
    }
    pair.site.await_redundant("tank");
    let text = pair.file();
    let mut applications = pair.site.plan.applications.clone();
    applications.push(application("comes", 7, 100, ""));
    let new = pair.write("next.toml", &applications);
    let (said, error, status) = pair.apply(&[&new]);
    assert_eq!(status, Some(1), "{said}{error}");
    assert!(error.contains("pool"), "{error}");
    assert_eq!(pair.file(), text);
    assert_eq!(pair.drafts(), Vec::<PathBuf>::new());
}

#[test]
fn nodes_asked_one_after_the_other_change_when_the_second_was_asked() {
    for [first, second] in [BOTH, ["right", "left"]] {
        let pair = Pair::running(&three());
        let before = pair.in_force();
        let new = pair.write("next.toml", &three()[..2]);
        let begun = pair.begin(&[&new, "--node", first, "--json"], "first.said");
        pair.await_prepared(first);
        let (said, error, status) = pair.apply(&[&new, "--node", second]);
        assert_eq!(status, Some(0), "{said}{error}");
        assert_eq!(begun.wait().code(), Some(0));
        let said = fs::read_to_string(pair.site.path("first.said")).unwrap();
        let told: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(told["in_force_on"], serde_json::json!([first]), "{told}");
        assert_ne!(pair.await_settled(), before);
        pair.site.await_redundant("tank");
        pair.judge("stays");
    }
}

#[test]
fn the_help_says_when_the_old_configuration_stays() {
    let help = Command::new(BUMPLESS)
        .args(["apply", "--help"])
        .output()
        .unwrap();
    let (said, ..) = outcome(&help);
    for words in [
        "--withdraw",
        "--wait",
        "Ctrl-C",
        "the old one is in force",
        "unless a node is making it already",
    ] {
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(words), "{words}: {said}");
    }
}
