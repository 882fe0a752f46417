//! From what a frame is for to its flow, in constant time.

use alloc::boxed::Box;
use alloc::vec;
use core::net::IpAddr;

use bumpless_base::random::mix64;

use crate::flow::{Flow, Match, SetupError};
use crate::frame::Transport;

/// A key is this far from its place at most, so that no sender can choose ports or addresses that take longer.
const REACH: usize = 4;

/// A pattern as words: shape, transport and port, which are never zero together; address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    what: u64,
    address: [u64; 2],
}

/// All patterns of all flows.
#[derive(Clone, Debug)]
pub struct Table {
    /// What is asked first lies together: the [`Key::what`] of each place, zero for an empty one.
    whats: Box<[u64]>,
    /// Of each place the rest: address and flow.
    entries: Box<[([u64; 2], u16)]>,
    /// Of a product's 64 bits the upper ones are the place.
    shift: u32,
    /// Odd numbers that spread the words of a key; others are tried until every key is within reach.
    spread: [u64; 3],
    /// Shapes of pattern that occur, so that others are not looked for.
    port_from: bool,
    answers: bool,
    echo: bool,
    resolution: bool,
}

/// An address as two words; its family is in [`what`].
fn words(address: IpAddr) -> [u64; 2] {
    match address {
        IpAddr::V4(address) => [0, u64::from(u32::from(address))],
        IpAddr::V6(address) => {
            let address = u128::from(address);
            [(address >> 64) as u64, address as u64]
        }
    }
}

fn what(shape: u64, transport: Transport, port: u16) -> u64 {
    let transport = match transport {
        Transport::Udp => 0,
        Transport::Tcp => 1,
    };
    u64::from(port) | shape << 16 | transport << 18
}

/// What distinguishes the families in [`Key::what`], so that no IPv6 address is taken for an IPv4 one.
fn family(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(_) => 0,
        IpAddr::V6(_) => 1 << 19,
    }
}

const PORT_FROM: u64 = 1;
const ANSWERS: u64 = 2;
const PORT: u64 = 3;
/// A shape of its own, without transport and port.
const ECHO: u64 = 1 << 20;
/// Likewise.
const RESOLUTION: u64 = 1 << 21;
/// In place of an address for patterns without.
const ANYBODY: [u64; 2] = [0, 0];

impl Match {
    fn key(&self) -> Key {
        let from = |what, address: IpAddr| Key {
            what: what | family(address),
            address: words(address),
        };
        // A receiver that takes both families names an IPv4 address in IPv6's notation.
        match self.canonical() {
            Self::PortFrom(transport, port, address) => {
                from(what(PORT_FROM, transport, port), address)
            }
            Self::Answers(transport, address, port) => {
                from(what(ANSWERS, transport, port), address)
            }
            Self::Port(transport, port) => Key {
                what: what(PORT, transport, port),
                address: ANYBODY,
            },
            Self::EchoReplies(address) => from(ECHO, address),
            Self::Resolution(address) => from(RESOLUTION, address),
        }
    }
}

impl Table {
    /// The table of these flows.
    ///
    /// # Errors
    /// [`SetupError::Overlap`]: two flows claim the same packets.
    pub fn new(flows: &[Flow]) -> Result<Self, SetupError> {
        let all = || {
            let numbered = (0u16..).zip(flows);
            numbered.flat_map(|(at, flow)| flow.matches.iter().map(move |pattern| (at, pattern)))
        };
        let mut size = (all().count() * 4).next_power_of_two().max(2 * REACH);
        loop {
            for seed in 0..8 {
                let mut table = Self {
                    whats: vec![0; size + REACH].into_boxed_slice(),
                    entries: vec![(ANYBODY, 0); size + REACH].into_boxed_slice(),
                    shift: 64 - size.trailing_zeros(),
                    spread: [1, 2, 3].map(|word| mix64(seed * 4 + word) | 1),
                    port_from: all().any(|(_, it)| matches!(it, Match::PortFrom(..))),
                    answers: all().any(|(_, it)| matches!(it, Match::Answers(..))),
                    echo: all().any(|(_, it)| matches!(it, Match::EchoReplies(..))),
                    resolution: all().any(|(_, it)| matches!(it, Match::Resolution(..))),
                };
                let mut fits = true;
                for (flow, pattern) in all() {
                    fits &= table.insert(flow, pattern)?;
                }
                if fits {
                    return Ok(table);
                }
            }
            size *= 2;
        }
    }

