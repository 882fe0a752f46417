use bumpless_base::Duration;

use crate::{ApplicationKind, Config, Synthetic, sample};

fn with(from: &str, to: &str) -> Config {
    let text = sample();
    assert!(text.contains(from), "{from}");
    Config::parse(&text.replace(from, to), "test")
        .unwrap_or_else(|problems| panic!("{problems:#?}"))
}

#[test]
fn the_hashes_are_fnv_1a() {
    // Test vectors of the algorithm's authors: "foobar".
    let mut config = Config::parse(&sample(), "sample").unwrap();
    config.pair = "foobar".into();
    assert_eq!(config.pair_id(), 0xbf9c_f968);
    config.pair = String::new();
    assert_eq!(config.pair_id(), 0x811c_9dc5);
}

const FIXED: &str = r#"
pair = { name = "p" }
security = { keys = ["p.key"] }
network = [{ name = "A" }]
node = [
    { name = "l", addresses = { A = "192.0.2.1:1" } },
    { name = "r", addresses = { A = "192.0.2.2:1" } },
]
reference = [{ name = "w", kind = "ping", network = "A", address = "192.0.2.3" }]
group = [{ name = "g", nodes = ["l", "r"], references = ["w"] }]
application = [{ name = "a", group = "g", kind = "synthetic", channel = 7, period_ms = 10, size = 800 }]
"#;

#[test]
fn the_fingerprint_is_the_same_on_every_machine_and_in_every_version() {
    let config = Config::parse(FIXED, "fixed").unwrap();
    // A difference here means that nodes of this version refuse those of the one before: then the
    // first line of the canonical text must change too.
    assert_eq!(config.canonical(), include_str!("fixed.txt"));
    assert_eq!(format!("{:016x}", config.fingerprint()), "3edd45dd2c679f9d");
}

#[test]
fn what_both_nodes_must_share_changes_the_fingerprint() {
    let original = Config::parse(&sample(), "sample").unwrap().fingerprint();
    for (from, to) in [
        ("name = \"quadruple-tank\"", "name = \"other\""),
        ("#lease_ms = 10", "lease_ms = 11"),
        ("#together = false", "together = true"),
        ("#mtu = 1500", "mtu = 1400"),
        ("127.0.2.2:4700", "127.0.2.2:4701"),
        ("127.0.1.9:4710", "127.0.1.9:4711"),
        ("[\"left\", \"right\"]", "[\"right\", \"left\"]"),
        ("period_ms = 10", "period_ms = 11"),
        ("#commit = \"before_output\"", "commit = \"async\""),
        ("tank1_cm = 13.4", "tank1_cm = 13.5"),
        ("#gain =", "gain = [1.5, 1.36]"),
        ("#check_epoch = true", "check_epoch = false"),
        ("#hot_restart_ms =", "hot_restart_ms = 9000"),
        (
            "#after_hot_restart = \"cold\"",
            "after_hot_restart = \"stop\"",
        ),
    ] {
        assert_ne!(with(from, to).fingerprint(), original, "{from} -> {to}");
    }
}

#[test]
fn limits_that_nodes_tell_each_other_may_differ_and_others_may_not() {
    let keys = |text: &str| text.replacen("#keys =", "keys = [\"a.key\"]", 1);
    for (from, to) in [
        ("#in_flight_max = 512", "in_flight_max = 511"),
        ("#bandwidth_mbit = 1000", "bandwidth_mbit = 999"),
    ] {
        assert!(sample().contains(from), "{from}");
        let changed = sample().replacen(from, to, 1);
        for (write, may_differ) in [
            (&str::to_owned as &dyn Fn(&str) -> String, true),
            (&keys, false),
        ] {
            let fingerprints = [&sample(), &changed].map(|text| {
                let config = Config::parse(&write(text), "test");
                config
                    .unwrap_or_else(|problems| panic!("{problems:#?}"))
                    .fingerprint()
            });
            assert_eq!(fingerprints[0] == fingerprints[1], may_differ, "{to}");
        }
    }
}

#[test]
fn both_nodes_agree_whether_and_how_often_a_state_is_kept_on_disk() {
    let mut config = Config::parse(&sample(), "sample").unwrap();
    let mut seen = vec![config.fingerprint()];
    for every in [50, 100] {
        config.applications[0].persist = Some(Duration::from_millis(every));
        seen.push(config.fingerprint());
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 3);
}

#[test]
fn a_tuned_application_is_the_same_program_and_another_one_is_not() {
    let config = Config::parse(&sample(), "sample").unwrap();
    let application = &config.applications[0];
    let program = application.program();
    let mut tuned = application.clone();
    tuned.period = tuned.period * 2;
    tuned.persist = Some(Duration::from_millis(100));
    if let ApplicationKind::QuadrupleTank(tank) = &mut tuned.kind {
        tank.loops[0].gain = 7.0;
    }
    assert_eq!(tuned.program(), program);
    let (mut named, mut sized, mut other) = (
        application.clone(),
        application.clone(),
        application.clone(),
    );
    named.name = "another".into();
    sized.state_max += 1;
    other.kind = ApplicationKind::Synthetic(Synthetic {
        size: 8,
        changed_share: 0.5,
    });
    for another in [named, sized, other] {
        assert_ne!(another.program(), program);
    }
}

#[test]
fn what_is_local_does_not_change_the_fingerprint() {
    let original = Config::parse(&sample(), "sample").unwrap().fingerprint();
    for (from, to) in [
        ("#control =", "control = \"/run/bumpless/left.sock\""),
        ("#state_dir =", "state_dir = \"/var/lib/left\""),
        ("#cpu =", "cpu = 3"),
        ("#lock_memory = false", "lock_memory = true"),
        ("#wake_latency_us =", "wake_latency_us = 0"),
        ("# The quadruple tank", "# Another comment"),
        ("#expiry_ms =", "expiry_ms = 52"),
        (
            "#run_although_refused = false",
            "run_although_refused = true",
        ),
        ("#jitter_ms = 0.25", "jitter_ms = 0.1"),
        ("#bit_error_rate =", "bit_error_rate = 1e-12"),
        ("#frame_loss =", "frame_loss = 0.01"),
        ("#round_trip_max_ms = 0.5", "round_trip_max_ms = 2"),
        // Of the witness, and of the field devices.
        (
            "#round_trip_max_ms =\n\n[[reference]]",
            "round_trip_max_ms = 7\n\n[[reference]]",
        ),
        (
            "#round_trip_max_ms =\n\n# ---- [[application.field.device]]",
            "round_trip_max_ms = 2\n\n# ---- [[application.field.device]]",
        ),
        ("#other_traffic_bytes =", "other_traffic_bytes = 0"),
        ("#retransmissions =", "retransmissions = 3"),
        ("#accepted_loss_per_year =", "accepted_loss_per_year = 0.1"),
    ] {
        assert_eq!(with(from, to).fingerprint(), original, "{from} -> {to}");
    }
}
