//! What reception costs of a processor, and how much of a flood a node or host bears (spec/reception.md, V-90 and further).
//!
//! What budgets let in costs its way to its program; what is beyond them costs being dropped at the driver. Packets a second are
//! rounded up, budget by budget, and a flood down.

#[cfg(test)]
mod tests;

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
    /// What programs may register besides.
    pub registered: Registered,
}

/// What programs may have let in that register sockets of theirs (V-84): how much at once is bounded, and which share it takes, not which budgets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registered {
    /// Packets of all their budgets together, on each interface. None: nothing is known beforehand, and nothing is reckoned with.
    pub burst: u64,
    /// What share of a processor all that takes at most, beside the reserve, percent.
    pub percent: u64,
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
        let at_once = at_once + u128::from(budgets.registered.burst);
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
    // Of budgets that nobody knows: all of them twice, and their share as long as it lasts, which is as many periods as fit into it at most.
    let registered = budgets.registered;
    let let_in = let_in.sum::<u128>() + 2 * u128::from(registered.burst);
    let let_in = let_in * budgets.interfaces as u128;
    let share = match registered.burst {
        0 => 0,
        _ => u128::from(registered.percent) * SECOND / 100,
    };
    let evenly = u128::from(load.known_per_s) * u128::from(costs.packet_ns)
        + u128::from(load.flood_per_s) * u128::from(costs.dropped_ns)
        + share;
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
