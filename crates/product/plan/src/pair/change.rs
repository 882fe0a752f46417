//! From one configuration of a pair to another while it runs (first paper, 7.4.2).

use bumpless_base::{LinkSet, NodeId};
use bumpless_config::Config;
use serde::Serialize;

use super::scenario::{scenario_on, used};
use super::{Verdict, verdict};
use crate::change::{Order, order};
use crate::input::Machine;

/// What a change of configuration takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairChange {
    /// The answers for the configuration that is and for the one that is to be.
    pub verdicts: (Verdict, Verdict),
    /// Sections other than applications that differ: with these, both nodes have to be started anew.
    pub restart: Vec<&'static str>,
    /// The order in which applications change, so that no network is overloaded on the way; `None` where
    /// there is none to be had: sections differ that need a restart, or one of the ends is no yes.
    pub order: Option<Order>,
}

/// How to get from `old` to `new`, on nodes that take so long for a transfer as `machine` says.
pub fn change(old: &Config, new: &Config, machine: Machine) -> PairChange {
    let verdicts = (verdict(old, machine), verdict(new, machine));
    let restart = bumpless_config::restart(old, new);
    let ordered = restart.is_empty() && verdicts == (Verdict::Yes, Verdict::Yes);
    PairChange {
        verdicts,
        order: ordered.then(|| applications(old, new, machine)),
        restart,
    }
}

fn applications(old: &Config, new: &Config, machine: Machine) -> Order {
    let nodes = || (0..old.nodes.len()).map(|at| NodeId(at as u8));
    // Every set on the way must have the same networks, in the same places.
    let links: Vec<LinkSet> = nodes()
        .map(|node| used(old, node).union(used(new, node)))
        .collect();
    let of = |config: &Config| -> Vec<_> {
        let each = nodes().zip(&links);
        each.map(|(node, &links)| scenario_on(config, node, machine, links))
            .collect()
    };
    order(&of(old), &of(new))
}
