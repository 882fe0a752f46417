//! Loopback addresses that nobody else uses, so that tests run side by side and beside a
//! demonstration.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

const NODE_PORT: u16 = 4700;
const WITNESS_PORT: u16 = 4710;
const PLANT_PORT: u16 = 5502;
/// Room for each network in the last octet.
const PER_NETWORK: u8 = 20;
const WITNESS_HOST: u8 = 9;

static COUNTER: AtomicU32 = AtomicU32::new(0);

/// Held while a process is being started, and while sockets show that addresses are free: until it has become
/// another program, the process holds every socket that was open here, and so the addresses that were just let go.
static FORK: Mutex<()> = Mutex::new(());

/// Starts `command`; no address that is found free meanwhile or before stays taken by it.
pub fn spawn(command: &mut Command) -> std::io::Result<Child> {
    let _held = FORK.lock().unwrap_or_else(PoisonError::into_inner);
    command.spawn()
}

/// The addresses 127.`a`.`b`.0/24.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    a: u8,
    b: u8,
}

impl Addresses {
    /// Addresses that were free a moment ago.
    pub fn find() -> Self {
        let process = std::process::id().wrapping_mul(64);
        for _ in 0..256 {
            let at = process.wrapping_add(COUNTER.fetch_add(1, Ordering::Relaxed));
            let found = Self {
                a: 64 + (at / 256 % 128) as u8,
                b: (at % 256) as u8,
            };
            if found.are_free() {
                return found;
            }
        }
        panic!("found no free loopback addresses");
    }

    fn are_free(self) -> bool {
        let _held = FORK.lock().unwrap_or_else(PoisonError::into_inner);
        let networks = 0..3u8;
        let udp = networks.flat_map(|n| [self.node(n, 0), self.node(n, 1), self.witness(n)]);
        let held: Option<Vec<_>> = udp.map(|address| UdpSocket::bind(address).ok()).collect();
        held.is_some() && TcpListener::bind(self.plant()).is_ok()
    }

    fn host(self, host: u8) -> Ipv4Addr {
        Ipv4Addr::new(127, self.a, self.b, host)
    }

    /// Node number `node` on network number `network`.
    pub fn node(self, network: u8, node: u8) -> SocketAddr {
        (self.host(network * PER_NETWORK + 1 + node), NODE_PORT).into()
    }

    /// The witness on `network`.
    pub fn witness(self, network: u8) -> SocketAddr {
        let host = network * PER_NETWORK + WITNESS_HOST;
        (self.host(host), WITNESS_PORT).into()
    }

    /// The field device.
    pub fn plant(self) -> SocketAddr {
        (self.host(200), PLANT_PORT).into()
    }

    /// An address of somebody who has nothing to do with the pair.
    pub fn stranger(self) -> SocketAddr {
        (self.host(250), 0).into()
    }
}

/// An address that is not on this machine: one for documentation (RFC 5737).
pub fn absent(host: u8) -> SocketAddr {
    let nets = [[198, 51, 100], [203, 0, 113], [192, 0, 2]];
    let addresses = nets.map(|[a, b, c]| (Ipv4Addr::new(a, b, c, host), NODE_PORT).into());
    let is_absent = |address: &SocketAddr| UdpSocket::bind(address).is_err();
    addresses.into_iter().find(is_absent).unwrap()
}

/// Ports of ::1 that were free a moment ago; `None` without IPv6.
pub fn ipv6_ports(count: usize) -> Option<Vec<SocketAddr>> {
    let bind = |_| UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).ok();
    let held: Option<Vec<_>> = (0..count).map(bind).collect();
    held?
        .iter()
        .map(|socket| socket.local_addr().ok())
        .collect()
}
