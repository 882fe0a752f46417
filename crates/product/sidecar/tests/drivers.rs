//! Field drivers are started, live with their node, and leave nothing behind (J-20 to J-27). The drivers are this file's
//! binary, started again.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use bumpless_controller::{DriverFailures, DriverFault, DriverLink};
use bumpless_field_driver::message::{self, MESSAGE_MAX, Said};
use bumpless_field_driver::{
    Direction, Driver as Own, Fault, Order, Outcome, Point, Quality, Value, ValueKind, now,
};
use bumpless_sidecar::{Driver, DriverBoard, DriverOrder, DriverState};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvFlags, SendFlags};

/// Nothing is judged by how long it took; this only ends what would never come.
const PATIENCE: Duration = Duration::from_secs(60);
/// What makes this binary a host that is killed.
const HOST: &str = "BUMPLESS_TEST_HOST";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().collect();
    if arguments.get(1).is_some_and(|it| it == "drive") {
        drive(&arguments[2], Path::new(&arguments[3]));
        return ExitCode::SUCCESS;
    }
    if env::var_os(HOST).is_some() {
        host();
        return ExitCode::SUCCESS;
    }
    bumpless_testing::run(&[
        (
            "a_driver_is_told_all_that_it_is_for",
            a_driver_is_told_all_that_it_is_for,
        ),
        (
            "the_example_reads_and_writes_a_device_that_takes_lines_of_text",
            the_example_reads_and_writes_a_device_that_takes_lines_of_text,
        ),
        (
            "a_driver_that_ends_is_started_again_ever_more_seldom",
            a_driver_that_ends_is_started_again_ever_more_seldom,
        ),
        (
            "a_driver_that_is_given_up_is_ended_and_another_one_begins",
            a_driver_that_is_given_up_is_ended_and_another_one_begins,
        ),
        (
            "a_driver_that_lets_go_and_lives_on_is_ended_and_begins_anew",
            a_driver_that_lets_go_and_lives_on_is_ended_and_begins_anew,
        ),
        (
            "an_earlier_process_that_is_given_up_harms_no_later_one",
            an_earlier_process_that_is_given_up_harms_no_later_one,
        ),
        (
            "an_heir_begins_only_if_nobody_hands_over",
            an_heir_begins_only_if_nobody_hands_over,
        ),
        (
            "a_driver_that_does_not_get_ready_says_why",
            a_driver_that_does_not_get_ready_says_why,
        ),
        (
            "a_driver_ends_with_its_handle_and_leaves_nothing",
            a_driver_ends_with_its_handle_and_leaves_nothing,
        ),
        (
            "a_driver_ends_with_a_node_that_is_killed_even_if_it_stands",
            a_driver_ends_with_a_node_that_is_killed_even_if_it_stands,
        ),
    ])
}

/// The driver, in the way that `how` says; what it does goes to `log`.
fn drive(how: &str, log: &Path) {
    let tell = |line: &str| {
        let log = fs::OpenOptions::new().create(true).append(true).open(log);
        log.and_then(|mut log| writeln!(log, "{line}")).unwrap();
    };
    tell(&format!("started {} {}", now(), std::process::id()));
    if how == "silent" {
        thread::sleep(PATIENCE * 10);
    }
    let (mut driver, setup) = Own::attach().unwrap();
    tell(&format!("{setup:?}"));
    match how {
        "refuses" => return driver.refuse("the furnace is cold; light it").unwrap(),
        "old" => {
            let other = [7, 0x81, 0, 0, 0, 0, 0, 1, 0, 0];
            rustix::net::send(rustix::stdio::stdin(), &other, SendFlags::empty()).unwrap();
            thread::sleep(PATIENCE);
        }
        "breaks" => std::process::exit(3),
        "forks" => {
            // A process of its own that would outlive it.
            let child = Command::new("sleep")
                .arg("600")
                .stdin(Stdio::null())
                .spawn();
            tell(&format!("child {}", child.unwrap().id()));
        }
        _ => {}
    }
    driver.ready("test 1.0").unwrap();
    while let Some(order) = driver.order().unwrap() {
        match order {
            Order::Read { due, .. } => {
                let value = Value {
                    quality: bumpless_field_driver::Quality::Good,
                    status: 0,
                    taken_at: now(),
                    value: 4.0,
                };
                let count = due.iter().filter(|due| **due).count();
                driver
                    .answers()
                    .values(Outcome::Done, &vec![value; count])
                    .unwrap();
            }
            Order::Write { .. } if how == "shuts" => {
                let own = rustix::stdio::stdin();
                rustix::net::shutdown(own, rustix::net::Shutdown::Both).unwrap();
                thread::sleep(PATIENCE * 10);
            }
            Order::Write { .. } => driver.answers().written(Outcome::Done).unwrap(),
            _ => std::process::exit(4),
        }
    }
}

