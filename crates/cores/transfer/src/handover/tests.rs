//! The two buffers of each side, from both ends, alone and in two threads.

use super::*;
use crate::setup::Times;
use alloc::sync::Arc;
use bumpless_atomic_box::DirtySet;
use bumpless_base::{Duration, Instant};
use bumpless_wire::WireVersion;
use core::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const SIZE: u32 = 4096;
const NOW: Instant = Instant::from_nanos(1_000);
const DEADLINE: Duration = Duration::from_millis(10);

fn sending() -> (Publisher, Arc<Slot>, Arc<DirtySet>) {
    let dirty = Arc::new(DirtySet::new(1));
    let times = Times::check(0, WireVersion::V2, DEADLINE, DEADLINE * 3).unwrap();
    let (publisher, slot) = sending_pair(0, &dirty, SIZE, times);
    (publisher, slot, dirty)
}

fn publish(publisher: &mut Publisher, now: Instant, value: u8) -> Published {
    publisher.publish(now, |buffer| {
        buffer.fill(value);
        buffer.len()
    })
}

#[test]
fn a_later_state_replaces_a_queued_one_and_inherits_its_deadline() {
    let (mut publisher, slot, _) = sending();
    let mut first_deadline = None;
    for i in 0..5 {
        let now = NOW + Duration::from_millis(i);
        let published = publish(&mut publisher, now, i as u8);
        assert_eq!(
            (published.ticket, published.superseded),
            (i, i.checked_sub(1))
        );
        first_deadline.get_or_insert(now + DEADLINE);
    }
    let state = slot.take().unwrap();
    assert!(state.queued && state.bytes().iter().all(|&b| b == 4));
    assert_eq!(state.superseded, 4);
    assert_eq!(Some(state.deadline), first_deadline);
    assert_eq!(
        state.expires_at,
        NOW + Duration::from_millis(4) + DEADLINE * 3
    );
}

#[test]
fn a_state_that_the_sender_has_taken_is_not_replaced() {
    let (mut publisher, slot, _) = sending();
    publish(&mut publisher, NOW, 1);
    let mut mine = slot.swap(None).unwrap();
    mine.queued = false;
    assert_eq!(publish(&mut publisher, NOW, 2).superseded, None);
    assert_eq!(publish(&mut publisher, NOW, 3).superseded, Some(1));
    assert!(mine.bytes().iter().all(|&b| b == 1));
    let next = slot.swap(Some(mine)).unwrap();
    assert!(next.bytes().iter().all(|&b| b == 3));
    assert_eq!(publish(&mut publisher, NOW, 4).superseded, None);
}

#[test]
fn a_length_beyond_the_buffer_is_cut() {
    let (mut publisher, slot, _) = sending();
    publisher.publish(NOW, |_| usize::MAX);
    assert_eq!(slot.take().unwrap().bytes().len(), SIZE as usize);
}

#[test]
fn a_publication_that_panics_loses_no_buffer() {
    let (mut publisher, slot, _) = sending();
    for _ in 0..3 {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            publisher.publish(NOW, |_| panic!("the application failed"))
        }));
        assert!(result.is_err());
    }
    publish(&mut publisher, NOW, 9);
    assert!(slot.take().unwrap().queued);
}

/// What the receiver does when a state is whole.
fn complete(
    delivery: &Delivery,
    spare: &mut Option<alloc::boxed::Box<StateBuffer>>,
    cycle: u32,
) -> bool {
    let Some(mut buffer) = spare.take().or_else(|| delivery.spare()) else {
        return false;
    };
    buffer.data.fill(cycle as u8);
    buffer.len = SIZE as usize;
    buffer.cycle = cycle;
    buffer.expires_at = NOW + DEADLINE;
    *spare = delivery.deliver(buffer);
    true
}

#[test]
fn the_newest_state_is_read_again_and_again_until_it_expires() {
    let (mut subscriber, delivery, spare) = receiving_pair(0, SIZE);
    let mut spare = Some(spare);
    assert!(subscriber.read(NOW).is_none());
    for cycle in 1..10 {
        assert!(complete(&delivery, &mut spare, cycle));
        for _ in 0..3 {
            let view = subscriber.read(NOW).unwrap();
            assert_eq!(view.cycle(), cycle);
            assert!(view.data().iter().all(|&b| b == cycle as u8));
        }
        assert!(subscriber.read(NOW + DEADLINE).is_none(), "expired");
    }
}

