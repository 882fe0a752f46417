//! What reception costs of a processor, and how much of a flood a node or host bears (spec/reception.md, V-90 and further).
//!
//! What budgets let in costs its way to its program; what is beyond them costs being dropped at the driver. Packets a second are
//! rounded up, budget by budget, and a flood down.

use bumpless_guard::Rate;

/// What a packet that is let in costs unless something else is said, nanoseconds. See V-91.
pub const PACKET_NS: u64 = 2000;
/// What a packet that is dropped at the driver costs unless something else is said, nanoseconds. See V-91.
pub const DROPPED_NS: u64 = 150;
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
}

/// What is reckoned of one node or host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// What budgets of flows let in at most, packets a second, rounded up.
    pub flows_per_s: u64,
    /// What all budgets let in at most, those of the rest among them, packets a second, rounded up.
    pub budgets_per_s: u64,
    /// What that takes, millionths of a processor, rounded up.
    pub budgets_millionths: u64,
    /// So many packets a second beyond all budgets until the reserve is used up; the budgets are then used up, too.
    pub flood_per_s: u64,
    /// So many packets a second, beside what the flows bring, if nothing is dropped at the driver.
    pub flood_unguarded_per_s: u64,
}

impl Load {
    /// Of these budgets, of flows and of the rest, each of which every one of `interfaces` has for itself.
    pub fn new(costs: &Costs, interfaces: usize, flows: &[Rate], rest: &[Rate]) -> Self {
        let per_s = |rates: &[Rate]| interfaces as u128 * rates.iter().map(in_second).sum::<u128>();
        let (of_flows, of_rest) = (per_s(flows), per_s(rest));
        let all = of_flows + of_rest;
        // Nanoseconds a second.
        let taken = |packets: u128| packets * u128::from(costs.packet_ns);
        let reserve = u128::from(costs.reserve_percent) * SECOND / 100;
        let left =
            |let_in, each: u64| reserve.saturating_sub(taken(let_in)) / u128::from(each.max(1));
        Self {
            flows_per_s: saturating(of_flows),
            budgets_per_s: saturating(all),
            budgets_millionths: saturating(taken(all).div_ceil(SECOND / 1_000_000)),
            flood_per_s: saturating(left(all, costs.dropped_ns)),
            flood_unguarded_per_s: saturating(left(of_flows, costs.packet_ns)),
        }
    }

    /// What all budgets let in takes, percent of a processor.
    pub fn budgets_percent(&self) -> f64 {
        self.budgets_millionths as f64 / 1e4
    }

    /// In lines for a terminal.
    pub fn lines(&self, costs: &Costs) -> [String; 2] {
        [
            format!(
                "all budgets let in {} packets a second, {} of them of named flows: {:.2} % of a processor",
                self.budgets_per_s,
                self.flows_per_s,
                self.budgets_percent()
            ),
            format!(
                "until {} % are used, {} packets of a flood a second are borne besides; without the guard {}",
                costs.reserve_percent, self.flood_per_s, self.flood_unguarded_per_s
            ),
        ]
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
    fn slow(costs: &Costs, interfaces: usize, flows: &[Rate], rest: &[Rate]) -> Load {
        // 2520 s: every period of whole seconds up to ten.
        const SPAN: u64 = 2520 * 1_000_000_000;
        let count = |rates: &[Rate]| {
            let mut packets = 0;
            for _ in 0..interfaces {
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
        let (of_flows, all) = (count(flows), count(&[flows, rest].concat()));
        let bear = |let_in: u64, each: u64| {
            let (mut spent, mut flood) = (let_in * costs.packet_ns, 0);
            let reserve = costs.reserve_percent * 10_000_000;
            while spent + each <= reserve {
                (spent, flood) = (spent + each, flood + 1);
            }
            flood
        };
        Load {
            flows_per_s: of_flows,
            budgets_per_s: all,
            budgets_millionths: (all * costs.packet_ns).div_ceil(1000),
            flood_per_s: bear(all, costs.dropped_ns),
            flood_unguarded_per_s: bear(of_flows, costs.packet_ns),
        }
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
            flows in rates(), rest in rates(), interfaces in 1usize..4,
            packet_ns in 1_000u64..200_000, dropped_ns in 1_000u64..50_000, reserve_percent in 0u64..120,
        ) {
            let costs = Costs { packet_ns, dropped_ns, reserve_percent };
            prop_assert_eq!(Load::new(&costs, interfaces, &flows, &rest), slow(&costs, interfaces, &flows, &rest));
        }
    }

    #[test]
    fn a_budget_of_less_than_a_packet_a_second_counts_as_one_and_none_costs_nothing() {
        let costs = Costs {
            packet_ns: PACKET_NS,
            dropped_ns: DROPPED_NS,
            reserve_percent: 50,
        };
        let third = Rate {
            capacity: 1,
            period: Duration::from_secs(3),
        };
        assert_eq!(Load::new(&costs, 3, &[third; 2], &[]).flows_per_s, 6);
        let none = Load::new(&costs, 2, &[], &[]);
        assert_eq!((none.budgets_per_s, none.budgets_millionths), (0, 0));
        assert_eq!(none.flood_per_s, 500_000_000 / 150);
        let beyond = Rate {
            capacity: 8_388_608,
            period: Duration::from_millis(1),
        };
        assert_eq!(Load::new(&costs, 1, &[], &[beyond]).flood_per_s, 0);
    }
}
