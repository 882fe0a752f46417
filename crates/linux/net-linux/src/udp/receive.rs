//! Receiving: a batch of buffers in one system call, each split into its datagrams.

use crate::errno::Errno;
use crate::link::ReceiveOutcome;
use crate::sys::{self, Control, RawAddress};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

/// Buffers in one system call, and thereby the bound on one `receive`. With coalescing each holds
/// up to 64 datagrams.
const BUFFERS: usize = 16;
/// Room for the largest coalesced buffer.
const BUFFER_LEN: usize = 65_536;

/// So many datagrams came from an address that the kernel did not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NoSource(usize);

/// The kernel's view of a batch, in memory taken once.
pub(super) struct ReceiveBatch {
    buffers: Box<[u8]>,
    vectors: Box<[libc::iovec]>,
    messages: Box<[libc::mmsghdr]>,
    names: Box<[RawAddress]>,
    controls: Box<[Control<libc::c_int>]>,
}

// SAFETY: the raw pointers inside are written at the start of each `fetch`, under `&mut self`, and
// read only by the system call within it; between calls they are never followed.
unsafe impl Send for ReceiveBatch {}

impl ReceiveBatch {
    pub(super) fn new() -> Self {
        let vector = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        let control = Control {
            len: 0,
            level: 0,
            kind: 0,
            value: 0,
        };
        Self {
            buffers: vec![0; BUFFERS * BUFFER_LEN].into(),
            vectors: vec![vector; BUFFERS].into(),
            messages: vec![sys::empty_message(); BUFFERS].into(),
            names: vec![RawAddress::EMPTY; BUFFERS].into(),
            controls: vec![control; BUFFERS].into(),
        }
    }

    pub(super) fn receive(
        &mut self,
        fd: &OwnedFd,
        sink: &mut dyn FnMut(SocketAddr, &mut [u8]),
    ) -> ReceiveOutcome {
        match self.fetch(fd) {
            Ok(filled) => {
                let mut outcome = ReceiveOutcome {
                    more: filled == BUFFERS,
                    ..ReceiveOutcome::default()
                };
                for index in 0..filled {
                    match self.deliver(index, sink) {
                        Ok(passed_on) => outcome.datagrams += passed_on,
                        Err(NoSource(datagrams)) => outcome.without_source += datagrams,
                    }
                }
                outcome
            }
            Err(Errno(libc::EAGAIN)) => ReceiveOutcome::default(),
            Err(errno) => ReceiveOutcome {
                failure: Some(errno),
                ..ReceiveOutcome::default()
            },
        }
    }

    /// One system call; returns how many buffers were filled.
    fn fetch(&mut self, fd: &OwnedFd) -> Result<usize, Errno> {
        let mut stale_error_seen = false;
        loop {
            self.prepare();
            // SAFETY: every header was just filled with pointers to one name, one vector over one
            // distinct buffer and one control message, each with its true length; all are owned by
            // `self`, which is borrowed mutably through the call.
            let result = sys::check(unsafe {
                libc::recvmmsg(
                    fd.as_raw_fd(),
                    self.messages.as_mut_ptr(),
                    BUFFERS as libc::c_uint,
                    libc::MSG_DONTWAIT,
                    std::ptr::null_mut(),
                )
            });
            match result {
                Ok(filled) => return Ok(filled as usize),
                Err(Errno(libc::EINTR)) => {}
                // An ICMP answer to an earlier packet; reading it clears it, data may wait behind.
                Err(Errno(libc::ECONNREFUSED)) if !stale_error_seen => stale_error_seen = true,
                Err(errno) => return Err(errno),
            }
        }
    }

    fn prepare(&mut self) {
        let buffers = self.buffers.chunks_exact_mut(BUFFER_LEN);
        for (index, buffer) in buffers.enumerate() {
            self.vectors[index] = libc::iovec {
                iov_base: buffer.as_mut_ptr().cast(),
                iov_len: buffer.len(),
            };
            let header = &mut self.messages[index].msg_hdr;
            header.msg_name = self.names[index].bytes.as_mut_ptr().cast();
            header.msg_namelen = RawAddress::EMPTY.len;
            header.msg_iov = &raw mut self.vectors[index];
            header.msg_iovlen = 1;
            header.msg_control = (&raw mut self.controls[index]).cast();
            header.msg_controllen = size_of::<Control<libc::c_int>>() as _;
        }
    }

