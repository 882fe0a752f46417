//! A file that is read again while the guard runs (V-65).

use std::fs;
use std::process::Command;
use std::time::Duration;

use bumpless_registration::{Terms, register_at};
use serde_json::Value;

use super::support::hosts::{Hosts, with_hosts};
use super::support::process::{Process, json};
use super::support::wait_until;
use super::{FILE, Folder, socket};

const REGISTRATION: &str =
    "[registration]\ngroup = \"root\"\nsocket = \"programs.sock\"\nflows = 3\n";

pub fn a_file_read_again_is_in_force_whole_or_not_at_all() {
    with_hosts(|hosts| hosts.at("left", || changed(&hosts)));
}

fn changed(hosts: &Hosts) {
    let folder = Folder::new(&format!("{FILE}{REGISTRATION}"));
    let guard = folder.run();
    let program = socket("10.77.1.1:4720");
    let terms = Terms {
        capacity: 5,
        period: Duration::from_secs(60),
        priority: 20,
    };
    let registered = register_at(&folder.path("programs.sock"), &program, &terms).unwrap();
    let sender = hosts.at("right", || socket("10.77.1.2:5000"));
    let send = |port: u16, count: usize| {
        (0..count).for_each(|_| {
            sender.send_to(&[0; 18], ("10.77.1.1", port)).unwrap();
        });
        hosts.at("left", || ());
    };
    send(9, 4);
    assert_eq!(dropped(&folder.flow("shut"), "closed"), 4);

    // Nothing else is said: counts go on.
    assert_eq!(reload(&folder).0["changed"], false);
    assert_eq!(dropped(&folder.flow("shut"), "closed"), 4);

    let other = FILE
        .replace("[\"na\"]", "[\"na\", \"nb\"]")
        .replace("capacity = 1000", "capacity = 3")
        .replace("\"shut\"", "\"open\"")
        .replace("capacity = 0", "capacity = 6\nperiod_ms = 60000");
    write(&folder, &format!("{other}{REGISTRATION}"));
    assert_eq!(reload(&folder).0["changed"], true);
    assert!(guarded("na") && guarded("nb"));
    wait_until("the added interface told", || {
        guard.said().contains("nb: guarded (")
    });
    for (port, name) in [(4713, "setpoints"), (9, "open")] {
        send(port, 8);
        let flow = folder.flow(name);
        let capacity = flow["capacity"].as_u64().unwrap();
        assert_eq!(flow["passed"].as_u64().unwrap(), capacity, "{flow}");
        assert_eq!(dropped(&flow, "capacity"), 8 - capacity, "{flow}");
    }
    // What a program has registered stays, on the added interface, too.
    assert!(registered.holds());
    send(4720, 7);
    let of_program = |at: usize| of_this_program(&status(&folder)["interfaces"][at]);
    assert_eq!(of_program(0)["passed"], 5);
    assert_eq!(of_program(1)["capacity"], 5);

    refused_whole(&folder, &guard, &format!("{other}{REGISTRATION}"));
    assert!(registered.holds());
    drop(registered);
    wait_until("the end of the registration", || {
        of_program(0).is_null() && of_program(1).is_null()
    });
    one_interface_less(&folder, &guard);
    guard.interrupt();
    assert!(!guarded("na"));
}

/// Files that are wrong each in another way leave everything as it was.
fn refused_whole(folder: &Folder, guard: &Process, right: &str) {
    let before = registered_flows(&status(folder));
    for (file, part) in [
        (right.replace("\"open\"", "7"), "name"),
        (right.replace("\"nb\"", "\"nb\", \"nosuch0\""), "nosuch0"),
        (right.replace("port = 9", "port = 4720"), "has registered"),
        (
            right.replace("flows = 3", "flows = 3\npriority_max = 19"),
            "priority 20",
        ),
        (right.replace(REGISTRATION, ""), "restart"),
        (right.replace("programs.sock", "others.sock"), "restart"),
    ] {
        write(folder, &file);
        // Asked by a signal: a file that is wrong is one that the command itself refuses.
        let refusals = said_so(guard);
        guard.signal(libc::SIGHUP);
        wait_until(&format!("the refusal, with {part}"), || {
            let said = guard.said();
            let reason = said.rsplit("the file was not taken").next();
            said_so(guard) > refusals && reason.is_some_and(|it| it.contains(part))
        });
        // The daemon is found by its file.
        write(folder, right);
        assert_eq!(registered_flows(&status(folder)), before, "{part}");
    }
    write(folder, &right.replace("\"nb\"", "\"nosuch0\""));
    let (told, code) = reload(folder);
    assert_eq!(code, Some(1));
    assert!(told["error"].to_string().contains("nosuch0"), "{told}");
    assert!(guarded("nb"));
}

fn one_interface_less(folder: &Folder, guard: &Process) {
    write(folder, &format!("{FILE}{REGISTRATION}"));
    guard.signal(libc::SIGHUP);
    wait_until("the free interface", || {
        guard
            .said()
            .contains("nb: guarded no more: the file does not name it")
    });
    assert!(guarded("na") && !guarded("nb"));
    assert_eq!(status(folder)["interfaces"].as_array().unwrap().len(), 1);
}

fn said_so(guard: &Process) -> usize {
    guard.said().matches("the file was not taken").count()
}

fn write(folder: &Folder, text: &str) {
    fs::write(folder.file(), text).unwrap();
}

fn reload(folder: &Folder) -> (Value, Option<i32>) {
    let output = super::support::process::bumpless(&["guard", "reload", &folder.file(), "--json"]);
    let told = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (told, output.status.code())
}

fn status(folder: &Folder) -> Value {
    let asked = ["guard", "status", &folder.file(), "--json"];
    let (status, code) = json(&asked, "bumpless.guard.status/1");
    assert_eq!(code, Some(0));
    status
}

/// The named flows of each interface, with their counts; of the rest, something arrives at any time.
fn registered_flows(status: &Value) -> Vec<(String, Vec<Value>)> {
    let of = |interface: &Value| {
        let flows = interface["flows"].as_array().unwrap().iter();
        let named = flows.filter(|flow| flow["registered"] == true);
        (interface["name"].to_string(), named.cloned().collect())
    };
    let interfaces = status["interfaces"].as_array().unwrap();
    interfaces.iter().map(of).collect()
}

fn of_this_program(interface: &Value) -> Value {
    let flows = interface["flows"].as_array().into_iter().flatten();
    let mut own = flows.filter(|flow| flow["program"]["pid"] == std::process::id());
    own.next().cloned().unwrap_or_default()
}

fn dropped(flow: &Value, cause: &str) -> u64 {
    flow["dropped"][cause].as_u64().unwrap()
}

fn guarded(interface: &str) -> bool {
    let shown = Command::new("ip")
        .args(["link", "show", interface])
        .output();
    shown.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("xdp"))
}
