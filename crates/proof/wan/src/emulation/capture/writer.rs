//! The file of a capture as it is written.

use std::fs::File;
use std::io::{self, Write};
use std::net::IpAddr;

use super::packets::Packets;
use super::pcapng::{self, Packet, STATISTICS_LEN};
use super::{Ended, Interface, Limits, Point, unix_now};
use crate::emulation::link;
use crate::topology::{NodeId, Topology};

/// Packets that are read from one node before the next one's turn.
const TURN: usize = 512;

/// Whether a frame is from or to one of these addresses.
fn is_with(frame: &[u8], addresses: &[IpAddr]) -> bool {
    let v4 = |at: usize| {
        let octets = frame.get(at..)?.first_chunk::<4>()?;
        Some(IpAddr::from(*octets))
    };
    let v6 = |at: usize| {
        let octets = frame.get(at..)?.first_chunk::<16>()?;
        Some(IpAddr::from(*octets))
    };
    let ends = match frame.get(12..14) {
        Some([0x08, 0x00]) => [v4(26), v4(30)],
        Some([0x86, 0xdd]) => [v6(22), v6(38)],
        _ => return false,
    };
    ends.into_iter()
        .flatten()
        .any(|end| addresses.contains(&end))
}

/// How many bytes of these blocks are whole blocks, if so many bytes of them were written.
fn whole(blocks: &[u8], written: usize) -> usize {
    let mut at = 0;
    while let Some(length) = blocks.get(at + 4..).and_then(|it| it.first_chunk::<4>()) {
        let next = at + u32::from_le_bytes(*length) as usize;
        if next > written || next <= at {
            break;
        }
        at = next;
    }
    at
}

/// What reading at a place came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// There is nothing more.
    Empty,
    /// There may be more.
    More,
    /// The file has no room for what was read last.
    Full,
}

/// The file and what is in it.
#[derive(Debug)]
pub struct Writer<'a> {
    pub topology: &'a Topology,
    pub to: &'a mut File,
    pub limits: Limits,
    pub interfaces: Vec<Interface>,
    /// Whole blocks that are not written yet.
    pub pending: Vec<u8>,
    pub written: u64,
}

