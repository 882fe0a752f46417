//! Devices of field drivers on a pair: the real program as separate processes on loopback addresses. Program and driver are
//! this file's binary, started again by the nodes; the devices are threads here.

#[path = "support/mod.rs"]
mod support;

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bumpless_field_driver::{Driver, Order, Outcome, Quality, Value as Found, now};
use bumpless_program::{Cycle, Program, layout, run, state};
use serde_json::Value;
use support::plan::Plan;
use support::process::said;
use support::site::Site;
use support::{wait_for, wait_until};

const PERIOD_MS: u64 = 50;

state! {
    /// What the program remembers.
    pub struct Memory { count: u64 }
}

/// Counts, and passes on what the devices said.
struct Count;

impl Program for Count {
    type State = Memory;
    const INPUTS: usize = 3;
    const OUTPUTS: usize = 2;

    fn step(_: Cycle, _: &[f64], outputs: &mut [f64], memory: &mut Memory) -> Result<(), String> {
        memory.count += 1;
        outputs.fill(memory.count as f64);
        Ok(())
    }
}

/// The driver: what it is ordered to do goes as lines of text to the device, with its process number.
fn drive() {
    let (mut driver, setup) = Driver::attach().expect("a node");
    let address: SocketAddr = setup.address.parse().expect("an address");
    driver.ready("counting 1.0").expect("a node");
    let mut device: Option<BufReader<TcpStream>> = None;
    while let Ok(Some(order)) = driver.order() {
        let answers = driver.answers();
        let (line, until) = match &order {
            Order::Read { until, .. } => ("read".to_owned(), *until),
            Order::Write {
                until,
                epoch,
                cycle,
                values,
            } => (format!("write {epoch} {cycle} {}", values[0]), *until),
            Order::Probe { until } => ("probe".to_owned(), *until),
            _ => return,
        };
        let said = ask(&mut device, address, &line, until);
        let outcome = said.as_ref().err().copied().unwrap_or(Outcome::Done);
        let value = Found {
            quality: Quality::Good,
            status: 0,
            taken_at: now(),
            value: said.unwrap_or_default(),
        };
        let answered = match order {
            Order::Read { due, .. } => {
                let count = due.iter().filter(|due| **due).count();
                answers.values(outcome, &vec![value; count])
            }
            Order::Write { .. } => answers.written(outcome),
            _ => answers.state(outcome),
        };
        if answered.is_err() {
            return;
        }
    }
}

fn ask(
    device: &mut Option<BufReader<TcpStream>>,
    address: SocketAddr,
    line: &str,
    until: u64,
) -> Result<f64, Outcome> {
    if device.is_none() {
        let stream = TcpStream::connect(address).map_err(|_| Outcome::NotConnected)?;
        *device = Some(BufReader::new(stream));
    }
    let left = until.saturating_sub(now());
    if left == 0 {
        return Err(Outcome::Late);
    }
    let stream = device.as_mut().expect("just made");
    // In one piece: the rest of a line would wait for the acknowledgement of its beginning.
    let line = format!("{} {line}\n", std::process::id());
    let mut answer = String::new();
    let asked = { stream.get_ref() }.set_read_timeout(Some(Duration::from_nanos(left)));
    let asked = asked.and_then(|()| stream.get_mut().write_all(line.as_bytes()));
    match asked.and_then(|()| stream.read_line(&mut answer)) {
        Ok(1..) => answer.trim().parse().map_err(|_| Outcome::NoAnswer),
        _ => {
            *device = None;
            Err(Outcome::NoAnswer)
        }
    }
}

/// What a device was told: by which process, and the words.
type Log = Arc<Mutex<Vec<(u32, Vec<String>)>>>;

/// A device at `address` that keeps all that it is told.
fn device(address: SocketAddr) -> Log {
    let log = Log::default();
    let listener = TcpListener::bind(address).expect("a free address");
    let kept = Arc::clone(&log);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let kept = Arc::clone(&kept);
            thread::spawn(move || {
                let mut reader = BufReader::new(stream);
                let mut line = String::new();
                while matches!(reader.read_line(&mut line), Ok(1..)) {
                    let mut words = line.split_whitespace().map(str::to_owned);
                    let pid = words.next().and_then(|pid| pid.parse().ok()).unwrap_or(0);
                    kept.lock().unwrap().push((pid, words.collect()));
                    line.clear();
                    if reader.get_mut().write_all(b"4.5\n").is_err() {
                        return;
                    }
                }
            });
        }
    });
    log
}

/// Epoch, cycle and value of each write.
fn writes(log: &Log) -> Vec<(u64, u64, f64)> {
    let log = log.lock().unwrap();
    let writes = log.iter().filter(|(_, words)| words[0] == "write");
    let number = |text: &String| text.parse::<f64>().unwrap();
    writes
        .map(|(_, words)| {
            (
                number(&words[1]) as u64,
                number(&words[2]) as u64,
                number(&words[3]),
            )
        })
        .collect()
}

fn await_writes(log: &Log, more: usize) {
    let before = writes(log).len();
    wait_until("writes", || writes(log).len() >= before + more);
}

