//! What a node tells of itself in log and status: a pair in one process, on loopback.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bumpless_base::LinkId;
use bumpless_config::Config;
use bumpless_net_linux::{Link, ReceiveOutcome, Segment, SendOutcome};
use bumpless_node::control::{Request, request};
use bumpless_node::{OpenLink, OpenedLink, RunError, RunOptions, open_udp, run};
use bumpless_wire::{Packet, parse};
use serde_json::Value;

/// An address of loopback that belongs to a test of this process.
fn address(last: u8) -> SocketAddr {
    let id = std::process::id();
    SocketAddr::from((
        [127, (id / 250 % 20 + 240) as u8, (id % 250) as u8, last],
        4700,
    ))
}

/// The configuration of a pair whose addresses end in `first` and the numbers after it, and its file.
fn configuration(directory: &Path, first: u8) -> (Config, PathBuf) {
    let node = |name: &str, last: u8| {
        format!(
            "[[node]]\nname = \"{name}\"\naddresses = {{ A = \"{}\", B = \"{}\" }}\ncontrol = '{}'\n",
            address(last),
            address(last + 10),
            directory.join(format!("{name}.sock")).display(),
        )
    };
    let text = format!(
        "[pair]\nname = \"telling\"\n[security]\npackets = \"open\"\n[timing]\nheartbeat_ms = 5\nlease_ms = 100\n\
         [[network]]\nname = \"A\"\nbandwidth_mbit = 1000\n[[network]]\nname = \"B\"\nbandwidth_mbit = 1000\n\
         {}{}[[group]]\nname = \"g\"\nnodes = [\"left\", \"right\"]\nwithout_reference = true\n\
         [[application]]\nname = \"a\"\ngroup = \"g\"\nkind = \"synthetic\"\nchannel = 1\nperiod_ms = 50\n\
         size = \"100 B\"\nchanged_share = 1.0\n",
        node("left", first),
        node("right", first + 1),
    );
    let file = directory.join("telling.toml");
    std::fs::write(&file, &text).unwrap();
    (parsed(&text), file)
}

fn parsed(text: &str) -> Config {
    Config::parse(text, "telling.toml").unwrap_or_else(|problems| panic!("{problems:#?}"))
}

fn options(log: PathBuf, stop: Arc<AtomicBool>) -> RunOptions {
    RunOptions {
        config_file: None,
        log_file: Some(log),
        log_stdout: None,
        log_transfers: false,
        log_outputs: false,
        keeper: None,
        stop,
    }
}

