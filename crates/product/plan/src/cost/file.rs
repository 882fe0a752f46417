//! Costs as they are kept in a file, what they belong to, and what a plan takes from them.

use bumpless_base::{Duration, LinkId, LinkSet};
use bumpless_config::{Application, Config, Distribution};
use serde::{Deserialize, Serialize};

use super::{Cost, Route};
use crate::input::{Machine, Scenario};

/// The schema's name.
pub const SCHEMA: &str = "bumpless.costs/1";

/// What transfers between two nodes take, as measured: one file for each pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// [`SCHEMA`].
    pub schema: String,
    /// When it was measured, seconds since 1970.
    pub measured_unix_s: u64,
    /// Version of Bumpless that measured.
    pub version: String,
    /// What it was measured with, and holds for.
    pub basis: Basis,
    /// The two nodes.
    pub nodes: Vec<NodeCosts>,
    /// Every route that states of the configuration take, in both directions, and each network alone.
    pub paths: Vec<Path>,
}

/// What costs hold for: with any of it different, they are others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Basis {
    /// Version of the wire format.
    pub wire_version: u16,
    /// State bytes in a full packet.
    pub payload: u16,
    /// Unacknowledged packets to one partner.
    pub in_flight_max: u32,
    /// The networks.
    pub networks: Vec<NetworkBasis>,
}

/// A network with which costs were measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkBasis {
    /// Its name.
    pub name: String,
    /// Bit/s at which the nodes send at most; zero: not paced.
    pub bandwidth: u64,
    /// Largest IP packet, bytes.
    pub mtu: u16,
    /// `IPv4` or `IPv6`.
    pub ip: String,
}

/// One of the two nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeCosts {
    /// Its name.
    pub name: String,
    /// Name of the computer.
    pub host: String,
    /// How late its threads went on.
    pub jitter: Jitter,
}

/// How late threads went on that slept for a millisecond at a time, one on each processor, while states were
/// sent; nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jitter {
    /// How often they woke.
    pub wakes: u64,
    /// 999 of 1,000 times no later.
    pub p999_ns: u64,
    /// 9,999 of 10,000 times no later: the jitter that the plan reckons with.
    pub p9999_ns: u64,
    /// The latest.
    pub longest_ns: u64,
}

/// A route in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// The node that sends.
    pub from: String,
    /// The node that receives.
    pub to: String,
    /// The networks, by name.
    pub networks: Vec<String>,
    /// Whether packets are shared out over them instead of sent on each.
    pub spread: bool,
    /// The costs that tell the measured times best.
    pub cost: Cost,
    /// The largest relative difference between those and the measured medians.
    pub largest_error: f64,
    /// The largest relative difference between what they predict and the medians of sizes from which they were not
    /// told, measured in turns with those; null in files that were kept before this was measured.
    #[serde(default)]
    pub held_out_error: Option<f64>,
    /// Shortest and 99th percentile of an empty state's time, nanoseconds: the round trip with the hand-overs
    /// between the threads at both ends.
    pub round_trip_ns: [u64; 2],
    /// Transfers that do not count because the machine stood still meanwhile.
    pub thrown_away: usize,
    /// What was measured.
    pub sizes: Vec<Measured>,
}

/// The times of states of one size; nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Bytes of each state.
    pub size: u32,
    /// State bytes in each full packet.
    pub payload: u16,
    /// Transfers that count.
    pub count: usize,
    /// The shortest.
    pub min_ns: u64,
    /// Their median.
    pub p50_ns: u64,
    /// 99 of 100 are not above it.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Path {
    /// Whether it is the route of `from` over `networks`.
    pub fn is_of(&self, from: &str, networks: &[String], spread: bool) -> bool {
        self.from == from && self.networks == networks && self.spread == spread
    }
}

impl Basis {
    /// What costs measured with `config` hold for.
    pub fn of(config: &Config) -> Self {
        let networks = config.networks.iter().map(|network| NetworkBasis {
            name: network.name.clone(),
            bandwidth: network.bandwidth,
            mtu: network.mtu,
            ip: network.ip.to_string(),
        });
        Self {
            wire_version: config.transfer.version.number(),
            payload: config.transfer.payload_size,
            in_flight_max: config.transfer.in_flight_max,
            networks: networks.collect(),
        }
    }

    /// What is different in `other`, in words; `None` if nothing is.
    fn difference(&self, other: &Self) -> Option<String> {
        let unlike = |what: &str, then: &dyn std::fmt::Display, now: &dyn std::fmt::Display| {
            Some(format!(
                "{what} was {then} then and is {now} in the configuration"
            ))
        };
        if self.wire_version != other.wire_version {
            return unlike("the wire version", &self.wire_version, &other.wire_version);
        }
        let names = |basis: &Self| {
            let names: Vec<&str> = basis.networks.iter().map(|n| n.name.as_str()).collect();
            names.join(", ")
        };
        if names(self) != names(other) {
            return unlike("the list of networks", &names(self), &names(other));
        }
        for (then, now) in self.networks.iter().zip(&other.networks) {
            let of = |what: &str| format!("network '{}': {what}", now.name);
            if then.bandwidth != now.bandwidth {
                return unlike(
                    &of("the bandwidth in bit/s"),
                    &then.bandwidth,
                    &now.bandwidth,
                );
            }
            if then.mtu != now.mtu {
                return unlike(&of("the mtu"), &then.mtu, &now.mtu);
            }
            if then.ip != now.ip {
                return unlike(&of("the IP version"), &then.ip, &now.ip);
            }
        }
        if self.payload != other.payload {
            return unlike("the payload of a packet", &self.payload, &other.payload);
        }
        if self.in_flight_max != other.in_flight_max {
            return unlike("in_flight_max", &self.in_flight_max, &other.in_flight_max);
        }
        None
    }
}

