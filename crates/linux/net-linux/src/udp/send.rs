//! Sending: packets gathered into messages, messages handed over in one system call.

use crate::errno::Errno;
use crate::link::Segment;
use crate::sys::{self, Control, RawAddress};
use std::fmt;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Most packets in one system call.
const MAX_PACKETS: usize = 128;
/// Most segments in one message; the limit of kernels before 6.9 (UDP_MAX_SEGMENTS).
const MAX_RUN: usize = 64;
/// Most bytes in one message, a little below what a UDP datagram over IPv4 may carry.
const MAX_RUN_BYTES: usize = 65_000;

/// Why the first message of a batch was not taken, and how many packets were in it. Nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// What the kernel said.
    pub errno: Errno,
    /// Packets in the message: above one, they were to leave as segments.
    pub run: usize,
}

impl Rejected {
    /// Whether segmentation offload may be the cause. These numbers have other causes, too (EINVAL: the local address is
    /// gone), so it is the cause only if the same packets pass one by one.
    pub const fn may_be_offload(self) -> bool {
        self.run > 1
            && matches!(
                self.errno.0,
                libc::EIO | libc::EINVAL | libc::ENOPROTOOPT | libc::EOPNOTSUPP
            )
    }
}

/// What the kernel has taken of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Packets, from the first; at least one.
    pub packets: usize,
    /// Those among them that left as segments of a message with others.
    pub in_runs: usize,
}

/// Whether the kernel can cut what a UDP socket sends into segments (Linux 4.18). One that cannot must not be asked to:
/// it would send all packets of a run as one datagram.
pub fn can_segment(socket: BorrowedFd<'_>) -> bool {
    sys::set_option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok()
}

/// How packets are handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// Runs of equal size travel as one message.
    pub segmentation: bool,
    /// The kernel is told that the one to whom they go is reached (MSG_CONFIRM).
    pub confirmed: bool,
}

impl Manner {
    const fn flags(self) -> libc::c_int {
        let confirm = match self.confirmed {
            true => libc::MSG_CONFIRM,
            false => 0,
        };
        libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | confirm
    }
}

/// Sends runs of packets of equal size as one message each, which kernel or network card cut apart again (UDP_SEGMENT,
/// udp(7)). All memory is taken by [`SendBatch::new`]; no call blocks.
pub struct SendBatch {
    /// Two per packet: header and payload.
    vectors: Box<[libc::iovec]>,
    messages: Box<[libc::mmsghdr]>,
    controls: Box<[Control<u16>]>,
    /// Packets in each message.
    runs: Box<[usize]>,
}

// SAFETY: the raw pointers inside are written at the start of each `transmit`, under `&mut self`,
// and read only by the system call within it; between calls they are never followed.
unsafe impl Send for SendBatch {}

impl Default for SendBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SendBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendBatch").finish_non_exhaustive()
    }
}

impl SendBatch {
    /// Takes the memory.
    pub fn new() -> Self {
        let vector = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        let control = Control {
            len: Control::<u16>::LEN,
            level: libc::SOL_UDP,
            kind: libc::UDP_SEGMENT,
            value: 0,
        };
        Self {
            vectors: vec![vector; 2 * MAX_PACKETS].into(),
            messages: vec![sys::empty_message(); MAX_PACKETS].into(),
            controls: vec![control; MAX_PACKETS].into(),
            runs: vec![0; MAX_PACKETS].into(),
        }
    }

    /// Sends the first packets of `packets` (not empty) to `to` by a non-blocking UDP socket, in one system call, and tells
    /// how many were taken. With `segmentation`, runs of equal size travel as one message.
    ///
    /// # Errors
    /// The first message was refused.
    pub fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        to: SocketAddr,
        packets: &[Segment<'_>],
        segmentation: bool,
    ) -> Result<Taken, Rejected> {
        let manner = Manner {
            segmentation,
            confirmed: false,
        };
        self.transmit(socket, &RawAddress::new(to), packets, manner)
    }

