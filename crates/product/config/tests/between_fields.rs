//! Rules between fields: what does not fit is refused with the numbers and the remedy.

mod common;

use bumpless_base::Duration;
use bumpless_config::{Config, Loss, WeaknessCode, WireVersion, sample};
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
fn a_state_too_large_for_version_1_is_refused_with_the_numbers() {
    let text = include_str!("data/synthetic.toml");
    let with = |version: &str, size: u32| {
        text.replace("VERSION", version)
            .replace("SIZE", &size.to_string())
    };
    // 65,536 packets of 1415 bytes, less the executor's envelope.
    let limit = 65_536 * 1415 - 64;
    let config = Config::parse(&with("1", limit), "t").unwrap_or_else(|p| panic!("{p:#?}"));
    assert_eq!(config.transfer.payload_size, 1415);
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
            .contains("needs 65537 packets of 1415 bytes, version 1 numbers 65536")
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
    let text = include_str!("../../../../examples/table20.toml");
    assert!(problems(text).is_empty());
    // 91.5 % in payload is still below, 100.4 % with headers and protection is not.
    let found = problems(&text.replace("\"1.6 MB\"", "\"5.9 MB\""));
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
    assert!(problems(&spread.replace("\"1.6 MB\"", "\"5.9 MB\"")).is_empty());
    let unpaced = text.replace("bandwidth_mbit = 1000", "bandwidth_mbit = 0");
    assert!(problems(&unpaced.replace("\"1.6 MB\"", "\"5.9 MB\"")).is_empty());
}

#[test]
fn a_state_that_misses_its_deadline_alone_is_refused() {
    let text = include_str!("../../../../examples/table20.toml");
    let found = problems(&text.replacen("\"800 B\"", "\"1.3 MB\"", 1));
    assert!(
        found
            .iter()
            .any(|p| p.field == "application[1].deadline_ms" && p.wrong.contains("11.4 ms")),
        "{found:#?}"
    );
}

#[test]
fn what_the_networks_do_not_carry_is_left_to_a_plan_and_nothing_else() {
    let text = include_str!("../../../../examples/table20.toml");
    let overloaded = text.replace("bandwidth_mbit = 1000", "bandwidth_mbit = 700");
    let too_large = text.replacen("\"800 B\"", "\"1.3 MB\"", 1);
    for text in [&overloaded, &too_large] {
        assert!(Config::parse(text, "test").is_err());
        assert!(Config::parse_to_plan(text, "test").is_ok());
    }
    let wrong = overloaded.replacen("period_ms = 10", "period_ms = 0", 1);
    let found = Config::parse_to_plan(&wrong, "test").unwrap_err();
    let fields: Vec<_> = found.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(fields, ["application[1].period_ms"], "{found:?}");
}

#[test]
fn memory_is_bounded() {
    one(
        "#memory_max = \"1 GiB\"",
        "memory_max = \"6 kB\"",
        "transfer.memory_max",
        "6144 bytes",
        "raise it",
    );
}

#[test]
fn what_is_kept_unsent_takes_two_more_buffers() {
    let (text, _) = changed("#memory_max = \"1 GiB\"", "memory_max = 6144");
    assert!(Config::parse(&text, "test").is_ok());
    let kept = text.replacen("\nchannel", "\nunsent = \"keep\"\nchannel", 1);
    let found = Config::parse(&kept, "test").unwrap_err();
    let said = format!("{found:?}");
    assert!(
        said.contains("transfer.memory_max") && said.contains("8192 bytes"),
        "{said}"
    );
}

#[test]
fn states_beyond_the_addresses_of_a_32_bit_program_are_refused_by_it() {
    let text = include_str!("../../../../examples/table20.toml");
    // Six buffers of 400 MB are more than 2 GiB, which the file permits.
    let large =
        text.replacen("\"800 B\"", "\"400 MB\"", 1) + "\n[transfer]\nmemory_max = \"3 GiB\"\n";
    let read = Config::parse_to_plan(&large, "test");
    if cfg!(target_pointer_width = "32") {
        let found = read.unwrap_err();
        let refused = found
            .iter()
            .find(|problem| problem.field == "transfer.memory_max");
        let said = format!("{refused:?}");
        assert!(said.contains("addresses for 2147483648"), "{found:?}");
        assert!(said.contains("64-bit computers"), "{found:?}");
    } else {
        assert!(read.is_ok(), "{read:?}");
    }
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
