//! Receiving one message at a time, of which each may be several datagrams (UDP_GRO, udp(7)).

use std::ffi::c_int;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::errno::Errno;
use crate::sys::{self, Control, RawAddress};

/// Datagrams of one sender that came in one message. All are of one length but the last, which may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Bytes of all of them.
    pub len: usize,
    /// Length of each; that of the only one, if it is the only one.
    pub size: usize,
    /// Who has sent them. `None`: the kernel does not say.
    pub from: Option<SocketAddr>,
}

impl Run {
    /// The datagrams, in `buffer`, where they were received.
    pub fn datagrams<'a>(&self, buffer: &'a mut [u8]) -> impl Iterator<Item = &'a mut [u8]> {
        let len = self.len.min(buffer.len());
        // One without a byte is a datagram, too.
        let empty = (len == 0).then_some(Default::default());
        let all = buffer[..len].chunks_mut(self.size.max(1));
        all.chain(empty)
    }
}

/// Has a UDP socket be given whole what reaches it whole: datagrams that another socket of this host has sent as segments,
/// or that kernel or network card have merged. `false`: the kernel cannot (before Linux 5.0).
pub fn can_coalesce(socket: BorrowedFd<'_>) -> bool {
    sys::set_option(socket, libc::SOL_UDP, libc::UDP_GRO, 1).is_ok()
}

/// The next message of a UDP socket, into `buffer`, which takes the longest one if it has 65,535 bytes. `None`: there is none.
/// Neither blocks nor takes memory.
///
/// # Errors
/// What an earlier datagram met with on its way, told by the host at the other end; or the socket is broken.
pub fn receive_run(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<Option<Run>, Errno> {
    let mut name = RawAddress::EMPTY;
    let mut control = Control::<c_int> {
        len: 0,
        level: 0,
        kind: 0,
        value: 0,
    };
    let mut vector = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let mut header = sys::empty_message().msg_hdr;
    header.msg_name = name.bytes.as_mut_ptr().cast();
    header.msg_namelen = name.len;
    header.msg_iov = &raw mut vector;
    header.msg_iovlen = 1;
    header.msg_control = (&raw mut control).cast();
    header.msg_controllen = size_of::<Control<c_int>>() as _;
    // SAFETY: the header has pointers to one name, one vector over `buffer` and one control message, each with its true
    // length; all live through the call.
    let received =
        unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT) };
    let len = match sys::check_len(received) {
        Ok(len) => len.min(buffer.len()),
        Err(Errno(libc::EAGAIN | libc::EINTR)) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    name.len = header.msg_namelen;
    let size = control.segment_size(header.msg_controllen >= Control::<c_int>::LEN as _);
    Ok(Some(Run {
        len,
        size: size.unwrap_or(len).min(len),
        from: name.get(),
    }))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;
    use crate::{Segment, SendBatch};

    fn socket(address: &str) -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind(address).unwrap();
        socket.set_nonblocking(true).unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    }

    /// What has come at `to` in one message.
    fn message(to: &UdpSocket, buffer: &mut [u8]) -> Option<(Run, Vec<Vec<u8>>)> {
        let run = receive_run(to.as_fd(), buffer).unwrap()?;
        let parts = run.datagrams(buffer).map(|it| it.to_vec()).collect();
        Some((run, parts))
    }

    fn comes_whole(address: &str) {
        let ((from, source), (to, at)) = (socket(address), socket(address));
        assert!(can_coalesce(to.as_fd()));
        let sent: Vec<_> = (0..20u8)
            .map(|it| vec![it; if it == 19 { 7 } else { 300 }])
            .collect();
        let copies = sent.iter().map(|bytes| Segment {
            header: bytes,
            ..Segment::default()
        });
        let copies: Vec<_> = copies.collect();
        let taken = SendBatch::new().send(from.as_fd(), at, &copies, true);
        assert_eq!(taken.unwrap().packets, 20);
        let mut buffer = vec![0; 65_535];
        let (run, parts) = message(&to, &mut buffer).unwrap();
        assert_eq!((run.len, run.size), (19 * 300 + 7, 300));
        assert_eq!(run.from, Some(source));
        assert_eq!(parts, sent);
        // What comes alone has no control message, and nothing is left of the one before.
        for alone in [&b"alone"[..], &[9; 300], b""] {
            from.send_to(alone, at).unwrap();
            let (run, parts) = message(&to, &mut buffer).unwrap();
            assert_eq!((run.len, run.size), (alone.len(), alone.len()));
            assert_eq!(parts, [alone]);
        }
        assert_eq!(message(&to, &mut buffer), None);
    }

    #[test]
    fn what_is_sent_as_segments_comes_whole_and_is_taken_apart_as_it_was() {
        comes_whole("127.0.0.1:0");
        comes_whole("[::1]:0");
    }

    #[test]
    fn what_does_not_fit_is_cut_and_never_read_beyond_the_buffer() {
        let ((from, _), (to, at)) = (socket("127.0.0.1:0"), socket("127.0.0.1:0"));
        from.send_to(&[1; 100], at).unwrap();
        let mut buffer = [0; 60];
        let (run, parts) = message(&to, &mut buffer).unwrap();
        assert_eq!((run.len, run.size), (60, 60));
        assert_eq!(parts, [[1; 60]]);
        // Nor if somebody keeps what was told and takes another buffer.
        assert_eq!(
            run.datagrams(&mut [0; 10])
                .map(|it| it.len())
                .sum::<usize>(),
            10
        );
    }

    #[test]
    fn an_odd_size_makes_no_datagram_longer_than_what_came() {
        let run = |len, size| Run {
            len,
            size,
            from: None,
        };
        let lengths = |run: Run| -> Vec<usize> {
            let mut buffer = [0; 10];
            run.datagrams(&mut buffer).map(|it| it.len()).collect()
        };
        assert_eq!(lengths(run(10, 4)), [4, 4, 2]);
        assert_eq!(lengths(run(8, 4)), [4, 4]);
        assert_eq!(lengths(run(3, 4)), [3]);
        assert_eq!(lengths(run(2, 0)), [1, 1]);
        assert_eq!(lengths(run(0, 0)), [0]);
    }
}
