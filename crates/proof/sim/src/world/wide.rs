//! A wide-area network in place of the first one: its packets, its outages, and messages to field devices over it.

use std::sync::Arc;

use super::World;
use crate::network::{Came, Leg};
use crate::queue::What;
use crate::trace::Happening;
use crate::wide::{Counts, Wide};

/// A wide-area network, and how long each of its changes is felt.
pub struct Spread {
    wide: Arc<Wide>,
    /// By step, the end of the outage that it is of.
    felt: Vec<u64>,
}

impl World {
    /// Has the world's first network be a wide-area one; before anything runs.
    pub fn spread_out(&mut self, wide: &Arc<Wide>, seed: u64) {
        self.network.spread_out(wide, seed);
        let steps = wide.steps.iter().enumerate();
        let steps = steps.map(|(at, step)| {
            let number = at as u32;
            let at = u64::try_from(step.at.as_nanos()).unwrap_or(u64::MAX);
            (at, What::Step { step: number })
        });
        self.queue.push_all(steps);
        self.spread = Some(Spread {
            felt: felt(wide),
            wide: Arc::clone(wide),
        });
    }

    /// What became of packets on it.
    pub fn wide_counts(&mut self) -> Option<Counts> {
        self.network.wide().map(|wide| wide.counts)
    }

    /// Links of the network change.
    pub(super) fn wide_step(&mut self, step: u32) {
        let now = self.now();
        let (Some(spread), Some(network)) = (&self.spread, self.network.wide()) else {
            return;
        };
        let after = network.take(&spread.wide.steps[step as usize], now);
        for found in after.into_iter().flatten() {
            self.queue.push(now + found, What::Converge);
        }
        let felt = spread.felt[step as usize];
        // Over other networks the pair, and what field devices are told, does without this one.
        let alone = spread.wide.backup.is_some().then_some(0);
        self.checks.faults_end(alone, felt);
        self.checks.another_fault(felt);
        self.tell(Happening::LinksChange { step });
    }

    /// Routers may find out.
    pub(super) fn wide_converge(&mut self) {
        let now = self.now();
        if let Some(network) = self.network.wide() {
            network.converge(now);
        }
    }

    /// A packet comes to a node of the network.
    pub(super) fn wide_hop(&mut self, flight: u32) {
        match self.network.hop(&mut self.queue, flight) {
            Came::Nothing => {}
            Came::Datagram => self.announce(),
            Came::Lost(parcel) => {
                self.exchange.get().recycle(parcel);
                self.trace.lost();
            }
            Came::Leg(leg) => {
                if self.is_awaited(leg) {
                    self.request(leg.slot);
                }
            }
            Came::LostLeg(leg) => self.leg_is_lost(leg),
        }
    }

    /// Whether no other copy of this message has come before.
    fn is_awaited(&self, leg: Leg) -> bool {
        self.requests[leg.slot as usize]
            .is_some_and(|request| leg.is_awaited(request.serial, request.reply.is_some()))
    }

    fn leg_is_lost(&mut self, leg: Leg) {
        if !self.is_awaited(leg) {
            return;
        }
        if let Some(request) = self.requests[leg.slot as usize]
            && leg.is_first()
            && self.backup().is_none()
        {
            self.asks_in_vain(&request);
        }
        match leg.again() {
            Some((again, at)) => {
                self.network.send_leg(&mut self.queue, again, at, None);
            }
            None => {
                self.requests[leg.slot as usize] = None;
                self.vacant_requests.push(leg.slot);
            }
        }
    }

    /// Sends what is in this slot, a request or its answer, at `at`.
    pub(super) fn send_request(&mut self, slot: u32, at: u64) {
        let backup = self.backup();
        let request = self.requests[slot as usize];
        let sent = request.is_some_and(|request| {
            let leg = Leg::new(
                (slot, request.serial),
                request.node,
                request.reply.is_some(),
            );
            self.network.send_leg(&mut self.queue, leg, at, backup)
        });
        if !sent {
            self.queue.push(at, What::Request { request: slot });
        }
    }

    fn backup(&self) -> Option<u64> {
        self.spread.as_ref().and_then(|spread| spread.wide.backup)
    }
}

/// By step, when everything is as it was before the script, and routers know it.
fn felt(wide: &Wide) -> Vec<u64> {
    let longest = wide.routing.found_after().as_nanos();
    const CUT: u8 = 1;
    const IMPAIRED: u8 = 2;
    let mut harmed = vec![0u8; wide.topology.links().len()];
    let mut count = 0i64;
    let whole = wide.steps.iter().map(|step| {
        let mut set = |link: usize, bit: u8, on: bool| {
            let before = harmed[link];
            harmed[link] = if on { before | bit } else { before & !bit };
            count += i64::from(harmed[link] != 0) - i64::from(before != 0);
        };
        step.cut.iter().for_each(|&link| set(link, CUT, true));
        step.heal.iter().for_each(|&link| set(link, CUT, false));
        let impaired = step.impair.iter();
        impaired.for_each(|(link, how)| set(*link, IMPAIRED, how.is_some()));
        count == 0
    });
    let whole: Vec<bool> = whole.collect();
    let mut end = u64::MAX;
    let mut felt = vec![0; whole.len()];
    for (at, is_whole) in whole.iter().enumerate().rev() {
        if *is_whole {
            let at = u64::try_from(wide.steps[at].at.as_nanos()).unwrap_or(u64::MAX);
            end = at.saturating_add(longest);
        }
        felt[at] = end;
    }
    felt
}
