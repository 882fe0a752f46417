//! Paths of the transfer cores, packets as they are on the wire.

use std::hint::black_box;

use bumpless_base::{ChannelId, Duration, Instant, LinkId, LinkSet, PeerId};
use bumpless_transfer::{
    Distribution, LinkParameters, Publisher, Receiver, ReceiverChannel, ReceiverPeer, Sender,
    SenderChannel, SenderEvent, SenderPeer, Unsent,
};
use bumpless_wire::{DataHeader, MAX_ACK_LEN, Packet, WireVersion, parse};

const PEER: PeerId = PeerId(0);
const PAYLOAD: u16 = 1442;
const LARGE: u32 = 1_000_000;
/// Packets of a large state.
pub const PACKETS: u64 = (LARGE as u64).div_ceil(PAYLOAD as u64);

struct Pair {
    sender: Sender,
    publishers: Vec<Publisher>,
    receiver: Receiver,
    now: Instant,
    tag: u32,
}

impl Pair {
    fn new(channels: u16, links: u8, max_size: u32) -> Self {
        let links_of = LinkSet::first(usize::from(links));
        let parameters = LinkParameters {
            bandwidth: 1_000_000_000,
            frame_overhead: 66,
            initial_round_trip: Duration::from_micros(100),
        };
        let id = |at: u16| ChannelId::new(at + 1).expect("not zero");
        let sending = |at| SenderChannel {
            id: id(at),
            peer: PEER,
            links: links_of,
            distribution: Distribution::Replicate,
            unsent: Unsent::Replace,
            max_size,
            deadline: Duration::from_millis(500),
            expiry: Duration::from_secs(1),
        };
        let receiving = |at| ReceiverChannel {
            id: id(at),
            peer: PEER,
            links: links_of,
            max_size,
            expect_within: Duration::MAX,
        };
        let to = SenderPeer {
            version: WireVersion::V2,
            payload_size: PAYLOAD,
            in_flight_max: 4096,
        };
        let from = ReceiverPeer {
            version: WireVersion::V2,
            payload_size: PAYLOAD,
            in_flight_max: 4096,
        };
        let sending: Vec<_> = (0..channels).map(sending).collect();
        let receiving: Vec<_> = (0..channels).map(receiving).collect();
        let links = vec![parameters; usize::from(links)];
        let (sender, publishers) = Sender::new(&links, &[to], &sending).expect("a sound setup");
        let (receiver, _) = Receiver::new(&[from], &receiving).expect("a sound setup");
        let mut pair = Self {
            sender,
            publishers,
            receiver,
            now: Instant::from_nanos(1_000_000_000),
            tag: 1,
        };
        pair.begin_session();
        pair
    }

    /// A new session: what was open is given up.
    fn begin_session(&mut self) {
        self.tag += 1;
        self.sender.set_session(PEER, Some(self.tag), self.now);
        self.receiver.set_session(PEER, Some(self.tag), self.now);
        while self.sender.poll_event().is_some() {}
    }

    fn publish(&mut self, channel: usize, size: usize) {
        // The application's copy is not what is measured.
        self.publishers[channel].publish(self.now, |_| size);
        self.sender.handle_published(self.now);
    }

    /// Sends all that is ready on `links`, and hands each datagram to `carry`.
    fn send(&mut self, links: u8, mut carry: impl FnMut(&mut Receiver, u8, &[u8], &[u8], Instant)) {
        for link in 0..links {
            while let Some(packet) = self.sender.poll_transmit(LinkId(link), self.now) {
                let payload = self.sender.payload(&packet);
                carry(&mut self.receiver, link, packet.header(), payload, self.now);
            }
        }
    }

    /// Brings the receiver's acknowledgements back; returns how many states became safe.
    fn acknowledge(&mut self) -> u64 {
        let mut bytes = [0; MAX_ACK_LEN];
        while let Some(ack) = self.receiver.poll_ack(&mut bytes) {
            let Ok(Packet::Ack(parsed)) = parse(&bytes[..ack.len]) else {
                unreachable!("the receiver wrote it")
            };
            self.sender.handle_ack(PEER, &parsed, LinkId(0), self.now);
        }
        while self.receiver.poll_event().is_some() {}
        let mut safe = 0;
        while let Some(event) = self.sender.poll_event() {
            safe += u64::from(matches!(event, SenderEvent::Safe { .. }));
        }
        safe
    }
}