#[test]
fn during_a_view_one_more_state_fits_and_after_it_all_goes_on() {
    let (mut subscriber, delivery, spare) = receiving_pair(0, SIZE);
    let mut spare = Some(spare);
    for round in 0..5u32 {
        let cycle = 1 + round * 3;
        assert!(complete(&delivery, &mut spare, cycle));
        let view = subscriber.read(NOW).unwrap();
        assert!(complete(&delivery, &mut spare, cycle + 1));
        assert!(
            !complete(&delivery, &mut spare, cycle + 2),
            "no third buffer"
        );
        assert_eq!(view.cycle(), cycle);
        assert!(view.data().iter().all(|&b| b == cycle as u8));
        drop(view);
        assert_eq!(subscriber.read(NOW).unwrap().cycle(), cycle + 1);
        assert!(complete(&delivery, &mut spare, cycle + 2));
    }
}

/// Publishes states that tell their number until told to stop; returns how many.
fn keep_publishing(mut publisher: Publisher, stop: &AtomicBool) -> u32 {
    let mut i = 0u32;
    while !stop.load(Ordering::Relaxed) {
        publisher.publish(NOW, |buffer| {
            let len = 4 + (i % 1000) as usize;
            buffer[..4].copy_from_slice(&i.to_be_bytes());
            buffer[4..len].fill(i as u8);
            len
        });
        i += 1;
    }
    i
}

/// Reads until told to stop; returns the last cycle.
fn keep_reading(mut subscriber: Subscriber, stop: &AtomicBool) -> u32 {
    let mut last = 0;
    loop {
        let stopped = stop.load(Ordering::Acquire);
        if let Some(view) = subscriber.read(NOW) {
            let cycle = view.cycle();
            assert!(cycle >= last && view.data().iter().all(|&b| b == cycle as u8));
            last = cycle;
        }
        if stopped {
            return last;
        }
    }
}

/// Stops the other threads also when an assertion fails, lest the test wait for ever.
struct StopAll<'a>([&'a AtomicBool; 2]);

impl Drop for StopAll<'_> {
    fn drop(&mut self) {
        for stop in self.0 {
            stop.store(true, Ordering::Release);
        }
    }
}

#[test]
fn threads_exchange_whole_states_in_order() {
    let (publisher, slot, dirty) = sending();
    let (subscriber, delivery, spare) = receiving_pair(0, SIZE);
    let (stop, all_delivered) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|threads| {
        let _stop_all = StopAll([&stop, &all_delivered]);
        let application = threads.spawn(|| keep_publishing(publisher, &stop));
        let reader = threads.spawn(|| keep_reading(subscriber, &all_delivered));
        let (mut mine, mut spare) = (None, Some(spare));
        let (mut last, mut counted, mut taken, mut delivered) = (None, 0, 0, 0);
        let mut look = || {
            dirty.take(|channel| assert_eq!(channel, 0));
            mine = slot.swap(mine.take());
            let Some(state) = mine.as_mut().filter(|state| state.queued) else {
                return;
            };
            state.queued = false;
            taken += 1;
            counted += 1 + state.superseded;
            let bytes = state.bytes();
            let value = u32::from_be_bytes(bytes[..4].try_into().unwrap());
            assert!(bytes[4..].iter().all(|&b| b == value as u8));
            assert_eq!(bytes.len(), 4 + (value % 1000) as usize);
            assert_eq!(u64::from(value), state.ticket);
            assert!(last < Some(value));
            last = Some(value);
            if complete(&delivery, &mut spare, value + 1) {
                delivered = value + 1;
            }
            stop.store(
                taken >= if cfg!(miri) { 20 } else { 300 },
                Ordering::Relaxed,
            );
        };
        while !application.is_finished() {
            if dirty.is_clear() {
                thread::yield_now();
            } else {
                look();
            }
        }
        // Only joining shows all that the application did: that it has finished may be seen before.
        let published = application.join().unwrap();
        look();
        assert_eq!(
            last,
            Some(published - 1),
            "the last state is never superseded"
        );
        assert_eq!(counted, published);
        all_delivered.store(true, Ordering::Release);
        assert_eq!(reader.join().unwrap(), delivered);
    });
}
