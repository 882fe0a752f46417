//! What a node is sent by whom, and how many packets of it at most: the budgets of its reception (spec/reception.md, V-70).
//!
//! The counts are those with which the networks are planned: states with their retransmissions, acknowledgements, heartbeats as often as
//! they ever go, requests to witnesses, and requests to field devices in each cycle.

pub mod cost;

use std::collections::HashMap;
use std::net::IpAddr;

use bumpless_base::{Duration, LinkId, NodeId};
use bumpless_config::{
    Application, ApplicationKind, Config, FieldDevices, ReferenceKind, Security,
};
use bumpless_guard::{Match, Rate, Transport};

use crate::acknowledgements;
use crate::input::{Machine, Scenario};
use crate::pair::{background, scenario};

/// Budgets of who is known hold for this long: long enough that a burst after a stall of the sender fits.
const PERIOD: Duration = Duration::from_millis(100);
/// A budget that anybody can use up in one go holds for this long: while that burst is worked off, a ring must not fill (V-90).
const SHORT: Duration = Duration::from_millis(10);

/// What is planned may come twice: a stalled sender makes up for it, and a new session sends states and heartbeats at once.
const HEADROOM: u64 = 2;
/// The smallest budget: connections that begin anew, answers that come in small pieces.
const LEAST: u64 = 100;
/// Of senders that are none of the pair's: enough for status to say who sends to the node's port.
const STRANGERS: u64 = 10;
/// Of secure shell in a [`SHORT`] period.
const SSH: u64 = 50;
/// The smallest budget for the echo replies of a reference point: somebody on this computer may ping it, too.
const ECHOES: u64 = 10;
/// Of ARP and neighbour discovery of somebody whom the configuration names: a host asks and answers once in some seconds, three times in a row
/// where it is in doubt.
const RESOLUTION: u64 = 10;
/// Packets for each request to a field device: its answer, acknowledgements, one again.
const PER_REQUEST: u64 = 4;
/// Requests of the quadruple tank in a cycle, and those that each cycle of a program has besides its points.
const REQUESTS: u64 = 4;

/// What a node expects of some senders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Whose or what it is.
    pub name: String,
    /// What belongs to it.
    pub matches: Vec<Match>,
    /// How many packets at most, on each network.
    pub rate: Rate,
}

/// Everything that `node` expects.
pub fn expected(config: &Config, node: NodeId) -> Vec<Expected> {
    let mut all = Collected::default();
    partners(&mut all, config, node);
    references(&mut all, config, node);
    fields(&mut all, config, node);
    key_servers(&mut all, config);
    let addresses = config.nodes[usize::from(node.0)].addresses.iter().flatten();
    let mut ports: Vec<_> = addresses.map(|address| address.port()).collect();
    ports.sort_unstable();
    // Every interface has each budget for itself: the same port on two networks is one flow.
    ports.dedup();
    for port in ports {
        let strangers = format!("strangers at port {port}");
        all.add(strangers, &[Match::Port(Transport::Udp, port)], STRANGERS);
        if agrees_on_keys(config) {
            let name = format!("strangers at management port {port}");
            all.add(name, &[Match::Port(Transport::Tcp, port)], STRANGERS);
        }
    }
    let ssh = [Match::Port(Transport::Tcp, 22)];
    all.add_rate("ssh".to_owned(), &ssh, (SSH, SHORT));
    all.flows
}

const fn agrees_on_keys(config: &Config) -> bool {
    matches!(config.security, Security::Certificates(_))
}

/// Flows by pattern: who has one already gets the packets of another one for it.
#[derive(Default)]
struct Collected {
    flows: Vec<Expected>,
    claimed: HashMap<Match, usize>,
}

impl Collected {
    fn add(&mut self, name: String, matches: &[Match], packets: u64) {
        self.add_rate(name, matches, (packets, PERIOD));
    }

