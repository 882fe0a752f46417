//! The wide-area network on this machine: it comes up, carries packets, is cut, and leaves nothing behind.

#[path = "../support/mod.rs"]
mod support;

mod capture;
mod changing;
mod ending;
mod impaired;
mod lacking;

use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use bumpless_testing::{need_namespaces, need_program};
use capture::a_capture_has_what_passes_and_is_whole_however_it_ends;
use changing::{
    an_impairment_that_is_refused_at_one_link_changes_none,
    commands_that_change_links_wait_for_each_other, impairments_by_script_end_as_it_was_before,
    links_of_one_router_are_impaired_by_commands_of_their_own,
    what_is_cut_carries_nothing_while_it_is_impaired_otherwise,
};
use ending::{
    a_network_whose_process_is_stopped_goes_all_the_same,
    a_routing_daemon_that_does_not_start_is_told_with_its_own_words,
    packets_that_find_no_room_to_be_held_are_counted,
    who_looks_for_a_moment_keeps_no_network_from_coming_up,
};
use impaired::an_impaired_link_loses_its_share_and_carries_its_rate_also_when_healed;
use lacking::without_tables_a_network_comes_up_and_has_rates_and_no_losses;
use serde_json::Value;
use support::process::BUMPLESS;
use support::wan::{is_gone, name, no_file_is_left, said, send, signal, until, wan};

