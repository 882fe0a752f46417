//! Ten thousand sessions, what they take, and what others cannot make them take.

#[path = "support/pair.rs"]
mod pair;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bumpless_base::{Duration, Instant, Random};
use bumpless_iprp::{
    Discard, FEEDBACK_LEN, Flow, MAX_MESSAGE, Origin, PeerId, Receiver, ReceiverEvent,
    ReceiverLimits, ReceiverSetup, Replication, Sender, SenderEvent, SenderLimits, SenderSetup,
    SessionId,
};
use bumpless_secure::RingSuite;
use pair::{MS, Pair, address, flow, receiver_setup, sender_setup};

struct Counting;

thread_local! {
    static ALLOCATED: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATED.try_with(|it| {
            let (count, bytes) = it.get();
            it.set((count + 1, bytes + layout.size() as u64));
        });
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of this thread during `work`, and their bytes.
fn allocated<T>(work: impl FnOnce() -> T) -> (u64, u64, T) {
    let (count, bytes) = ALLOCATED.get();
    let result = work();
    let (after, bytes_after) = ALLOCATED.get();
    (after - count, bytes_after - bytes, result)
}

const SESSIONS: usize = 10_000;
/// As the default has it.
const KEY_LIFETIME: Duration = Duration::from_secs(3_600);
/// Bytes of memory for each session of a receiver with the default window, and of a sender (`spec/iprp.md`, I-60).
const RECEIVER_EACH: u64 = 5_120;
const SENDER_EACH: u64 = 3_072;

fn flow_of(at: usize) -> Flow {
    Flow {
        destination_port: pair::PORT + at as u16,
        ..flow()
    }
}

fn large() -> Pair {
    let mut receiver = ReceiverSetup {
        limits: ReceiverLimits {
            sessions: SESSIONS,
            candidates: 64,
            max_lost: 1_024,
        },
        ..receiver_setup()
    };
    receiver.monitored[0].last = pair::PORT + SESSIONS as u16;
    let sender = SenderSetup {
        limits: SenderLimits {
            sessions: SESSIONS,
            kept_packets: 0,
            kept_len: 0,
        },
        ..sender_setup(1)
    };
    Pair::of(sender, receiver)
}

#[test]
fn ten_thousand_sessions_take_what_is_stated_and_nothing_after_the_start() {
    let setup = || ReceiverSetup {
        limits: ReceiverLimits {
            sessions: SESSIONS,
            candidates: 1,
            max_lost: 1_024,
        },
        ..receiver_setup()
    };
    let (_, bytes, receiver) =
        allocated(|| Receiver::<RingSuite>::new(setup(), Instant::ZERO).unwrap());
    drop(receiver);
    println!("a receiver: {} bytes a session", bytes / SESSIONS as u64);
    assert!(bytes <= RECEIVER_EACH * SESSIONS as u64, "{bytes}");
    let setup = SenderSetup {
        limits: SenderLimits {
            sessions: SESSIONS,
            ..sender_setup(1).limits
        },
        ..sender_setup(1)
    };
    let (_, bytes, sender) = allocated(|| Sender::<RingSuite>::new(setup).unwrap());
    drop(sender);
    println!("a sender: {} bytes a session", bytes / SESSIONS as u64);
    assert!(bytes <= SENDER_EACH * SESSIONS as u64, "{bytes}");

    let mut pair = large();
    let mut message = [0; MAX_MESSAGE];
    let (count, ..) = allocated(|| {
        for at in 0..SESSIONS {
            pair.receiver.handle_monitored(pair.now, &flow_of(at));
            while let Some(outgoing) = pair.receiver.poll_advertisement(pair.now, &mut message) {
                pair_say(&mut pair, &message[..outgoing.len]);
            }
        }
        (0..SESSIONS).for_each(|at| pair_sends(&mut pair, at));
        pair.pass(Duration::from_secs(200));
    });
    assert_eq!(count, 0, "allocations after the start");
    assert!(pair.receiver.is_empty() && pair.sender.sessions().next().is_none());
}

/// A packet of the session at this place, with both of its copies and the answer. Nothing is allocated.
fn pair_sends(pair: &mut Pair, at: usize) {
    let (mut scratch, mut copies) = ([0; 512], [[0; 512]; 2]);
    let (mut next, mut len) = (0, 0);
    let from = SocketAddr::new(address(1, 1), 1_001);
    pair.now += Duration::from_micros(100);
    let result = pair
        .sender
        .replicate(pair.now, &flow_of(at), &[1; 100], &mut scratch, |copy| {
            len = copy.bytes.len();
            copies[next][..len].copy_from_slice(copy.bytes);
            next += 1;
        });
    let expected = Replication::Copies {
        count: 2,
        kept: false,
    };
    assert_eq!(result, expected, "session {at}");
    let receiver = &mut pair.receiver;
    let first = receiver.handle_data(pair.now, None, from, &mut copies[0][..len]);
    assert!(first.is_ok_and(|it| it.flow == flow_of(at)), "session {at}");
    let second = receiver.handle_data(pair.now, None, from, &mut copies[1][..len]);
    assert_eq!(second, Err(Discard::Duplicate));
    let mut answer = [0; FEEDBACK_LEN];
    while receiver.poll_feedback(&mut answer).is_some() {
        pair.sender.handle_feedback(pair.now, &mut answer).unwrap();
    }
}

/// As `Pair::say_to_sender`, which allocates nothing either.
fn pair_say(pair: &mut Pair, bytes: &[u8]) {
    let mut answer = [0; MAX_MESSAGE];
    let origin = |host| Origin {
        peer: PeerId(host),
        address: address(host as u8, 1),
    };
    let len = pair
        .sender
        .handle_message(pair.now, origin(2), bytes, &mut answer)
        .unwrap();
    pair.receiver
        .handle_message(pair.now, origin(1), &answer[..len])
        .unwrap();
}

/// How many sessions the sender says have ended, and how many other events there were.
fn ended(pair: &mut Pair) -> (usize, usize) {
    let events: Vec<_> = std::iter::from_fn(|| pair.sender.poll_event()).collect();
    let is_end = |it: &&SenderEvent| matches!(it, SenderEvent::Ended { .. });
    let ends = events.iter().filter(is_end).count();
    (ends, events.len() - ends)
}

/// That every end is told if `end_all` ends all sessions, and nobody has collected anything yet.
fn all_ends_are_told(end_all: impl FnOnce(&mut Pair)) {
    let mut pair = large();
    let mut message = [0; MAX_MESSAGE];
    for at in 0..SESSIONS {
        pair.receiver.handle_monitored(pair.now, &flow_of(at));
        while let Some(outgoing) = pair.receiver.poll_advertisement(pair.now, &mut message) {
            pair_say(&mut pair, &message[..outgoing.len]);
        }
    }
    assert_eq!(pair.sender.sessions().count(), SESSIONS);
    // A cut of one network is said by each session; begins and networks wait, too.
    pair.sender.set_networks(pair::networks(1, &[1]));
    let (count, ..) = allocated(|| end_all(&mut pair));
    assert_eq!(count, 0, "allocations");
    assert_eq!(ended(&mut pair), (SESSIONS, 4 * SESSIONS));
    assert_eq!(pair.sender.totals().events_lost, 0);
}

#[test]
fn every_end_is_told_when_a_host_with_all_sessions_is_disowned() {
    all_ends_are_told(|pair| pair.sender.disown(PeerId(2)));
}

#[test]
fn every_end_is_told_when_all_sessions_end_with_time() {
    all_ends_are_told(|pair| pair.pass(Duration::from_secs(200)));
}

#[test]
fn events_a_receiver_has_no_room_for_are_counted_and_its_key_is_told() {
    let mut pair = large();
    let mut message = [0; MAX_MESSAGE];
    let mut say_all = |pair: &mut Pair| {
        while let Some(outgoing) = pair.receiver.poll_advertisement(pair.now, &mut message) {
            pair_say(pair, &message[..outgoing.len]);
        }
    };
    const BEGUN: usize = 300;
    for at in 0..BEGUN {
        pair.receiver.handle_monitored(pair.now, &flow_of(at));
        say_all(&mut pair);
    }
    let number = pair.receiver.key_number();
    let waits = pair.receiver.totals().events_lost;
    assert!(waits > 0, "nobody has collected anything");
    // The key changes while there is no room for a word.
    let (count, ..) = allocated(|| pair.receiver.handle_timeout(pair.now + KEY_LIFETIME));
    assert_eq!(count, 0);
    let told: Vec<_> = std::iter::from_fn(|| pair.receiver.poll_event()).collect();
    let key = ReceiverEvent::KeyChanged { number: number + 1 };
    assert_eq!(told[0], key);
    let lost = pair.receiver.totals().events_lost;
    let ends = BEGUN;
    assert_eq!(
        told.len() - 1 + lost as usize,
        2 * BEGUN + ends,
        "each is told or counted: begins, networks, ends"
    );
    // There is room again.
    pair.now += KEY_LIFETIME;
    pair.receiver.handle_monitored(pair.now, &flow_of(0));
    say_all(&mut pair);
    let next = pair.receiver.poll_event();
    assert!(
        matches!(next, Some(ReceiverEvent::Begun { .. })),
        "{next:?}"
    );
    assert_eq!(pair.receiver.totals().events_lost, lost);
}

#[test]
fn one_session_more_than_there_is_room_for_takes_nobodys_place() {
    let mut setup = receiver_setup();
    setup.monitored[0].last = pair::PORT + 100;
    let mut pair = Pair::of(sender_setup(1), setup);
    for at in 0..20 {
        pair.receiver.handle_monitored(pair.now, &flow_of(at));
        pair.control();
    }
    let replicated: Vec<_> = (0..20)
        .filter(|&at| pair.sender.is_replicated(&flow_of(at)))
        .collect();
    assert_eq!(replicated, (0..8).collect::<Vec<_>>());
    for at in 0..8 {
        let copies = pair.send_as(&flow_of(at), b"x");
        assert!(pair.arrive(&copies[0]).is_ok(), "session {at}");
    }
}

#[test]
fn a_flood_of_strangers_makes_no_session_and_takes_no_sessions_place() {
    let mut pair = Pair::begun();
    let mut random = Random::new(5);
    let mut message = [0; MAX_MESSAGE];
    let mut advertised = 0;
    for _ in 0..20_000 {
        pair.now += Duration::from_micros(50);
        pair.receiver.handle_timeout(pair.now);
        let source = IpAddr::V4(Ipv4Addr::from_bits(random.next_u64() as u32 & 0x7fff_ffff));
        let stranger = Flow { source, ..flow() };
        pair.receiver.handle_monitored(pair.now, &stranger);
        while pair
            .receiver
            .poll_advertisement(pair.now, &mut message)
            .is_some()
        {
            advertised += 1;
        }
    }
    assert!(pair.receiver.len() <= 1 + 4, "{}", pair.receiver.len());
    assert!(advertised < 20, "{advertised} in a second");
    assert!(pair.receiver.totals().candidates_refused > 19_000);
    let copies = pair.send(b"x");
    assert!(pair.arrive(&copies[0]).is_ok());
    pair.pass(Duration::from_secs(11));
    assert_eq!(
        pair.receiver.len(),
        1,
        "they are forgotten, and the session is not"
    );
}

#[test]
fn random_repeated_and_bent_packets_make_no_session_no_delivery_and_no_growth() {
    let mut pair = Pair::begun();
    let mut random = Random::new(6);
    let seen: Vec<_> = (0..50).flat_map(|_| pair.send(b"payload")).collect();
    for copy in &seen {
        let _ = pair.arrive(copy);
    }
    let delivered = pair.receiver.totals().delivered;
    let (count, ..) = allocated(|| {
        let mut datagram = [0; 80];
        let from = SocketAddr::new(address(9, 1), 7);
        for _ in 0..50_000 {
            let len = match random.below(3) {
                0 => {
                    datagram
                        .iter_mut()
                        .for_each(|byte| *byte = random.next_u64() as u8);
                    random.below(80) as usize
                }
                kind => {
                    let copy = &seen[random.below(seen.len() as u64) as usize].2;
                    datagram[..copy.len()].copy_from_slice(copy);
                    if kind == 1 {
                        datagram[random.below(copy.len() as u64) as usize] ^= 1 << random.below(8);
                    }
                    copy.len()
                }
            };
            let result = pair
                .receiver
                .handle_data(pair.now, None, from, &mut datagram[..len]);
            assert!(result.is_err());
            assert!(
                pair.sender
                    .handle_feedback(pair.now, &mut datagram[..len])
                    .is_err()
            );
        }
    });
    assert_eq!(count, 0);
    assert_eq!(pair.receiver.totals().delivered, delivered);
    assert_eq!(
        (pair.receiver.len(), pair.sender.sessions().count()),
        (1, 1)
    );
    let sum: u64 = pair.receiver.totals().discarded.iter().sum();
    assert_eq!(sum, 50_000 + 50, "every one counted once");
}

#[test]
fn what_was_recorded_opens_nothing_after_its_session_was_forgotten() {
    let mut pair = Pair::begun();
    let mut recorded: Vec<_> = (0..20).flat_map(|_| pair.send(b"x")).collect();
    for copy in recorded.clone() {
        let _ = pair.arrive(&copy);
    }
    // Several processes of the sender, of which the receiver forgets the first ones.
    for seed in 2..6 {
        pair.sender = Sender::new(sender_setup(seed)).unwrap();
        pair.pass(MS * 1_500);
        pair.receiver.handle_monitored(pair.now, &flow());
        pair.control();
        let copies = pair.send(b"y");
        pair.arrive(&copies[0]).unwrap();
        recorded.extend(copies);
        for copy in &recorded {
            assert!(pair.arrive(copy).is_err(), "process {seed}");
        }
    }
    for _ in 0..40 {
        pair.pass(Duration::from_secs(5));
        for copy in &recorded {
            assert!(pair.arrive(copy).is_err());
        }
    }
    assert!(pair.receiver.is_empty() && pair.receiver.session(SessionId(0)).is_none());
}