/// What a driver is for that does as `how` says, with its log in `folder`.
fn order(how: &str, folder: &Path) -> DriverOrder {
    let exe = env::current_exe().unwrap();
    let mut arguments = vec![
        "drive".into(),
        how.into(),
        log_in(folder).display().to_string(),
    ];
    // A program in between that stays.
    let program = match how {
        "wrapped" => {
            let script = "\"$0\" \"$@\" <&0; exit $?".into();
            arguments.splice(0..0, ["-c".into(), script, exe.display().to_string()]);
            "/bin/sh".into()
        }
        _ => exe,
    };
    let point = |direction, kind, name: &str| Point {
        direction,
        kind,
        name: name.into(),
    };
    DriverOrder {
        program,
        arguments,
        device: "furnace".into(),
        address: "192.0.2.1:4840".into(),
        options: vec![("policy".into(), "None".into())],
        points: vec![
            point(Direction::Input, ValueKind::F32, "level"),
            point(Direction::Output, ValueKind::I16, "valve"),
            point(Direction::Input, ValueKind::Bool, "open"),
        ],
    }
}

struct Site {
    folder: tempfile::TempDir,
    board: DriverBoard,
    driver: Option<Driver>,
}

impl Site {
    fn begin(how: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let order = order(how, folder.path());
        let board = DriverBoard::default();
        let driver = Driver::begin(order, board.clone()).unwrap();
        Self {
            folder,
            board,
            driver: Some(driver),
        }
    }

    fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(log_in(self.folder.path())).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn link(&mut self) -> &mut Driver {
        self.driver.as_mut().unwrap()
    }

    fn until_ready(&mut self) -> OwnedFd {
        until("a driver that is ready", || self.link().take())
    }

    fn state(&self, what: &str, holds: impl Fn(&DriverState) -> bool) -> DriverState {
        until(what, || Some(self.board.look()).filter(&holds))
    }
}

fn log_in(folder: &Path) -> PathBuf {
    folder.join("log")
}

fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(it) = found() {
            return it;
        }
        assert!(began.elapsed() < PATIENCE, "never came: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Whether the process is there, as one that is not a zombie.
fn lives(id: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}

/// The process numbers in the lines of `log` that begin with `word`.
fn ids(log: &[String], word: &str) -> Vec<u32> {
    let lines = log.iter().filter(|line| line.starts_with(word));
    lines
        .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
        .collect()
}

fn ask(socket: &OwnedFd, put: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut buffer = Vec::new();
    put(&mut buffer);
    rustix::net::send(socket, &buffer, SendFlags::NOSIGNAL).unwrap();
    let mut answered = [PollFd::new(socket, PollFlags::IN)];
    poll(&mut answered, None).unwrap();
    buffer.resize(MESSAGE_MAX, 0);
    let (_, len) = rustix::net::recv(socket, &mut buffer[..], RecvFlags::empty()).unwrap();
    buffer.truncate(len);
    buffer
}

fn a_driver_is_told_all_that_it_is_for() {
    let mut site = Site::begin("sound");
    let socket = site.until_ready();
    let state = site.state("its process", |state| state.pid.is_some());
    assert_eq!(
        (state.what.as_str(), state.starts, state.failures),
        ("test 1.0", 1, 0)
    );
    let told = &site.log()[1];
    for part in [
        "device: \"furnace\"",
        "address: \"192.0.2.1:4840\"",
        "options: [(\"policy\", \"None\")]",
        "inputs: [Point { direction: Input, kind: F32, name: \"level\" }, Point { direction: Input, kind: Bool, name: \
         \"open\" }]",
        "outputs: [Point { direction: Output, kind: I16, name: \"valve\" }]",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let due = [true, false];
    let answer = ask(&socket, |b| message::put_read(b, 9, now(), due.into_iter()));
    let (9, Said::Values(Outcome::Done, values)) = Said::parse(&answer).unwrap() else {
        panic!("{answer:?}");
    };
    assert_eq!(values.iter().map(|it| it.value).collect::<Vec<_>>(), [4.0]);
    assert!(site.link().failures().is_none());
}

/// A device that takes lines of text: `level` is 2.5, `open` answers no number, and what is set is told.
fn text_device() -> (SocketAddr, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (set, told) = mpsc::channel();
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            for line in lines.map_while(Result::ok) {
                let answer = match line.split(' ').collect::<Vec<_>>()[..] {
                    ["get", "level"] => "2.5",
                    ["get", "time"] => "0",
                    ["set", "valve", "9"] => "no",
                    ["set", ..] => "ok",
                    _ => "what?",
                };
                let _ = set.send(line);
                let _ = writeln!(stream, "{answer}");
            }
        }
    });
    (address, told)
}