impl Writer<'_> {
    /// Takes what came at all places before this instant and waits to be read; whether the file is full by that.
    pub fn drain(
        &mut self,
        places: &mut [(&Point, Packets)],
        before_ns: u64,
    ) -> io::Result<Option<Ended>> {
        for (point, socket) in places {
            loop {
                let turn = self.take(point, socket, before_ns)?;
                self.flush()?;
                match turn {
                    Turn::More => {}
                    Turn::Empty => break,
                    Turn::Full => return Ok(Some(Ended::Size)),
                }
            }
        }
        Ok(None)
    }

    /// Takes what has come at a place before an instant.
    pub fn take(
        &mut self,
        point: &Point,
        socket: &mut Packets,
        before_ns: u64,
    ) -> io::Result<Turn> {
        for _ in 0..TURN {
            let read = match socket.read() {
                Ok(Some(read)) => read,
                Ok(None) => return Ok(Turn::Empty),
                // An interface that is gone is one of a network that ends, which is seen elsewhere.
                Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => {
                    return Ok(Turn::Empty);
                }
                Err(error) => return Err(error),
            };
            if read.at_ns > before_ns {
                return Ok(Turn::Empty);
            }
            let wanted = |place: &usize| link::number(*place) == read.interface;
            let meant = point.links.is_empty() || point.links.iter().any(wanted);
            let with = self.limits.with.is_empty() || is_with(read.bytes, &self.limits.with);
            if read.interface == link::LOOPBACK || !meant || !with {
                continue;
            }
            let (place, head) = self.interface(point.node, read.interface);
            let packet = Packet {
                at_ns: read.at_ns,
                direction: read.direction,
                bytes: read.bytes,
                length: read.length,
            };
            let block = pcapng::packet(place as u32, packet);
            let interfaces = self.interfaces.len() as u64;
            let reserved = (interfaces + u64::from(head.is_some())) * STATISTICS_LEN;
            let all = self.written + (self.pending.len() + block.len()) as u64 + reserved;
            if all + head.as_ref().map_or(0, |(_, block)| block.len() as u64) > self.limits.bytes {
                return Ok(Turn::Full);
            }
            self.begin(head);
            self.interfaces[place].packets += 1;
            self.pending.extend(block);
        }
        Ok(Turn::More)
    }

    /// Has an interface in the file that is not there yet.
    pub fn begin(&mut self, head: Option<(Interface, Vec<u8>)>) {
        if let Some((interface, block)) = head {
            self.interfaces.push(interface);
            self.pending.extend(block);
        }
    }

    /// The place of an interface in the file, and the interface with its block if it is not there yet.
    pub fn interface(&self, node: NodeId, number: u32) -> (usize, Option<(Interface, Vec<u8>)>) {
        let mut known = self.interfaces.iter();
        if let Some(place) = known.position(|it| (it.node, it.number) == (node, number)) {
            return (place, None);
        }
        let own = &self.topology.node(node).name;
        let place = (number - link::number(0)) as usize;
        let leads = match self.topology.links_at(node).get(place) {
            Some(&index) => {
                let other = self.topology.links()[index].other(node);
                self.topology.node(other).name.clone()
            }
            None => "a second way beside the network".to_owned(),
        };
        let interface = Interface {
            name: format!("{own}:{}", link::name(place)),
            leads,
            packets: 0,
            node,
            number,
        };
        let to = format!("{own} to {}", interface.leads);
        let block = pcapng::interface(&interface.name, &to, self.limits.packet);
        (self.interfaces.len(), Some((interface, block)))
    }

    pub fn flush(&mut self) -> io::Result<()> {
        let done = self.to.write_all(&self.pending);
        self.written += match &done {
            Ok(()) => self.pending.len() as u64,
            Err(_) => self.cut_back(),
        };
        self.pending.clear();
        done
    }

    /// Cuts the file behind the last block that was written whole; gives what remains of those that were to be written.
    fn cut_back(&mut self) -> u64 {
        let length = self.to.metadata().map_or(self.written, |it| it.len());
        let part = length.saturating_sub(self.written) as usize;
        let whole = whole(&self.pending, part) as u64;
        // What cannot be cut is a last block that readers leave out.
        let _ = self.to.set_len(self.written + whole);
        whole
    }

    /// Ends the file with what was captured at each interface; what there was no room for is told with the first one, since the
    /// kernel counts it for all of a node.
    pub fn statistics(&mut self, dropped: u64) -> io::Result<()> {
        let now = unix_now();
        for (place, interface) in self.interfaces.iter().enumerate() {
            let dropped = if place == 0 { dropped } else { 0 };
            let received = interface.packets + dropped;
            let block = pcapng::statistics(place as u32, now, (received, dropped));
            self.pending.extend(block);
        }
        self.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_with_the_addresses_of_its_ip_header_alone() {
        let [one, other] = ["10.64.0.1", "fd42::1"].map(|it| it.parse::<IpAddr>().unwrap());
        let mut frame = [0; 60];
        frame[12] = 8;
        frame[30..34].copy_from_slice(&[10, 64, 0, 1]);
        assert!(is_with(&frame, &[other, one]));
        assert!(!is_with(&frame, &[other]));
        frame[30..34].fill(0);
        frame[12..14].copy_from_slice(&[0x86, 0xdd]);
        assert!(!is_with(&frame, &[one, other]));
        frame[22..24].copy_from_slice(&[0xfd, 0x42]);
        frame[37] = 1;
        assert!(is_with(&frame, &[other]));
        assert!(!is_with(&frame[..30], &[one]), "a frame that is cut");
        assert!(!is_with(&[], &[one]));
    }

    #[test]
    fn of_blocks_that_were_written_in_part_only_whole_ones_stay() {
        let first = pcapng::section("bumpless");
        let blocks = [&first[..], &pcapng::interface("a:eth1", "a to b", 60)].concat();
        let length = first.len();
        for (written, stay) in [
            (0, 0),
            (length - 1, 0),
            (length, length),
            (blocks.len() - 1, length),
            (blocks.len(), blocks.len()),
        ] {
            assert_eq!(whole(&blocks, written), stay, "{written}");
        }
    }
}
