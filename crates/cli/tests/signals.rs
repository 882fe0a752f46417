//! Signals to running processes: what ends them does so in order, and what is no order does nothing.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use bumpless_controller::retain::Record;
use bumpless_controller::state::Progress;
use bumpless_node::persist::format::{StateFile, encode};
use support::plan::Plan;
use support::process::{BUMPLESS, Process};
use support::site::Site;
use support::{let_run, wait_until};

fn running() -> Site {
    let mut site = Site::new(Plan::pair(2).tank(50, ""));
    site.start_surroundings();
    site.start("left");
    site.start("right");
    site
}

/// The primary gets `signal`, so many times: it hands over, and ends as if it had done what it was asked for.
fn hands_over(signal: i32, times: usize) {
    let mut site = running();
    let (primary, backup, epoch) = site.await_redundant("tank");
    site.await_writes(3);
    for _ in 0..times {
        site.node(&primary).signal(signal);
    }
    site.await_event(&primary, "role", |role| {
        role["from"] == "primary" && role["cause"] == "handed over to the partner"
    });
    site.await_event(&primary, "stopping", |_| true);
    assert!(site.await_primary(&backup, "tank") > epoch);
    wait_until("its process has ended", || {
        !site.node(&primary).is_running()
    });
    let status = site.take(&primary).wait();
    assert!(status.success(), "signal {signal}: {status:?}");
    site.await_writes(3);
    site.writes().judge();
}

#[test]
fn a_node_whose_terminal_is_closed_hands_over_and_ends_in_order() {
    // The kernel sends one, the shell another.
    hands_over(libc::SIGHUP, 3);
}

#[test]
fn a_node_that_is_told_to_quit_hands_over_and_ends_in_order() {
    hands_over(libc::SIGQUIT, 1);
}

#[test]
fn signals_without_a_meaning_do_nothing() {
    let mut site = running();
    let before = site.await_redundant("tank");
    for signal in [libc::SIGUSR1, libc::SIGUSR2] {
        for node in ["left", "right"] {
            site.node(node).signal(signal);
        }
        site.plant().signal(signal);
        site.witness(0).signal(signal);
    }
    // A process that such a signal ends has ended by then.
    let_run(100);
    site.await_writes(3);
    assert_eq!(site.await_redundant("tank"), before);
    for node in ["left", "right"] {
        assert!(site.node(node).is_running());
    }
    assert!(site.plant().is_running() && site.witness(0).is_running());
    // What closes its terminal ends each of them as Ctrl-C does.
    let (witness, plant) = (site.take_witness(0), site.take_plant());
    for process in [witness, plant] {
        process.signal(libc::SIGHUP);
        let status = process.wait();
        assert!(status.success(), "{status:?}");
    }
}

/// Whether a process has started another one.
fn has_child(process: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task"));
    tasks.into_iter().flatten().flatten().any(|task| {
        let children = std::fs::read_to_string(task.path().join("children"));
        children.is_ok_and(|children| !children.is_empty())
    })
}

/// A node whose one program never begins, and the file that the program makes if it is waited for.
fn with_a_program_that_never_begins(keeps: bool) -> (Site, PathBuf) {
    let mut plan = Plan::pair(2);
    plan.group = "hot_restart_ms = 120000".into();
    plan.applications.push(
        "[[application]]\nname = \"never\"\ngroup = \"tank\"\nkind = \"process\"\nchannel = 1\n\
         period_ms = 50\nfile = \"never\"\nstate_max = 64\n"
            .to_owned(),
    );
    if keeps {
        plan = plan.keeping("persist_every_ms = 1");
    }
    let site = Site::new(plan);
    let (file, begun) = (site.path("never"), site.path("begun"));
    let script = format!(
        "#!/bin/sh\nsleep 4\ntouch {}\nexec sleep 1000\n",
        begun.display()
    );
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    (site, begun)
}

