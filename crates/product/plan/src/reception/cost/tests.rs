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
        let budgets = Budgets { interfaces, from_known: &from_known, from_anywhere: &from_anywhere, rest: &rest, registered: Registered::default() };
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
        let budgets = Budgets { interfaces, from_known: &from_known, from_anywhere: &from_anywhere, rest: &rest, registered: Registered::default() };
        let load = Load::new(&costs, &budgets);
        let is_worked_off = |span| is_worked_off(span, &load, &costs, &budgets);
        prop_assert!(load.held_up_ns == 1_000_000_000 || is_worked_off(load.held_up_ns));
        for share in shares {
            let before = (load.held_up_ns as f64 * share) as u64;
            prop_assert!(before + 1 >= load.held_up_ns || before == 0 || !is_worked_off(before), "{} {}", before, load.held_up_ns);
        }
    }
}

/// V-87: whatever programs register within their burst and their share, less of a flood is not borne, and nobody held up for longer.
fn is_covered(registered: &[(u32, u64)], rest: &[Rate], dropped_ns: u64) {
    let percent = 10;
    let of_programs = |&(capacity, parts): &(u32, u64)| Rate {
        capacity,
        // A quarter of the share at most, since three come and packets a second are rounded up.
        period: Duration::from_nanos(u64::from(capacity) * PACKET_NS * 100 * 4 / percent + parts),
    };
    let costs = |reserve_percent| Costs {
        packet_ns: PACKET_NS,
        dropped_ns,
        reserve_percent,
        ring: RING,
    };
    let planned = Budgets {
        interfaces: 1,
        from_known: &[],
        from_anywhere: &[],
        rest,
        registered: Registered {
            burst: registered.iter().map(|it| u64::from(it.0)).sum(),
            percent,
        },
    };
    let rates: Vec<_> = registered.iter().map(of_programs).collect();
    let actual = Budgets {
        from_anywhere: &rates,
        registered: Registered::default(),
        ..planned
    };
    let planned = Load::new(&costs(50), &planned);
    let actual = Load::new(&costs(50 + percent), &actual);
    assert!(
        actual.flood_per_s >= planned.flood_per_s,
        "{actual:?} {planned:?}"
    );
    assert_eq!(actual.burst, planned.burst);
    // With the flood of the plan: the larger one that is borne holds up for longer.
    let of_plan = Load {
        flood_per_s: planned.flood_per_s,
        ..actual
    };
    let budgets = Budgets {
        interfaces: 1,
        from_known: &[],
        from_anywhere: &rates,
        rest,
        registered: Registered::default(),
    };
    let held_up = of_plan.held_up(&costs(50 + percent), &budgets).held_up_ns;
    assert!(held_up <= planned.held_up_ns, "{held_up} {planned:?}");
}

proptest! {
    #[test]
    fn what_is_registered_within_burst_and_share_was_in_the_plan(
        registered in prop::collection::vec((1u32..5000, 0u64..50_000_000), 1..=3),
        rest in prop::collection::vec((0u32..200, 1u64..=100), 0..4),
        dropped_ns in 50u64..1_000,
    ) {
        let rate = |&(capacity, ms): &(u32, u64)| Rate { capacity, period: Duration::from_millis(ms) };
        let rest: Vec<_> = rest.iter().map(rate).collect();
        is_covered(&registered, &rest, dropped_ns);
    }
}

#[test]
fn what_programs_may_have_let_in_at_once_is_in_the_plan_before_they_register() {
    let with = |burst| {
        let budgets = Budgets {
            interfaces: 2,
            from_known: &[],
            from_anywhere: &[],
            rest: &[],
            registered: Registered { burst, percent: 10 },
        };
        Load::new(&COSTS, &budgets)
    };
    assert_eq!(with(0), load(2, &[], &[]));
    // 400 packets of 2 us twice, on two interfaces; meanwhile their share, and the flood.
    let some = with(100);
    assert_eq!(some.burst, 400);
    assert!(
        some.ring_ends_it && some.held_up_ns > 400 * PACKET_NS,
        "{some:?}"
    );
    assert!(with(1000).flood_per_s < some.flood_per_s);
    assert_eq!(some.budgets_per_s, 0);
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
        registered: Registered::default(),
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
        registered: Registered::default(),
    };
    assert_eq!(Load::new(&costs, &budgets).flood_per_s, 500_000);
}
