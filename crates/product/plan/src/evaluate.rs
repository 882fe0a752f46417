//! The plan of a scenario: every condition, with all networks in service and without each of them.

use bumpless_base::{LinkId, LinkSet};
use serde::Serialize;

use crate::begun;
use crate::demand::{Refusal, TaskSet, Utilisation};
use crate::input::{Channel, Fault, Scenario};
use crate::losses;
use crate::recovery;
use crate::reliability::{budget_for, state_loss, states_per_year};
use crate::resource::{self, Blocking, Kind, Resource};
use crate::response;
use crate::rounding::nanos;

/// What a scenario promises, or why it promises nothing.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// The answer: every state of every channel is in time and whole, as long as losses stay within the
    /// budgets and the machines within their jitter, with all networks and without any one of them.
    pub admitted: bool,
    /// Why not; empty for a yes.
    pub unmet: Vec<Unmet>,
    /// What every channel costs and asks, in the scenario's order.
    pub channels: Vec<ChannelPlan>,
    /// With all networks in service first, then without each of them.
    pub situations: Vec<Situation>,
}

/// A condition that is not met.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Unmet {
    /// The admission test fails.
    Late {
        /// Position among the situations.
        situation: usize,
        /// Position among the situation's resources.
        resource: usize,
    },
    /// More states are lost than is accepted.
    Lossy {
        /// Position among the situations.
        situation: usize,
        /// Position among the channels.
        channel: usize,
        /// What would be enough; `None`: no budget is.
        needed_budget: Option<u32>,
    },
    /// The in-flight limit stops the sender before the first acknowledgement can be back.
    InFlight {
        /// Position among the networks.
        link: usize,
        /// Packets that would have to be in flight.
        needed: u64,
    },
}

/// A channel whatever is in service.
#[derive(Clone, Debug, Serialize)]
pub struct ChannelPlan {
    /// Its name.
    pub name: String,
    /// Packets of its largest state.
    pub packets: u64,
    /// Budget that is planned with.
    pub budget: u32,
    /// States in a year.
    pub states_per_year: f64,
    /// For each network that carries it, what a state takes there.
    pub on: Vec<OnLink>,
}

/// What a state takes on one network.
#[derive(Clone, Debug, Serialize)]
pub struct OnLink {
    /// Position of the network.
    pub link: usize,
    /// Bytes on the wire with all headers, without any loss.
    pub wire_bytes: u64,
    /// Time for them, nanoseconds.
    pub wire_ns: u128,
    /// Time with the whole budget and what else losses may add, C of the admission test, nanoseconds.
    pub budgeted_ns: u128,
    /// Probability that its largest packet is lost.
    pub packet_loss: f64,
}

/// What holds with certain networks in service.
#[derive(Clone, Debug, Serialize)]
pub struct Situation {
    /// Position of the network that is out of service; `None`: none is.
    pub without: Option<usize>,
    /// Each network, and each other thing that channels share.
    pub resources: Vec<ResourcePlan>,
    /// Each channel, in the scenario's order.
    pub channels: Vec<ChannelSituation>,
}

/// One resource in one situation.
#[derive(Clone, Debug, Serialize)]
pub struct ResourcePlan {
    /// What it is.
    pub kind: Kind,
    /// Channels that are judged here; the others only load it.
    pub judged: usize,
    /// Share of it that is asked for in the long run, with headers, budgets and messages.
    pub utilisation: f64,
    /// Share of it that is state bytes alone, as in the paper's table 20.
    pub payload_utilisation: f64,
    /// Why it is too little, and who makes up the load there.
    pub refusal: Option<(Refusal, Vec<Load>)>,
    /// Where it is too little: the channel due in that window that may be held up longest here, and by what.
    pub strictest: Option<(usize, Blocking)>,
    /// By how much all deadlines judged here could be shorter, nanoseconds; zero if it is refused.
    pub spare_ns: u64,
    /// How many times as long every state could take; below one if it is refused.
    pub growth: f64,
}

/// What a channel sends in a window.
#[derive(Clone, Debug, Serialize)]
pub struct Load {
    /// Position of the channel.
    pub channel: usize,
    /// States of it that must have been sent.
    pub states: u64,
    /// Time for them, nanoseconds.
    pub nanos: u128,
}

/// One channel in one situation.
#[derive(Clone, Debug, Serialize)]
pub struct ChannelSituation {
    /// Networks that carry it.
    pub links: usize,
    /// Longest time from publication to acknowledgement, nanoseconds; `None`: not in time, or not
    /// carried.
    pub response_ns: Option<u64>,
    /// What may hold it up besides earlier deadlines, where it is judged strictest.
    pub blocking: Option<Blocking>,
    /// Probability that a packet is lost on all networks on which it is sent.
    pub packet_loss: Option<f64>,
    /// Probability that a state is lost although its budget is used up.
    pub state_loss: Option<f64>,
    /// States lost in a year.
    pub loss_per_year: Option<f64>,
    /// The smallest budget with which no more than accepted are lost, if that is stated and possible.
    pub needed_budget: Option<u32>,
}

