//! What iPRP promises of programs that know nothing of it: two hosts as namespaces, two networks, the real daemon on both, and
//! sockets as any program has them.

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bumpless_testing::need_root;
use serde_json::Value;
use support::hosts::{Hosts, with_hosts};
use support::process::{BUMPLESS, Process, json, outcome, said};
use support::{wait_for, wait_until};
use tempfile::TempDir;

const BOTH: [&str; 2] = ["left", "right"];
const PORT: u16 = 4713;
const TCP_PORT: u16 = 5020;

/// Two hosts with a file each, and the daemons that run there.
struct Site {
    hosts: Hosts,
    folder: TempDir,
    left: Option<Process>,
    right: Option<Process>,
}

fn monitors(more: &str) -> String {
    format!(
        "[[monitor]]\nprotocol = \"udp\"\nport = {PORT}\n\
         [[monitor]]\nprotocol = \"tcp\"\nport = {TCP_PORT}\n{more}"
    )
}

impl Site {
    fn new(hosts: Hosts) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("group.key");
        let made = said(&["key", "new", key.to_str().unwrap()]);
        assert_eq!(made.2, Some(0), "{made:?}");
        let site = Self {
            hosts,
            folder,
            left: None,
            right: None,
        };
        for host in BOTH {
            std::fs::create_dir(site.folder.path().join(host)).unwrap();
            site.write(
                host,
                "interface = \"na\"",
                "interface = \"nb\"",
                &monitors(""),
            );
        }
        site
    }

    fn write(&self, host: &str, a: &str, b: &str, monitors: &str) {
        let text = format!(
            "[host]\nsocket = \"iprp.sock\"\n[security]\nkeys = [\"../group.key\"]\n\
             [timing]\nadvertise_every_ms = 1000\ninactivity_ms = 10000\n[limits]\nsessions = 16\n\
             [[network]]\nind = 10\n{a}\n[[network]]\nind = 11\n{b}\n{monitors}"
        );
        std::fs::write(self.file(host), text).unwrap();
    }

    fn file(&self, host: &str) -> PathBuf {
        self.folder.path().join(host).join("iprp.toml")
    }

    fn name(&self, host: &str) -> String {
        self.file(host).to_str().unwrap().to_owned()
    }

    fn start(&mut self, host: &str) {
        let file = self.name(host);
        let said = self.folder.path().join(format!("{host}.said"));
        let process = self
            .hosts
            .at(host, || Process::start(&["iprp", "run", &file], &said));
        *self.daemon(host) = Some(process);
        wait_until("the daemon answers", || self.status(host).is_some());
    }

    fn daemon(&mut self, host: &str) -> &mut Option<Process> {
        match host {
            "left" => &mut self.left,
            _ => &mut self.right,
        }
    }

    fn kill(&mut self, host: &str) {
        self.daemon(host).take().unwrap().kill();
    }

    fn interrupt(&mut self, host: &str) {
        self.daemon(host).take().unwrap().interrupt();
    }

    fn status(&self, host: &str) -> Option<Value> {
        let (text, _, status) = said(&["iprp", "status", &self.name(host), "--json"]);
        (status == Some(0)).then(|| serde_json::from_str(&text).unwrap())
    }

    /// Networks on which `host` sends copies of the flow with this protocol and port, if that is replicated.
    fn sends_on(&self, host: &str, protocol: &str, port: u16) -> usize {
        let status = self.status(host).unwrap();
        let all = status["sending"].as_array().unwrap();
        let one = all
            .iter()
            .find(|it| it["protocol"] == protocol && it["port"] == port);
        let live = one.filter(|it| it["suspended"] == false);
        live.map_or(0, |it| it["networks"].as_array().unwrap().len())
    }

    /// The firewall's tables of ours on a host.
    fn tables(&self, host: &str) -> usize {
        let tables = self.hosts.at(host, || bumpless_capture::tables().unwrap());
        tables
            .iter()
            .filter(|name| name.contains("bumpless"))
            .count()
    }

    fn udp(&self, host: &str, address: &str) -> UdpSocket {
        self.hosts.at(host, || UdpSocket::bind(address).unwrap())
    }
}

/// Numbered datagrams at an even rate, from an ordinary socket.
struct Stream {
    stop: Arc<AtomicBool>,
    sending: JoinHandle<u32>,
}