    /// Whether there was room within reach. The same pattern twice in one flow is one.
    fn insert(&mut self, flow: u16, pattern: &Match) -> Result<bool, SetupError> {
        let key = pattern.key();
        let place = self.place(key.what, self.mixed(key.address));
        for at in place..place + REACH {
            let (address, known) = self.entries[at];
            match self.whats[at] {
                0 => {
                    self.whats[at] = key.what;
                    self.entries[at] = (key.address, flow);
                    return Ok(true);
                }
                what if what != key.what || address != key.address => {}
                _ if known == flow => return Ok(true),
                _ => {
                    return Err(SetupError::Overlap {
                        first: known,
                        second: flow,
                        both: *pattern,
                    });
                }
            }
        }
        Ok(false)
    }

    /// An address for [`Table::place`], mixed once for all shapes.
    fn mixed(&self, [high, low]: [u64; 2]) -> u64 {
        let [_, first, second] = self.spread;
        // The upper bits of a product depend on all of its factor's bits: they come down for the next one.
        (high.wrapping_mul(first) ^ low.wrapping_mul(second)).rotate_left(32)
    }

    fn place(&self, what: u64, mixed: u64) -> usize {
        (what.wrapping_add(mixed).wrapping_mul(self.spread[0]) >> self.shift) as usize
    }

    fn get(&self, what: u64, address: [u64; 2], mixed: u64) -> Option<u16> {
        let place = self.place(what, mixed);
        let near: &[u64; REACH] = self.whats.get(place..)?.first_chunk()?;
        for (at, &known) in near.iter().enumerate() {
            if known == what {
                let (found, flow) = *self.entries.get(place + at)?;
                if found == address {
                    return Some(flow);
                }
            }
        }
        None
    }

    /// The flow of what `remote` answers to echo requests.
    #[cold]
    pub fn find_echo(&self, remote: IpAddr) -> Option<u16> {
        self.echo.then(|| self.find_sender(ECHO, remote))?
    }

    /// The flow of what `remote` asks and answers to find link-layer addresses.
    #[cold]
    pub fn find_resolution(&self, remote: IpAddr) -> Option<u16> {
        self.resolution
            .then(|| self.find_sender(RESOLUTION, remote))?
    }

    fn find_sender(&self, shape: u64, remote: IpAddr) -> Option<u16> {
        let address = words(remote);
        self.get(shape | family(remote), address, self.mixed(address))
    }

    /// The flow of a packet from `remote` and its `remote_port` to `port` here.
    pub fn find(
        &self,
        transport: Transport,
        (remote, remote_port): (IpAddr, u16),
        port: u16,
    ) -> Option<u16> {
        if self.port_from || self.answers {
            let found = self.find_from(transport, (remote, remote_port), port);
            if found.is_some() {
                return found;
            }
        }
        self.get(what(PORT, transport, port), ANYBODY, 0)
    }

    fn find_from(
        &self,
        transport: Transport,
        (remote, remote_port): (IpAddr, u16),
        port: u16,
    ) -> Option<u16> {
        let (address, family) = (words(remote), family(remote));
        let mixed = self.mixed(address);
        let at_port = match self.port_from {
            true => self.get(what(PORT_FROM, transport, port) | family, address, mixed),
            false => None,
        };
        match at_port {
            None if self.answers => self.get(
                what(ANSWERS, transport, remote_port) | family,
                address,
                mixed,
            ),
            found => found,
        }
    }
}
