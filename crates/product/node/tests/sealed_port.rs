//! A network's port where messages are protected: what is handed to the driver is sealed, counted with its envelope, and
//! nothing leaves as it is.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::Arc;

use bumpless_base::{
    ChannelId, Counter, Counters, Duration, Instant, LinkId, LinkSet, NodeId, PeerId,
};
use bumpless_net_linux::{Link, ReceiveOutcome, Segment, SendOutcome};
use bumpless_node::data_plane::addresses::{Addresses, Correspondent};
use bumpless_node::data_plane::link_port::LinkPort;
use bumpless_node::data_plane::protection::{self, Protection, Use};
use bumpless_node::wiring::LinkSettings;
use bumpless_secure::{Keyring, RingSuite, Secret};
use bumpless_transfer::{
    Distribution, LinkParameters, Publisher, Sender, SenderChannel, SenderPeer, Unsent,
};
use bumpless_wire::{DataHeader, EnvelopeHeader, WireVersion};

const LINK: LinkId = LinkId(0);
const PEER: PeerId = PeerId(0);
const PARTNER: Correspondent = Correspondent::Partner(PEER);
const BEGIN: Instant = Instant::from_nanos(1_000_000_000);
/// What fits into 1,500 bytes: less IP, UDP and the envelope; then less the data header.
const MESSAGE: u16 = 1433;
const PAYLOAD: u16 = 1403;

/// What was handed to the driver.
type Sent = Rc<RefCell<Vec<Vec<u8>>>>;

struct Keep(Sent);

impl Link for Keep {
    fn send(&mut self, _: SocketAddr, packets: &[Segment<'_>]) -> SendOutcome {
        let whole = |packet: &Segment<'_>| [packet.header, packet.payload].concat();
        self.0.borrow_mut().extend(packets.iter().map(whole));
        SendOutcome {
            sent: packets.len(),
            failure: None,
        }
    }
    fn receive(&mut self, _: &mut dyn FnMut(SocketAddr, &mut [u8])) -> ReceiveOutcome {
        ReceiveOutcome::default()
    }
    fn descriptor(&self) -> Option<RawFd> {
        None
    }
    fn local_address(&self) -> SocketAddr {
        address(1)
    }
}

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, last], 4700))
}

fn keys() -> Arc<Keyring<RingSuite>> {
    Arc::new(Keyring::new(vec![Secret::new([7; 32])]).unwrap())
}

/// What protects the messages of `node`, without a key yet.
fn keyless(node: u8) -> (Addresses, Protection<RingSuite>) {
    let addresses = || Addresses {
        nodes: vec![NodeId(1 - node)],
        partners: vec![Some(address(2 - node))],
        references: vec![Some(address(9))],
    };
    let sender = protection::Sender {
        node: NodeId(node),
        link: LINK,
        origin: 10 + u64::from(node),
    };
    let protection = Protection::keyless(sender, &addresses(), MESSAGE, BEGIN);
    (addresses(), protection)
}

/// The port of node 0, and what leaves by it.
fn port(bandwidth: u64) -> (LinkPort<Keep>, Sent) {
    let settings = LinkSettings {
        name: "A".into(),
        local: address(1),
        message_max: MESSAGE,
        bandwidth,
        frame_overhead: 66 + EnvelopeHeader::OVERHEAD as u16,
        dscp: 0,
        priority: 0,
        in_flight_max: 512,
        screens: false,
        busy_poll: Duration::ZERO,
    };
    let sent = Sent::default();
    let driver = Keep(Rc::clone(&sent));
    (
        LinkPort::new(LINK, driver, &settings, keyless(0), BEGIN),
        sent,
    )
}

