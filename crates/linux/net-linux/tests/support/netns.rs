//! Two hosts, "left" and "right", as network namespaces of one thread, joined by two veth pairs.
//!
//! Nothing has to be cleaned up: the namespaces have no names, so the kernel removes them, with
//! everything in them, when the thread and its sockets are gone, after a panic too.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;

use bumpless_testing::need_namespaces;

/// A network between the two hosts.
#[derive(Clone, Copy)]
pub struct Network {
    /// Interface on the left; the right one is `peer`.
    pub interface: &'static str,
    pub peer: &'static str,
    /// Third part of the addresses.
    pub number: u8,
}

pub const A: Network = Network {
    interface: "a1",
    peer: "a2",
    number: 1,
};
pub const B: Network = Network {
    interface: "b1",
    peer: "b2",
    number: 2,
};

impl Network {
    pub fn left(self, v6: bool) -> String {
        self.address(v6, 1)
    }
    pub fn right(self, v6: bool) -> String {
        self.address(v6, 2)
    }
    fn address(self, v6: bool, host: u8) -> String {
        let number = self.number;
        if v6 {
            format!("fd00:{number}::{host}")
        } else {
            format!("10.77.{number}.{host}")
        }
    }
}

pub struct Hosts {
    left: OwnedFd,
    right: OwnedFd,
}

/// Runs `test` with two connected hosts, or skips it.
pub fn with_hosts(test: impl FnOnce(&Hosts) + Send + 'static) {
    need_namespaces();
    // A thread of its own: it changes its network namespace.
    let thread = std::thread::spawn(move || {
        let hosts = Hosts::new();
        hosts.connect(A);
        hosts.connect(B);
        test(&hosts);
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

impl Hosts {
    fn new() -> Self {
        let hosts = Self {
            left: own_namespace(),
            right: own_namespace(),
        };
        for host in [&hosts.left, &hosts.right] {
            enter(host);
            ip("link set lo up");
        }
        hosts
    }

    /// Runs `work` on the left host. Sockets stay where they were opened.
    pub fn left<T>(&self, work: impl FnOnce() -> T) -> T {
        enter(&self.left);
        work()
    }

    pub fn right<T>(&self, work: impl FnOnce() -> T) -> T {
        enter(&self.right);
        work()
    }

    /// Plugs the cable in: a veth pair with addresses of both versions on both ends.
    pub fn connect(&self, network: Network) {
        let Network {
            interface, peer, ..
        } = network;
        let right = format!("/proc/{}/fd/{}", std::process::id(), self.right.as_raw_fd());
        self.left(|| {
            ip(&format!(
                "link add {interface} type veth peer name {peer} netns {right}"
            ))
        });
        for v6 in [false, true] {
            self.left(|| add_address(interface, &network.left(v6)));
            self.right(|| add_address(peer, &network.right(v6)));
        }
        self.left(|| ip(&format!("link set {interface} up")));
        self.right(|| ip(&format!("link set {peer} up")));
    }
}

/// Runs `ip` in the thread's namespace.
pub fn ip(arguments: &str) {
    run("ip", arguments);
}

/// Runs a program in the thread's namespace.
pub fn run(program: &str, arguments: &str) {
    let output = Command::new(program)
        .args(arguments.split_whitespace())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments}: {text}");
}

/// Gives `interface` an address; it may have it already.
pub fn add_address(interface: &str, address: &str) {
    let (bits, more) = if address.contains(':') {
        (64, "nodad")
    } else {
        (24, "")
    };
    ip(&format!(
        "address replace {address}/{bits} dev {interface} {more}"
    ));
}

pub fn remove_address(interface: &str, address: &str) {
    let bits = if address.contains(':') { 64 } else { 24 };
    ip(&format!("address del {address}/{bits} dev {interface}"));
}

fn own_namespace() -> OwnedFd {
    // SAFETY: unshare() takes integers only and concerns this thread's network namespace.
    let result = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    File::open("/proc/thread-self/ns/net").unwrap().into()
}

fn enter(namespace: &OwnedFd) {
    // SAFETY: setns() takes integers only; the descriptor is open.
    let result = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}
