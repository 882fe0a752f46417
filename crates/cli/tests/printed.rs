//! What commands print for people and for programs while a pair runs, and what becomes of them when nobody reads.

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;
use support::plan::Plan;
use support::process::{BUMPLESS, Process, json, said};
use support::site::Site;
use support::{let_run, wait_for, wait_until};

fn running() -> Site {
    let mut plan = Plan::pair(2).tank(50, "");
    // So there is a weakness to be told.
    plan.open = true;
    let mut site = Site::new(plan);
    site.start_surroundings();
    site.start("left");
    site.start("right");
    site
}

#[test]
fn status_and_switchover_speak_to_people_and_to_programs() {
    let site = running();
    let (primary, backup, _) = site.await_redundant("tank");
    let config = site.config();
    let config = config.to_str().unwrap();
    for node in [&primary, &backup] {
        let (stdout, stderr, status) = said(&["status", config, "--node", node]);
        assert_eq!(status, Some(0), "{stdout}{stderr}");
        for word in [
            "group tank",
            "redundancy ok",
            "network A",
            "network B",
            "weakness: security.packets: messages carry no authentication",
        ] {
            assert!(stdout.contains(word), "{word} is not in {stdout}");
        }
        let (report, status) = json(
            &["status", config, "--node", node, "--json"],
            "bumpless.status/1",
        );
        assert_eq!((status, &report["node"]), (Some(0), &node.as_str().into()));
        for field in [
            "time_ns",
            "pid",
            "session",
            "uptime_s",
            "snapshot_age_ms",
            "stalls",
        ] {
            assert!(!report[field].is_null(), "{field} is missing in {report}");
        }
        assert!(!report["weaknesses"].as_array().unwrap().is_empty());
    }
    let (report, status) = json(
        &["switchover", config, "--node", &backup, "--json"],
        "bumpless.switchover/1",
    );
    assert_eq!(status, Some(0));
    assert_eq!(
        (&report["from"], &report["to"]),
        (&"backup".into(), &"primary".into()),
        "{report}"
    );
    assert!(report["took_ms"].as_f64() > Some(0.0), "{report}");
    site.await_redundant("tank");
    let (stdout, stderr, status) = said(&["switchover", config, "--node", &backup]);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stdout.contains("from primary to backup"), "{stdout}");
    site.await_redundant("tank");
    let unknown = ["switchover", config, "--node", &backup, "--group", "tnak"];
    let (_, stderr, status) = said(&unknown);
    assert!(
        matches!(status, Some(1 | 2)) && stderr.contains("group"),
        "{status:?} {stderr}"
    );
}

/// The values of the one application, as its node tells programs.
fn values_of(site: &Site, node: &str) -> Value {
    let config = site.config();
    let arguments = ["values", config.to_str().unwrap(), "--node", node, "--json"];
    let (report, status) = json(&arguments, "bumpless.values/1");
    assert_eq!(status, Some(0), "{report}");
    report["applications"][0].clone()
}

fn names_of(side: &Value) -> Vec<&str> {
    let values = side["values"].as_array().unwrap().iter();
    values.map(|it| it["name"].as_str().unwrap()).collect()
}

