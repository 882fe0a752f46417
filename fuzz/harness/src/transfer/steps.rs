//! What one byte of the conversation can mean.

use super::{ENDLESS, World};
use crate::input::Input;
use bumpless_base::{ChannelId, Duration, Instant, LinkId, PeerId};
use bumpless_wire::{
    AckHeader, DataHeader, MAX_ACK_LEN, Packet, WireVersion, encode_ack, parse, piece,
};

/// How many steps can happen while an application looks at a state.
const LOOK: usize = 15;
/// Most applications that look at states at the same time.
const MOST_LOOKING: usize = 3;

impl World {
    pub(super) fn step(&mut self, input: &mut Input<'_>) {
        match input.below(24) {
            0..=2 => self.do_publish(input),
            3 | 4 => {
                let link = LinkId(input.below(self.plan.links.into()) as u8);
                let most = 1 + usize::from(input.u8());
                self.send(link, most);
                self.settle();
            }
            5 => self.send_everywhere(),
            6 => self.exchange(),
            7 => {
                let scale = input.below(20);
                self.pass(Duration::from_micros(1 << scale));
            }
            8 => self.pass_to_timeout(),
            9 | 10 => self.deliver_first(input),
            11 => self.deliver_picked(input, true),
            12 => self.deliver_picked(input, false),
            13 => {
                if let Some(at) = self.pick(input) {
                    self.network.remove(at);
                }
            }
            14 => self.lose(input.u8()),
            15 => self.deliver_bent(input),
            16 => self.deliver_any(input),
            17 => self.change_session(input),
            18 => self.change_health(input),
            19 => {
                let channel = input.below(self.plan.channels.len());
                self.read(channel);
            }
            20 => self.look(input),
            21 => self.restart(input.flag()),
            22 => {
                let peer = PeerId(input.below(self.plan.peers.len()) as u8);
                let link = LinkId(input.below(self.plan.links.into()) as u8);
                let measured = Duration::from_micros(input.u16().into());
                self.sender.set_link_round_trip(peer, link, measured);
            }
            _ => self.forge(input),
        }
    }

    fn do_publish(&mut self, input: &mut Input<'_>) {
        let channel = input.below(self.plan.channels.len());
        let len = usize::from(input.u16());
        self.publish(channel, len);
        // Otherwise the driver is woken later.
        if len & 0x8000 == 0 {
            self.take_published();
        }
    }

    fn send_everywhere(&mut self) {
        if self.sender.has_published() {
            self.take_published();
        }
        for link in 0..self.plan.links {
            let sent = self.send(LinkId(link), ENDLESS);
            assert!(sent < ENDLESS, "bounded: packets of one instant");
        }
        self.settle();
    }

    fn pass_to_timeout(&mut self) {
        let dues = [self.sender.poll_timeout(), self.receiver.poll_timeout()];
        let due = dues.into_iter().flatten().min().unwrap_or(Instant::ZERO);
        // An overdue report can be set far off.
        if due.since(self.now) < Duration::from_secs(100) {
            self.pass(due.since(self.now));
        }
    }

    fn pick(&self, input: &mut Input<'_>) -> Option<usize> {
        let at = usize::from(input.u16());
        at.checked_rem(self.network.len())
    }

    /// The oldest of one link and direction; links keep order.
    fn deliver_first(&mut self, input: &mut Input<'_>) {
        let choice = input.u8();
        let (to_receiver, link) = (choice & 1 == 0, LinkId((choice >> 1) % self.plan.links));
        let found = self
            .network
            .iter()
            .position(|d| d.to_receiver == to_receiver && d.link == link);
        if let Some(at) = found {
            let datagram = self.network.remove(at);
            self.deliver(&datagram);
        }
    }

    /// Any one, so that packets overtake each other; it may stay and come once more.
    fn deliver_picked(&mut self, input: &mut Input<'_>, stays: bool) {
        let Some(at) = self.pick(input) else { return };
        let datagram = self.network.remove(at);
        self.deliver(&datagram);
        if stays {
            self.network.insert(at.min(self.network.len()), datagram);
        }
    }

