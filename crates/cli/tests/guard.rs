//! What `bumpless guard` promises any program of a host: its flows have their budgets, whatever else arrives; and nothing is left.

#[path = "guard/registration.rs"]
mod registration;
#[path = "guard/reload.rs"]
mod reload;
mod support;

use std::net::UdpSocket;
use std::path::PathBuf;
use std::time::Duration;

use registration::{
    a_closed_socket_ends_its_registration_and_what_is_wrong_has_its_cause,
    a_program_in_c_gets_its_packets_under_junk_and_no_more_than_it_asked_for_until_it_is_killed,
    who_is_not_in_the_group_may_not_register_and_without_one_nobody_may,
};
use reload::a_file_read_again_is_in_force_whole_or_not_at_all;
use serde_json::Value;
use support::hosts::{Hosts, with_hosts};
use support::process::{BUMPLESS, Process, json, said};
use support::wait_until;

bumpless_testing::tests!(
    a_programs_flow_keeps_its_packets_under_a_flood_and_each_drop_has_its_rule,
    a_killed_guard_leaves_nothing_and_a_second_one_is_refused,
    everything_wrong_in_a_file_is_told_at_once,
    missing_rights_are_named_with_how_to_grant_them,
    a_program_in_c_gets_its_packets_under_junk_and_no_more_than_it_asked_for_until_it_is_killed,
    a_closed_socket_ends_its_registration_and_what_is_wrong_has_its_cause,
    who_is_not_in_the_group_may_not_register_and_without_one_nobody_may,
    a_file_read_again_is_in_force_whole_or_not_at_all,
);

const FILE: &str = "[guard]\ninterfaces = [\"na\"]\nsocket = \"guard.sock\"\n\
     [rest]\nother_per_s = 50\n\
     [[flow]]\nname = \"setpoints\"\nprotocol = \"udp\"\nport = 4713\nfrom = [\"10.77.1.2\"]\ncapacity = 1000\nperiod_ms = 60000\n\
     [[flow]]\nname = \"shut\"\nprotocol = \"udp\"\nport = 9\ncapacity = 0\n";

/// A folder with a host's file.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("guard.toml"), text).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self) -> String {
        self.path("guard.toml").display().to_string()
    }

    /// A running guard.
    fn run(&self) -> Process {
        let _ = std::fs::remove_file(self.path("said"));
        let process = Process::start(&["guard", "run", &self.file()], &self.path("said"));
        wait_until("the guard's start", || process.said().contains("runs with"));
        process
    }

    fn flow(&self, name: &str) -> Value {
        let (status, code) = json(
            &["guard", "status", &self.file(), "--json"],
            "bumpless.guard.status/1",
        );
        assert_eq!(code, Some(0));
        let flows = status["interfaces"][0]["flows"].as_array().unwrap();
        flows
            .iter()
            .find(|flow| flow["name"] == name)
            .unwrap()
            .clone()
    }
}

fn is_guarded() -> bool {
    std::process::Command::new("ip")
        .args(["link", "show", "na"])
        .output()
        .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("xdp"))
}

fn socket(at: &str) -> UdpSocket {
    let socket = UdpSocket::bind(at).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    socket
}

fn a_programs_flow_keeps_its_packets_under_a_flood_and_each_drop_has_its_rule() {
    with_hosts(|hosts| hosts.at("left", || flood(&hosts)));
}

fn flood(hosts: &Hosts) {
    let folder = Folder::new(FILE);
    let guard = folder.run();
    let program = socket("10.77.1.1:4713");
    let bystander = socket("10.77.1.1:4714");
    let sender = hosts.at("right", || socket("10.77.1.2:5000"));
    for number in 0..500u32 {
        sender
            .send_to(&number.to_be_bytes(), "10.77.1.1:4713")
            .unwrap();
        for port in [4714, 4714, 9] {
            sender.send_to(&[0; 18], ("10.77.1.1", port)).unwrap();
        }
        // Of each, since the program keeps up: the flood has no share in it.
        let mut buffer = [0; 4];
        hosts.at("left", || program.recv(&mut buffer)).unwrap();
        assert_eq!(u32::from_be_bytes(buffer), number);
    }
    let count = |flow: &Value, cause: &str| flow["dropped"][cause].as_u64().unwrap();
    let setpoints = folder.flow("setpoints");
    assert_eq!(
        (&setpoints["passed"], count(&setpoints, "capacity")),
        (&500.into(), 0)
    );
    let shut = folder.flow("shut");
    assert_eq!((&shut["passed"], count(&shut, "closed")), (&0.into(), 500));
    let rest = folder.flow("unregistered");
    assert!(count(&rest, "capacity") > 0, "{rest}");
    assert_eq!(
        count(&rest, "capacity") + rest["passed"].as_u64().unwrap(),
        1000
    );
    bystander.set_nonblocking(true).unwrap();
    let seen = (0..)
        .take_while(|_| bystander.recv(&mut [0; 18]).is_ok())
        .count() as u64;
    assert_eq!(rest["passed"].as_u64(), Some(seen));
    assert!(top(&folder.file()).contains("setpoints"));
    // It says so once, when it sees it.
    wait_until("the drops told", || {
        guard
            .said()
            .contains("more than its budget of unregistered")
    });
    guard.interrupt();
    assert!(!is_guarded());
}

