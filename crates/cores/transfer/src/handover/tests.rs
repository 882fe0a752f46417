//! The two buffers of each side, from both ends, alone and in two threads.

use super::*;
use crate::place::ChannelPlace;
use crate::setup::{SenderChannel, Times};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bumpless_atomic_box::DirtySet;
use bumpless_base::{
    ChannelId, Distribution, Duration, Instant, LinkSet, PeerId, Pieces, Revision, Unsent,
};
use bumpless_wire::WireVersion;
use core::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const SIZE: u32 = 4096;
const NOW: Instant = Instant::from_nanos(1_000);
const DEADLINE: Duration = Duration::from_millis(10);

fn sending() -> (Publisher, Arc<Slot>, Arc<DirtySet>) {
    sending_states(Unsent::Replace, SIZE)
}

fn sending_states(unsent: Unsent, max_size: u32) -> (Publisher, Arc<Slot>, Arc<DirtySet>) {
    let dirty = Arc::new(DirtySet::new(1));
    let times = Times::check(ChannelPlace(0), WireVersion::V2, DEADLINE, DEADLINE * 3).unwrap();
    let setup = SenderChannel {
        id: ChannelId::new(1).unwrap(),
        peer: PeerId(0),
        links: LinkSet::first(1),
        distribution: Distribution::Replicate,
        unsent,
        max_size,
        deadline: DEADLINE,
        expiry: DEADLINE * 3,
    };
    let (publisher, slot) = sending_pair(ChannelPlace(0), &dirty, &setup, times);
    (publisher, slot, dirty)
}

/// Takes what waits, as the sender does, and gives `done` back.
#[expect(clippy::vec_box, reason = "as boxes they are exchanged")]
fn waiting(slot: &Slot, done: Option<Box<Outgoing>>) -> Vec<Box<Outgoing>> {
    let mut free = Chain::default();
    done.into_iter().for_each(|it| free.put_first(it));
    let mut chain = slot.swap(free);
    let all = core::iter::from_fn(|| chain.take_first());
    all.filter(|state| state.queued).collect()
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
    let state = waiting(&slot, None).remove(0);
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
    let mut mine = waiting(&slot, None).remove(0);
    mine.queued = false;
    assert_eq!(publish(&mut publisher, NOW, 2).superseded, None);
    assert_eq!(publish(&mut publisher, NOW, 3).superseded, Some(1));
    assert!(mine.bytes().iter().all(|&b| b == 1));
    let next = waiting(&slot, Some(mine)).remove(0);
    assert!(next.bytes().iter().all(|&b| b == 3));
    assert_eq!(publish(&mut publisher, NOW, 4).superseded, None);
}

#[test]
fn a_length_beyond_the_buffer_is_cut() {
    let (mut publisher, slot, _) = sending();
    publisher.publish(NOW, |_| usize::MAX);
    assert_eq!(waiting(&slot, None)[0].bytes().len(), SIZE as usize);
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
    assert_eq!(waiting(&slot, None).len(), 1);
}

#[test]
fn what_is_kept_waits_in_order_and_of_a_third_only_the_second_makes_way() {
    let (mut publisher, slot, _) = sending_states(Unsent::Keep, SIZE);
    let at = |i: u64| NOW + Duration::from_millis(i);
    assert_eq!(publish(&mut publisher, at(0), 0).superseded, None);
    assert_eq!(publish(&mut publisher, at(1), 1).superseded, None);
    assert_eq!(publish(&mut publisher, at(2), 2).superseded, Some(1));
    assert_eq!(publish(&mut publisher, at(3), 3).superseded, Some(2));
    let kept = waiting(&slot, None);
    let told = |state: &Outgoing| (state.ticket, state.bytes()[0], state.deadline);
    assert_eq!(
        kept.iter().map(|it| told(it)).collect::<Vec<_>>(),
        [(0, 0, at(0) + DEADLINE), (3, 3, at(1) + DEADLINE)]
    );
    // Both of the sender's are with it; two more fit, and a third in place of the second.
    assert_eq!(publish(&mut publisher, NOW, 4).superseded, None);
    assert_eq!(publish(&mut publisher, NOW, 5).superseded, None);
    assert_eq!(publish(&mut publisher, NOW, 6).superseded, Some(5));
    assert!(
        kept.iter()
            .all(|it| it.bytes().iter().all(|&b| b == it.ticket as u8))
    );
}

/// Bytes that tell revision and place, of which every tenth revision changes the first kilobyte alone.
struct Numbered {
    size: usize,
    number: u64,
    copied: core::cell::Cell<usize>,
}

