//! Loopback addresses that nobody uses, so that several demonstrations can run side by side.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::time::{SystemTime, UNIX_EPOCH};

use bumpless_base::Random;

const NODE_PORT: u16 = 4700;
const WITNESS_PORT: u16 = 4710;
const PLANT_PORT: u16 = 5502;
const ATTEMPTS: u32 = 64;

/// Everybody's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The nodes' addresses by network, then by node.
    pub nodes: [[SocketAddr; 2]; 2],
    /// The witness of each network.
    pub witnesses: [SocketAddr; 2],
    /// The plant.
    pub plant: SocketAddr,
}

impl Addresses {
    /// Networks 127.`a`.`b`.0/24 and 127.`a`.`b + 1`.0/24.
    fn in_networks(a: u8, b: u8) -> Self {
        let at = |network: u8, host: u8, port: u16| {
            SocketAddr::from((Ipv4Addr::new(127, a, b + network, host), port))
        };
        Self {
            nodes: [0, 1].map(|n| [at(n, 1, NODE_PORT), at(n, 2, NODE_PORT)]),
            witnesses: [0, 1].map(|n| at(n, 9, WITNESS_PORT)),
            plant: at(0, 10, PLANT_PORT),
        }
    }

    /// Whether all of them can be bound at this moment.
    fn are_free(&self) -> bool {
        let mut held: Vec<(UdpSocket, TcpListener)> = Vec::new();
        for address in self.nodes.iter().flatten().chain(&self.witnesses) {
            // Sessions are on the port of the same number.
            match (UdpSocket::bind(address), TcpListener::bind(address)) {
                (Ok(socket), Ok(listener)) => held.push((socket, listener)),
                _ => return false,
            }
        }
        TcpListener::bind(self.plant).is_ok()
    }

    /// Addresses that are free at this moment, chosen so that demonstrations that start at the same
    /// time choose different ones.
    ///
    /// # Errors
    /// If none are found, which means that loopback addresses cannot be bound here.
    pub fn find() -> io::Result<Self> {
        let clock = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let seed = clock.as_nanos() as u64 ^ u64::from(std::process::id()) << 32;
        let mut random = Random::new(seed);
        for _ in 0..ATTEMPTS {
            let found = Self::in_networks(1 + random.below(254) as u8, random.below(255) as u8);
            if found.are_free() {
                return Ok(found);
            }
        }
        Err(io::Error::new(
            io::ErrorKind::AddrNotAvailable,
            "found no free addresses in 127.0.0.0/8; the demonstration needs a Linux loopback interface",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// What `attempt` gives as soon as it gives something. A test beside this one may start a
    /// program at any moment, and what is started holds our sockets too until it is the program:
    /// so an address can be in use for a moment after its socket was closed.
    fn before_long<T>(what: &str, attempt: impl Fn() -> Option<T>) -> T {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(given) = attempt() {
                return given;
            }
            assert!(Instant::now() < until, "{what}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn addresses_in_use_are_not_chosen() {
        let free = Addresses::find().unwrap();
        let is_free = || free.are_free().then_some(());
        before_long("probing leaves nothing behind", is_free);
        let held = before_long("the witness's address is free", || {
            UdpSocket::bind(free.witnesses[1]).ok()
        });
        assert!(!free.are_free());
        drop(held);
        for address in [free.plant, free.nodes[0][1]] {
            let held = before_long("an address is free", || TcpListener::bind(address).ok());
            assert!(!free.are_free(), "{address}");
            drop(held);
        }
        before_long("what was closed is free again", is_free);
    }
}
