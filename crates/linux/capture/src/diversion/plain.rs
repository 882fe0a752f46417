//! Packets that were handed over and are to leave as they are after all.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{IpAddr, SocketAddr};

use rustix::net::{ipproto, netdevice};
use socket2::{Domain, Protocol, Socket, Type};

use crate::datagram::complete;
use crate::packet::parse;

/// Interfaces for which sockets are kept.
const SOCKETS: usize = 64;

/// Sockets for each interface by which packets were about to leave, and so leave: their senders may be bound to it.
#[derive(Debug)]
pub struct Plain {
    /// The mark by which the host's rules know such packets.
    mark: u32,
    sockets: RefCell<Vec<(u32, bool, Socket)>>,
    room: RefCell<Box<[u8]>>,
    /// Packets that did not leave.
    lost: Cell<u64>,
}

impl Plain {
    pub fn new(mark: u32, longest: usize) -> Self {
        Self {
            mark,
            sockets: RefCell::new(Vec::with_capacity(SOCKETS)),
            room: RefCell::new(vec![0; longest].into()),
            lost: Cell::new(0),
        }
    }

    /// Packets that the host did not take back.
    pub fn lost(&self) -> u64 {
        self.lost.get()
    }

    /// Has a packet leave by this interface.
    pub fn send(&self, packet: &[u8], out: u32) {
        let sent = self.try_send(packet, out).or_else(|_| {
            // Another interface may have the number by now.
            let mut sockets = self.sockets.borrow_mut();
            sockets.retain(|(number, ..)| *number != out);
            drop(sockets);
            self.try_send(packet, out)
        });
        if sent.is_err() {
            self.lost.set(self.lost.get() + 1);
        }
    }

    fn try_send(&self, packet: &[u8], out: u32) -> io::Result<()> {
        let unreadable = io::ErrorKind::InvalidData;
        let destination = parse(packet).ok_or(unreadable)?.destination;
        let mut room = self.room.borrow_mut();
        let bytes = room.get_mut(..packet.len()).ok_or(unreadable)?;
        bytes.copy_from_slice(packet);
        // The kernel leaves checksums to network cards, which see no other packet than this.
        complete(bytes);
        let is_v4 = destination.is_ipv4();
        let mut sockets = self.sockets.borrow_mut();
        let known = sockets
            .iter()
            .position(|(number, v4, _)| (*number, *v4) == (out, is_v4));
        let at = match known {
            Some(at) => at,
            None => {
                if sockets.len() == SOCKETS {
                    sockets.clear();
                }
                sockets.push((out, is_v4, self.open(destination, out)?));
                sockets.len() - 1
            }
        };
        let to = SocketAddr::new(destination, 0);
        sockets[at].2.send_to(bytes, &to.into())?;
        Ok(())
    }

    fn open(&self, destination: IpAddr, out: u32) -> io::Result<Socket> {
        let domain = match destination {
            IpAddr::V4(_) => Domain::IPV4,
            IpAddr::V6(_) => Domain::IPV6,
        };
        // With this protocol a packet brings its own IP header, and the socket receives nothing.
        let raw = Protocol::from(ipproto::RAW.as_raw().get() as i32);
        let socket = Socket::new(domain, Type::RAW, Some(raw))?;
        socket.set_nonblocking(true)?;
        socket.set_mark(self.mark)?;
        let name = netdevice::index_to_name_inlined(&socket, out)?;
        socket.bind_device(Some(name.as_bytes()))?;
        Ok(socket)
    }
}
