//! What this thread tells: the data plane, and whoever reads the log.

use std::collections::VecDeque;

use bumpless_net_linux::Clock;
use rtrb::{Producer, PushError};
use serde_json::json;

use super::ControlPlane;
use super::troubles::Of;
use crate::exchange::ToData;

/// What waits for room at the data plane; its thread stands still when it is more.
const WAITING_MAX: usize = 256;

/// The way to the data plane. What this host decides waits for room there; messages of other hosts, which say them again, are lost then, and
/// counted.
pub struct Outbox {
    ring: Producer<ToData>,
    waiting: VecDeque<ToData>,
    lost: u64,
}

impl Outbox {
    /// By this ring.
    pub const fn new(ring: Producer<ToData>) -> Self {
        Self {
            ring,
            waiting: VecDeque::new(),
            lost: 0,
        }
    }

    /// Tells it in order; whether anything has left.
    fn tell(&mut self, it: ToData) -> bool {
        let is_any = self.pass();
        let it = match self.waiting.is_empty() {
            true => match self.ring.push(it) {
                Ok(()) => return true,
                Err(PushError::Full(it)) => it,
            },
            // It would overtake what waits.
            false => it,
        };
        let is_message = matches!(it, ToData::Message { .. });
        match is_message || self.waiting.len() >= WAITING_MAX {
            true => self.lost += 1,
            false => self.waiting.push_back(it),
        }
        is_any
    }

    /// Tells what waits; whether anything has left.
    fn pass(&mut self) -> bool {
        let mut is_any = false;
        while let Some(it) = self.waiting.pop_front() {
            if let Err(PushError::Full(it)) = self.ring.push(it) {
                self.waiting.push_front(it);
                break;
            }
            is_any = true;
        }
        is_any
    }

    /// What was lost so far.
    pub const fn lost(&self) -> u64 {
        self.lost
    }
}

impl ControlPlane {
    /// Tells the data plane.
    pub(super) fn tell(&mut self, it: ToData) {
        if self.outbox.tell(it) {
            self.data.wake();
        }
    }

    /// Tells the data plane what waits.
    pub(super) fn tell_what_waits(&mut self) {
        if self.outbox.pass() {
            self.data.wake();
        }
    }

    /// Says what is wrong, once for as long as it is.
    pub(super) fn trouble(&mut self, of: Of, about: &str, words: &str) {
        if self.state.troubles.say(Clock.now(), of, about, words) {
            self.log.say("trouble", json!({"about": about}), words);
        }
    }

    /// It is not so any more.
    pub(super) fn no_trouble(&mut self, about: &str) {
        self.state.troubles.end(about);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::closed::Kind;
    use bumpless_iprp::PeerId;
    use rtrb::RingBuffer;

    fn message() -> ToData {
        ToData::Message {
            peer: PeerId(1),
            addresses: Vec::new(),
            kind: Kind::ForSender,
            message: Vec::new(),
        }
    }

    fn disowned(number: u32) -> ToData {
        ToData::Disown(PeerId(number), Vec::new())
    }

    #[test]
    fn what_this_host_decides_waits_for_room_in_order_and_messages_that_find_none_are_counted() {
        let (ring, mut told) = RingBuffer::new(4);
        let mut outbox = Outbox::new(ring);
        (0..4).for_each(|_| assert!(outbox.tell(message())));
        assert!(!outbox.tell(message()));
        (0..3).for_each(|number| assert!(!outbox.tell(disowned(number))));
        assert_eq!(outbox.lost(), 1);
        // Room for one: what waits goes first, and a message overtakes none of it.
        told.pop().unwrap();
        assert!(outbox.tell(message()));
        assert_eq!((outbox.lost(), outbox.waiting.len()), (2, 2));
        (0..3).for_each(|_| drop(told.pop().unwrap()));
        assert!(outbox.pass() && !outbox.pass());
        assert!(outbox.tell(message()));
        let mut all = std::iter::from_fn(|| told.pop().ok());
        for number in 0..3 {
            let Some(ToData::Disown(PeerId(came), _)) = all.next() else {
                panic!("{number} is missing");
            };
            assert_eq!(came, number);
        }
        assert!(matches!(all.next(), Some(ToData::Message { .. })) && all.next().is_none());
        // However long the other thread stands still.
        for number in 0..1_000 {
            outbox.tell(disowned(number));
        }
        assert_eq!(outbox.waiting.len(), WAITING_MAX);
        assert_eq!(outbox.lost(), 2 + 1_000 - 4 - WAITING_MAX as u64);
    }
}
