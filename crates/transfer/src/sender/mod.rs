//! The sending core.
use crate::{LinkParameters, Publisher, SenderChannel, SenderEvent, SenderPeer, SetupError};
use alloc::vec::Vec;
use bumpless_base::{Counters, Duration, Instant, LinkId, PeerId};
use bumpless_wire::{Ack, DataHeader};

/// A data packet to send. Its payload is [`Sender::payload`] until the next `handle_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// To whom.
    pub peer: PeerId,
    /// Position among the sender's channels.
    pub channel: usize,
    /// Sent before on this link.
    pub retransmission: bool,
    /// Sent only to ask for an acknowledgement.
    pub probe: bool,
    pub(crate) start: usize,
    pub(crate) len: usize,
    pub(crate) header: [u8; DataHeader::MAX_LEN],
    pub(crate) header_len: usize,
}

impl Transmit {
    /// The header's bytes.
    pub fn header(&self) -> &[u8] {
        self.header.get(..self.header_len).unwrap_or_default()
    }
    /// Bytes of header and payload together.
    pub fn datagram_len(&self) -> usize {
        self.header_len + self.len
    }
}

/// SKELETON: signatures only.
pub struct Sender {
    counters: Counters,
}

#[allow(unused_variables, missing_docs)]
impl Sender {
    pub fn new(
        links: &[LinkParameters],
        peers: &[SenderPeer],
        channels: &[SenderChannel],
    ) -> Result<(Sender, Vec<Publisher>), SetupError> {
        Ok((
            Self {
                counters: Counters::default(),
            },
            Vec::new(),
        ))
    }
    /// The next transfer of `channel` gets the number after `cycle`.
    pub fn set_last_cycle(&mut self, channel: usize, cycle: u32) {}
    pub fn set_session(&mut self, peer: PeerId, tag: Option<u32>, now: Instant) {}
    pub fn set_link_healthy(&mut self, peer: PeerId, link: LinkId, healthy: bool, now: Instant) {}
    pub fn set_link_round_trip(&mut self, peer: PeerId, link: LinkId, measured: Duration) {}
    pub fn handle_published(&mut self, now: Instant) {}
    pub fn handle_ack(&mut self, peer: PeerId, ack: &Ack<'_>, arrival: LinkId, now: Instant) {}
    pub fn handle_timeout(&mut self, now: Instant) {}
    pub fn poll_transmit(&mut self, link: LinkId, now: Instant) -> Option<Transmit> {
        None
    }
    pub fn payload(&self, transmit: &Transmit) -> &[u8] {
        &[]
    }
    pub fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    pub fn poll_event(&mut self) -> Option<SenderEvent> {
        None
    }
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}
