//! What a file may say of the protection of messages, and what comes of it.

mod common;

use bumpless_base::Duration;
use bumpless_config::{Certificates, Change, Config, Security, WeaknessCode, sample};
use common::{changed, one, problems};
use std::path::PathBuf;

const PACKETS: &str = "#packets = \"protected\"";
const KEYS: &str = "#keys =";

fn parse(text: &str) -> Config {
    Config::parse(text, "t").unwrap_or_else(|problems| panic!("{problems:#?}"))
}

fn certified(folder: &str, seconds: u64) -> Security {
    Security::Certificates(Certificates {
        folder: folder.into(),
        key_lifetime: Duration::from_secs(seconds),
        key_servers: Vec::new(),
    })
}

fn weak(config: &Config) -> bool {
    let mut codes = config.weaknesses.iter().map(|weakness| weakness.code);
    codes.any(|code| code == WeaknessCode::Unauthenticated)
}

#[test]
fn without_a_word_nodes_agree_on_keys_with_certificates_beside_the_file() {
    let config = parse(&sample());
    assert_eq!(config.security, certified(".", 3600));
    assert!(!weak(&config));
}

#[test]
fn keys_come_from_files_where_these_are_named() {
    let config = parse(&changed(KEYS, "keys = [\"a.key\", \"b.key\"]").0);
    let keys = ["a.key", "b.key"].map(PathBuf::from).to_vec();
    assert_eq!(config.security, Security::Protected(keys));
    assert!(!weak(&config));
}

#[test]
fn key_servers_stand_beside_certificates_alone_and_are_no_matter_of_one_node() {
    let with = |line: &str| changed("#key_servers =", line).0;
    let config = parse(&with(
        "key_servers = [\"main@10.0.0.5:7300\", \"second@[fd00::5]:1\"]",
    ));
    assert!(config.security.has_key_servers());
    let Security::Certificates(given) = &config.security else {
        panic!("{:?}", config.security);
    };
    let names: Vec<_> = given.key_servers.iter().map(|it| &it.name[..]).collect();
    assert_eq!(names, ["main", "second"]);
    assert_eq!(given.key_servers[1].address, "[fd00::5]:1".parse().unwrap());
    // Which ones is local, whether there are any is not.
    let other = parse(&with("key_servers = [\"third@10.0.0.6:1\"]"));
    assert_eq!(config.fingerprint(), other.fingerprint());
    assert_ne!(config.fingerprint(), parse(&sample()).fingerprint());
    for wrong in [
        "main@10.0.0.5",
        "10.0.0.5:1",
        "a b@10.0.0.5:1",
        "main@0.0.0.0:1",
        "main@10.0.0.5:0",
        "",
    ] {
        let text = with(&format!("key_servers = [\"{wrong}\"]"));
        let problems = Config::parse(&text, "t").unwrap_err();
        assert!(
            problems[0].to_string().contains("key_servers"),
            "{problems:?}"
        );
    }
    for beside in ["packets = \"open\"", "keys = [\"a.key\"]"] {
        let text = with(&format!("key_servers = [\"main@10.0.0.5:1\"]\n{beside}"));
        let problems = Config::parse(&text, "t").unwrap_err();
        assert!(
            problems[0].to_string().contains("key_servers"),
            "{problems:?}"
        );
    }
}

#[test]
fn open_packets_are_a_weakness_for_as_long_as_they_are_permitted() {
    let config = parse(&changed(PACKETS, "packets = \"open\"").0);
    assert_eq!(config.security, Security::Open);
    assert!(weak(&config));
}

#[test]
fn what_protects_a_message_takes_its_room_in_every_packet() {
    let protected = parse(&sample());
    let open = parse(&changed(PACKETS, "packets = \"open\"").0);
    assert_eq!(open.transfer.payload_size, 1442);
    assert_eq!(protected.transfer.payload_size, 1442 - 39);
    let (with, without) = (&protected.networks[0], &open.networks[0]);
    assert_eq!(with.message_max(), without.message_max() - 39);
    assert_eq!(with.message_overhead(), without.message_overhead() + 39);
}

#[test]
fn the_paths_of_keys_may_differ_between_nodes_and_open_packets_may_not() {
    let usual = parse(&changed(KEYS, "keys = [\"a.key\"]").0).fingerprint();
    let elsewhere = parse(&changed(KEYS, "keys = [\"/etc/a.key\", \"b.key\"]").0);
    assert_eq!(elsewhere.fingerprint(), usual);
    let open = parse(&changed(PACKETS, "packets = \"open\"").0);
    assert_ne!(open.fingerprint(), usual);
    assert_ne!(parse(&sample()).fingerprint(), usual, "other keys");
}