    /// Passes on the datagrams of one filled buffer and returns how many there were.
    ///
    /// # Errors
    /// Nobody can tell where they came from.
    fn deliver(
        &mut self,
        index: usize,
        sink: &mut dyn FnMut(SocketAddr, &mut [u8]),
    ) -> Result<usize, NoSource> {
        let message = &self.messages[index];
        let len = (message.msg_len as usize).min(BUFFER_LEN);
        self.names[index].len = message.msg_hdr.msg_namelen;
        let Some(from) = self.names[index].get() else {
            let size = self.segment_size(index).unwrap_or(len).max(1);
            return Err(NoSource(len.div_ceil(size).max(1)));
        };
        let start = index * BUFFER_LEN;
        let segment = self.segment_size(index);
        let bytes = &mut self.buffers[start..start + len];
        Ok(match segment {
            Some(size) if size < len => bytes
                .chunks_mut(size)
                .map(|datagram| sink(from, datagram))
                .count(),
            _ => {
                sink(from, bytes);
                1
            }
        })
    }

    /// The size of the datagrams that the kernel coalesced into buffer `index`, if it did.
    fn segment_size(&self, index: usize) -> Option<usize> {
        let len = self.messages[index].msg_hdr.msg_controllen;
        self.controls[index].segment_size(len >= Control::<libc::c_int>::LEN as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel does to the buffer at `index`: a datagram, or several of `segment` bytes each.
    fn as_the_kernel_writes(
        batch: &mut ReceiveBatch,
        (index, bytes): (usize, &[u8]),
        from: SocketAddr,
        segment: Option<libc::c_int>,
    ) {
        let address = RawAddress::new(from);
        let message = &mut batch.messages[index];
        let header = &mut message.msg_hdr;
        // SAFETY: `prepare` has filled the header; name, buffer and control have the room it says,
        // and nothing else borrows them.
        unsafe {
            let name = header.msg_name.cast::<u8>();
            name.copy_from_nonoverlapping(address.bytes.as_ptr(), address.len as usize);
            let vector = *header.msg_iov;
            assert!(bytes.len() <= vector.iov_len);
            let room = vector.iov_base.cast::<u8>();
            room.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            if let Some(value) = segment {
                header
                    .msg_control
                    .cast::<Control<libc::c_int>>()
                    .write(Control {
                        len: Control::<libc::c_int>::LEN,
                        level: libc::SOL_UDP,
                        kind: libc::UDP_GRO,
                        value,
                    });
            }
        }
        header.msg_namelen = address.len;
        header.msg_controllen = segment.map_or(0, |_| Control::<libc::c_int>::LEN as _);
        message.msg_len = bytes.len() as libc::c_uint;
    }

    /// What is delivered of the buffer at `index`.
    fn delivered(batch: &mut ReceiveBatch, index: usize) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut seen = Vec::new();
        let count = batch.deliver(index, &mut |from, bytes| seen.push((from, bytes.to_vec())));
        assert_eq!(count.unwrap_or(0), seen.len());
        seen
    }

    #[test]
    fn what_the_kernel_wrote_is_delivered_datagram_by_datagram() {
        let one: SocketAddr = "127.0.0.1:9".parse().unwrap();
        let other: SocketAddr = "[::1]:10".parse().unwrap();
        let mut batch = ReceiveBatch::new();
        batch.prepare();
        as_the_kernel_writes(&mut batch, (0, b"abcdefg"), one, Some(3));
        as_the_kernel_writes(&mut batch, (1, b"hi"), other, None);
        as_the_kernel_writes(&mut batch, (2, b""), one, None);
        let parts = [b"abc".as_slice(), b"def", b"g"].map(|part| (one, part.to_vec()));
        assert_eq!(delivered(&mut batch, 0), parts);
        assert_eq!(delivered(&mut batch, 1), [(other, b"hi".to_vec())]);
        assert_eq!(delivered(&mut batch, 2), [(one, vec![])]);
    }

    #[test]
    fn nothing_of_the_batch_before_is_taken_for_the_kernels_word() {
        let from: SocketAddr = "127.0.0.1:9".parse().unwrap();
        let mut batch = ReceiveBatch::new();
        batch.prepare();
        as_the_kernel_writes(&mut batch, (0, b"abcdefg"), from, Some(3));
        as_the_kernel_writes(&mut batch, (1, b"abc"), from, None);
        batch.prepare();
        as_the_kernel_writes(&mut batch, (0, b"xyzw"), from, None);
        as_the_kernel_writes(&mut batch, (2, b"abcdefg"), from, Some(3));
        for without_source in [1, 2] {
            batch.messages[without_source].msg_hdr.msg_namelen = 0;
        }
        assert_eq!(delivered(&mut batch, 0), [(from, b"xyzw".to_vec())]);
        assert_eq!(delivered(&mut batch, 1), []);
        let named = |_, _: &mut [u8]| panic!("it has no source");
        assert_eq!(batch.deliver(1, &mut { named }), Err(NoSource(1)));
        assert_eq!(batch.deliver(2, &mut { named }), Err(NoSource(3)));
    }
}
