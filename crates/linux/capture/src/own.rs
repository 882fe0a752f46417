//! Whether an address is the host's, as its routes say (rtnetlink; linux/rtnetlink.h): what the kernel itself goes by when it keeps a packet or
//! sends it out.

use std::io;
use std::net::IpAddr;

use crate::netlink::{Message, Netlink, messages};

const NEW_ROUTE: u16 = 24;
const GET_ROUTE: u16 = 26;

const IPV4: u8 = 2;
const IPV6: u8 = 10;
const HEADER_LEN: usize = 12;
/// Where in the header the kind of a route is.
const KIND: usize = 7;
const DESTINATION: u16 = 1;
const LOCAL: u8 = 2;
const ANYCAST: u8 = 4;
/// Room for one answer.
const ROOM: usize = 4096;

/// Asks the kernel.
#[derive(Debug)]
pub struct OwnAddresses {
    netlink: Netlink,
    /// Questions, of which the address is the end.
    v4: Message,
    v6: Message,
    buffer: Box<[u8]>,
}

impl OwnAddresses {
    /// Of the network namespace of the calling thread.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            netlink: Netlink::open(None)?,
            v4: question(IPV4, &[0; 4]),
            v6: question(IPV6, &[0; 16]),
            buffer: vec![0; ROOM].into(),
        })
    }

    /// Whether a packet for `address` stays on the host. Neither blocks nor takes memory.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn has(&mut self, address: IpAddr) -> io::Result<bool> {
        // Answers that an error has left behind.
        while self.netlink.receive(&mut self.buffer)?.is_some() {}
        match address {
            IpAddr::V4(address) => self.v4.set_end(&address.octets()),
            IpAddr::V6(address) => self.v6.set_end(&address.octets()),
        }
        let question = match address {
            IpAddr::V4(_) => &self.v4,
            IpAddr::V6(_) => &self.v6,
        };
        self.netlink.send(question.bytes())?;
        let answer = self.netlink.receive(&mut self.buffer)?;
        let answer = answer.ok_or(io::ErrorKind::WouldBlock)?;
        // Where nothing leads there, the answer is an error.
        Ok(messages(answer).any(|(kind, body)| kind == NEW_ROUTE && is_own(body)))
    }
}

fn question(family: u8, address: &[u8]) -> Message {
    let mut header = [0; HEADER_LEN];
    (header[0], header[1]) = (family, address.len() as u8 * 8);
    let question = Message::new().begin_quiet(GET_ROUTE, 0).raw(&header);
    question.attribute(DESTINATION, address)
}

fn is_own(body: &[u8]) -> bool {
    let kind = body.get(KIND);
    kind.is_some_and(|kind| matches!(*kind, LOCAL | ANYCAST))
}
