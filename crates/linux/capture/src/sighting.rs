//! Heads of incoming packets, which go on without waiting (NFLOG; linux/netfilter/nfnetlink_log.h).

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use rustix::net::netlink;

use crate::netlink::{Message, Netlink, attributes, failed, messages};
use crate::packet::{Parsed, parse_head};

const SUBSYSTEM: u16 = 4 << 8;
const PACKET: u16 = SUBSYSTEM;
const CONFIG: u16 = SUBSYSTEM | 1;
const NETFILTER_LEN: usize = 4;

mod attribute {
    pub const PAYLOAD: u16 = 9;
    pub const COMMAND: u16 = 1;
    pub const MODE: u16 = 2;
    pub const TIMEOUT: u16 = 4;
    pub const THRESHOLD: u16 = 5;
}

const BIND: u8 = 1;
const COPY_PACKET: u8 = 2;
/// Bytes of a packet that are shown: enough for addresses and ports, with options.
pub const SNAPSHOT: u32 = 128;
/// Most packets that the kernel collects before it shows them, and for how long at most, in hundredths of a second.
const COLLECTED: u32 = 16;
const COLLECTED_FOR: u32 = 1;
const BUFFER: usize = 64 * 1024;

/// What the firewall's rules show of incoming packets.
#[derive(Debug)]
pub struct Sightings {
    netlink: Netlink,
    buffer: Box<[u8]>,
}

impl Sightings {
    /// Binds the group `number`.
    ///
    /// # Errors
    /// Another process has the group, or the right to it (CAP_NET_ADMIN) is missing.
    pub fn open(number: u16) -> io::Result<Self> {
        let netlink = Netlink::open(Some(netlink::NETFILTER))?;
        let [a, b, c, d] = SNAPSHOT.to_be_bytes();
        let message = Message::new()
            .begin(CONFIG, 0)
            .netfilter(0, number)
            .attribute(attribute::COMMAND, &[BIND])
            .attribute(attribute::MODE, &[a, b, c, d, COPY_PACKET, 0])
            .number(attribute::TIMEOUT, COLLECTED_FOR)
            .number(attribute::THRESHOLD, COLLECTED);
        netlink
            .transact(message.bytes())
            .map_err(|error| failed(&format!("cannot bind NFLOG group {number}"), error))?;
        Ok(Self {
            netlink,
            buffer: vec![0; BUFFER].into(),
        })
    }

    /// Hands the heads of packets that came to `see`, of at most `max` deliveries of the kernel's.
    ///
    /// # Errors
    /// The kernel had more to show than it could keep (the rest comes with the next call), or the socket is broken.
    pub fn drain(&mut self, max: usize, mut see: impl FnMut(&Parsed<'_>)) -> io::Result<()> {
        for _ in 0..max {
            let Some(answers) = self.netlink.receive(&mut self.buffer)? else {
                break;
            };
            let heads = messages(answers).filter(|(kind, _)| *kind == PACKET);
            let heads = heads.flat_map(|(_, body)| attributes(body, NETFILTER_LEN));
            heads
                .filter(|(kind, _)| *kind == attribute::PAYLOAD)
                .filter_map(|(_, head)| parse_head(head))
                .for_each(|head| see(&head));
        }
        Ok(())
    }
}

impl AsRawFd for Sightings {
    fn as_raw_fd(&self) -> RawFd {
        self.netlink.as_raw_fd()
    }
}
