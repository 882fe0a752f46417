//! Where packets of a node's networks are worked off: as its configuration asks, and as before once it is gone, however it goes.

use std::process::Command;

use serde_json::Value;

use super::support::hosts::{Hosts, pair_on_hosts, with_hosts};
use super::support::process::{BUMPLESS, Process};
use super::support::site::Site;
use super::support::wait_until;

/// Runs a shell's words on `left`, with /sys as it is there.
fn shell(hosts: &Hosts, words: &str) -> String {
    let words = format!("mount -t sysfs sysfs /sys && {words}");
    let output = hosts.at("left", || {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", &words])
            .output()
            .unwrap()
    });
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Whether network A of `left` has threads of its own, and to whom it hands packets on.
fn placed(hosts: &Hosts) -> String {
    let words = shell(
        hosts,
        "cd /sys/class/net/na && cat threaded queues/rx-0/rps_cpus",
    );
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Starts `left`, which sees /sys as it is there.
fn start(site: &Site) -> Process {
    let mut command = Command::new("unshare");
    let words = "mount -t sysfs sysfs /sys && exec \"$0\" \"$@\"";
    command.args(["--mount", "sh", "-c", words, BUMPLESS, "run"]);
    command.arg(site.config()).args(["--node", "left"]);
    let said = site.path("left.said");
    site.hosts().at("left", || Process::spawn(command, &said))
}

fn site(hosts: Hosts) -> Site {
    let mut plan = pair_on_hosts().tank(50, "");
    plan.transfer = "[realtime]\ncpu = 1\n\
         [reception]\nring = 512\nrps_cpus = \"0\"\nnapi_priority = 0\ninterrupt_cpus = \"0\"\n"
        .to_owned();
    let mut site = Site::new(plan).on(hosts);
    site.start_surroundings();
    site
}

pub fn interfaces_are_placed_as_asked_and_as_before_once_a_node_is_killed() {
    with_hosts(|hosts| {
        let mut site = site(hosts);
        assert_eq!(placed(site.hosts()), "0 0");
        let node = start(&site);
        site.start("right");
        site.await_redundant("tank");
        assert_eq!(placed(site.hosts()), "1 1");
        let weaknesses = site.status("left").unwrap()["weaknesses"].to_string();
        assert!(!weaknesses.contains("worked off"), "{weaknesses}");
        // The files here show another namespace's interfaces: `right` leaves its own as they are, and says so.
        let weaknesses = site.status("right").unwrap()["weaknesses"].to_string();
        assert!(
            weaknesses.contains("another network namespace"),
            "{weaknesses}"
        );
        node.kill();
        // Threads are put back, too, if the program is still there then: a virtual interface whose program has gone takes no word on
        // them until it has one again.
        wait_until("packets stay where they are", || {
            placed(site.hosts()).ends_with(" 0")
        });
        let node = start(&site);
        site.await_redundant("tank");
        assert_eq!(placed(site.hosts()), "1 1");
        node.signal(libc::SIGTERM);
        wait_until("everything as before", || placed(site.hosts()) == "0 0");
    });
}

pub fn check_tells_of_this_computers_interfaces_and_advises() {
    with_hosts(|hosts| {
        let site = site(hosts);
        let check = |more: &str| {
            let config = site.config();
            shell(
                site.hosts(),
                &format!("{BUMPLESS} check {} {more}", config.display()),
            )
        };
        let told: Value = serde_json::from_str(&check("--json")).unwrap();
        let interfaces = told["interfaces"].as_array().unwrap();
        let names: Vec<_> = interfaces
            .iter()
            .map(|it| (&it["node"], &it["interface"]))
            .collect();
        let of = |name: &str| (Value::from("left"), Value::from(name));
        let (a, b) = (of("na"), of("nb"));
        assert_eq!(names, [(&a.0, &a.1), (&b.0, &b.1)]);
        let na = &interfaces[0];
        assert_eq!(
            (&na["interrupts"], &na["napi_threads"]),
            (&Value::Array(vec![]), &Value::Null)
        );
        assert_eq!(na["advice"], Value::Array(vec![]), "{na}");
        let words = check("");
        assert!(words.contains("Interface na of this computer: "), "{words}");
        // Handed on to the data plane's own processor.
        let text = std::fs::read_to_string(site.config()).unwrap();
        std::fs::write(
            site.config(),
            text.replace("rps_cpus = \"0\"", "rps_cpus = \"1\""),
        )
        .unwrap();
        let words = check("");
        assert!(
            words.contains("advice: interface na hands packets on to processor 1"),
            "{words}"
        );
    });
}