/// Ends `left` while its program begins; it is not waited for as long as it may take for that, 5 s.
fn ends_while_its_program_begins(site: &mut Site, begun: &Path) {
    site.start("left");
    let node = site.take("left");
    wait_until("its program", || has_child(node.pid()));
    node.signal(libc::SIGINT);
    let status = node.wait();
    assert!(status.success(), "{status:?}");
    assert!(!begun.exists());
}

#[test]
fn a_node_that_is_told_to_end_while_a_program_begins_ends_in_order() {
    let (mut site, begun) = with_a_program_that_never_begins(false);
    ends_while_its_program_begins(&mut site, &begun);
}

#[test]
fn a_node_that_is_told_to_end_while_a_program_tries_its_state_leaves_that_where_it_is() {
    let (mut site, begun) = with_a_program_that_never_begins(true);
    let config = bumpless_config::Config::load(&site.config()).unwrap();
    let application = &config.applications[0];
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut bytes = Vec::new();
    let file = StateFile {
        pair: config.pair_id(),
        program: application.program(),
        application: &application.name,
        progress: Progress {
            epoch: bumpless_base::Epoch(1),
            cycle: 1,
        },
        published_ns: u64::try_from(since.as_nanos()).unwrap(),
        state: &[0; 64],
        retained: Record::default(),
    };
    encode(&file, &mut bytes);
    let folder = site.path("left.states");
    std::fs::create_dir(&folder).unwrap();
    let state = folder.join("black-box-left-never.state");
    std::fs::write(&state, &bytes).unwrap();
    ends_while_its_program_begins(&mut site, &begun);
    assert_eq!(std::fs::read(&state).unwrap(), bytes);
}

/// Whether a process has a handler for a signal.
fn is_caught(process: u32, signal: i32) -> bool {
    is_among(process, "SigCgt:", signal)
}

/// Whether a signal to a process as a whole waits still.
fn is_pending(process: u32, signal: i32) -> bool {
    is_among(process, "ShdPnd:", signal)
}

/// Whether a signal is in this mask of a process.
fn is_among(process: u32, mask: &str, signal: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix(mask));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[test]
fn signals_to_a_whole_service_do_not_end_who_puts_back_what_a_node_has_changed() {
    let mut command = Command::new(BUMPLESS);
    command
        .args(["guard", "restore", "--when-input-ends"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut keeper = command.spawn().unwrap();
    // Some managers, and people, repeat theirs.
    let signals = [libc::SIGTERM, libc::SIGINT, libc::SIGQUIT, libc::SIGHUP];
    wait_until("it catches them", || {
        signals.iter().all(|&it| is_caught(keeper.id(), it))
    });
    for signal in signals.into_iter().chain(signals) {
        // SAFETY: kill() takes integers; the child has not been waited for, so its number is its own.
        assert_eq!(unsafe { libc::kill(keeper.id() as libc::pid_t, signal) }, 0);
        wait_until("it has come", || !is_pending(keeper.id(), signal));
    }
    // As if its node had been killed.
    drop(keeper.stdin.take());
    let status = keeper.wait().unwrap();
    // 130: a second SIGINT ends what has the handlers of the other commands.
    assert!(matches!(status.code(), Some(0 | 1)), "{status:?}");
}

#[test]
fn a_node_that_was_started_to_outlive_its_terminal_does() {
    let mut site = Site::new(Plan::pair(2).tank(50, ""));
    site.start_surroundings();
    let config = site.config();
    let said = site.path("left.said");
    let mut command = Command::new(BUMPLESS);
    command
        .args(["run", config.to_str().unwrap(), "--node", "left"])
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&said).unwrap())
        .stderr(Stdio::null());
    // As `nohup` does it.
    // SAFETY: between fork and exec only signal() is called, which is async-signal-safe and takes integers.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
            Ok(())
        });
    }
    let mut node = Process::spawn(command, &said);
    let epoch = site.await_primary("left", "tank");
    node.signal(libc::SIGHUP);
    let_run(100);
    site.await_writes(3);
    assert!(node.is_running());
    assert_eq!(site.await_primary("left", "tank"), epoch);
    node.interrupt();
}
