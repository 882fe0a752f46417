//! What states, networks and memory have room for: what does not fit is refused with the numbers.

mod common;

use bumpless_config::{Config, WeaknessCode, WireVersion};
use common::{changed, one, problems};

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