    /// Loses what the mask says, by position.
    fn lose(&mut self, mask: u8) {
        let mut at = 0;
        self.network.retain(|_| {
            at += 1;
            mask >> (at % 8) & 1 == 0
        });
    }

    /// Bends a datagram. UDP's checksum keeps bent content away: what is bent is its length, or its
    /// type, version and session, as in one that is not of this conversation.
    fn deliver_bent(&mut self, input: &mut Input<'_>) {
        let Some(at) = self.pick(input) else { return };
        let mut datagram = self.network.remove(at);
        let before = tag_bytes(&datagram.bytes).map(<[u8]>::to_vec);
        let what = input.u8();
        if what & 1 == 0 {
            let bent = if self.version(datagram.peer.0.into()) == WireVersion::V2 {
                8
            } else {
                4
            };
            for byte in datagram.bytes.iter_mut().take(bent) {
                *byte ^= input.u8();
            }
        } else {
            let len = datagram.bytes.len();
            datagram
                .bytes
                .resize(if what & 2 == 0 { len + 1 } else { len - 1 }, 0xA5);
        }
        // One that names another session of this conversation needs somebody who knows it.
        if tag_bytes(&datagram.bytes) == before.as_deref() || !self.knows_session(&datagram.bytes) {
            self.deliver(&datagram);
        }
    }

    /// Bytes from anybody, who does not know the session.
    fn deliver_any(&mut self, input: &mut Input<'_>) {
        let (choice, len) = (input.u8(), input.below(64));
        let bytes = input.take(len).to_vec();
        let peer = PeerId(choice >> 1 & 1);
        let forger = !self.plan.hostile && self.knows_session(&bytes);
        if usize::from(peer.0) < self.plan.peers.len() && !forger {
            let datagram = super::Datagram {
                to_receiver: choice & 1 == 0,
                peer,
                link: LinkId(choice >> 2),
                bytes,
                sent_at: self.now,
            };
            self.deliver(&datagram);
        }
    }

    /// Version 1 has no session to know.
    fn knows_session(&self, bytes: &[u8]) -> bool {
        let (version, tag) = match parse(bytes) {
            Ok(Packet::Data { header, .. }) => (header.version, header.tag),
            Ok(Packet::Ack(ack)) => (ack.version, ack.tag),
            _ => return false,
        };
        version == WireVersion::V1 || tag <= self.last_tag
    }

    fn change_session(&mut self, input: &mut Input<'_>) {
        let peer = input.below(self.sessions.len());
        match (input.below(5), self.version(peer)) {
            (0, _) => self.new_session(peer),
            (1, WireVersion::V2) => self.adopt(peer, true),
            (2, WireVersion::V2) => self.adopt(peer, false),
            (3, WireVersion::V2) => self.set_session(peer, true, None),
            (4, WireVersion::V2) => {
                // Who has left a session does not come back to it.
                self.new_session(peer);
                self.set_session(peer, false, None);
            }
            _ => {
                self.new_session(peer);
                self.set_session(peer, true, None);
                self.set_session(peer, false, None);
            }
        }
    }

    fn change_health(&mut self, input: &mut Input<'_>) {
        let choice = input.u8();
        let peer = PeerId(choice >> 4 & 1);
        let (link, yes) = (LinkId(choice >> 1 & 7), choice & 1 != 0);
        match choice >> 5 {
            0 => self.sender.set_link_narrow(peer, link, yes),
            _ => self.sender.set_link_healthy(peer, link, yes, self.now),
        }
        self.settle();
    }

    /// An application looks at a state while the conversation goes on.
    fn look(&mut self, input: &mut Input<'_>) {
        let channel = input.below(self.plan.channels.len());
        self.read(channel);
        if self.looking == MOST_LOOKING {
            return;
        }
        let Some(mut subscriber) = self.subscribers[channel].take() else {
            return;
        };
        let steps = 1 + input.below(LOOK);
        let generation = self.receiver_generation;
        if let Some(view) = subscriber.read(self.now) {
            let before = view.data().to_vec();
            self.looking += 1;
            for _ in 0..steps {
                self.step(input);
            }
            self.looking -= 1;
            assert_eq!(view.data(), before, "whole: changed under its reader");
        }
        // A receiver that was started anew has brought another one.
        if generation == self.receiver_generation {
            self.subscribers[channel] = Some(subscriber);
        }
    }