    fn add_rate(&mut self, name: String, matches: &[Match], (packets, period): (u64, Duration)) {
        let capacity = saturating(packets);
        let matches: Vec<_> = matches.iter().map(|it| it.canonical()).collect();
        let known = matches.iter().find_map(|it| self.claimed.get(it).copied());
        let at = known.unwrap_or(self.flows.len());
        if known.is_none() {
            self.flows.push(Expected {
                name,
                matches: Vec::new(),
                rate: Rate {
                    capacity: 0,
                    period,
                },
            });
        }
        let flow = &mut self.flows[at];
        flow.rate.capacity = flow.rate.capacity.saturating_add(capacity);
        for pattern in matches {
            if self.claimed.insert(pattern, at).is_none() {
                flow.matches.push(pattern);
            }
        }
    }
}

fn saturating(count: u64) -> u32 {
    /// What the kernel's program counts to in a period.
    const MOST: u64 = 8_000_000;
    u32::try_from(count.min(MOST)).unwrap_or(u32::MAX)
}

/// How often something comes in a span that comes each `period`: the span may begin anywhere.
fn in_period(span: Duration, period: Duration) -> u64 {
    span.as_nanos().div_ceil(period.as_nanos().max(1)) + 1
}

fn partners(all: &mut Collected, config: &Config, node: NodeId) {
    let machine = Machine::default();
    let here = scenario(config, node, machine);
    for partner in config.partners(node) {
        let there = scenario(config, partner, machine);
        let name = &config.nodes[usize::from(partner.0)].name;
        for (at, network) in config.networks.iter().enumerate() {
            let link = LinkId(u8::try_from(at).unwrap_or(u8::MAX));
            let address = |node: NodeId| config.nodes[usize::from(node.0)].addresses[at];
            let (Some(own), Some(other)) = (address(node), address(partner)) else {
                continue;
            };
            let packets = states(&there, &network.name)
                + answers(&here, &network.name)
                + messages(config, partner, link, &there);
            all.add(
                format!("{name} on {}", network.name),
                &[Match::PortFrom(Transport::Udp, own.port(), other.ip())],
                (packets * HEADROOM).max(LEAST),
            );
            resolution(all, &format!("{name} on {}", network.name), other.ip());
            if agrees_on_keys(config) {
                let matches = [
                    Match::PortFrom(Transport::Tcp, own.port(), other.ip()),
                    Match::Answers(Transport::Tcp, other.ip(), other.port()),
                ];
                all.add(
                    format!("{name}'s sessions on {}", network.name),
                    &matches,
                    LEAST,
                );
            }
        }
    }
}

/// Channels that `network` carries.
fn carried<'a>(scenario: &'a Scenario, network: &'a str) -> impl Iterator<Item = usize> + 'a {
    let link = scenario.links.iter().position(|link| link.name == network);
    let carries = move |at: &usize| {
        let links = scenario.channels[*at].links;
        link.is_some_and(|link| links.contains(LinkId(u8::try_from(link).unwrap_or(u8::MAX))))
    };
    (0..scenario.channels.len()).filter(carries)
}

/// Packets of states that whoever has this scenario sends.
fn states(scenario: &Scenario, network: &str) -> u64 {
    let one = |at: usize| {
        let channel = &scenario.channels[at];
        let packets = scenario.packets.count(channel.size) + u64::from(channel.budget);
        packets * in_period(PERIOD, channel.period)
    };
    carried(scenario, network).map(one).sum()
}

/// Acknowledgements that whoever has this scenario gets.
fn answers(scenario: &Scenario, network: &str) -> u64 {
    let one = |at: usize| {
        let period = scenario.channels[at].period;
        acknowledgements::count(scenario, at) * in_period(PERIOD, period)
    };
    carried(scenario, network).map(one).sum()
}

/// Heartbeats and the like of `partner`.
fn messages(config: &Config, partner: NodeId, link: LinkId, scenario: &Scenario) -> u64 {
    let all = background::of(config, partner, link, scenario);
    let besides = all.iter().filter(|message| message.acknowledges.is_none());
    besides
        .map(|message| in_period(PERIOD, message.period))
        .sum()
}

