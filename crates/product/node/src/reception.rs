//! What is told of reception under load: the same of a node and of a host's guard. [`guard`] is the node's own, and [`placement`] where
//! its packets are worked off.

pub mod budgets;
pub mod guard;
pub mod placement;
pub mod programs;

use bumpless_guard::{FlowId, Setup};
use bumpless_reception::{InterfaceReport, name_of_rest, terms_of};
use serde_json::{Value, json};

/// The name of a flow, where `names` are those of the registered ones.
pub fn name(flow: FlowId, names: &[String]) -> &str {
    match flow {
        FlowId::Registered(at) => names.get(usize::from(at)).map_or("", String::as_str),
        other => name_of_rest(other).unwrap_or_default(),
    }
}

/// Interfaces with their flows, budgets and counts, as status shows them.
pub fn interfaces(reports: &[InterfaceReport], setup: &Setup, names: &[String]) -> Vec<Value> {
    let flow = |(flow, counts): &(FlowId, bumpless_reception::Counts)| {
        let rate = terms_of(setup, *flow).rate;
        json!({
            "name": name(*flow, names),
            "registered": name_of_rest(*flow).is_none(),
            "capacity": rate.map_or(0, |rate| rate.capacity),
            "period_ms": rate.map(|rate| rate.period.as_millis_f64()),
            "passed": counts.passed,
            "dropped": {"capacity": counts.capacity, "closed": counts.closed},
        })
    };
    let interface = |it: &InterfaceReport| {
        json!({
            "name": it.name,
            "mode": it.mode.map(|mode| mode.name()),
            "weakness": it.weakness,
            "flows": it.flows.iter().map(flow).collect::<Vec<_>>(),
        })
    };
    reports.iter().map(interface).collect()
}

/// A sentence for each interface that is guarded less than it could be.
pub fn weaknesses(reports: &[InterfaceReport]) -> Vec<String> {
    let one = |it: &InterfaceReport| {
        let weakness = it.weakness.as_ref()?;
        Some(match it.mode {
            Some(mode) => format!(
                "interface {} is guarded in {} mode: {weakness}",
                it.name,
                mode.name()
            ),
            None => format!("interface {} is not guarded: {weakness}", it.name),
        })
    };
    reports.iter().filter_map(one).collect()
}
