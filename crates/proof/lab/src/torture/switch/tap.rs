//! One end of a network cable: a TAP device of a namespace, whose frames this process reads and writes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

/// Longest frame: an Ethernet header and 1,500 bytes, and some room.
const FRAME_MAX: usize = 2048;

/// The device; gone with this value.
#[derive(Debug)]
pub struct Tap(File);

impl Tap {
    /// A new device called `name` in the calling thread's namespace.
    ///
    /// # Errors
    /// The process is not root, the kernel has no TUN/TAP driver, or the name is taken.
    pub fn open(name: &str) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")?;
        // SAFETY: all bytes of an ifreq may be zero.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // The last byte stays zero.
        let room = request.ifr_name.len() - 1;
        for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the descriptor is open, and `request` is an ifreq that lives through the call.
        let made = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw const request) };
        match made {
            0 => Ok(Self(file)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The next frame that its namespace has sent; `None` if there is none.
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; FRAME_MAX];
        let length = self.0.read(&mut buffer).ok()?;
        Some(buffer[..length].to_vec())
    }

    /// Hands `frame` to its namespace. A device without room loses it, as a switch port does.
    pub fn send(&mut self, frame: &[u8]) -> bool {
        self.0.write(frame).is_ok()
    }
}

impl AsRawFd for Tap {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
