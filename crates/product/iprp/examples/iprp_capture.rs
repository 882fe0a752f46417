//! What capturing costs: a bare program that drops and sends again by NFQUEUE, the daemon by the same queue, and the daemon by the
//! ring (spec/iprp-daemon.md, L-85).
//!
//! ```text
//! iprp_capture ROUNDS
//! iprp_capture daemon FILE    # what it runs on each host: the daemon of `bumpless iprp run FILE`
//! ```
//!
//! Two hosts in namespaces, joined by two networks; 280-byte datagrams from one to the other, captured and sent on both networks. In every
//! round each way has its turn, in the other order than in the round before. It tells the delay from the program's call to the copy at the
//! far end of network 1 at 1,000 datagrams a second, beside that of datagrams that nobody captures; and as fast as the program goes the
//! processor time of the capturing thread for each packet, and how many packets it took in a second. Needs root; nothing is left.

use std::error::Error;
use std::fs::{self, File};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bumpless_capture::{Captured, Firewall, Mss, Queue, Queued, Rules, Side, Verdict, parse};
use bumpless_iprp_daemon::{Config, Options, Request};
use bumpless_net_linux::{Clock, Poller, Waker};
use bumpless_node::{control, key_file};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd};
use tempfile::TempDir;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const LEN: usize = 280;
const PORT: u16 = 20_000;
const DATA_PORT: u16 = 4761;
const QUEUE: u16 = 4760;
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of IP's and UDP's headers, and what a copy has beside the datagram.
const HEADERS: usize = 28;
const OVERHEAD: usize = 47;
const SETTLE: Duration = Duration::from_millis(500);
/// Less than it takes a sender to miss a receiver that stands still.
const SLOW: u32 = 700;
const FAST: Duration = Duration::from_secs(2);

/// By which way packets are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Nobody,
    Bare,
    Daemon(&'static str),
}

const WAYS: [(&str, Way); 4] = [
    ("nobody captures", Way::Nobody),
    ("bare program, queue", Way::Bare),
    ("daemon, queue", Way::Daemon("queue")),
    ("daemon, ring", Way::Daemon("ring")),
];

#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    delay_us: f64,
    cpu_ns: f64,
    /// Thousands of packets a second.
    rate: f64,
    /// Share of packets sent that were captured.
    share: f64,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next().ok_or("how many rounds?")?;
    if first == "daemon" {
        return daemon(Path::new(&arguments.next().ok_or("which file?")?));
    }
    let rounds: usize = first.parse()?;
    let binary = std::env::current_exe()?;
    let mut all = vec![Vec::new(); WAYS.len()];
    for round in 0..rounds {
        let mut order: Vec<_> = (0..WAYS.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for number in order {
            let measured = Stage::start(&binary, WAYS[number].1)?.measure()?;
            println!("round {round}, {}: {measured:.2?}", WAYS[number].0);
            all[number].push(measured);
        }
    }
    for ((name, _), measured) in WAYS.iter().zip(&all) {
        let of = |what: fn(&Measured) -> f64| spread(measured.iter().map(what).collect());
        println!("{name}");
        println!("  delay at the median, us {}", of(|it| it.delay_us));
        println!("  ns of CPU a packet {}", of(|it| it.cpu_ns));
        println!("  thousands a second {}", of(|it| it.rate));
        println!("  share captured {}", of(|it| it.share));
    }
    let ratio = |a: usize, b: usize, what: fn(&Measured) -> f64| {
        let pairs = all[a].iter().zip(&all[b]);
        spread(pairs.map(|(a, b)| what(a) / what(b)).collect())
    };
    println!(
        "queue, of the bare program's: delay {}",
        ratio(2, 1, |it| it.delay_us)
    );
    println!(
        "queue, of the bare program's: rate per core {}",
        ratio(1, 2, |it| it.cpu_ns)
    );
    println!(
        "ring, of the queue's: rate per core {}",
        ratio(2, 3, |it| it.cpu_ns)
    );
    let added = |of: usize| {
        let pairs = all[of].iter().zip(&all[0]);
        spread(
            pairs
                .map(|(it, nobody)| it.delay_us - nobody.delay_us)
                .collect(),
        )
    };
    for (number, (name, _)) in WAYS.iter().enumerate().skip(1) {
        println!("{name}: added at the median, us {}", added(number));
    }
    Ok(())
}