/// A pair with a device that the program cannot do without, and one that it can.
fn site() -> (Site, Log, Log) {
    let mut plan = Plan::pair(2);
    let furnace = plan.plant;
    let scale = SocketAddr::new(furnace.ip(), furnace.port() + 1);
    let mut text = format!(
        "[[application]]\nname = \"count\"\ngroup = \"tank\"\nkind = \"process\"\nchannel = 1\n\
         period_ms = {PERIOD_MS}\nfile = \"program\"\narguments = [\"play\"]\nstate_max = 4096\nexecute_limit_ms = 20\n\n\
         [application.field]\ntimeout_ms = 20\n\n"
    );
    for (name, address, required) in [("furnace", furnace, true), ("scale", scale, false)] {
        text += &format!(
            "[[application.field.device]]\nname = \"{name}\"\nkind = \"driver\"\naddress = \"{address}\"\n\
             driver = \"./program\"\narguments = [\"drive\"]\nrequired = {required}\n\n\
             [[application.input]]\nname = \"{name}\"\ndevice = \"{name}\"\npoint = \"level\"\n\n\
             [[application.output]]\nname = \"{name}-valve\"\ndevice = \"{name}\"\npoint = \"valve\"\n\n"
        );
    }
    text += "[[application.input]]\nname = \"there\"\ndevice = \"scale\"\narea = \"answers\"\n\n";
    plan.applications.push(text);
    let mut site = Site::new(plan);
    let file = site.path("program");
    fs::copy(env::current_exe().unwrap(), &file).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let logs = (device(furnace), device(scale));
    site.start_witnesses();
    (site, logs.0, logs.1)
}

/// The device at position `at` as the status of `node` shows it.
fn shown(site: &Site, node: &str, at: usize) -> Option<Value> {
    let status = site.status(node)?;
    Some(status["applications"][0]["field"]["devices"][at].clone())
}

fn driver_pid(site: &Site, node: &str, at: usize) -> u32 {
    let pid = wait_for("a driver that runs", || {
        shown(site, node, at)?["driver"]["pid"].as_u64()
    });
    pid as u32
}

fn no_output_is_older_than_the_last_through_kills_of_the_primary() {
    let (mut site, furnace, scale) = site();
    site.start("left");
    site.start("right");
    let (mut primary, mut backup, mut epoch) = site.await_redundant("tank");
    for _ in 0..3 {
        await_writes(&furnace, 5);
        site.kill(&primary);
        let higher = site.await_primary(&backup, "tank");
        assert!(higher > epoch);
        wait_until("a write of the next primary", || {
            writes(&furnace).last().is_some_and(|last| last.0 == higher)
        });
        site.start(&primary);
        (primary, backup, epoch) = site.await_redundant("tank");
    }
    await_writes(&furnace, 5);
    for log in [&furnace, &scale] {
        let all = writes(log);
        let stamps: Vec<_> = all
            .iter()
            .map(|(epoch, cycle, _)| (*epoch, *cycle))
            .collect();
        assert!(stamps.is_sorted(), "{stamps:?}");
        assert!(
            all.iter().all(|(_, cycle, value)| *value == *cycle as f64),
            "{all:?}"
        );
        let begun_anew = all.windows(2).any(|pair| pair[1].1 < pair[0].1);
        assert!(!begun_anew && all.last().is_some_and(|last| last.1 > 20));
    }
}

fn the_driver_of_a_backup_writes_nothing_and_reads_no_inputs() {
    let (mut site, furnace, _scale) = site();
    site.start("left");
    site.start("right");
    let (_, backup, _) = site.await_redundant("tank");
    let pid = driver_pid(&site, &backup, 0);
    let of_backup = || {
        let log = furnace.lock().unwrap();
        let own = log.iter().filter(|(by, _)| *by == pid);
        own.map(|(_, words)| words[0].clone()).collect::<Vec<_>>()
    };
    wait_until("probes of the backup", || of_backup().len() > 10);
    let words = of_backup();
    assert!(words.iter().all(|word| word == "probe"), "{words:?}");
}