#[test]
fn inputs_and_outputs_are_shown_where_they_pass_and_as_old_where_they_passed() {
    let site = running();
    let (primary, backup, _) = site.await_redundant("tank");
    wait_until("the primary has written", || {
        values_of(&site, &primary)["outputs"]["fresh"] == true
    });
    let shown = values_of(&site, &primary);
    let (inputs, outputs) = (&shown["inputs"], &shown["outputs"]);
    assert_eq!(names_of(inputs), ["level_1", "level_2", "process_time"]);
    assert_eq!(names_of(outputs), ["pump_1", "pump_2"]);
    assert_eq!(inputs["fresh"], true, "{shown}");
    // Both tanks of the plant have something in them, and the pumps run.
    for value in [&inputs["values"][0], &outputs["values"][0]] {
        assert!(value["value"].as_f64() > Some(0.0), "{shown}");
    }
    assert_eq!(inputs["values"][0]["answers"], true);
    assert!(outputs["cycle"].as_u64() > Some(0), "{shown}");
    let never = values_of(&site, &backup);
    for side in ["inputs", "outputs"] {
        let side = &never[side];
        assert_eq!(
            (&side["age_ms"], &side["fresh"]),
            (&Value::Null, &false.into())
        );
        assert_eq!(side["values"][0]["value"], Value::Null, "{never}");
    }
    let config = site.config();
    let config = config.to_str().unwrap();
    let (words, errors, status) = said(&["values", config, "--node", &primary]);
    assert_eq!((status, &*errors), (Some(0), ""));
    for word in [
        "primary of group tank",
        "inputs, read ",
        " ms ago",
        "pump_2",
        "of epoch",
    ] {
        assert!(words.contains(word), "{word} is not in {words}");
    }
    let (words, ..) = said(&["values", config, "--node", &backup]);
    assert!(words.contains("never read by this process"), "{words}");
    let unknown = ["values", config, "--node", &backup, "--application", "tnak"];
    let (_, errors, status) = said(&unknown);
    assert_eq!(status, Some(1));
    assert!(errors.contains("no application 'tnak'"), "{errors}");
    let (_, errors, status) = said(&["switchover", config, "--node", &backup]);
    assert_eq!(status, Some(0), "{errors}");
    wait_until("the one that was primary tells them as old", || {
        let before = values_of(&site, &primary);
        before["role"] == "backup" && before["inputs"]["fresh"] == false
    });
    let before = values_of(&site, &primary);
    assert!(before["inputs"]["age_ms"].as_f64() > Some(0.0), "{before}");
    assert!(before["inputs"]["values"][0]["value"].as_f64() > Some(0.0));
    let (words, ..) = said(&["values", config, "--node", &primary]);
    assert!(words.contains("no longer of use"), "{words}");
}

#[test]
fn the_first_answer_of_a_node_tells_of_its_groups() {
    let mut site = Site::new(Plan::pair(2).tank(50, ""));
    for _ in 0..5 {
        site.start("left");
        let status = try_for_at_once(|| site.status("left"));
        let groups = status["groups"].as_array().unwrap();
        assert_eq!(groups.len(), 1, "{status}");
        assert_eq!(groups[0]["role"], "starting", "{status}");
        assert!(
            groups[0]["last_change"]["ago_s"].as_f64() < Some(30.0),
            "{status}"
        );
        assert_eq!(status["applications"].as_array().unwrap().len(), 1);
        site.kill("left");
    }
}

/// What `condition` gives first, without a pause between two attempts.
fn try_for_at_once<T>(mut condition: impl FnMut() -> Option<T>) -> T {
    let started = std::time::Instant::now();
    loop {
        if let Some(got) = condition() {
            return got;
        }
        assert!(started.elapsed() < support::TIMEOUT, "nothing answers");
        std::thread::yield_now();
    }
}

#[test]
fn lost_redundancy_and_silence_end_status_with_1() {
    let mut site = Site::new(Plan::pair(2).tank(50, ""));
    site.start_surroundings();
    let config = site.config();
    let config = config.to_str().unwrap();
    let (stdout, stderr, status) = said(&["status", config, "--node", "left"]);
    assert_eq!((status, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("is the node running?"), "{stderr}");
    site.start("left");
    site.await_primary("left", "tank");
    let (stdout, _, status) = said(&["status", config, "--node", "left"]);
    assert_eq!(status, Some(1), "{stdout}");
    assert!(stdout.contains("redundancy lost"), "{stdout}");
    let (report, status) = json(
        &["status", config, "--node", "left", "--json"],
        "bumpless.status/1",
    );
    assert_eq!(
        (status, &report["groups"][0]["redundancy"]),
        (Some(1), &"lost".into())
    );
    let (_, stderr, status) = said(&["switchover", config, "--node", "left"]);
    assert_eq!(status, Some(1), "{stderr}");
    assert!(stderr.contains("partner"), "{stderr}");
}

#[test]
fn witness_and_plant_say_in_json_where_they_listen_and_what_they_grant() {
    let mut site = running();
    site.await_redundant("tank");
    let first_line =
        |said: String| -> Value { serde_json::from_str(said.lines().next().unwrap()).unwrap() };
    let address = site.plan.witnesses[0].1.to_string();
    let listening = first_line(site.witness(0).said());
    assert_eq!(listening["schema"], "bumpless.witness/1");
    assert_eq!(
        (&listening["event"], &listening["address"]),
        (&"listening".into(), &address.into())
    );
    let grant = wait_for("a grant", || {
        let said = site.witness(0).said();
        let lines = said
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.rev().find(|line| line["event"] == "granted")
    });
    for field in ["pair", "group", "holder", "epoch", "time_ns"] {
        assert!(!grant[field].is_null(), "{grant}");
    }
    site.kill_plant();
    site.start_plant(&["--json"]);
    wait_until("the plant says so in JSON", || {
        site.plant()
            .said()
            .lines()
            .any(|line| line.contains("bumpless.plant/1"))
    });
}

#[test]
fn a_node_prints_its_events_as_json_or_in_words() {
    let mut site = Site::new(Plan::pair(2).tank(50, ""));
    site.start_surroundings();
    let config = site.config();
    let run = |more: &[&str], to: &str| {
        let mut arguments = vec!["run", config.to_str().unwrap(), "--node", "left"];
        arguments.extend(more);
        Process::start(&arguments, &site.path(to))
    };
    let process = run(&["--json"], "json");
    wait_until("it is primary", || process.said().contains("\"primary\""));
    let log = process.said();
    process.interrupt();
    for line in log.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert_eq!(event["schema"], "bumpless.event/1", "{line}");
        assert_eq!(event["node"], "left");
    }
    let process = run(&[], "words");
    wait_until("it is primary", || process.said().contains("to=primary"));
    process.interrupt();
}

