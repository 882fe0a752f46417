//! What it costs a daemon of iPRP to send copies, by one or several builds of `bumpless` in turn (spec/iprp-daemon.md, L-78).
//!
//! ```text
//! iprp_sending ROUNDS BINARY...
//! ```
//!
//! Two hosts in namespaces, joined by two networks, with a daemon each, and 280-byte datagrams from one to the other. Of the
//! sender's thread on which packets pass it tells the processor time for each packet that was captured; of programs the
//! one-way delay at 1,000 datagrams a second, and that of the first and the last one of a burst. In every round each binary
//! is measured once, in the other order than in the round before. Needs root; nothing is left.

use std::error::Error;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bumpless_bench::network::namespace::Namespace;
use bumpless_iprp_daemon::Request;
use bumpless_net_linux::Clock;
use bumpless_node::{control, key_file};
use serde_json::Value;
use tempfile::TempDir;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const LEN: usize = 280;
const TO: &str = "10.77.1.2:20000";
const LASTS: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(20);
const BURST: u32 = 32;

/// What is sent: so many at once, so often.
const LOADS: [(&str, u32, Duration); 4] = [
    ("as fast as it goes", 64, Duration::ZERO),
    ("100,000/s", 10, Duration::from_micros(100)),
    ("1,000/s", 1, Duration::from_millis(1)),
    ("bursts of 32", BURST, Duration::from_millis(10)),
];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().ok_or("how many rounds?")?.parse()?;
    let binaries: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    let mut all = vec![vec![Vec::new(); LOADS.len()]; binaries.len()];
    for round in 0..rounds {
        let mut order: Vec<_> = (0..binaries.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for number in order {
            let site = Site::start(&binaries[number])?;
            for (load, measured) in LOADS.iter().zip(&mut all[number]) {
                let it = site.measure(load.1, load.2)?;
                println!("round {round}, binary {number}, {}: {it:?}", load.0);
                measured.push(it);
            }
        }
    }
    for (number, of_binary) in all.iter().enumerate() {
        println!("{number}: {}", binaries[number].display());
        for ((name, ..), measured) in LOADS.iter().zip(of_binary) {
            let of = |what: fn(&Measured) -> f64| spread(measured.iter().map(what).collect());
            println!("  {name}: {} packets", of(|it| it.captured as f64));
            println!("    ns of CPU a packet {}", of(|it| it.cpu_ns));
            println!("    copies a packet {}", of(|it| it.copies));
            println!("    copies in segments, share {}", of(|it| it.in_segments));
            println!("    delay, us: median {}", of(|it| it.delays_us[0]));
            println!("    of the first in a burst {}", of(|it| it.delays_us[1]));
            println!("    of the last in a burst {}", of(|it| it.delays_us[2]));
        }
    }
    Ok(())
}

/// The median, least and most.
fn spread(mut all: Vec<f64>) -> String {
    all.sort_by(f64::total_cmp);
    match (all.first(), all.last()) {
        (Some(least), Some(most)) => {
            let median = all[all.len() / 2];
            format!("{median:.2} ({least:.2} to {most:.2})")
        }
        _ => "-".into(),
    }
}

#[derive(Clone, Debug)]
struct Measured {
    captured: u64,
    cpu_ns: f64,
    copies: f64,
    in_segments: f64,
    /// Of all, of the first in a burst, of the last in a burst; the median of each.
    delays_us: [f64; 3],
}

/// Daemons end with it.
struct Site {
    hosts: [Namespace; 2],
    daemons: Vec<Child>,
    folder: TempDir,
}

impl Drop for Site {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

impl Site {
    fn start(binary: &Path) -> Result<Self> {
        let hosts = [Namespace::new()?, Namespace::new()?];
        for network in [1, 2] {
            let other = hosts[1].path();
            hosts[0].tool(
                "ip",
                &format!("link add n{network} type veth peer name n{network} netns {other}"),
            )?;
            for (host, at) in [1, 2].into_iter().zip(&hosts) {
                let address = format!("address add 10.77.{network}.{host}/24 dev n{network}");
                at.tool("ip", &address)?;
                at.tool("ip", &format!("link set n{network} up"))?;
            }
        }
        let folder = tempfile::tempdir()?;
        key_file::create(&folder.path().join("key"))?;
        let mut site = Self {
            hosts,
            daemons: Vec::new(),
            folder,
        };
        for host in 0..2 {
            let text = format!(
                "[host]\nsocket = \"{host}.sock\"\n[security]\nkeys = [\"key\"]\n\
                 [[network]]\nind = 1\ninterface = \"n1\"\n[[network]]\nind = 2\ninterface = \"n2\"\n\
                 [[monitor]]\nprotocol = \"udp\"\nport = 20000\npackets = \"to\"\n"
            );
            let file = site.folder.path().join(format!("{host}.toml"));
            fs::write(&file, text)?;
            let mut command = Command::new(binary);
            command.args(["iprp", "run"]).arg(file);
            command.stdout(Stdio::null());
            site.hosts[host].put_into(&mut command);
            site.daemons.push(command.spawn()?);
        }
        site.wait_until_replicated()?;
        Ok(site)
    }

