//! Key servers and a pair that takes its keys from them, as processes.

#[path = "key_server/servers.rs"]
mod servers;
mod support;

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use servers::Keyed;
use support::plan::Plan;
use support::process::{BUMPLESS, Process, json, outcome, said};
use support::{let_run, wait_for};

fn number(status: &Value) -> u64 {
    status["key_servers"]["number"].as_u64().unwrap_or_default()
}

#[test]
fn keys_roll_while_states_flow_and_nothing_is_lost_and_a_killed_server_goes_on() {
    let mut keyed = Keyed::new(&["main"], 1, 60);
    keyed.start_server("main");
    keyed.start_pair();
    keyed.site.await_redundant("tank");
    let before = keyed.losses();
    let site = &keyed.site;
    let first = number(&site.status("left").unwrap());
    for _ in 0..6 {
        let (_, errors, status) = said(&["key-server", "roll", &keyed.file("main")]);
        assert_eq!(status, Some(0), "{errors}");
        let_run(300);
    }
    for node in ["left", "right"] {
        site.await_status("keys were rolled", node, |it| number(it) >= first + 60);
    }
    site.await_redundant("tank");
    assert_eq!(keyed.losses(), before);

    keyed.kill_server("main");
    let site = &keyed.site;
    let at = number(&site.status("right").unwrap());
    for node in ["left", "right"] {
        let gone_on = |it: &Value| number(it) >= at + 3 && it["key_servers"]["server"].is_null();
        site.await_status("keys go on without a server", node, gone_on);
    }
    keyed.start_server("main");
    let site = &keyed.site;
    let era = |it: &Value| it["key_servers"]["era"].clone();
    let known = era(&site.status("left").unwrap());
    for node in ["left", "right"] {
        let back = |it: &Value| it["key_servers"]["server"] == "main.keys";
        let status = site.await_status("the server is back", node, back);
        assert_eq!(era(&status), known, "it goes on with what it had");
    }
    let status = keyed.status("main");
    assert!(
        status["groups"][0]["number"].as_u64() >= Some(at + 3),
        "{status}"
    );
    let site = &keyed.site;
    let at = number(&site.status("left").unwrap());
    site.await_status("keys roll still", "left", |it| number(it) >= at + 2);
    assert_eq!(keyed.losses(), before);
    keyed.keys_are_nowhere();
}

#[test]
fn states_sealed_with_a_groups_keys_survive_kills_while_these_roll() {
    let lines = "[application.security]\nintegrity = \"symmetric\"\nencryption = \"symmetric\"\nreplay = \"counter\"\n\
                 key_exchange = \"server\"\n";
    let plan = Plan::pair(2).synthetic("tank", 20_000, 50, lines);
    let mut keyed = Keyed::of(plan, &["main"], (1, 60));
    keyed.start_server("main");
    keyed.start_pair();
    let site = &mut keyed.site;
    for _ in 0..2 {
        let (primary, backup, epoch) = site.await_redundant("tank");
        let at = number(&site.status(&backup).unwrap());
        site.await_status("keys have rolled", &backup, |it| number(it) >= at + 3);
        let status = site.await_status("states are here", &backup, |it| {
            it["counters"]["states_delivered"].as_u64() >= Some(20)
        });
        let told = &status["applications"][0]["state_security"];
        assert_eq!(told["key_exchange"], "server", "{told}");
        for node in [&primary, &backup] {
            assert_eq!(site.counter(node, "states_unopened"), 0);
            assert_eq!(site.counter(node, "states_withheld"), 0);
        }
        site.kill(&primary);
        assert!(site.await_primary(&backup, "tank") > epoch);
        // It may have begun anew when it was primary before.
        let told = format!("of epoch {epoch}, received from the partner");
        site.await_event(&backup, "resumed", |event| {
            event["cause"].as_str().unwrap().ends_with(&told)
        });
        site.start(&primary);
    }
    site.await_redundant("tank");
}

