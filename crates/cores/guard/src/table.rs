//! From what a frame is for to its flow, in constant time.

use alloc::boxed::Box;
use alloc::vec;
use core::net::IpAddr;

use bumpless_base::random::mix64;

use crate::flow::{Flow, Match, SetupError};
use crate::frame::Transport;

/// A key is this far from its place at most, so that no sender can choose ports or addresses that take longer.
const REACH: usize = 4;

/// A pattern as words that are compared at once: shape, transport and port; address.
type Key = [u64; 3];

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: Key,
    flow: u16,
}

/// All patterns of all flows.
#[derive(Clone, Debug)]
pub struct Table {
    entries: Box<[Option<Entry>]>,
    mask: usize,
    seed: u64,
    /// Shapes of pattern that occur, so that others are not looked for.
    port_from: bool,
    answers: bool,
}

fn key(shape: u64, transport: Transport, port: u16, address: Option<IpAddr>) -> Key {
    let (family, high, low) = match address {
        None => (0, 0, 0),
        Some(IpAddr::V4(address)) => (4, 0, u64::from(u32::from(address))),
        Some(IpAddr::V6(address)) => {
            let address = u128::from(address);
            (6, (address >> 64) as u64, address as u64)
        }
    };
    let transport = match transport {
        Transport::Udp => 0,
        Transport::Tcp => 1,
    };
    let what = u64::from(port) | shape << 16 | transport << 24 | family << 32;
    [what, high, low]
}

const PORT_FROM: u64 = 1;
const ANSWERS: u64 = 2;
const PORT: u64 = 3;

impl Match {
    fn key(&self) -> Key {
        // A receiver that takes both families names an IPv4 address so.
        match *self {
            Self::PortFrom(transport, port, from) => {
                key(PORT_FROM, transport, port, Some(from.to_canonical()))
            }
            Self::Answers(transport, from, port) => {
                key(ANSWERS, transport, port, Some(from.to_canonical()))
            }
            Self::Port(transport, port) => key(PORT, transport, port, None),
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
                    entries: vec![None; size + REACH].into_boxed_slice(),
                    mask: size - 1,
                    seed: mix64(seed),
                    port_from: all().any(|(_, it)| matches!(it, Match::PortFrom(..))),
                    answers: all().any(|(_, it)| matches!(it, Match::Answers(..))),
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
        let place = self.place(&key);
        for entry in &mut self.entries[place..place + REACH] {
            match entry {
                Some(known) if known.key == key && known.flow == flow => return Ok(true),
                Some(known) if known.key == key => {
                    return Err(SetupError::Overlap {
                        first: known.flow,
                        second: flow,
                        both: *pattern,
                    });
                }
                Some(_) => {}
                None => {
                    *entry = Some(Entry { key, flow });
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn place(&self, [what, high, low]: &Key) -> usize {
        let address = mix64(high ^ mix64(low ^ self.seed));
        mix64(what ^ address) as usize & self.mask
    }

    fn get(&self, key: &Key) -> Option<u16> {
        let place = self.place(key);
        let near = self.entries.get(place..place + REACH)?.iter().flatten();
        near.filter(|entry| entry.key == *key)
            .map(|entry| entry.flow)
            .next()
    }

    /// The flow of a packet from `remote` and its `remote_port` to `port` here.
    pub fn find(
        &self,
        transport: Transport,
        (remote, remote_port): (IpAddr, u16),
        port: u16,
    ) -> Option<u16> {
        if self.port_from {
            let found = self.get(&key(PORT_FROM, transport, port, Some(remote)));
            if found.is_some() {
                return found;
            }
        }
        if self.answers {
            let found = self.get(&key(ANSWERS, transport, remote_port, Some(remote)));
            if found.is_some() {
                return found;
            }
        }
        self.get(&key(PORT, transport, port, None))
    }
}
