//! What a file may say of the protection of states by themselves, and what comes of it.

use std::path::PathBuf;

use bumpless_config::{
    Change, Config, Encryption, Integrity, Replay, StateKeys, StateSecurity, WeaknessCode, sample,
};

/// The sample, which has its application last, with `lines` in its section.
fn with(lines: &str) -> Config {
    read(&sample(), lines)
}

/// The same in a pair whose keys come from a file.
fn with_key_file(lines: &str) -> Config {
    read(
        &sample().replacen("#keys =", "keys = [\"pair.key\"]", 1),
        lines,
    )
}

fn read(sample: &str, lines: &str) -> Config {
    let text = format!("{sample}\n{lines}\n");
    Config::parse(&text, "t").unwrap_or_else(|problems| panic!("{problems:#?}"))
}

const TAG: &str = "integrity = \"symmetric\"\n";

#[test]
fn without_a_word_states_go_as_they_are_and_cost_nothing() {
    let config = Config::parse(&sample(), "t").unwrap();
    let application = &config.applications[0];
    assert_eq!(application.security, StateSecurity::NONE);
    assert_eq!(application.security.overhead(), 0);
}

#[test]
fn what_seals_a_state_takes_its_room_and_its_buffer_and_is_no_other_program() {
    let (plain, sealed) = (with(""), with(TAG));
    let [before, after] = [&plain, &sealed].map(|config| config.applications[0].clone());
    assert_eq!(after.state_max, before.state_max + 48);
    assert_eq!(after.program(), before.program());
    let node = plain.node("left").unwrap();
    // Four buffers for the partner, two of the application's, and one in which it is opened.
    assert_eq!(plain.state_memory(node), u64::from(before.state_max) * 6);
    assert_eq!(sealed.state_memory(node), u64::from(after.state_max) * 7);
}

#[test]
fn keys_come_from_the_pairs_files_unless_others_are_named() {
    let keys = |config: &Config| config.applications[0].security.keys.clone();
    let files = |name: &str| StateKeys::Files(vec![PathBuf::from(name)]);
    assert_eq!(keys(&with_key_file(TAG)), files("pair.key"));
    let own = format!("{TAG}keys = [\"states.key\"]");
    assert_eq!(keys(&with_key_file(&own)), files("states.key"));
    assert_eq!(
        keys(&with_key_file("integrity = \"checksum\"")),
        StateKeys::None
    );
}

#[test]
fn with_certificates_keys_come_from_sessions() {
    let lines = "integrity = \"certificate\"\nencryption = \"symmetric\"\nreplay = \"session\"\n";
    let config = with(lines);
    let expected = StateSecurity {
        integrity: Integrity::Certificate,
        encryption: Encryption::Symmetric,
        replay: Replay::Session,
        keys: StateKeys::Sessions,
    };
    assert_eq!(config.applications[0].security, expected);
}

#[test]
fn both_nodes_agree_on_every_option_but_not_on_where_their_keys_lie() {
    let options = [
        "",
        "integrity = \"checksum\"",
        TAG,
        "integrity = \"symmetric\"\nencryption = \"symmetric\"",
        "integrity = \"symmetric\"\nencryption = \"aes-256-gcm\"",
        "integrity = \"symmetric\"\nreplay = \"counter\"",
        "integrity = \"symmetric\"\nreplay = \"timestamp\"",
    ];
    let mut seen: Vec<_> = options
        .map(|lines| with_key_file(lines).fingerprint())
        .into();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), options.len());
    let elsewhere = format!("{TAG}keys = [\"states.key\"]");
    assert_eq!(
        with_key_file(&elsewhere).fingerprint(),
        with_key_file(TAG).fingerprint()
    );
}

#[test]
fn a_running_pair_does_not_change_what_protects_its_states() {
    let problems = Change::between(&with(""), &with(TAG), "t").unwrap_err();
    let fields: Vec<_> = problems
        .iter()
        .map(|problem| problem.field.as_str())
        .collect();
    assert_eq!(fields, ["application[1].security"]);
}

#[test]
fn enciphered_states_that_lie_on_disk_in_the_clear_are_a_weakness() {
    let text = sample().replace("#persist = \"none\"", "persist = \"file\"");
    let text = text.replacen("#state_dir =", "state_dir = \"/var/lib/left\"", 1);
    let text = text.replacen(
        "name = \"right\"",
        "name = \"right\"\nstate_dir = \"/var/lib/right\"",
        1,
    );
    let weak = |lines: &str| {
        let config = Config::parse(&format!("{text}\n{lines}\n"), "t");
        let config = config.unwrap_or_else(|problems| panic!("{problems:#?}"));
        let mut codes = config.weaknesses.iter().map(|weakness| weakness.code);
        codes.any(|code| code == WeaknessCode::StatesOnDiskInClear)
    };
    assert!(!weak(TAG));
    assert!(weak(
        "integrity = \"symmetric\"\nencryption = \"symmetric\""
    ));
}
