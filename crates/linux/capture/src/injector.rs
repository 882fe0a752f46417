//! Packets given to the host as if they had arrived.
//!
//! By a raw socket, to an address of the host's own: the kernel leads the packet to the receiver by way of the loopback
//! device, whatever its source address is. A TUN device would do the same, and has to be made, named and shown to the
//! operator, and the host's filter against forged sources (`rp_filter`) refuses what comes from it.

use std::io;
use std::net::{IpAddr, SocketAddr};

use rustix::net::ipproto;
use socket2::{Domain, Protocol, Socket, Type};

/// Gives packets to the host.
#[derive(Debug)]
pub struct Injector {
    v4: Socket,
    /// Where the host has IPv6.
    v6: Option<Socket>,
}

impl Injector {
    /// An injector into the network namespace of the calling thread.
    ///
    /// # Errors
    /// The right to it (CAP_NET_RAW) is missing.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            v4: open(Domain::IPV4)?,
            v6: open(Domain::IPV6).ok(),
        })
    }

    /// Gives the host a whole packet for `destination`, one of its addresses ([`OwnAddresses`](crate::OwnAddresses)): for another one the
    /// packet would leave by the host's routes, if there is one. Never blocks.
    ///
    /// # Errors
    /// Nothing leads to this address, or the host has no room at present.
    pub fn give(&self, packet: &[u8], destination: IpAddr) -> io::Result<()> {
        let socket = match destination {
            IpAddr::V4(_) => Some(&self.v4),
            IpAddr::V6(_) => self.v6.as_ref(),
        };
        let socket = socket.ok_or(io::ErrorKind::AddrNotAvailable)?;
        socket.send_to(packet, &SocketAddr::new(destination, 0).into())?;
        Ok(())
    }
}

fn open(domain: Domain) -> io::Result<Socket> {
    // With this protocol a packet brings its own IP header, and the socket receives nothing.
    let raw = Protocol::from(ipproto::RAW.as_raw().get() as i32);
    let socket = Socket::new(domain, Type::RAW, Some(raw))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}