/// The plan of `scenario`.
///
/// # Errors
/// Every value for which there is no plan.
pub fn evaluate(scenario: &Scenario) -> Result<Plan, Vec<Fault>> {
    let faults = scenario.faults();
    if !faults.is_empty() {
        return Err(faults);
    }
    let situations: Vec<Situation> = scenario
        .services()
        .map(|service| situation(scenario, service.without, service.up))
        .collect();
    let unmet = unmet(scenario, &situations);
    Ok(Plan {
        admitted: unmet.is_empty(),
        unmet,
        channels: scenario
            .channels
            .iter()
            .map(|channel| channel_plan(scenario, channel))
            .collect(),
        situations,
    })
}

/// Whether `scenario` is admitted, without anything that is only worth telling: for searches.
pub fn is_admitted(scenario: &Scenario) -> bool {
    if !scenario.faults().is_empty() {
        return false;
    }
    let in_time = |up: LinkSet| {
        let resources = resource::different_resources(scenario, up);
        resources.iter().all(|r| r.set().is_admitted())
    };
    (0..scenario.links.len()).all(|link| in_flight_needed(scenario, link).is_none())
        && losses::are_accepted(scenario)
        && scenario
            .different_services()
            .all(|service| in_time(service.up))
}

fn unmet(scenario: &Scenario, situations: &[Situation]) -> Vec<Unmet> {
    let mut unmet = Vec::new();
    for (at, situation) in situations.iter().enumerate() {
        for (position, resource) in situation.resources.iter().enumerate() {
            if resource.refusal.is_some() {
                unmet.push(Unmet::Late {
                    situation: at,
                    resource: position,
                });
            }
        }
        for (position, (channel, state)) in scenario
            .channels
            .iter()
            .zip(&situation.channels)
            .enumerate()
        {
            let over = channel.accepted_loss_per_year.zip(state.loss_per_year);
            if over.is_some_and(|(accepted, lost)| lost > accepted) {
                let needed_budget = state.needed_budget;
                unmet.push(Unmet::Lossy {
                    situation: at,
                    channel: position,
                    needed_budget,
                });
            }
        }
    }
    let links = 0..scenario.links.len();
    unmet.extend(links.filter_map(|link| {
        in_flight_needed(scenario, link).map(|needed| Unmet::InFlight { link, needed })
    }));
    unmet
}

/// Packets that must be in flight on `link` lest the sender stand still between acknowledgements, if that is
/// more than the limit. A fifth of the limit may be unacknowledged at the receiver (T-15).
fn in_flight_needed(scenario: &Scenario, link: usize) -> Option<u64> {
    let limit = u64::from(scenario.packets.in_flight_max);
    let network = &scenario.links[link];
    let here = |channel: &&Channel| channel.links.contains(LinkId(link as u8));
    let largest = scenario
        .channels
        .iter()
        .filter(here)
        .map(|channel| channel.size)
        .max()?;
    let packet = scenario.packets.largest_on(network, largest).max(1);
    let bits = u128::from(network.longest_round_trip().as_nanos()) * u128::from(network.bandwidth);
    let way = u64::try_from(bits / (8_000_000_000 * u128::from(packet))).unwrap_or(u64::MAX);
    // What is sent but not acknowledged: on the way, in the burst, and up to a fifth at the receiver.
    let burst = network.burst() / packet;
    let needed = way
        .saturating_add(burst)
        .saturating_add(2)
        .saturating_mul(5)
        .div_ceil(4);
    let most: u64 = scenario
        .channels
        .iter()
        .filter(here)
        .map(|c| scenario.packets.count(c.size))
        .sum();
    (needed.min(most) > limit).then_some(needed)
}

fn situation(scenario: &Scenario, without: Option<usize>, up: LinkSet) -> Situation {
    let resources = resource::resources(scenario, up);
    let mut channels: Vec<ChannelSituation> = scenario
        .channels
        .iter()
        .map(|channel| channel_loss(scenario, channel, up))
        .collect();
    let mut plans = Vec::new();
    for resource in &resources {
        let plan = resource_plan(scenario, resource);
        let worst = match plan.refusal {
            None => response::worst_cases(&begun::with_begun(scenario, up, &resources, resource)),
            Some(_) => vec![None; resource.tasks.len()],
        };
        for (at, &channel) in resource.channels.iter().enumerate() {
            if let Some(blocking) = resource.blocking[at] {
                note(&mut channels[channel], worst[at], blocking);
            }
        }
        plans.push(plan);
    }
    // Late on one resource is late.
    for (resource, plan) in resources.iter().zip(&plans) {
        if plan.refusal.is_some() {
            let judged = resource.channels.iter().zip(&resource.blocking);
            judged
                .filter(|(_, blocking)| blocking.is_some())
                .for_each(|(&channel, _)| {
                    channels[channel].response_ns = None;
                });
        }
    }
    Situation {
        without,
        resources: plans,
        channels,
    }
}