/// A network of this process, which is gone when the test ends.
struct Grid(&'static str);

impl Grid {
    fn new(test: &'static str) -> Self {
        need_namespaces();
        need_program("ping", "iputils-ping");
        Self(test)
    }

    fn command(&self, action: &str, arguments: &[&str]) -> Command {
        let mut command = wan(action, self.0);
        command.args(arguments);
        command
    }

    fn wan(&self, action: &str, arguments: &[&str]) -> Output {
        self.command(action, arguments).output().unwrap()
    }

    fn done(&self, action: &str, arguments: &[&str]) -> String {
        let output = self.wan(action, arguments);
        let said = said(&output);
        assert!(output.status.success(), "{action}: {said}");
        said
    }

    fn up(&self, arguments: &[&str]) -> Value {
        let arguments = [&["--backbone-pairs", "3", "--json"], arguments].concat();
        let status: Value = serde_json::from_str(&self.done("up", &arguments)).unwrap();
        assert_eq!(status["schema"], "bumpless.wan-status/1");
        status
    }

    /// Whether one packet from `centre-1` to the host with this address is answered.
    fn answers(&self, address: &str) -> bool {
        let ping = ["centre-1", "--", "ping", "-c", "1", "-W", "1", address];
        self.wan("exec", &ping).status.success()
    }

    /// The address by which a host is known.
    fn address(&self, node: &str) -> String {
        let told = self.done("exec", &[node, "--", "ip", "-j", "address", "show", "lo"]);
        let told: Value = serde_json::from_str(&told).unwrap();
        let all = told[0]["addr_info"].as_array().unwrap();
        let own = all
            .iter()
            .find(|it| it["local"] != "127.0.0.1" && it["local"] != "::1");
        own.unwrap()["local"].as_str().unwrap().to_owned()
    }

    fn nothing_is_left(&self) {
        no_file_is_left(self.0);
    }
}

impl Drop for Grid {
    fn drop(&mut self) {
        let _ = self.command("down", &[]).output();
    }
}

/// The processes that a process has started.
fn children(pid: u64) -> Vec<u64> {
    let tasks = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    tasks
        .split_whitespace()
        .filter_map(|it| it.parse().ok())
        .collect()
}

fn a_network_carries_packets_is_cut_and_healed_and_goes() {
    let grid = Grid::new("whole");
    let status = grid.up(&[]);
    assert_eq!(status["nodes"], 92);
    let far = grid.address("s02-1-1");
    assert!(grid.answers(&far));
    let way = Command::new(BUMPLESS)
        .args([
            "wan",
            "path",
            "centre-1",
            "s02-1-1",
            "--backbone-pairs",
            "3",
            "--json",
        ])
        .output()
        .unwrap();
    let way: Value = serde_json::from_slice(&way.stdout).unwrap();
    if status["delays"]["by"] != "lacking" {
        // -U: what a program sees. Otherwise ping takes the time at which a packet reached the host that holds it.
        let ping = ["centre-1", "--", "ping", "-U", "-c", "3", "-i", "0.2", &far];
        let told = grid.done("exec", &ping);
        let least = told.split(" = ").nth(1).and_then(|it| it.split('/').next());
        let least: f64 = least.unwrap().parse().unwrap();
        assert!(
            // A quicker machine than those that were measured may be a little below.
            1e3 * least >= 0.9 * way["round_trip_us"].as_f64().unwrap(),
            "{told}"
        );
    }
    grid.done("cut", &["s02-1-1"]);
    let status: Value = serde_json::from_str(&grid.done("status", &["--json"])).unwrap();
    assert_eq!(status["cut"].as_array().unwrap().len(), 1, "{status}");
    assert!(!grid.answers(&far));
    let healed: Value = serde_json::from_str(&grid.done("heal", &["s02-1-1", "--json"])).unwrap();
    assert_eq!(healed["schema"], "bumpless.wan-outage/1");
    assert_eq!(healed["cut"], false, "{healed}");
    assert_eq!(healed["links"].as_array().unwrap().len(), 1, "{healed}");
    assert!(grid.answers(&far));
    assert_eq!(
        grid.wan("exec", &["centre-1", "--", "sh", "-c", "exit 7"])
            .status
            .code(),
        Some(7)
    );
    assert_eq!(
        grid.wan("exec", &["centre-1", "--", "/no/such"])
            .status
            .code(),
        Some(127)
    );
    assert_eq!(
        grid.wan("exec", &["centre-9", "--", "true"]).status.code(),
        Some(2)
    );
    let again = grid.wan("up", &[]);
    assert_eq!(again.status.code(), Some(1));
    assert!(said(&again).contains("wan down --name"), "{}", said(&again));
    let mut sleeper = grid.command("exec", &["centre-1", "--", "sleep", "60"]);
    let mut sleeper = sleeper.stdout(Stdio::null()).spawn().unwrap();
    until("a program is seen", || {
        grid.done("status", &[]).contains("sleep")
    });
    assert!(grid.done("down", &[]).contains("sleep"));
    assert!(!sleeper.wait().unwrap().success());
    grid.nothing_is_left();
}

fn equal_links_are_all_used_if_that_is_wanted_and_connections_keep_theirs() {
    let grid = Grid::new("equal");
    for pool in ["10.64.0.0/16", "fd42:7761:6e00::/48"] {
        let status = grid.up(&["--routing", "equal-cost", "--pool", pool]);
        assert_eq!(status["routing"], "equal-cost");
        // To this one from the middle of its loop it is as far by each of two links.
        let far = grid.address("s00");
        until("an answer", || grid.answers(&far));
        let by = |port: u32| -> String {
            let port = port.to_string();
            let ask = ["ip", "-j", "route", "get", &far, "ipproto", "udp"];
            let ports = ["sport", &port, "dport", "9"];
            let told = grid.done("exec", &[&["s00-2", "--"], &ask[..], &ports[..]].concat());
            let told: Value = serde_json::from_str(&told).unwrap();
            told[0]["dev"].as_str().unwrap().to_owned()
        };
        let all: Vec<_> = (1000..1032).map(by).collect();
        for link in ["eth1", "eth2"] {
            assert!(all.iter().any(|it| it == link), "{pool}: {all:?}");
        }
        assert_eq!(all, (1000..1032).map(by).collect::<Vec<_>>());
        grid.done("down", &[]);
    }
}

fn addresses_of_version_6_are_reached_too() {
    let grid = Grid::new("six");
    grid.up(&["--pool", "fd42:7761:6e00::/48"]);
    let far = grid.address("s02-1-1");
    until("an answer", || grid.answers(&far));
}

fn what_is_killed_in_the_middle_leaves_nothing_that_hurts_the_next_one() {
    let grid = Grid::new("killed");
    for after_ms in [0, 30, 100, 300] {
        let mut up = grid.command("up", &["--backbone-pairs", "3"]);
        let mut up = up
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_millis(after_ms));
        up.kill().unwrap();
        up.wait().unwrap();
        grid.done("down", &[]);
        grid.nothing_is_left();
    }
    let pid = grid.up(&[])["pid"].as_u64().unwrap();
    send(pid, "-KILL");
    until("the process is gone", || is_gone(pid));
    assert_eq!(grid.wan("status", &[]).status.code(), Some(1));
    grid.nothing_is_left();
    grid.up(&[]);
}