#[test]
fn keys_that_protect_nothing_or_are_none_are_refused() {
    let cases = [
        ("keys = []", "security.keys"),
        ("keys = [\"\"]", "security.keys[1]"),
        ("keys = [\"a\", \"a\"]", "security.keys[2]"),
        ("keys = [\"a\", 3]", "security.keys[2]"),
        (
            "keys = [\"1\", \"2\", \"3\", \"4\", \"5\"]",
            "security.keys",
        ),
        ("keys = \"a\"", "security.keys"),
        ("keys = [\"a\"]\npackets = \"open\"", "security.keys"),
        ("packets = \"none\"", "security.packets"),
    ];
    for (line, field) in cases {
        let found = problems(&changed(KEYS, line).0);
        let fields: Vec<&str> = found.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(fields, [field], "{line}");
    }
}

#[test]
fn where_certificates_are_and_how_long_keys_last_may_differ_between_nodes() {
    let usual = parse(&sample());
    for (line, expected) in [
        ("certificates = \"pki\"", certified("pki", 3600)),
        ("key_lifetime_s = 60", certified(".", 60)),
        (
            "certificates = \"/etc/pair\"\nkey_lifetime_s = 1",
            certified("/etc/pair", 1),
        ),
    ] {
        let config = parse(&changed(KEYS, line).0);
        assert_eq!(config.security, expected, "{line}");
        assert_eq!(config.transfer.payload_size, usual.transfer.payload_size);
        assert_eq!(config.fingerprint(), usual.fingerprint());
    }
}

#[test]
fn two_ways_to_keys_or_a_lifetime_of_keys_that_last_are_refused() {
    let cases = [
        ("certificates = \"a\"\nkeys = [\"b\"]", "certificates"),
        ("certificates = \"a\"\npackets = \"open\"", "certificates"),
        ("certificates = \"\"", "certificates"),
        ("key_lifetime_s = 60\nkeys = [\"a\"]", "key_lifetime_s"),
        ("key_lifetime_s = 60\npackets = \"open\"", "key_lifetime_s"),
        ("certificates = \"a\"\nkey_lifetime_s = 0", "key_lifetime_s"),
    ];
    for (line, field) in cases {
        let found = problems(&changed(KEYS, line).0);
        let fields: Vec<&str> = found.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(fields, [format!("security.{field}")], "{line}");
    }
}

#[test]
fn a_key_beside_open_packets_is_one_problem_with_its_remedy() {
    let line = "keys = [\"a\"]\npackets = \"open\"";
    let wrong = "although packets are open";
    one(
        KEYS,
        line,
        "security.keys",
        wrong,
        "packets = \"protected\"",
    );
}

/// What keeps a pair that runs with `old` from changing to `new`.
fn kept_from(old: &str, new: &str) -> Vec<(String, String)> {
    let found = Change::between(&parse(old), &parse(new), "t").unwrap_err();
    found.into_iter().map(|it| (it.field, it.right)).collect()
}

#[test]
fn other_protection_is_one_problem_of_a_change_and_other_keys_take_one_node_after_the_other() {
    let open = changed(PACKETS, "packets = \"open\"").0;
    let found = kept_from(&sample(), &open);
    let stop = "stop both nodes";
    assert!(
        matches!(&found[..], [(field, right)] if field == "security" && right.contains(stop)),
        "{found:?}"
    );
    assert_eq!(kept_from(&open, &sample()), found);
    let keys = |names: &str| changed(KEYS, &format!("keys = [{names}]")).0;
    let found = kept_from(&keys("\"a\""), &keys("\"a\", \"b\""));
    let one = "one node after the other";
    assert!(
        matches!(&found[..], [(field, right)] if field == "security" && right.contains(one)),
        "{found:?}"
    );
    // What changes besides is told besides.
    let more = open.replacen("#memory_max = \"1 GiB\"", "memory_max = \"2 GiB\"", 1);
    let fields: Vec<_> = kept_from(&sample(), &more)
        .into_iter()
        .map(|it| it.0)
        .collect();
    assert_eq!(fields, ["transfer", "security"]);
}

#[test]
fn a_group_for_the_control_socket_needs_a_path_that_it_can_reach() {
    let line = "control_group = \"operators\"";
    one(
        "#control_group =",
        line,
        "node[1].control_group",
        "stands here without a path",
        "give control a path",
    );
    let (text, _) = changed("#control_group =", line);
    let path = "control = \"/run/bumpless/left.sock\"";
    let config = parse(&text.replacen("#control =", path, 1));
    let groups = config
        .nodes
        .iter()
        .map(|node| node.control_group.as_deref());
    assert_eq!(groups.collect::<Vec<_>>(), [Some("operators"), None]);
    assert_eq!(config.fingerprint(), parse(&sample()).fingerprint());
}
