//! One end of a cable, whose frames this process reads and writes: a packet socket. Unlike a TAP device it takes no device file, only a
//! namespace of one's own.

use std::ffi::CString;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Before each frame the kernel says which checksum is not formed yet and where a long segment is to be cut (`struct virtio_net_hdr`); it is
/// handed back with the frame, so that what leaves is what came.
pub const HEADER: usize = 10;
/// Longest frame: a segment that its host has not cut yet.
const FRAME_MAX: usize = HEADER + 14 + 65_535;

/// The socket; gone with this value.
#[derive(Debug)]
pub struct Port {
    socket: OwnedFd,
    buffer: Box<[u8]>,
}

impl Port {
    /// Of the interface called `name` in the calling thread's namespace, which must be up.
    ///
    /// # Errors
    /// There is no such interface, or the right is missing (CAP_NET_RAW).
    pub fn open(name: &str) -> io::Result<Self> {
        let name = CString::new(name)?;
        // SAFETY: the name ends with a zero and lives through the call.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: socket() takes integers only. Without a protocol nothing comes before it is bound.
        let socket = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and nobody else's.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        // What this process sends is not to come back.
        for option in [libc::PACKET_VNET_HDR, libc::PACKET_IGNORE_OUTGOING] {
            set(&socket, option)?;
        }
        bind(&socket, index)?;
        let buffer = vec![0; FRAME_MAX].into_boxed_slice();
        Ok(Self { socket, buffer })
    }

    /// The next frame that the other end has sent, behind its header; `None` if there is none.
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        let length = rustix::io::read(&self.socket, &mut self.buffer[..]).ok()?;
        Some(self.buffer[..length].to_vec())
    }

    /// Hands a frame, behind its header, to the other end. A device without room loses it, as a switch port does.
    pub fn send(&mut self, frame: &[u8]) -> bool {
        rustix::io::write(&self.socket, frame).is_ok()
    }
}

fn set(socket: &OwnedFd, option: libc::c_int) -> io::Result<()> {
    let on: libc::c_int = 1;
    let size = mem::size_of_val(&on) as libc::socklen_t;
    // SAFETY: the descriptor is open, and the value lives through the call with the size that is said.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            (&raw const on).cast(),
            size,
        )
    };
    match set {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn bind(socket: &OwnedFd, index: u32) -> io::Result<()> {
    // SAFETY: all bytes of a sockaddr_ll may be zero.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as i32;
    let size = mem::size_of_val(&address) as libc::socklen_t;
    // SAFETY: the descriptor is open, and the address lives through the call with the size that is said.
    let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) };
    match bound {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl AsRawFd for Port {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}
