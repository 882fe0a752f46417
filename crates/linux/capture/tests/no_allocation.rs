//! Copies leave, and come, without memory being taken (L-75): a counting allocator watches real sockets on the loopback device.

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

#[test]
fn copies_come_without_an_allocation() {
    let ports = on_loopback();
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    ports
        .send(0, b"where I am", peer.local_addr().unwrap())
        .unwrap();
    let mut buffer = vec![0; 2_000];
    let (_, address) = peer.recv_from(&mut buffer).unwrap();
    for _ in 0..50 {
        peer.send_to(&[7; 300], address).unwrap();
    }
    let mut come = 0;
    let taken = allocations(|| {
        for place in 0..ports.len() {
            while let Some(arrived) = ports.receive(place, &mut buffer).unwrap() {
                assert_eq!(arrived.len, 300);
                come += 1;
            }
        }
    });
    assert_eq!((taken, come), (0, 50));
}