/// A node whose second network says that its address is not on this machine.
fn start(
    (config, file): &(Config, PathBuf),
    name: &str,
    stop: &Arc<AtomicBool>,
) -> (PathBuf, JoinHandle<()>) {
    let node = config.node(name).unwrap();
    let log = file.with_file_name(format!("{name}.jsonl"));
    let (config, stop) = (config.clone(), Arc::clone(stop));
    let (file, log_file) = (file.clone(), log.clone());
    let node = thread::spawn(move || {
        let options = RunOptions {
            config_file: Some(file),
            ..options(log_file, stop)
        };
        run(&config, node, options, &mut |link, settings| {
            let opened = open_udp(link, settings)?;
            Ok(OpenedLink {
                present: link == LinkId(0),
                ..opened
            })
        })
        .unwrap();
    });
    (log, node)
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..3000 {
        if let Some(found) = look() {
            return found;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("not within 30 s: {what}");
}

fn events(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The session that a node's heartbeats show.
fn session_on_the_wire() -> String {
    let partner = UdpSocket::bind(address(2)).unwrap();
    let mut bytes = [0; 2048];
    let length = partner.recv(&mut bytes).unwrap();
    match parse(&bytes[..length]) {
        Ok(Packet::Heartbeat(heartbeat)) => format!("{:016x}", heartbeat.session),
        other => panic!("a heartbeat was expected: {other:?}"),
    }
}

#[test]
fn log_and_status_tell_the_wires_session_and_what_weakens_the_node() {
    let directory = tempfile::tempdir().unwrap();
    let config = configuration(directory.path(), 1);
    let stop = Arc::new(AtomicBool::new(false));
    let (log, left) = start(&config, "left", &stop);
    let session = session_on_the_wire();
    let socket = directory.path().join("left.sock");
    let status = || request(&socket, &Request::Status).ok();
    let first = wait_for("status", status);
    assert_eq!(first["session"], session.as_str());
    wait_for("drops are asked for", || {
        status().filter(|status| status["links"][1]["receive_drops"] == 0)
    });
    // Looked at together, since one may go between two looks.
    let (started, causes, weaknesses) = wait_for("every weakness is told", || {
        let weaknesses = status()?["weaknesses"].as_array()?.clone();
        let events = events(&log);
        let started = events.iter().find(|e| e["event"] == "started")?.clone();
        let told = events.iter().filter(|e| e["event"] == "weakness");
        let causes: Vec<_> = told.map(|event| event["cause"].clone()).collect();
        let all = weaknesses.iter().all(|it| causes.contains(it));
        all.then_some((started, causes, weaknesses))
    });
    assert_eq!(started["session"], session.as_str());
    for cause in &causes {
        let times = causes.iter().filter(|other| *other == cause).count();
        assert_eq!(times, 1, "each once: {causes:#?}");
    }

    let absent = |list: &Value| list.to_string().contains("is not on this machine");
    assert!(absent(&first["weaknesses"]), "{first}");
    let (_, right) = start(&config, "right", &stop);
    let last = wait_for("the second network comes up", || {
        status().filter(|status| status["links"][1]["up"] == true)
    });
    assert!(!absent(&last["weaknesses"]), "{last}");
    assert_eq!(
        last["weaknesses"].as_array().unwrap().len(),
        weaknesses.len() - 1
    );
    stop.store(true, Ordering::SeqCst);
    [left, right]
        .into_iter()
        .for_each(|node| node.join().unwrap());
}

#[test]
fn a_weakness_that_comes_with_a_change_of_the_configuration_is_told_once() {
    let directory = tempfile::tempdir().unwrap();
    let pair = configuration(directory.path(), 101);
    let text = std::fs::read_to_string(&pair.1).unwrap() + "networks = [\"A\"]\n";
    let text = text
        .replace("name = \"a\"\n", "name = \"b\"\n")
        .replace("channel = 1\n", "channel = 2\n");
    let fingerprint = format!("{:016x}", parsed(&text).fingerprint());
    let file = directory.path().join("next.toml");
    std::fs::write(&file, &text).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let nodes = ["left", "right"].map(|name| start(&pair, name, &stop));
    let sockets = ["left.sock", "right.sock"].map(|name| directory.path().join(name));
    let status = |socket: &Path| request(socket, &Request::Status).unwrap_or(Value::Null);
    wait_for("the pair is redundant", || {
        (status(&sockets[1])["groups"][0]["redundancy"] == "ok").then_some(())
    });
    for socket in &sockets {
        let order = Request::Apply { file: file.clone() };
        let reply = request(socket, &order).unwrap();
        assert_eq!(reply["accepted"], "apply", "{reply}");
    }
    wait_for("the change", || {
        let in_force =
            |socket: &PathBuf| status(socket)["configuration"]["fingerprint"] == *fingerprint;
        sockets.iter().all(in_force).then_some(())
    });
    stop.store(true, Ordering::SeqCst);
    for (log, node) in nodes {
        node.join().unwrap();
        let events = events(&log);
        let told: Vec<_> = events.iter().filter(|e| e["event"] == "weakness").collect();
        let of_change = |event: &&&Value| {
            event["cause"]
                .as_str()
                .unwrap()
                .contains("application \"b\"")
        };
        assert_eq!(told.iter().filter(of_change).count(), 1, "{told:#?}");
        let mut causes: Vec<_> = told.iter().map(|e| e["cause"].to_string()).collect();
        causes.sort();
        causes.dedup();
        assert_eq!(causes.len(), told.len(), "each once: {told:#?}");
    }
}

/// A driver with a defect.
struct Defective(Box<dyn Link + Send>);

impl Link for Defective {
    fn send(&mut self, _: SocketAddr, _: &[Segment<'_>]) -> SendOutcome {
        SendOutcome::default()
    }
    fn receive(&mut self, _: &mut dyn FnMut(SocketAddr, &mut [u8])) -> ReceiveOutcome {
        panic!("the defect");
    }
    fn descriptor(&self) -> Option<RawFd> {
        self.0.descriptor()
    }
    fn local_address(&self) -> SocketAddr {
        self.0.local_address()
    }
}

#[test]
fn a_data_plane_that_panics_is_no_fault_of_the_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let (config, _) = configuration(directory.path(), 201);
    let log = directory.path().join("left.jsonl");
    let node = config.node("left").unwrap();
    let open: OpenLink<'_> = &mut |link, settings| {
        let opened = open_udp(link, settings)?;
        Ok(OpenedLink {
            driver: Box::new(Defective(opened.driver)),
            ..opened
        })
    };
    let ended = run(&config, node, options(log, Arc::default()), open).unwrap_err();
    assert!(matches!(ended, RunError::Panicked), "{ended}");
    assert!(!ended.to_string().contains("configuration"), "{ended}");
}
