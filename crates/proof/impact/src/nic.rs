//! When the network interface interrupts (4.6.1).

use std::collections::VecDeque;

use bumpless_base::{Duration, Instant};

/// How packets are gathered before one interrupt announces them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moderation {
    /// An interrupt for each packet.
    Simple,
    /// One for so many packets.
    Counter(u32),
    /// One when so long no further packet has come: each packet sets the timer anew.
    Timer(Duration),
    /// Whichever of both is first.
    Both(u32, Duration),
}

/// Why an interrupt was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A packet, without moderation.
    Packet,
    /// So many had come.
    Counter,
    /// None had come for so long.
    Timer,
}

/// Packets in the interface's ring, and whether it has something to announce.
#[derive(Clone, Debug)]
pub struct Nic {
    moderation: Moderation,
    /// Lengths of the packets in the ring.
    ring: VecDeque<u32>,
    capacity: usize,
    counted: u32,
    timer: Option<Instant>,
    announced: Option<Cause>,
}

impl Nic {
    /// An interface whose ring holds so many packets.
    pub fn new(moderation: Moderation, capacity: usize) -> Self {
        Self {
            moderation,
            ring: VecDeque::with_capacity(capacity),
            capacity: capacity.max(1),
            counted: 0,
            timer: None,
            announced: None,
        }
    }

    /// A packet has arrived; `false`: the ring is full, and it is lost.
    pub fn handle_packet(&mut self, now: Instant, len: u32) -> bool {
        if self.ring.len() >= self.capacity {
            return false;
        }
        self.ring.push_back(len);
        self.counted += 1;
        match self.moderation {
            Moderation::Simple => self.announced = Some(Cause::Packet),
            Moderation::Counter(threshold) => self.count(threshold),
            Moderation::Timer(delay) => self.timer = Some(now + delay),
            Moderation::Both(threshold, delay) => {
                self.timer = Some(now + delay);
                self.count(threshold);
            }
        }
        true
    }

    fn count(&mut self, threshold: u32) {
        // A full ring can count no further.
        if self.counted >= threshold || self.ring.len() >= self.capacity {
            self.announced = self.announced.or(Some(Cause::Counter));
            self.timer = None;
        }
    }

    /// When its timer ends.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timer
    }

    /// The timer has ended.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.timer.is_some_and(|due| now >= due) {
            self.timer = None;
            self.announced = self.announced.or(Some(Cause::Timer));
        }
    }

    /// Whether it would interrupt.
    pub fn is_pending(&self) -> bool {
        self.announced.is_some()
    }

    /// The interrupt begins: its cause and the packets that it announces, one by one without moderation, else all.
    pub fn take(&mut self, into: &mut Vec<u32>) -> Option<Cause> {
        let cause = self.announced.take()?;
        match self.moderation {
            Moderation::Simple => {
                into.extend(self.ring.pop_front());
                self.announced = (!self.ring.is_empty()).then_some(Cause::Packet);
            }
            _ => into.extend(self.ring.drain(..)),
        }
        self.counted = 0;
        self.timer = None;
        Some(cause)
    }

    /// Packets in the ring.
    pub fn waiting(&self) -> usize {
        self.ring.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    #[test]
    fn a_timer_set_anew_by_every_packet_never_ends_under_load_but_the_counter_does() {
        for (moderation, interrupts) in [
            (Moderation::Timer(Duration::from_micros(5)), 0),
            (Moderation::Both(10, Duration::from_micros(5)), 10),
            (Moderation::Counter(20), 5),
            (Moderation::Simple, 100),
        ] {
            let mut nic = Nic::new(moderation, 1_000);
            let (mut seen, mut packets) = (0, Vec::new());
            for micros in 0..100 {
                while nic.poll_timeout().is_some_and(|due| due <= at(micros)) {
                    nic.handle_timeout(at(micros));
                }
                assert!(nic.handle_packet(at(micros), 64));
                seen += usize::from(nic.take(&mut packets).is_some());
            }
            assert_eq!(seen, interrupts, "{moderation:?}");
        }
    }

    #[test]
    fn the_timer_announces_all_that_came_before_it() {
        let mut nic = Nic::new(Moderation::Both(10, Duration::from_micros(5)), 1_000);
        for micros in [0, 3, 6] {
            nic.handle_packet(at(micros), 64);
        }
        assert_eq!(nic.poll_timeout(), Some(at(11)));
        nic.handle_timeout(at(11));
        let mut packets = Vec::new();
        assert_eq!(nic.take(&mut packets), Some(Cause::Timer));
        assert_eq!((packets.len(), nic.waiting()), (3, 0));
        assert!(!nic.is_pending() && nic.poll_timeout().is_none());
    }

    #[test]
    fn a_full_ring_loses_packets_and_still_announces_the_others() {
        let mut nic = Nic::new(Moderation::Counter(10), 4);
        let kept = (0..6).filter(|&micros| nic.handle_packet(at(micros), 64));
        assert_eq!(kept.count(), 4);
        assert!(nic.is_pending());
    }
}