impl Stream {
    fn begin(socket: UdpSocket, to: SocketAddr, a_second: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let sending = thread::spawn(move || {
            let (began, every) = (Instant::now(), Duration::from_secs(1) / a_second);
            let mut number = 0;
            while !stopping.load(Ordering::Relaxed) && number < 60 * a_second {
                // A network that is down for the host itself refuses; that loses nothing that was promised.
                let _ = socket.send_to(&number.to_be_bytes(), to);
                number += 1;
                let due = began + every * number;
                thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            number
        });
        Self { stop, sending }
    }

    /// Ends it; how many were sent.
    fn end(self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        self.sending.join().unwrap()
    }
}

/// What an ordinary socket receives: how often each number came, and from where.
struct Sink {
    stop: Arc<AtomicBool>,
    receiving: JoinHandle<(Vec<u32>, Vec<SocketAddr>)>,
    latest: Arc<std::sync::atomic::AtomicU32>,
}

impl Sink {
    fn begin(socket: UdpSocket) -> Self {
        socket
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let latest = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let (stopping, noting) = (Arc::clone(&stop), Arc::clone(&latest));
        let receiving = thread::spawn(move || {
            let (mut counts, mut from) = (Vec::new(), Vec::new());
            let mut buffer = [0; 100];
            loop {
                let Ok((4, source)) = socket.recv_from(&mut buffer) else {
                    if stopping.load(Ordering::Relaxed) {
                        return (counts, from);
                    }
                    continue;
                };
                let number = u32::from_be_bytes(*buffer.first_chunk().unwrap());
                let at = number as usize;
                counts.resize(counts.len().max(at + 1), 0);
                counts[at] += 1;
                noting.fetch_max(number, Ordering::Relaxed);
                if !from.contains(&source) {
                    from.push(source);
                }
            }
        });
        Self {
            stop,
            receiving,
            latest,
        }
    }

    fn latest(&self) -> u32 {
        self.latest.load(Ordering::Relaxed)
    }

    /// Waits until `more` further numbers have come; the latest one.
    fn wait_for_more(&self, more: u32) -> u32 {
        let goal = self.latest() + more;
        wait_until("further packets", || self.latest() >= goal);
        self.latest()
    }

    fn end(self) -> (Vec<u32>, Vec<SocketAddr>) {
        self.stop.store(true, Ordering::Relaxed);
        self.receiving.join().unwrap()
    }
}

/// Numbers from `first` on that did not come once.
fn not_once(counts: &[u32], first: u32, sent: u32) -> Vec<(u32, u32)> {
    let count = |number: u32| counts.get(number as usize).copied().unwrap_or(0);
    (first..sent)
        .map(|number| (number, count(number)))
        .filter(|(_, count)| *count != 1)
        .collect()
}

fn a_stream_loses_and_doubles_nothing_when_either_network_is_cut() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        BOTH.iter().for_each(|host| site.start(host));
        let source: SocketAddr = "10.77.1.1:40000".parse().unwrap();
        let target: SocketAddr = format!("10.77.1.2:{PORT}").parse().unwrap();
        let sink = Sink::begin(site.udp("right", &target.to_string()));
        let stream = Stream::begin(site.udp("left", &source.to_string()), target, 1000);
        wait_until("both networks carry the stream", || {
            site.sends_on("left", "udp", PORT) == 2
        });
        let first = sink.wait_for_more(100);
        for network in ["A", "B"] {
            site.hosts.cut(network);
            sink.wait_for_more(500);
            site.hosts.mend(network);
            // The other one is cut only when this one carries again.
            let before = came(&site, network);
            wait_until("the network carries again", || {
                came(&site, network) > before + 50
            });
        }
        let status = site.status("right").unwrap();
        let sent = stream.end();
        let last = sent - 1;
        wait_until("the last packet", || sink.latest() == last);
        let (counts, from) = sink.end();
        assert_eq!(not_once(&counts, first, sent), []);
        assert_eq!(from, [source], "the application sees its peer");
        let networks = status["receiving"][0]["networks"].as_array().unwrap();
        let firsts = networks.iter().map(|it| it["first"].as_u64().unwrap());
        assert!(firsts.clone().all(|first| first > 100), "{status}");
        assert_eq!(status["counters"]["not_given"], 0);
        BOTH.iter().for_each(|host| site.interrupt(host));
        assert_eq!(BOTH.map(|host| site.tables(host)), [0, 0]);
    });
}

fn came(site: &Site, network: &str) -> u64 {
    let status = site.status("right").unwrap();
    let at = usize::from(network == "B");
    status["networks"][at]["came"].as_u64().unwrap()
}

