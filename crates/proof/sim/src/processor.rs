//! The processor of a controller as far as reception takes its time (spec/simulation.md, S-18): a packet after the other, before everything
//! else that runs there, as the kernel works off interrupts.
//!
//! What is dropped is for the shipped guard to say, with the budgets that the product asks of it.

use std::collections::VecDeque;

use bumpless_base::Instant;
use bumpless_config::{Config, ReceptionGuard};
use bumpless_guard::{FlowId, Guard, Rate, Refusal, Setup, Verdict};
use bumpless_node::reception::budgets;
use bumpless_plan::reception::cost::Costs;

use crate::network::Parcel;

/// What became of the packets of floods, and which of the pair's own were lost because of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FloodCounts {
    /// Packets that came.
    pub came: u64,
    /// Discarded by an interface whose ring was full.
    pub ring: u64,
    /// Discarded by the guard beyond a budget.
    pub capacity: u64,
    /// Discarded by the guard: nothing of the flow is received.
    pub closed: u64,
    /// Discarded by the kernel: nobody asked for it.
    pub nobody: u64,
    /// Handed to the receive buffer of the node's process.
    pub handed_on: u64,
    /// Of the pair's own: discarded by a ring or a budget.
    pub own_lost: u64,
}

impl FloodCounts {
    /// Adds those of another run.
    pub fn merge(&mut self, other: &Self) {
        self.came += other.came;
        self.ring += other.ring;
        self.capacity += other.capacity;
        self.closed += other.closed;
        self.nobody += other.nobody;
        self.handed_on += other.handed_on;
        self.own_lost += other.own_lost;
    }

    /// Each with its name.
    pub fn named(&self) -> [(&'static str, u64); 7] {
        [
            ("came", self.came),
            ("ring", self.ring),
            ("capacity", self.capacity),
            ("closed", self.closed),
            ("nobody", self.nobody),
            ("handed_on", self.handed_on),
            ("own_lost", self.own_lost),
        ]
    }
}

/// Why a packet does not get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The interface's ring is full.
    Ring,
    /// Beyond a budget.
    Capacity,
    /// Nothing of its flow is received.
    Closed,
}

/// A packet that gets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Through {
    /// When the kernel is done with it.
    pub done: u64,
    /// Its flow and that flow's budget, where something is guarded.
    pub budget: Option<(FlowId, Rate)>,
}

struct Interface {
    guard: Option<Guard<()>>,
    /// When each packet that waits or is worked off is done.
    ring: VecDeque<u64>,
}

/// See the module.
pub struct Processor {
    packet: u64,
    dropped: u64,
    /// Packets that wait in an interface's ring at most.
    ring: usize,
    setup: Setup,
    interfaces: Vec<Interface>,
    busy_until: u64,
    /// What all packets so far take, nanoseconds.
    taken: u64,
    /// Packets for the node's process that are not in its receive buffer yet, each with when it is.
    pub passed: VecDeque<(u64, Parcel)>,
}

impl Processor {
    /// That of `node`. A packet costs it what the plan reckons with (V-91).
    ///
    /// # Errors
    /// What the guard refuses.
    pub fn new(config: &Config, node: usize) -> Result<Self, String> {
        let setup = budgets::setup_of(config, bumpless_base::NodeId(node as u8));
        let guarded = config.reception.guard != ReceptionGuard::Off;
        let costs = budgets::costs(config);
        Self::with((setup, guarded), &costs, config.networks.len())
    }

    /// One with so many interfaces, and what is asked of their guards, if they have some.
    ///
    /// # Errors
    /// What the guard refuses.
    pub fn with(
        (setup, guarded): (Setup, bool),
        costs: &Costs,
        interfaces: usize,
    ) -> Result<Self, String> {
        let ring = costs.ring as usize;
        let interface = |_| {
            let guard = guarded
                .then(|| Guard::new(&setup, Instant::ZERO))
                .transpose();
            Ok(Interface {
                guard: guard.map_err(|error| error.to_string())?,
                ring: VecDeque::with_capacity(ring),
            })
        };
        let interfaces = (0..interfaces).map(interface);
        Ok(Self {
            packet: costs.packet_ns,
            dropped: costs.dropped_ns,
            ring,
            interfaces: interfaces.collect::<Result<_, String>>()?,
            setup,
            busy_until: 0,
            taken: 0,
            passed: VecDeque::new(),
        })
    }

