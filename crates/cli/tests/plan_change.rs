//! `bumpless plan OLD NEW`: the order in which a running pair can change, as a user sees it.

use std::path::PathBuf;
use std::process::{Command, Output};

const TABLE: &str = include_str!("../../../examples/table20.toml");

fn files(old: &str, new: &str) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let [old_path, new_path] = ["old.toml", "new.toml"].map(|name| directory.path().join(name));
    std::fs::write(&old_path, old).unwrap();
    std::fs::write(&new_path, new).unwrap();
    (directory, old_path, new_path)
}

fn plan(new: &str, options: &[&str]) -> Output {
    plan_from(TABLE, new, options)
}

fn plan_from(old: &str, new: &str, options: &[&str]) -> Output {
    let (_directory, old, new) = files(old, new);
    let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless"));
    command
        .arg("plan")
        .args([old, new])
        .args(options)
        .output()
        .unwrap()
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Application 4 larger, application 11 gone, in the way the example is written.
fn heavier_and_lighter() -> String {
    let eleventh = TABLE.rfind("[[application]]").unwrap();
    TABLE[..eleventh].replace("size = \"400 kB\"", "size = \"900 kB\"")
}

#[test]
fn what_makes_room_is_named_before_what_takes_it() {
    let output = plan(&heavier_and_lighter(), &[]);
    let text = printed(&output);
    assert!(output.status.success(), "{text}");
    let first = text.find("1. application-11 ends").expect(&text);
    let second = text
        .find("2. application-4 asks more: state 400000 to 900000 B")
        .expect(&text);
    assert!(first < second);
    assert!(
        text.contains("bumpless apply refuses it") && text.contains("application[4].size"),
        "{text}"
    );
    assert!(!text.contains(".kind"), "{text}");
}

#[test]
fn what_only_the_application_sees_is_a_change_too() {
    let fourth = |text: &str, from: &str, to: &str| {
        let at = text.find("name = \"application-4\"").unwrap();
        let (before, after) = text.split_at(at);
        before.to_owned() + &after.replacen(from, to, 1)
    };
    let tuned = fourth(TABLE, "commit = \"async\"", "commit = \"before_output\"");
    let output = plan(&tuned, &[]);
    let text = printed(&output);
    assert!(output.status.success(), "{text}");
    assert!(
        text.contains("other settings of application-4 change"),
        "{text}"
    );
    let renumbered = fourth(TABLE, "channel = 4\n", "channel = 44\n");
    let output = plan(&renumbered, &["--json"]);
    let json: serde_json::Value = serde_json::from_str(&printed(&output)).unwrap();
    assert_eq!(json["apply"]["possible"], false);
    assert_eq!(
        json["apply"]["problems"][0]["field"],
        "application[4].channel"
    );
}

#[test]
fn the_order_is_there_as_json() {
    let output = plan(&heavier_and_lighter(), &["--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["schema"], "bumpless.plan.change/1");
    assert_eq!((&json["old"], &json["new"]), (&"yes".into(), &"yes".into()));
    assert_eq!(json["order"]["way"], "steps");
    assert_eq!(json["order"]["steps"][0]["kind"], "remove");
    assert_eq!(json["order"]["steps"][1]["channel"], "application-4");
}

#[test]
fn the_same_twice_is_nothing_to_do() {
    let output = plan(TABLE, &[]);
    assert!(output.status.success());
    assert!(printed(&output).contains("the applications are the same"));
}

/// Two applications with states of this `size` on one network: of `short` the deadline is short, and the other one has a budget for
/// losses. With both deadlines short, or both budgets, the network would be overloaded.
fn exchange(short: usize, size: usize) -> String {
    const HEAD: &str = r#"[pair]
name = "two"

[timing]
heartbeat_ms = 20
lease_ms = 100
start_wait_ms = 300

[security]
packets = "open"

[[network]]
name = "A"
bandwidth_mbit = 10
bit_error_rate = 1e-10

[[node]]
name = "left"
addresses = { A = "127.0.3.1:4720" }

[[node]]
name = "right"
addresses = { A = "127.0.3.2:4720" }

[[reference]]
name = "witness"
kind = "witness"
network = "A"
address = "127.0.3.9:4730"

[[group]]
name = "tank"
nodes = ["left", "right"]
references = ["witness"]
"#;
    let application = |at: usize| {
        let times = match at == short {
            true => "deadline_ms = 40\nretransmissions = 0",
            false => "deadline_ms = 72\nretransmissions = 3",
        };
        format!(
            "\n[[application]]\nname = \"it-{at}\"\ngroup = \"tank\"\nchannel = {at}\nkind = \"synthetic\"\nsize = {size}\n\
             period_ms = 200\ncommit = \"async\"\n{times}\n"
        )
    };
    format!("{HEAD}{}{}", application(1), application(2))
}

/// P-43: whether a running pair can change is the question, not whether there is an order.
#[test]
fn what_apply_makes_all_at_once_is_no_failure_and_what_it_refuses_is_one() {
    let old = exchange(1, 20_000);
    for (size, together) in [(20_000, true), (20_100, false)] {
        let new = exchange(2, size);
        let output = plan_from(&old, &new, &[]);
        let text = printed(&output);
        assert_eq!(output.status.code(), Some(i32::from(!together)), "{text}");
        assert!(text.contains("only all at once"), "{text}");
        let part = match together {
            true => "bumpless apply has those that stay change together",
            false => "bumpless apply refuses it",
        };
        assert!(text.contains(part), "{text}");
        let output = plan_from(&old, &new, &["--json"]);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["order"]["way"], "atomic", "{json}");
        assert_eq!(json["apply"]["together"], together, "{json}");
    }
}

#[test]
fn a_section_that_needs_a_restart_is_named_with_what_to_do() {
    let output = plan(&format!("{TABLE}\n[timing]\nheartbeat_ms = 3\n"), &[]);
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("[timing] cannot change while the pair runs: end both nodes"),
        "{text}"
    );
}

#[test]
fn a_refused_end_is_named_with_the_command_that_says_why() {
    let hasty = "channel = 4\nperiod_ms = 100\ndeadline_ms = 4";
    let new = TABLE.replace("channel = 4\nperiod_ms = 100\ndeadline_ms = 100", hasty);
    let output = plan(&new, &[]);
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("new.toml is refused by the plan: see bumpless plan"),
        "{text}"
    );
}

#[test]
fn pictures_of_two_configurations_are_not_to_be_had() {
    let output = plan(TABLE, &["--html", "page.html"]);
    assert_eq!(output.status.code(), Some(2));
}
