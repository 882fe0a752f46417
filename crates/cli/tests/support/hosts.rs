//! Three computers as network namespaces of one thread: `left`, `right`, and `field`, where witnesses
//! and plant are. `left` and `right` are joined by the networks A and B, each through a switch in a
//! fourth namespace; both reach `field` on cables of their own, so that cutting A and B separates
//! the nodes from each other and from nothing else.
//!
//! A host `twin` has the addresses of `left` and is on network B, once `left` has been taken off that; or it is on both
//! networks as a host of its own, as `far` can be.
//!
//! Nothing has to be cleaned up: the namespaces have no names, so the kernel removes them when the
//! thread and its processes are gone, after a panic too.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Stdio};

use bumpless_testing::need_namespaces;

use super::plan::Plan;

pub struct Hosts {
    left: OwnedFd,
    right: OwnedFd,
    field: OwnedFd,
    switch: OwnedFd,
    twin: OwnedFd,
    far: OwnedFd,
}

/// Runs `test` with hosts of its own, or skips it.
pub fn with_hosts(test: impl FnOnce(Hosts) + Send + 'static) {
    need_namespaces();
    // A thread of its own: it changes its network namespace.
    let thread = std::thread::spawn(move || test(Hosts::new()));
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// A pair on the addresses of the hosts; `plan` says the rest.
pub fn pair_on_hosts() -> Plan {
    let at = |network: u8, host: u8, port: u16| SocketAddr::from(([10, 77, network, host], port));
    let mut plan = Plan::pair(2);
    for (host, node) in plan.nodes.iter_mut().enumerate() {
        for (network, (_, address)) in node.addresses.iter_mut().enumerate() {
            *address = at(network as u8 + 1, host as u8 + 1, 4700);
        }
    }
    for (network, (_, address)) in plan.witnesses.iter_mut().enumerate() {
        *address = at(network as u8 + 1, 9, 4710);
    }
    plan.plant = at(9, 10, 5502);
    plan
}

impl Hosts {
    fn new() -> Self {
        let hosts = Self {
            left: own_namespace(),
            right: own_namespace(),
            field: own_namespace(),
            switch: own_namespace(),
            twin: own_namespace(),
            far: own_namespace(),
        };
        hosts.cable();
        hosts
    }

    fn cable(&self) {
        let path = |fd: &OwnedFd| format!("/proc/{}/fd/{}", std::process::id(), fd.as_raw_fd());
        let (left, right, field) = (path(&self.left), path(&self.right), path(&self.field));
        let switch = path(&self.switch);
        self.ip(
            "switch",
            &format!(
                "link add A type bridge\nlink add B type bridge\n\
                 link add a1 type veth peer name na netns {left}\n\
                 link add a2 type veth peer name na netns {right}\n\
                 link add b1 type veth peer name nb netns {left}\n\
                 link add b2 type veth peer name nb netns {right}\n\
                 link set dev a1 master A up\nlink set dev a2 master A up\n\
                 link set dev b1 master B up\nlink set dev b2 master B up\n\
                 link set dev A up\nlink set dev B up\n"
            ),
        );
        for (host, number) in [("left", 1), ("right", 2)] {
            self.ip(
                host,
                &format!(
                    "link set dev lo up\n\
                     address add 10.77.1.{number}/24 dev na\naddress add 10.77.2.{number}/24 dev nb\n\
                     link set dev na up\nlink set dev nb up\n\
                     link add f type veth peer name f{number} netns {field}\n\
                     address add 10.77.10{number}.1/30 dev f\nlink set dev f up\n\
                     link add w type veth peer name x{number} netns {switch}\nlink set dev w up\n\
                     route add 10.77.1.9/32 dev w src 10.77.1.{number}\n\
                     route add 10.77.2.9/32 dev w src 10.77.2.{number}\n\
                     route add 10.77.9.10/32 dev f src 10.77.10{number}.1\n"
                ),
            );
        }
        self.ip(
            "field",
            "link set dev lo up\naddress add 10.77.1.9/32 dev lo\naddress add 10.77.2.9/32 dev lo\n\
             address add 10.77.9.10/32 dev lo\n\
             address add 10.77.101.2/30 dev f1\nlink set dev f1 up\n\
             address add 10.77.102.2/30 dev f2\nlink set dev f2 up\n",
        );
        for number in [1, 2] {
            self.ip(
                "field",
                &format!(
                    "link add w{number} type veth peer name y{number} netns {switch}\n\
                     link set dev w{number} up\n\
                     route add 10.77.1.{number}/32 dev w{number} src 10.77.1.9\n\
                     route add 10.77.2.{number}/32 dev w{number} src 10.77.2.9\n"
                ),
            );
            self.ip(
                "switch",
                &format!(
                    "link add W{number} type bridge\nlink set dev W{number} up\n\
                     link set dev x{number} master W{number} up\n\
                     link set dev y{number} master W{number} up\n"
                ),
            );
        }
    }

    /// Cuts a network between the nodes where they do not notice by themselves: in the switch.
    pub fn cut(&self, network: &str) {
        self.ip("switch", &format!("link set dev {network} down\n"));
    }

    pub fn mend(&self, network: &str) {
        self.ip("switch", &format!("link set dev {network} up\n"));
    }

    /// Has `host` send no datagram longer than fits into `mtu` bytes on network B.
    pub fn shorten_b(&self, host: &str, mtu: u32) {
        self.ip(host, &format!("link set dev nb mtu {mtu}\n"));
    }

    /// Switches a host's own interface on network B `up` or `down`.
    pub fn switch_b(&self, host: &str, to: &str) {
        self.ip(host, &format!("link set dev nb {to}\n"));
    }

    /// Takes `left` off network B and puts `twin` there, which has the same addresses.
    pub fn put_twin_on_b(&self) {
        let twin = format!("/proc/{}/fd/{}", std::process::id(), self.twin.as_raw_fd());
        self.ip(
            "switch",
            &format!(
                "link set dev b1 down\nlink add b3 type veth peer name nb netns {twin}\n\
                 link set dev b3 master B up\n"
            ),
        );
        self.ip(
            "twin",
            "link set dev lo up\naddress add 10.77.2.1/24 dev nb\nlink set dev nb up\n",
        );
    }

    /// Puts `twin` on both networks as a host of its own, with the number 66.
    pub fn put_stranger_on_both(&self) {
        self.put_on_both("twin", 66);
    }

    /// Puts `twin` or `far` on both networks as a host of its own, with this number.
    pub fn put_on_both(&self, host: &str, number: u8) {
        let fd = self.namespace(host).as_raw_fd();
        let path = format!("/proc/{}/fd/{fd}", std::process::id());
        self.ip(
            "switch",
            &format!(
                "link add a{number} type veth peer name na netns {path}\nlink set dev a{number} master A up\n\
                 link add b{number} type veth peer name nb netns {path}\nlink set dev b{number} master B up\n"
            ),
        );
        self.ip(
            host,
            &format!(
                "link set dev lo up\naddress add 10.77.1.{number}/24 dev na\naddress add 10.77.2.{number}/24 dev nb\n\
                 link set dev na up\nlink set dev nb up\n"
            ),
        );
    }

    /// The other way round.
    pub fn put_left_on_b(&self) {
        self.ip("switch", "link set dev b3 down\nlink set dev b1 up\n");
    }

    /// Takes the way between `host` and the witnesses away; the plant still reaches it.
    pub fn part_from_witnesses(&self, host: &str) {
        self.cut(&format!("W{}", number(host)));
    }

    /// Gives the way to the witnesses back.
    pub fn join_with_witnesses(&self, host: &str) {
        self.mend(&format!("W{}", number(host)));
    }

    /// Loses what the witnesses send to `host`; they still hear it.
    pub fn keep_from_hearing_witnesses(&self, host: &str) {
        let number = number(host);
        self.ip(
            "field",
            &format!(
                "route replace blackhole 10.77.1.{number}/32\n\
                 route replace blackhole 10.77.2.{number}/32\n"
            ),
        );
    }

    /// Takes the way between `host` and the plant away.
    pub fn part_from_plant(&self, host: &str) {
        self.ip("field", &format!("link set dev f{} down\n", number(host)));
    }

    pub fn join_with_plant(&self, host: &str) {
        self.ip("field", &format!("link set dev f{} up\n", number(host)));
    }

    /// Runs `work` on `host`; processes started by it stay there.
    pub fn at<T>(&self, host: &str, work: impl FnOnce() -> T) -> T {
        enter(self.namespace(host));
        work()
    }

    fn namespace(&self, host: &str) -> &OwnedFd {
        match host {
            "left" => &self.left,
            "right" => &self.right,
            "switch" => &self.switch,
            "twin" => &self.twin,
            "far" => &self.far,
            _ => &self.field,
        }
    }

    fn ip(&self, host: &str, lines: &str) {
        self.at(host, || {
            let mut command = Command::new("ip");
            command
                .args(["-batch", "-"])
                .stdin(Stdio::piped())
                .stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            child
                .stdin
                .take()
                .unwrap()
                .write_all(lines.as_bytes())
                .unwrap();
            let output = child.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "ip on {host}: {text}\n{lines}");
        });
    }
}

fn number(host: &str) -> u8 {
    match host {
        "left" => 1,
        _ => 2,
    }
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