fn a_standby_stream_moves_when_its_network_falls_silent_and_loses_nothing() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        let standby = monitors("").replace("\"udp\"\n", "\"udp\"\nmode = \"standby\"\n");
        for host in BOTH {
            site.write(host, "interface = \"na\"", "interface = \"nb\"", &standby);
            site.start(host);
        }
        let target: SocketAddr = format!("10.77.1.2:{PORT}").parse().unwrap();
        let sink = Sink::begin(site.udp("right", &target.to_string()));
        let stream = Stream::begin(site.udp("left", "10.77.1.1:40000"), target, 500);
        wait_until("the stream is replicated", || {
            site.sends_on("left", "udp", PORT) == 2
        });
        let first = sink.wait_for_more(100);
        // How often it changes networks before is a matter of how busy this machine is.
        let before = came(&site, "B");
        site.hosts.cut("A");
        sink.wait_for_more(300);
        assert!(came(&site, "B") > before + 100, "it has moved to B");
        let mode = site.status("left").unwrap()["sending"][0]["mode"].take();
        let sent = stream.end();
        wait_until("the last packet", || sink.latest() == sent - 1);
        let (counts, _) = sink.end();
        assert_eq!(not_once(&counts, first, sent), []);
        assert_eq!(mode, "standby");
    });
}

fn a_tcp_connection_begun_before_the_daemons_goes_on_while_its_network_is_cut() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        let target = format!("10.77.1.2:{TCP_PORT}");
        let listener = site
            .hosts
            .at("right", || TcpListener::bind(&target).unwrap());
        let echo = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = stream.read(&mut buffer) {
                stream.write_all(&buffer[..length]).unwrap();
            }
        });
        let mut stream = site
            .hosts
            .at("left", || TcpStream::connect(&target).unwrap());
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        stream.set_nodelay(true).unwrap();
        let mut round = move |number: u8| {
            let (sent, mut got) = ([number; 1000], [0; 1000]);
            stream.write_all(&sent).unwrap();
            stream.read_exact(&mut got).unwrap();
            assert_eq!(got, sent);
            thread::sleep(Duration::from_millis(20));
        };
        round(0);
        BOTH.iter().for_each(|host| site.start(host));
        wait_until("both directions are replicated", || {
            round(1);
            BOTH.iter()
                .all(|host| site.sends_on(host, "tcp", TCP_PORT) == 2)
        });
        for (number, network) in [(2, "A"), (3, "B")] {
            site.hosts.cut(network);
            (0..20).for_each(|_| round(number));
            site.hosts.mend(network);
            round(number);
        }
        // And on when nobody replicates any more.
        BOTH.iter().for_each(|host| site.interrupt(host));
        (0..5).for_each(|_| round(4));
        drop(round);
        echo.join().unwrap();
    });
}

fn a_killed_daemon_leaves_flows_as_they_were_and_comes_back_without_a_loss() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        BOTH.iter().for_each(|host| site.start(host));
        let target: SocketAddr = format!("10.77.1.2:{PORT}").parse().unwrap();
        let sink = Sink::begin(site.udp("right", &target.to_string()));
        let stream = Stream::begin(site.udp("left", "10.77.1.1:40000"), target, 500);
        let replicated = |site: &Site| {
            wait_until("the stream is replicated", || {
                site.sends_on("left", "udp", PORT) == 2
            });
        };
        replicated(&site);
        let mut spans = Vec::new();
        for host in ["left", "right"] {
            sink.wait_for_more(50);
            site.kill(host);
            assert_eq!(site.tables(host), 0, "{host}");
            // Unreplicated, and not stopped.
            sink.wait_for_more(100);
            let first = sink.latest();
            site.start(host);
            replicated(&site);
            let last = sink.wait_for_more(200);
            spans.push((first, last - 100));
        }
        let sent = stream.end();
        wait_until("the last packet", || sink.latest() == sent - 1);
        let (counts, _) = sink.end();
        for (first, last) in spans {
            assert_eq!(
                not_once(&counts, first, last),
                [],
                "{first} to {last} of {sent}"
            );
        }
    });
}

