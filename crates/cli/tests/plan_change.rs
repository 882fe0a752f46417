//! `bumpless plan OLD NEW`: the order in which a running pair can change, as a user sees it.

use std::path::PathBuf;
use std::process::{Command, Output};

const TABLE: &str = include_str!("../../../examples/table20.toml");

fn files(new: &str) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let [old_path, new_path] = ["old.toml", "new.toml"].map(|name| directory.path().join(name));
    std::fs::write(&old_path, TABLE).unwrap();
    std::fs::write(&new_path, new).unwrap();
    (directory, old_path, new_path)
}

fn plan(new: &str, options: &[&str]) -> Output {
    let (_directory, old, new) = files(new);
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