impl Pieces for Numbered {
    fn size(&self) -> usize {
        self.size
    }
    fn revision(&self) -> Option<Revision> {
        Some(Revision {
            of: 1,
            number: self.number,
        })
    }
    fn copy(&self, at: usize, piece: &mut [u8], held: Option<Revision>) {
        let whole = held.is_none();
        // What begins the state, and the rest of it. Miri keeps books of each byte that is borrowed by itself.
        let front = 1024usize.saturating_sub(at).min(piece.len());
        let (begin, rest) = piece.split_at_mut(front);
        begin.fill(self.number as u8);
        self.copied.set(self.copied.get() + begin.len());
        if whole {
            let bytes: Vec<u8> = (at + front..).take(rest.len()).map(|it| it as u8).collect();
            rest.copy_from_slice(&bytes);
            self.copied.set(self.copied.get() + rest.len());
        }
    }
}

fn numbered(size: usize, number: u64) -> Numbered {
    let copied = core::cell::Cell::new(0);
    Numbered {
        size,
        number,
        copied,
    }
}

fn is_whole(state: &Outgoing, number: u64) -> bool {
    let right = |(at, &byte): (usize, &u8)| byte == if at < 1024 { number as u8 } else { at as u8 };
    state.bytes().len() == state.len && state.bytes().iter().enumerate().all(right)
}

#[test]
fn the_front_of_a_large_state_is_there_while_the_rest_is_copied() {
    // Miri takes tens of microseconds for each byte.
    const LARGE: usize = if cfg!(miri) { 100_000 } else { 1_000_000 };
    let (mut publisher, slot, dirty) = sending_states(Unsent::Replace, LARGE as u32);
    let (mut seen, mut there) = (None, Vec::new());
    publisher.publish_pieces(NOW, &numbered(LARGE, 1), || {
        dirty.take(|_| {});
        let state = seen.get_or_insert_with(|| waiting(&slot, None).remove(0));
        there.push(state.bytes().len());
    });
    let (pieces, front) = if cfg!(miri) {
        (2, LARGE / 3)
    } else {
        (3, LARGE / 10)
    };
    assert!(there.len() >= pieces && there[0] < front, "{there:?}");
    assert!(there.is_sorted_by(|a, b| a < b) && there.iter().all(|&it| it < LARGE));
    assert!(!dirty.is_clear() && is_whole(&seen.unwrap(), 1));
}

#[test]
fn only_what_has_changed_since_is_copied_to_a_buffer() {
    const LARGE: usize = if cfg!(miri) { 4_000 } else { 100_000 };
    let (mut publisher, slot, _) = sending_states(Unsent::Replace, LARGE as u32);
    let mut copied = Vec::new();
    let mut mine = None;
    for number in 1..=6 {
        let state = numbered(LARGE, number);
        publisher.publish_pieces(NOW, &state, || {});
        copied.push(state.copied.get());
        let state = waiting(&slot, mine.take()).remove(0);
        assert!(is_whole(&state, number));
        mine = Some(state);
    }
    assert_eq!(copied, [LARGE, LARGE, 1024, 1024, 1024, 1024]);
    // What was written there otherwise is not taken for an earlier one.
    publish(&mut publisher, NOW, 0xEE);
    mine = waiting(&slot, mine.take()).pop();
    for number in 7..=8 {
        let state = numbered(LARGE, number);
        publisher.publish_pieces(NOW, &state, || {});
        let state = waiting(&slot, mine.take()).remove(0);
        assert!(is_whole(&state, number));
        mine = Some(state);
    }
}

#[test]
fn a_state_larger_than_its_channels_largest_is_published_empty() {
    let (mut publisher, slot, _) = sending();
    publisher.publish_pieces(NOW, &numbered(SIZE as usize + 1, 1), || {});
    assert!(waiting(&slot, None)[0].bytes().is_empty());
}

/// What the receiver does when a state is whole.
fn complete(delivery: &Delivery, spare: &mut Option<Box<Incoming>>, cycle: u32) -> bool {
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
    let (mut subscriber, delivery, spare) = receiving_pair(ChannelPlace(0), SIZE);
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
    let (mut subscriber, delivery, spare) = receiving_pair(ChannelPlace(0), SIZE);
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
    let (subscriber, delivery, spare) = receiving_pair(ChannelPlace(0), SIZE);
    let (stop, all_delivered) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|threads| {
        let _stop_all = StopAll([&stop, &all_delivered]);
        let application = threads.spawn(|| keep_publishing(publisher, &stop));
        let reader = threads.spawn(|| keep_reading(subscriber, &all_delivered));
        let (mut mine, mut spare) = (None, Some(spare));
        let (mut last, mut counted, mut taken, mut delivered) = (None, 0, 0, 0);
        let mut look = || {
            dirty.take(|channel| assert_eq!(channel, 0));
            mine = waiting(&slot, mine.take()).pop();
            let Some(state) = &mut mine else {
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
