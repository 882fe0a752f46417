//! A network's port over a driver that takes everything and keeps nothing.

use std::cell::Cell;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use bumpless_base::{
    ChannelId, Counter, Counters, Duration, Instant, LinkId, LinkSet, NodeId, PeerId,
};
use bumpless_net_linux::{Link, ReceiveOutcome, Segment, SendFailure, SendOutcome};
use bumpless_node::data_plane::addresses::{Addresses, Correspondent};
use bumpless_node::data_plane::link_port::{LinkPort, SendState};
use bumpless_node::data_plane::protection::Protection;
use bumpless_node::wiring::LinkSettings;
use bumpless_transfer::{
    Distribution, LinkParameters, Publisher, Sender, SenderChannel, SenderPeer, Unsent,
};
use bumpless_wire::{DataHeader, WireVersion};

const LINK: LinkId = LinkId(0);
const PEER: PeerId = PeerId(0);
const BANDWIDTH: u64 = 10_000_000;
/// Bytes on the wire of each datagram beyond its payload.
const OVERHEAD: u16 = 66;
const BEGIN: Instant = Instant::from_nanos(1_000_000_000);

#[derive(Default)]
struct Swallow {
    /// What is lost, as each question about it is answered.
    drops: Vec<u32>,
    asked: Cell<usize>,
    /// More are refused in one call.
    most: Option<usize>,
    /// Why.
    failure: Option<SendFailure>,
    /// Datagrams to whom is known to be reached.
    confirmed: usize,
}

impl Link for Swallow {
    fn send(&mut self, _: SocketAddr, packets: &[Segment<'_>]) -> SendOutcome {
        let sent = packets.len().min(self.most.unwrap_or(usize::MAX));
        SendOutcome {
            sent,
            failure: self.failure.filter(|_| sent < packets.len()),
        }
    }
    fn send_confirmed(&mut self, to: SocketAddr, packets: &[Segment<'_>]) -> SendOutcome {
        self.confirmed += packets.len();
        self.send(to, packets)
    }
    fn receive(&mut self, _: &mut dyn FnMut(SocketAddr, &mut [u8])) -> ReceiveOutcome {
        ReceiveOutcome::default()
    }
    fn receive_drops(&self) -> Option<u32> {
        let at = self.asked.replace(self.asked.get() + 1);
        self.drops.get(at).copied()
    }
    fn descriptor(&self) -> Option<RawFd> {
        None
    }
    fn local_address(&self) -> SocketAddr {
        address()
    }
}

fn address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 4700))
}

/// Paced at `bandwidth`, bit/s; 0: not paced.
fn port(driver: Swallow, bandwidth: u64) -> LinkPort<Swallow> {
    let settings = LinkSettings {
        name: "A".into(),
        local: address(),
        message_max: 1472,
        bandwidth,
        frame_overhead: OVERHEAD,
        dscp: 0,
        priority: 0,
        in_flight_max: 512,
        screens: false,
        busy_poll: Duration::ZERO,
    };
    let addresses = Addresses {
        nodes: vec![NodeId(1)],
        partners: vec![Some(address())],
        references: vec![Some(address())],
    };
    let with = (addresses, Protection::none(1));
    LinkPort::new(LINK, driver, &settings, with, BEGIN)
}

