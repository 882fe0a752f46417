//! What reception costs and how much of a flood is borne, as `plan`, `check` and `guard check` tell it.

use bumpless_base::NodeId;
use bumpless_config::{Config, ReceptionGuard};
use bumpless_node::reception::budgets;
use bumpless_plan::reception::cost::{Costs, DROPPED_NS, Load, PACKET_NS};
use serde_json::{Value, json};

/// What packets are reckoned with, and where that comes from.
pub fn source(costs: &Costs) -> String {
    let of = |value: u64, usual: (u64, &'static str)| match value == usual.0 {
        true => usual.1,
        false => "as the file says",
    };
    let packet = of(costs.packet_ns, (PACKET_NS, "an estimate"));
    let dropped = of(
        costs.dropped_ns,
        (DROPPED_NS, "measured on a virtual machine"),
    );
    format!(
        "a packet let in takes {} ns ({packet}), one dropped {} ns ({dropped})",
        costs.packet_ns, costs.dropped_ns
    )
}

/// The fields of a load, as spec/reception.md has them (V-93).
pub fn json(load: &Load, costs: &Costs) -> Value {
    json!({
        "packet_ns": costs.packet_ns,
        "dropped_ns": costs.dropped_ns,
        "source": source(costs),
        "reserve_percent": costs.reserve_percent,
        "ring": costs.ring,
        "burst": load.burst,
        "ring_ends_it": load.ring_ends_it,
        "flows_per_s": load.flows_per_s,
        "known_flows_per_s": load.known_per_s,
        "budgets_per_s": load.budgets_per_s,
        "budgets_percent_of_processor": load.budgets_percent(),
        "flood_per_s": load.flood_per_s,
        "flood_unguarded_per_s": load.flood_unguarded_per_s,
        "held_up_ns": load.held_up_ns,
    })
}

/// Every node of a configuration with what its reception costs.
fn nodes(config: &Config) -> impl Iterator<Item = (&str, Load)> {
    let ids = (0u8..).map(NodeId);
    config
        .nodes
        .iter()
        .zip(ids)
        .map(|(node, id)| (node.name.as_str(), budgets::load(config, id)))
}

/// For each node, as JSON.
pub fn of_nodes(config: &Config) -> Value {
    let costs = budgets::costs(config);
    let is_guarded = config.reception.guard != ReceptionGuard::Off;
    let one = |(name, load): (&str, Load)| {
        let mut told = json(&load, &costs);
        told["node"] = name.into();
        told["guarded"] = is_guarded.into();
        told["registered_percent_of_processor"] = registered(config).into();
        told
    };
    nodes(config).map(one).collect()
}

/// That the plan takes threads to be in time sooner than they are under a flood.
fn beyond_jitter(load: &Load, config: &Config) -> Option<String> {
    let jitter = config.plan.jitter.as_nanos();
    (load.flood_per_s > 0 && load.held_up_ns > jitter).then(|| {
        format!(
            "  states may be late meanwhile: `jitter_ms` in [plan] is {:.3}, and {:.3} would cover it",
            jitter as f64 / 1e6,
            (load.held_up_ns + jitter) as f64 / 1e6
        )
    })
}

/// The share of a processor that is set aside for packets of programs that register, percent.
fn registered(config: &Config) -> u64 {
    config
        .registration
        .as_ref()
        .map_or(0, |it| it.processor_percent)
}

/// For each node, in lines.
pub fn lines(config: &Config) -> Vec<String> {
    let costs = budgets::costs(config);
    let mut lines = Vec::new();
    for (name, load) in nodes(config) {
        lines.push(format!("Reception of {name}:"));
        let told = load.lines(&costs).into_iter();
        lines.extend(told.map(|line| format!("  {line}")));
        lines.extend(beyond_jitter(&load, config));
    }
    lines.push(format!("  {}", source(&costs)));
    if let Some(it) = &config.registration {
        lines.push(format!(
            "  programs of group {} may register {} sockets, whose packets take {} % of a processor besides",
            it.group, it.flows, it.processor_percent
        ));
    }
    if config.reception.guard == ReceptionGuard::Off {
        lines.push(
            "  [reception] switches the guard off: what is borne is what is borne without it"
                .to_owned(),
        );
    }
    lines
}
