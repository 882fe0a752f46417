//! Kept promise: drawn channel sets, what the plan says of them, and what the shipped cores make of them.
//!
//! A set that the plan admits must meet every deadline while losses stay within its budgets; for a set that it
//! refuses, a miss is looked for (`spec/plan.md`, "Kept promise"). Sender, receiver, port and pacer are the shipped
//! ones; only wires and clock are of this module. Everything comes from the seed.
//!
//! | module | owns |
//! |---|---|
//! | `cores` | what the world is built around |
//! | `draw` | a seed's channels and networks |
//! | `world` | one sender and one receiver in virtual time |
//! | `wire` | what a network does to packets |
//! | `flood` | what comes besides, and what it takes of the processors |
//! | `losses` | which packets and acknowledgements fall, within the budgets |
//! | `start` | when states are published |
//! | `judge` | what is tried on a set, and what came of it |
//! | `search`, `climb` | the miss that a refusal foretells |
//! | `tally` | what came of many |

mod climb;
mod cores;
mod draw;
mod flood;
mod judge;
mod losses;
mod search;
mod start;
mod tally;
mod wire;
mod world;

pub use judge::{Broken, Judged, Verdict, judge, judge_flooded};
pub use tally::{Row, Tally};

use bumpless_plan::{Burst, Scenario};

/// What the plan is told; anything but [`Told::Truth`] makes it wrong, so that a test can show that
/// the judge finds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Told {
    /// What the world is.
    #[default]
    Truth,
    /// No packet is ever lost.
    NoBudget,
    /// Nothing is ever in the way, and answers take no time.
    NoBlocking,
    /// Packets have no headers.
    NoHeaders,
    /// Floods take no time.
    NoFloods,
    /// Floods are a quarter of what they are.
    QuarterOfFloods,
}

impl Told {
    fn of(self, truth: &Scenario) -> Scenario {
        let mut told = truth.clone();
        match self {
            Self::Truth | Self::NoFloods | Self::QuarterOfFloods => {}
            Self::NoBudget => told
                .channels
                .iter_mut()
                .for_each(|channel| channel.budget = 0),
            Self::NoBlocking => {
                told.machine.jitter_ns = 0;
                for link in &mut told.links {
                    (link.burst, link.other_frame) = (Burst::Fixed(0), 0);
                    link.round_trip = Default::default();
                }
            }
            Self::NoHeaders => {
                told.packets.header = 0;
                told.links
                    .iter_mut()
                    .for_each(|link| (link.frame_overhead, link.gap) = (0, 0));
            }
        }
        told
    }
}
