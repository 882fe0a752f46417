//! Paths that lead to something without end, given to commands and to a running node.

mod support;

use support::plan::Plan;
use support::process::said;
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
