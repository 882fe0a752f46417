//! UDP sockets of one port on several networks, which know on which network a datagram came.
//!
//! For each address of the host there is a socket on each of its interfaces. What comes on the address's own interface came on
//! its network; what comes on another one is miswired, and its socket says by which it came. Sending is bound to the
//! interface, so that a copy leaves on its network or not at all, whatever the routes say.
//!
//! What is for a group of the address's family comes at one socket more for each interface. It is no member of any group:
//! the kernel gives it what others of this process are ([`crate::Joins`]), and programs of the host.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;

use bumpless_net_linux::{
    Errno, Rejected, Run, Segment, SendBatch, Taken, can_coalesce, can_segment, receive_run,
};
use rustix::net::netdevice::name_to_index;
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use rustix::net::sockopt::{
    set_ip_mtu_discover, set_ipv6_mtu_discover, set_socket_recv_buffer_size_force,
};
use socket2::{Domain, Protocol, Socket, Type};

/// Bytes that wait to be read on a socket.
const ROOM: usize = 4 << 20;

/// The host's end of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// Name of its interface.
    pub interface: String,
    /// The host's address there.
    pub address: IpAddr,
}

/// A datagram that came, or several that came in one message ([`Ports::coalesce`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    run: Run,
    /// From where.
    pub from: SocketAddr,
    /// On which network, as numbered at the opening.
    pub on: usize,
}

impl Arrived {
    /// The datagrams, in the buffer into which they were received: at least one.
    pub fn datagrams<'a>(&self, buffer: &'a mut [u8]) -> impl Iterator<Item = &'a mut [u8]> {
        self.run.datagrams(buffer)
    }

    /// The one datagram, in that buffer, where none are received in one message.
    pub fn datagram<'a>(&self, buffer: &'a mut [u8]) -> &'a mut [u8] {
        let len = self.run.len.min(buffer.len());
        &mut buffer[..len]
    }
}

/// Whether copies leave on a network in segments ([`crate::Departures`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segmentation {
    /// They do.
    Used,
    /// The kernel cannot cut segments (before Linux 4.18).
    Unknown,
    /// The network has refused segments and then taken the same copies one by one. It is asked again when the host's networks are
    /// opened again.
    Refused,
}

/// What a socket is bound to. An interface that was made anew has the name of the former one and another number.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bound {
    address: SocketAddr,
    interface: u32,
}

/// The sockets. A clone has the same ones.
#[derive(Clone, Debug)]
pub struct Ports {
    /// By address, and for each by interface.
    sockets: Vec<Arc<Socket>>,
    /// What each of them is bound to.
    bound: Vec<Bound>,
    count: usize,
    /// By network.
    segmentation: Vec<Segmentation>,
    /// How far packets to groups go; `None`: it has not been said.
    hops: Option<u8>,
}

impl Ports {
    /// Opens port `port` of every card; `groups`: also of what is for groups.
    ///
    /// # Errors
    /// Which card's socket could not be opened, and why.
    pub fn open(cards: &[Card], port: u16, groups: bool) -> Result<Self, (usize, io::Error)> {
        Self::open_beside(cards, port, groups, None)
    }

    /// The same, and what is open in `former` is kept, with all that waits to be read there.
    ///
    /// *Beside a socket that is open another one on the same address would have a share of what comes, and what waits at the one that is
    /// closed would be lost.*
    ///
    /// # Errors
    /// As of [`open`](Self::open). Then nothing has changed.
    pub fn open_beside(
        cards: &[Card],
        port: u16,
        groups: bool,
        former: Option<&Self>,
    ) -> Result<Self, (usize, io::Error)> {
        let mut opening = Opening::new(former);
        for (number, card) in cards.iter().enumerate() {
            let address = SocketAddr::new(card.address, port);
            for on in cards {
                let added = opening.add(address, &on.interface, open);
                added.map_err(|error| (number, error))?;
            }
        }
        for (number, card) in cards.iter().enumerate().filter(|_| groups) {
            let any = SocketAddr::new(unspecified(card.address), port);
            let added = opening.add(any, &card.interface, open_for_groups);
            added.map_err(|error| (number, error))?;
        }
        let Opening { sockets, bound, .. } = opening;
        let of_network = |on: usize| match can_segment(sockets[on * cards.len() + on].as_fd()) {
            true => Segmentation::Used,
            false => Segmentation::Unknown,
        };
        Ok(Self {
            segmentation: (0..cards.len()).map(of_network).collect(),
            sockets,
            bound,
            count: cards.len(),
            hops: None,
        })
    }

    /// Whether the socket in this place is one of `others`.
    pub fn is_among(&self, place: usize, others: &Self) -> bool {
        let mut all = others.sockets.iter();
        let own = self.sockets.get(place);
        own.is_some_and(|own| all.any(|it| Arc::ptr_eq(it, own)))
    }

    /// What is sent to groups from here on takes so many hops at most, at least one.
    pub fn set_group_hops(&mut self, hops: u8) {
        let hops = hops.max(1);
        if self.hops == Some(hops) {
            return;
        }
        for socket in self.sockets.iter().step_by(self.count + 1).take(self.count) {
            // Each is of one family, and has no such option of the other.
            let _ = socket.set_multicast_ttl_v4(hops.into());
            let _ = socket.set_multicast_hops_v6(hops.into());
        }
        self.hops = Some(hops);
    }