fn a_stream_over_ipv6_survives_a_cut() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        for (host, number) in [("left", 1), ("right", 2)] {
            site.hosts.at(host, || {
                for (device, network) in [("na", 'a'), ("nb", 'b')] {
                    let address = format!("fd00:{network}::{number}/64");
                    let added = Command::new("ip")
                        .args(["address", "add", &address, "dev", device, "nodad"])
                        .status();
                    assert!(added.unwrap().success());
                }
            });
            site.write(
                host,
                "prefix = \"fd00:a::/64\"",
                "prefix = \"fd00:b::/64\"",
                &monitors(""),
            );
            site.start(host);
        }
        let target: SocketAddr = format!("[fd00:a::2]:{PORT}").parse().unwrap();
        let sink = Sink::begin(site.udp("right", &target.to_string()));
        let stream = Stream::begin(site.udp("left", "[fd00:a::1]:40000"), target, 500);
        wait_until("both networks carry the stream", || {
            site.sends_on("left", "udp", PORT) == 2
        });
        let first = sink.wait_for_more(50);
        site.hosts.cut("A");
        let (networks, _) = hops(&site, &["fd00:a::2", "--wait", "100", "--probes", "1"]);
        let reached = ("reached".into(), vec!["fd00:b::2".into()]);
        assert_eq!(networks, [("silent".into(), vec![]), reached]);
        sink.wait_for_more(200);
        let sent = stream.end();
        wait_until("the last packet", || sink.latest() == sent - 1);
        let (counts, from) = sink.end();
        assert_eq!(not_once(&counts, first, sent), []);
        assert_eq!(from, ["[fd00:a::1]:40000".parse().unwrap()]);
    });
}

fn ports_change_while_it_runs_and_a_ping_measures_each_network() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        BOTH.iter().for_each(|host| site.start(host));
        let (result, status) = json(
            &[
                "iprp",
                "ping",
                &site.name("left"),
                "10.77.1.2",
                "--count",
                "3",
                "--every",
                "20",
                "--json",
            ],
            "bumpless.iprp.ping/1",
        );
        assert_eq!(status, Some(0), "{result}");
        let networks = result["networks"].as_array().unwrap();
        let inds: Vec<_> = networks
            .iter()
            .map(|it| it["ind"].as_u64().unwrap())
            .collect();
        assert_eq!(inds, [10, 11]);
        assert!(networks.iter().all(|it| it["sent"] == 3), "{result}");
        site.hosts.cut("B");
        let cut = [
            "iprp",
            "ping",
            &site.name("left"),
            "10.77.1.2",
            "--count",
            "1",
            "--json",
        ];
        let (result, status) = json(&cut, "bumpless.iprp.ping/1");
        assert_eq!(status, Some(1), "{result}");
        assert_eq!(result["networks"][1]["lost"], 1);
        site.hosts.mend("B");
        // A port that is not monitored, until it is.
        let other = PORT + 1;
        let target: SocketAddr = format!("10.77.1.2:{other}").parse().unwrap();
        let sink = Sink::begin(site.udp("right", &target.to_string()));
        let stream = Stream::begin(site.udp("left", "10.77.1.1:40000"), target, 200);
        sink.wait_for_more(20);
        assert_eq!(site.sends_on("left", "udp", other), 0);
        let more = format!("[[monitor]]\nprotocol = \"udp\"\nport = {other}\n");
        site.write(
            "right",
            "interface = \"na\"",
            "interface = \"nb\"",
            &monitors(&more),
        );
        let reload = said(&["iprp", "reload", &site.name("right")]);
        assert_eq!(reload.2, Some(0), "{reload:?}");
        wait_until("the port is replicated", || {
            site.sends_on("left", "udp", other) == 2
        });
        // And back, by a signal.
        site.write(
            "right",
            "interface = \"na\"",
            "interface = \"nb\"",
            &monitors(""),
        );
        site.right.as_ref().unwrap().signal(libc::SIGHUP);
        wait_until("the port is replicated no more", || {
            site.sends_on("left", "udp", other) == 0
        });
        sink.wait_for_more(20);
        // What cannot be followed is refused, and nothing changes.
        site.write(
            "right",
            "interface = \"na\"",
            "interface = \"na\"",
            &monitors(""),
        );
        let (_, error, status) = said(&["iprp", "reload", &site.name("right")]);
        assert_eq!(status, Some(2), "{error}");
        let sent = stream.end();
        wait_until("the last packet", || sink.latest() == sent - 1);
    });
}

