//! States on disk: what the file must say of them, and what is refused.

use bumpless_base::Duration;
use bumpless_config::{Config, Problem, sample};

const PERSIST: &str = "persist = \"file\"";

/// The sample with lines for the application and for the nodes `left` and `right`.
fn with(application: &str, left: &str, right: &str) -> String {
    let insert = |text: String, after: &str, line: &str| {
        assert!(text.contains(after), "{after}");
        text.replacen(after, &format!("{after}{line}\n"), 1)
    };
    let text = insert(sample(), "\nperiod_ms = 10\n", application);
    let text = insert(text, "\nname = \"left\"\n", left);
    insert(text, "\nname = \"right\"\n", right)
}

fn folder(path: &str) -> String {
    format!("state_dir = \"{path}\"")
}

fn problems(text: &str) -> Vec<Problem> {
    Config::parse(text, "test").err().unwrap_or_default()
}

/// The fields that are wrong in `text`; each with a remedy.
fn wrong(text: &str) -> Vec<String> {
    let found = problems(text);
    assert!(found.iter().all(|it| it.line > 0 && !it.right.is_empty()));
    found.into_iter().map(|problem| problem.field).collect()
}

#[test]
fn a_state_is_kept_in_memory_alone_unless_the_file_says_otherwise() {
    let config = Config::parse(&sample(), "sample").unwrap();
    assert_eq!(config.applications[0].persist, None);
    let text = with(PERSIST, &folder("/var/l"), &folder("states/r"));
    let config = Config::parse(&text, "kept").unwrap();
    assert_eq!(
        config.applications[0].persist,
        Some(Duration::from_millis(100))
    );
    assert_eq!(config.nodes[1].state_dir, Some("states/r".into()));
}

#[test]
fn buffers_on_the_way_to_the_disk_count_as_memory() {
    let node = bumpless_base::NodeId(0);
    let without = Config::parse(&sample(), "sample").unwrap();
    let text = with(PERSIST, &folder("/var/l"), &folder("/var/r"));
    let with = Config::parse(&text, "kept").unwrap();
    let state = u64::from(with.applications[0].state_max);
    assert_eq!(
        with.state_memory(node),
        without.state_memory(node) + 3 * state
    );
}

#[test]
fn every_node_of_an_application_that_persists_needs_a_folder() {
    assert_eq!(
        wrong(&with(PERSIST, "", "")),
        ["node[1].state_dir", "node[2].state_dir"]
    );
    let text = with(PERSIST, &folder("/var/l"), "");
    assert_eq!(wrong(&text), ["node[2].state_dir"]);
    let found = problems(&text);
    assert!(found[0].wrong.contains("\"tank\""), "{}", found[0]);
}

#[test]
fn two_nodes_with_one_folder_are_refused_however_it_is_written() {
    for same in [
        "/var/states",
        "/var/states/",
        "//var/./states",
        "/var//states/.",
    ] {
        let text = with(PERSIST, &folder("/var/states"), &folder(same));
        assert_eq!(wrong(&text), ["node[2].state_dir"], "{same}");
    }
    // Also where nothing is kept yet.
    let text = with("", &folder("a"), &folder("./a"));
    assert_eq!(wrong(&text), ["node[2].state_dir"]);
}

#[test]
fn how_often_a_state_is_written_must_make_sense() {
    let every = |more: &str| with(more, &folder("/var/l"), &folder("/var/r"));
    assert_eq!(
        wrong(&every("persist_every_ms = 50")),
        ["application[1].persist_every_ms"],
        "without persist"
    );
    let late = format!("{PERSIST}\npersist_every_ms = 5000");
    assert_eq!(wrong(&every(&late)), ["application[1].persist_every_ms"]);
    let fits = format!("{PERSIST}\npersist_every_ms = 4999");
    assert!(wrong(&every(&fits)).is_empty());
    assert_eq!(
        wrong(&every("persist = \"disk\"")),
        ["application[1].persist"]
    );
}

#[test]
fn all_of_it_is_said_at_once() {
    let more = format!("{PERSIST}\npersist_every_ms = 6000");
    let text = with(&more, &folder("/var/s"), &folder("/var/s/"));
    assert_eq!(
        wrong(&text),
        ["node[2].state_dir", "application[1].persist_every_ms"]
    );
}
