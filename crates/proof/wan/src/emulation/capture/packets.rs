//! What passes the interfaces of a namespace: a packet socket (packet(7)).

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};

use super::pcapng::Direction;

/// Room for what the kernel tells beside a packet: a time.
const BESIDE: usize = 64;

/// The socket. It holds its namespace for as long as it is open.
#[derive(Debug)]
pub struct Packets {
    socket: OwnedFd,
    buffer: Box<[u8]>,
}

/// What was read.
#[derive(Debug)]
pub struct Read<'a> {
    /// The number of the interface.
    pub interface: u32,
    /// Whether it came or left.
    pub direction: Direction,
    /// When, nanoseconds since 1970.
    pub at_ns: u64,
    /// Its first bytes.
    pub bytes: &'a [u8],
    /// How many it had.
    pub length: u32,
}

impl Packets {
    /// Of all interfaces of the calling thread's namespace; of each packet `longest` bytes are read at most, and what comes while
    /// this process does not run has so many bytes of `room`, or as much of that as the system permits.
    ///
    /// # Errors
    /// The right is missing (CAP_NET_RAW).
    #[allow(unsafe_code)]
    pub fn open(longest: usize, room: usize) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        let all = i32::from((libc::ETH_P_ALL as u16).to_be());
        // SAFETY: socket() takes integers only.
        let socket = unsafe { libc::socket(libc::AF_PACKET, kind, all) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and nobody else's.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        tell_times(&socket)?;
        let _ = set_socket_recv_buffer_size(&socket, room);
        let _ = set_socket_recv_buffer_size_force(&socket, room);
        Ok(Self {
            socket,
            buffer: vec![0; longest].into_boxed_slice(),
        })
    }

    /// The next packet; `None` if there is none at the moment.
    ///
    /// # Errors
    /// The kernel gives none any more.
    #[allow(unsafe_code)]
    pub fn read(&mut self) -> io::Result<Option<Read<'_>>> {
        // SAFETY: all bytes of a sockaddr_ll may be zero.
        let mut from: libc::sockaddr_ll = unsafe { mem::zeroed() };
        let mut beside = [0u64; BESIDE / 8];
        let mut part = libc::iovec {
            iov_base: self.buffer.as_mut_ptr().cast(),
            iov_len: self.buffer.len(),
        };
        // SAFETY: all bytes of a msghdr may be zero.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_name = (&raw mut from).cast();
        message.msg_namelen = mem::size_of_val(&from) as libc::socklen_t;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = beside.as_mut_ptr().cast();
        message.msg_controllen = BESIDE;
        // SAFETY: what the message points to lives through the call, with the sizes that it says.
        let length =
            unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, libc::MSG_TRUNC) };
        let Ok(length) = usize::try_from(length) else {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            };
        };
        let at_ns = time(&message);
        Ok(Some(Read {
            interface: from.sll_ifindex as u32,
            direction: match from.sll_pkttype == libc::PACKET_OUTGOING {
                true => Direction::Out,
                false => Direction::In,
            },
            at_ns,
            bytes: &self.buffer[..length.min(self.buffer.len())],
            length: length as u32,
        }))
    }

    /// How many packets the kernel has had no room for since the last question.
    #[allow(unsafe_code)]
    pub fn dropped(&self) -> u64 {
        // SAFETY: all bytes of a tpacket_stats may be zero.
        let mut told: libc::tpacket_stats = unsafe { mem::zeroed() };
        let mut size = mem::size_of_val(&told) as libc::socklen_t;
        // SAFETY: the descriptor is open, and the value lives through the call with the size that is said.
        let asked = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut told).cast(),
                &raw mut size,
            )
        };
        match asked {
            0 => told.tp_drops.into(),
            _ => 0,
        }
    }
}

impl AsFd for Packets {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Has the kernel tell with each packet when it passed.
#[allow(unsafe_code)]
fn tell_times(socket: &OwnedFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    let size = mem::size_of_val(&on) as libc::socklen_t;
    // SAFETY: the descriptor is open, and the value lives through the call with the size that is said.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            size,
        )
    };
    match set {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// When the kernel says a packet passed; 0 if it does not.
#[allow(unsafe_code)]
fn time(message: &libc::msghdr) -> u64 {
    // SAFETY: the kernel has filled the message's control data, which live as long as the message is used here.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !next.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR give whole headers within the control data.
        let head = unsafe { &*next };
        if (head.cmsg_level, head.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
            // SAFETY: data of this kind are a timespec, which may lie unaligned.
            let at = unsafe {
                libc::CMSG_DATA(next)
                    .cast::<libc::timespec>()
                    .read_unaligned()
            };
            return at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64;
        }
        // SAFETY: as above.
        next = unsafe { libc::CMSG_NXTHDR(message, next) };
    }
    0
}
