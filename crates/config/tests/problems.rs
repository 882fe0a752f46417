//! A wrong file: every error at once, each with line, field, cause and remedy.

use bumpless_base::Duration;
use bumpless_config::{Config, Problem, WeaknessCode, WireVersion, sample};

fn problems(text: &str) -> Vec<Problem> {
    Config::parse(text, "test.toml").err().unwrap_or_default()
}

/// The sample with `from` replaced, and the number of the first line that changed.
fn changed(from: &str, to: &str) -> (String, usize) {
    let text = sample();
    let at = text
        .find(from)
        .unwrap_or_else(|| panic!("the sample lacks {from}"));
    let line = text[..at].matches('\n').count() + 1;
    (text.replacen(from, to, 1), line)
}

/// Asserts that the change gives exactly one problem, on its line and with these words.
#[track_caller]
fn one(from: &str, to: &str, field: &str, wrong: &str, right: &str) {
    let (text, line) = changed(from, to);
    let found = problems(&text);
    assert_eq!(found.len(), 1, "{found:#?}");
    let problem = &found[0];
    assert_eq!(
        (problem.line, problem.field.as_str()),
        (line, field),
        "{problem}"
    );
    assert!(problem.wrong.contains(wrong), "{problem}");
    assert!(problem.right.contains(right), "{problem}");
}

#[test]
fn a_misspelt_field_is_named_with_the_right_one() {
    one(
        "#lease_ms = 10",
        "leese_ms = 10",
        "timing.leese_ms",
        "not a field",
        "mean lease_ms?",
    );
    one(
        "period_ms = 10",
        "periods = 3\nperiod_ms = 10",
        "application[1].periods",
        "",
        "period_ms?",
    )
}

#[test]
fn a_field_in_the_wrong_section_is_sent_home() {
    one(
        "#lease_ms = 10",
        "bandwidth_mbit = 10",
        "timing.bandwidth_mbit",
        "",
        "belongs in [[network]]",
    );
}

#[test]
fn numbers_out_of_range_not_numbers_and_infinities_are_refused() {
    for value in [
        "0",
        "-2",
        "nan",
        "inf",
        "-inf",
        "1e300",
        "9223372036854775807",
        "\"2\"",
        "[2]",
    ] {
        let to = format!("heartbeat_ms = {value}");
        one(
            "#heartbeat_ms = 2",
            &to,
            "timing.heartbeat_ms",
            "is",
            "from 0.5 to 1000",
        );
    }
    one(
        "period_ms = 10",
        "period_ms = -10",
        "application[1].period_ms",
        "is -10",
        "from 1 to 60000",
    );
    one(
        "tank1_cm = 12.4",
        "tank1_cm = nan",
        "application[1].set_points[1].tank1_cm",
        "NaN",
        "0 to 20",
    );
}

#[test]
fn times_that_do_not_fit_each_other_are_refused_with_the_sum() {
    one(
        "#lease_ms = 10",
        "lease_ms = 5",
        "timing.lease_ms",
        "3 heartbeats of 2 ms",
        "at least 6",
    );
    one(
        "#start_wait_ms = 1000",
        "start_wait_ms = 20",
        "timing.start_wait_ms",
        "2 leases",
        "least 20.01",
    );
    one(
        "#deadline_ms =",
        "deadline_ms = 11",
        "application[1].deadline_ms",
        "longer than the period",
        "at most",
    );
    one(
        "#expiry_ms =",
        "expiry_ms = 51",
        "application[1].expiry_ms",
        "26.01 ms",
        "at least 52",
    );
    one(
        "#timeout_ms =",
        "timeout_ms = 10",
        "application[1].field.timeout_ms",
        "not below",
        "quarter",
    );
}

#[test]
fn addresses_are_checked_for_form_owner_and_ip_version() {
    let address = "B = \"127.0.2.1:4700\"";
    let field = "node[1].addresses.B";
    one(
        address,
        "B = \"127.0.2.1\"",
        field,
        "127.0.2.1",
        "address and port",
    );
    one(
        address,
        "B = \"127.0.2.1:0\"",
        field,
        "port 0",
        "address and port",
    );
    one(
        address,
        "B = \"0.0.0.0:4700\"",
        field,
        "every address",
        "one host",
    );
    one(
        address,
        "B = \"224.0.0.1:4700\"",
        field,
        "multicast",
        "one host",
    );
    one(
        address,
        "B = \"[::ffff:1.2.3.4]:4700\"",
        field,
        "IPv6 clothes",
        "one host",
    );
    one(address, "B = 5", field, "is 5", "address and port");
    // The second user of an address is the one that is told.
    let found = problems(&changed(address, "B = \"127.0.1.1:4700\"").0);
    assert_eq!((found.len(), found[0].field.as_str()), (1, field));
    assert!(
        found[0]
            .wrong
            .contains("also the address of node[1].addresses.A"),
        "{}",
        found[0]
    );
    let found = problems(&changed("127.0.2.9:4710", "[2001:db8::9]:4710").0);
    assert_eq!(
        (found.len(), found[0].field.as_str()),
        (1, "reference[2].address")
    );
    assert!(
        found[0].wrong.contains("is IPv6") && found[0].right.contains("IPv4"),
        "{}",
        found[0]
    );
}

