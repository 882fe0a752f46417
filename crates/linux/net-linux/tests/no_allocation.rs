//! Steady state takes no memory: a counting allocator watches a link at work.

mod support;

use bumpless_base::Duration;
use bumpless_net_linux::{Clock, JitterMeter, Link, Pacer, Poller, Segment, Waker};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use support::open;

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

#[test]
fn the_counter_sees_an_allocation() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

#[test]
fn sending_receiving_waiting_and_pacing_allocate_nothing() {
    for (ip, segmentation) in [("127.0.0.1", true), ("127.0.0.1", false), ("::1", true)] {
        let (mut from, mut to) = (open(ip, segmentation), open(ip, true));
        let address = to.local_address();
        let waker = Waker::new().unwrap();
        let mut poller = Poller::new(&[to.descriptor().unwrap()], waker.clone());
        let mut pacer = Pacer::new(1_000_000_000, 66, 1_400, Clock.now());
        let mut meter = JitterMeter::new(Duration::ZERO, 4);
        let bytes = [7u8; 1_400];
        let packets = [Segment {
            header: &bytes[..30],
            payload: &bytes,
        }; 40];
        let mut received = 0;
        let taken = allocations(|| {
            for _ in 0..50 {
                let asked = Clock.now();
                pacer.spent(pacer.wire_bytes(packets.len(), 1_430), asked);
                pacer.next(asked);
                assert_eq!(from.send(address, &packets).sent, packets.len());
                from.send("192.0.2.1:9".parse().unwrap(), &packets);
                waker.wake();
                poller.wait(asked + Duration::from_secs(10)).unwrap();
                meter.record(asked, Clock.now());
                while to.receive(&mut |_, bytes| received += bytes.len()).more {}
            }
        });
        assert_eq!(taken, 0, "{ip} segmentation {segmentation}");
        assert!(received > 0);
    }
}