/// A terminal of 24 lines, whose other end collects what is written to it.
fn terminal() -> (std::fs::File, std::fs::File) {
    use std::os::fd::FromRawFd;
    let (mut here, mut there) = (0, 0);
    let size = libc::winsize {
        ws_row: 24,
        ws_col: 100,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let none = std::ptr::null_mut();
    // SAFETY: the call fills two integers and reads `size`; null stands for what is not wanted. The descriptors are
    // nobody else's.
    unsafe {
        let opened = libc::openpty(&mut here, &mut there, none, none.cast(), &size);
        assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
        (
            std::fs::File::from_raw_fd(here),
            std::fs::File::from_raw_fd(there),
        )
    }
}

fn a_live_view_shows_rates_and_redraws_only_a_terminal() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        BOTH.iter().for_each(|host| site.start(host));
        let target: SocketAddr = format!("10.77.1.2:{PORT}").parse().unwrap();
        let sink = Sink::begin(site.udp("right", &target.to_string()));
        let stream = Stream::begin(site.udp("left", "10.77.1.1:0"), target, 500);
        wait_until("both networks carry the stream", || {
            site.sends_on("left", "udp", PORT) == 2
        });
        let file = site.name("right");
        // One JSON line each time.
        let lines = site.folder.path().join("lines");
        let watch = ["iprp", "receivers", &file, "--json", "--watch", "0.1"];
        let view = Process::start(&watch, &lines);
        let seen = wait_for("pictures with rates", || {
            let all = support::json_lines(&lines);
            let rate = |line: &Value| sum(&line["receiving"][0]["networks"][0]["per_s"]);
            (all.len() >= 4).then(|| all.iter().map(rate).collect::<Vec<_>>())
        });
        view.interrupt();
        assert_eq!(seen[0], None, "the first one has nothing to compare with");
        let rates: Vec<_> = seen[1..].iter().flatten().collect();
        assert!(rates.iter().any(|rate| **rate > 50.0), "{rates:?}");
        // Blocks of words, without a terminal's codes.
        let blocks = site.folder.path().join("blocks");
        let watch = ["iprp", "status", &file, "--watch", "0.1"];
        let view = Process::start(&watch, &blocks);
        wait_until("blocks", || {
            view.said().matches("iPRP, process").count() >= 3
        });
        let text = view.said();
        view.interrupt();
        assert!(text.contains("/s) first"), "{text}");
        assert!(!text.contains('\x1b'), "{text}");
        // A terminal is drawn over.
        let (mut here, there) = terminal();
        let mut command = Command::new(BUMPLESS);
        command.args(watch).stdout(there.try_clone().unwrap());
        let view = Process::spawn(command, &blocks);
        drop(there);
        let (mut drawn, mut bytes) = (String::new(), [0; 4096]);
        while drawn.matches("F\x1b[J").count() < 2 {
            let length = here.read(&mut bytes).unwrap();
            drawn.push_str(&String::from_utf8_lossy(&bytes[..length]));
        }
        view.interrupt();
        let _ = stream.end();
        sink.end();
        // Nobody to ask: said with the remedy.
        site.interrupt("right");
        let (_, error, status) = said(&["iprp", "status", &file, "--watch"]);
        assert_eq!(status, Some(1));
        for word in ["no daemon of iPRP runs", "sudo bumpless iprp run", &file] {
            assert!(error.contains(word), "{word:?} in: {error}");
        }
    });
}

/// Numbers of an object, summed up; `None` if there is no such object.
fn sum(numbers: &Value) -> Option<f64> {
    Some(
        numbers
            .as_object()?
            .values()
            .filter_map(Value::as_f64)
            .sum(),
    )
}

/// What `tracert` finds from `left`: for each network its end and who answered at each hop; and the exit status.
fn hops(site: &Site, arguments: &[&str]) -> (Vec<(Value, Vec<Value>)>, Option<i32>) {
    let file = site.name("left");
    let all = [&["iprp", "tracert", &file, "--json"], arguments].concat();
    let run = || json(&all, "bumpless.iprp.tracert/1");
    let (found, status) = site.hosts.at("left", run);
    let network = |it: &Value| {
        let hops = it["hops"].as_array().unwrap().iter();
        let from = |hop: &Value| hop["answers"][0]["from"].clone();
        (it["end"].clone(), hops.map(from).collect())
    };
    let networks = found["networks"].as_array().unwrap();
    (networks.iter().map(network).collect(), status)
}