fn note(channel: &mut ChannelSituation, response: Option<u64>, blocking: Blocking) {
    channel.response_ns = channel.response_ns.max(response);
    if channel
        .blocking
        .is_none_or(|known| known.total() < blocking.total())
    {
        channel.blocking = Some(blocking);
    }
}

fn resource_plan(scenario: &Scenario, resource: &Resource) -> ResourcePlan {
    let set = resource.set();
    let refusal = set
        .admit()
        .err()
        .map(|refusal| (refusal, loads(resource, &refusal)));
    let payload = resource
        .channels
        .iter()
        .zip(&resource.tasks)
        .map(|(&at, task)| {
            let size = u128::from(scenario.channels[at].size);
            nanos(size, resource.rate) as f64 / task.period as f64
        });
    ResourcePlan {
        kind: resource.kind,
        judged: resource.blocking.iter().flatten().count(),
        utilisation: Utilisation::of(&set).value(),
        payload_utilisation: if resource.rate > 0 {
            payload.sum()
        } else {
            0.0
        },
        spare_ns: if refusal.is_some() {
            0
        } else {
            response::spare(&set, None)
        },
        growth: growth(resource),
        strictest: refusal
            .as_ref()
            .and_then(|(refusal, _)| strictest(resource, refusal.window_ns?)),
        refusal,
    }
}

fn strictest(resource: &Resource, window: u64) -> Option<(usize, Blocking)> {
    let channels = resource.channels.iter().zip(&resource.tasks);
    let due = channels
        .zip(&resource.blocking)
        .filter(|((_, task), _)| task.deadline <= window);
    due.filter_map(|((channel, _), blocking)| Some((*channel, (*blocking)?)))
        .max_by_key(|(_, blocking)| blocking.total())
}

/// Parts of a thousand in which [`growth`] is searched.
const PARTS: u64 = 1_000;

fn growth(resource: &Resource) -> f64 {
    let fits = |parts: u64| {
        let scale =
            |cost: u64| u64::try_from(u128::from(cost) * u128::from(parts) / u128::from(PARTS));
        let tasks: Vec<_> = resource
            .tasks
            .iter()
            .map(|task| crate::demand::Task {
                cost: scale(task.cost).unwrap_or(u64::MAX),
                left: 0,
                ..*task
            })
            .collect();
        TaskSet::new(&tasks, &resource.interference)
            .with_time_left()
            .is_admitted()
    };
    response::largest(1_000 * PARTS, fits) as f64 / PARTS as f64
}

/// Who makes up the load of the window that is too short, most first.
fn loads(resource: &Resource, refusal: &Refusal) -> Vec<Load> {
    let Some(window) = refusal.window_ns else {
        return Vec::new();
    };
    let due = resource.channels.iter().zip(&resource.tasks);
    let mut loads: Vec<Load> = due
        .filter(|(_, task)| task.deadline <= window)
        .map(|(&channel, task)| {
            let states = (window - task.deadline) / task.period + 1;
            Load {
                channel,
                states,
                nanos: u128::from(states) * u128::from(task.cost),
            }
        })
        .collect();
    loads.sort_by_key(|load| std::cmp::Reverse(load.nanos));
    loads
}

fn channel_plan(scenario: &Scenario, channel: &Channel) -> ChannelPlan {
    let packets = &scenario.packets;
    let links = scenario.links.iter().enumerate();
    let carried = links.filter(|(at, _)| channel.links.contains(LinkId(*at as u8)));
    let on = carried.map(|(at, link)| {
        let wire_bytes = packets.state_on(link, channel.size);
        let budgeted = recovery::state_bytes(scenario, channel, link);
        OnLink {
            link: at,
            wire_bytes,
            wire_ns: nanos(wire_bytes.into(), link.bandwidth),
            budgeted_ns: resource::paced(
                scenario,
                LinkSet::only(LinkId(at as u8)),
                nanos(budgeted, link.bandwidth),
            ),
            packet_loss: link.loss.of_frame(packets.frame_on(link, channel.size)),
        }
    });
    ChannelPlan {
        name: channel.name.clone(),
        packets: packets.count(channel.size),
        budget: channel.budget,
        states_per_year: states_per_year(channel.period),
        on: on.collect(),
    }
}

fn channel_loss(scenario: &Scenario, channel: &Channel, up: LinkSet) -> ChannelSituation {
    let packets = scenario.packets.count(channel.size);
    let packet_loss = losses::of_packet(scenario, channel, up);
    let state_loss = packet_loss.map(|p| state_loss(packets, channel.budget, p));
    let needed_budget = packet_loss
        .zip(channel.accepted_loss_per_year)
        .and_then(|(p, accepted)| budget_for(packets, p, channel.period, accepted));
    ChannelSituation {
        links: channel.links.intersection(up).len(),
        response_ns: None,
        blocking: None,
        packet_loss,
        state_loss,
        loss_per_year: state_loss.map(|lost| lost * states_per_year(channel.period)),
        needed_budget,
    }
}
