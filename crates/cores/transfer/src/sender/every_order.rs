//! An application that publishes while the sender's transfer ends, in every order that the two
//! threads can take (loom; see `handover/every_order.rs`).

use super::*;
use crate::{Distribution, Unsent};
use bumpless_atomic_box::every_order;
use bumpless_base::{ChannelId, Duration, LinkId, Pieces, Revision};
use bumpless_wire::{AckHeader, MAX_ACK_LEN, Packet, encode_ack, parse};
use loom::thread;
use std::vec::Vec;

const NOW: Instant = Instant::from_nanos(1_000);
const LINK: LinkId = LinkId(0);
const PEER: PeerId = PeerId(0);

/// A sender with one channel of one packet, and its publisher.
fn pair(unsent: Unsent) -> (Sender, Publisher) {
    pair_of(10, 1, unsent)
}

fn pair_of(payload_size: u16, max_size: u32, unsent: Unsent) -> (Sender, Publisher) {
    let link = LinkParameters {
        bandwidth: 0,
        frame_overhead: 0,
        initial_round_trip: Duration::from_micros(100),
    };
    let peer = SenderPeer {
        version: WireVersion::V2,
        payload_size,
        in_flight_max: 4,
    };
    let channel = SenderChannel {
        id: ChannelId::new(1).unwrap(),
        peer: PEER,
        links: LinkSet::first(1),
        distribution: Distribution::Replicate,
        unsent,
        max_size,
        deadline: Duration::from_millis(10),
        expiry: Duration::from_millis(30),
    };
    let (mut sender, mut publishers) = Sender::new(&[link], &[peer], &[channel]).unwrap();
    sender.set_session(PEER, Some(7), NOW);
    (sender, publishers.remove(0))
}

/// Sends what is there and returns the states that left.
fn transmit(sender: &mut Sender) -> Vec<u8> {
    core::iter::from_fn(|| {
        let packet = sender.poll_transmit(LINK, NOW)?;
        Some(sender.payload(&packet)[0])
    })
    .collect()
}

fn acknowledge(sender: &mut Sender) {
    let header = AckHeader {
        version: WireVersion::V2,
        tag: 7,
        channel: ChannelId::new(1).unwrap(),
        link: Some(LINK),
        retransmission: false,
        cycle: sender.channels[ChannelPlace(0)].cycle,
        trigger: Some(0),
        received: None,
    };
    let mut out = [0; MAX_ACK_LEN];
    let len = encode_ack(&header, [(0, 0)], &mut out);
    let Ok(Packet::Ack(ack)) = parse(&out[..len]) else {
        panic!("not an acknowledgement");
    };
    sender.handle_ack(PEER, &ack, LINK, NOW);
}

/// Publishes the state `value`; adds to `answered` the ticket that it superseded.
fn publish(publisher: &mut Publisher, value: u8, answered: &mut Vec<u64>) {
    let published = publisher.publish(NOW, |buffer| {
        buffer[0] = value;
        1
    });
    assert_eq!(published.ticket, u64::from(value));
    answered.extend(published.superseded);
}

/// A state of sevens.
struct Sevens(usize);

impl Pieces for Sevens {
    fn size(&self) -> usize {
        self.0
    }
    fn revision(&self) -> Option<Revision> {
        None
    }
    fn copy(&self, _: usize, piece: &mut [u8], _: Option<Revision>) {
        piece.fill(7);
    }
}

#[test]
fn a_state_that_grows_leaves_in_order_and_no_packet_is_forgotten() {
    // Three pieces; the third packet takes the last of them.
    const SIZE: usize = 100_000;
    every_order(|| {
        let (mut sender, mut publisher) = pair_of(40_000, SIZE as u32, Unsent::Replace);
        let application = thread::spawn(move || {
            publisher.publish_pieces(NOW, &Sevens(SIZE), || {});
        });
        let mut sent = Vec::new();
        let mut send = || {
            sender.handle_published(NOW);
            while let Some(packet) = sender.poll_transmit(LINK, NOW) {
                let payload = sender.payload(&packet);
                assert_eq!(payload.len(), packet.payload_len());
                assert!(payload.first() == Some(&7) && payload.last() == Some(&7));
                sent.push(payload.len());
            }
        };
        send();
        send();
        application.join().unwrap();
        send();
        assert_eq!(sent, [40_000, 40_000, 20_000]);
    });
}

/// Publishes five states, of which the first is on its way and the second waits, three of them while the sender's transfers end. Every
/// state is answered once, and the last one is sent; returns which were.
fn publish_five(unsent: Unsent) -> Vec<u8> {
    let (mut sender, mut publisher) = pair(unsent);
    let mut answered = Vec::new();
    publish(&mut publisher, 0, &mut answered);
    sender.handle_published(NOW);
    let mut sent = transmit(&mut sender);
    publish(&mut publisher, 1, &mut answered);
    sender.handle_published(NOW);

    let application = thread::spawn(move || {
        let mut answered = Vec::new();
        publish(&mut publisher, 2, &mut answered);
        publish(&mut publisher, 3, &mut answered);
        publish(&mut publisher, 4, &mut answered);
        answered
    });
    for _ in 0..2 {
        acknowledge(&mut sender);
        sender.handle_published(NOW);
        sent.extend(transmit(&mut sender));
    }
    answered.extend(application.join().unwrap());
    while sender.channels[ChannelPlace(0)].transfer.is_some() || sender.has_published() {
        sender.handle_published(NOW);
        sent.extend(transmit(&mut sender));
        acknowledge(&mut sender);
    }

    assert!(sent.is_sorted(), "{sent:?}");
    assert_eq!(
        (sent.first(), sent.last()),
        (Some(&0), Some(&4)),
        "the last state is nobody's to skip"
    );
    while let Some(event) = sender.poll_event() {
        match event {
            SenderEvent::Safe { ticket, .. } | SenderEvent::Superseded { ticket, .. } => {
                answered.push(ticket);
            }
            SenderEvent::Failed { .. } => panic!("{event:?}"),
        }
    }
    answered.sort_unstable();
    assert_eq!(answered, [0, 1, 2, 3, 4]);
    sent
}

#[test]
fn the_last_state_published_is_sent_and_each_is_answered_once() {
    every_order(|| {
        publish_five(Unsent::Replace);
    });
}

/// T-54: with four buffers, and a thread on either side of them.
#[test]
fn what_is_kept_is_sent_and_only_what_waits_last_makes_way() {
    every_order(|| {
        let sent = publish_five(Unsent::Keep);
        assert_eq!(sent.get(1), Some(&1), "it waited first: {sent:?}");
    });
}
