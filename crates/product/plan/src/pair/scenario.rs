//! From a configuration to what one node may have to send.

use bumpless_base::{Duration, LinkId, LinkSet, NodeId};
use bumpless_config::{self as config, Application, Config};

use super::background;
use crate::input::{Burst, Channel, Link, Loss, Machine, Packets, Scenario};
use crate::losses::smallest_budget;

/// Ethernet's preamble and delimiter and the gap between frames, bytes: an error there hurts no frame.
const GAP: u32 = 8 + 12;

/// Everything that `node` may have to send: the states of all groups of which it is a candidate.
///
/// Only networks that carry one of these states are part of it, in the configuration's order.
pub fn scenario(config: &Config, node: NodeId, machine: Machine) -> Scenario {
    scenario_on(config, node, machine, used(config, node))
}

/// The applications whose states `node` may have to send.
pub(super) fn applications(config: &Config, node: NodeId) -> impl Iterator<Item = &Application> {
    let candidates = |app: &Application| &config.groups[app.group].candidates;
    let all = config.applications.iter();
    all.filter(move |app| candidates(app).contains(&node))
}

/// The networks that carry a state which `node` may have to send.
pub(super) fn used(config: &Config, node: NodeId) -> LinkSet {
    applications(config, node).fold(LinkSet::EMPTY, |used, app| used.union(app.networks))
}

/// As [`scenario`], with the networks `used`.
pub(super) fn scenario_on(
    config: &Config,
    node: NodeId,
    machine: Machine,
    used: LinkSet,
) -> Scenario {
    let applications: Vec<&Application> = applications(config, node).collect();
    let partners = config.partners(node).len().max(1) as u32;
    // Backup here, a partner of several groups may be primary there.
    let groups_of = |id: &NodeId| {
        let groups = config.groups.iter();
        groups.filter(|group| group.candidates.contains(id)).count()
    };
    let both_ways = config.partners(node).iter().any(|id| groups_of(id) > 1);
    let links = used.iter().map(|id| link(config, id, partners, both_ways));
    let mut scenario = Scenario {
        links: links.collect(),
        packets: Packets {
            payload: config.transfer.payload_size.into(),
            header: config.transfer.version.header_len().into(),
            security: 0,
            in_flight_max: config.transfer.in_flight_max,
        },
        machine: Machine {
            jitter_ns: config.plan.jitter.as_nanos(),
            ..machine
        },
        channels: applications.iter().map(|app| channel(app, used)).collect(),
    };
    for (at, app) in applications.iter().enumerate() {
        let budget = app.retransmissions.map(u32::from);
        let budget = budget.unwrap_or_else(|| smallest_budget(&scenario, at));
        scenario.channels[at].budget = budget;
        scenario.channels[at].budget_follows = app.retransmissions.is_none();
    }
    for (at, id) in used.iter().enumerate() {
        scenario.links[at].background = background::of(config, node, id, &scenario);
    }
    scenario
}

/// The network `id`; `both_ways` says that partners may have states to send, too.
fn link(config: &Config, id: LinkId, partners: u32, both_ways: bool) -> Link {
    let network = &config.networks[usize::from(id.0)];
    let overhead = u32::from(network.message_overhead());
    let packet = overhead + u32::from(network.message_max());
    Link {
        name: network.name.clone(),
        bandwidth: network.bandwidth,
        frame_overhead: overhead,
        gap: GAP,
        round_trip: (Duration::ZERO, network.round_trip_max),
        answers_behind: both_ways,
        burst: Burst::Paced { packet, partners },
        other_frame: network.other_traffic,
        loss: match network.loss {
            config::Loss::BitErrors(rate) => Loss::BitErrors(rate),
            config::Loss::Frames(share) => Loss::Frames(share),
        },
        background: Vec::new(),
    }
}

fn channel(app: &Application, used: LinkSet) -> Channel {
    let links = used.iter().enumerate();
    let carried = links.filter(|(_, id)| app.networks.contains(*id));
    Channel {
        id: app.channel,
        name: app.name.clone(),
        size: app.state_max,
        period: app.period,
        deadline: app.deadline,
        budget: 0,
        budget_follows: false,
        accepted_loss_per_year: app.accepted_loss_per_year,
        links: carried.map(|(at, _)| LinkId(at as u8)).collect(),
        distribution: app.distribution,
    }
}
