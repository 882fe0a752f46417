//! When a sender asks for an acknowledgement, packet by packet: the clauses on which a plan's longest time rests.

use bumpless_base::{ChannelId, Duration, Instant, LinkId, LinkSet, PeerId};
use bumpless_transfer::{
    Distribution, LinkParameters, Publisher, Sender, SenderChannel, SenderPeer, Transmit, Unsent,
};
use bumpless_wire::{AckHeader, MAX_ACK_LEN, Packet, WireVersion, encode_ack, parse};

const PEER: PeerId = PeerId(0);
const LINK: LinkId = LinkId(0);
const TAG: u32 = 7;
const PAYLOAD: usize = 1000;
const BEGIN: Instant = Instant::from_nanos(1_000_000_000);

fn us(n: u64) -> Duration {
    Duration::from_micros(n)
}

/// A sender with one channel on a network of `bandwidth` bit/s that has measured `round_trips` again and again.
fn sender(bandwidth: u64, round_trips: &[Duration]) -> (Sender, Publisher) {
    let link = LinkParameters {
        bandwidth,
        frame_overhead: 66,
        initial_round_trip: us(1000),
    };
    let peer = SenderPeer {
        version: WireVersion::V2,
        payload_size: PAYLOAD as u16,
        in_flight_max: 1024,
    };
    let channel = SenderChannel {
        id: ChannelId::new(1).unwrap(),
        peer: PEER,
        links: LinkSet::only(LINK),
        distribution: Distribution::Replicate,
        unsent: Unsent::Replace,
        max_size: 10 * PAYLOAD as u32,
        deadline: us(100_000),
        expiry: us(200_000),
    };
    let (mut sender, mut publishers) = Sender::new(&[link], &[peer], &[channel]).unwrap();
    sender.set_session(PEER, Some(TAG), BEGIN);
    for _ in 0..40 {
        for &round_trip in round_trips {
            sender.set_link_round_trip(PEER, LINK, round_trip);
        }
    }
    (sender, publishers.remove(0))
}

fn sent(sender: &mut Sender, now: Instant) -> Vec<Transmit> {
    std::iter::from_fn(|| sender.poll_transmit(LINK, now)).collect()
}

/// Publishes a state of so many packets, all of which leave at once.
fn begin(sender: &mut Sender, publisher: &mut Publisher, packets: usize) {
    publisher.publish(BEGIN, |_| packets * PAYLOAD);
    sender.handle_published(BEGIN);
    assert_eq!(sent(sender, BEGIN).len(), packets);
}

/// An acknowledgement that no packet of the channel has triggered.
fn report(sender: &mut Sender, blocks: &[(u32, u32)], now: Instant) {
    let header = AckHeader {
        version: WireVersion::V2,
        tag: TAG,
        channel: ChannelId::new(1).unwrap(),
        link: None,
        retransmission: false,
        cycle: 1,
        trigger: None,
        received: Some(blocks.iter().map(|(low, high)| high - low + 1).sum()),
    };
    let mut bytes = [0; MAX_ACK_LEN];
    let len = encode_ack(&header, blocks.iter().copied(), &mut bytes);
    let Ok(Packet::Ack(ack)) = parse(&bytes[..len]) else {
        panic!("not an acknowledgement");
    };
    sender.handle_ack(PEER, &ack, LINK, now);
}

/// Waits for the next probe and sends it; returns when that was.
fn probed(sender: &mut Sender) -> Instant {
    let now = sender.poll_timeout().unwrap();
    sender.handle_timeout(now);
    let packets = sent(sender, now);
    assert!(packets.len() == 1 && packets[0].probe);
    now
}

#[test]
fn a_report_that_others_ask_for_makes_the_next_probe_no_later() {
    // Others' packets ask in passing, so that an answer is no sign that a probe has arrived.
    let next = |told: bool| {
        let (mut sender, mut publisher) = sender(1_000_000_000, &[us(60)]);
        begin(&mut sender, &mut publisher, 2);
        let first = probed(&mut sender);
        if told {
            report(&mut sender, &[(0, 0)], first + us(10));
        }
        probed(&mut sender).since(first)
    };
    assert_eq!(next(true), next(false));
    assert!(next(true) < us(100), "{}", next(true));
}

#[test]
fn one_report_is_asked_for_once() {
    // The probe timeout of the missing packet ends after the wait for a probe, before the probe's answer can be there.
    let (mut sender, mut publisher) = sender(1_000_000_000, &[us(60), us(160)]);
    begin(&mut sender, &mut publisher, 3);
    let missing = [(0, 0), (2, 2)];
    report(&mut sender, &missing, BEGIN + us(80));
    let again = sent(&mut sender, BEGIN + us(80));
    assert!(again.len() == 1 && !again[0].probe);
    report(&mut sender, &missing, BEGIN + us(100));
    let first = probed(&mut sender);
    let second = probed(&mut sender);
    assert!(second.since(first) > us(140), "{}", second.since(first));
}

#[test]
fn what_goes_first_on_the_wire_makes_every_wait_longer() {
    let probe = |messages: usize| {
        let (mut sender, mut publisher) = sender(10_000_000, &[us(60)]);
        for _ in 0..messages {
            sender.note_sent(LINK, 184, BEGIN);
        }
        begin(&mut sender, &mut publisher, 2);
        probed(&mut sender)
    };
    // 250 bytes each.
    assert_eq!(probe(10).since(probe(0)), us(2000));
}