/// A sender to one partner, on one link with one channel of states of `size` bytes.
fn sender(size: u32) -> (Sender, Publisher) {
    let link = LinkParameters {
        bandwidth: BANDWIDTH,
        frame_overhead: OVERHEAD,
        initial_round_trip: Duration::from_micros(100),
    };
    let peer = SenderPeer {
        version: WireVersion::V2,
        payload_size: 1442,
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
    (sender, publishers.remove(0))
}

/// When the sender asks for the acknowledgement of a state that leaves after what `before` sends.
fn asks_at(before: impl Fn(&mut LinkPort<Swallow>, &mut Sender, &mut Counters)) -> Instant {
    let (mut sender, mut publisher) = sender(1000);
    let (mut port, mut counters) = (port(Swallow::default(), BANDWIDTH), Counters::default());
    before(&mut port, &mut sender, &mut counters);
    publisher.publish(BEGIN, |buffer| buffer.len());
    sender.handle_published(BEGIN);
    let sent = port.send_states(&mut sender, BEGIN, &mut counters);
    assert_eq!(sent, SendState::Drained);
    sender.poll_timeout().unwrap()
}

#[test]
fn a_state_leaves_after_the_messages_that_were_sent_before_it() {
    let message = [0; 184];
    let alone = asks_at(|_, _, _| ());
    // 250 bytes on the wire.
    let each = Duration::from_micros(200);
    let after_heartbeat = asks_at(|port, sender, counters| {
        port.send_to_partner(PEER, &message, BEGIN, sender, counters);
    });
    assert_eq!(after_heartbeat.since(alone), each);
    let after_requests = asks_at(|port, sender, counters| {
        port.send_to_reference(0, &message, BEGIN, sender, counters);
        port.send_to_reference(0, &message, BEGIN, sender, counters);
    });
    assert_eq!(after_requests.since(alone), each * 2);
}

#[test]
fn what_the_kernel_dropped_adds_up_across_the_wrap_of_its_count() {
    let mut port = port(
        Swallow {
            drops: vec![0, 7, u32::MAX, 2],
            ..Swallow::default()
        },
        0,
    );
    assert_eq!(port.receive_drops(), None, "not asked for yet");
    let mut sums = Vec::new();
    for _ in 0..5 {
        port.measure_drops();
        sums.push(port.receive_drops().unwrap());
    }
    let last = u64::from(u32::MAX);
    assert_eq!(sums, [0, 7, last, last + 3, last + 3]);
}

#[test]
fn of_a_burst_only_the_bytes_that_the_kernel_took_are_counted() {
    let (mut sender, mut publisher) = sender(3 * 1442 - 42);
    let mut port = port(
        Swallow {
            most: Some(2),
            ..Swallow::default()
        },
        0,
    );
    let mut counters = Counters::default();
    publisher.publish(BEGIN, |buffer| buffer.len());
    sender.handle_published(BEGIN);
    port.send_states(&mut sender, BEGIN, &mut counters);
    assert_eq!(counters.get(Counter::DatagramsSent), 2);
    assert_eq!(counters.get(Counter::SendFailures), 1);
    let datagram = 1442 + DataHeader::MAX_LEN as u64;
    assert_eq!(counters.get(Counter::BytesSent), 2 * datagram);
}

#[test]
fn a_packet_that_the_kernel_refuses_keeps_its_cause_until_another_comes() {
    let (mut sender, mut publisher) = sender(3 * 1442 - 42);
    let mut port = port(
        Swallow {
            most: Some(2),
            failure: Some(SendFailure::TooBig),
            ..Swallow::default()
        },
        0,
    );
    assert_eq!(
        (port.send_failures().count, port.send_failures().last),
        (0, None)
    );
    let mut counters = Counters::default();
    publisher.publish(BEGIN, |buffer| buffer.len());
    sender.handle_published(BEGIN);
    port.send_states(&mut sender, BEGIN, &mut counters);
    let failures = port.send_failures();
    assert_eq!(failures.last, Some((BEGIN, SendFailure::TooBig)));
    assert_eq!(
        (failures.count, counters.get(Counter::SendFailures)),
        (1, 1)
    );
    // What is taken does not hide what was not.
    port.send_to_partner(
        PEER,
        &[1; 60],
        BEGIN + Duration::from_millis(1),
        &mut sender,
        &mut counters,
    );
    assert_eq!(port.send_failures().last, failures.last);
}

/// V-103: the kernel is told of who is reached, so that a flood of address resolution does not make it forget them.
#[test]
fn whoever_has_answered_of_late_is_sent_to_as_reached_and_nobody_else() {
    let (mut sender, _) = sender(1000);
    let (mut port, mut counters) = (port(Swallow::default(), 0), Counters::default());
    let later = |ms| BEGIN + Duration::from_millis(ms);
    let mut confirmed = |port: &mut LinkPort<Swallow>, at| {
        let before = port.receiving().0.confirmed;
        port.send_to_partner(PEER, b"a", at, &mut sender, &mut counters);
        port.send_to_reference(0, b"a", at, &mut sender, &mut counters);
        port.receiving().0.confirmed - before
    };
    assert_eq!(confirmed(&mut port, BEGIN), 0);
    let answered = |port: &mut LinkPort<Swallow>, whom, at| {
        port.receiving().3.handle_answer(whom, at, at);
    };
    answered(&mut port, Correspondent::Partner(PEER), BEGIN);
    assert_eq!(confirmed(&mut port, later(10)), 1);
    answered(&mut port, Correspondent::Reference(0), later(1000));
    assert_eq!(confirmed(&mut port, later(1500)), 2);
    assert_eq!(
        confirmed(&mut port, later(2500)),
        1,
        "the partner is silent"
    );
    assert_eq!(confirmed(&mut port, later(3500)), 0);
}