fn outages_by_script_are_made_and_end_and_an_interrupted_one_heals() {
    let grid = Grid::new("script");
    grid.up(&[]);
    let far = grid.address("s02-1-1");
    let folder = tempfile::tempdir().unwrap();
    let script = |outages: &str| {
        let file = folder.path().join("script.json");
        let text = format!(r#"{{"schema": "bumpless.wan-script/1", "outages": [{outages}]}}"#);
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let cut = || -> Vec<Value> {
        let status: Value = serde_json::from_str(&grid.done("status", &["--json"])).unwrap();
        status["cut"].as_array().unwrap().clone()
    };
    // What is cut by hand stays so.
    grid.done("cut", &["s01-1-1"]);
    let by_hand = cut();
    let file = script(
        r#"{"at_s": 0, "for_s": 0.2, "what": ["s02-1-1", "s01-1-1"]}, {"at_s": 0.1, "for_s": 0.2, "what": ["s02-1-1"]}"#,
    );
    let played = grid.wan("script", &[&file, "--json"]);
    let said = String::from_utf8(played.stderr).unwrap();
    assert!(said.contains("cut already, and left so"), "{said}");
    let told: Value = serde_json::from_slice(&played.stdout).unwrap();
    assert_eq!(told["schema"], "bumpless.wan-script-result/1");
    assert_eq!(told["complete"], true, "{told}");
    let steps = told["steps"].as_array().unwrap();
    let dues: Vec<_> = steps
        .iter()
        .map(|it| it["due_s"].as_f64().unwrap())
        .collect();
    assert_eq!(dues, [0.0, 0.3], "{told}");
    assert!(
        steps
            .iter()
            .all(|it| it["done_s"].as_f64() >= it["due_s"].as_f64())
    );
    assert_eq!(steps[0]["cut"], steps[1]["whole"]);
    assert_eq!(cut(), by_hand);
    // One that would last for minutes.
    let file = script(r#"{"at_s": 0, "for_s": 600, "what": ["s02-1-1"]}"#);
    let mut command = grid.command("script", &[&file, "--json"]);
    let playing = command.stdout(Stdio::piped()).spawn().unwrap();
    until("the link is cut", || cut().len() == 2);
    assert!(!grid.answers(&far));
    signal(&playing, "-INT");
    let ended = playing.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130));
    let told: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(told["complete"], false, "{told}");
    assert_eq!(cut(), by_hand);
    assert!(grid.answers(&far));
    // What is wrong is told before anything is cut.
    let file = script(r#"{"at_s": 0, "for_s": 1, "what": ["s02-1-1", "s99"]}"#);
    let refused = grid.wan("script", &[&file]);
    assert_eq!(refused.status.code(), Some(2));
    let words = String::from_utf8(refused.stderr).unwrap();
    assert!(
        words.contains("script.json: outage 1: no node is called \"s99\""),
        "{words}"
    );
    // A network that ends in mid-script is told as the cause, and at once.
    let file = script(r#"{"at_s": 0, "for_s": 600, "what": ["s02-1-1"]}"#);
    let mut command = grid.command("script", &[&file]);
    let playing = command
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("the link is cut", || cut().len() == 2);
    grid.done("down", &[]);
    let ended = playing.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    let words = String::from_utf8(ended.stderr).unwrap();
    assert!(words.contains("has ended"), "{words}");
}

fn routing_daemons_find_another_way_and_end_with_the_network() {
    let grid = Grid::new("ospf");
    need_program("bird", "bird2");
    let status = grid.up(&["--routing", "ospf"]);
    assert_eq!(status["routing"], "ospf");
    assert_eq!(status["programs"].as_array().unwrap().len(), 0, "{status}");
    let pid = status["pid"].as_u64().unwrap();
    let daemons = children(pid);
    assert_eq!(daemons.len(), 51, "one on each router");
    // There is another way around the ring.
    let far = grid.address("s01-1-1");
    assert!(grid.answers(&far));
    grid.done("cut", &["b00b:b01a"]);
    until("another way", || grid.answers(&far));
    grid.done("heal", &["b00b:b01a"]);
    send(pid, "-KILL");
    until("daemons are gone", || daemons.iter().all(|&it| is_gone(it)));
    assert_eq!(grid.wan("status", &[]).status.code(), Some(1));
    grid.nothing_is_left();
    let refused = grid.wan(
        "up",
        &["--routing", "ospf", "--pool", "fd42:7761:6e00::/48"],
    );
    assert!(said(&refused).contains("IPv4"), "{}", said(&refused));
}

/// Routing daemons that have their files in the folder of a network, whoever their parent is.
fn daemons(grid: &Grid) -> Vec<u64> {
    let folder = format!("/run/bumpless-wan-{}.d/", name(grid.0));
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|it| it.file_name().to_str()?.parse().ok());
    let of_it = |pid: &u64| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.starts_with(b"bird") && String::from_utf8_lossy(&words).contains(&folder)
    };
    pids.filter(of_it).collect()
}

fn daemons_of_a_network_that_is_killed_as_it_comes_up_end_with_it() {
    let grid = Grid::new("ospf-killed");
    need_program("bird", "bird2");
    // As soon as the first router has its daemon, between, and while all agree on their routes.
    for count in [1, 20, 51] {
        for kills_holder in [false, true] {
            let arguments = ["--backbone-pairs", "3", "--routing", "ospf"];
            let mut up = grid.command("up", &arguments);
            let up = up.stdout(Stdio::null()).stderr(Stdio::null());
            let mut up = up.spawn().unwrap();
            until("daemons", || daemons(&grid).len() >= count);
            let [holder] = children(up.id().into())[..] else {
                panic!("one process holds the network");
            };
            send(if kills_holder { holder } else { up.id().into() }, "-KILL");
            assert!(!up.wait().unwrap().success());
            until("the holder is gone", || is_gone(holder));
            until("daemons are gone", || daemons(&grid).is_empty());
            match kills_holder {
                true => grid.done("down", &[]),
                // The next start finds nothing in its way.
                false => {
                    grid.up(&[]);
                    grid.done("down", &[])
                }
            };
            grid.nothing_is_left();
        }
    }
}

bumpless_testing::tests!(
    a_network_carries_packets_is_cut_and_healed_and_goes,
    outages_by_script_are_made_and_end_and_an_interrupted_one_heals,
    an_impaired_link_loses_its_share_and_carries_its_rate_also_when_healed,
    commands_that_change_links_wait_for_each_other,
    links_of_one_router_are_impaired_by_commands_of_their_own,
    what_is_cut_carries_nothing_while_it_is_impaired_otherwise,
    an_impairment_that_is_refused_at_one_link_changes_none,
    impairments_by_script_end_as_it_was_before,
    without_tables_a_network_comes_up_and_has_rates_and_no_losses,
    addresses_of_version_6_are_reached_too,
    equal_links_are_all_used_if_that_is_wanted_and_connections_keep_theirs,
    what_is_killed_in_the_middle_leaves_nothing_that_hurts_the_next_one,
    a_capture_has_what_passes_and_is_whole_however_it_ends,
    a_network_whose_process_is_stopped_goes_all_the_same,
    who_looks_for_a_moment_keeps_no_network_from_coming_up,
    packets_that_find_no_room_to_be_held_are_counted,
    a_routing_daemon_that_does_not_start_is_told_with_its_own_words,
    routing_daemons_find_another_way_and_end_with_the_network,
    daemons_of_a_network_that_is_killed_as_it_comes_up_end_with_it,
);
