//! What reception costs of a processor, and how much of a flood a node or host bears (spec/reception.md, V-90 and further).
//!
//! What budgets let in costs its way to its program; what is beyond them costs being dropped at the driver. Packets a second are
//! rounded up, budget by budget, and a flood down.

use bumpless_guard::Rate;

/// What a packet that is let in costs unless something else is said, nanoseconds. See V-91.
pub const PACKET_NS: u64 = 2000;
/// What a packet that is dropped at the driver costs unless something else is said, nanoseconds. See V-91.
pub const DROPPED_NS: u64 = 150;
/// So many packets wait in an interface's ring unless something else is said. See V-91.
pub const RING: u64 = 256;
const SECOND: u128 = 1_000_000_000;

/// What packets cost, and how much of a processor they may take together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Of a packet that is let in, until its program has it, nanoseconds.
    pub packet_ns: u64,
    /// Of a packet that is dropped at the driver, nanoseconds.
    pub dropped_ns: u64,
    /// The reserve: what share of one processor reception may take, percent.
    pub reserve_percent: u64,
    /// So many packets wait in an interface's ring at most.
    pub ring: u64,
}

/// Budgets by who can use them up. Each of the interfaces has every one of them for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets<'a> {
    /// How many interfaces.
    pub interfaces: usize,
    /// Of flows from known addresses.
    pub from_known: &'a [Rate],
    /// Of flows from anywhere.
    pub from_anywhere: &'a [Rate],
    /// Of what belongs to no flow.
    pub rest: &'a [Rate],
}

/// What is reckoned of one node or host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// What budgets of flows let in at most, packets a second, rounded up.
    pub flows_per_s: u64,
    /// Those of them from known addresses, packets a second, rounded up.
    pub known_per_s: u64,
    /// What all budgets let in at most, those of the rest among them, packets a second, rounded up.
    pub budgets_per_s: u64,
    /// What that takes, millionths of a processor, rounded up.
    pub budgets_millionths: u64,
    /// What anybody can have let in one packet right after the other: the end of a period's budgets and the beginning of the next one's.
    pub burst: u64,
    /// So many packets a second beyond all budgets until the reserve is used up, with the budgets used up, too, or until a burst fills a
    /// ring, whichever comes first.
    pub flood_per_s: u64,
    /// Whether it is a ring that ends it.
    pub ring_ends_it: bool,
    /// So many packets a second, beside what the flows bring, if nothing is dropped at the driver.
    pub flood_unguarded_per_s: u64,
    /// How long the flood that is borne holds up a thread or a packet of the pair's own at most, nanoseconds, rounded up; a second or more: a
    /// second.
    pub held_up_ns: u64,
}

impl Load {
    /// Of these budgets.
    pub fn new(costs: &Costs, budgets: &Budgets<'_>) -> Self {
        let interfaces = budgets.interfaces as u128;
        let per_s = |rates: &[Rate]| interfaces * rates.iter().map(in_second).sum::<u128>();
        let of_known = per_s(budgets.from_known);
        let of_flows = of_known + per_s(budgets.from_anywhere);
        let all = of_flows + per_s(budgets.rest);
        let of_anybody = [budgets.from_anywhere, budgets.rest];
        let at_once = of_anybody.into_iter().flatten();
        let at_once = at_once.map(|rate| u128::from(rate.capacity)).sum::<u128>();
        let burst = 2 * interfaces * at_once;
        // Nanoseconds a second.
        let taken = |packets: u128| packets * u128::from(costs.packet_ns);
        let reserve = u128::from(costs.reserve_percent) * SECOND / 100;
        let left =
            |let_in, each: u64| reserve.saturating_sub(taken(let_in)) / u128::from(each.max(1));
        let until_reserve = left(all, costs.dropped_ns);
        let until_ring = until_ring(costs, burst, SECOND.saturating_sub(taken(of_known)));
        Self {
            flows_per_s: saturating(of_flows),
            known_per_s: saturating(of_known),
            budgets_per_s: saturating(all),
            budgets_millionths: saturating(taken(all).div_ceil(SECOND / 1_000_000)),
            burst: saturating(burst),
            flood_per_s: saturating(until_reserve.min(until_ring)),
            ring_ends_it: until_ring < until_reserve,
            flood_unguarded_per_s: saturating(left(of_flows, costs.packet_ns)),
            held_up_ns: 0,
        }
        .held_up(costs, budgets)
    }