fn send_on(links: u8, rounds: u64) {
    let mut pair = Pair::new(1, links, LARGE);
    for _ in 0..rounds {
        pair.publish(0, LARGE as usize);
        let mut sent = 0;
        pair.send(links, |_, _, header, payload, _| {
            black_box((header, payload));
            sent += 1;
        });
        assert_eq!(sent, PACKETS * u64::from(links));
        pair.begin_session();
    }
}

pub fn send_on_one(rounds: u64) {
    send_on(1, rounds);
}

pub fn send_on_two(rounds: u64) {
    send_on(2, rounds);
}

/// The header of a packet of a large state in the session `tag`.
fn header(tag: u32, cycle: u32, sequence: u32) -> DataHeader {
    DataHeader {
        version: WireVersion::V2,
        tag,
        channel: ChannelId::new(1).expect("not zero"),
        link: LinkId(0),
        retransmission: false,
        short: false,
        cycle,
        sequence,
        total_size: LARGE,
        expiry: Duration::from_secs(1),
        force_ack: None,
    }
}

/// A datagram is encoded, too, for want of a network that brings it.
pub fn receive(rounds: u64) {
    let mut pair = Pair::new(1, 1, LARGE);
    let mut datagram = vec![7; DataHeader::MAX_LEN + usize::from(PAYLOAD)];
    let mut head = [0; DataHeader::MAX_LEN];
    for round in 0..rounds {
        for sequence in 0..PACKETS as u32 {
            let left = LARGE - sequence * u32::from(PAYLOAD);
            let payload = left.min(u32::from(PAYLOAD)) as usize;
            let len = header(pair.tag, round as u32 + 1, sequence).encode(&mut head);
            datagram[..len].copy_from_slice(&head[..len]);
            let Ok(Packet::Data { header, payload }) = parse(&datagram[..len + payload]) else {
                unreachable!("it was just encoded")
            };
            let link = LinkId(0);
            pair.receiver
                .handle_data(PEER, link, &header, payload, pair.now);
        }
        let mut bytes = [0; MAX_ACK_LEN];
        while pair.receiver.poll_ack(&mut bytes).is_some() {}
        let mut whole = 0;
        while pair.receiver.poll_event().is_some() {
            whole += 1;
        }
        assert_eq!(whole, 1);
    }
}

/// Every second packet has come; the report says so again and again.
pub fn acknowledge(rounds: u64) {
    let mut pair = Pair::new(1, 1, LARGE);
    pair.publish(0, LARGE as usize);
    let mut at = 0;
    pair.send(1, |receiver, link, header, payload, now| {
        at += 1;
        if at % 2 == 0 {
            let datagram = [header, payload].concat();
            let Ok(Packet::Data { header, payload }) = parse(&datagram) else {
                unreachable!("the sender wrote it")
            };
            receiver.handle_data(PEER, LinkId(link), &header, payload, now);
        }
    });
    let mut bytes = [0; MAX_ACK_LEN];
    let mut len = 0;
    while let Some(ack) = pair.receiver.poll_ack(&mut bytes) {
        len = ack.len;
    }
    let Ok(Packet::Ack(ack)) = parse(&bytes[..len]) else {
        unreachable!("the receiver wrote it")
    };
    assert_eq!(ack.block_count(), 145);
    for _ in 0..rounds {
        pair.sender.handle_ack(PEER, &ack, LinkId(0), pair.now);
    }
}

fn small_of(channels: u16, rounds: u64) {
    let mut pair = Pair::new(channels, 1, 2000);
    let mut safe = 0;
    for round in 0..rounds {
        pair.now += Duration::from_micros(50);
        pair.publish((round % u64::from(channels)) as usize, 128);
        pair.send(1, |receiver, link, header, payload, now| {
            let mut datagram = [0; 256];
            let len = header.len() + payload.len();
            datagram[..header.len()].copy_from_slice(header);
            datagram[header.len()..len].copy_from_slice(payload);
            let Ok(Packet::Data { header, payload }) = parse(&datagram[..len]) else {
                unreachable!("the sender wrote it")
            };
            receiver.handle_data(PEER, LinkId(link), &header, payload, now);
        });
        safe += pair.acknowledge();
        pair.sender.handle_timeout(pair.now);
        pair.receiver.handle_timeout(pair.now);
    }
    assert_eq!(safe, rounds);
}

pub fn small_of_one(rounds: u64) {
    small_of(1, rounds);
}

pub fn small_of_thousand(rounds: u64) {
    small_of(1000, rounds);
}
