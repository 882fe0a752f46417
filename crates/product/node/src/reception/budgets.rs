//! Budgets of a node's networks: which flows of its own it has on which of the computer's interfaces, and what they cost.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};

use bumpless_base::NodeId;
use bumpless_capture::interfaces;
use bumpless_config::Config;
use bumpless_guard::{Rate, Setup};
use bumpless_plan::reception as plan;
use bumpless_plan::reception::cost::{Budgets, Costs, Load, Registered};
use bumpless_reception::{NamedFlow, Rest, rates, setup};

/// The interfaces with this node's addresses, the loopback one left out: it has no driver, and others share it.
pub fn interfaces_of(config: &Config, node: NodeId) -> Vec<String> {
    let own = &config.nodes[usize::from(node.0)].addresses;
    let has = |address: std::net::IpAddr| own.iter().flatten().any(|it| it.ip() == address);
    let all = interfaces().unwrap_or_default().into_iter();
    let mine = all.filter(|it| it.addresses.iter().any(|&address| has(address)));
    mine.map(|it| it.name).collect()
}

/// Whether an address of this node's is on no interface, not even the loopback one: it may come.
pub fn is_awaited(config: &Config, node: NodeId) -> bool {
    let own = &config.nodes[usize::from(node.0)].addresses;
    own.iter().flatten().any(|&address| is_absent(address))
}

fn is_absent(mut address: SocketAddr) -> bool {
    // At a port of the kernel's choice: the node may have its own one open.
    address.set_port(0);
    let bound = UdpSocket::bind(address);
    bound.is_err_and(|error| error.kind() == ErrorKind::AddrNotAvailable)
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
    load_with(config, node, &[])
}

/// The same with what programs have registered, whose share of a processor is beside the node's reserve.
pub fn load_with(config: &Config, node: NodeId, registered: &[Rate]) -> Load {
    let (flows, rest) = planned(config, node);
    let addresses = config.nodes[usize::from(node.0)].addresses.iter();
    let networks = addresses.flatten().count();
    let (mut from_anywhere, from_known) = rates(&flows);
    from_anywhere.extend(registered);
    let mut costs = costs(config);
    let mut most = Registered::default();
    match &config.registration {
        // What is registered is known, and what may be is not beside it.
        Some(asked) if !registered.is_empty() => costs.reserve_percent += asked.processor_percent,
        Some(asked) => {
            most = Registered {
                burst: asked.burst_max.map_or(0, u64::from) * networks as u64,
                percent: asked.processor_percent,
            };
        }
        None => {}
    }
    let budgets = Budgets {
        interfaces: 1,
        from_known: &from_known,
        from_anywhere: &from_anywhere.repeat(networks),
        rest: &rest.rates().repeat(networks),
        registered: most,
    };
    Load::new(&costs, &budgets)
}

/// That less of a flood is borne than planned, since what programs have registered may come at once (V-94).
pub fn less_borne(planned: &Load, with_registered: &Load) -> Option<String> {
    let (borne, of_plan) = (with_registered.flood_per_s, planned.flood_per_s);
    (with_registered.ring_ends_it && borne < of_plan).then(|| {
        format!(
            "what programs have registered may come at once, so that {borne} packets of a flood a second are borne in place of {of_plan}: have \
             them register smaller capacities in shorter periods"
        )
    })
}

#[cfg(test)]
mod tests {
    use bumpless_base::Duration;
    use bumpless_config::Registration;

    use super::*;

    #[test]
    fn an_address_that_no_interface_has_is_awaited_and_one_of_the_loopback_interface_is_not() {
        let is_absent = |text: &str| is_absent(text.parse().expect("an address"));
        assert!(!is_absent("127.0.0.1:4700") && !is_absent("127.9.8.7:4700"));
        // Kept for documents (RFC 5737, RFC 3849).
        assert!(is_absent("192.0.2.77:4700") && is_absent("[2001:db8::77]:4700"));
    }

    #[test]
    fn the_more_of_what_is_registered_may_come_at_once_the_less_of_a_flood_is_borne() {
        let example = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../examples/quadruple-tank.toml"
        );
        let mut config = Config::load(example.as_ref()).expect("the example");
        config.registration = Some(Registration {
            group: "root".to_owned(),
            socket: None,
            flows: 1,
            processor_percent: 10,
            priority_max: 1,
            burst_max: None,
        });
        let planned = load(&config, NodeId(0));
        let with = |capacity, ms| {
            let period = Duration::from_millis(ms);
            load_with(&config, NodeId(0), &[Rate { capacity, period }])
        };
        let (short, long) = (with(10, 10), with(60_000, 60_000));
        assert!(short.flood_per_s > long.flood_per_s, "{short:?} {long:?}");
        let told = less_borne(&planned, &long).expect("it is less");
        for part in [
            long.flood_per_s.to_string(),
            planned.flood_per_s.to_string(),
        ] {
            assert!(told.contains(&part), "{told}");
        }
        let none = load_with(&config, NodeId(0), &[]);
        assert_eq!((less_borne(&planned, &none), none), (None, planned));
        // What may come at once is in the plan where it is bounded, and nothing is worse than planned then.
        let asked = config.registration.as_mut().expect("it is there");
        asked.burst_max = Some(60_000);
        let bounded = load(&config, NodeId(0));
        assert!(bounded.flood_per_s < planned.flood_per_s && bounded.burst == long.burst);
        assert_eq!(less_borne(&bounded, &long), None);
    }
}