    /// With the longest time in which reception has always something to do: it begins with what all budgets from anywhere let in at once, and
    /// ends when that, what was let in meanwhile, and what was dropped meanwhile is worked off (V-101).
    fn held_up(mut self, costs: &Costs, budgets: &Budgets<'_>) -> Self {
        let mut span = 0;
        loop {
            let next = demand(&self, costs, budgets, span);
            if next <= span || next >= SECOND {
                self.held_up_ns = saturating(next.min(SECOND));
                return self;
            }
            span = next;
        }
    }

    /// What all budgets let in takes, percent of a processor.
    pub fn budgets_percent(&self) -> f64 {
        self.budgets_millionths as f64 / 1e4
    }

    /// In lines for a terminal.
    pub fn lines(&self, costs: &Costs) -> Vec<String> {
        let mut lines = vec![
            format!(
                "all budgets let in {} packets a second, {} of them of named flows: {:.2} % of a processor",
                self.budgets_per_s,
                self.flows_per_s,
                self.budgets_percent()
            ),
            format!(
                "{} packets of a flood a second are borne besides; without the guard {}",
                self.flood_per_s, self.flood_unguarded_per_s
            ),
            self.limit(costs),
        ];
        if self.flood_per_s > 0 {
            lines.push(format!(
                "meanwhile it holds up a thread, or a packet that is wanted, for {:.3} ms at most",
                self.held_up_ns as f64 / 1e6
            ));
        }
        lines
    }

    /// Why no more of a flood is borne.
    fn limit(&self, costs: &Costs) -> String {
        match self.ring_ends_it {
            true => format!(
                "more would fill a ring of {1} while {0} packets are worked off that budgets let in at once",
                self.burst, costs.ring
            ),
            false => format!(
                "more would take more than {} % of it",
                costs.reserve_percent
            ),
        }
    }
}

/// What comes in `span` nanoseconds takes so many of them, if it comes as badly as it may: budgets twice at once and then period by period, known flows
/// and what is dropped evenly.
fn demand(load: &Load, costs: &Costs, budgets: &Budgets<'_>, span: u128) -> u128 {
    let of_anybody = [budgets.from_anywhere, budgets.rest];
    let let_in = of_anybody.into_iter().flatten().map(|rate| {
        let periods = span
            .div_ceil(u128::from(rate.period.as_nanos().max(1)))
            .max(1)
            + 1;
        u128::from(rate.capacity) * periods
    });
    let let_in = let_in.sum::<u128>() * budgets.interfaces as u128;
    let evenly = u128::from(load.known_per_s) * u128::from(costs.packet_ns)
        + u128::from(load.flood_per_s) * u128::from(costs.dropped_ns);
    let_in * u128::from(costs.packet_ns) + (evenly * span).div_ceil(SECOND)
}

/// Packets of a flood a second at which a ring is full once the processor has worked off a burst, of which every packet is let in.
///
/// `free` is what flows from known addresses leave of the processor, nanoseconds a second. The burst takes burst * packet / free of a
/// second; meanwhile the flood brings so many packets that the burst itself and as many as the ring holds are used up.
fn until_ring(costs: &Costs, burst: u128, free: u128) -> u128 {
    match burst {
        0 => u128::MAX,
        _ => (burst + u128::from(costs.ring)) * free / (burst * u128::from(costs.packet_ns.max(1))),
    }
}

/// Packets a second that a budget lets in at most, rounded up.
fn in_second(rate: &Rate) -> u128 {
    let period = u128::from(rate.period.as_nanos().max(1));
    (u128::from(rate.capacity) * SECOND).div_ceil(period)
}