fn daemon(file: &Path) -> Result<()> {
    let config = Config::load(file).map_err(|problems| format!("{problems:?}"))?;
    bumpless_iprp_daemon::run(config, file, Options::default())?;
    Ok(())
}

/// The median, least and most.
fn spread(mut all: Vec<f64>) -> String {
    all.sort_by(f64::total_cmp);
    match (all.first(), all.last()) {
        (Some(least), Some(most)) => {
            format!("{:.2} ({least:.2} to {most:.2})", all[all.len() / 2])
        }
        _ => "-".into(),
    }
}

/// A network namespace, which lives as long as a process that sleeps in it.
struct Namespace(Child);

impl Namespace {
    fn new() -> Result<Self> {
        let child = Command::new("unshare")
            .args(["--net", "sleep", "3600"])
            .spawn()?;
        let own = fs::read_link("/proc/self/ns/net")?;
        let path = format!("/proc/{}/ns/net", child.id());
        let host = Self(child);
        // It has its namespace some time after it was started.
        while fs::read_link(&path)? == own {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(host)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        let net = format!("--net=/proc/{}/ns/net", self.0.id());
        command.args([net.as_str(), "--", program]);
        command
    }

    fn tool(&self, program: &str, words: &str) -> Result<()> {
        let done = self.command(program).args(words.split(' ')).status()?;
        done.success()
            .then_some(())
            .ok_or_else(|| format!("{program} {words}: {done}").into())
    }

    /// Does something in a thread that is in the namespace.
    fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let net = File::open(format!("/proc/{}/ns/net", self.0.id()))?;
        thread::scope(|scope| {
            let inside = scope.spawn(move || {
                move_into_link_name_space(net.as_fd(), Some(LinkNameSpaceType::Network))
                    .map(|()| work())
            });
            let done = inside.join().map_err(|_| "a thread has failed")?;
            Ok(done?)
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two hosts, and what captures on the first one. All of it ends with this.
struct Stage {
    hosts: [Namespace; 2],
    way: Way,
    daemons: Vec<Child>,
    bare: Option<Bare>,
    folder: TempDir,
}

impl Drop for Stage {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        if let Some(bare) = &mut self.bare {
            bare.end();
        }
    }
}

impl Stage {
    fn start(binary: &Path, way: Way) -> Result<Self> {
        let hosts = [Namespace::new()?, Namespace::new()?];
        for network in [1, 2] {
            let other = hosts[1].0.id();
            let pair = format!("link add n{network} type veth peer name n{network} netns {other}");
            hosts[0].tool("ip", &pair)?;
            for (host, at) in [1, 2].into_iter().zip(&hosts) {
                let address = format!("address add 10.77.{network}.{host}/24 dev n{network}");
                at.tool("ip", &address)?;
                at.tool("ip", &format!("link set n{network} up"))?;
            }
        }
        let folder = tempfile::tempdir()?;
        key_file::create(&folder.path().join("key"))?;
        let mut stage = Self {
            hosts,
            way,
            daemons: Vec::new(),
            bare: None,
            folder,
        };
        match way {
            Way::Nobody => {}
            Way::Bare => stage.bare = Some(Bare::start(&stage.hosts[0])?),
            Way::Daemon(capture) => {
                for host in 0..2 {
                    stage.start_daemon(binary, host, capture)?;
                }
                stage.wait_until_replicated()?;
            }
        }
        Ok(stage)
    }

    fn start_daemon(&mut self, binary: &Path, host: usize, capture: &str) -> Result<()> {
        let text = format!(
            "[host]\nsocket = \"{host}.sock\"\ncapture = \"{capture}\"\n[security]\nkeys = [\"key\"]\n\
             [[network]]\nind = 1\ninterface = \"n1\"\n[[network]]\nind = 2\ninterface = \"n2\"\n\
             [[monitor]]\nprotocol = \"udp\"\nport = {PORT}\npackets = \"to\"\n"
        );
        let file = self.folder.path().join(format!("{host}.toml"));
        fs::write(&file, text)?;
        let binary = binary.to_str().ok_or("its name is no text")?;
        let mut command = self.hosts[host].command(binary);
        command.arg("daemon").arg(file).stdout(Stdio::null());
        self.daemons.push(command.spawn()?);
        Ok(())
    }

    fn status(&self) -> Option<Value> {
        control::request(&self.folder.path().join("0.sock"), &Request::Status).ok()
    }

    fn wait_until_replicated(&self) -> Result<()> {
        let socket = self.sending()?;
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            // Nobody receives, which the host may say.
            let _ = socket.send(&[0; LEN]);
            thread::sleep(Duration::from_millis(10));
            let status = self.status().unwrap_or_default();
            let networks = status["sending"][0]["networks"].as_array();
            if networks.is_some_and(|all| all.len() == 2) {
                // Until the kernel knows what is to be captured.
                thread::sleep(SETTLE);
                return Ok(());
            }
        }
        Err("in vain it was waited for a session".into())
    }

    fn sending(&self) -> Result<UdpSocket> {
        let socket = self.hosts[0].run(|| UdpSocket::bind("10.77.1.1:0"))??;
        socket.connect(SocketAddr::from(([10, 77, 1, 2], PORT)))?;
        Ok(socket)
    }

    fn measure(&self) -> Result<Measured> {
        // Ports at which datagrams end, so that no host answers that there is nobody.
        let mut ends = vec![self.hosts[1].run(|| UdpSocket::bind(("10.77.1.2", PORT)))??];
        if self.way == Way::Bare {
            for network in [1, 2] {
                let at = (format!("10.77.{network}.2"), DATA_PORT);
                ends.push(self.hosts[1].run(|| UdpSocket::bind((at.0.as_str(), at.1)))??);
            }
        }
        let delay_us = self.delay()?;
        let (cpu_ns, rate, share) = match self.way {
            Way::Nobody => (f64::NAN, f64::NAN, f64::NAN),
            _ => self.cost()?,
        };
        drop(ends);
        Ok(Measured {
            delay_us,
            cpu_ns,
            rate,
            share,
        })
    }

    /// The median delay to the far end of network 1, of one datagram each millisecond.
    fn delay(&self) -> Result<f64> {
        // All IP packets of the host.
        let ip = Protocol::from(i32::from(0x0800_u16.to_be()));
        let seen = self.hosts[1].run(|| Socket::new(Domain::PACKET, Type::DGRAM, Some(ip)))??;
        seen.set_read_timeout(Some(Duration::from_millis(500)))?;
        let watching = thread::spawn(move || watch(seen));
        let socket = self.sending()?;
        thread::sleep(Duration::from_millis(50));
        // It would wait for a processor beside who watches.
        self.signal_receiver(Signal::STOP)?;
        let began = Instant::now();
        let mut sent = Vec::new();
        for number in 0..SLOW {
            let due = began + Duration::from_millis(number.into());
            thread::sleep(due.saturating_duration_since(Instant::now()));
            sent.push(Clock.now().as_nanos());
            socket.send(&[1; LEN])?;
        }
        self.signal_receiver(Signal::CONT)?;
        let came = watching.join().map_err(|_| "the watcher has failed")?;
        if came.len() != sent.len() {
            return Err(format!("{} came of {}", came.len(), sent.len()).into());
        }
        let delays = came.iter().zip(&sent);
        let mut delays: Vec<_> = delays.map(|(came, sent)| came - sent).collect();
        delays.sort_unstable();
        Ok(delays[delays.len() / 2] as f64 / 1e3)
    }

    fn signal_receiver(&self, signal: Signal) -> Result<()> {
        let receiver = self.daemons.get(1).map(Pid::from_child);
        receiver.map_or(Ok(()), |it| Ok(kill_process(it, signal)?))
    }

    /// Of the capturing thread: ns of CPU a packet, thousands of packets a second, share of what was sent.
    fn cost(&self) -> Result<(f64, f64, f64)> {
        let socket = self.sending()?;
        let (began, before, mut sent) = (Instant::now(), self.taken()?, 0_u64);
        while began.elapsed() < FAST {
            for _ in 0..64 {
                // What the host refuses is not captured.
                sent += u64::from(socket.send(&[2; LEN]).is_ok());
            }
        }
        let lasted = began.elapsed();
        thread::sleep(Duration::from_millis(300));
        let after = self.taken()?;
        let captured = after.0 - before.0;
        let cpu = (after.1 - before.1) as f64 / captured.max(1) as f64;
        let rate = captured as f64 / lasted.as_secs_f64() / 1e3;
        Ok((cpu, rate, captured as f64 / sent as f64))
    }

    /// Packets captured so far, and nanoseconds for which the thread has run.
    fn taken(&self) -> Result<(u64, u64)> {
        if let Some(bare) = &self.bare {
            let it = &bare.shared;
            return Ok((it.captured.load(Ordering::Acquire), busy(&it.task())?));
        }
        let status = self.status().ok_or("no status")?;
        let captured = status["counters"]["captured"].as_u64().unwrap_or(0);
        let tasks = format!("/proc/{}/task", self.daemons[0].id());
        for task in fs::read_dir(tasks)? {
            let task = task?.path();
            if fs::read_to_string(task.join("comm"))?.trim() == "data plane" {
                return Ok((captured, busy(&task)?));
            }
        }
        Err("the daemon has no data plane".into())
    }
}

fn busy(task: &Path) -> Result<u64> {
    let text = fs::read_to_string(task.join("schedstat"))?;
    Ok(text
        .split_whitespace()
        .next()
        .ok_or("no schedstat")?
        .parse()?)
}

/// When datagrams came to 10.77.1.2, as copies or as they were, until none comes for a while.
fn watch(mut seen: Socket) -> Vec<u64> {
    let (mut came, mut packet) = (Vec::new(), vec![0; 65_536]);
    while let Ok(len) = seen.read(&mut packet) {
        let now = Clock.now().as_nanos();
        let is_it = packet[9] == 17 && packet[16..20] == [10, 77, 1, 2];
        let ports = [PORT, DATA_PORT].map(u16::to_be_bytes);
        if is_it && ports.iter().any(|it| packet[22..24] == *it) && len >= HEADERS + LEN {
            // Copies that leave together come together here.
            let copies = (len - HEADERS) / (LEN + OVERHEAD);
            came.extend(std::iter::repeat_n(now, copies.max(1)));
        }
    }
    came
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    captured: AtomicU64,
    thread: AtomicU64,
}

impl Shared {
    fn task(&self) -> PathBuf {
        let thread = self.thread.load(Ordering::Acquire);
        format!("/proc/self/task/{thread}").into()
    }
}

/// The least program that captures by NFQUEUE: each packet's payload leaves on both networks, and the packet is dropped.
struct Bare {
    shared: Arc<Shared>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Bare {
    fn start(host: &Namespace) -> Result<Self> {
        let (shared, waker) = (Arc::new(Shared::default()), Waker::new()?);
        let told = |error: &dyn std::fmt::Display| error.to_string();
        let opened = host.run(|| -> std::result::Result<_, String> {
            let sockets = [1, 2].map(|network| {
                let socket = UdpSocket::bind(format!("10.77.{network}.1:0"))?;
                socket.connect(format!("10.77.{network}.2:{DATA_PORT}"))?;
                socket.set_nonblocking(true)?;
                Ok::<_, std::io::Error>(socket)
            });
            let [a, b] = sockets;
            let queue = Queue::open(QUEUE, 8192).map_err(|it| told(&it))?;
            let rules = Rules {
                queue: QUEUE,
                group: QUEUE,
                watched: Vec::new(),
                mss: Mss {
                    v4: 1_300,
                    v6: 1_300,
                },
                diverting: None,
            };
            let mut firewall =
                Firewall::install("bumpless_bare", &rules).map_err(|it| told(&it))?;
            let captured = Captured {
                protocol: 17,
                side: Side::Destination,
                port: PORT,
                destination: [10, 77, 1, 2].into(),
            };
            firewall.capture(&captured).map_err(|it| told(&it))?;
            let sockets = [a.map_err(|it| told(&it))?, b.map_err(|it| told(&it))?];
            Ok((queue, firewall, sockets))
        })?;
        let (mut queue, firewall, sockets) = opened?;
        let (told, woken) = (Arc::clone(&shared), waker.clone());
        let thread = thread::spawn(move || {
            let own = fs::read_link("/proc/thread-self").unwrap_or_default();
            let own = own.file_name().and_then(|it| it.to_str()?.parse().ok());
            told.thread.store(own.unwrap_or(0), Ordering::Release);
            let mut poller = Poller::new(&[queue.as_raw_fd()], woken);
            while !told.stop.load(Ordering::Acquire) {
                let _ = poller.wait(bumpless_base::Instant::FAR_FUTURE);
                let count = queue.drain(64, |packet: Queued<'_>| {
                    let payload = parse(packet.bytes).map_or(&[][..], |it| it.payload);
                    for socket in &sockets {
                        let _ = socket.send(payload);
                    }
                    Verdict::Drop
                });
                told.captured
                    .fetch_add(count.unwrap_or(0) as u64, Ordering::AcqRel);
            }
            drop(firewall);
        });
        while shared.thread.load(Ordering::Acquire) == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(Self {
            shared,
            waker,
            thread: Some(thread),
        })
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
