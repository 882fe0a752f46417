//! Packets that are kept until it is known that they have arrived (`spec/iprp.md`, I-50 and I-54): of all sessions together,
//! within bounds.

use crate::flow::Flow;
use crate::header::Answer;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use bumpless_base::Instant;

const NONE: u32 = u32::MAX;

/// A packet that may be lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub flow: Flow,
    pub number: u32,
    pub sent: Instant,
    /// The path on which it left last.
    pub path: u8,
    /// It is to leave again on this path.
    pub again_on: Option<u8>,
    /// How often it has left again.
    pub tries: u8,
    len: u32,
    next: u32,
}

/// The packets of one session that may be lost, oldest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    head: u32,
    tail: u32,
    pub count: u32,
}

impl Default for List {
    fn default() -> Self {
        Self {
            head: NONE,
            tail: NONE,
            count: 0,
        }
    }
}

/// Packets that may be lost, of all sessions together.
pub(crate) struct Keep {
    slots: Box<[Option<Kept>]>,
    bytes: Box<[u8]>,
    len_each: usize,
    free: Vec<u32>,
}

impl Keep {
    pub(crate) fn new(packets: usize, len: usize) -> Self {
        Self {
            slots: vec![None; packets].into_boxed_slice(),
            bytes: vec![0; packets * len].into_boxed_slice(),
            len_each: len,
            free: (0..packets as u32).rev().collect(),
        }
    }

    fn slot(&mut self, at: u32) -> Option<&mut Kept> {
        self.slots.get_mut(at as usize)?.as_mut()
    }

    pub(crate) fn get(&self, at: u32) -> Option<&Kept> {
        self.slots.get(at as usize)?.as_ref()
    }

    /// What the packet in slot `at` carries.
    pub(crate) fn payload(&self, at: u32) -> &[u8] {
        let begin = at as usize * self.len_each;
        let len = self.get(at).map_or(0, |kept| kept.len as usize);
        self.bytes.get(begin..begin + len).unwrap_or_default()
    }

    /// Keeps a packet of `list`; `false` if it is too long or there is no place.
    pub(crate) fn keep(
        &mut self,
        list: &mut List,
        (flow, payload): (&Flow, &[u8]),
        number: u32,
        (path, sent): (u8, Instant),
    ) -> bool {
        if payload.len() > self.len_each {
            return false;
        }
        let Some(at) = self.free.pop() else {
            return false;
        };
        let begin = at as usize * self.len_each;
        if let Some(place) = self.bytes.get_mut(begin..begin + payload.len()) {
            place.copy_from_slice(payload);
        }
        if let Some(slot) = self.slots.get_mut(at as usize) {
            *slot = Some(Kept {
                flow: *flow,
                number,
                sent,
                path,
                again_on: None,
                tries: 0,
                len: payload.len() as u32,
                next: NONE,
            });
        }
        match self.slot(list.tail) {
            Some(last) => last.next = at,
            None => list.head = at,
        }
        list.tail = at;
        list.count += 1;
        true
    }

    /// Drops all packets of `list`; how many there were.
    pub(crate) fn drop_all(&mut self, list: &mut List) -> u64 {
        let count = list.count;
        self.drop_if(list, |_| true);
        count.into()
    }

    /// Drops the packets of `list` for which `is_done`.
    pub(crate) fn drop_if(&mut self, list: &mut List, is_done: impl Fn(&Kept) -> bool) {
        let (mut at, mut before) = (list.head, NONE);
        while let Some(kept) = self.get(at).copied() {
            if is_done(&kept) {
                match self.slot(before) {
                    Some(slot) => slot.next = kept.next,
                    None => list.head = kept.next,
                }
                if list.tail == at {
                    list.tail = before;
                }
                list.count -= 1;
                if let Some(slot) = self.slots.get_mut(at as usize) {
                    *slot = None;
                }
                self.free.push(at);
            } else {
                before = at;
            }
            at = kept.next;
        }
    }