#[test]
fn names_that_lead_nowhere_are_named_with_the_nearest() {
    one(
        "group = \"tank\"",
        "group = \"tnak\"",
        "application[1].group",
        "\"tnak\"",
        "mean \"tank\"?",
    );
    one(
        "\"right\"]",
        "\"rihgt\"]",
        "group[1].nodes",
        "\"rihgt\" is not a node",
        "\"right\"",
    );
    one(
        "\"witness-b\"]",
        "\"quorum\"]",
        "group[1].references",
        "not a reference",
        "witness-a, witness-b",
    );
    one(
        "#networks =",
        "networks = [\"A\", \"C\"]",
        "application[1].networks",
        "\"C\"",
        "name one of A, B",
    );
}

#[test]
fn a_group_has_two_nodes() {
    let (alone, three) = ("nodes = [\"left\"]", "nodes = [\"left\", \"right\", \"x\"]");
    let found = problems(&changed("nodes = [\"left\", \"right\"]", alone).0);
    let fields: Vec<&str> = found.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(fields, ["node[2]", "group[1].nodes"], "{found:#?}");
    let found = problems(&changed("nodes = [\"left\", \"right\"]", three).0);
    assert!(
        found
            .iter()
            .any(|problem| problem.right.contains("name two")),
        "{found:#?}"
    );
}

#[test]
fn a_group_without_a_reference_point_must_say_so() {
    let given = "references = [\"witness-a\", \"witness-b\"]";
    one(
        given,
        "references = []",
        "group[1].references",
        "no reference point",
        "without_reference",
    );
    let (text, _) = changed(given, "without_reference = true");
    let config = Config::parse(&text, "t").unwrap();
    let unsafe_one = &config.weaknesses[1];
    assert_eq!(unsafe_one.code, WeaknessCode::WithoutReference);
    assert!(unsafe_one.hazard.contains("UNSAFE"));
    one(
        "#without_reference = false",
        "without_reference = true",
        "group[1].without_reference",
        "",
        "remove",
    );
}

#[test]
fn a_state_too_large_for_version_1_is_refused_with_the_numbers() {
    let text = include_str!("data/synthetic.toml");
    let with = |version: &str, size: u32| {
        text.replace("VERSION", version)
            .replace("SIZE", &size.to_string())
    };
    // 65,536 packets of 1454 bytes, less the executor's envelope.
    let limit = 65_536 * 1454 - 64;
    let config = Config::parse(&with("1", limit), "t").unwrap_or_else(|p| panic!("{p:#?}"));
    assert_eq!(config.transfer.payload_size, 1454);
    assert_eq!(config.transfer.version, WireVersion::V1);
    assert_eq!(config.applications[0].state_max, limit + 64);
    assert!(
        config
            .weaknesses
            .iter()
            .any(|weakness| weakness.code == WeaknessCode::EarlierSessions)
    );
    let found = problems(&with("1", limit + 1));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].field, "application[1].size");
    assert!(
        found[0]
            .wrong
            .contains("needs 65537 packets of 1454 bytes, version 1 numbers 65536")
    );
    assert!(found[0].right.contains("wire_version = 2"), "{}", found[0]);
    assert!(problems(&with("2", limit + 1)).is_empty());
    assert!(problems(&with("1", 0)).is_empty());
}

#[test]
fn version_1_cannot_carry_long_expiries() {
    let text = include_str!("data/synthetic.toml").replace("SIZE", "0");
    let text = text.replace("period_ms = 20000", "period_ms = 30000");
    assert!(problems(&text.replace("VERSION", "2")).is_empty());
    let found = problems(&text.replace("VERSION", "1"));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(
        found[0]
            .wrong
            .contains("does not fit in a version 1 header"),
        "{}",
        found[0]
    );
    assert_eq!(found[0].field, "application[1].period_ms");
}

#[test]
fn more_than_a_link_carries_is_refused() {
    let text = include_str!("../../../examples/table20.toml");
    assert!(problems(text).is_empty());
    // 93.0 % in payload is still below, 100.9 % with headers is not.
    let found = problems(&text.replace("\"1.6 MB\"", "\"6.5 MB\""));
    let fields: Vec<&str> = found.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(
        fields,
        ["network[1].bandwidth_mbit", "network[2].bandwidth_mbit"],
        "{found:#?}"
    );
    assert!(
        found[0].wrong.contains("100 %") && found[0].wrong.contains("1000 Mbit/s"),
        "{}",
        found[0]
    );
    // Spread over both, or unpaced, it is no error.
    let spread = text.replace("\nchannel", "\ndistribution = \"spread\"\nchannel");
    assert!(problems(&spread.replace("\"1.6 MB\"", "\"6.5 MB\"")).is_empty());
    let unpaced = text.replace("bandwidth_mbit = 1000", "bandwidth_mbit = 0");
    assert!(problems(&unpaced.replace("\"1.6 MB\"", "\"6.5 MB\"")).is_empty());
}

