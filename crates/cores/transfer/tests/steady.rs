//! Memory: none is taken in steady state, and little besides the states themselves at the start.

use bumpless_base::{ChannelId, Counter, Duration, Instant, LinkId, LinkSet, PeerId};
use bumpless_transfer::*;
use bumpless_wire::{MAX_ACK_LEN, Packet, WireVersion, parse};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Allocations and bytes of this thread while it counts.
    static COUNTED: Cell<Option<(u64, u64)>> = const { Cell::new(None) };
}

struct Counting;

fn note(bytes: usize) {
    // An allocation while the thread's locals are being destroyed is not one of ours.
    let _ = COUNTED.try_with(|counted| {
        counted.set(counted.get().map(|(n, sum)| (n + 1, sum + bytes as u64)));
    });
}

// SAFETY: every call is handed to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    // SAFETY: the caller keeps `GlobalAlloc::alloc`'s contract, which is the system's.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: `layout` is the caller's.
        unsafe { System.alloc(layout) }
    }
    // SAFETY: the caller keeps `GlobalAlloc::dealloc`'s contract, which is the system's.
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        note(0);
        // SAFETY: `at` came from `System` with this layout.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How many times `work` allocated or freed, and how many bytes it took.
fn counted<T>(work: impl FnOnce() -> T) -> (T, u64, u64) {
    COUNTED.with(|counted| counted.set(Some((0, 0))));
    let result = work();
    let (n, bytes) = COUNTED.with(|counted| counted.take()).unwrap_or_default();
    (result, n, bytes)
}

const SIZE: u32 = 1_000_000;
const PEER: PeerId = PeerId(0);

fn sending(id: u16) -> SenderChannel {
    SenderChannel {
        id: ChannelId::new(id).unwrap(),
        peer: PEER,
        links: LinkSet::first(2),
        distribution: Distribution::Replicate,
        unsent: Unsent::Replace,
        max_size: SIZE,
        deadline: Duration::from_millis(50),
        expiry: Duration::from_millis(500),
    }
}

fn receiving(id: u16) -> ReceiverChannel {
    ReceiverChannel {
        id: ChannelId::new(id).unwrap(),
        peer: PEER,
        links: LinkSet::first(2),
        max_size: SIZE,
        expect_within: Duration::from_millis(100),
    }
}

fn build(payload_size: u16, room: usize) -> (Sender, Vec<Publisher>, Receiver, Vec<Subscriber>) {
    let link = LinkParameters {
        bandwidth: 1_000_000_000,
        frame_overhead: 66,
        initial_round_trip: Duration::from_micros(100),
    };
    let peer = SenderPeer {
        version: WireVersion::V2,
        payload_size,
        in_flight_max: 512,
    };
    let channel = sending(1);
    let (sender, publishers) = Sender::with_room(&[link; 2], &[peer], &[channel], room).unwrap();
    let from = ReceiverPeer {
        version: WireVersion::V2,
        payload_size,
        in_flight_max: 512,
    };
    let channel = receiving(1);
    let (receiver, subscribers) = Receiver::with_room(&[from], &[channel], room).unwrap();
    (sender, publishers, receiver, subscribers)
}

/// One state across, losing every `nth` packet on the way.
fn cross(
    (sender, publishers, receiver, subscribers): &mut (
        Sender,
        Vec<Publisher>,
        Receiver,
        Vec<Subscriber>,
    ),
    now: &mut Instant,
    nth: u64,
) {
    let mut datagram = [0; 1600];
    let mut out = [0; MAX_ACK_LEN];
    let mut number = 0u64;
    publishers[0].publish(*now, |buffer| {
        buffer.fill(7);
        buffer.len()
    });
    sender.handle_published(*now);
    let mut safe = false;
    while !safe {
        *now += Duration::from_micros(10);
        sender.handle_timeout(*now);
        receiver.handle_timeout(*now);
        for link in (0..2).map(LinkId) {
            let Some(transmit) = sender.poll_transmit(link, *now) else {
                continue;
            };
            number += 1;
            if number.is_multiple_of(nth) {
                continue;
            }
            let (header, payload) = (transmit.header(), sender.payload(&transmit));
            let len = transmit.datagram_len();
            datagram[..header.len()].copy_from_slice(header);
            datagram[header.len()..len].copy_from_slice(payload);
            if let Ok(Packet::Data { header, payload }) = parse(&datagram[..len]) {
                receiver.handle_data(PEER, link, &header, payload, *now);
            }
            while let Some(ack) = receiver.poll_ack(&mut out) {
                if let Ok(Packet::Ack(ack)) = parse(&out[..ack.len]) {
                    sender.handle_ack(PEER, &ack, link, *now);
                }
            }
        }
        while let Some(event) = sender.poll_event() {
            assert!(matches!(event, SenderEvent::Safe { .. }));
            safe = true;
        }
        while receiver.poll_event().is_some() {}
    }
    assert!(subscribers[0].read(*now).is_some());
}

