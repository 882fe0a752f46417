//! Copies leave, and come, without memory being taken (L-75, L-81): a counting allocator watches real sockets on the loopback device.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use bumpless_capture::{Card, Departed, Departures, Ports, Segmentation};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    // Fails only while a thread is being torn down, when nothing is measured.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call goes to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

fn on_loopback() -> Ports {
    let card = |number: u8| Card {
        interface: "lo".into(),
        address: [127, 0, 78, number].into(),
    };
    Ports::open(&[card(1), card(2)], 0, false).unwrap()
}

fn on_loopback_v6() -> Ports {
    let card = Card {
        interface: "lo".into(),
        address: std::net::Ipv6Addr::LOCALHOST.into(),
    };
    Ports::open(&[card], 0, false).unwrap()
}

/// What became of the copies.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    left: usize,
    not_taken: usize,
    in_segments: usize,
    runs_refused: usize,
}

/// One turn: 40 packets, a copy on each of two networks, and one copy that is longer than any datagram.
fn turn(departures: &mut Departures, ports: &mut Ports, to: SocketAddr, told: &mut Told) {
    let bytes = [7; 300];
    for packet in 0..40 {
        assert!(departures.add((0, to), packet, &bytes));
        assert!(departures.add((1, to), packet, &bytes));
    }
    assert!(departures.add((0, to), 40, &[7; 66_000]));
    assert!(!departures.add((0, to), 41, &[7; 66_000]), "no room");
    departures.leave(ports, |it| match it {
        Departed::Left { .. } => told.left += 1,
        Departed::NotTaken { .. } => told.not_taken += 1,
        Departed::InSegments { copies, .. } => told.in_segments += copies,
        Departed::RunRefused { .. } => told.runs_refused += 1,
    });
}

#[test]
fn the_counter_sees_an_allocation() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

#[test]
fn copies_leave_without_an_allocation() {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = receiver.local_addr().unwrap();
    let (mut ports, mut told) = (on_loopback(), Told::default());
    let mut departures = Departures::new(100, 100_000);
    let taken = allocations(|| {
        for _ in 0..20 {
            turn(&mut departures, &mut ports, to, &mut told);
        }
    });
    assert_eq!(taken, 0, "{told:?}");
    assert_eq!((told.left, told.not_taken), (20 * 80, 20));
    assert!(told.in_segments > 0, "{told:?}");
}

#[test]
fn copies_leave_without_an_allocation_where_segments_are_refused() {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = receiver.local_addr().unwrap();
    let (mut ports, mut told) = (on_loopback(), Told::default());
    let mut departures = Departures::new(100, 100_000);
    for socket in ports.descriptors() {
        refuse_segments(socket);
    }
    let taken = allocations(|| {
        for _ in 0..20 {
            turn(&mut departures, &mut ports, to, &mut told);
        }
    });
    assert_eq!(taken, 0, "{told:?}");
    assert_eq!((told.left, told.not_taken), (20 * 80, 20));
    assert!(told.runs_refused > 0, "{told:?}");
    assert_eq!(ports.segmentations(), [Segmentation::Refused; 2]);
}

/// The kernel refuses to segment for a socket without transmit checksums.
fn refuse_segments(socket: std::os::fd::RawFd) {
    let on = 1i32;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_NO_CHECK);
    // SAFETY: `on` is readable for 4 bytes through the call.
    let result = unsafe { libc::setsockopt(socket, level, name, (&raw const on).cast(), 4) };
    assert_eq!(result, 0);
}

/// Ports, somebody who sends to the first one, and where that is.
fn heard_by(address: &str) -> (Ports, UdpSocket, SocketAddr) {
    let ports = match address {
        "::1" => on_loopback_v6(),
        _ => on_loopback(),
    };
    let peer = UdpSocket::bind((address, 0)).unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    ports
        .send(0, b"where I am", peer.local_addr().unwrap())
        .unwrap();
    let (_, address) = peer.recv_from(&mut [0; 100]).unwrap();
    (ports, peer, address)
}

/// Reads all that has come; how many datagrams, and in how many messages.
fn read(ports: &Ports, buffer: &mut [u8], mut each: impl FnMut(&[u8])) -> (usize, usize) {
    let (mut datagrams, mut messages) = (0, 0);
    for place in 0..ports.len() {
        while let Some(arrived) = ports.receive(place, buffer).unwrap() {
            messages += 1;
            for datagram in arrived.datagrams(buffer) {
                datagrams += 1;
                each(datagram);
            }
        }
    }
    (datagrams, messages)
}

#[test]
fn copies_come_without_an_allocation() {
    let (ports, peer, address) = heard_by("127.0.0.1");
    let mut buffer = vec![0; 65_535];
    for _ in 0..50 {
        peer.send_to(&[7; 300], address).unwrap();
    }
    let mut come = (0, 0);
    let taken = allocations(|| {
        come = read(&ports, &mut buffer, |it| assert_eq!(it, [7; 300]));
    });
    assert_eq!((taken, come), (0, (50, 50)));
}

fn copies_in_segments_come_whole(address: &str) {
    let (ports, peer, address) = heard_by(address);
    assert!(ports.coalesce());
    let mut departures = Departures::new(200, 100_000);
    let mut sending = match address.is_ipv6() {
        true => on_loopback_v6(),
        false => on_loopback(),
    };
    // 100 copies that number themselves, of which every fortieth is shorter and ends a run.
    let length = |number: usize| if number % 40 == 39 { 20 } else { 300 };
    for number in 0..100 {
        assert!(departures.add((0, address), number, &vec![number as u8; length(number)]));
    }
    let mut in_segments = 0;
    departures.leave(&mut sending, |it| match it {
        Departed::InSegments { copies, .. } => in_segments += copies,
        it => assert!(matches!(it, Departed::Left { .. }), "{it:?}"),
    });
    peer.send_to(&[100; 10], address).unwrap();
    let (mut buffer, mut next) = (vec![0; 65_535], 0);
    let mut come = (0, 0);
    let taken = allocations(|| {
        come = read(&ports, &mut buffer, |it| {
            assert!(it.iter().all(|byte| usize::from(*byte) == next));
            assert_eq!(it.len(), if next == 100 { 10 } else { length(next) });
            next += 1;
        });
    });
    assert_eq!((taken, come.0, in_segments), (0, 101, 100));
    // Runs of 40 and 24, as 64 are looked at in one go, of 16 and 20; and the one that was alone.
    assert_eq!(come.1, 5);
}

#[test]
fn copies_in_segments_come_whole_and_are_taken_apart_without_an_allocation() {
    copies_in_segments_come_whole("127.0.0.1");
}

#[test]
fn copies_in_segments_over_ipv6_come_whole_and_are_taken_apart_without_an_allocation() {
    copies_in_segments_come_whole("::1");
}
