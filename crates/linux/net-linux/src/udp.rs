//! A link over one UDP socket.

mod open;
mod receive;
mod run;
mod send;

use crate::errno::Errno;
use crate::link::{Link, ReceiveOutcome, Segment, SendFailure, SendOutcome};
use crate::screen::Screen;
use crate::sys::{self, RawAddress};
use receive::ReceiveBatch;
use send::Manner;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

pub use open::{OpenCause, OpenError, UdpConfig, UdpReport};
pub use run::{Run, can_coalesce, receive_run};
pub use send::{Rejected, SendBatch, Taken, can_segment};

/// A [`Link`] over one non-blocking UDP socket, IPv4 or IPv6, bound to one local address.
///
/// Sending uses segmentation offload (one message for a run of packets of equal size) and falls
/// back to single datagrams for good when the kernel or the device cannot do it. Receiving takes
/// coalesced buffers apart. All memory is taken by [`UdpLink::open`].
///
/// The socket stays the same for the link's whole life: Linux leaves a bound UDP socket alone when
/// its address or interface goes away, refuses to send on it in the meantime, and lets it go on
/// once the address is back.
pub struct UdpLink {
    socket: OwnedFd,
    local: SocketAddr,
    segmentation: bool,
    report: UdpReport,
    outgoing: SendBatch,
    incoming: ReceiveBatch,
}

impl UdpLink {
    /// Opens, configures and binds the socket.
    ///
    /// # Errors
    /// When the socket cannot be had or bound; the message says what to do. Options that are
    /// refused (a larger buffer, a priority) do not fail the start, see [`UdpLink::report`].
    pub fn open(config: &UdpConfig) -> Result<Self, OpenError> {
        let (socket, report) = open::open(config)?;
        let local = sys::local_address(&socket).map_err(|errno| OpenError {
            local: config.local,
            cause: OpenCause::Refused("getsockname", errno),
        })?;
        Ok(Self {
            local,
            segmentation: config.segmentation && can_segment(socket.as_fd()),
            socket,
            report,
            outgoing: SendBatch::new(),
            incoming: ReceiveBatch::new(),
        })
    }

    /// What the kernel granted at the start.
    pub fn report(&self) -> &UdpReport {
        &self.report
    }

    /// Whether runs of packets go out with segmentation offload.
    pub fn segmentation(&self) -> bool {
        self.segmentation
    }

    /// What follows a refused message: `Ok` with the packets sent in another way, or the failure.
    fn recover(
        &mut self,
        to: &RawAddress,
        packets: &[Segment<'_>],
        (rejected, manner): (Rejected, Manner),
    ) -> Result<usize, Errno> {
        let Rejected { errno, run } = rejected;
        // The refusal is about an earlier packet, and reporting it has cleared it.
        let stale = errno.0 == libc::ECONNREFUSED;
        // Offload is only given up when the same packets pass without it.
        let doubtful = rejected.may_be_offload();
        if !stale && !doubtful {
            return Err(errno);
        }
        let segmentation = self.segmentation && !doubtful;
        let manner = Manner {
            segmentation,
            ..manner
        };
        let again = self
            .outgoing
            .transmit(self.socket.as_fd(), to, &packets[..run], manner);
        let taken = again.map_err(|rejected| rejected.errno)?;
        self.segmentation = segmentation;
        Ok(taken.packets)
    }

    fn send_all(
        &mut self,
        to: SocketAddr,
        packets: &[Segment<'_>],
        confirmed: bool,
    ) -> SendOutcome {
        if to.is_ipv4() != self.local.is_ipv4() {
            let failure = Some(SendFailure::Other(Errno(libc::EAFNOSUPPORT)));
            return SendOutcome { sent: 0, failure };
        }
        let to = RawAddress::new(to);
        let mut sent = 0;
        while sent < packets.len() {
            let rest = &packets[sent..];
            let manner = Manner {
                segmentation: self.segmentation,
                confirmed,
            };
            let result = self
                .outgoing
                .transmit(self.socket.as_fd(), &to, rest, manner)
                .map(|taken| taken.packets)
                .or_else(|rejected| self.recover(&to, rest, (rejected, manner)));
            match result {
                Ok(taken) => sent += taken,
                Err(errno) => {
                    let failure = Some(SendFailure::from_errno(errno));
                    return SendOutcome { sent, failure };
                }
            }
        }
        SendOutcome {
            sent,
            failure: None,
        }
    }
}

impl Link for UdpLink {
    fn send(&mut self, to: SocketAddr, packets: &[Segment<'_>]) -> SendOutcome {
        self.send_all(to, packets, false)
    }

    fn send_confirmed(&mut self, to: SocketAddr, packets: &[Segment<'_>]) -> SendOutcome {
        self.send_all(to, packets, true)
    }

    fn receive(&mut self, sink: &mut dyn FnMut(SocketAddr, &mut [u8])) -> ReceiveOutcome {
        self.incoming.receive(&self.socket, sink)
    }

    /// `None` where the kernel does not tell (before Linux 4.12).
    fn receive_drops(&self) -> Option<u32> {
        sys::receive_drops(&self.socket).ok()
    }

    fn screen(&mut self, screen: Option<&Screen>) -> bool {
        // A filter judges and the kernel counts what it hands over at once, which must be one datagram then.
        let coalesces = self.report.coalescing;
        let coalesce = |on: bool| match coalesces {
            true => sys::set_option(&self.socket, libc::SOL_UDP, libc::UDP_GRO, on.into()),
            false => Ok(()),
        };
        let set = match screen {
            Some(screen) => {
                let attach = || sys::attach_filter(&self.socket, screen.program());
                coalesce(false).and_then(|()| attach()).inspect_err(|_| {
                    // Without a filter there is no reason to take datagrams one by one.
                    let _ = coalesce(true);
                })
            }
            None => sys::detach_filter(&self.socket).and_then(|()| coalesce(true)),
        };
        set.is_ok()
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.socket.as_raw_fd())
    }

    fn local_address(&self) -> SocketAddr {
        self.local
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_that_the_kernel_refuses_leaves_the_socket_as_it_was() {
        let local = "127.0.0.1:0".parse().unwrap();
        let mut link = UdpLink::open(&UdpConfig::new(local)).unwrap();
        let coalesces =
            |link: &UdpLink| sys::option(&link.socket, libc::SOL_UDP, libc::UDP_GRO).unwrap();
        assert!(link.report().coalescing && coalesces(&link) == 1);
        // Longer than any filter of classic BPF may be (BPF_MAXINSNS, 4096 steps).
        let many = (1..=2000).map(|port| SocketAddr::new([10, 0, 0, 1].into(), port));
        assert!(!link.screen(Some(&Screen::new(many))));
        assert_eq!(coalesces(&link), 1);
        assert!(link.screen(Some(&Screen::new([local]))));
        assert_eq!(coalesces(&link), 0);
        assert!(link.screen(None));
        assert_eq!(coalesces(&link), 1);
    }
}
