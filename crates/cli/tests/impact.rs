//! `bumpless impact`: what it prints, and what it says of bad input.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn impact(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless"));
    let command = command.arg("impact").args(arguments);
    command.output().expect("the binary runs")
}

fn json(arguments: &[&str]) -> Value {
    let output = impact(&[arguments, &["--json"]].concat());
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

#[test]
fn a_run_says_what_became_of_each_packet_and_the_same_twice() {
    let flood = ["--rate", "90000", "--load", "poisson", "--policy", "slack"];
    let run = json(&flood);
    assert_eq!(run["schema"], "bumpless.impact/1");
    assert_eq!((&run["kind"], &run["late"]), (&"run".into(), &0.into()));
    let count = |name: &str| run[name].as_u64().expect("a number");
    let queued = count("sent") - count("missed") - count("overflowed") - count("handled");
    assert!(queued <= 101, "{run}");
    assert_eq!(run, json(&flood));
    let unprotected = json(&["--rate", "90000", "--load", "poisson"]);
    assert!(
        unprotected["lateness_percent"].as_f64() > Some(5.0),
        "{unprotected}"
    );
}

#[test]
fn long_runs_say_how_far_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = folder.path().join("said");
    let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless"));
    let mut run = command
        .args(["impact", "--seconds", "3600", "--rate", "90000"])
        .stdout(std::process::Stdio::null())
        .stderr(std::fs::File::create(&said).expect("a file"))
        .spawn()
        .expect("the binary runs");
    let began = std::time::Instant::now();
    let mut text = String::new();
    while !text.contains("left") && began.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(20));
        text = std::fs::read_to_string(&said).expect("it is read");
    }
    run.kill().expect("it runs still");
    run.wait().expect("it ends");
    assert!(text.contains("of 3600, "), "{text}");
}

#[test]
fn random_loads_find_slack_in_time_and_never_behind_queue() {
    let tried = json(&["--patterns", "20"]);
    assert_eq!(
        (&tried["kind"], &tried["broken"]),
        (&"patterns".into(), &Value::Array(vec![]))
    );
    let of = |name: &str, what: &str| {
        let policies = tried["policies"].as_array().expect("policies");
        let found = policies.iter().find(|policy| policy["name"] == name);
        found.expect("it is tried")[what]
            .as_u64()
            .expect("a number")
    };
    assert!(of("slack", "handled") >= of("queue", "handled"));
    assert!(of("none", "late_jobs") > 0 && of("slack", "late_jobs") == 0);
}

#[test]
fn work_of_a_users_jobs_comes_from_a_file_and_packets_from_a_capture() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("it is written");
        path.to_str().expect("a name").to_owned()
    };
    let jobs = write("jobs", b"9000\n\n2000.5\n");
    let run = json(&["--rate", "0", "--work-file", &jobs]);
    assert_eq!(run["critical_ns"], 50 * (9_000_000 + 2_000_500));
    let mut recorded = vec![0xd4, 0xc3, 0xb2, 0xa1];
    recorded.resize(24, 0);
    for second in [5u32, 5] {
        recorded.extend(second.to_le_bytes());
        recorded.extend([7, 0, 0, 0, 0, 0, 0, 0, 60, 0, 0, 0]);
    }
    let capture = write("capture", &recorded);
    assert_eq!(json(&["--capture", &capture])["sent"], 2);
}

#[test]
fn bad_input_is_named_with_its_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let wrong = folder.path().join("wrong");
    std::fs::write(&wrong, "12\nsoon\n").expect("it is written");
    let wrong = wrong.to_str().expect("a name");
    let nowhere = Path::new(wrong).join("page.html");
    let nowhere = nowhere.to_str().expect("a name");
    let cases: [(&[&str], i32, &[&str]); 9] = [
        (&["--machine", "pc"], 2, &["esp32", "photon", "zynq"]),
        (&["--policy", "hope"], 2, &["slack", "queue"]),
        (
            &["--period-us", "0"],
            2,
            &["give the critical task a period"],
        ),
        (
            &["--work-file", wrong],
            2,
            &["line 2", "'soon' is no number"],
        ),
        (&["--threshold", "3"], 2, &["--nic counter or both"]),
        (
            &["--patterns", "3", "--rate", "9"],
            2,
            &["cannot be used with"],
        ),
        (
            &["--capture", wrong, "--rate", "9"],
            2,
            &["cannot be used with"],
        ),
        (&["--capture", wrong], 2, &["no pcap file", "tcpdump -w"]),
        (
            &["--paper", nowhere],
            1,
            &["cannot write", "may be written to"],
        ),
    ];
    for (arguments, status, words) in cases {
        let output = impact(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{said}");
        for word in words {
            assert!(said.contains(word), "'{word}' is not in: {said}");
        }
    }
}