fn references(all: &mut Collected, config: &Config, node: NodeId) {
    let groups = config.groups.iter();
    let mine = groups.filter(|group| group.candidates.contains(&node));
    let mut used: Vec<usize> = mine.flat_map(|group| group.references.clone()).collect();
    used.sort_unstable();
    used.dedup();
    for at in used {
        let reference = &config.references[at];
        let address = match reference.kind {
            ReferenceKind::Witness(address) => address,
            ReferenceKind::Ping(address) => {
                echo_replies(all, config, (&reference.name, address));
                resolution(all, &reference.name, address);
                continue;
            }
        };
        resolution(all, &format!("witness {}", reference.name), address.ip());
        // For each group of this node, as often as heartbeats at most.
        let grants = in_period(PERIOD, config.timing.heartbeat) * config.groups.len() as u64;
        let mut matches = vec![Match::Answers(Transport::Udp, address.ip(), address.port())];
        if agrees_on_keys(config) {
            matches.push(Match::Answers(Transport::Tcp, address.ip(), address.port()));
        }
        all.add(
            format!("witness {}", reference.name),
            &matches,
            (grants * HEADROOM).max(LEAST),
        );
    }
}

/// Of somebody on a network of this node's, so that no flood of questions for addresses keeps theirs away. Whoever is behind a router never
/// asks here.
fn resolution(all: &mut Collected, whose: &str, address: IpAddr) {
    all.add(
        format!("address resolution of {whose}"),
        &[Match::Resolution(address)],
        RESOLUTION,
    );
}

/// Of a pinged reference point: without its answers a node that is alone loses its role, so that no flood of ICMP may use up their budget.
fn echo_replies(all: &mut Collected, config: &Config, (name, address): (&str, IpAddr)) {
    let replies = in_period(PERIOD, config.timing.lease / 2);
    all.add(
        format!("echo replies of {name}"),
        &[Match::EchoReplies(address)],
        (replies * HEADROOM).max(ECHOES),
    );
}

fn fields(all: &mut Collected, config: &Config, node: NodeId) {
    let candidates = |app: &&Application| config.groups[app.group].candidates.contains(&node);
    for app in config.applications.iter().filter(candidates) {
        let Some(field) = &app.field else { continue };
        let points = match &app.kind {
            ApplicationKind::Program(program) => program.inputs.len() + program.outputs.len(),
            _ => 0,
        };
        let requests = (points as u64 + REQUESTS) * in_period(PERIOD, app.period);
        let addresses: Vec<_> = match &field.devices {
            FieldDevices::Tank { address, .. } => vec![*address],
            FieldDevices::Program(devices) => devices.iter().map(|it| it.address).collect(),
        };
        for address in addresses {
            all.add(
                format!("field device {address}"),
                &[Match::Answers(Transport::Tcp, address.ip(), address.port())],
                (requests * PER_REQUEST * HEADROOM).max(LEAST),
            );
            resolution(all, &format!("field device {}", address.ip()), address.ip());
        }
    }
}

