//! Processes that may have few files open: told with the limit and a remedy, or no matter.

mod support;

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use support::plan::Plan;
use support::process::{BUMPLESS, Process, outcome};
use support::site::Site;

/// `bumpless` with `arguments`, as a process that may have `now` files open and may raise that to `most`.
fn limited(arguments: &[&str], now: u64, most: u64) -> Command {
    let mut command = Command::new(BUMPLESS);
    command.args(arguments).stdin(Stdio::null());
    let limits = libc::rlimit64 {
        rlim_cur: now,
        rlim_max: most,
    };
    // SAFETY: between fork and exec only setrlimit() is called, which is async-signal-safe and reads `limits`.
    unsafe {
        command.pre_exec(
            move || match libc::setrlimit64(libc::RLIMIT_NOFILE, &raw const limits) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            },
        );
    }
    command
}

#[test]
fn a_node_that_may_open_too_few_files_says_how_many_it_needs() {
    let site = Site::new(Plan::pair(2).tank(50, ""));
    let config = site.config();
    let run = ["run", config.to_str().unwrap(), "--node", "left"];
    for limit in [7, 13, 30] {
        let (_, stderr, status) = outcome(&limited(&run, limit, limit).output().unwrap());
        assert_eq!(status, Some(1), "{limit}: {stderr}");
        for words in [&*format!("{limit} are permitted"), "ulimit -n"] {
            assert!(stderr.contains(words), "{limit}: {stderr}");
        }
    }
}

#[test]
fn a_node_that_may_raise_its_limit_of_open_files_does() {
    let mut site = Site::new(Plan::pair(2).tank(50, ""));
    site.start_surroundings();
    let config = site.config();
    let said = site.path("left.said");
    let mut command = limited(
        &["run", config.to_str().unwrap(), "--node", "left"],
        13,
        1024,
    );
    command.stdout(std::fs::File::create(&said).unwrap());
    let node = Process::spawn(command, &said);
    let epoch = site.await_primary("left", "tank");
    site.await_write_in(epoch);
    node.interrupt();
}

#[test]
fn a_witness_that_may_open_too_few_files_says_so_with_limit_and_remedy() {
    let site = Site::new(Plan::pair(2).tank(50, ""));
    let address = site.plan.witnesses[0].1.to_string();
    let output = limited(&["witness", "--listen", &address, "--open"], 4, 4).output();
    let (_, stderr, status) = outcome(&output.unwrap());
    assert_eq!(status, Some(1), "{stderr}");
    for words in ["may have 4 at a time", "ulimit -n"] {
        assert!(stderr.contains(words), "{stderr}");
    }
}
