//! Paths that lead to something without end, given to commands and to a running node.

mod support;

use support::plan::Plan;
use support::process::{BUMPLESS, outcome, said};
use support::site::Site;

/// More resident memory than before means that a node has taken what it was pointed to.
const SLACK: u64 = 4 << 20;

#[test]
fn no_command_reads_a_device_without_end() {
    let site = Site::new(Plan::pair(2).tank(50, ""));
    let config = site.config();
    let config = config.to_str().unwrap();
    for arguments in [
        &["check", "/dev/zero"][..],
        &["plan", "/dev/zero"],
        &["plan", config, "--costs", "/dev/zero"],
        &["run", "/dev/zero", "--node", "left"],
        &["status", "/dev/zero", "--node", "left"],
        &["switchover", "/dev/zero", "--node", "left"],
        &["apply", config, "/dev/zero", "--node", "left"],
    ] {
        let (_, stderr, status) = said(arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains("/dev/zero"), "{arguments:?}: {stderr}");
        assert!(stderr.contains("regular file"), "{arguments:?}: {stderr}");
    }
}

#[test]
fn no_program_and_no_inputs_are_read_from_a_pipe_or_without_end() {
    let site = Site::new(Plan::pair(2).tank(50, ""));
    let pipe = site.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let pipe = pipe.to_str().unwrap();
    for endless in ["/dev/zero", pipe] {
        for arguments in [
            &["program", "test", endless][..],
            &["program", "test", "/bin/true", "--data", endless],
            &["program", "compare", endless, "/bin/true"],
            &["program", "compare", "/bin/true", endless],
        ] {
            let (_, stderr, status) = said(arguments);
            // A program's file that is none is refused; inputs belong to the usage.
            let is_usage = arguments.contains(&"--data");
            assert_eq!(
                status,
                Some(1 + i32::from(is_usage)),
                "{arguments:?}: {stderr}"
            );
            assert!(stderr.contains(endless), "{arguments:?}: {stderr}");
            assert!(stderr.contains("regular file"), "{arguments:?}: {stderr}");
        }
    }
}

#[test]
fn two_copies_of_what_is_no_program_are_refused_by_compare_as_by_test() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("junk"), "junk").unwrap();
    std::fs::write(path("copy"), "junk").unwrap();
    std::fs::write(path("nothing"), "").unwrap();
    std::fs::copy("/bin/true", path("true")).unwrap();
    for (old, new, words) in [
        ("junk", "copy", "it is no program"),
        ("nothing", "nothing", "it is no program"),
        ("true", "true", "before it was ready"),
    ] {
        let arguments = ["program", "compare", &path(old), &path(new)];
        let (told, stderr, status) = said(&arguments);
        assert_eq!((status, &*told), (Some(1), ""), "{stderr}");
        let (_, of_test, _) = said(&["program", "test", &path(old)]);
        assert_eq!(stderr, of_test);
        assert!(stderr.contains(&path(old)), "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
    }
    let json = ["program", "compare", &path("junk"), &path("copy"), "--json"];
    let (told, _, status) = said(&json);
    assert_eq!(status, Some(1));
    assert!(
        told.contains("bumpless.error/1") && told.contains("no program"),
        "{told}"
    );
}

#[test]
fn whatever_is_wrong_with_the_start_of_a_program_is_told_of_what_is_wrong() {
    let site = Site::new(Plan::pair(2).tank(50, ""));
    let script = site.path("level.py");
    std::fs::write(&script, "print()\n").unwrap();
    let script = script.to_str().unwrap();
    let folder = site.path(".");
    let folder = folder.to_str().unwrap();
    for (arguments, status, words) in [
        (
            &["program", "test", script, "--command", "nope x"][..],
            1,
            "\"nope\", which is to start it",
        ),
        (
            &["program", "test", script, "--command", " "],
            2,
            "leave it out",
        ),
        (
            &["program", "build", folder, "--include", "nope"],
            2,
            "--include nope: there is no such folder",
        ),
    ] {
        let (_, stderr, found) = said(arguments);
        assert_eq!(found, Some(status), "{arguments:?}: {stderr}");
        assert!(stderr.contains(words), "{arguments:?}: {stderr}");
    }
}

#[test]
fn a_runtime_folder_that_no_socket_can_be_in_is_ignored_or_told() {
    let site = Site::new(Plan::pair(2).tank(50, ""));
    let text = std::fs::read_to_string(site.config()).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("control"));
    let config = site.path("usual.toml");
    std::fs::write(&config, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let status = |folder: &str| {
        let mut command = std::process::Command::new(BUMPLESS);
        let command = command.env("XDG_RUNTIME_DIR", folder);
        let command = command.arg("status").arg(&config).args(["--node", "left"]);
        outcome(&command.output().unwrap()).1
    };
    let said = status("relative/folder");
    assert!(said.contains("at /tmp/bumpless-"), "{said}");
    let said = status(&format!("/run/{}", "l".repeat(100)));
    assert!(said.contains("at most 106 bytes"), "{said}");
    assert!(said.contains("XDG_RUNTIME_DIR"), "{said}");
}

#[test]
fn a_running_node_refuses_to_take_a_configuration_without_end() {
    let mut site = Site::new(Plan::pair(2).tank(50, ""));
    site.start_surroundings();
    site.start("left");
    let epoch = site.await_primary("left", "tank");
    let before = site.node("left").resident();
    let sparse = site.path("sparse.toml");
    std::fs::File::create(&sparse)
        .unwrap()
        .set_len(1 << 42)
        .unwrap();
    for path in ["/dev/zero", sparse.to_str().unwrap()] {
        let request = format!(r#"{{"command":"apply","file":"{path}"}}"#);
        let reply = site.ask("left", &request).unwrap();
        assert_eq!(reply["schema"], "bumpless.error/1", "{reply}");
        let error = reply["error"].as_str().unwrap();
        assert!(
            error.contains(path) && error.contains("give the path"),
            "{error}"
        );
    }
    let after = site.node("left").resident();
    assert!(
        after <= before + SLACK,
        "it grew from {before} to {after} bytes"
    );
    assert_eq!(site.await_primary("left", "tank"), epoch);
}
