//! The commands as people and scripts meet them before anything runs: help, usage, refusals, exit statuses.

mod support;

use std::fs::File;
use std::process::{Command, Stdio};

use serde_json::Value;
use support::process::{BUMPLESS, json, said};

#[test]
fn help_says_what_each_command_needs() {
    let wanted: [(&str, &[&str]); 15] = [
        (
            "",
            &[
                "demo",
                "run",
                "status",
                "switchover",
                "witness",
                "plant",
                "check",
                "Exit status",
            ],
        ),
        (
            "demo",
            &[
                "report.html",
                "no root",
                "Exit status",
                "--repeat",
                "--fault",
                "--json",
            ],
        ),
        (
            "run",
            &[
                "--node",
                "--log",
                "the same on every node",
                "bumpless.event/1",
                "--json",
            ],
        ),
        ("status", &["--node", "Exit status 1", "bumpless.status/1"]),
        (
            "values",
            &[
                "--node",
                "--application",
                "backup reads no inputs",
                "bumpless.values/1",
            ],
        ),
        (
            "switchover",
            &["--node", "--group", "bumpless.switchover/1"],
        ),
        (
            "program resume",
            &[
                "--node",
                "--application",
                "--from-initial",
                "failed again",
                "bumpless.resume/1",
            ],
        ),
        (
            "witness",
            &[
                "--listen",
                "--longest-lease-ms",
                "--name",
                "--serve",
                "--key",
                "--open",
                "grants nothing",
                "bumpless.witness/1",
            ],
        ),
        (
            "plant",
            &[
                "--listen",
                "--check-epoch",
                "--time-scale",
                "Modbus TCP",
                "--json",
            ],
        ),
        ("key", &["new", "show", "No command prints a secret"]),
        ("key new", &["never overwritten", "bumpless.key/1"]),
        (
            "pki",
            &[
                "init",
                "issue",
                "revoke",
                "show",
                "No command prints a secret",
                "Exit status",
            ],
        ),
        (
            "pki init",
            &[
                "never overwritten",
                "--site",
                "--days",
                "bumpless.pki-init/1",
            ],
        ),
        (
            "pki issue",
            &["NODE.PAIR", "--out", "to renew", "bumpless.pki-issue/1"],
        ),
        (
            "check",
            &["every error at once", "--sample", "bumpless.check/1"],
        ),
    ];
    for (command, words) in wanted {
        let arguments: Vec<_> = command.split_whitespace().chain(["--help"]).collect();
        let (stdout, _, status) = said(&arguments);
        assert_eq!(status, Some(0));
        for word in words {
            assert!(
                stdout.contains(word),
                "`{command} --help` lacks {word}:\n{stdout}"
            );
        }
    }
    let (stdout, ..) = said(&["--help"]);
    assert!(
        !stdout.contains("demo-node"),
        "what is for the demonstration only is not shown"
    );
}

