//! Which packet leaves next.

use super::Sender;
use super::channel::Transfer;
use super::peer::{Peer, Urgency};
use crate::event::FailureCause;
use crate::place::ChannelPlace;
use crate::setup::expiry_unit;
use bumpless_base::{ChannelId, Counter, Instant, LinkId, PeerId};
use bumpless_wire::DataHeader;

/// A data packet to send. Its payload is what [`Sender::payload`] gives until the next
/// `handle_*` or `set_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// To whom.
    pub peer: PeerId,
    /// The channel's place in the sender.
    pub channel: ChannelPlace,
    /// Whether it was sent before on this link.
    pub retransmission: bool,
    /// Whether it is sent only to ask for an acknowledgement.
    pub probe: bool,
    header: [u8; DataHeader::MAX_LEN],
    header_len: usize,
    start: usize,
    end: usize,
}

impl Transmit {
    /// The header's bytes.
    pub fn header(&self) -> &[u8] {
        self.header.get(..self.header_len).unwrap_or_default()
    }

    /// Bytes of the payload.
    pub fn payload_len(&self) -> usize {
        self.end - self.start
    }

    /// Bytes of header and payload together.
    pub fn datagram_len(&self) -> usize {
        self.header_len + self.payload_len()
    }
}

/// A packet that was chosen to leave.
struct Chosen {
    sequence: u32,
    probe: bool,
    /// It was never sent on any link.
    first: bool,
}

impl Sender {
    /// The packet to send next on `link`: the next one of the channel with the earliest deadline.
    ///
    /// It counts as sent, at `now`. Gather as many as the link takes at once, then send them before
    /// the next `handle_*` or `set_*`; a packet that the link refused is found missing like a lost one.
    pub fn poll_transmit(&mut self, link: LinkId, now: Instant) -> Option<Transmit> {
        loop {
            let index = self.pick(link)?;
            if let Some(transmit) = self.transmit(index, link, now) {
                return Some(transmit);
            }
        }
    }

    /// Whether [`Self::poll_transmit`] may have a packet for `link`, or a stall to note.
    pub fn wants_to_send(&self, link: LinkId) -> bool {
        self.peers.iter().any(|peer| !peer.is_idle(link))
    }

    /// A datagram of `len` bytes that is no packet of a state is handed to the driver of `link` at `now`: what
    /// follows leaves after it (T-43).
    pub fn note_sent(&mut self, link: LinkId, len: usize, now: Instant) {
        if let Some(wire) = self.wires.get_mut(usize::from(link.0)) {
            wire.carry(len, now);
        }
    }

    /// Whether [`Self::poll_transmit`] has no packet for any link.
    pub fn is_idle(&self) -> bool {
        self.peers.iter().all(Peer::is_all_idle)
    }

    /// What [`Self::poll_transmit`] gave as payload.
    pub fn payload(&self, transmit: &Transmit) -> &[u8] {
        self.channels
            .get(transmit.channel)
            .and_then(|channel| channel.bytes().get(transmit.start..transmit.end))
            .unwrap_or_default()
    }

    fn pick(&mut self, link: LinkId) -> Option<ChannelPlace> {
        let mut best = None;
        for at in 0..self.peers.len() {
            if self.peers[at].is_held_up(link) && self.note_stall(at) {
                self.counters.count(Counter::WindowStalls);
            }
            if let Some(next) = self.peers[at].next(link) {
                best = Some(best.map_or(next, |best: (Urgency, ChannelPlace)| best.min(next)));
            }
        }
        best.map(|(_, index)| index)
    }

    /// Sends a channel's next packet on a link, or finds that its transfer has no hope.
    fn transmit(&mut self, index: ChannelPlace, link: LinkId, now: Instant) -> Option<Transmit> {
        let transfer = self.channels[index].transfer?;
        if let Err(cause) = self.has_hope(index, &transfer, now) {
            self.fail(index, cause);
            return None;
        }
        let path = self.channels[index].path_of(link)?;
        let Some(chosen) = self.choose(index, path, &transfer) else {
            self.settle(index);
            return None;
        };
        let transmit = self.send(index, path, &transfer, &chosen, now);
        self.settle_sent(index, path, chosen.first);
        transmit
    }