fn a_driver_that_stands_still_delays_nobody_is_named_and_started_again() {
    let (mut site, furnace, scale) = site();
    site.start("left");
    site.await_primary("left", "tank");
    await_writes(&furnace, 5);
    let device = wait_for("its driver", || {
        shown(&site, "left", 1).filter(|it| it["driver"]["pid"].is_u64() && it["answers"] == true)
    });
    assert_eq!(
        (&device["kind"], &device["security"]),
        (&"driver".into(), &Value::Null)
    );
    assert_eq!(device["driver"]["what"], "counting 1.0");
    let weak = site.status("left").unwrap()["weaknesses"].to_string();
    for part in ["device \\\"furnace\\\"", "compares no epochs"] {
        assert!(weak.contains(part), "{part}: {weak}");
    }
    let pid = driver_pid(&site, "left", 1);
    // SAFETY: a plain system call without pointers; the process is a child of a node that this test started.
    unsafe { libc::kill(pid as i32, libc::SIGSTOP) };
    wait_until("a driver that is said not to answer", || {
        shown(&site, "left", 1).is_some_and(|it| it["answers"] == false)
    });
    // The other device is served in each cycle.
    await_writes(&furnace, 10);
    let told = site.await_event("left", "field_driver", |_| true);
    assert!(told["cause"].as_str().unwrap().contains("scale"), "{told}");
    assert!(
        told["cause"].as_str().unwrap().contains("has not answered"),
        "{told}"
    );
    wait_until("another driver that answers", || {
        shown(&site, "left", 1).is_some_and(|it| {
            it["answers"] == true
                && it["driver"]["pid"]
                    .as_u64()
                    .is_some_and(|it| it != u64::from(pid))
        })
    });
    await_writes(&scale, 3);
    let device = shown(&site, "left", 1).unwrap();
    assert!(device["driver"]["starts"].as_u64() >= Some(2), "{device}");
    assert!(device["driver"]["failures"].as_u64() >= Some(1), "{device}");
    assert!(site.counter("left", "field_driver_failures") >= 1);
    // SAFETY: as above.
    let found = unsafe { libc::kill(pid as i32, 0) };
    assert_ne!(found, 0, "the one that stood still is gone");
    let stamps: Vec<_> = writes(&scale).iter().map(|it| (it.0, it.1)).collect();
    assert!(stamps.is_sorted(), "{stamps:?}");
}

/// How often `node` has logged that a driver does not run.
fn gone(site: &Site, node: &str) -> usize {
    let log = fs::read_to_string(site.path(&format!("{node}.jsonl"))).unwrap_or_default();
    log.matches("its driver does not run").count()
}

fn a_change_keeps_drivers_and_waits_for_those_that_differ() {
    let (mut site, furnace, _scale) = site();
    site.start("left");
    site.start("right");
    site.await_redundant("tank");
    await_writes(&furnace, 5);
    let both = ["left", "right"];
    let pids = || both.map(|node| [0, 1].map(|at| driver_pid(&site, node, at)));
    let before = pids();
    let missed = both.map(|node| gone(&site, node));
    let mut text = fs::read_to_string(site.config()).unwrap();
    let mut change = |from: &str, to: &str| {
        assert!(text.contains(from), "{text}");
        text = text.replacen(from, to, 1);
        fs::write(site.path("next.toml"), &text).unwrap();
        let files = [site.config(), site.path("next.toml")].map(|it| it.display().to_string());
        let (stdout, stderr, status) = said(&["apply", &files[0], &files[1]]);
        assert_eq!(status, Some(0), "{stdout}{stderr}");
        await_writes(&furnace, 5);
    };
    change("timeout_ms = 20", "timeout_ms = 21");
    assert_eq!(pids(), before, "nothing of theirs has changed");
    assert_eq!(
        both.map(|node| gone(&site, node)),
        missed,
        "and no call has missed them"
    );
    change(
        "arguments = [\"drive\"]",
        "arguments = [\"drive\", \"again\"]",
    );
    let after = pids();
    for (after, before) in after.iter().zip(before) {
        assert!(
            after[0] != before[0] && after[1] == before[1],
            "{after:?} {before:?}"
        );
    }
    assert_eq!(
        both.map(|node| gone(&site, node)),
        missed,
        "it was ready before it was asked"
    );
    let stamps: Vec<_> = writes(&furnace).iter().map(|it| (it.0, it.1)).collect();
    assert!(stamps.is_sorted(), "{stamps:?}");
}

fn a_driver_that_cannot_be_had_is_refused_with_all_else_that_is_wrong() {
    let (site, ..) = site();
    let text = fs::read_to_string(site.config()).unwrap();
    let wrong = text
        .replacen("driver = \"./program\"", "driver = \"./nobody\"", 1)
        .replacen("point = \"valve\"\n", "", 1);
    fs::write(site.config(), wrong).unwrap();
    let config = site.config().display().to_string();
    let (stdout, stderr, status) = said(&["check", &config]);
    assert_eq!(status, Some(2), "{stdout}{stderr}");
    for part in ["nobody cannot be read", "point", "is missing"] {
        assert!(stderr.contains(part), "{part}: {stdout}{stderr}");
    }
}

/// A test with its name.
macro_rules! named {
    ($($test:ident),+ $(,)?) => {
        [$((stringify!($test), $test as fn())),+]
    };
}

fn main() -> ExitCode {
    let is = |word: &str| env::args().nth(1).is_some_and(|it| it == word);
    if env::var_os(layout::VARIABLE).is_some() {
        return run::<Count>();
    }
    if is("drive") {
        drive();
        return ExitCode::SUCCESS;
    }
    bumpless_testing::run(&named![
        no_output_is_older_than_the_last_through_kills_of_the_primary,
        the_driver_of_a_backup_writes_nothing_and_reads_no_inputs,
        a_driver_that_stands_still_delays_nobody_is_named_and_started_again,
        a_change_keeps_drivers_and_waits_for_those_that_differ,
        a_driver_that_cannot_be_had_is_refused_with_all_else_that_is_wrong,
    ])
}
