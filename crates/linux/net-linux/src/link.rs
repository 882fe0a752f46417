//! The boundary at which a network begins.
//!
//! The data plane talks to [`Link`]s only. [`UdpLink`](crate::UdpLink) is the real one; drivers
//! that lose, delay or cut stand behind the same trait, and product code does not know them.

use crate::errno::Errno;
use crate::screen::Screen;
use std::fmt;
use std::net::SocketAddr;
use std::os::fd::RawFd;

/// One network as one node sees it: a bound local address, datagrams out, datagrams in.
///
/// Contract: no method blocks or panics, whatever the network or the caller does. A link's failure
/// is that link's alone; it is reported in the outcome and the link goes on as soon as the network
/// does, without being reopened.
pub trait Link {
    /// Hands `packets`, in order, to the network as one datagram each.
    ///
    /// Stops at the first packet that is not accepted; the outcome says how many went before it
    /// and why it stayed. "Sent" means taken by the kernel, not received by anyone.
    fn send(&mut self, to: SocketAddr, packets: &[Segment<'_>]) -> SendOutcome;

    /// The same to whom what was sent on this network a moment ago has reached, which the caller knows from an answer (forward progress,
    /// RFC 4861): the kernel need not ask for their link-layer address, or that of the router to them, again. *An answer to that may be lost
    /// in a flood of such questions, and then nothing can be sent any more.*
    fn send_confirmed(&mut self, to: SocketAddr, packets: &[Segment<'_>]) -> SendOutcome {
        self.send(to, packets)
    }

    /// Passes on datagrams that have arrived, each with its source, in the order of arrival. Whoever takes one may
    /// change it where it lies.
    ///
    /// The amount per call is bounded, so that a flooded link cannot starve the others: when
    /// [`ReceiveOutcome::more`] says so, call again after the other links had their turn.
    fn receive(&mut self, sink: &mut dyn FnMut(SocketAddr, &mut [u8])) -> ReceiveOutcome;

    /// Datagrams that were lost before [`receive`](Self::receive) could pass them on, for want of room in the
    /// receive buffer, since the link was opened; goes on from zero after `u32::MAX`. `None` if nobody counts
    /// them. Asked now and then, not per datagram: it may take a system call. A link around another passes
    /// on what that one says.
    fn receive_drops(&self) -> Option<u32> {
        None
    }

    /// From here on, until asked again, lets pass what `screen` does, or everything. Returns whether it is so. A link
    /// that has no such means lets everything pass; one around another passes the request on. What is dropped for it counts in
    /// [`receive_drops`](Self::receive_drops).
    fn screen(&mut self, screen: Option<&Screen>) -> bool {
        screen.is_none()
    }

    /// The descriptor that becomes readable when something arrives; the same for the link's whole
    /// life. `None` if the link has to be asked at intervals.
    fn descriptor(&self) -> Option<RawFd>;

    /// The address to which the link is bound, with its actual port.
    fn local_address(&self) -> SocketAddr;
}

impl<L: Link + ?Sized> Link for Box<L> {
    fn send(&mut self, to: SocketAddr, packets: &[Segment<'_>]) -> SendOutcome {
        (**self).send(to, packets)
    }
    fn send_confirmed(&mut self, to: SocketAddr, packets: &[Segment<'_>]) -> SendOutcome {
        (**self).send_confirmed(to, packets)
    }
    fn receive(&mut self, sink: &mut dyn FnMut(SocketAddr, &mut [u8])) -> ReceiveOutcome {
        (**self).receive(sink)
    }
    fn receive_drops(&self) -> Option<u32> {
        (**self).receive_drops()
    }
    fn screen(&mut self, screen: Option<&Screen>) -> bool {
        (**self).screen(screen)
    }
    fn descriptor(&self) -> Option<RawFd> {
        (**self).descriptor()
    }
    fn local_address(&self) -> SocketAddr {
        (**self).local_address()
    }
}

/// One datagram to send, in two pieces that the kernel gathers: user space copies neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment<'a> {
    /// What comes first.
    pub header: &'a [u8],
    /// What follows; may be empty.
    pub payload: &'a [u8],
}

impl Segment<'_> {
    /// Bytes in the datagram.
    pub const fn len(&self) -> usize {
        self.header.len() + self.payload.len()
    }
    /// Whether the datagram has no bytes at all.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What became of a [`Link::send`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendOutcome {
    /// Packets taken, counted from the first.
    pub sent: usize,
    /// Why the packet after those was not taken. `None` when all were.
    pub failure: Option<SendFailure>,
}

/// Why a packet was not taken. Nothing of that packet or of later ones was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SendFailure {
    /// The kernel's queue is full: the same packet can be sent again a little later.
    Full,
    /// No way to the destination for the time being: the link is down, there is no route or
    /// neighbour, or the local address is not on this machine.
    Unreachable,
    /// The destination's host refused an *earlier* packet (no process has the port open). The link
    /// has already tried once more.
    Refused,
    /// The packet does not fit the network's MTU, and packets are never fragmented.
    TooBig,
    /// Anything else, such as a firewall's refusal (EPERM).
    Other(Errno),
}

impl SendFailure {
    /// Sorts an error number of the send family of system calls.
    pub const fn from_errno(errno: Errno) -> Self {
        match errno.0 {
            libc::EAGAIN | libc::ENOBUFS => Self::Full,
            // Linux answers EINVAL when the bound source address has left the machine.
            libc::ENETUNREACH
            | libc::EHOSTUNREACH
            | libc::ENETDOWN
            | libc::EHOSTDOWN
            | libc::ENODEV
            | libc::ENXIO
            | libc::EADDRNOTAVAIL
            | libc::EINVAL => Self::Unreachable,
            libc::ECONNREFUSED => Self::Refused,
            libc::EMSGSIZE => Self::TooBig,
            _ => Self::Other(errno),
        }
    }
}

impl fmt::Display for SendFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("the kernel's send queue is full"),
            Self::Unreachable => f.write_str("link down, no route, or local address gone"),
            Self::Refused => f.write_str("nothing listens at the destination"),
            Self::TooBig => f.write_str("packet exceeds the network's MTU; check the mtu setting"),
            Self::Other(errno) => write!(f, "send failed: {errno}"),
        }
    }
}

/// What became of a [`Link::receive`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveOutcome {
    /// Datagrams passed to the sink.
    pub datagrams: usize,
    /// Datagrams that were not passed on, because the kernel named no address that they came from.
    pub without_source: usize,
    /// Whether the bound was reached, so that more may be waiting.
    pub more: bool,
    /// An error of the socket that is not "nothing there". Datagrams were still passed on; later
    /// calls are worth making.
    pub failure: Option<Errno>,
}