fn saturating(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use bumpless_base::Duration;
    use proptest::prelude::*;

    use super::*;

    /// The same by counting: each budget's packets one period after the other, over so long that all periods end together; then
    /// packets of a flood one by one until there is no time left for another one.
    fn slow(costs: &Costs, budgets: &Budgets<'_>) -> Load {
        // 2520 s: every period of whole seconds up to ten.
        const SPAN: u64 = 2520 * 1_000_000_000;
        let count = |rates: &[Rate]| {
            let mut packets = 0;
            for _ in 0..budgets.interfaces {
                for rate in rates {
                    let (mut at, mut of_budget) = (0, 0u64);
                    while at < SPAN {
                        of_budget += u64::from(rate.capacity);
                        at += rate.period.as_nanos();
                    }
                    packets += of_budget.div_ceil(2520);
                }
            }
            packets
        };
        let of_known = count(budgets.from_known);
        let of_flows = of_known + count(budgets.from_anywhere);
        let all = of_flows + count(budgets.rest);
        let bear = |let_in: u64, each: u64| {
            let (mut spent, mut flood) = (let_in * costs.packet_ns, 0);
            let reserve = costs.reserve_percent * 10_000_000;
            while spent + each <= reserve {
                (spent, flood) = (spent + each, flood + 1);
            }
            flood
        };
        let mut burst = 0;
        for _ in 0..budgets.interfaces {
            for rate in [budgets.from_anywhere, budgets.rest].concat() {
                burst += u64::from(rate.capacity) * 2;
            }
        }
        let (reserve, ring) = (bear(all, costs.dropped_ns), filling(costs, burst, of_known));
        Load {
            flows_per_s: of_flows,
            known_per_s: of_known,
            budgets_per_s: all,
            budgets_millionths: (all * costs.packet_ns).div_ceil(1000),
            burst,
            flood_per_s: reserve.min(ring),
            ring_ends_it: ring < reserve,
            flood_unguarded_per_s: bear(of_flows, costs.packet_ns),
            held_up_ns: 0,
        }
    }

    /// What comes in so many nanoseconds takes no longer than these, counted packet by packet of each budget.
    fn is_worked_off(span: u64, load: &Load, costs: &Costs, budgets: &Budgets<'_>) -> bool {
        let mut packets = 0;
        for _ in 0..budgets.interfaces {
            for rate in [budgets.from_anywhere, budgets.rest].concat() {
                // Once at the end of a period, and at the beginning of each that follows before the span ends.
                let mut begins = 0;
                packets += u128::from(rate.capacity);
                while begins == 0 || begins < span {
                    packets += u128::from(rate.capacity);
                    begins += rate.period.as_nanos();
                }
            }
        }
        let second = 1_000_000_000u128;
        let even = u128::from(load.known_per_s) * u128::from(costs.packet_ns);
        let even = even + u128::from(load.flood_per_s) * u128::from(costs.dropped_ns);
        packets * u128::from(costs.packet_ns) * second + even * u128::from(span)
            <= u128::from(span) * second
    }

    /// The largest flood that leaves no more than a ring's packets waiting after a burst, by halving.
    fn filling(costs: &Costs, burst: u64, of_known: u64) -> u64 {
        let free = 1_000_000_000u128.saturating_sub(u128::from(of_known * costs.packet_ns));
        if burst == 0 {
            return u64::MAX;
        }
        let fits = |flood: u64| {
            // In units that need no fraction: what comes in the burst's time, and what leaves the ring in it.
            let comes = u128::from(flood) * u128::from(burst) * u128::from(costs.packet_ns);
            comes <= u128::from(burst + costs.ring) * free
        };
        let (mut low, mut high) = (0, 1u64 << 40);
        while low + 1 < high {
            let middle = low.midpoint(high);
            match fits(middle) {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    }

    fn rates() -> impl Strategy<Value = Vec<Rate>> {
        let rate = (0u32..2000, 1u64..=10).prop_map(|(capacity, seconds)| Rate {
            capacity,
            period: Duration::from_secs(seconds),
        });
        prop::collection::vec(rate, 0..5)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// V-90: what is told is what counting comes to.
        #[test]
        fn the_load_is_that_of_packets_counted_one_by_one(
            from_known in rates(), from_anywhere in rates(), rest in rates(), interfaces in 1usize..4,
            packet_ns in 1_000u64..200_000, dropped_ns in 1_000u64..50_000, reserve_percent in 0u64..120,
            ring in 1u64..5000,
        ) {
            let costs = Costs { packet_ns, dropped_ns, reserve_percent, ring };
            let budgets = Budgets { interfaces, from_known: &from_known, from_anywhere: &from_anywhere, rest: &rest };
            let load = Load { held_up_ns: 0, ..Load::new(&costs, &budgets) };
            prop_assert_eq!(load, slow(&costs, &budgets));
        }

        /// V-101: at the end of what is told everything is worked off, and at no time before.
        #[test]
        fn a_thread_is_held_up_until_everything_that_came_is_worked_off(
            from_known in rates(), from_anywhere in rates(), rest in rates(), interfaces in 1usize..4,
            packet_ns in 1_000u64..200_000, dropped_ns in 1_000u64..50_000, reserve_percent in 0u64..90,
            ring in 1u64..5000, shares in prop::collection::vec(0.0f64..1.0, 20),
        ) {
            let costs = Costs { packet_ns, dropped_ns, reserve_percent, ring };
            let budgets = Budgets { interfaces, from_known: &from_known, from_anywhere: &from_anywhere, rest: &rest };
            let load = Load::new(&costs, &budgets);
            let is_worked_off = |span| is_worked_off(span, &load, &costs, &budgets);
            prop_assert!(load.held_up_ns == 1_000_000_000 || is_worked_off(load.held_up_ns));
            for share in shares {
                let before = (load.held_up_ns as f64 * share) as u64;
                prop_assert!(before + 1 >= load.held_up_ns || before == 0 || !is_worked_off(before), "{} {}", before, load.held_up_ns);
            }
        }
    }

    const COSTS: Costs = Costs {
        packet_ns: PACKET_NS,
        dropped_ns: DROPPED_NS,
        reserve_percent: 50,
        ring: RING,
    };

    fn load(interfaces: usize, from_known: &[Rate], rest: &[Rate]) -> Load {
        let budgets = Budgets {
            interfaces,
            from_known,
            from_anywhere: &[],
            rest,
        };
        Load::new(&COSTS, &budgets)
    }

    #[test]
    fn a_budget_of_less_than_a_packet_a_second_counts_as_one_and_none_costs_nothing() {
        let third = Rate {
            capacity: 1,
            period: Duration::from_secs(3),
        };
        assert_eq!(load(3, &[third; 2], &[]).flows_per_s, 6);
        let none = load(2, &[], &[]);
        assert_eq!((none.budgets_per_s, none.budgets_millionths), (0, 0));
        assert_eq!(none.flood_per_s, 500_000_000 / 150);
        let beyond = Rate {
            capacity: 8_388_608,
            period: Duration::from_millis(1),
        };
        assert_eq!(load(1, &[], &[beyond]).flood_per_s, 0);
    }

    #[test]
    fn a_flood_that_fills_a_ring_while_a_burst_is_worked_off_is_not_borne() {
        let slow = Rate {
            capacity: 128,
            period: Duration::from_millis(10),
        };
        // 256 packets at once take 512 us, in which 512 come: half of them are the burst, half are a ring full.
        let bursts = load(1, &[], &[slow]);
        assert_eq!(
            (bursts.burst, bursts.flood_per_s, bursts.ring_ends_it),
            (256, 1_000_000, true)
        );
        // Half of the processor is for who is known.
        let known = Rate {
            capacity: 250,
            period: Duration::from_millis(1),
        };
        let busy = load(
            1,
            &[known],
            &[Rate {
                capacity: 1,
                ..slow
            }],
        );
        assert!(!busy.ring_ends_it, "{busy:?}");
        let costs = Costs {
            reserve_percent: 100,
            ..COSTS
        };
        let budgets = Budgets {
            interfaces: 1,
            from_known: &[known],
            from_anywhere: &[slow],
            rest: &[],
        };
        assert_eq!(Load::new(&costs, &budgets).flood_per_s, 500_000);
    }
}