/// A sender with a state of `size` bytes to send.
fn sender(size: u32) -> (Sender, Publisher) {
    let link = LinkParameters {
        bandwidth: 0,
        frame_overhead: 66,
        initial_round_trip: Duration::from_micros(100),
    };
    let peer = SenderPeer {
        version: WireVersion::V2,
        payload_size: PAYLOAD,
        in_flight_max: 512,
    };
    let channel = SenderChannel {
        id: ChannelId::new(1).unwrap(),
        peer: PEER,
        links: LinkSet::only(LINK),
        distribution: Distribution::Replicate,
        unsent: Unsent::Replace,
        max_size: size,
        deadline: Duration::from_secs(1),
        expiry: Duration::from_secs(2),
    };
    let (mut sender, mut publishers) = Sender::new(&[link], &[peer], &[channel]).unwrap();
    sender.set_session(PEER, Some(1), BEGIN);
    let mut publisher = publishers.remove(0);
    publisher.publish(BEGIN, |buffer| {
        buffer.fill(0x5A);
        buffer.len()
    });
    sender.handle_published(BEGIN);
    (sender, publisher)
}

#[test]
fn nothing_leaves_before_there_is_a_key_and_that_is_counted() {
    let (mut port, sent) = port(0);
    let (mut sender, _publisher) = sender(5_000);
    let mut counters = Counters::default();
    port.send_to_partner(PEER, &[1; 60], BEGIN, &mut sender, &mut counters);
    port.send_states(&mut sender, BEGIN, &mut counters);
    assert!(sent.borrow().is_empty());
    assert_eq!(counters.get(Counter::SendNoKey), 1 + 4);
    assert_eq!(counters.get(Counter::DatagramsSent), 0);
    // A key that the partner may not have yet changes nothing.
    port.set_keys(PARTNER, &keys(), Use::Open, BEGIN);
    port.send_to_partner(PEER, &[1; 60], BEGIN, &mut sender, &mut counters);
    assert!(sent.borrow().is_empty());
}

#[test]
fn every_message_is_sealed_opens_at_the_partner_and_counts_with_its_envelope() {
    let (mut port, sent) = port(0);
    port.set_keys(PARTNER, &keys(), Use::SealAndOpen, BEGIN);
    let (mut sender, _publisher) = sender(10 * u32::from(PAYLOAD));
    let mut counters = Counters::default();
    port.send_to_partner(PEER, &[0x5A; 60], BEGIN, &mut sender, &mut counters);
    port.send_at_full_length(PEER, &[0x5A; 60], BEGIN, &mut sender, &mut counters);
    port.send_states(&mut sender, BEGIN, &mut counters);
    let (_, mut partner) = keyless(1);
    partner.set_keys(PARTNER, &keys(), Use::SealAndOpen, BEGIN);
    let mut lengths = Vec::new();
    for datagram in sent.borrow_mut().iter_mut() {
        assert!(EnvelopeHeader::is_one(datagram));
        assert!(!datagram.windows(8).any(|part| part == [0x5A; 8]));
        let message = partner.open(PARTNER, datagram, BEGIN).expect("it opens");
        lengths.push(message.len());
    }
    let packet = usize::from(PAYLOAD) + DataHeader::MAX_LEN;
    assert_eq!(lengths[..2], [60, usize::from(MESSAGE)]);
    assert_eq!(lengths[2..], [packet; 10]);
    assert_eq!(packet, usize::from(MESSAGE), "states fill the frame");
    let bytes: usize = lengths.iter().map(|it| it + EnvelopeHeader::OVERHEAD).sum();
    assert_eq!(counters.get(Counter::BytesSent), bytes as u64);
    assert_eq!(counters.get(Counter::DatagramsSent), 12);
}

#[test]
fn who_is_not_believed_any_more_is_sent_nothing_and_others_still_are() {
    let (mut port, sent) = port(0);
    let (mut sender, _publisher) = sender(100);
    let mut counters = Counters::default();
    let witness = Correspondent::Reference(0);
    port.set_keys(PARTNER, &keys(), Use::SealAndOpen, BEGIN);
    port.set_keys(witness, &keys(), Use::SealAndOpen, BEGIN);
    port.set_keys(PARTNER, &keys(), Use::Nothing, BEGIN);
    port.send_to_partner(PEER, &[1; 60], BEGIN, &mut sender, &mut counters);
    assert!(sent.borrow().is_empty());
    port.send_to_reference(0, &[1; 57], BEGIN, &mut sender, &mut counters);
    assert_eq!(sent.borrow().len(), 1);
    assert_eq!(counters.get(Counter::SendNoKey), 1);
}