#[test]
fn steady_state_allocates_nothing() {
    let mut node = build(1000, 0);
    let mut now = Instant::from_nanos(1_000_000);
    node.0.set_session(PEER, Some(1), now);
    node.2.set_session(PEER, Some(1), now);
    let ((), n, _) = counted(|| {
        for nth in [u64::MAX, 7, 3, 2] {
            for _ in 0..5 {
                cross(&mut node, &mut now, nth);
            }
        }
    });
    assert_eq!(n, 0);
    assert_eq!(node.0.counters().get(Counter::StatesSafe), 20);
    let ((), n, _) = counted(|| drop(node));
    assert!(n > 0, "the count counts");
}

#[test]
fn bookkeeping_takes_at_most_a_twentieth_of_the_states() {
    for payload_size in [500, 1000, 1430] {
        let (node, _, bytes) = counted(|| build(payload_size, 0));
        let states = u64::from(2 * BUFFERS_PER_SIDE * SIZE);
        assert!(bytes > states);
        let share = (bytes - states) as f64 / f64::from(SIZE);
        assert!(share < 0.05, "{payload_size}: {share}");
        drop(node);
    }
}

/// Starts a transfer at every place, of which the receiver takes some packets and nobody collects
/// what it has to say.
fn begin(sender: &mut Sender, publishers: &mut [Publisher], receiver: &mut Receiver, now: Instant) {
    for publisher in publishers {
        publisher.publish(now, |_| 2000);
    }
    sender.handle_published(now);
    let mut datagram = [0; 1600];
    for number in 0.. {
        let Some(transmit) = sender.poll_transmit(LinkId(0), now) else {
            break;
        };
        let len = transmit.datagram_len();
        let (header, payload) = datagram[..len].split_at_mut(transmit.header().len());
        header.copy_from_slice(transmit.header());
        payload.copy_from_slice(sender.payload(&transmit));
        if let Ok(Packet::Data { header, payload }) = parse(&datagram[..len])
            && number % 3 > 0
        {
            receiver.handle_data(PEER, LinkId(0), &header, payload, now);
        }
    }
}

#[test]
fn exchanging_allocates_and_frees_nothing() {
    const ROOM: u16 = 70;
    let (mut sender, mut publishers, mut receiver, _subscribers) = build(1000, ROOM.into());
    let mut now = Instant::from_nanos(1_000_000);
    sender.set_session(PEER, Some(1), now);
    receiver.set_session(PEER, Some(1), now);
    let (to_send, to_receive) = (sender.factory(), receiver.factory());
    // In the second round others come, in the third nobody.
    for ids in [Some(100), Some(200), None, Some(300)] {
        now += Duration::from_millis(1);
        publishers.truncate(1);
        for place in 1..=ROOM {
            let at = usize::from(place);
            let (out, into) = match ids {
                Some(ids) => {
                    // In descending order, which moves the whole of the peer's table.
                    let id = ids + ROOM - place;
                    let (out, publisher) = to_send.prepare(ChannelPlace(at), &sending(id)).unwrap();
                    publishers.push(publisher);
                    (
                        out,
                        to_receive
                            .prepare(ChannelPlace(at), &receiving(id))
                            .unwrap()
                            .0,
                    )
                }
                None => (to_send.vacant(), to_receive.vacant()),
            };
            let (before, n, _) = counted(|| {
                let out = sender.exchange(ChannelPlace(at), out, now);
                (out, receiver.exchange(ChannelPlace(at), into, now))
            });
            assert_eq!(n, 0, "{ids:?}, place {place}");
            assert!(before.0.is_ok() && before.1.is_ok());
        }
        let ((), n, _) = counted(|| begin(&mut sender, &mut publishers, &mut receiver, now));
        assert_eq!(n, 0);
    }
    assert!(sender.counters().get(Counter::StatesFailed) >= 140);
    assert!(receiver.counters().get(Counter::StatesAbandoned) >= 40);
}

#[test]
fn a_vacant_place_takes_next_to_no_memory() {
    let bytes = |room| counted(|| build(1000, room)).2;
    let each = (bytes(1000) - bytes(0)) / 1000;
    assert!(each < 2000, "{each}");
}
