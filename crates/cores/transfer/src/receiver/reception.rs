//! Which packets of one transfer cycle have come, and what their order of arrival shows.

use bumpless_base::{BitSet, LinkId, MAX_LINKS};

/// What an arrival shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Arrival {
    /// The packet had not come before.
    pub new: bool,
    /// On its link it passed over a packet that is missing, so that link has lost it.
    ///
    /// Whenever a gap opens (first paper, 7.2.3, reason ii), this or `again` is set: the packet
    /// before the new block is missing, so the link has either passed over it or is coming back.
    pub hole: bool,
    /// On its link later packets have come before it, so it was sent again.
    pub again: bool,
}

/// Reception of one transfer cycle, packet by packet.
#[derive(Debug)]
pub(super) struct Reception {
    received: BitSet,
    packets: u32,
    count: u32,
    /// Everything below has been received.
    whole_below: u32,
    /// For each link, one more than the highest packet that came on it.
    passed: [u32; MAX_LINKS],
}

impl Reception {
    /// For transfer cycles of at most `most` packets.
    pub fn new(most: u32) -> Self {
        Self {
            received: BitSet::new(most as usize),
            packets: 0,
            count: 0,
            whole_below: 0,
            passed: [0; MAX_LINKS],
        }
    }

    /// Forgets everything and expects `packets` packets.
    pub fn restart(&mut self, packets: u32) {
        self.received.clear_below(self.packets as usize);
        self.packets = packets;
        self.count = 0;
        self.whole_below = 0;
        self.passed = [0; MAX_LINKS];
    }

    /// Packets received.
    pub fn count(&self) -> u32 {
        self.count
    }

    pub fn is_complete(&self) -> bool {
        self.count >= self.packets
    }

    /// Notes that packet `sequence`, which must be of the cycle, came on `link`.
    pub fn arrive(&mut self, sequence: u32, link: LinkId) -> Arrival {
        let new = self.received.insert(sequence as usize);
        if new {
            self.count += 1;
            if sequence == self.whole_below {
                self.whole_below = self.absent_from(sequence).unwrap_or(self.packets);
            }
        }
        let (hole, again) = self.pass(sequence, link);
        Arrival { new, hole, again }
    }

    /// A link keeps order: what it passes over without delivering is lost on it, and what comes
    /// after a later packet was sent again.
    fn pass(&mut self, sequence: u32, link: LinkId) -> (bool, bool) {
        let Some(passed) = self.passed.get_mut(usize::from(link.0)) else {
            return (false, false);
        };
        if sequence < *passed {
            return (false, true);
        }
        let from = (*passed).max(self.whole_below) as usize;
        *passed = sequence + 1;
        let hole = self.received.next_absent(from, sequence as usize);
        (hole.is_some(), false)
    }

    fn absent_from(&self, from: u32) -> Option<u32> {
        self.received
            .next_absent(from as usize, self.packets as usize)
            .map(|at| at as u32)
    }

    /// The blocks of received packets, both ends included, lowest first.
    pub fn blocks(&self) -> impl Iterator<Item = (u32, u32)> {
        let mut from = 0;
        core::iter::from_fn(move || {
            let end = self.packets as usize;
            let low = self.received.next_present(from as usize, end)? as u32;
            let absent = self.absent_from(low).unwrap_or(self.packets);
            from = absent;
            Some((low, absent - 1))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// The obvious way: a flag for each packet, everything recounted each time.
    struct Twin(Vec<bool>);

    impl Twin {
        fn blocks(&self) -> Vec<(u32, u32)> {
            let mut blocks: Vec<(u32, u32)> = Vec::new();
            for (i, _) in self.0.iter().enumerate().filter(|(_, there)| **there) {
                let i = i as u32;
                match blocks.last_mut() {
                    Some((_, high)) if *high + 1 == i => *high = i,
                    _ => blocks.push((i, i)),
                }
            }
            blocks
        }
    }

    proptest! {
        #[test]
        fn block_accounting_agrees_with_a_plain_list(
            packets in 1u32..300,
            arrivals in proptest::collection::vec((0u32..300, 0u8..3), 0..400),
        ) {
            let mut reception = Reception::new(300);
            reception.restart(300);
            for i in 0..200 {
                reception.arrive(i, LinkId(0));
            }
            reception.restart(packets);
            let mut twin = Twin(std::vec![false; packets as usize]);
            for (sequence, link) in arrivals {
                let sequence = sequence % packets;
                let before = twin.blocks().len();
                let new = !std::mem::replace(&mut twin.0[sequence as usize], true);
                let arrival = reception.arrive(sequence, LinkId(link));
                let blocks = twin.blocks();
                prop_assert_eq!(arrival.new, new);
                let gap_opened = blocks.len() > before && blocks[0] != (0, 0);
                prop_assert!(!gap_opened || arrival.hole || arrival.again);
                prop_assert_eq!(reception.blocks().collect::<Vec<_>>(), blocks);
                prop_assert_eq!(reception.count() as usize, twin.0.iter().filter(|x| **x).count());
                prop_assert_eq!(reception.is_complete(), twin.0.iter().all(|x| *x));
            }
        }

        #[test]
        fn a_first_pass_reports_each_link_that_skips_a_missing_packet(
            packets in 2u32..200,
            losses in proptest::collection::vec(any::<bool>(), 400),
        ) {
            let mut reception = Reception::new(200);
            reception.restart(packets);
            let mut there = std::vec![false; packets as usize];
            for link in 0..2u8 {
                let mut last = None;
                for sequence in 0..packets {
                    if losses[(u32::from(link) * 200 + sequence) as usize] {
                        continue;
                    }
                    there[sequence as usize] = true;
                    let from = last.map_or(0, |l: u32| l + 1);
                    let hole = (from..sequence).any(|i| !there[i as usize]);
                    prop_assert_eq!(reception.arrive(sequence, LinkId(link)).hole, hole);
                    last = Some(sequence);
                }
            }
        }
    }

    #[test]
    fn a_packet_behind_the_front_of_its_own_link_only_was_sent_again() {
        let mut reception = Reception::new(10);
        reception.restart(10);
        for sequence in [0, 1, 4, 5] {
            reception.arrive(sequence, LinkId(0));
        }
        assert!(!reception.arrive(2, LinkId(1)).again);
        assert!(reception.arrive(3, LinkId(0)).again);
        assert!(reception.arrive(3, LinkId(0)).again);
        assert!(!reception.arrive(3, LinkId(1)).again);
    }
}