fn the_hops_on_each_network_are_found_and_the_network_that_is_silent_is_named() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        // A router: what is behind `right` is two hops away on network A.
        let ip = |host: &str, arguments: &str| {
            let mut command = Command::new("ip");
            command.args(arguments.split(' '));
            let done = site.hosts.at(host, || command.status().unwrap());
            assert!(done.success(), "ip {arguments}");
        };
        ip("left", "route add 10.99.0.2/32 via 10.77.1.2 dev na");
        ip("right", "route add 10.99.0.2/32 via 10.77.102.2 dev f");
        ip("field", "address add 10.99.0.2/32 dev lo");
        ip("field", "route replace 10.77.1.1/32 via 10.77.102.1 dev f2");
        site.hosts.at("right", || {
            std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        });
        let behind = ["--to", "10=10.99.0.2", "--to", "11=10.77.2.2"];
        let (networks, status) = hops(&site, &behind);
        assert_eq!(status, Some(0), "{networks:?}");
        assert_eq!(
            networks,
            [
                (
                    "reached".into(),
                    vec!["10.77.1.2".into(), "10.99.0.2".into()]
                ),
                ("reached".into(), vec!["10.77.2.2".into()]),
            ]
        );
        let (networks, status) = hops(
            &site,
            &["--to", "10=10.99.0.2", "--hops", "1", "--probes", "1"],
        );
        assert_eq!((status, &networks[0].0), (Some(1), &"too_far".into()));
        // Whom the daemon knows is found by one address, without any rights.
        BOTH.iter().for_each(|host| site.start(host));
        // One probe: the kernel answers six at once.
        let (networks, status) = hops(&site, &["10.77.1.2", "--probes", "1"]);
        let ends: Vec<_> = networks.iter().map(|(end, _)| end.as_str()).collect();
        assert_eq!(
            (status, ends),
            (Some(0), vec![Some("reached"), Some("reached")])
        );
        let file = site.name("left");
        // Meanwhile one is asked for who does not show himself.
        let told_of = site.folder.path().join("nobody");
        let nobody = ["iprp", "tracert", &file, "10.77.1.9"];
        let nobody = site.hosts.at("left", || Process::start(&nobody, &told_of));
        site.hosts.cut("B");
        let cut = [
            "iprp",
            "tracert",
            &file,
            "10.77.2.2",
            "--probes",
            "1",
            "--wait",
            "100",
        ];
        let (text, _, status) = site.hosts.at("left", || said(&cut));
        assert_eq!(status, Some(1), "{text}");
        for words in [
            "network 10: 10.77.1.1 on na to 10.77.1.2",
            "10.77.1.2 reached in one hop",
            "network 11: 10.77.2.1 on nb to 10.77.2.2\n  nothing answers",
        ] {
            assert!(text.contains(words), "{words:?} in: {text}");
        }
        // What is asked for is not this host's.
        let told = |arguments: &[&str], words: &str| {
            let all = [&["iprp", "tracert", &file], arguments].concat();
            let (_, error, status) = site.hosts.at("left", || said(&all));
            assert!(matches!(status, Some(1 | 2)), "{error}");
            assert!(error.contains(words), "{words:?} in: {error}");
        };
        told(&["--to", "12=10.77.1.2"], "it is on 10, 11");
        told(&["--to", "10=fd00::2"], "the same version of IP");
        told(&["--to", "10.77.1.2"], "10=192.168.1.2");
        assert_eq!(nobody.wait().code(), Some(1));
        let error = std::fs::read_to_string(told_of).unwrap();
        assert!(error.contains("--to IND=ADDRESS"), "{error}");
    });
}

/// Both ends of `iprp test` at work: what they print as JSON ends in files.
struct Trial {
    ends: Vec<(Process, PathBuf)>,
}

impl Trial {
    fn begin(site: &Site, port: u16, name: &str) -> Self {
        let port = port.to_string();
        let start = |host: &str, arguments: &[&str]| {
            let said = site.folder.path().join(format!("{name}.{host}"));
            let file = site.name(host);
            let all = [
                &["iprp", "test", &file, "--port", &port, "--json"],
                arguments,
            ]
            .concat();
            let process = site.hosts.at(host, || Process::start(&all, &said));
            (process, said)
        };
        // The sender says hello until the listener is there.
        let sending = ["10.77.1.2", "--count", "100", "--rate", "500"];
        let ends = vec![start("right", &["--listen"]), start("left", &sending)];
        Self { ends }
    }

    /// What the listener and the sender say, and the sender's exit status.
    fn end(self) -> (Value, Value, Option<i32>) {
        let mut ended: Vec<_> = self
            .ends
            .into_iter()
            .map(|(process, said)| {
                let status = process.wait().code();
                let text = std::fs::read_to_string(said).unwrap();
                let value: Value = serde_json::from_str(&text).expect(&text);
                assert_eq!(value["schema"], "bumpless.iprp.test/1", "{text}");
                (value, status)
            })
            .collect();
        let (sender, status) = ended.pop().unwrap();
        let (listener, _) = ended.pop().unwrap();
        (listener, sender, status)
    }
}