fn the_example_reads_and_writes_a_device_that_takes_lines_of_text() {
    let (address, told) = text_device();
    let folder = tempfile::tempdir().unwrap();
    let board = DriverBoard::default();
    let exe = env::current_exe().unwrap();
    let target = exe.parent().and_then(Path::parent).unwrap();
    let of_the_example = DriverOrder {
        program: target.join("examples/text-driver"),
        arguments: Vec::new(),
        address: address.to_string(),
        options: Vec::new(),
        ..order("sound", folder.path())
    };
    let mut driver = Driver::begin(of_the_example, board.clone()).unwrap();
    let socket = until("a driver that is ready", || driver.take());
    assert!(board.look().what.starts_with("text-driver "));
    let soon = || now() + PATIENCE.as_nanos() as u64;
    until("a device that answers", || {
        let answer = ask(&socket, |b| message::put_probe(b, 1, soon()));
        (Said::parse(&answer) == Ok((1, Said::State(Outcome::Done)))).then_some(())
    });
    let due = [true, true];
    let answer = ask(&socket, |b| {
        message::put_read(b, 2, soon(), due.into_iter())
    });
    let (2, Said::Values(Outcome::Done, values)) = Said::parse(&answer).unwrap() else {
        panic!("{answer:?}");
    };
    let values: Vec<_> = values.iter().map(|it| (it.quality, it.value)).collect();
    assert_eq!(values, [(Quality::Good, 2.5), (Quality::Bad, 0.0)]);
    for (value, by, outcome) in [
        (4.0, soon(), Outcome::Done),
        (9.0, soon(), Outcome::Refused(1)),
        (5.0, 1, Outcome::Late),
    ] {
        let answer = ask(&socket, |b| {
            message::put_write(b, 3, (by, 1, 1), [value].into_iter())
        });
        assert_eq!(Said::parse(&answer), Ok((3, Said::Written(outcome))));
    }
    let set: Vec<_> = told
        .try_iter()
        .filter(|line| line.starts_with("set"))
        .collect();
    assert_eq!(
        set,
        ["set valve 4", "set valve 9"],
        "what is late is not sent"
    );
}