    /// One end is started anew and knows nothing.
    fn restart(&mut self, sender: bool) {
        if sender {
            (self.sender, self.publishers) = self.plan.sender();
            self.ledger.forget_tickets();
        } else {
            let (receiver, subscribers) = self.plan.receiver();
            self.receiver = receiver;
            self.subscribers = subscribers.into_iter().map(Some).collect();
            self.receiver_generation += 1;
        }
        for peer in 0..self.sessions.len() {
            self.new_session(peer);
            if self.version(peer) == WireVersion::V2 {
                let tag = (!sender).then_some(self.sessions[peer].agreed);
                self.set_session(peer, sender, tag);
            }
        }
    }

    /// A datagram of somebody who knows everything, with any content.
    fn forge(&mut self, input: &mut Input<'_>) {
        if !self.plan.hostile {
            return;
        }
        let choice = input.u8();
        let to_receiver = choice & 1 == 0;
        let channel = input.below(self.plan.channels.len());
        let setup = &self.plan.channels[channel];
        let (peer, id) = (setup.peer, setup.id);
        let bytes = if to_receiver {
            self.forged_data(usize::from(peer.0), id, input)
        } else {
            self.forged_ack(usize::from(peer.0), id, input)
        };
        let datagram = super::Datagram {
            to_receiver,
            peer,
            link: LinkId(choice >> 1 & 7),
            bytes,
            sent_at: self.now,
        };
        self.deliver(&datagram);
    }

    fn forged_data(&self, peer: usize, channel: ChannelId, input: &mut Input<'_>) -> Vec<u8> {
        let link = input.u8();
        let header = DataHeader {
            version: self.version(peer),
            tag: self.sessions[peer].receiver.unwrap_or(0),
            channel,
            link: LinkId(link % 8),
            short: link & 8 != 0,
            retransmission: input.flag(),
            cycle: number(input) & 0xFFFF | input.u32() & 0xFFFF_0000,
            sequence: number(input) & 0xFFFF,
            total_size: number(input),
            expiry: Duration::from_micros(number(input).into()),
            force_ack: ChannelId::new(input.below(4) as u16 * 300 + 1),
        };
        let mut out = [0; DataHeader::MAX_LEN];
        let len = header.encode(&mut out);
        let payload = piece(self.plan.peers[peer].payload_size, header.short).into();
        let fits = (header.total_size as usize)
            .saturating_sub(header.sequence as usize * payload)
            .min(payload);
        let wanted = if input.flag() { input.below(64) } else { fits };
        [&out[..len], &vec![0xEE; wanted]].concat()
    }

    fn forged_ack(&self, peer: usize, channel: ChannelId, input: &mut Input<'_>) -> Vec<u8> {
        let header = AckHeader {
            version: self.version(peer),
            tag: self.sessions[peer].sender.unwrap_or(0),
            channel,
            link: (!input.flag()).then_some(LinkId(input.u8() % 8)),
            retransmission: input.flag(),
            cycle: number(input),
            trigger: input.flag().then_some(number(input)),
            received: input.flag().then_some(number(input)),
        };
        let mut at = 0u32;
        let count = input.below(5);
        let blocks = (0..count).map(|_| {
            let low = at.saturating_add(number(input));
            let high = low.saturating_add(number(input));
            at = high.saturating_add(2);
            (low, high)
        });
        let blocks: Vec<_> = blocks.collect();
        let mut out = [0; MAX_ACK_LEN];
        let len = encode_ack(&header, blocks, &mut out);
        out[..len].to_vec()
    }
}

/// Where version 2 has its session.
fn tag_bytes(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(4..8)
}

/// Mostly small, at times any.
fn number(input: &mut Input<'_>) -> u32 {
    match input.u8() {
        n @ 0..=200 => n.into(),
        n @ 201..=230 => u32::from(n) << 8 | u32::from(input.u8()),
        231..=240 => u32::MAX - u32::from(input.u8()),
        _ => input.u32(),
    }
}