fn a_test_stream_tells_what_came_and_what_each_network_carried_and_lost() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        // The sender's host protects nothing that comes to it: answers are not replicated.
        let (a, b) = ("interface = \"na\"", "interface = \"nb\"");
        site.write("left", a, b, "");
        BOTH.iter().for_each(|host| site.start(host));
        let file = site.name("left");
        let nobody = site.folder.path().join("nobody");
        let arguments = ["iprp", "test", &file, "10.77.1.2", "--port", "4799"];
        let alone = site
            .hosts
            .at("left", || Process::start(&arguments, &nobody));
        let of_network = |value: &Value, field: &str| {
            let networks = value["networks"].as_array().unwrap().iter();
            networks.map(|it| it[field].clone()).collect::<Vec<_>>()
        };
        let whole = |value: &Value| {
            let stream = &value["stream"];
            assert_eq!(
                (&stream["arrived"], &stream["lost"]),
                (&100.into(), &0.into()),
                "{value}"
            );
            assert_eq!(stream["doubled"], 0, "{value}");
        };
        // Beside one that is monitored, one that is not.
        let monitored = Trial::begin(&site, PORT, "monitored");
        let other = Trial::begin(&site, PORT + 1, "other");
        let (listener, sender, status) = monitored.end();
        whole(&listener);
        whole(&sender);
        assert_eq!(status, Some(0), "{sender}");
        assert_eq!(of_network(&sender, "ind"), [10, 11]);
        assert_eq!(of_network(&sender, "sent"), [100, 100], "{sender}");
        assert_eq!(of_network(&sender, "lost"), [0, 0], "{sender} {listener}");
        let firsts = of_network(&listener, "first");
        let firsts: u64 = firsts.iter().filter_map(Value::as_u64).sum();
        assert_eq!(firsts, 100, "each was handed on once: {listener}");
        assert_eq!(sender["warnings"], serde_json::json!([]));
        let (listener, sender, status) = other.end();
        whole(&sender);
        assert_eq!((status, &sender["replicated"]), (Some(0), &false.into()));
        for value in [listener, sender] {
            let warning = value["warnings"].to_string();
            assert!(warning.contains("4714 is not monitored"), "{warning}");
            assert!(warning.contains("iprp reload"), "{warning}");
        }
        // One network is dead: what it lost is told, and the report comes back on the other one.
        site.hosts.cut("A");
        let (_, sender, status) = Trial::begin(&site, PORT, "cut").end();
        whole(&sender);
        assert_eq!(status, Some(0), "{sender}");
        assert_eq!(of_network(&sender, "lost"), [100, 0], "{sender}");
        assert_eq!(alone.wait().code(), Some(1));
        let error = std::fs::read_to_string(nobody).unwrap();
        assert!(error.contains("--listen --port 4799"), "{error}");
        let long = [
            "iprp",
            "test",
            &file,
            "10.77.1.2",
            "--port",
            "1",
            "--rate",
            "1",
            "-c",
            "700",
        ];
        let (_, error, status) = said(&long);
        assert_eq!(status, Some(2), "{error}");
        assert!(error.contains("longer than 600 s"), "{error}");
    });
}

