//! What is told of reception under load: the same of a node and of a host's guard. [`guard`] is the node's own, and [`placement`] where
//! its packets are worked off.

pub mod budgets;
pub mod guard;
pub mod placement;
pub mod programs;

use std::collections::{BTreeSet, HashMap};

use bumpless_guard::{FlowId, Match, Setup, Transport};
use bumpless_net_linux::sockets::{Queue, queues};
use bumpless_reception::{InterfaceReport, name_of_rest, terms_of};
use serde_json::{Value, json};

/// The name of a flow, where `names` are those of the registered ones.
pub fn name(flow: FlowId, names: &[String]) -> &str {
    match flow {
        FlowId::Registered(at) => names.get(usize::from(at)).map_or("", String::as_str),
        other => name_of_rest(other).unwrap_or_default(),
    }
}

/// Interfaces with their flows, budgets and counts, and what waits in the flows' sockets, as status shows them.
pub fn interfaces(reports: &[InterfaceReport], setup: &Setup, names: &[String]) -> Vec<Value> {
    let queues = queues().ok();
    let socket = |flow: FlowId| match flow {
        FlowId::Registered(at) => socket(queues.as_ref()?, setup, at),
        _ => None,
    };
    let flow = |(flow, counts): &(FlowId, bumpless_reception::Counts)| {
        let rate = terms_of(setup, *flow).rate;
        json!({
            "name": name(*flow, names),
            "registered": name_of_rest(*flow).is_none(),
            "capacity": rate.map_or(0, |rate| rate.capacity),
            "period_ms": rate.map(|rate| rate.period.as_millis_f64()),
            "passed": counts.passed,
            "dropped": {"capacity": counts.capacity, "closed": counts.closed},
            "socket": socket(*flow),
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

/// What waits in the UDP sockets at the ports of the flow with this number (V-57); `None`: there is no such socket.
fn socket(queues: &HashMap<u16, Queue>, setup: &Setup, at: u16) -> Option<Value> {
    let of_flow = setup.flows.get(usize::from(at))?.matches.iter();
    let ports = of_flow.filter_map(|it| match it {
        Match::Port(Transport::Udp, port) | Match::PortFrom(Transport::Udp, port, _) => Some(port),
        _ => None,
    });
    // A flow has a pattern for each sender at one port.
    let ports: BTreeSet<_> = ports.collect();
    let mut there = ports.iter().filter_map(|port| queues.get(port));
    let mut sum = *there.next()?;
    for queue in there {
        sum.waiting += queue.waiting;
        sum.lost += queue.lost;
    }
    Some(json!({"waiting_bytes": sum.waiting, "lost": sum.lost}))
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

#[cfg(test)]
mod tests {
    use bumpless_guard::{Flow, Terms};

    use super::*;

    #[test]
    fn a_flow_shows_what_waits_in_the_sockets_at_its_ports_each_once() {
        let flow = |matches| Flow {
            matches,
            terms: Terms::CLOSED,
        };
        let from = |port, last| Match::PortFrom(Transport::Udp, port, [10, 0, 0, last].into());
        let setup = Setup {
            flows: vec![
                flow(vec![
                    from(9, 1),
                    from(9, 2),
                    Match::Port(Transport::Udp, 10),
                ]),
                flow(vec![
                    Match::Port(Transport::Tcp, 9),
                    Match::Port(Transport::Udp, 11),
                ]),
            ],
            ..Setup::closed(1)
        };
        let queue = |waiting, lost| Queue { waiting, lost };
        let queues = HashMap::from([(9, queue(100, 1)), (10, queue(20, 0))]);
        let told = json!({"waiting_bytes": 120, "lost": 1});
        assert_eq!(socket(&queues, &setup, 0), Some(told));
        assert_eq!(socket(&queues, &setup, 1), None);
        assert_eq!(socket(&queues, &setup, 2), None);
    }
}
