//! A node that cannot start.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bumpless_config::Config;
use bumpless_node::{RunError, RunOptions, open_udp, run};

/// The name of each thread of this process.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    let mut names: Vec<_> = names.map(|name| name.trim().to_owned()).collect();
    names.sort_unstable();
    names
}

fn configuration(control: &Path) -> Config {
    let id = std::process::id();
    let address = |last: u8| {
        let host = [127, (id / 250 % 20 + 220) as u8, (id % 250) as u8, last];
        SocketAddr::from((host, 4700))
    };
    let text = format!(
        "[pair]\nname = \"refused\"\n[security]\npackets = \"open\"\n[[network]]\nname = \"A\"\nbandwidth_mbit = 1000\n\
         [[node]]\nname = \"left\"\naddresses = {{ A = \"{}\" }}\ncontrol = '{}'\n\
         [[node]]\nname = \"right\"\naddresses = {{ A = \"{}\" }}\n\
         [[group]]\nname = \"g\"\nnodes = [\"left\", \"right\"]\nwithout_reference = true\n\
         [[application]]\nname = \"a\"\ngroup = \"g\"\nkind = \"synthetic\"\nchannel = 1\nperiod_ms = 50\n\
         size = \"100 B\"\n",
        address(1),
        control.display(),
        address(2),
    );
    Config::parse(&text, "refused.toml").unwrap_or_else(|problems| panic!("{problems:#?}"))
}

#[test]
fn of_a_node_that_cannot_listen_for_its_operator_nothing_keeps_running() {
    let directory = tempfile::tempdir().unwrap();
    // Nobody listens at a directory. Everything else has started by then.
    let control = directory.path().join("left.sock");
    std::fs::create_dir(&control).unwrap();
    let config = configuration(&control);
    let before = threads();
    let options = RunOptions {
        config_file: None,
        log_file: Some(directory.path().join("left.log")),
        log_stdout: None,
        log_transfers: false,
        log_outputs: false,
        keeper: None,
        stop: Arc::new(AtomicBool::new(false)),
    };
    let node = config.node("left").unwrap();
    let refused = run(&config, node, options, &mut open_udp);
    let cause = match refused {
        Err(RunError::System { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(cause, "listen on the control socket");
    assert_eq!(threads(), before);
}