    fn has_hope(
        &self,
        index: ChannelPlace,
        transfer: &Transfer,
        now: Instant,
    ) -> Result<(), FailureCause> {
        let peer = &self.peers[usize::from(self.channels[index].setup.peer.0)];
        if !transfer.fits(now) {
            return Err(FailureCause::DeadlineUnreachable);
        }
        if transfer.expires_at.since(now) < expiry_unit(peer.setup.version) {
            return Err(FailureCause::Expired);
        }
        Ok(())
    }

    fn choose(&mut self, index: ChannelPlace, path: usize, transfer: &Transfer) -> Option<Chosen> {
        let channel = &mut self.channels[index];
        let peer = &self.peers[usize::from(channel.setup.peer.0)];
        let room = peer.has_room();
        let next = channel
            .next(path)
            .filter(|&next| next < transfer.started || room);
        let probe = next.is_none();
        let sequence = match next {
            Some(next) => next,
            None if channel.paths[path].probe => channel.probe_packet()?,
            None => return None,
        };
        Some(Chosen {
            sequence,
            probe,
            first: sequence == transfer.started,
        })
    }

    fn send(
        &mut self,
        index: ChannelPlace,
        path: usize,
        transfer: &Transfer,
        chosen: &Chosen,
        now: Instant,
    ) -> Option<Transmit> {
        let channel = &mut self.channels[index];
        let peer = &mut self.peers[usize::from(channel.setup.peer.0)];
        let (version, tag) = (peer.setup.version, peer.tag?);
        if transfer.started == 0 {
            channel.begin(version, transfer.packets, now);
        }
        let was_lost = channel.take_off(path, chosen.sequence);
        if let Some(transfer) = channel.transfer.as_mut().filter(|_| chosen.first) {
            transfer.started += 1;
            peer.in_flight += 1;
        }
        let asks = core::mem::take(&mut channel.paths[path].probe);
        let (id, cycle, link) = (channel.setup.id, channel.cycle, channel.paths[path].link);
        let piece = u32::from(transfer.piece);
        let left = transfer.total.saturating_sub(chosen.sequence * piece);
        let len = DataHeader::len(version) + left.min(piece) as usize;
        let wire = self.wires.get_mut(usize::from(link.0));
        let leaves = wire.map_or(now, |wire| wire.carry(len, now));
        let retransmission = channel.paths[path].send(chosen.sequence, leaves);
        self.counters.count(if chosen.probe {
            Counter::PacketsProbe
        } else if retransmission || was_lost {
            Counter::PacketsRetransmitted
        } else {
            Counter::PacketsFirst
        });
        let force_ack = if asks { Some(id) } else { self.ask(index, now) };
        let header = DataHeader {
            version,
            tag,
            channel: id,
            link,
            retransmission,
            short: transfer.short,
            cycle,
            sequence: chosen.sequence,
            total_size: transfer.total,
            expiry: transfer.expires_at.since(now),
            force_ack,
        };
        Some(self.wrap(index, &header, usize::from(transfer.piece), chosen.probe))
    }

    fn wrap(
        &self,
        index: ChannelPlace,
        header: &DataHeader,
        piece: usize,
        probe: bool,
    ) -> Transmit {
        let total = header.total_size as usize;
        let start = (header.sequence as usize * piece).min(total);
        let mut bytes = [0; DataHeader::MAX_LEN];
        let header_len = header.encode(&mut bytes);
        Transmit {
            peer: self.channels[index].setup.peer,
            channel: index,
            retransmission: header.retransmission,
            probe,
            header: bytes,
            header_len,
            start,
            end: (start + piece).min(total),
        }
    }

    /// The channel of the same peer whose acknowledgement a packet asks for in passing: the one
    /// with the earliest deadline that has sent everything and waits (first paper, 7.2.3).
    fn ask(&mut self, index: ChannelPlace, now: Instant) -> Option<ChannelId> {
        let peer = &self.peers[usize::from(self.channels[index].setup.peer.0)];
        let (_, rank) = peer.waiting.first()?;
        let channel = &mut self.channels[*peer.channels.get(rank)?];
        if !channel.may_ask(peer, now) {
            return None;
        }
        channel.transfer.as_mut()?.asked_at = now;
        Some(channel.setup.id)
    }
}