    /// How many sockets there are.
    pub fn len(&self) -> usize {
        self.sockets.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }

    /// Descriptors to wait on; the place of one in this list is what [`receive`](Self::receive) takes.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.sockets.iter().map(|it| it.as_raw_fd())
    }

    /// Sends `bytes` on the network `on`. Never blocks.
    ///
    /// # Errors
    /// The network has no room at present, no way there, or is gone: of no concern to the others.
    pub fn send(&self, on: usize, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        let socket = self.sockets.get(on * self.count + on);
        let socket = socket.ok_or(io::ErrorKind::NotFound)?;
        socket.send_to(bytes, &to.into())?;
        Ok(())
    }

    /// Sends the first of `copies` on the network `on`, as segments if that is wished for.
    pub(crate) fn send_all(
        &self,
        on: usize,
        batch: &mut SendBatch,
        to: SocketAddr,
        (copies, segmentation): (&[Segment<'_>], bool),
    ) -> Result<Taken, Rejected> {
        match self.sockets.get(on * self.count + on) {
            Some(socket) => batch.send(socket.as_fd(), to, copies, segmentation),
            None => Err(Rejected {
                errno: Errno(rustix::io::Errno::NODEV.raw_os_error()),
                run: 1,
            }),
        }
    }

    /// Whether copies leave in segments, by network.
    pub fn segmentations(&self) -> &[Segmentation] {
        &self.segmentation
    }

    pub(crate) fn segmentation(&self, on: usize) -> bool {
        self.segmentation.get(on) == Some(&Segmentation::Used)
    }

    pub(crate) fn give_up_segmentation(&mut self, on: usize) {
        if let Some(of_network) = self.segmentation.get_mut(on) {
            *of_network = Segmentation::Refused;
        }
    }

    /// From here on, datagrams of one sender that reach this host in one piece are received in one message. `false`: the kernel
    /// cannot (before Linux 5.0), and each comes by itself.
    pub fn coalesce(&self) -> bool {
        self.sockets.iter().all(|it| can_coalesce(it.as_fd()))
    }

    /// What has come at the socket in this place, if anything has. A buffer of 65,535 bytes takes the longest message.
    ///
    /// # Errors
    /// What an earlier datagram met with on its way, told by the host at the other end; or the socket is broken.
    pub fn receive(&self, place: usize, buffer: &mut [u8]) -> io::Result<Option<Arrived>> {
        let Some(socket) = self.sockets.get(place) else {
            return Ok(None);
        };
        let run = receive_run(socket.as_fd(), buffer)?;
        let on = place % self.count;
        Ok(run.and_then(|run| {
            let from = run.from?;
            Some(Arrived { run, from, on })
        }))
    }
}

/// Sockets that are opened one after the other, or taken over.
struct Opening<'a> {
    /// What there was; each socket is taken over once.
    former: Vec<(&'a Bound, &'a Arc<Socket>)>,
    sockets: Vec<Arc<Socket>>,
    bound: Vec<Bound>,
}

impl<'a> Opening<'a> {
    fn new(former: Option<&'a Ports>) -> Self {
        let all = |it: &'a Ports| it.bound.iter().zip(&it.sockets);
        Self {
            former: former.into_iter().flat_map(all).collect(),
            sockets: Vec::new(),
            bound: Vec::new(),
        }
    }

    fn add(
        &mut self,
        address: SocketAddr,
        interface: &str,
        open: impl FnOnce(SocketAddr, &str) -> io::Result<Socket>,
    ) -> io::Result<()> {
        let bound = Bound {
            address,
            interface: number_of(interface)?,
        };
        let known = self.former.iter().position(|(it, _)| **it == bound);
        let socket = match known {
            Some(at) => Arc::clone(self.former.swap_remove(at).1),
            None => Arc::new(open(address, interface)?),
        };
        self.sockets.push(socket);
        self.bound.push(bound);
        Ok(())
    }
}

/// The kernel's number of an interface.
fn number_of(interface: &str) -> io::Result<u32> {
    let asking = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    Ok(name_to_index(&asking, interface)?)
}

const fn unspecified(family_of: IpAddr) -> IpAddr {
    match family_of {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

/// What is for any group of the family of `any`.
fn open_for_groups(any: SocketAddr, interface: &str) -> io::Result<Socket> {
    let socket = open(any, interface)?;
    match any {
        SocketAddr::V4(_) => socket.set_multicast_all_v4(true)?,
        SocketAddr::V6(_) => socket.set_multicast_all_v6(true)?,
    }
    Ok(socket)
}

fn open(address: SocketAddr, interface: &str) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    socket.set_nonblocking(true)?;
    socket.bind_device(Some(interface.as_bytes()))?;
    // Beside those of addresses there is one for groups.
    socket.set_reuse_port(true)?;
    // This host's own members are given the packet itself, and not its copies.
    if address.is_ipv6() {
        socket.set_multicast_loop_v6(false)?;
        socket.set_only_v6(true)?;
        // A packet that is too long for the way is not cut in pieces, of which each one can be lost.
        let _ = set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::PROBE);
    } else {
        let _ = set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE);
        socket.set_multicast_loop_v4(false)?;
    }
    if set_socket_recv_buffer_size_force(&socket, ROOM).is_err() {
        let _ = socket.set_recv_buffer_size(ROOM);
    }
    socket.bind(&address.into())?;
    Ok(socket)
}