#[test]
fn wrong_usage_ends_with_status_2() {
    for arguments in [
        vec![],
        vec!["frobnicate"],
        vec!["run"],
        vec!["run", "pair.toml"],
        vec!["witness"],
        vec!["witness", "--listen", "nowhere", "--open"],
        vec!["witness", "--listen", "192.0.2.1:1"],
        vec!["witness", "--listen", "192.0.2.1:1", "--name", "a"],
        "witness --listen 192.0.2.1:1 --name a --name b --serve l.p"
            .split(' ')
            .collect(),
        vec!["key"],
        vec!["key", "new"],
        vec!["plant", "--listen", "127.0.0.1:1", "--time-scale", "NaN"],
        vec!["check"],
        vec!["check", "pair.toml", "--sample"],
    ] {
        let (_, stderr, status) = said(&arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {stderr}");
        assert!(!stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn options_that_would_have_no_effect_are_refused() {
    for arguments in [
        "plan old.toml new.toml --costs measured.json",
        "plan pair.toml --calibrate --html page.html",
        "plan pair.toml --calibrate --svg pictures",
        "plan pair.toml --paper-figure-12",
        "demo --repeat 2 --report page.html",
    ] {
        let words: Vec<_> = arguments.split(' ').collect();
        let (_, stderr, status) = said(&words);
        assert_eq!(status, Some(2), "{arguments}: {stderr}");
        assert!(
            stderr.contains("cannot be used with"),
            "{arguments}: {stderr}"
        );
    }
}

#[test]
fn the_papers_figure_12_is_drawn_without_a_configuration() {
    let (stdout, stderr, status) = said(&["plan", "--paper-figure-12"]);
    assert_eq!((&*stderr, status), ("", Some(0)));
    assert!(stdout.starts_with("<svg xmlns=") && stdout.ends_with("</svg>\n"));
}

#[test]
fn the_version_is_told() {
    let (stdout, _, status) = said(&["--version"]);
    assert_eq!(status, Some(0));
    assert_eq!(
        stdout.trim(),
        format!("bumpless {}", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn the_sample_configuration_is_in_order_by_its_own_check() {
    let (sample, _, status) = said(&["check", "--sample"]);
    assert_eq!(status, Some(0));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sample.toml");
    std::fs::write(&path, sample).unwrap();
    let (report, status) = json(
        &["check", path.to_str().unwrap(), "--json"],
        "bumpless.check/1",
    );
    assert_eq!((status, &report["ok"]), (Some(0), &true.into()), "{report}");
    assert_eq!(report["fingerprint"].as_str().unwrap().len(), 16);
    for weakness in report["weaknesses"].as_array().unwrap() {
        for field in ["code", "subject", "hazard", "remedy"] {
            assert!(weakness[field].is_string(), "{weakness}");
        }
    }
}

#[test]
fn what_is_refused_is_refused_in_json_to_programs() {
    let directory = tempfile::tempdir().unwrap();
    let sample = directory.path().join("pair.toml");
    let (text, _, _) = said(&["check", "--sample"]);
    let text = text.replace("[pair]\n", &format!("[pair]\n# {}\n", std::process::id()));
    let pair = format!("name = \"refused-{}\"", std::process::id());
    std::fs::write(
        &sample,
        text.replacen("name = \"quadruple-tank\"", &pair, 1),
    )
    .unwrap();
    let path = sample.to_str().unwrap();
    let missing = directory.path().join("missing.toml");
    let missing = missing.to_str().unwrap();
    let (value, status) = json(&["check", missing, "--json"], "bumpless.check/1");
    assert_eq!(
        (status, &value["problems"][0]["line"]),
        (Some(2), &Value::from(0))
    );
    for arguments in [
        &["run", path, "--node", "nobody", "--json"][..],
        &["sim", "--scenario", missing, "--json"],
        &["witness", "--listen", "192.0.2.1:1", "--open", "--json"],
        &["witness", "--listen", "192.0.2.1:1", "--json"],
        &["key", "show", missing, "--json"],
        &["key", "new", "/dev/null", "--json"],
        &["plant", "--listen", "192.0.2.1:1", "--json"],
    ] {
        let (value, status) = json(arguments, "bumpless.error/1");
        assert!(
            status.is_some_and(|status| status > 0),
            "{arguments:?} {value}"
        );
    }
    for command in ["status", "switchover"] {
        let (value, status) = json(
            &[command, path, "--node", "left", "--json"],
            "bumpless.error/1",
        );
        assert_eq!(status, Some(1));
        assert!(
            value["error"]
                .as_str()
                .unwrap()
                .contains("is the node running?"),
            "{value}"
        );
    }
}

#[test]
fn wrong_arguments_are_told_to_programs_in_json_and_to_people_in_words() {
    for (arguments, reason) in [
        (
            &["sim", "--json", "--seed", "many"][..],
            "invalid value 'many'",
        ),
        (&["sim", "--frobnicate", "--json"], "'--frobnicate'"),
        (&["plan", "--json"], "<CONFIG>"),
        (&["check", "--json"], "<CONFIG>"),
        (&["frobnicate", "--json"], "'frobnicate'"),
    ] {
        let (value, status) = json(arguments, "bumpless.error/1");
        assert_eq!(status, Some(2), "{arguments:?}");
        let error = value["error"].as_str().expect("words");
        assert!(
            error.contains(reason) && !error.starts_with("error"),
            "{value}"
        );
        let (_, stderr, _) = said(arguments);
        assert!(
            stderr.starts_with("error: ") && stderr.contains(reason),
            "{stderr}"
        );
    }
    let (stdout, stderr, status) = said(&["sim", "--frobnicate", "--", "--json"]);
    assert_eq!((stdout.as_str(), status), ("", Some(2)), "{stderr}");
    for asked in [["sim", "--json", "--help"], ["help", "sim", ""]] {
        let words: Vec<_> = asked.into_iter().filter(|word| !word.is_empty()).collect();
        let (stdout, stderr, status) = said(&words);
        assert_eq!((stderr.as_str(), status), ("", Some(0)), "{words:?}");
        assert!(!stdout.contains("bumpless.error/1") && stdout.contains("--seed"));
    }
}

#[test]
fn what_was_made_is_told_as_made_where_the_result_cannot_be_written() {
    let folder = tempfile::tempdir().expect("a folder");
    for arguments in [&["key", "new", "pair.key"][..], &["pki", "init", "site"]] {
        let full = File::options().write(true).open("/dev/full");
        let output = Command::new(BUMPLESS)
            .current_dir(folder.path())
            .args(arguments)
            .stdout(full.expect("a full device"))
            .output()
            .expect("the command runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains("was made"), "{errors}");
        assert!(!errors.contains("and ask again"), "{errors}");
    }
    assert!(folder.path().join("pair.key").exists());
}

#[test]
fn an_unwritable_result_is_a_failure_and_a_reader_who_leaves_is_none() {
    let full = || {
        File::options()
            .write(true)
            .open("/dev/full")
            .expect("a full device")
    };
    let commands: [&[&str]; 4] = [
        &["check", "--sample"],
        &["sim", "--time", "0.1", "--json"],
        &["sim", "--time", "0.1"],
        &["sim", "--kept-promise", "--no-search", "--json"],
    ];
    for arguments in commands {
        let run = |stdout: Stdio| {
            let mut command = Command::new(BUMPLESS);
            command
                .args(arguments)
                .stdout(stdout)
                .stderr(Stdio::piped());
            command.output().expect("the command runs")
        };
        let output = run(full().into());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
        assert!(errors.contains("cannot write the result"), "{errors}");
        assert!(errors.contains("and ask again"), "{errors}");
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = run(writer.into());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        assert!(!errors.contains("cannot write"), "{errors}");
    }
    let mut refused = Command::new(BUMPLESS);
    refused.args(["check", "no-such-file.toml", "--json"]);
    refused.stdout(full()).stderr(Stdio::null());
    let status = refused.status().expect("the command runs");
    assert_eq!(status.code(), Some(2), "a refusal keeps its status");
}
