//! Two hosts in namespaces with their daemons, and ordinary programs between them.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::hosts::Hosts;
use crate::support::process::{Process, said};
use crate::support::wait_until;

pub const BOTH: [&str; 2] = ["left", "right"];
pub const PORT: u16 = 4713;
pub const TCP_PORT: u16 = 5020;

/// Two hosts with a file each, and the daemons that run there.
pub struct Site {
    pub hosts: Hosts,
    pub folder: TempDir,
    pub left: Option<Process>,
    pub right: Option<Process>,
}

pub fn monitors(more: &str) -> String {
    format!(
        "[[monitor]]\nprotocol = \"udp\"\nport = {PORT}\n\
         [[monitor]]\nprotocol = \"tcp\"\nport = {TCP_PORT}\n{more}"
    )
}

impl Site {
    pub fn new(hosts: Hosts) -> Self {
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

    /// Hosts with a certificate each, LEFT.grid and RIGHT.grid at the site `plant`, of which keys last for two seconds.
    pub fn with_certificates(hosts: Hosts) -> Self {
        let site = Self::new(hosts);
        let authority = site.authority();
        let made = said(&["pki", "init", &authority, "--site", "plant"]);
        assert_eq!(made.2, Some(0), "{made:?}");
        for host in BOTH {
            site.issue(host);
            let own = format!("certificates = \"{host}.grid\"");
            site.replace(host, "keys = [\"../group.key\"]", &own);
            site.replace(host, "[timing]", "[timing]\nkey_lifetime_s = 2");
        }
        site
    }

    fn authority(&self) -> String {
        let authority = self.folder.path().join("pki");
        authority.to_str().unwrap().to_owned()
    }

    /// The folder with a host's certificate.
    pub fn certificate(&self, host: &str) -> PathBuf {
        self.folder.path().join(host).join(format!("{host}.grid"))
    }

    /// Issues a host's certificate, in the place of one that it has.
    pub fn issue(&self, host: &str) {
        let (own, authority) = (self.certificate(host), self.authority());
        let _ = std::fs::remove_dir_all(&own);
        let (name, out) = (format!("{host}.grid"), own.to_str().unwrap());
        let made = said(&[
            "pki",
            "issue",
            &name,
            "--authority",
            &authority,
            "--out",
            out,
        ]);
        assert_eq!(made.2, Some(0), "{made:?}");
    }

    /// Changes a host's file.
    pub fn replace(&self, host: &str, from: &str, to: &str) {
        let text = std::fs::read_to_string(self.file(host)).unwrap();
        assert!(text.contains(from), "{text}");
        std::fs::write(self.file(host), text.replace(from, to)).unwrap();
    }

    pub fn write(&self, host: &str, a: &str, b: &str, monitors: &str) {
        let text = format!(
            "[host]\nsocket = \"iprp.sock\"\n[security]\nkeys = [\"../group.key\"]\n\
             [timing]\nadvertise_every_ms = 1000\ninactivity_ms = 10000\n[limits]\nsessions = 16\n\
             [[network]]\nind = 10\n{a}\n[[network]]\nind = 11\n{b}\n{monitors}"
        );
        std::fs::write(self.file(host), text).unwrap();
    }

    /// Gives a host these addresses of IPv6 on A and B, and has what it sends to groups leave on A where programs do not say.
    pub fn add_addresses_v6(&self, host: &str, addresses: [std::net::IpAddr; 2]) {
        let ip = |words: &[&str]| {
            let done = self
                .hosts
                .at(host, || Command::new("ip").args(words).status());
            assert!(done.unwrap().success(), "{words:?}");
        };
        for (device, address) in ["na", "nb"].into_iter().zip(addresses) {
            let address = format!("{address}/64");
            ip(&["address", "add", &address, "dev", device, "nodad"]);
        }
        let metric = ["dev", "na", "table", "local", "metric", "1"];
        ip(&[
            &["-6", "route", "add", "multicast", "ff00::/8"],
            &metric[..],
        ]
        .concat());
    }

    pub fn file(&self, host: &str) -> PathBuf {
        self.folder.path().join(host).join("iprp.toml")
    }

    pub fn name(&self, host: &str) -> String {
        self.file(host).to_str().unwrap().to_owned()
    }

    pub fn start(&mut self, host: &str) {
        let file = self.name(host);
        let said = self.folder.path().join(format!("{host}.said"));
        let process = self
            .hosts
            .at(host, || Process::start(&["iprp", "run", &file], &said));
        *self.daemon(host) = Some(process);
        wait_until("the daemon answers", || self.status(host).is_some());
    }

    pub fn daemon(&mut self, host: &str) -> &mut Option<Process> {
        match host {
            "left" => &mut self.left,
            _ => &mut self.right,
        }
    }

    pub fn kill(&mut self, host: &str) {
        self.daemon(host).take().unwrap().kill();
    }

    pub fn interrupt(&mut self, host: &str) {
        self.daemon(host).take().unwrap().interrupt();
    }

    pub fn status(&self, host: &str) -> Option<Value> {
        let (text, _, status) = said(&["iprp", "status", &self.name(host), "--json"]);
        (status == Some(0)).then(|| serde_json::from_str(&text).unwrap())
    }

    /// Networks on which `host` sends copies of the flow with this protocol and port, if that is replicated.
    pub fn sends_on(&self, host: &str, protocol: &str, port: u16) -> usize {
        let status = self.status(host).unwrap();
        let all = status["sending"].as_array().unwrap();
        let one = all
            .iter()
            .find(|it| it["protocol"] == protocol && it["port"] == port);
        let live = one.filter(|it| it["suspended"] == false);
        live.map_or(0, |it| it["networks"].as_array().unwrap().len())
    }

    /// The firewall's tables of ours on a host.
    pub fn tables(&self, host: &str) -> usize {
        let tables = self.hosts.at(host, || bumpless_capture::tables().unwrap());
        tables
            .iter()
            .filter(|name| name.contains("bumpless"))
            .count()
    }

    pub fn udp(&self, host: &str, address: &str) -> UdpSocket {
        let socket = self.hosts.at(host, || UdpSocket::bind(address).unwrap());
        hold_for_seconds(&socket);
        socket
    }
}

/// Has `socket` hold what comes in some seconds: the kernel's default is full after a third of one at 1,000 datagrams a second, and a
/// program of a test may wait for a processor for longer, behind other tests.
fn hold_for_seconds(socket: &UdpSocket) {
    let bytes: libc::c_int = 16 << 20;
    // SAFETY: the kernel reads as many bytes as `bytes` has, which lives through the call.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVBUFFORCE,
            (&raw const bytes).cast(),
            size_of_val(&bytes) as libc::socklen_t,
        )
    };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