    /// What an answer says has arrived needs not be kept. What has asked may be further behind than the numbers that it tells of.
    pub(crate) fn acknowledge(&mut self, list: &mut List, answer: &Answer) {
        self.drop_if(list, |kept| {
            let back = answer.high.wrapping_sub(kept.number);
            let is_behind = (1..=64).contains(&back) && answer.behind >> (back - 1) & 1 != 0;
            kept.number == answer.asked || kept.number == answer.high || is_behind
        });
    }

    /// Changes each packet of `list`; oldest first.
    pub(crate) fn each(&mut self, list: &List, mut change: impl FnMut(&mut Kept)) {
        let mut at = list.head;
        while let Some(kept) = self.slot(at) {
            change(kept);
            at = kept.next;
        }
    }

    /// The oldest packet of `list` that `is_it`, and its slot.
    pub(crate) fn first(&self, list: &List, is_it: impl Fn(&Kept) -> bool) -> Option<(u32, Kept)> {
        let mut at = list.head;
        while let Some(kept) = self.get(at) {
            if is_it(kept) {
                return Some((at, *kept));
            }
            at = kept.next;
        }
        None
    }

    /// The earliest of what `when` says of the packets of `list`.
    pub(crate) fn earliest(&self, list: &List, when: impl Fn(&Kept) -> Instant) -> Option<Instant> {
        let (mut at, mut earliest) = (list.head, None);
        while let Some(kept) = self.get(at) {
            let this = when(kept);
            earliest = Some(earliest.map_or(this, |before: Instant| before.min(this)));
            at = kept.next;
        }
        earliest
    }

    /// The packet in slot `at` has left again.
    pub(crate) fn left_again(&mut self, at: u32, path: u8, now: Instant) {
        if let Some(kept) = self.slot(at) {
            (kept.again_on, kept.path, kept.sent) = (None, path, now);
            kept.tries = kept.tries.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec as Plain;

    const FLOW: Flow = Flow {
        protocol: 17,
        source: core::net::IpAddr::V4(core::net::Ipv4Addr::LOCALHOST),
        destination: core::net::IpAddr::V4(core::net::Ipv4Addr::LOCALHOST),
        source_port: 1,
        destination_port: 2,
    };

    proptest! {
        #[test]
        fn what_is_kept_is_what_two_plain_lists_keep(
            steps in proptest::collection::vec((0usize..2, 0u8..3, any::<u64>(), (0u32..80, 0u32..160)), 0..200),
        ) {
            let mut keep = Keep::new(24, 8);
            let mut lists = [List::default(); 2];
            let mut twins: [Plain<(u32, u8)>; 2] = Default::default();
            let mut next = [0u32; 2];
            for (which, op, behind, (back, before)) in steps {
                let list = &mut lists[which];
                if op < 2 {
                    let number = next[which];
                    next[which] += 1;
                    let payload = [number as u8; 8];
                    let len = (number % 9) as usize;
                    let total = twins[0].len() + twins[1].len();
                    let kept = keep.keep(list, (&FLOW, &payload[..len]), number, (0, Instant::ZERO));
                    prop_assert_eq!(kept, total < 24);
                    if kept {
                        twins[which].push((number, len as u8));
                    }
                } else {
                    let high = next[which].saturating_sub(back);
                    let asked = next[which].saturating_sub(before);
                    keep.acknowledge(list, &Answer { asked, high, behind });
                    twins[which].retain(|(number, _)| {
                        let gone = *number < high && high - number <= 64
                            && behind & (1 << (high - number - 1)) != 0;
                        *number != asked && *number != high && !gone
                    });
                }
                for (list, twin) in lists.iter().zip(&twins) {
                    let mut seen = Plain::new();
                    let mut at = list.head;
                    while let Some(kept) = keep.get(at) {
                        let payload = keep.payload(at);
                        prop_assert!(payload.iter().all(|byte| *byte == kept.number as u8));
                        seen.push((kept.number, payload.len() as u8));
                        at = kept.next;
                    }
                    prop_assert_eq!(&seen, twin);
                    prop_assert_eq!(list.count as usize, twin.len());
                }
            }
        }
    }
}