#[test]
fn a_state_that_misses_its_deadline_alone_is_refused() {
    let text = include_str!("../../../examples/table20.toml");
    let found = problems(&text.replacen("\"800 B\"", "\"1.3 MB\"", 1));
    assert!(
        found
            .iter()
            .any(|p| p.field == "application[1].deadline_ms" && p.wrong.contains("11.1 ms")),
        "{found:#?}"
    );
}

#[test]
fn memory_is_bounded() {
    one(
        "#memory_max = \"1 GiB\"",
        "memory_max = \"8 kB\"",
        "transfer.memory_max",
        "8192 bytes",
        "raise it",
    );
}

#[test]
fn fields_of_another_kind_are_refused() {
    one(
        "period_ms = 10",
        "size = 5\nperiod_ms = 10",
        "application[1].size",
        "kind synthetic",
        "remove it",
    );
}

#[test]
fn set_points_begin_at_zero_and_ascend() {
    one(
        "at_s = 0",
        "at_s = 1",
        "application[1].set_points[1].at_s",
        "first one is at 1 s",
        "at_s = 0",
    );
    one(
        "at_s = 20",
        "at_s = 0",
        "application[1].set_points[2].at_s",
        "not after",
        "order them",
    );
}

#[test]
fn headers_of_the_wrong_kind_are_explained() {
    let found = problems("[network]\nname = \"A\"\n[[timing]]\n");
    let text: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(text[0].starts_with("test.toml:1: "), "{text:#?}");
    assert!(
        text.iter()
            .any(|t| t.contains("test.toml:1: network: is a single table; write [[network]]"))
    );
    assert!(
        text.iter()
            .any(|t| t.contains("test.toml:3: timing: is a list of tables; write [timing]"))
    );
}

#[test]
fn an_empty_file_says_what_is_needed() {
    let found = problems("");
    for field in ["pair.name", "network", "node", "group", "application"] {
        assert!(
            found.iter().any(|problem| problem.field == field),
            "{field}: {found:#?}"
        );
    }
    assert_eq!(found.len(), 5, "{found:#?}");
}

#[test]
fn syntax_errors_are_all_found_and_do_not_hide_the_rest() {
    let text = sample()
        .replace("#heartbeat_ms = 2", "heartbeat_ms = = 2")
        .replace("#lease_ms = 10", "leese_ms = 10")
        .replacen("#mtu = 1500", "mtu = 1500\nmtu = 1501", 1)
        .replace("at_s = 20", "at_s = 'twenty");
    let found = problems(&text);
    let syntax = found
        .iter()
        .filter(|problem| problem.wrong.starts_with("syntax: "))
        .count();
    assert_eq!((found.len(), syntax), (4, 3), "{found:#?}");
    for problem in &found {
        let line = text.lines().nth(problem.line - 1).unwrap();
        let expected = ["heartbeat_ms", "leese_ms", "mtu", "at_s"];
        assert!(
            expected.iter().any(|key| line.starts_with(key)),
            "{problem}: {line}"
        );
    }
}

#[test]
fn an_open_bracket_ends_the_reading_with_one_error() {
    let found = problems("[pair]\nname = \"x\"\nlist = [1,\n[timing]\nlease_ms = 1\n");
    assert_eq!(found.len(), 1, "{found:#?}");
}

#[test]
fn a_file_that_cannot_be_read_is_one_problem() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none.toml");
    let found = Config::load(&missing).unwrap_err();
    assert_eq!((found.len(), found[0].line), (1, 0));
    let binary = folder.path().join("binary.toml");
    std::fs::write(&binary, [0xff, 0xfe, 0x00]).unwrap();
    assert!(
        Config::load(&binary).unwrap_err()[0]
            .right
            .contains("UTF-8")
    );
}

#[test]
fn a_dozen_mistakes_are_reported_in_one_go_in_the_order_of_lines() {
    let found = problems(include_str!("data/dozen.toml"));
    let text: Vec<String> = found.iter().map(ToString::to_string).collect();
    let kept = include_str!("data/dozen.txt");
    assert_eq!(text.join("\n") + "\n", kept);
    assert!(found.len() >= 12);
    assert!(found.windows(2).all(|pair| pair[0].line <= pair[1].line));
}

#[test]
fn a_problem_in_json_has_the_documented_fields() {
    let found = problems("[pair]\nname = 3\n");
    let json = serde_json::to_value(&found[0]).unwrap();
    let keys: Vec<&str> = json
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(keys, ["field", "file", "line", "right", "wrong"]);
    let config = Config::parse(&sample(), "t").unwrap();
    let json = serde_json::to_value(&config.weaknesses[0]).unwrap();
    assert_eq!(json["code"], "unauthenticated");
}

#[test]
fn the_failover_time_is_two_leases_and_three_heartbeats() {
    let config = Config::parse(&sample(), "t").unwrap();
    assert_eq!(config.timing.failover_time(), Duration::from_micros(26_010));
}
