//! Rules between fields: what does not fit is refused with the numbers and the remedy.

mod common;

use bumpless_base::Duration;
use bumpless_config::{Config, WeaknessCode, sample};
use common::{changed, one, problems};

#[test]
fn times_that_do_not_fit_each_other_are_refused_with_the_sum() {
    one(
        "#lease_ms = 10",
        "lease_ms = 5",
        "timing.lease_ms",
        "3 heartbeats of 2 ms",
        "lease_ms = 6 or more, or heartbeat_ms = 1.666 or less",
    );
    // On the line of what the file gives, of the field that is too short.
    one(
        "#heartbeat_ms = 2",
        "heartbeat_ms = 5",
        "timing.lease_ms",
        "lease_ms is 10 ms by default, shorter than 3 heartbeats of 5 ms",
        "give lease_ms = 15 or more, or heartbeat_ms = 3.333 or less",
    );
    one(
        "#lease_ms = 10",
        "lease_ms = 600",
        "timing.start_wait_ms",
        "start_wait_ms is 1000 ms by default",
        "give start_wait_ms = 1200.6 or more, or lease_ms = 499.75 or less",
    );
    let (text, _) = changed("#start_wait_ms = 1000", "start_wait_ms = 6");
    let found = problems(&text.replace("#lease_ms = 10", "lease_ms = 6"));
    // No lease is so short.
    assert_eq!(found[0].right, "give start_wait_ms = 12.006 or more");
    one(
        "#start_wait_ms = 1000",
        "start_wait_ms = 20",
        "timing.start_wait_ms",
        "2 leases",
        "20.01 or more",
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
fn names_that_no_certificate_can_have_are_refused_where_certificates_are() {
    let name = "name = \"left\"";
    for bad in ["-left", "left-"] {
        let (text, _) = changed(name, &format!("name = \"{bad}\""));
        let text = text.replace("\"left\"", &format!("\"{bad}\""));
        let found = problems(&text);
        let [problem] = &found[..] else {
            panic!("{found:#?}");
        };
        assert_eq!(problem.field, "node[1].name");
        assert!(problem.right.contains("letter, digit or _"), "{problem}");
        let open = text.replace("#packets = \"protected\"", "packets = \"open\"");
        assert_ne!(open, text);
        assert_eq!(problems(&open), Vec::new());
    }
    one(
        "name = \"quadruple-tank\"",
        "name = \"tank-\"",
        "pair.name",
        "certificate",
        "at both ends",
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
    let codes: Vec<_> = config.weaknesses.iter().map(|it| it.code).collect();
    assert_eq!(
        codes,
        [WeaknessCode::WithoutReference, WeaknessCode::FieldOpen]
    );
    let unsafe_one = &config.weaknesses[0];
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
fn the_failover_time_is_two_leases_and_three_heartbeats() {
    let config = Config::parse(&sample(), "t").unwrap();
    assert_eq!(config.timing.failover_time(), Duration::from_micros(26_010));
}

#[test]
fn there_are_at_most_eight_networks() {
    let more: String = (1..=7)
        .map(|i| format!("[[network]]\nname = \"N{i}\"\n"))
        .collect();
    let found = problems(&changed("\n[[node]]\n", &format!("\n{more}\n[[node]]\n")).0);
    let beyond: Vec<_> = found
        .iter()
        .filter(|p| p.wrong == "is network number 9")
        .collect();
    assert_eq!(beyond.len(), 1, "{found:#?}");
    assert!(beyond[0].right.contains("at most 8") && beyond[0].field == "network[9]");
}

#[test]
fn ipv6_needs_its_least_mtu_and_both_nodes_need_the_networks_in_use() {
    let text = include_str!("../../../../examples/two-computers.toml");
    let found = problems(&text.replace("mtu = 9000", "mtu = 1279"));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].field == "network[2].mtu" && found[0].right.contains("1280"));
    let cut = text.replace(", B = \"[2001:db8:b::12]:4700\"", "");
    let found = problems(&cut.replace("channel = 1", "channel = 1\nnetworks = [\"A\", \"B\"]"));
    let fields: Vec<&str> = found.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(
        fields,
        ["group[1].references", "application[1].networks"],
        "{found:#?}"
    );
    assert!(
        found[1]
            .wrong
            .contains("node \"south\" has no address on network \"B\"")
    );
}
