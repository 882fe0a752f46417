//! Reception by AF_XDP in copy mode: the kernel copies a frame into memory that this process shares with it, for each flow a ring of its own.

use std::ffi::CString;
use std::io;
use std::num::NonZeroU32;
use std::os::fd::RawFd;
use std::ptr::NonNull;

use xdpilone::xdp::XdpDesc;
use xdpilone::{DeviceQueue, IfInfo, RingRx, Socket, SocketConfig, Umem, UmemConfig, User};

use crate::program::{RINGS, Redirecting};

const FRAME: u32 = 2048;
/// Frames of each ring, and twice as many in all.
pub const FRAMES: u32 = 4096;

/// Frames in memory shared with the kernel, and a ring for each flow.
pub struct Rings {
    area: NonNull<[u8]>,
    device: DeviceQueue,
    rings: Vec<RingRx>,
    used: Vec<u64>,
    /// Compute each datagram's checksum, as who has nobody to do it must.
    pub checksum: bool,
    _users: Vec<User>,
    _umem: Umem,
}

// SAFETY: what is behind the pointers is this value's alone, and the kernel's, whichever thread holds it.
unsafe impl Send for Rings {}

fn error(errno: xdpilone::Errno) -> io::Error {
    io::Error::from_raw_os_error(errno.get_raw())
}

/// So many bytes of whole pages, which are never given back.
fn memory(len: usize) -> io::Result<NonNull<[u8]>> {
    // SAFETY: memory of its own.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
            -1,
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let start = NonNull::new(memory.cast::<u8>()).expect("mapped");
    Ok(NonNull::slice_from_raw_parts(start, len))
}

impl Rings {
    /// Rings at the first queue of `interface`, to which `program` leads its flows.
    pub fn open(interface: &str, program: &Redirecting) -> io::Result<Self> {
        let area = memory((FRAME * FRAMES * RINGS) as usize)?;
        let config = UmemConfig {
            fill_size: FRAMES * RINGS,
            complete_size: 64,
            frame_size: FRAME,
            headroom: 0,
            flags: 0,
        };
        // SAFETY: whole pages that are never given back.
        let umem = unsafe { Umem::new(config, area) }.map_err(error)?;
        let mut info = IfInfo::invalid();
        let name = CString::new(interface).expect("a name");
        info.from_name(&name).map_err(error)?;
        let first = Socket::with_shared(&info, &umem).map_err(error)?;
        let mut device = umem.fq_cq(&first).map_err(error)?;
        let (mut rings, mut users) = (Vec::new(), Vec::new());
        for flow in 0..RINGS {
            let (socket, bind_flags) = match flow {
                0 => (None, SocketConfig::XDP_BIND_COPY),
                _ => (Some(Socket::new(&info).map_err(error)?), 0),
            };
            let config = SocketConfig {
                rx_size: NonZeroU32::new(FRAMES),
                tx_size: None,
                bind_flags,
            };
            let user = umem
                .rx_tx(socket.as_ref().unwrap_or(&first), &config)
                .map_err(error)?;
            let ring = user.map_rx().map_err(error)?;
            umem.bind(&user).map_err(error)?;
            program.lead(flow, ring.as_raw_fd())?;
            rings.push(ring);
            users.push(user);
        }
        let all = u64::from(FRAMES * RINGS);
        let mut fill = device.fill(FRAMES * RINGS);
        fill.insert((0..all).map(|at| at * u64::from(FRAME)));
        fill.commit();
        drop(fill);
        Ok(Self {
            area,
            device,
            rings,
            used: Vec::with_capacity(64),
            checksum: false,
            _users: users,
            _umem: umem,
        })
    }

    /// What becomes readable when a frame of the flow comes.
    pub fn descriptor(&self, flow: usize) -> RawFd {
        self.rings[flow].as_raw_fd()
    }

    /// Whether a frame of any flow is there.
    pub fn has_input(&self) -> bool {
        self.rings.iter().any(|ring| ring.available() > 0)
    }

    /// Passes on the datagrams of up to `most` frames of a flow: whether there may be more.
    pub fn receive(&mut self, flow: usize, most: u32, sink: &mut dyn FnMut(&[u8])) -> bool {
        let mut frames = self.rings[flow].receive(most);
        while let Some(XdpDesc { addr, len, .. }) = frames.read() {
            // SAFETY: the kernel names frames within the area, which are ours until they are filled in again.
            let frame = unsafe {
                let start = self.area.cast::<u8>().add(addr as usize);
                std::slice::from_raw_parts(start.as_ptr(), len as usize)
            };
            if let Some(datagram) = datagram(frame, self.checksum) {
                sink(datagram);
            }
            self.used.push(addr & !u64::from(FRAME - 1));
        }
        frames.release();
        drop(frames);
        let count = self.used.len() as u32;
        let mut fill = self.device.fill(count);
        fill.insert(self.used.drain(..));
        fill.commit();
        count == most
    }
}

/// What a frame of Ethernet, IPv4 without fragments and UDP carries: what the kernel looks at, but for addresses and checksums.
fn datagram(frame: &[u8], checksum: bool) -> Option<&[u8]> {
    let packet = frame.get(14..)?;
    let header = usize::from(*packet.first()? & 15) * 4;
    let whole = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
    let plain = frame[12..14] == [8, 0] && packet[0] >> 4 == 4 && *packet.get(9)? == 17;
    let divided = u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff != 0;
    if !plain || divided || header < 20 {
        return None;
    }
    let udp = packet.get(header..whole)?;
    let len = usize::from(u16::from_be_bytes([*udp.get(4)?, *udp.get(5)?]));
    if checksum {
        std::hint::black_box(sum(udp));
    }
    udp.get(8..len)
}

/// The sum of RFC 1071 over `bytes`, four at a time.
fn sum(bytes: &[u8]) -> u16 {
    let chunks = bytes.chunks_exact(4);
    let mut rest = [0; 4];
    rest[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    let word = |it: &[u8]| u64::from(u32::from_ne_bytes([it[0], it[1], it[2], it[3]]));
    let mut sum = chunks.map(word).sum::<u64>() + word(&rest);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45, 0, 0, 31, 0, 0, 0x40, 0, 64, 17, 0, 0]);
        frame.extend([10, 9, 0, 2, 10, 9, 0, 1]);
        frame.extend([1, 2, 3, 4, 0, 11, 0, 0, 7, 8, 9]);
        // What Ethernet fills a short frame with.
        frame.extend([0; 5]);
        frame
    }

    #[test]
    fn a_datagram_is_found_and_what_is_none_of_ours_is_passed_over() {
        assert_eq!(datagram(&frame(), false), Some(&[7, 8, 9][..]));
        for (at, value) in [
            (12, 9),
            (14, 0x65),
            (14, 0x44),
            (23, 6),
            (20, 0x20),
            (21, 1),
            (17, 99),
            (39, 99),
        ] {
            let mut frame = frame();
            frame[at] = value;
            assert_eq!(datagram(&frame, false), None, "{at}");
        }
        for len in 0..frame().len() - 5 {
            assert_eq!(datagram(&frame()[..len], true), None);
        }
    }

    #[test]
    fn the_sum_is_that_of_words_of_16_bits() {
        let bytes: Vec<u8> = (0..=254).collect();
        let word =
            |it: &[u8]| u64::from(u16::from_ne_bytes([it[0], it.get(1).copied().unwrap_or(0)]));
        let mut plain: u64 = bytes.chunks(2).map(word).sum();
        while plain > 0xffff {
            plain = (plain & 0xffff) + (plain >> 16);
        }
        assert_eq!(u64::from(sum(&bytes)), plain);
    }
}