fn each_wrong_input_is_told_with_its_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.toml");
    let told = |text: &str, words: &[&str]| {
        let text = format!("[security]\nkeys = [\"k\"]\n{text}");
        std::fs::write(&file, &text).unwrap();
        let (_, error, status) = said(&["iprp", "check", file.to_str().unwrap()]);
        assert_eq!(status, Some(2), "{text}{error}");
        words
            .iter()
            .for_each(|word| assert!(error.contains(word), "{word:?} in: {error}"));
    };
    let network = "[[network]]\nind = 1\n";
    told("", &["network: is missing"]);
    told(
        &format!("{network}prefix = \"10.1.2.3/16\""),
        &["wrong.toml:5", "\"10.1.0.0/16\""],
    );
    told(&format!("{network}name = \"*\""), &["every name matches"]);
    told(
        &format!("{network}name = \"nw a\""),
        &["in which * stands for anything"],
    );
    told(
        &format!("{network}interface = \"\""),
        &["the name of one interface"],
    );
    told(network, &["does not say which address is meant"]);
    told("[[network]]\nind = 16\ninterface = \"a\"", &["0 to 15"]);
    told(
        "[[network]]\nind = 1\nprefix = \"10.0.0.0/8\"\n[[network]]\nind = 2\nprefix = \"10.1.0.0/16\"\n",
        &["10.0.0.0/8", "overlap", "line 3", "narrower"],
    );
    told(
        "[[network]]\nind = 1\ninterface = \"a\"\n[[network]]\nind = 2\ninterface = \"a\"\n",
        &["\"a\"", "another network"],
    );
    let good = format!("{network}interface = \"a\"\n");
    told(
        &format!(
            "{good}[[monitor]]\nprotocol = \"udp\"\nport = 9\n[[monitor]]\nprotocol = \"udp\"\nport = \"5-20\""
        ),
        &["wrong.toml:11", "monitored already", "line 6", "once"],
    );
    told(
        &format!("{good}[[monitor]]\nprotocol = \"udp\"\nport = 4761"),
        &["data_port", "no application has"],
    );
    told(
        &format!("{good}[[monitor]]\nprotocol = \"udp\"\nport = \"9-5\""),
        &["begins at 9"],
    );
    told(
        &format!("{good}[[monitor]]\nprotocol = \"icmp\"\nport = 9"),
        &["\"udp\" or \"tcp\""],
    );
    told(
        &format!("{good}[host]\ndata_port = 4760"),
        &["control_port", "its own port"],
    );
    told(&format!("{good}[[monitors]]"), &["did you mean monitor?"]);
    told(
        &format!("{good}[timing]\nkey_lifetime_s = 10"),
        &["30000 ms", "two advertisements"],
    );
    // All at once.
    told(
        "[[network]]\nind = 99\n[[monitor]]\nport = 0\nmode = \"fast\"\n",
        &[
            "network[1].ind",
            "monitor[1].protocol",
            "monitor[1].port",
            "monitor[1].mode",
        ],
    );
    // The sample is right, and says what this host lacks.
    let (sample, _, _) = said(&["iprp", "check", "--sample"]);
    std::fs::write(&file, sample).unwrap();
    let (here, _, status) = said(&["iprp", "check", file.to_str().unwrap()]);
    assert_eq!(status, Some(1), "{here}");
    assert!(
        here.contains("is valid") && here.contains("group.key"),
        "{here}"
    );
    assert!(here.contains("none of the rules matches"), "{here}");
}

fn missing_rights_and_a_second_daemon_are_told() {
    with_hosts(|hosts| {
        need_root();
        let mut site = Site::new(hosts);
        site.start("left");
        let file = site.name("left");
        let again = site.hosts.at("left", || said(&["iprp", "run", &file]));
        assert_eq!(again.2, Some(1));
        assert!(again.1.contains("already running"), "{again:?}");
        let right = site.name("right");
        let output = site.hosts.at("right", || {
            let mut command = Command::new("setpriv");
            command.args([
                "--bounding-set",
                "-net_admin,-net_raw",
                BUMPLESS,
                "iprp",
                "run",
                &right,
            ]);
            command.output().unwrap()
        });
        let (_, error, status) = outcome(&output);
        assert_eq!(status, Some(1));
        for word in [
            "CAP_NET_ADMIN",
            "CAP_NET_RAW",
            "setcap cap_net_admin,cap_net_raw+ep",
        ] {
            assert!(error.contains(word), "{error}");
        }
        // A host with another key is told apart from one that is silent.
        let other = site.folder.path().join("right/group.key");
        said(&["key", "new", other.to_str().unwrap()]);
        let text = std::fs::read_to_string(site.file("right")).unwrap();
        std::fs::write(
            site.file("right"),
            text.replace("../group.key", "group.key"),
        )
        .unwrap();
        site.start("right");
        let target = format!("10.77.1.2:{PORT}");
        let socket = site.udp("left", "10.77.1.1:0");
        let told = wait_for("the other key is told", || {
            socket.send_to(b"x", &target).unwrap();
            let weaknesses = site.status("left")?["weaknesses"].to_string();
            weaknesses.contains("does not have").then_some(weaknesses)
        });
        assert!(
            told.contains("10.77.1.2") || told.contains("10.77.2.2"),
            "{told}"
        );
    });
}

bumpless_testing::tests!(
    a_stream_loses_and_doubles_nothing_when_either_network_is_cut,
    a_standby_stream_moves_when_its_network_falls_silent_and_loses_nothing,
    a_tcp_connection_begun_before_the_daemons_goes_on_while_its_network_is_cut,
    a_killed_daemon_leaves_flows_as_they_were_and_comes_back_without_a_loss,
    a_stream_over_ipv6_survives_a_cut,
    ports_change_while_it_runs_and_a_ping_measures_each_network,
    a_live_view_shows_rates_and_redraws_only_a_terminal,
    the_hops_on_each_network_are_found_and_the_network_that_is_silent_is_named,
    a_test_stream_tells_what_came_and_what_each_network_carried_and_lost,
    each_wrong_input_is_told_with_its_remedy,
    missing_rights_and_a_second_daemon_are_told,
);