#[test]
fn a_member_that_is_revoked_gets_no_keys_any_more_and_the_others_lose_nothing() {
    let mut keyed = Keyed::new(&["main"], 3600, 24);
    keyed.start_server("main");
    keyed.start_pair();
    let (primary, backup, _) = keyed.site.await_redundant("tank");
    let first = number(&keyed.site.status(&primary).unwrap());
    let revoked = format!("{backup}.{}", keyed.site.plan.name);
    // The server alone has heard of it: without the next keys, who is revoked is heard no more.
    keyed.revoke(&revoked, &["main.keys"]);
    let site = &keyed.site;
    let status = site.await_status("the partner is heard no more", &primary, |status| {
        number(status) > first && status["groups"][0]["redundancy"] == "lost"
    });
    assert_eq!(status["groups"][0]["writes_outputs"], true, "{status}");
    let refused = |it: &Value| {
        it["key_servers"]["problems"]
            .to_string()
            .contains("revoked")
    };
    let status = site.await_status("it is told why", &backup, refused);
    assert!(
        number(&status) < number(&site.status(&primary).unwrap()),
        "{status}"
    );
    let status = keyed.status("main");
    let members = status["groups"][0]["members"].as_array().unwrap();
    let has_keys = |name: &str| {
        let short = format!("{name}.{}", keyed.site.plan.name);
        members
            .iter()
            .any(|it| it["member"] == short && it["has_keys"] == true)
    };
    assert!(has_keys(&primary) && !has_keys(&backup), "{status}");
}

#[test]
fn a_second_server_gives_the_same_keys_on_and_makes_its_own_when_it_is_told_to_lead() {
    let mut keyed = Keyed::new(&["main", "second"], 1, 60);
    keyed.start_server("main");
    keyed.start_server("second");
    keyed.start_pair();
    keyed.site.await_redundant("tank");
    let before = keyed.losses();
    keyed.kill_server("main");
    for node in ["left", "right"] {
        let other = |it: &Value| it["key_servers"]["server"] == "second.keys";
        keyed
            .site
            .await_status("the second one is in use", node, other);
    }
    let roll = ["key-server", "roll", &keyed.file("second"), "--json"];
    let (told, errors, status) = said(&roll);
    assert_eq!(status, Some(1), "{told}{errors}");
    assert!(told.contains("takes the keys"), "{told}{errors}");
    keyed.kill_server("second");
    keyed.write("second", None, &keyed.members(), (1, 60));
    keyed.start_server("second");
    let led = |it: &Value| it["key_servers"]["era"].as_u64();
    let era = led(&keyed.site.status("left").unwrap());
    for node in ["left", "right"] {
        let later = |it: &Value| led(it) > era;
        keyed.site.await_status("keys of another era", node, later);
    }
    // The earlier one must not lead again.
    keyed.start_server("main");
    let refused = |it: &Value| it["key_servers"]["problems"].to_string().contains("era");
    let status = keyed
        .site
        .await_status("the earlier era is refused", "left", refused);
    assert_eq!(status["key_servers"]["server"], "second.keys", "{status}");
    keyed.site.await_redundant("tank");
    assert_eq!(keyed.losses(), before);
}

#[test]
fn whoever_is_not_a_member_gets_nothing_and_keeps_nobody_waiting() {
    let mut keyed = Keyed::new(&["main"], 3600, 24);
    let members: Vec<_> = keyed.members().into_iter().take(1).collect();
    keyed.write("main", None, &members, (3600, 24));
    keyed.start_server("main");
    let address = keyed.address("main");
    // Half open, garbage, and what speaks TLS to it in another protocol: more than there is room for.
    let mut held: Vec<_> = (0..40)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    for (number, stream) in held.iter_mut().enumerate().skip(20) {
        let garbage = [number as u8; 300];
        let _ = stream.write_all(&garbage);
    }
    keyed.start_pair();
    let site = &keyed.site;
    let has_keys = |it: &Value| number(it) > 0;
    site.await_status("a member has keys", "left", has_keys);
    let told = |it: &Value| {
        it["key_servers"]["problems"]
            .to_string()
            .contains("certificate")
    };
    let status = site.await_status("who is none is told", "right", told);
    assert_eq!(number(&status), 0, "{status}");
    let warns = |it: &Value| {
        let weaknesses = it["weaknesses"].to_string();
        weaknesses.contains("nothing is sent to other nodes")
    };
    site.await_status("it warns", "right", warns);
    let status = keyed.status("main");
    assert!(
        status["unknown_connections"].as_u64() <= Some(64),
        "{status}"
    );
    assert!(status["refused"].as_u64() > Some(0), "{status}");
    for stream in &mut held {
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut all = Vec::new();
        // It is ended from there, by an alert or without a word.
        let _ = stream.read_to_end(&mut all);
        assert!(all.len() < 100, "{all:?}");
    }
}