fn a_driver_that_ends_is_started_again_ever_more_seldom() {
    let mut site = Site::begin("breaks");
    let times = until("four starts", || {
        let log = site.log();
        let times: Vec<u64> = log
            .iter()
            .filter_map(|line| {
                line.strip_prefix("started ")?
                    .split(' ')
                    .next()?
                    .parse()
                    .ok()
            })
            .collect();
        (times.len() >= 4).then_some(times)
    });
    for (at, least) in [100, 200, 400].into_iter().enumerate() {
        let gap = (times[at + 1] - times[at]) / 1_000_000;
        assert!(gap >= least, "start {}: after {gap} ms", at + 1);
    }
    let state = site.board.look();
    let (words, _) = state.last_failure.unwrap();
    for part in [
        "furnace (192.0.2.1:4840)",
        "exit status 3",
        "started again in",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    let told = until("the failures", || site.link().failures());
    assert!(told.why.contains("exit status 3"), "{told:?}");
    // None is lost, however seldom they are asked for.
    assert!(told.count >= 3, "{told:?}");
    until("one more", || site.link().failures());
    assert!(site.link().take().is_none());
}

fn a_driver_that_is_given_up_is_ended_and_another_one_begins() {
    let mut site = Site::begin("sound");
    let first = site.until_ready();
    let pid = site.board.look().pid.unwrap();
    site.link().give_up(DriverFault::Said(Fault::Malformed));
    let second = site.until_ready();
    assert!(!lives(pid), "the first one is still there");
    let state = site.state("the second one", |state| state.pid.is_some());
    assert_eq!((state.starts, state.failures), (2, 1));
    let (words, _) = state.last_failure.unwrap();
    assert!(words.contains("it said what is no message"), "{words}");
    let answer = ask(&second, |b| {
        message::put_write(b, 3, (now(), 1, 1), [1.0].into_iter())
    });
    assert_eq!(Said::parse(&answer), Ok((3, Said::Written(Outcome::Done))));
    drop(first);
}

fn a_driver_that_lets_go_and_lives_on_is_ended_and_begins_anew() {
    let mut site = Site::begin("shuts");
    let socket = site.until_ready();
    let pid = site.board.look().pid.unwrap();
    let nothing = ask(&socket, |b| {
        message::put_write(b, 3, (now(), 1, 1), [1.0].into_iter())
    });
    assert!(nothing.is_empty());
    site.link().give_up(DriverFault::LetGo);
    site.until_ready();
    assert!(!lives(pid), "the first one is still there");
    let (words, _) = site.board.look().last_failure.unwrap();
    assert!(words.contains("let go of the connection"), "{words}");
}

fn an_earlier_process_that_is_given_up_harms_no_later_one() {
    let mut site = Site::begin("sound");
    drop(site.until_ready());
    // The driver ends by itself, and another one is ready before the one that gives orders looks.
    let state = site.state("the second one", |state| {
        state.starts == 2 && state.pid.is_some()
    });
    site.link().give_up(DriverFault::LetGo);
    let socket = site.until_ready();
    let answer = ask(&socket, |b| {
        message::put_write(b, 3, (now(), 1, 1), [1.0].into_iter())
    });
    assert_eq!(Said::parse(&answer), Ok((3, Said::Written(Outcome::Done))));
    assert_eq!(site.board.look().pid, state.pid);
    let told = site.link().failures();
    assert!(
        matches!(told, Some(DriverFailures { count: 1, .. })),
        "{told:?}"
    );
}

fn an_heir_begins_only_if_nobody_hands_over() {
    let mut site = Site::begin("sound");
    let _socket = site.until_ready();
    let order = order("sound", site.folder.path());
    let number = site.link().number();
    let heir = Driver::heir(number, order.clone(), site.board.clone()).unwrap();
    assert_eq!(heir.heir_to(), Some(number));
    drop(heir);
    assert_eq!(site.board.look().starts, 1);
    let mut heir = Driver::heir(number, order, site.board.clone()).unwrap();
    until("a driver of its own", || heir.take());
    assert_eq!(heir.heir_to(), None);
    assert_eq!(site.board.look().starts, 2);
}

fn a_driver_that_does_not_get_ready_says_why() {
    for (how, why) in [
        ("refuses", "it refuses: the furnace is cold; light it"),
        ("old", "version 7 of the messages, where this is version 1"),
        ("silent", "it was not ready 5000 ms after its start"),
    ] {
        let mut site = Site::begin(how);
        let state = site.state(why, |state| state.failures > 0);
        let (words, _) = state.last_failure.unwrap();
        assert!(words.contains(why), "{why}: {words}");
        assert!(site.link().take().is_none());
    }
    let order = DriverOrder {
        program: "/nowhere/driver".into(),
        arguments: Vec::new(),
        device: "furnace".into(),
        address: "192.0.2.1:4840".into(),
        options: Vec::new(),
        points: Vec::new(),
    };
    let board = DriverBoard::default();
    let _driver = Driver::begin(order, board.clone()).unwrap();
    let words = until("a failure", || board.look().last_failure).0;
    assert!(words.contains("cannot be started"), "{words}");
}

fn a_driver_ends_with_its_handle_and_leaves_nothing() {
    for how in ["sound", "forks", "breaks", "silent"] {
        let mut site = Site::begin(how);
        if matches!(how, "sound" | "forks") {
            drop(site.until_ready());
        }
        until("its start", || (!site.log().is_empty()).then_some(()));
        site.driver = None;
        let log = site.log();
        for id in ids(&log, "started").into_iter().chain(ids(&log, "child")) {
            until("its end", || (!lives(id)).then_some(()));
        }
        assert_eq!(site.board.look().pid, None);
    }
}

/// What [`a_driver_ends_with_a_node_that_is_killed_even_if_it_stands`] kills.
fn host() {
    let mut site = Site::begin(&env::var(HOST).unwrap());
    let _socket = site.until_ready();
    println!("{}", ids(&site.log(), "started")[0]);
    thread::sleep(PATIENCE);
}

fn a_driver_ends_with_a_node_that_is_killed_even_if_it_stands() {
    for how in ["sound", "wrapped"] {
        end_with_a_killed_node(how);
    }
}

fn end_with_a_killed_node(how: &str) {
    use std::io::BufRead;
    let mut host = Command::new(env::current_exe().unwrap())
        .env(HOST, how)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut said = std::io::BufReader::new(host.stdout.take().unwrap());
    said.read_line(&mut line).unwrap();
    let driver: u32 = line.trim().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(driver.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    assert!(lives(driver));
    host.kill().unwrap();
    host.wait().unwrap();
    until("the driver's end", || (!lives(driver)).then_some(()));
}