/// Numbered datagrams at an even rate, from an ordinary socket.
pub struct Stream {
    pub stop: Arc<AtomicBool>,
    /// How many have been sent so far.
    pub sent: Arc<AtomicU32>,
    pub sending: JoinHandle<u32>,
}

impl Stream {
    pub fn begin(socket: UdpSocket, to: SocketAddr, a_second: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let sent = Arc::new(AtomicU32::new(0));
        let (stopping, counted) = (Arc::clone(&stop), Arc::clone(&sent));
        let sending = thread::spawn(move || {
            let (began, every) = (Instant::now(), Duration::from_secs(1) / a_second);
            let mut number = 0;
            while !stopping.load(Ordering::Relaxed) && number < 240 * a_second {
                // A network that is down for the host itself refuses; that loses nothing that was promised.
                let _ = socket.send_to(&number.to_be_bytes(), to);
                number += 1;
                counted.store(number, Ordering::Relaxed);
                let due = began + every * number;
                thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            number
        });
        Self {
            stop,
            sent,
            sending,
        }
    }

    /// Ends it; how many were sent.
    pub fn end(self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        self.sending.join().unwrap()
    }
}

/// What an ordinary socket receives: how often each number came, and from where.
pub struct Sink {
    pub stop: Arc<AtomicBool>,
    pub receiving: JoinHandle<(Vec<u32>, Vec<SocketAddr>)>,
    pub latest: Arc<AtomicU32>,
}

impl Sink {
    pub fn begin(socket: UdpSocket) -> Self {
        socket
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let latest = Arc::new(AtomicU32::new(0));
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

    pub fn latest(&self) -> u32 {
        self.latest.load(Ordering::Relaxed)
    }

    /// Waits until `more` further numbers have come; the latest one.
    pub fn wait_for_more(&self, more: u32) -> u32 {
        let goal = self.latest() + more;
        wait_until("further packets", || self.latest() >= goal);
        self.latest()
    }

    pub fn end(self) -> (Vec<u32>, Vec<SocketAddr>) {
        self.stop.store(true, Ordering::Relaxed);
        self.receiving.join().unwrap()
    }
}

/// Numbers from `first` on that did not come once.
pub fn not_once(counts: &[u32], first: u32, sent: u32) -> Vec<(u32, u32)> {
    let count = |number: u32| counts.get(number as usize).copied().unwrap_or(0);
    (first..sent)
        .map(|number| (number, count(number)))
        .filter(|(_, count)| *count != 1)
        .collect()
}
