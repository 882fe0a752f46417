//! `bumpless.plan/1`; spec/plan.md says what each field means.

use serde_json::{Value, json};

use super::{Report, words};
use crate::evaluate::{Plan, ResourcePlan, Situation};
use crate::input::{Loss, Scenario};
use crate::pair::Sender;
use crate::resource::Kind;
use crate::variation::Variation;

/// Schema name and version.
const SCHEMA: &str = "bumpless.plan/1";

pub fn render(report: &Report) -> Value {
    let senders: Vec<Value> = report
        .plan
        .senders
        .iter()
        .enumerate()
        .map(|(at, one)| sender(report, at, one))
        .collect();
    let not_carried = words::not_carried(&report.plan);
    let not_carried = not_carried
        .into_iter()
        .map(|(without, channel)| json!({"without": without, "channel": channel}));
    let not_carried = not_carried.collect::<Vec<_>>();
    json!({
        "schema": SCHEMA,
        "pair": report.pair,
        "verdict": report.plan.verdict,
        "reasons": words::reasons(&report.plan),
        "not_carried": not_carried,
        "senders": senders,
        "distances": super::distance::json(&report.plan.distances),
    })
}

fn sender(report: &Report, at: usize, sender: &Sender) -> Value {
    let scenario = &sender.scenario;
    let plan = sender.plan.as_ref().ok();
    let advice = report.advice[at].iter().map(|advice| {
        json!({
            "text": words::advice(sender, advice),
            "change": change(scenario, &advice.change),
            "distance": advice.distance,
        })
    });
    let headroom = report.headroom[at].as_ref().map(|room| {
        let channels = scenario.channels.iter().zip(&room.channels);
        let channels = channels.map(|(channel, room)| {
            json!({
                "name": channel.name,
                "size": room.size,
                "size_budget": room.size_budget,
                "deadline_ns": room.deadline_ns,
                "period_ns": room.period_ns,
                "period_deadline_ns": room.period_deadline_ns,
            })
        });
        json!({
            "growth": room.growth,
            "spare_ns": room.spare_ns,
            "channels": channels.collect::<Vec<_>>(),
        })
    });
    json!({
        "nodes": sender.nodes,
        "partners": sender.partners,
        "memory": {"needed_bytes": sender.memory.0, "limit_bytes": sender.memory.1},
        "verdict": sender.verdict(),
        "reasons": words::of_sender(sender),
        "unknown": sender.plan.as_ref().err().cloned().unwrap_or_default(),
        "packets": {
            "payload_bytes": scenario.packets.payload,
            "header_bytes": scenario.packets.header,
            "security_bytes": scenario.packets.security,
            "in_flight_max": scenario.packets.in_flight_max,
        },
        "machine": scenario.machine,
        "networks": networks(scenario),
        "channels": channels(scenario, plan),
        "situations": plan.map(|plan| situations(scenario, plan)),
        "advice": advice.collect::<Vec<_>>(),
        "headroom": headroom,
    })
}

fn networks(scenario: &Scenario) -> Vec<Value> {
    let network = |link: &crate::input::Link| {
        let (bits, frames) = match link.loss {
            Loss::BitErrors(rate) => (Some(rate), None),
            Loss::Frames(share) => (None, Some(share)),
        };
        let background = link
            .background
            .iter()
            .map(|message| json!({"bytes": message.bytes, "period_ns": message.period.as_nanos()}));
        json!({
            "name": link.name,
            "bandwidth_bit_s": link.bandwidth,
            "overhead_bytes": link.frame_overhead,
            "round_trip_min_ns": link.round_trip.0.as_nanos(),
            "round_trip_max_ns": link.longest_round_trip().as_nanos(),
            "burst_bytes": link.burst(),
            "other_frame_bytes": link.other_frame,
            "bit_error_rate": bits,
            "frame_loss": frames,
            "background": background.collect::<Vec<_>>(),
        })
    };
    scenario.links.iter().map(network).collect()
}