/// How states travel over `networks` of `config`, in packets of `payload` bytes.
pub fn route_of(config: &Config, networks: LinkSet, spread: bool, payload: u16) -> Route {
    let members = || {
        networks
            .iter()
            .filter_map(|link| config.networks.get(usize::from(link.0)))
    };
    let header = u32::from(config.transfer.version.header_len());
    let frame = members().map(|network| u32::from(network.message_overhead()));
    let packet = members().map(|network| network.message_max() + network.message_overhead());
    // One network that is not paced never makes the others wait if each carries all.
    let bandwidth = members().map(|network| network.bandwidth).min();
    Route {
        payload: payload.into(),
        overhead: header + frame.max().unwrap_or(0),
        packet: packet.max().unwrap_or(0).into(),
        bandwidth: bandwidth.unwrap_or(0),
        shared_by: if spread { networks.len() as u32 } else { 1 },
    }
}

/// How states travel on `path`, in packets of `payload` bytes.
pub fn path_route(config: &Config, path: &Path, payload: u16) -> Route {
    let all = LinkSet::first(config.networks.len());
    let named = |link: &LinkId| {
        path.networks
            .contains(&config.networks[usize::from(link.0)].name)
    };
    let networks = all.iter().filter(named).collect();
    route_of(config, networks, path.spread, payload)
}

impl Costs {
    /// What keeps a plan of `config` from using these costs.
    ///
    /// # Errors
    /// The reason, with a remedy.
    pub fn check(&self, config: &Config) -> Result<(), String> {
        const REMEDY: &str = "calibrate again, or delete the file";
        if self.schema != SCHEMA {
            return Err(format!(
                "its schema is '{}' instead of '{SCHEMA}'; {REMEDY}",
                self.schema
            ));
        }
        if let Some(difference) = self.basis.difference(&Basis::of(config)) {
            return Err(format!("{difference}; {REMEDY}"));
        }
        if let Some(stranger) = self
            .nodes
            .iter()
            .find(|node| config.node(&node.name).is_none())
        {
            return Err(format!(
                "it is of node '{}', which the configuration has not; {REMEDY}",
                stranger.name
            ));
        }
        let ordered = |path: &Path| path.round_trip_ns[0] <= path.round_trip_ns[1];
        if self.paths.is_empty()
            || !self
                .paths
                .iter()
                .all(|path| path.cost.is_sound() && ordered(path))
        {
            return Err(format!(
                "its costs are missing or no numbers that costs can be; {REMEDY}"
            ));
        }
        Ok(())
    }

    /// What the plan reckons with for the nodes: of all networks and directions, the one on which a full packet is
    /// dearest.
    pub fn machine(&self) -> Machine {
        let single = || self.paths.iter().filter(|path| path.networks.len() == 1);
        let full = |path: &&Path| {
            path.cost.per_packet_ns
                + path.cost.per_kilobyte_ns * f64::from(self.basis.payload) / 1e3
        };
        let dearest = single().max_by(|a, b| full(a).total_cmp(&full(b)));
        let dearest = dearest.map(|path| path.cost).unwrap_or_default();
        let beyond = |path: &Path| path.cost.per_transfer_ns - path.round_trip_ns[0] as f64;
        let jitter = self.nodes.iter().map(|node| node.jitter.p9999_ns).max();
        Machine {
            per_packet_ns: dearest.per_packet_ns.ceil() as u64,
            per_kilobyte_ns: dearest.per_kilobyte_ns.ceil() as u64,
            per_transfer_ns: single().map(beyond).fold(0.0, f64::max).ceil() as u64,
            jitter_ns: jitter.unwrap_or(0),
        }
    }

    /// Shortest and longest round trip on the network called `name`, if it was measured.
    pub fn round_trip(&self, name: &str) -> Option<(Duration, Duration)> {
        let single = |path: &&Path| path.networks.len() == 1 && path.networks[0] == name;
        let measured = || {
            self.paths
                .iter()
                .filter(single)
                .map(|path| path.round_trip_ns)
        };
        let least = measured().map(|[least, _]| least).min()?;
        let most = measured().map(|[_, most]| most).max()?;
        Some((Duration::from_nanos(least), Duration::from_nanos(most)))
    }

    /// Puts what was measured in the place of what `scenario` assumes of nodes and round trips.
    pub fn apply(&self, scenario: &mut Scenario) {
        scenario.machine = self.machine();
        for link in &mut scenario.links {
            if let Some(measured) = self.round_trip(&link.name) {
                link.round_trip = measured;
            }
        }
    }

    /// What a state of `size` bytes of `application` typically takes, nanoseconds: from the slower of its nodes to
    /// the other, the longest of what it may take. `None` if its route was not measured.
    pub fn predict(&self, config: &Config, application: &Application, size: u32) -> Option<f64> {
        let names = names_of(config, application.networks);
        let spread = application.distribution == Distribution::Spread && names.len() > 1;
        let payload = config.transfer.payload_size;
        let route = route_of(config, application.networks, spread, payload);
        let same = |path: &&Path| path.networks == names && path.spread == spread;
        let times = self
            .paths
            .iter()
            .filter(same)
            .map(|path| path.cost.predict(&route, size));
        times.reduce(f64::max)
    }
}

/// The names of `networks`, in the configuration's order.
pub fn names_of(config: &Config, networks: LinkSet) -> Vec<String> {
    let known = networks
        .iter()
        .filter_map(|link| config.networks.get(usize::from(link.0)));
    known.map(|network| network.name.clone()).collect()
}
