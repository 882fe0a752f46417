//! Programs that register their sockets with the guard of their host (V-80 and further).

use std::fs;
use std::io::Write;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use bumpless_registration::{Error, Refusal, Registration, Terms, register_at};
use bumpless_testing::skip;
use serde_json::Value;

use super::support::hosts::{Hosts, with_hosts};
use super::support::process::{Process, json, said};
use super::support::wait_until;
use super::{FILE, Folder, socket};

/// A user, and a group, without any rights.
const NOBODY: u32 = 65_534;
const GROUP: u32 = 65_533;

/// A guard with which the members of `group` may register.
fn folder(group: &str) -> Folder {
    Folder::new(&format!(
        "{FILE}[registration]\ngroup = \"{group}\"\nsocket = \"programs.sock\"\nflows = 3\npriority_max = 20\n"
    ))
}

/// The example in C, compiled.
fn receiver(folder: &Folder) -> PathBuf {
    let top = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let library = format!("{top}/crates/product/program/c");
    let program = folder.path("receiver");
    let compiled = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-I", &library, "-o"])
        .arg(&program)
        .arg(format!("{top}/examples/guard/receiver.c"))
        .arg(format!("{library}/bumpless_guard.c"))
        .status();
    match compiled {
        Ok(status) => assert!(status.success()),
        Err(_) => skip("needs a C compiler"),
    }
    program
}

fn receive(program: &Path, folder: &Folder, port: &str, as_user: Option<(u32, u32)>) -> Process {
    let said = folder.path(&format!("said-{port}"));
    let out = fs::File::create(&said).unwrap();
    let mut command = Command::new(program);
    command
        .args([port, "20"])
        .arg(folder.path("programs.sock"))
        .stdout(out.try_clone().unwrap())
        .stderr(out);
    if let Some((user, group)) = as_user {
        command.uid(user).gid(group);
    }
    Process::spawn(command, &said)
}

fn status(folder: &Folder) -> Value {
    let asked = ["guard", "status", &folder.file(), "--json"];
    let (status, code) = json(&asked, "bumpless.guard.status/1");
    assert_eq!(code, Some(0));
    status
}

