//! Commands of a user who is not the one who runs the node.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use bumpless_testing::need_root;
use support::plan::Plan;
use support::process::{BUMPLESS, Process, outcome};
use support::site::Site;
use support::wait_until;

/// A user without any rights.
const NOBODY: u32 = 65_534;

fn may_be_seen(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// What another user is told who asks for the status of `left`.
fn asked_by_another_user(site: &Site, config: &Path) -> String {
    // The other user may not be able to come to where this one builds.
    let program = site.path("program");
    // By another process: one that a test beside this one starts just then would inherit the file, open for writing,
    // and what is so cannot be executed.
    let copied = Command::new("cp").arg(BUMPLESS).arg(&program).status();
    assert!(copied.unwrap().success());
    for path in [&site.path(""), &program, config] {
        may_be_seen(path);
    }
    let mut command = Command::new(program);
    command.args(["status", config.to_str().unwrap(), "--node", "left"]);
    command
        .uid(NOBODY)
        .gid(NOBODY)
        .env_remove("XDG_RUNTIME_DIR");
    let (stdout, stderr, status) = outcome(&command.output().unwrap());
    assert_eq!((status, &*stdout), (Some(1), ""), "{stderr}");
    stderr
}

fn tells_of_the_other_user(said: &str) {
    for words in ["it runs as another user", "sudo -u '#0'"] {
        assert!(said.contains(words), "{words} is not in {said}");
    }
}

fn a_control_socket_that_may_not_be_opened_is_told_to_be_another_users() {
    need_root();
    let mut site = Site::new(Plan::pair(2).tank(50, ""));
    site.start("left");
    wait_until("left answers", || site.status("left").is_some());
    tells_of_the_other_user(&asked_by_another_user(&site, &site.config()));
}

fn a_control_socket_missing_in_the_own_place_is_told_to_be_another_users() {
    need_root();
    let site = Site::new(Plan::pair(2).tank(50, ""));
    let text = std::fs::read_to_string(site.config()).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("control"));
    let config = site.path("default.toml");
    std::fs::write(&config, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let said = asked_by_another_user(&site, &config);
    assert!(said.contains("is the node running?"), "{said}");
    let runtime = site.path("runtime");
    let mut command = Command::new(BUMPLESS);
    command
        .args(["run", config.to_str().unwrap(), "--node", "left"])
        .env("XDG_RUNTIME_DIR", &runtime)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let _node = Process::spawn(command, &site.path("left.said"));
    wait_until("left listens", || {
        let found = std::fs::read_dir(runtime.join("bumpless"))
            .into_iter()
            .flatten();
        let mut names = found.flatten().map(|entry| entry.file_name());
        names.any(|name| name.to_string_lossy().ends_with(".sock"))
    });
    tells_of_the_other_user(&asked_by_another_user(&site, &config));
}

fn a_group_may_ask_for_status_and_gives_no_orders() {
    need_root();
    let site = Site::new(Plan::pair(2).tank(50, ""));
    let text = std::fs::read_to_string(site.config()).unwrap();
    let group = format!("control_group = \"{NOBODY}\"\ncontrol = ");
    let program = site.path("program");
    let copied = Command::new("cp").arg(BUMPLESS).arg(&program).status();
    assert!(copied.unwrap().success());
    let ask = |config: &Path, arguments: &[&str]| {
        for path in [&site.path(""), &program, config] {
            may_be_seen(path);
        }
        let mut command = Command::new(&program);
        command.args(arguments).uid(NOBODY).gid(NOBODY);
        command.env_remove("XDG_RUNTIME_DIR");
        outcome(&command.output().unwrap())
    };
    let config = site.path("group.toml");
    std::fs::write(&config, text.replace("control = ", &group)).unwrap();
    let next = site.path("next.toml");
    std::fs::write(&next, text.replace("control = ", &group) + COMES).unwrap();
    may_be_seen(&next);
    let log = site.path("left.said");
    let mut command = Command::new(BUMPLESS);
    let file = config.to_str().unwrap();
    command.args(["run", file, "--node", "left"]);
    let _node = Process::spawn(command, &log);
    wait_until("left answers", || site.status("left").is_some());
    let (told, errors, status) = ask(&config, &["status", file, "--node", "left"]);
    assert!(told.contains("group tank"), "{status:?} {told}{errors}");
    for order in [
        &["switchover", file, "--node", "left"][..],
        &["apply", file, next.to_str().unwrap(), "--node", "left"],
        &["apply", file, "--withdraw", "--node", "left"],
    ] {
        let (_, errors, status) = ask(&config, order);
        assert_eq!(status, Some(1), "{order:?} {errors}");
        let words = format!("user {NOBODY} may ask for status alone");
        assert!(errors.contains(&words), "{order:?} {errors}");
    }
}

const COMES: &str = "\n[[application]]\nname = \"comes\"\ngroup = \"tank\"\nkind = \"synthetic\"\nchannel = 9\n\
                     period_ms = 50\nsize = 1000\n";

bumpless_testing::tests![
    a_group_may_ask_for_status_and_gives_no_orders,
    a_control_socket_that_may_not_be_opened_is_told_to_be_another_users,
    a_control_socket_missing_in_the_own_place_is_told_to_be_another_users,
];