    /// A packet that begins with `header` comes at `now` on `network`. Without a process there is no guard (V-55).
    ///
    /// # Errors
    /// It is discarded, and why.
    pub fn receive(
        &mut self,
        now: u64,
        (network, runs): (usize, bool),
        header: &[u8],
    ) -> Result<Through, Loss> {
        if !self.has_room(now, network) {
            return Err(Loss::Ring);
        }
        let guard = self.interfaces[network].guard.as_mut();
        let guard = guard.filter(|_| runs);
        let decided = guard.map_or(Ok(None), |guard| decide(guard, now, header).map(Some));
        let takes = match decided {
            Ok(_) => self.packet,
            Err(_) => self.dropped,
        };
        let done = self.work_off(now, network, takes);
        let flow = decided?;
        let budget = flow.and_then(|flow| Some((flow, rate_of(&self.setup, flow)?)));
        Ok(Through { done, budget })
    }

    /// A packet comes that is let in, whatever the guard would say: when it is done. `None`: the ring is full.
    pub fn let_in(&mut self, now: u64, network: usize) -> Option<u64> {
        self.has_room(now, network)
            .then(|| self.work_off(now, network, self.packet))
    }

    fn has_room(&mut self, now: u64, network: usize) -> bool {
        let ring = &mut self.interfaces[network].ring;
        while ring.pop_front_if(|done| *done <= now).is_some() {}
        ring.len() < self.ring
    }

    /// When a packet that takes so long is done.
    fn work_off(&mut self, now: u64, network: usize, takes: u64) -> u64 {
        let done = self.busy_until.max(now) + takes;
        self.interfaces[network].ring.push_back(done);
        self.busy_until = done;
        self.taken += takes;
        done
    }

    /// Packets that wait in a ring at most.
    pub const fn ring(&self) -> usize {
        self.ring
    }

    /// Packets that wait in the ring of `network`, or are worked off.
    pub fn waiting(&self, network: usize) -> usize {
        self.interfaces[network].ring.len()
    }

    /// From when on threads run, unless more comes.
    pub const fn free_at(&self) -> u64 {
        self.busy_until
    }

    /// How much of its time reception has taken until `now`, nanoseconds.
    pub const fn taken_until(&self, now: u64) -> u64 {
        self.taken - self.busy_until.saturating_sub(now)
    }

    /// When the next packet is in the receive buffer of the node's process; the end of time if none is on its way.
    pub fn next(&self) -> u64 {
        self.passed.front().map_or(u64::MAX, |(done, _)| *done)
    }
}

/// What the guard says: the flow that takes it. Queues and priorities are the sockets' (V-57).
fn decide(guard: &mut Guard<()>, now: u64, header: &[u8]) -> Result<FlowId, Loss> {
    match guard.handle_frame(Instant::from_nanos(now), header, header.len(), ()) {
        Verdict::Queued { flow, .. } => {
            guard.poll_frame();
            guard.handle_processed();
            Ok(flow)
        }
        Verdict::Refused { cause, .. } => Err(match cause {
            Refusal::Capacity | Refusal::Overall => Loss::Capacity,
            Refusal::QueueFull | Refusal::Pressure => Loss::Closed,
        }),
    }
}

fn rate_of(setup: &Setup, flow: FlowId) -> Option<Rate> {
    match flow {
        FlowId::Registered(at) => setup.flows.get(usize::from(at))?.terms.rate,
        FlowId::Resolution => setup.resolution.rate,
        FlowId::Icmp => setup.icmp.rate,
        FlowId::Fragments => setup.fragments.rate,
        FlowId::Unregistered => setup.unregistered.rate,
        FlowId::Unknown => setup.unknown.rate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::Size;

    fn unguarded() -> Processor {
        let mut config = Config::clone(&Size::Small.config());
        config.reception.guard = ReceptionGuard::Off;
        Processor::new(&config, 0).expect("a processor")
    }

    #[test]
    fn a_full_ring_discards_and_what_waits_is_done_one_after_the_other() {
        let mut processor = unguarded();
        let ring = processor.ring();
        for at in 1..=ring as u64 {
            let through = processor.receive(0, (0, true), &[]).expect("room");
            assert_eq!(through.done, at * processor.packet);
        }
        assert_eq!(processor.receive(0, (0, true), &[]), Err(Loss::Ring));
        assert_eq!(processor.waiting(0), ring);
        // The other interface has a ring of its own, and waits for the same processor.
        let other = processor.receive(0, (1, true), &[]).expect("room");
        assert_eq!(other.done, (ring as u64 + 1) * processor.packet);
        let first = processor.packet;
        assert!(
            processor.receive(first, (0, true), &[]).is_ok(),
            "one is done"
        );
    }

    #[test]
    fn time_that_reception_has_taken_is_what_is_done_and_not_what_waits() {
        let mut processor = unguarded();
        let packet = processor.packet;
        for _ in 0..3 {
            let _ = processor.receive(1000, (0, true), &[]);
        }
        assert_eq!(processor.taken_until(1000), 0);
        assert_eq!(processor.taken_until(1000 + packet), packet);
        assert_eq!(processor.taken_until(1_000_000_000), 3 * packet);
        assert_eq!(processor.free_at(), 1000 + 3 * packet);
    }
}