/// Two looks, the first one at once; the second one has rates.
fn top(file: &str) -> String {
    let arguments = [
        "guard", "top", file, "--every", "0.1", "--count", "2", "--json",
    ];
    let (stdout, stderr, code) = said(&arguments);
    assert_eq!(code, Some(0), "{stderr}");
    let looks: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(looks.len(), 2);
    assert!(looks[0]["interfaces"][0]["flows"][0]["per_s"].is_null());
    assert!(
        looks[1]["interfaces"][0]["flows"][0]["per_s"]["passed"].is_number(),
        "{stdout}"
    );
    // Long before the first hour is over.
    let said = PathBuf::from(format!("{file}.top"));
    let top = Process::start(&["guard", "top", file, "--every", "3600"], &said);
    wait_until("the first look", || top.said().contains("setpoints"));
    let words = top.said();
    top.interrupt();
    words
}

fn a_killed_guard_leaves_nothing_and_a_second_one_is_refused() {
    with_hosts(|hosts| {
        hosts.at("left", || {
            let folder = Folder::new(FILE);
            let guard = folder.run();
            assert!(is_guarded());
            // Its file is right, and it runs here.
            let check = ["guard", "check", &folder.file(), "--json"];
            let (told, code) = json(&check, "bumpless.guard.check/1");
            assert_eq!(
                (&told["runs_here"], code),
                (&true.into(), Some(0)),
                "{told}"
            );
            assert_eq!(told["running"], guard.pid());
            let (_, again, code) = said(&["guard", "run", &folder.file()]);
            assert_eq!(code, Some(1));
            assert!(
                again.contains(&format!("process {}", guard.pid())),
                "{again}"
            );
            // With another socket it is another user of the interface.
            let other = Folder::new(FILE);
            let check = ["guard", "check", &other.file(), "--json"];
            let (told, code) = json(&check, "bumpless.guard.check/1");
            assert_eq!((&told["running"], code), (&Value::Null, Some(1)), "{told}");
            let (_, other, code) = said(&["guard", "run", &other.file()]);
            assert_eq!(code, Some(1));
            for part in [
                "interface na",
                "bumpless_guard",
                "was left there",
                &format!("process {}", guard.pid()),
            ] {
                assert!(other.contains(part), "{part} in {other}");
            }
            assert!(is_guarded());
            guard.kill();
            wait_until("nothing left", || !is_guarded());
            folder.run().interrupt();
            let (_, gone, code) = said(&["guard", "status", &folder.file()]);
            assert_eq!(code, Some(1));
            assert!(
                gone.contains("no guard runs") && gone.contains("bumpless guard run"),
                "{gone}"
            );
        });
    });
}

fn everything_wrong_in_a_file_is_told_at_once() {
    let folder = Folder::new(
        &FILE
            .replace("capacity = 0", "capacity = 0\nperiod = 7")
            .replace("port = 9", "port = \"9-x\""),
    );
    let (_, told, code) = said(&["guard", "check", &folder.file()]);
    assert_eq!(code, Some(2));
    for part in [
        "port",
        "period_ms",
        "2 problems in the configuration; nothing was started",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    let (told, code) = json(
        &["guard", "check", &folder.file(), "--json"],
        "bumpless.guard.check/1",
    );
    assert_eq!(
        (told["problems"].as_array().unwrap().len(), code),
        (2, Some(2))
    );
    let (sample, words, code) = said(&["guard", "check", "--sample"]);
    assert_eq!(code, Some(0), "{words}");
    std::fs::write(folder.file(), sample.replace("eth0", "nosuch0")).unwrap();
    let (told, code) = json(
        &["guard", "check", &folder.file(), "--json"],
        "bumpless.guard.check/1",
    );
    assert_eq!(
        (&told["ok"], &told["runs_here"], code),
        (&true.into(), &false.into(), Some(1))
    );
    // Other ports, ICMP and the unknown in 10 ms, addresses and fragments in 100 ms, ssh: twice 410. Of known addresses 5,000 a second (V-90).
    let cost = &told["cost"];
    assert_eq!(
        (&cost["budgets_per_s"], &cost["flows_per_s"]),
        (&19_000.into(), &7_000.into())
    );
    assert_eq!(
        (&cost["burst"], &cost["known_flows_per_s"]),
        (&820.into(), &5_000.into())
    );
    let free = 1_000_000_000u64 - 5_000 * 2000;
    assert_eq!(cost["flood_per_s"], (820 + 256) * free / (820 * 2000));
    assert!(
        told["missing_here"].to_string().contains("nosuch0"),
        "{told}"
    );
}

fn missing_rights_are_named_with_how_to_grant_them() {
    bumpless_testing::need_root();
    let folder = Folder::new(FILE);
    let without = |arguments: &[&str]| {
        let output = std::process::Command::new("setpriv")
            .args(["--bounding-set=-all", "--inh-caps=-all", BUMPLESS])
            .args(arguments)
            .output();
        let output = output.expect("setpriv (util-linux)");
        (
            String::from_utf8_lossy(&output.stderr).into_owned(),
            output.status.code(),
        )
    };
    let (told, code) = without(&["guard", "run", &folder.file()]);
    assert_eq!(code, Some(1), "{told}");
    for part in [
        "CAP_NET_ADMIN",
        "CAP_BPF",
        "CAP_PERFMON",
        "setcap",
        "AmbientCapabilities",
        "interface na",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
}
