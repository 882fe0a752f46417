//! The numbers that a network is generated from.

use core::fmt;

use crate::topology::DELAY_MAX_US;

/// What each router adds in the profile whose round trip is the one that the paper measured, microseconds: over the
/// 22 routers of the paper's longest path, there and back, 2.5 ms (8.0 of table II less the 5.5 of the links).
pub const MEASURED_ROUTER_US: u32 = 57;

/// Most routers that a network may have: two bytes number them in addresses and names.
const ROUTERS_MAX: usize = 10_000;

/// A network of three layers (fifth paper, III-A): a ring of pairs, loops of pairs on it, chains on those.
///
/// The default is the paper's: 340 routers, 260 substations, two control centres, 702 links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Pairs of routers in the backbone ring; each has a substation and a loop. At least 3.
    pub backbone_pairs: usize,
    /// Pairs of routers in the loop at each backbone pair; each has a substation and a chain.
    pub loop_pairs: usize,
    /// Routers in the chain at each pair of a loop; each has a substation.
    pub chain_routers: usize,
    /// Control centres. The first ones are at the routers of the first backbone pair, one at each.
    pub centres: usize,
    /// Delay of a link between two backbone pairs, one way, microseconds (50 km of fibre).
    pub backbone_us: u32,
    /// Delay of a link between two pairs of a loop, one way, microseconds (30 km).
    pub aggregation_us: u32,
    /// Delay of a link of a chain, one way, microseconds (20 km).
    pub access_us: u32,
    /// What each router adds to a packet, microseconds; 0, or [`MEASURED_ROUTER_US`] for the paper's measured round trip.
    pub router_us: u32,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            backbone_pairs: 20,
            loop_pairs: 3,
            chain_routers: 3,
            centres: 2,
            backbone_us: 250,
            aggregation_us: 150,
            access_us: 100,
            router_us: 0,
        }
    }
}

/// Why no network can be generated from a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShapeFault {
    /// So many pairs make no ring.
    NoRing(usize),
    /// A chain hangs on a pair of a loop, and there is none.
    ChainWithoutLoop,
    /// There is no control centre, or more than routers of the first pair.
    Centres(usize),
    /// More routers than can be numbered.
    TooLarge(usize),
    /// Something takes a packet too long: the option, and microseconds.
    Slow(&'static str, u32),
}

impl fmt::Display for ShapeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRing(pairs) => write!(
                f,
                "{pairs} backbone pairs make no ring; give at least 3 (--backbone-pairs)"
            ),
            Self::ChainWithoutLoop => f.write_str(
                "chains hang on the pairs of loops, and loops of no pair are none; give --loop-pairs 1 or more, or --chain-routers 0",
            ),
            Self::Centres(centres) => write!(
                f,
                "{centres} control centres cannot be connected: the first backbone pair has a place for 1 or 2 (--centres)"
            ),
            Self::TooLarge(routers) => write!(
                f,
                "that makes {routers} routers; at most {ROUTERS_MAX} can be numbered: give fewer pairs or shorter chains"
            ),
            Self::Slow(what, us) => write!(
                f,
                "{us} us are too long for a packet; give at most {DELAY_MAX_US} ({what})"
            ),
        }
    }
}

impl std::error::Error for ShapeFault {}

impl Shape {
    /// How many routers a network of this shape has.
    pub fn routers(&self) -> usize {
        let chains = self.loop_pairs.saturating_mul(self.chain_routers);
        let at_a_pair = 2usize
            .saturating_add(self.loop_pairs.saturating_mul(2))
            .saturating_add(chains);
        self.backbone_pairs.saturating_mul(at_a_pair)
    }

    /// Everything that is wrong with it.
    pub fn faults(&self) -> Vec<ShapeFault> {
        let mut faults = Vec::new();
        if self.backbone_pairs < 3 {
            faults.push(ShapeFault::NoRing(self.backbone_pairs));
        }
        if self.loop_pairs == 0 && self.chain_routers > 0 {
            faults.push(ShapeFault::ChainWithoutLoop);
        }
        if !(1..=2).contains(&self.centres) {
            faults.push(ShapeFault::Centres(self.centres));
        }
        if self.routers() > ROUTERS_MAX {
            faults.push(ShapeFault::TooLarge(self.routers()));
        }
        let delays = [
            ("--backbone-us", self.backbone_us),
            ("--aggregation-us", self.aggregation_us),
            ("--access-us", self.access_us),
            ("router_us", self.router_us),
        ];
        let slow = delays.into_iter().filter(|(_, us)| *us > DELAY_MAX_US);
        faults.extend(slow.map(|(option, us)| ShapeFault::Slow(option, us)));
        faults
    }
}