#[test]
fn files_that_cannot_be_used_are_told_and_nothing_starts() {
    let keyed = Keyed::new(&["main"], 3600, 24);
    let file = keyed.file("main");
    let state = keyed.site.path("main.keys.state");
    let run = || said(&["key-server", "run", &file]);
    fs::write(&state, "{}").unwrap();
    fs::set_permissions(&state, Permissions::from_mode(0o600)).unwrap();
    let (_, errors, status) = run();
    assert_eq!(status, Some(1), "{errors}");
    assert!(errors.contains("no state of a key server"), "{errors}");
    let (checked, _, status) = said(&["key-server", "check", &file]);
    assert_eq!(status, Some(1), "{checked}");
    assert!(
        checked.contains("cannot run it") && checked.contains("no state of"),
        "{checked}"
    );
    fs::set_permissions(&state, Permissions::from_mode(0o644)).unwrap();
    let (_, errors, status) = run();
    assert_eq!(status, Some(1), "{errors}");
    assert!(
        errors.contains("mode 644") && errors.contains("chmod 600"),
        "{errors}"
    );
    fs::remove_file(&state).unwrap();
    fs::remove_dir_all(keyed.site.path("main.keys")).unwrap();
    let (_, errors, status) = run();
    assert_eq!(status, Some(1), "{errors}");
    assert!(errors.contains("bumpless pki issue main.keys"), "{errors}");
    let (told, status) = json(
        &["key-server", "check", &file, "--json"],
        "bumpless.key-server.check/1",
    );
    assert_eq!(
        (status, &told["runs_here"]),
        (Some(1), &false.into()),
        "{told}"
    );
    assert_eq!(told["groups"][0]["outlasts_servers_s"], 86_400.0, "{told}");
    fs::write(&file, "[key_server]\nname = 1\n").unwrap();
    let (told, status) = json(
        &["key-server", "check", &file, "--json"],
        "bumpless.key-server.check/1",
    );
    assert_eq!(status, Some(2), "{told}");
    assert!(told["problems"].as_array().unwrap().len() >= 3, "{told}");
    assert!(!state.exists());
    let (_, errors, status) = said(&["key-server", "status", &file, "--json"]);
    assert_eq!(status, Some(2), "{errors}");
}

#[test]
fn without_a_socket_of_its_own_a_server_is_asked_at_the_usual_one_and_a_second_is_refused() {
    let keyed = Keyed::new(&["main", "second"], 3600, 24);
    let site = &keyed.site;
    for name in ["main", "second"] {
        let file = keyed.file(name);
        let text = fs::read_to_string(&file).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with("socket"));
        fs::write(&file, lines.collect::<Vec<_>>().join("\n")).unwrap();
    }
    let command = |arguments: &[&str]| {
        let mut command = Command::new(BUMPLESS);
        command
            .current_dir(site.path("."))
            .env("XDG_RUNTIME_DIR", site.path("runtime"))
            .args(arguments);
        command
    };
    let said = site.path("usual.said");
    let mut first = command(&["key-server", "run", "main.toml"]);
    first.stdin(Stdio::null()).stdout(Stdio::null());
    let _running = Process::spawn(first, &said);
    wait_for("it is asked at the usual socket", || {
        let status = command(&["key-server", "status", "main.toml"]).output();
        status.unwrap().status.success().then_some(())
    });
    let second = command(&["key-server", "run", "second.toml"]).output();
    let (_, errors, status) = outcome(&second.unwrap());
    assert_eq!(status, Some(1), "{errors}");
    assert!(
        errors.contains("`socket` of its own") && errors.contains("key-server.sock"),
        "{errors}"
    );
}