/// The flow that a program has registered, if there is one.
fn flow_of(folder: &Folder, pid: u32) -> Option<Value> {
    let status = status(folder);
    let flows = status["interfaces"][0]["flows"].as_array().unwrap();
    let mut found = flows.iter().filter(|flow| flow["program"]["pid"] == pid);
    found.next().cloned()
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// Files that a process has open.
fn open_files(process: &Process) -> usize {
    let files = fs::read_dir(format!("/proc/{}/fd", process.pid()));
    files.unwrap().count()
}

pub fn a_program_in_c_gets_its_packets_under_junk_and_no_more_than_it_asked_for_until_it_is_killed()
{
    with_hosts(|hosts| hosts.at("left", || limited(&hosts)));
}

fn limited(hosts: &Hosts) {
    let folder = folder("root");
    let program = receiver(&folder);
    let guard = folder.run();
    let before = open_files(&guard);
    let receiver = receive(&program, &folder, "4720", None);
    wait_until("the registration", || {
        receiver.said().contains("registered")
    });
    let sender = hosts.at("right", || socket("10.77.1.2:5000"));
    let send = |port: u16| {
        sender.send_to(&[0; 18], ("10.77.1.1", port)).unwrap();
    };
    // What is within the terms passes, whatever else arrives.
    let started = Instant::now();
    for _ in 0..10 {
        (0..200).for_each(|_| send(4714));
        send(4720);
    }
    hosts.at("left", || ());
    let flow = flow_of(&folder, receiver.pid()).expect("a flow");
    assert_eq!(flow["program"]["name"], "receiver");
    assert_eq!(flow["program"]["priority"], 10);
    assert_eq!(
        (&flow["capacity"], &flow["period_ms"]),
        (&20.into(), &100.0.into())
    );
    assert_eq!(count(&flow["passed"]), 10, "{flow}");
    // What is beyond them does not.
    (0..3000).for_each(|_| send(4720));
    let flow = flow_of(&folder, receiver.pid()).expect("a flow");
    let periods = started.elapsed().as_millis() as u64 / 100 + 2;
    let (passed, dropped) = (count(&flow["passed"]), count(&flow["dropped"]["capacity"]));
    assert_eq!(passed + dropped, 3010);
    assert!(passed <= 20 * periods, "{passed} in {periods} periods");
    let (words, _, _) = said(&["guard", "status", &folder.file()]);
    let name = format!("udp 4720 of receiver[{}]", receiver.pid());
    for part in [&*name, "1 of 3 sockets", "group root may", "refused: none"] {
        assert!(words.contains(part), "{part} in {words}");
    }
    wait_until("it told", || {
        guard.said().contains(&format!("{name}: registered with"))
    });
    let pid = receiver.pid();
    receiver.kill();
    wait_until("it gone", || flow_of(&folder, pid).is_none());
    wait_until("it told", || {
        guard
            .said()
            .contains(&format!("{name}: registered no more"))
    });
    // Its port is anybody's again, and nothing of it is left.
    let rest = |folder: &Folder| {
        let rest = folder.flow("unregistered");
        count(&rest["passed"]) + count(&rest["dropped"]["capacity"])
    };
    let before_it = rest(&folder);
    send(4720);
    wait_until("a packet without a flow", || rest(&folder) > before_it);
    assert_eq!(open_files(&guard), before);
    guard.interrupt();
    assert!(!folder.path("programs.sock").exists());
}

fn terms(capacity: u32) -> Terms {
    Terms {
        capacity,
        // Longer than the test.
        period: Duration::from_secs(60),
        priority: 20,
    }
}

pub fn a_closed_socket_ends_its_registration_and_what_is_wrong_has_its_cause() {
    with_hosts(|hosts| hosts.at("left", || refusals(&hosts)));
}

fn refusals(hosts: &Hosts) {
    let folder = folder("root");
    let path = folder.path("programs.sock");
    let none = register_at(&path, socket("10.77.1.1:4720"), &terms(1));
    assert!(matches!(none, Err(Error::NoGuard(_))), "{none:?}");
    let guard = folder.run();
    let register = |socket: &UdpSocket, terms: &Terms| register_at(&path, socket, terms);
    let refused = |socket: &UdpSocket, terms: &Terms| match register(socket, terms) {
        Err(Error::Refused(cause, _)) => cause,
        other => panic!("{other:?}"),
    };
    let own = socket("10.77.1.1:4720");
    own.connect("10.77.1.2:5000").unwrap();
    let mut registered: Vec<Registration> = vec![register(&own, &terms(5)).unwrap()];
    // Of a connected socket its peer's packets are limited, nobody else's.
    let peer = hosts.at("right", || socket("10.77.1.2:5000"));
    for _ in 0..8 {
        peer.send_to(&[0; 18], "10.77.1.1:4720").unwrap();
    }
    hosts.at("left", || ());
    let name = format!("udp 4720 from 10.77.1.2 of {}", this_program());
    let flow = folder.flow(&name);
    assert_eq!(
        (count(&flow["passed"]), count(&flow["dropped"]["capacity"])),
        (5, 3)
    );

    let any = || socket("10.77.1.1:0");
    assert_eq!(refused(&own, &terms(5)), Refusal::Taken);
    assert_eq!(refused(&socket("10.77.1.1:9"), &terms(5)), Refusal::Taken);
    assert_eq!(refused(&any(), &terms(0)), Refusal::Terms);
    assert_eq!(
        refused(
            &any(),
            &Terms {
                priority: 21,
                ..terms(5)
            }
        ),
        Refusal::Priority
    );
    // 60 million in a minute, 2000 ns each, are two processors.
    let large = Terms {
        period: Duration::from_secs(6),
        ..terms(6_000_000)
    };
    assert_eq!(refused(&any(), &large), Refusal::Budget);
    assert_eq!(refused(&socket("127.0.0.1:0"), &terms(5)), Refusal::Socket);
    let elsewhere = hosts.at("right", || socket("10.77.1.2:4730"));
    hosts.at("left", || ());
    assert_eq!(refused(&elsewhere, &terms(5)), Refusal::Socket);
    let others = [any(), any()];
    registered.extend(others.iter().map(|it| register(it, &terms(1)).unwrap()));
    assert_eq!(refused(&any(), &terms(1)), Refusal::Full);
    let told = status(&folder)["registration"].clone();
    assert_eq!(told["flows"], 3);
    for (cause, times) in [
        ("taken", 2),
        ("terms", 1),
        ("priority", 1),
        ("budget", 1),
        ("socket", 2),
        ("full", 1),
        ("version", 0),
    ] {
        assert_eq!(told["refused"][cause], times, "{cause}");
    }

    // The connection alone keeps nothing.
    drop(own);
    wait_until("the end with its socket", || !registered[0].holds());
    assert!(registered[1].holds());
    // Dropped in the program, it is gone at once.
    registered.truncate(2);
    wait_until("the end with its connection", || {
        status(&folder)["registration"]["flows"] == 1
    });
    guard.interrupt();
    wait_until("the end with the guard", || !registered[1].holds());
}

/// A folder of the socket that is not there is made so that the group may enter it, and no group that is not there is taken.
fn in_a_folder_that_is_made(folder: &Folder, program: &Path) {
    let text = fs::read_to_string(folder.file()).unwrap();
    let moved = text.replace("programs.sock", "new/one/programs.sock");
    fs::write(folder.file(), &moved).unwrap();
    let guard = folder.run();
    let mut command = Command::new(program);
    let said_of_it = folder.path("said-moved");
    let out = fs::File::create(&said_of_it).unwrap();
    command
        .args(["4722", "20"])
        .arg(folder.path("new/one/programs.sock"));
    command
        .stdout(out.try_clone().unwrap())
        .stderr(out)
        .uid(NOBODY)
        .gid(GROUP);
    let member = Process::spawn(command, &said_of_it);
    wait_until("the registration", || member.said().contains("registered"));
    guard.interrupt();
    member.kill();
    let nobodys = moved.replace(&GROUP.to_string(), "no-such-group");
    fs::write(folder.file(), nobodys).unwrap();
    let (told, _, code) = said(&["guard", "check", &folder.file()]);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("no group 'no-such-group'"), "{told}");
}

