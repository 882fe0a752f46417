//! Two hosts as network namespaces of one thread, joined by two cables, and what is captured on them.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::fs::File;
use std::io::Write;
use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bumpless_capture::{Captured, Mss, Rules, Side, Watched};
use bumpless_testing::need_namespaces;

pub const UDP: u8 = 17;
pub const TCP: u8 = 6;
pub const TABLE: &str = "bumpless_test";
pub const NUMBER: u16 = 77;

/// One test at a time: a program that another one starts has for a moment every descriptor of this process, and so keeps a queue or a
/// table that a test has let go of.
static ALONE: Mutex<()> = Mutex::new(());

pub struct Hosts {
    pub a: OwnedFd,
    pub b: OwnedFd,
    _alone: MutexGuard<'static, ()>,
}

impl Hosts {
    pub fn new() -> Self {
        need_namespaces();
        let hosts = Self {
            _alone: ALONE.lock().unwrap_or_else(PoisonError::into_inner),
            a: own_namespace(),
            b: own_namespace(),
        };
        let b = format!("/proc/{}/fd/{}", std::process::id(), hosts.b.as_raw_fd());
        hosts.ip(
            &hosts.a,
            &format!(
                "link add na type veth peer name na netns {b}\nlink add nb type veth peer name nb netns {b}\n"
            ),
        );
        for (host, number) in [(&hosts.a, 1), (&hosts.b, 2)] {
            hosts.ip(
                host,
                &format!(
                    "link set dev lo up\n\
                     address add 10.1.0.{number}/24 dev na\naddress add 10.2.0.{number}/24 dev nb\n\
                     address add fd00:a::{number}/64 dev na nodad\n\
                     link set dev na up\nlink set dev nb up\n"
                ),
            );
            hosts.at(host, || wait_for_own_route(&format!("fd00:a::{number}")));
        }
        for host in [&hosts.a, &hosts.b] {
            hosts.at(host, wait_for_carriers);
        }
        hosts
    }

    pub fn at<T>(&self, host: &OwnedFd, work: impl FnOnce() -> T) -> T {
        // SAFETY: setns() takes integers only; the descriptor is open.
        let result = unsafe { libc::setns(host.as_raw_fd(), libc::CLONE_NEWNET) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
        work()
    }

    pub fn ip(&self, host: &OwnedFd, lines: &str) {
        self.at(host, || {
            let mut command = Command::new("ip");
            command.args(["-batch", "-"]).stdin(Stdio::piped());
            let mut child = command.spawn().unwrap();
            child
                .stdin
                .take()
                .unwrap()
                .write_all(lines.as_bytes())
                .unwrap();
            assert!(child.wait().unwrap().success(), "{lines}");
        });
    }
}

/// Waits until what is for `address`, of this host, stays in this host: the kernel adds this route some time after the
/// address can be bound, and until then sends such packets out of the interface.
pub fn wait_for_own_route(address: &str) {
    let bits = address.parse::<Ipv6Addr>().unwrap().to_bits();
    let line = format!("{bits:032x} 80 ");
    wait_for(&format!("the route to {address}"), || {
        let routes = std::fs::read_to_string("/proc/thread-self/net/ipv6_route").unwrap();
        routes.lines().any(|it| it.starts_with(&line)).then_some(())
    });
}

/// Waits until both cables carry packets: the kernel finds that both ends of one are up some time after they are, and until
/// then drops what is sent.
fn wait_for_carriers() {
    wait_for("both cables", || {
        let links = Command::new("ip")
            .args(["-brief", "link"])
            .output()
            .unwrap();
        let links = String::from_utf8(links.stdout).unwrap();
        let carry = |name: &str| {
            let mut lines = links.lines().filter(|line| line.starts_with(name));
            lines.any(|line| line.split_whitespace().nth(1) == Some("UP"))
        };
        (carry("na@") && carry("nb@")).then_some(())
    });
}

fn own_namespace() -> OwnedFd {
    // SAFETY: unshare() takes integers only and concerns this thread's network namespace.
    let result = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    File::open("/proc/thread-self/ns/net").unwrap().into()
}

pub fn rules(watched: &[Watched]) -> Rules {
    Rules {
        queue: NUMBER,
        group: NUMBER,
        watched: watched.to_vec(),
        mss: Mss { v4: 1300, v6: 1280 },
        diverting: None,
    }
}

pub fn watched(protocol: u8, side: Side, port: u16) -> Watched {
    Watched {
        protocol,
        side,
        first: port,
        last: port,
    }
}

pub fn captured(protocol: u8, destination: &str, port: u16) -> Captured {
    Captured {
        protocol,
        side: Side::Destination,
        port,
        destination: destination.parse().unwrap(),
    }
}

/// Calls `look` until it gives something, for ten seconds.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub fn socket(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind(address).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    socket
}

pub fn received(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = [0; 2000];
    let (length, from) = socket.recv_from(&mut buffer).unwrap();
    (buffer[..length].to_vec(), from)
}
