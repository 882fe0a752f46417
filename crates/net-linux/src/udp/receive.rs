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
        sink: &mut dyn FnMut(SocketAddr, &[u8]),
    ) -> ReceiveOutcome {
        match self.fetch(fd) {
            Ok(filled) => ReceiveOutcome {
                datagrams: (0..filled).map(|index| self.deliver(index, sink)).sum(),
                more: filled == BUFFERS,
                failure: None,
            },
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
    fn deliver(&mut self, index: usize, sink: &mut dyn FnMut(SocketAddr, &[u8])) -> usize {
        let message = &self.messages[index];
        let len = (message.msg_len as usize).min(BUFFER_LEN);
        self.names[index].len = message.msg_hdr.msg_namelen;
        let Some(from) = self.names[index].get() else {
            return 0;
        };
        let start = index * BUFFER_LEN;
        let bytes = &self.buffers[start..start + len];
        match self.segment_size(index) {
            Some(size) if size < len => bytes
                .chunks(size)
                .map(|datagram| sink(from, datagram))
                .count(),
            _ => {
                sink(from, bytes);
                1
            }
        }
    }

    /// The size of the datagrams that the kernel coalesced into buffer `index`, if it did.
    fn segment_size(&self, index: usize) -> Option<usize> {
        let control = &self.controls[index];
        let len = self.messages[index].msg_hdr.msg_controllen;
        let coalesced = len >= Control::<libc::c_int>::LEN as _
            && control.level == libc::SOL_UDP
            && control.kind == libc::UDP_GRO;
        usize::try_from(control.value)
            .ok()
            .filter(|&size| coalesced && size > 0)
    }
}