fn channels(scenario: &Scenario, plan: Option<&Plan>) -> Vec<Value> {
    let name = |link: usize| &scenario.links[link].name;
    let channel = |(at, channel): (usize, &crate::input::Channel)| {
        let planned = plan.map(|plan| &plan.channels[at]);
        let on = planned.iter().flat_map(|planned| &planned.on).map(|on| {
            json!({
                "network": name(on.link),
                "wire_bytes": on.wire_bytes,
                "wire_ns": whole(on.wire_ns),
                "budgeted_ns": whole(on.budgeted_ns),
                "packet_loss": on.packet_loss,
            })
        });
        json!({
            "name": channel.name,
            "size": channel.size,
            "packets": scenario.packets.count(channel.size),
            "period_ns": channel.period.as_nanos(),
            "deadline_ns": channel.deadline.as_nanos(),
            "budget": channel.budget,
            "accepted_loss_per_year": channel.accepted_loss_per_year,
            "states_per_year": crate::reliability::states_per_year(channel.period),
            "distribution": channel.distribution.name(),
            "networks": channel.links.iter().map(|id| name(usize::from(id.0))).collect::<Vec<_>>(),
            "on": on.collect::<Vec<_>>(),
        })
    };
    scenario.channels.iter().enumerate().map(channel).collect()
}

fn situations(scenario: &Scenario, plan: &Plan) -> Vec<Value> {
    let situation = |situation: &Situation| {
        let resources = situation.resources.iter();
        let resources = resources.map(|resource| resource_plan(scenario, plan, resource));
        let channels = scenario.channels.iter().zip(&situation.channels);
        let channels = channels.map(|(channel, state)| {
            json!({
                "name": channel.name,
                "networks": state.links,
                "response_ns": state.response_ns,
                "blocking": state.blocking,
                "packet_loss": state.packet_loss,
                "state_loss": state.state_loss,
                "loss_per_year": state.loss_per_year,
                "needed_budget": state.needed_budget,
            })
        });
        json!({
            "without": situation.without.map(|link| &scenario.links[link].name),
            "resources": resources.collect::<Vec<_>>(),
            "channels": channels.collect::<Vec<_>>(),
        })
    };
    plan.situations.iter().map(situation).collect()
}

fn resource_plan(scenario: &Scenario, plan: &Plan, resource: &ResourcePlan) -> Value {
    let networks = match resource.kind {
        Kind::Networks(links) => links
            .iter()
            .map(|id| scenario.links[usize::from(id.0)].name.as_str())
            .collect(),
        Kind::Processor => Vec::new(),
    };
    let refusal = resource.refusal.as_ref().map(|(refusal, loads)| {
        let loads = loads.iter().map(|load| {
            json!({
                "channel": plan.channels[load.channel].name,
                "states": load.states,
                "ns": whole(load.nanos),
            })
        });
        let excess = refusal.demand_ns.zip(refusal.window_ns);
        json!({
            "condition": refusal.condition,
            "window_ns": refusal.window_ns,
            "demand_ns": refusal.demand_ns.map(whole),
            "excess_ns": excess.map(|(demand, window)| whole(demand.saturating_sub(window.into()))),
            "loads": loads.collect::<Vec<_>>(),
        })
    });
    json!({
        "kind": match resource.kind {
            Kind::Networks(_) => "networks",
            Kind::Processor => "processor",
        },
        "networks": networks,
        "judged": resource.judged,
        "utilisation": resource.utilisation,
        "payload_utilisation": resource.payload_utilisation,
        "spare_ns": resource.spare_ns,
        "growth": resource.growth,
        "refusal": refusal,
    })
}

/// The change with names instead of positions.
fn change(scenario: &Scenario, change: &Variation) -> Value {
    let mut value = serde_json::to_value(change).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        let position = |value: Value| value.as_u64().and_then(|at| usize::try_from(at).ok());
        if let Some(at) = fields.remove("channel").and_then(position) {
            fields.insert("channel".into(), scenario.channels[at].name.clone().into());
        }
        if let Some(at) = fields.remove("link").and_then(position) {
            fields.insert("network".into(), scenario.links[at].name.clone().into());
        }
    }
    value
}

fn whole(nanos: u128) -> u64 {
    u64::try_from(nanos).unwrap_or(u64::MAX)
}