    fn status(&self) -> Option<Value> {
        let socket = self.folder.path().join("0.sock");
        control::request(&socket, &Request::Status).ok()
    }

    fn wait_until_replicated(&self) -> Result<()> {
        let socket = self.sending()?;
        let until = Instant::now() + PATIENCE;
        loop {
            // Nobody receives yet, which the host may say.
            let _ = socket.send(&[0; LEN]);
            thread::sleep(Duration::from_millis(10));
            let status = self.status().unwrap_or_default();
            let networks = status["sending"][0]["networks"].as_array();
            if networks.is_some_and(|all| all.len() == 2) {
                return Ok(());
            }
            if Instant::now() > until {
                return Err("in vain it was waited for a session".into());
            }
        }
    }

    fn sending(&self) -> Result<UdpSocket> {
        let socket = self.hosts[0].run(|| UdpSocket::bind("10.77.1.1:0"))??;
        let to: SocketAddr = TO.parse()?;
        socket.connect(to)?;
        Ok(socket)
    }

    /// Sends so many datagrams at once, so often, and looks at what it costs.
    fn measure(&self, at_once: u32, every: Duration) -> Result<Measured> {
        let receiving = self.hosts[1].run(|| UdpSocket::bind(TO))??;
        receiving.set_read_timeout(Some(Duration::from_millis(100)))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let receiver = thread::spawn(move || receive(&receiving, &stopping, at_once));
        let socket = self.sending()?;
        let before = (self.status().ok_or("no status")?, self.busy_ns()?);
        let (began, mut round) = (Instant::now(), 0);
        while began.elapsed() < LASTS {
            for place in 0..at_once {
                let mut datagram = [0; LEN];
                datagram[..4].copy_from_slice(&place.to_be_bytes());
                datagram[4..12].copy_from_slice(&Clock.now().as_nanos().to_be_bytes());
                // What the host refuses is not captured.
                let _ = socket.send(&datagram);
            }
            round += 1;
            thread::sleep((every * round).saturating_sub(began.elapsed()));
        }
        thread::sleep(Duration::from_millis(200));
        let after = (self.status().ok_or("no status")?, self.busy_ns()?);
        stop.store(true, Ordering::Release);
        let delays_us = receiver.join().map_err(|_| "the receiver has failed")?;
        let grown = |what: &str| {
            let of = |status: &Value| status["counters"][what].as_u64().unwrap_or(0);
            of(&after.0) - of(&before.0)
        };
        let (captured, copies) = (grown("captured"), grown("copies"));
        let segments = |status: &Value| {
            let all = status["networks"].as_array().into_iter().flatten();
            all.filter_map(|it| it["in_segments"].as_u64()).sum::<u64>()
        };
        let in_segments = segments(&after.0) - segments(&before.0);
        Ok(Measured {
            captured,
            cpu_ns: (after.1 - before.1) as f64 / captured.max(1) as f64,
            copies: copies as f64 / captured.max(1) as f64,
            in_segments: in_segments as f64 / copies.max(1) as f64,
            delays_us,
        })
    }

    /// Nanoseconds for which the sender's thread on which packets pass has run.
    fn busy_ns(&self) -> Result<u64> {
        let pid = self.daemons[0].id();
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            let task = task?.path();
            if fs::read_to_string(task.join("comm"))?.trim() == "data plane" {
                let text = fs::read_to_string(task.join("schedstat"))?;
                let first = text.split_whitespace().next().ok_or("no schedstat")?;
                return Ok(first.parse()?);
            }
        }
        Err("the daemon has no data plane".into())
    }
}

/// Median delays, of all, of the first and of the last in a burst.
fn receive(socket: &UdpSocket, stop: &AtomicBool, at_once: u32) -> [f64; 3] {
    let mut delays: [Vec<f64>; 3] = Default::default();
    let mut buffer = [0; 2_000];
    while !stop.load(Ordering::Acquire) {
        let Ok(LEN) = socket.recv(&mut buffer) else {
            continue;
        };
        let place = u32::from_be_bytes(*buffer.first_chunk().expect("its length is known"));
        let sent = u64::from_be_bytes(*buffer[4..].first_chunk().expect("its length is known"));
        let delay = Clock.now().as_nanos().saturating_sub(sent) as f64 / 1e3;
        delays[0].push(delay);
        if place == 0 {
            delays[1].push(delay);
        }
        if place + 1 == at_once {
            delays[2].push(delay);
        }
    }
    delays.map(|mut all| {
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
    })
}