    /// The same to an address in the kernel's layout.
    pub(super) fn transmit(
        &mut self,
        fd: BorrowedFd<'_>,
        to: &RawAddress,
        packets: &[Segment<'_>],
        manner: Manner,
    ) -> Result<Taken, Rejected> {
        let packets = &packets[..packets.len().min(MAX_PACKETS)];
        let messages = self.gather(to, packets, manner.segmentation);
        let taken = loop {
            // SAFETY: the first `messages` headers were just filled with pointers into `to`,
            // `packets`, `vectors` and `controls`, all of which outlive the call; the kernel only
            // reads what they point to, and writes `msg_len` in the headers.
            let result = sys::check(unsafe {
                libc::sendmmsg(
                    fd.as_raw_fd(),
                    self.messages.as_mut_ptr(),
                    messages as libc::c_uint,
                    manner.flags(),
                )
            });
            match result {
                Ok(taken) => break taken as usize,
                Err(Errno(libc::EINTR)) => {}
                Err(errno) => {
                    return Err(Rejected {
                        errno,
                        run: self.runs[0],
                    });
                }
            }
        };
        let runs = &self.runs[..taken];
        Ok(Taken {
            packets: runs.iter().sum(),
            in_runs: runs.iter().filter(|run| **run > 1).sum(),
        })
    }

    /// Fills the headers and returns how many.
    fn gather(&mut self, to: &RawAddress, packets: &[Segment<'_>], segmentation: bool) -> usize {
        for (packet, pair) in packets.iter().zip(self.vectors.chunks_exact_mut(2)) {
            pair[0] = vector(packet.header);
            pair[1] = vector(packet.payload);
        }
        let mut count = 0;
        let mut start = 0;
        while start < packets.len() {
            let run = if segmentation {
                run_length(&packets[start..])
            } else {
                1
            };
            let header = &mut self.messages[count].msg_hdr;
            header.msg_name = to.as_ptr().cast_mut().cast();
            header.msg_namelen = to.len;
            header.msg_iov = (&raw mut self.vectors[2 * start]).cast();
            header.msg_iovlen = (2 * run) as _;
            header.msg_control = std::ptr::null_mut();
            header.msg_controllen = 0;
            if run > 1 {
                self.controls[count].value = packets[start].len() as u16;
                header.msg_control = (&raw mut self.controls[count]).cast();
                header.msg_controllen = size_of::<Control<u16>>() as _;
            }
            self.runs[count] = run;
            start += run;
            count += 1;
        }
        count
    }
}

fn vector(bytes: &[u8]) -> libc::iovec {
    libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    }
}

/// How many of `packets` (not empty), from the first, may share one message: equal sizes, then at
/// most one shorter packet that ends it. An empty packet would vanish in a run, so it stays alone.
fn run_length(packets: &[Segment<'_>]) -> usize {
    let size = packets[0].len();
    if size == 0 || size > MAX_RUN_BYTES {
        return 1;
    }
    let limit = packets.len().min(MAX_RUN).min(MAX_RUN_BYTES / size);
    let equal = packets[..limit]
        .iter()
        .take_while(|packet| packet.len() == size)
        .count();
    let shorter = packets[..limit]
        .get(equal)
        .is_some_and(|last| (1..size).contains(&last.len()));
    equal + usize::from(shorter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(sizes: &[usize]) -> usize {
        let bytes = [0; 66_000];
        let packets: Vec<Segment<'_>> = sizes
            .iter()
            .map(|&n| Segment {
                header: &bytes[..n],
                payload: &[],
            })
            .collect();
        run_length(&packets)
    }

    #[test]
    fn a_run_is_equal_sizes_and_at_most_one_shorter_last() {
        assert_eq!(run(&[5]), 1);
        assert_eq!(run(&[5, 5, 5]), 3);
        assert_eq!(run(&[5, 5, 3, 3]), 3);
        assert_eq!(run(&[5, 6]), 1);
        assert_eq!(run(&[5, 5, 0, 5]), 2);
        assert_eq!(run(&[0, 0]), 1);
    }

    #[test]
    fn a_run_stays_within_the_kernels_limits() {
        assert_eq!(run(&[10; 100]), 64);
        assert_eq!(run(&[1_400; 100]), 46);
        assert_eq!(run(&[30_000, 30_000, 100]), 2);
        assert_eq!(run(&[65_500, 100]), 1);
    }

    /// The packets of each message as the kernel gathers them, and the size of its segments if told.
    fn as_the_kernel_reads(batch: &SendBatch, messages: usize) -> Vec<(Vec<u8>, Option<u16>)> {
        let read = |message: &libc::mmsghdr| {
            let header = &message.msg_hdr;
            // SAFETY: `gather` has filled these headers, and what they point to is still borrowed.
            unsafe {
                let vectors = std::slice::from_raw_parts(header.msg_iov, header.msg_iovlen as _);
                let bytes = vectors.iter().flat_map(|vector| {
                    std::slice::from_raw_parts(vector.iov_base.cast::<u8>(), vector.iov_len)
                });
                let control = header.msg_control.cast::<Control<u16>>().as_ref();
                (
                    bytes.copied().collect(),
                    control.map(|control| control.value),
                )
            }
        };
        batch.messages[..messages].iter().map(read).collect()
    }

    #[test]
    fn the_kernel_is_shown_every_byte_of_every_packet_in_order() {
        let bytes: Vec<u8> = (0..=255).collect();
        let packet = |start: usize, len: usize| Segment {
            header: &bytes[start..start + 2],
            payload: &bytes[start + 2..start + len],
        };
        let packets = [packet(0, 9), packet(20, 9), packet(40, 5), packet(60, 2)];
        let to = RawAddress::new("127.0.0.1:9".parse().unwrap());
        let mut batch = SendBatch::new();
        for (segmentation, lengths) in [(true, vec![3, 1]), (false, vec![1; 4])] {
            let messages = batch.gather(&to, &packets, segmentation);
            assert_eq!(batch.runs[..messages], lengths);
            let mut left = packets.as_slice();
            for (shown, run) in as_the_kernel_reads(&batch, messages).iter().zip(lengths) {
                let expected = left[..run].iter();
                let expected: Vec<u8> = expected
                    .flat_map(|packet| [packet.header, packet.payload].concat())
                    .collect();
                assert_eq!(*shown, (expected, (run > 1).then_some(9)));
                left = &left[run..];
            }
        }
    }
}
