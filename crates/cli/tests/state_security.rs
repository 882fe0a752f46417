//! States that are protected by themselves, between real processes: they survive a failover by every method, and what cannot be
//! opened is told before it matters.

mod support;

use support::plan::Plan;
use support::process::{json, said};
use support::site::Site;
use support::wait_until;

/// What an application says of its states.
fn security(lines: &str) -> String {
    format!("[application.security]\n{lines}\n")
}

fn plan(lines: &str) -> Plan {
    Plan::pair(2).synthetic("tank", 20_000, 50, &security(lines))
}

fn start(plan: Plan) -> Site {
    let mut site = Site::new(plan);
    site.start_witnesses();
    site.start("left");
    site.start("right");
    site
}

/// Kills the primary; the backup goes on from what it has received.
fn fails_over(site: &mut Site) {
    let (primary, backup, epoch) = site.await_redundant("tank");
    wait_until("states came", || {
        site.counter(&backup, "states_delivered") >= 3
    });
    for node in [&primary, &backup] {
        assert_eq!(site.counter(node, "states_unopened"), 0);
        let weaknesses = site.status(node).unwrap()["weaknesses"].to_string();
        assert!(!weaknesses.contains("cannot be used"), "{weaknesses}");
    }
    site.kill(&primary);
    assert!(site.await_primary(&backup, "tank") > epoch);
    // It may have begun anew when it was primary before.
    let told = format!("of epoch {epoch}, received from the partner");
    site.await_event(&backup, "resumed", |event| {
        event["cause"].as_str().unwrap().ends_with(&told)
    });
    site.start(&primary);
    site.await_redundant("tank");
}

#[test]
fn states_by_every_method_with_a_key_from_a_file_survive_a_failover() {
    for (integrity, encryption, replay) in [
        ("checksum", "none", "none"),
        ("symmetric", "none", "counter"),
        ("symmetric", "aes-256-gcm", "timestamp"),
        ("symmetric", "chacha20-poly1305", "counter"),
    ] {
        let lines = format!(
            "integrity = \"{integrity}\"\nencryption = \"{encryption}\"\nreplay = \"{replay}\""
        );
        let mut site = start(plan(&lines));
        fails_over(&mut site);
        let status = site.status("left").unwrap();
        let told = &status["applications"][0]["state_security"];
        assert_eq!(told["integrity"], integrity, "{told}");
        assert_eq!(told["encryption"], encryption, "{told}");
        assert_eq!(told["replay"], replay, "{told}");
    }
}

#[test]
fn states_with_keys_of_sessions_survive_failovers_while_the_keys_roll() {
    let lines = "integrity = \"certificate\"\nencryption = \"symmetric\"\nreplay = \"session\"";
    let mut plan = plan(lines);
    plan.key_lifetime_s = Some(1);
    let mut site = start(plan);
    for _ in 0..2 {
        let (primary, backup, _) = site.await_redundant("tank");
        site.await_status("the key was replaced twice", &primary, |status| {
            let sessions = status["sessions"].as_array().unwrap();
            let with = sessions.iter().find(|it| it["with"] == *backup).unwrap();
            with["keys_agreed"].as_u64() >= Some(3)
        });
        fails_over(&mut site);
    }
}

#[test]
fn states_that_the_partner_cannot_open_are_told_while_the_primary_is_there() {
    let lines = "integrity = \"symmetric\"\nencryption = \"symmetric\"\nkeys = [\"states.key\"]";
    let mut site = Site::new(plan(lines));
    let key = |site: &Site| {
        let key = site.path("states.key");
        let _ = std::fs::remove_file(&key);
        let (_, errors, status) = said(&["key", "new", key.to_str().unwrap()]);
        assert_eq!(status, Some(0), "{errors}");
    };
    site.start_witnesses();
    key(&site);
    site.start("left");
    site.await_primary("left", "tank");
    // Somebody has made another key for the other computer.
    key(&site);
    site.start("right");
    let (_, backup, _) = site.await_redundant("tank");
    let status = site.await_status("it says so", &backup, |status| {
        status["weaknesses"].to_string().contains("cannot be used")
    });
    let weaknesses = status["weaknesses"].to_string();
    assert!(weaknesses.contains("which is not here"), "{weaknesses}");
    assert!(weaknesses.contains("'s1'"), "{weaknesses}");
    site.await_status("it is counted", &backup, |status| {
        status["counters"]["states_unopened"].as_u64() > Some(0)
    });
}

#[test]
fn options_that_protect_nothing_or_take_what_is_not_there_are_refused_with_the_way_out() {
    let cases = [
        ("encryption = \"symmetric\"", "encryption", "takes a tag"),
        (
            "integrity = \"checksum\"\nreplay = \"counter\"",
            "replay",
            "takes a tag",
        ),
        (
            "integrity = \"certificate\"",
            "integrity",
            "takes a secret of a session",
        ),
        (
            "integrity = \"symmetric\"\nreplay = \"session\"",
            "replay",
            "takes a secret of a session",
        ),
        (
            "integrity = \"symmetric\"\nkey_exchange = \"none\"",
            "key_exchange",
            "takes a secret",
        ),
        (
            "integrity = \"symmetric\"\nkey_exchange = \"session\"",
            "key_exchange",
            "names no certificates",
        ),
        (
            "integrity = \"checksum\"\nkeys = [\"a.key\"]",
            "keys",
            "no secret comes from a file",
        ),
        (
            "integrity = \"checksum\"\nkey_exchange = \"file\"",
            "key_exchange",
            "nothing needs",
        ),
    ];
    for (lines, field, wrong) in cases {
        let site = Site::new(plan(lines));
        let config = site.config();
        let (value, status) = json(
            &["check", config.to_str().unwrap(), "--json"],
            "bumpless.check/1",
        );
        assert_eq!(status, Some(2), "{lines}: {value}");
        let problems = value["problems"].as_array().unwrap();
        assert_eq!(problems.len(), 1, "{lines}: {value}");
        assert_eq!(
            problems[0]["field"],
            format!("application[1].security.{field}")
        );
        assert!(
            problems[0]["wrong"].as_str().unwrap().contains(wrong),
            "{value}"
        );
        assert!(!problems[0]["right"].as_str().unwrap().is_empty());
    }
}

#[test]
fn a_missing_key_of_states_keeps_the_node_from_starting_and_plan_tells_what_a_takeover_costs() {
    let lines = "integrity = \"symmetric\"\nencryption = \"symmetric\"\nkeys = [\"states.key\"]";
    let site = Site::new(plan(lines));
    let config = site.config();
    let config = config.to_str().unwrap();
    let (_, errors, status) = said(&["run", config, "--node", "left"]);
    assert_eq!(status, Some(1), "{errors}");
    assert!(
        errors.contains("states.key") && errors.contains("is not there"),
        "{errors}"
    );
    let (value, _) = json(&["check", config, "--json"], "bumpless.check/1");
    let problems = value["key_problems"].to_string();
    assert!(problems.contains("states.key"), "{problems}");
    let (value, _) = json(&["plan", config, "--json"], "bumpless.plan/1");
    let costs = value["state_security"].as_array().unwrap();
    assert_eq!(costs.len(), 1, "{value}");
    assert_eq!(costs[0]["channel"], "s1");
    assert!(costs[0]["opening_ns"].as_u64() > Some(0), "{costs:?}");
    let (told, ..) = said(&["plan", config]);
    assert!(told.contains("at a takeover"), "{told}");
}
