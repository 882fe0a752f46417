//! An address for each end of each link, from a pool of either family, and one for each computer at the end of a way.
//!
//! A link takes two addresses of its own (a /31 of RFC 3021, a /127 of RFC 6164). A host is known by an address that
//! belongs to none of its links, so that it stays the same whichever of them is up.

use core::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::topology::{NodeId, Topology};

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    first: IpAddr,
    prefix: u8,
}

impl Pool {
    /// `10.64.0.0/16`: of a range that no public network has, and few hosts.
    pub const V4: Self = Self {
        first: IpAddr::V4(Ipv4Addr::new(10, 64, 0, 0)),
        prefix: 16,
    };
    /// `fd42:7761:6e00::/48`: a unique local one (RFC 4193).
    pub const V6: Self = Self {
        first: IpAddr::V6(Ipv6Addr::new(0xfd42, 0x7761, 0x6e00, 0, 0, 0, 0, 0)),
        prefix: 48,
    };

    /// Whether it is of IPv6.
    pub fn is_v6(self) -> bool {
        self.first.is_ipv6()
    }

    fn bits(self) -> u8 {
        if self.first.is_ipv4() { 32 } else { 128 }
    }

    /// How many addresses it has, as far as 64 bits tell.
    pub fn size(self) -> u64 {
        1u64.checked_shl(u32::from(self.bits() - self.prefix))
            .unwrap_or(u64::MAX)
    }

    /// Its address of this number, counted from 0.
    fn at(self, number: u64) -> IpAddr {
        match self.first {
            IpAddr::V4(first) => IpAddr::V4(Ipv4Addr::from_bits(first.to_bits() + number as u32)),
            IpAddr::V6(first) => {
                IpAddr::V6(Ipv6Addr::from_bits(first.to_bits() + u128::from(number)))
            }
        }
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

impl FromStr for Pool {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!("{text:?} is no pool of addresses: {why}; write it as 10.64.0.0/16")
        };
        let (first, prefix) = text.split_once('/').ok_or_else(|| wrong("it has no '/'"))?;
        let first: IpAddr = first
            .parse()
            .map_err(|_| wrong("what is before '/' is no address"))?;
        let prefix: u8 = prefix
            .parse()
            .map_err(|_| wrong("what is behind '/' is no number"))?;
        let pool = Self { first, prefix };
        if prefix > pool.bits() {
            return Err(wrong("an address has fewer bits"));
        }
        let host = u128::MAX
            .checked_shr(128 - u32::from(pool.bits() - prefix))
            .unwrap_or(0);
        let value = match first {
            IpAddr::V4(first) => u128::from(first.to_bits()),
            IpAddr::V6(first) => first.to_bits(),
        };
        if value & host != 0 {
            return Err(wrong("its address has bits behind the prefix"));
        }
        Ok(pool)
    }
}

/// A pool is too small for a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolTooSmall {
    /// The pool.
    pub pool: Pool,
    /// How many addresses the network takes.
    pub needed: u64,
}

impl fmt::Display for PoolTooSmall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pool, needed } = self;
        let bits = needed.next_power_of_two().trailing_zeros();
        write!(
            f,
            "the pool {pool} has {} addresses, and the network takes {needed}: give a prefix of at most {} bits",
            pool.size(),
            u32::from(pool.bits()) - bits
        )
    }
}

impl std::error::Error for PoolTooSmall {}

/// Who has which address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    links: Vec<[IpAddr; 2]>,
    hosts: Vec<Option<IpAddr>>,
}

impl Addresses {
    /// Addresses of the whole network: first those of links, in order, then those of hosts.
    ///
    /// # Errors
    /// The pool has too few.
    pub fn new(topology: &Topology, pool: Pool) -> Result<Self, PoolTooSmall> {
        let links = topology.links().len() as u64;
        let needed = 2 * links + topology.hosts().count() as u64;
        if needed > pool.size() {
            return Err(PoolTooSmall { pool, needed });
        }
        let mut hosts = vec![None; topology.nodes().len()];
        for (number, host) in (2 * links..).zip(topology.hosts()) {
            hosts[host.index()] = Some(pool.at(number));
        }
        let links = (0..links)
            .map(|link| [0, 1].map(|end| pool.at(2 * link + end)))
            .collect();
        Ok(Self { links, hosts })
    }

    /// Addresses of both ends of a link.
    pub fn link(&self, link: usize) -> [IpAddr; 2] {
        self.links[link]
    }

    /// By which address a host is known; routers have none.
    pub fn host(&self, host: NodeId) -> Option<IpAddr> {
        self.hosts[host.index()]
    }
}