/// Without answers of key servers for long, nodes lose each other (N-97): no flood may keep them away.
fn key_servers(all: &mut Collected, config: &Config) {
    let Security::Certificates(given) = &config.security else {
        return;
    };
    for server in &given.key_servers {
        let address = server.address;
        all.add(
            format!("key server {}", server.name),
            &[Match::Answers(Transport::Tcp, address.ip(), address.port())],
            LEAST,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: &str = include_str!("../../../../examples/two-computers.toml");

    fn pair() -> Config {
        Config::parse(PAIR, "two-computers.toml").expect("the example")
    }

    fn packets(of: &[Expected], name: &str) -> u32 {
        let found = of.iter().find(|it| it.name == name);
        found
            .unwrap_or_else(|| panic!("{name} in {of:#?}"))
            .rate
            .capacity
    }

    #[test]
    fn a_node_expects_its_partner_witnesses_devices_and_whoever_looks_after_it() {
        let all = expected(&pair(), NodeId(0));
        let names: Vec<_> = all.iter().map(|it| it.name.as_str()).collect();
        for name in [
            "south on A",
            "south on B",
            "ssh",
            "address resolution of south on A",
            "address resolution of south on B",
        ] {
            assert!(names.contains(&name), "{name} in {names:?}");
        }
        for part in [
            "witness ",
            "field device ",
            "strangers at port ",
            "'s sessions on A",
            "address resolution of witness ",
            "address resolution of field device ",
        ] {
            assert!(
                names.iter().any(|name| name.contains(part)),
                "{part} in {names:?}"
            );
        }
        let flows = all.iter().map(|it| bumpless_guard::Flow {
            matches: it.matches.clone(),
            terms: bumpless_guard::Terms::CLOSED,
        });
        let setup = bumpless_guard::Setup {
            flows: flows.collect(),
            ..bumpless_guard::Setup::closed(2)
        };
        let guard = bumpless_guard::Guard::<()>::new(&setup, bumpless_base::Instant::ZERO);
        assert!(guard.is_ok(), "no two flows claim the same packets");
    }

    #[test]
    fn answers_of_each_key_server_have_a_budget_of_their_own() {
        let section =
            "[security]\nkey_servers = [\"main@10.0.0.9:4720\", \"spare@10.0.0.10:4720\"]\n";
        let text = PAIR.replace(
            "[[network]]\nname = \"A\"",
            &format!("{section}[[network]]\nname = \"A\""),
        );
        let config = Config::parse(&text, "keyed.toml").expect("a configuration");
        let all = expected(&config, NodeId(0));
        for (name, address) in [("main", [10, 0, 0, 9]), ("spare", [10, 0, 0, 10])] {
            let of_it = Match::Answers(Transport::Tcp, address.into(), 4720);
            let flow = all.iter().find(|it| it.matches == [of_it]);
            let flow = flow.unwrap_or_else(|| panic!("{name} in {all:#?}"));
            assert_eq!(flow.name, format!("key server {name}"));
            assert!(u64::from(flow.rate.capacity) >= LEAST);
        }
    }

    #[test]
    fn what_a_partner_may_send_grows_with_states_and_heartbeats() {
        let config = pair();
        let usual = packets(&expected(&config, NodeId(0)), "south on A");
        // All heartbeats at their shortest distance, twice, and then some.
        let hasty = config.timing.heartbeat / 8;
        assert!(u64::from(usual) > 2 * PERIOD.as_nanos() / hasty.as_nanos());
        let mut larger = config.clone();
        larger.applications[0].state_max += 1_000_000;
        let grown = packets(&expected(&larger, NodeId(0)), "south on A");
        let per_state = 1_000_000 / u32::from(config.transfer.payload_size);
        let states = (PERIOD.as_nanos() / config.applications[0].period.as_nanos()) as u32;
        assert!(grown > usual + 2 * per_state * states, "{usual} {grown}");
        let mut slower = config;
        slower.timing.heartbeat = slower.timing.heartbeat * 4;
        assert!(packets(&expected(&slower, NodeId(0)), "south on A") < usual);
    }

    #[test]
    fn who_has_the_address_of_another_one_shares_its_flow_and_adds_to_it() {
        let mut all = Collected::default();
        let pattern = Match::Answers(Transport::Tcp, [10, 0, 0, 1].into(), 502);
        let more = Match::Port(Transport::Tcp, 9);
        all.add("a".into(), &[pattern], 5);
        all.add("b".into(), &[pattern, more], 7);
        assert_eq!(all.flows.len(), 1);
        let flow = &all.flows[0];
        assert_eq!((flow.name.as_str(), flow.rate.capacity), ("a", 12));
        assert_eq!(flow.matches, [pattern, more]);
        // An IPv4 address in IPv6's notation is the same one.
        let mapped = Match::Answers(Transport::Tcp, "::ffff:10.0.0.1".parse().unwrap(), 502);
        all.add("c".into(), &[mapped], 1);
        assert_eq!((all.flows.len(), all.flows[0].rate.capacity), (1, 13));
    }
}