/// What status calls this process.
fn this_program() -> String {
    let name = fs::read_to_string("/proc/self/comm").unwrap();
    format!("{}[{}]", name.trim_end(), std::process::id())
}

pub fn who_is_not_in_the_group_may_not_register_and_without_one_nobody_may() {
    with_hosts(|hosts| hosts.at("left", access));
}

fn access() {
    let folder = folder(&GROUP.to_string());
    let program = receiver(&folder);
    // A folder that is its user's alone.
    fs::set_permissions(folder.path(""), fs::Permissions::from_mode(0o700)).unwrap();
    for command in ["check", "run"] {
        let (told, errors, code) = said(&["guard", command, &folder.file()]);
        assert_eq!(code, Some(1), "{told}{errors}");
        for part in [&format!("members of group {GROUP}"), "chmod g+x"] {
            assert!(format!("{told}{errors}").contains(part), "{told}{errors}");
        }
    }
    fs::set_permissions(folder.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let guard = folder.run();
    let stranger = receive(&program, &folder, "4720", Some((NOBODY, NOBODY)));
    wait_until("the refusal", || {
        stranger.said().contains("this user may not register")
    });
    assert_eq!(stranger.wait().code(), Some(2));
    let member = receive(&program, &folder, "4721", Some((NOBODY, GROUP)));
    wait_until("the registration", || member.said().contains("registered"));
    let flow = flow_of(&folder, member.pid()).expect("a flow");
    assert_eq!(flow["program"]["user"], NOBODY);
    guard.interrupt();
    member.kill();
    in_a_folder_that_is_made(&folder, &program);

    let mut file = fs::File::create(folder.file()).unwrap();
    file.write_all(FILE.as_bytes()).unwrap();
    let guard = folder.run();
    assert_eq!(status(&folder)["registration"]["allowed"], false);
    assert!(guard.said().contains("programs may not register"));
    assert!(!folder.path("programs.sock").exists());
    guard.interrupt();
}
