//! A flood at both nodes while states are sent: as much of every kind as a node bears by plan, as badly as it may come.
//!
//! What is dropped says the shipped core of the guard; packets of the pair's own are let in, whatever comes besides.

use bumpless_base::{Duration, Random};
use bumpless_guard::Rate;
use bumpless_plan::Scenario;
use bumpless_plan::reception::cost::{
    Budgets, Costs, DROPPED_NS, Load, PACKET_NS, RING, Registered,
};
use bumpless_reception::{Rest, setup};

use crate::frame::{frame, stranger};
use crate::processor::Processor;
use crate::script::Aim;

use super::wire::ADDRESS;

const SECOND: u64 = 1_000_000_000;
/// Budgets of what is asked for by nobody are renewed so often, most of them.
const PERIOD: u64 = 10_000_000;
const AIMS: [Aim; 5] = [
    Aim::DataPort,
    Aim::ClosedPort,
    Aim::Fragments,
    Aim::Icmp,
    Aim::Resolution,
];
/// Few enough that a burst is short beside the deadlines that are drawn.
const REST: Rest = Rest {
    resolution: 100,
    icmp: 100,
    fragments: 100,
    unregistered: 1000,
    unknown: 100,
};
const COSTS: Costs = Costs {
    packet_ns: PACKET_NS,
    dropped_ns: DROPPED_NS,
    reserve_percent: 50,
    ring: RING,
};

/// What a flood of a set is, and what it costs by plan.
#[derive(Clone, Copy, Debug)]
pub struct Flood {
    load: Load,
    networks: usize,
}

impl Flood {
    /// The largest that a node of this set bears by plan. The pair's own packets come as fast as the networks carry them.
    pub fn of(scenario: &Scenario) -> Self {
        let own = |link: &bumpless_plan::Link| Rate {
            capacity: 1
                + (link.bandwidth / 8 / u64::from(link.frame_overhead + scenario.packets.payload))
                    as u32,
            period: Duration::from_secs(1),
        };
        let own: Vec<_> = scenario.links.iter().map(own).collect();
        let networks = own.len();
        let budgets = Budgets {
            interfaces: 1,
            from_known: &own,
            from_anywhere: &[],
            rest: &REST.rates().repeat(networks),
            registered: Registered::default(),
        };
        Self {
            load: Load::new(&COSTS, &budgets),
            networks,
        }
    }

    /// What the plan is told for it (V-101): threads are held up, and packets on their way to the partner's.
    pub fn tell(&self, scenario: &mut Scenario) {
        scenario.machine.jitter_ns += self.load.held_up_ns;
        for link in &mut scenario.links {
            link.round_trip.1 = link.round_trip.1 + Duration::from_nanos(self.load.held_up_ns);
        }
    }

    /// So many times as much, more than a node bears.
    #[must_use]
    pub const fn times(mut self, times: u64) -> Self {
        self.load.flood_per_s *= times;
        self
    }

    /// Packets a second.
    pub const fn rate(&self) -> u64 {
        self.load.flood_per_s
    }
}

/// A node under a flood.
pub struct Flooded {
    processor: Processor,
    /// The headers of each kind.
    headers: Vec<Vec<u8>>,
    networks: usize,
    /// Between two packets.
    gap: u64,
    /// When the next one comes.
    next: u64,
    serial: usize,
    /// Whether it comes at the ends of every other period alone, so that two periods' budgets are used up at once.
    in_bursts: bool,
}

impl Flooded {
    /// From `begin` on. `None`: a node bears none.
    pub fn new(flood: &Flood, begin: u64, random: &mut Random) -> Option<Self> {
        let headers = AIMS.map(|aim| {
            let mut header = Vec::new();
            frame(stranger(ADDRESS), ADDRESS, aim, 18, &mut header);
            header
        });
        let processor = Processor::with((setup(&[], &REST), true), &COSTS, flood.networks).ok()?;
        let gap = SECOND.checked_div(flood.rate())?;
        Some(Self {
            processor,
            headers: headers.to_vec(),
            networks: flood.networks,
            gap: gap + 1,
            next: begin + random.below(2 * PERIOD),
            serial: 0,
            in_bursts: random.below(2) == 0,
        })
    }

    /// Everything that has come until `now` waits or is worked off.
    fn advance(&mut self, now: u64) {
        while self.next <= now {
            let (kind, network) = (
                self.serial % self.headers.len(),
                self.serial % self.networks,
            );
            // All kinds on all networks, in turn.
            let kind = (kind + self.serial / self.headers.len()) % self.headers.len();
            let _ = self
                .processor
                .receive(self.next, (network, true), &self.headers[kind]);
            self.serial += 1;
            self.next += self.gap;
            let into = self.next % (2 * PERIOD);
            if self.in_bursts && (PERIOD / 10..2 * PERIOD - PERIOD / 10).contains(&into) {
                self.next += 2 * PERIOD - PERIOD / 10 - into;
            }
        }
    }

    /// A packet of the pair's own comes at `now`: when the kernel is done with it; `None`: the ring has no room for it.
    pub fn takes(&mut self, now: u64, network: usize) -> Option<u64> {
        self.advance(now);
        self.processor.let_in(now, network)
    }

    /// When a thread runs that could at `now`, as far as is known by then.
    pub fn free_at(&mut self, now: u64) -> u64 {
        self.advance(now);
        self.processor.free_at().max(now)
    }
}