/// Starts a command whose standard output is closed after its first line.
fn with_closed_output(site: &Site, arguments: &[&str], name: &str) -> Process {
    let mut command = Command::new(BUMPLESS);
    let errors = std::fs::File::create(site.path(name)).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(errors);
    let process = Process::spawn(command, &site.path(name));
    let mut first = String::new();
    BufReader::new(reader).read_line(&mut first).unwrap();
    assert!(!first.is_empty(), "{name} said nothing");
    process
}

#[test]
fn a_closed_standard_output_stops_no_service() {
    let site = Site::new(Plan::pair(2).tank(50, ""));
    let config = site.config();
    let [one, other] = [0, 1].map(|n| site.plan.witnesses[n].1.to_string());
    let plant = site.plan.plant.to_string();
    let log = site.path("plant.jsonl");
    let mut services = Vec::new();
    for (name, listen) in [("w0.err", one), ("w1.err", other)] {
        let protection = site.protection();
        let mut arguments = vec![
            "witness",
            "--listen",
            &listen,
            "--longest-lease-ms",
            "100",
            "--json",
        ];
        arguments.extend(protection.iter().map(String::as_str));
        services.push(with_closed_output(&site, &arguments, name));
    }
    let arguments = ["plant", "--listen", &plant, "--log", log.to_str().unwrap()];
    services.push(with_closed_output(&site, &arguments, "plant.err"));
    for node in ["left", "right"] {
        let arguments = [
            "run",
            config.to_str().unwrap(),
            "--node",
            node,
            "--log-outputs",
        ];
        services.push(with_closed_output(
            &site,
            &arguments,
            &format!("{node}.err"),
        ));
    }
    let (primary, ..) = site.await_redundant("tank");
    site.await_writes(5);
    // A change of holder is something that a witness would say.
    site.ask(&primary, r#"{"command":"switchover"}"#).unwrap();
    wait_until("the other one is primary", || {
        site.await_redundant("tank").0 != primary
    });
    site.await_writes(5);
    let_run(200);
    for service in &mut services {
        assert!(service.is_running(), "{}", service.said());
        assert_eq!(service.said(), "");
    }
    services.into_iter().rev().for_each(Process::interrupt);
    site.writes().judge();
    drop(site);
}

#[test]
fn a_closed_standard_output_does_not_make_a_command_panic() {
    let site = Site::new(Plan::pair(2).tank(50, ""));
    let config = site.config();
    for arguments in [
        vec!["check", "--sample"],
        vec!["check", config.to_str().unwrap()],
        vec!["--help"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(BUMPLESS);
        command.args(&arguments).stdin(Stdio::null()).stdout(writer);
        let output = command.stderr(Stdio::piped()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!stderr.contains("panic"), "{arguments:?}: {stderr}");
    }
}
