//! Budgets of a node's networks: which flows of its own it has on which of the computer's interfaces, and what they cost.

use bumpless_base::NodeId;
use bumpless_capture::interfaces;
use bumpless_config::Config;
use bumpless_guard::Setup;
use bumpless_plan::reception as plan;
use bumpless_plan::reception::cost::{Budgets, Costs, Load};
use bumpless_reception::{NamedFlow, Rest, rates, setup};

/// The interfaces with this node's addresses, the loopback one left out: it has no driver, and others share it.
pub fn interfaces_of(config: &Config, node: NodeId) -> Vec<String> {
    let own = &config.nodes[usize::from(node.0)].addresses;
    let has = |address: std::net::IpAddr| own.iter().flatten().any(|it| it.ip() == address);
    let all = interfaces().unwrap_or_default().into_iter();
    let mine = all.filter(|it| it.addresses.iter().any(|&address| has(address)));
    mine.map(|it| it.name).collect()
}

/// What is asked of the guard of `node` with this configuration.
pub fn setup_of(config: &Config, node: NodeId) -> Setup {
    let (flows, rest) = planned(config, node);
    setup(&flows, &rest)
}

/// The node's flows, and budgets for the rest.
pub fn planned(config: &Config, node: NodeId) -> (Vec<NamedFlow>, Rest) {
    let flow = |it: plan::Expected| NamedFlow {
        name: it.name,
        matches: it.matches,
        rate: it.rate,
    };
    let flows: Vec<_> = plan::expected(config, node).into_iter().map(flow).collect();
    let rest = Rest {
        unregistered: config.reception.other_per_s,
        ..Rest::USUAL
    };
    (flows, rest)
}

/// With what reception is reckoned.
pub const fn costs(config: &Config) -> Costs {
    Costs {
        packet_ns: config.reception.packet_ns,
        dropped_ns: config.reception.dropped_ns,
        reserve_percent: config.reception.reserve_percent,
        ring: config.reception.ring,
    }
}

/// What reception costs a node, with each of its networks on an interface of its own: budgets for packets from anywhere are used on each of
/// them, those of senders on the one on which these are (V-92).
pub fn load(config: &Config, node: NodeId) -> Load {
    let (flows, rest) = planned(config, node);
    let addresses = config.nodes[usize::from(node.0)].addresses.iter();
    let networks = addresses.flatten().count();
    let (from_anywhere, from_known) = rates(&flows);
    let budgets = Budgets {
        interfaces: 1,
        from_known: &from_known,
        from_anywhere: &from_anywhere.repeat(networks),
        rest: &rest.rates().repeat(networks),
    };
    Load::new(&costs(config), &budgets)
}
