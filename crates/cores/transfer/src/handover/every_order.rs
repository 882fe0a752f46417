//! The hand-over in every order that two threads can take (loom). CONTRIBUTING.md has the command.

use super::*;
use crate::place::ChannelPlace;
use alloc::boxed::Box;
use bumpless_atomic_box::every_order;
use bumpless_base::Instant;
use loom::thread;

/// Bytes of a state here: each must be the number of the cycle.
const SIZE: u32 = 4;
const NOW: Instant = Instant::from_nanos(1);

/// What the receiver does when a state is whole; whether it had a buffer for it.
fn complete(delivery: &Delivery, spare: &mut Option<Box<Incoming>>, cycle: u32) -> bool {
    let Some(mut buffer) = spare.take().or_else(|| delivery.spare()) else {
        return false;
    };
    buffer.data.fill(cycle as u8);
    buffer.len = SIZE as usize;
    buffer.cycle = cycle;
    buffer.expires_at = Instant::FAR_FUTURE;
    *spare = delivery.deliver(buffer);
    true
}

#[test]
fn a_reader_sees_whole_states_in_order_and_no_buffer_is_lost() {
    every_order(|| {
        let (mut subscriber, delivery, spare) = receiving_pair(ChannelPlace(0), SIZE);
        let mut spare = Some(spare);
        assert!(complete(&delivery, &mut spare, 1));
        let receiver = thread::spawn(move || {
            let mut newest = 1;
            for cycle in 2..=5 {
                if complete(&delivery, &mut spare, cycle) {
                    newest = cycle;
                }
            }
            (delivery, spare, newest)
        });
        let mut last = 0;
        for _ in 0..3 {
            let view = subscriber.read(NOW).expect("there is always a newest");
            assert!(view.cycle() >= last, "back from {last} to {}", view.cycle());
            assert!(view.data().iter().all(|&byte| byte == view.cycle() as u8));
            last = view.cycle();
        }
        let (delivery, mut spare, newest) = receiver.join().unwrap();
        assert_eq!(subscriber.read(NOW).map(|view| view.cycle()), Some(newest));
        assert!(
            complete(&delivery, &mut spare, 6) && complete(&delivery, &mut spare, 7),
            "both buffers are still there"
        );
    });
}
