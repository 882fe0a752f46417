//! The receiving core.
use crate::{ReceiverChannel, ReceiverEvent, ReceiverPeer, SetupError, Subscriber};
use alloc::vec::Vec;
use bumpless_base::{Counters, Instant, LinkId, LinkSet, PeerId};
use bumpless_wire::{DataHeader, MAX_ACK_LEN};

/// An acknowledgement to send: the first `len` bytes of the buffer given to `poll_ack`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckTransmit {
    /// To whom.
    pub peer: PeerId,
    /// Position among the receiver's channels.
    pub channel: usize,
    /// On which links, a copy on each.
    pub links: LinkSet,
    /// Bytes.
    pub len: usize,
}

/// SKELETON: signatures only.
pub struct Receiver {
    counters: Counters,
}

#[allow(unused_variables, missing_docs)]
impl Receiver {
    pub fn new(
        peers: &[ReceiverPeer],
        channels: &[ReceiverChannel],
    ) -> Result<(Receiver, Vec<Subscriber>), SetupError> {
        Ok((
            Self {
                counters: Counters::default(),
            },
            Vec::new(),
        ))
    }
    pub fn set_session(&mut self, peer: PeerId, tag: Option<u32>, now: Instant) {}
    pub fn handle_data(
        &mut self,
        peer: PeerId,
        link: LinkId,
        header: &DataHeader,
        payload: &[u8],
        now: Instant,
    ) {
    }
    pub fn poll_ack(&mut self, out: &mut [u8; MAX_ACK_LEN]) -> Option<AckTransmit> {
        None
    }
    pub fn handle_timeout(&mut self, now: Instant) {}
    pub fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    pub fn poll_event(&mut self) -> Option<ReceiverEvent> {
        None
    }
    /// Until when the newest whole state of `channel` may be used; `None` if there was none.
    pub fn fresh_until(&self, channel: usize) -> Option<Instant> {
        None
    }
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}
