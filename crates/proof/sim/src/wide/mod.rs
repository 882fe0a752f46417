//! A wide-area network in the world: its packets hop by hop, its routes, its outages (`spec/simulation.md`, S-20 to S-22).
//!
//! | module | owns |
//! |---|---|
//! | `links` | what each link is like at the moment, and what comes over it |
//! | `tables` | where a node sends what is for an end; when routing daemons find out |
//! | `forward` | packets on their way |
//! | `counts` | what became of them |

mod counts;
mod forward;
mod links;
mod tables;

use std::sync::Arc;

use bumpless_base::Duration;
use bumpless_wan::{NodeId, Step, Topology};

pub use self::counts::{Cause, Counts};
pub use self::forward::{Forwarding, Hop, Load};

/// What decides over which link a packet leaves (U-10, U-12, U-13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// The first of the nearest links, whether or not it carries anything: nobody is told of an outage.
    Fixed,
    /// One of the nearest links by the packet's addresses and ports, at each node anew; nobody is told.
    EqualCost,
    /// The first of the nearest links that carry packets, as a routing daemon on each router knows it: so long after a link
    /// between routers has died or carries again.
    Daemon {
        /// After it has died.
        failure: Duration,
        /// After it carries again.
        healing: Duration,
    },
}

impl Routing {
    /// A gap of 1.86 s was seen with BIRD on all 340 routers when one of them was silently dead (BFD of 300 ms, three that are
    /// missed, then flooding and a new tree). How soon they use a link again was not measured: 3 s are two hellos of a second
    /// and one for what the routers then tell each other.
    pub const DAEMON: Self = Self::Daemon {
        failure: Duration::from_millis(1_860),
        healing: Duration::from_millis(3_000),
    };

    /// The longest time until routers know how their links are, if they are told.
    pub fn found_after(self) -> Duration {
        match self {
            Self::Daemon { failure, healing } => failure.max(healing),
            Self::Fixed | Self::EqualCost => Duration::ZERO,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::EqualCost => "equal-cost",
            Self::Daemon { .. } => "ospf",
        }
    }
}

/// Where everybody is.
#[derive(Clone, Debug)]
pub struct Places {
    /// The controllers.
    pub nodes: Vec<NodeId>,
    /// All witnesses.
    pub witness: NodeId,
    /// All field devices.
    pub field: NodeId,
}

/// The network that a world has in place of its first one.
#[derive(Clone, Debug)]
pub struct Wide {
    /// Its nodes and links.
    pub topology: Arc<Topology>,
    /// Who is at which of them.
    pub places: Places,
    /// How packets find their way.
    pub routing: Routing,
    /// Its outages and impairments, from the world's beginning on.
    pub steps: Vec<Step>,
    /// How long every other network takes from end to end, nanoseconds; messages to field devices and back then go over
    /// that, too.
    pub backup: Option<u64>,
}
