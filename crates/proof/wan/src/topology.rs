//! Nodes and links, what every network must be, and the file that tells of one.

use core::fmt;
use std::collections::{HashMap, VecDeque};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::impairment::{self, Impairment};

/// Schema of the file.
const SCHEMA: &str = "bumpless.wan-topology/1";

/// No link and no router takes a packet longer, microseconds: ten seconds, more than any way on Earth.
pub const DELAY_MAX_US: u32 = 10_000_000;

/// Place of a node in [`Topology::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub u32);

impl NodeId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Which layer a router belongs to (fifth paper, figure 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// The ring.
    Backbone,
    /// A loop on the ring.
    Aggregation,
    /// A chain on a loop.
    Access,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It forwards packets.
    Router(Layer),
    /// The end of a way: the remote terminal unit of a substation.
    Substation,
    /// The end of a way: the computer of a control centre.
    Centre,
}

impl Kind {
    /// Whether it forwards packets of others.
    pub fn forwards(self) -> bool {
        matches!(self, Self::Router(_))
    }
}

/// A router, or a computer at the end of a way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Unique; letters, digits and `-`.
    pub name: String,
    /// What it is.
    pub kind: Kind,
}

/// A cable between two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// What it connects.
    pub ends: [NodeId; 2],
    /// What it takes a packet to pass, one way, microseconds.
    pub delay_us: u32,
    /// What of them does not pass.
    pub impairment: Impairment,
}

impl Link {
    /// The other end, seen from `node`.
    pub fn other(&self, node: NodeId) -> NodeId {
        if self.ends[0] == node {
            self.ends[1]
        } else {
            self.ends[0]
        }
    }
}

/// A whole network: connected, its names unique, no node linked to itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    nodes: Vec<Node>,
    links: Vec<Link>,
    router_us: u32,
    /// For each node, the links at it, in order.
    at: Vec<Vec<usize>>,
}

/// What keeps nodes and links from being a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopologyFault {
    /// The file is not JSON of this schema.
    Unreadable(String),
    /// One of its nodes or links cannot be read: which of them, as `node 3` counted from 1, and why.
    Entry(String, String),
    /// There is no node.
    Empty,
    /// A name that cannot be one.
    Name(String),
    /// Two nodes have this name.
    Twice(String),
    /// A link names a node that there is not: which link, counted from 0, and the name.
    Unknown(usize, String),
    /// A link has a loss or a rate that cannot be one: which link, counted from 0, and why.
    Impairment(usize, String),
    /// A link that takes a packet too long: which link, counted from 0, and microseconds.
    Delay(usize, u32),
    /// Routers take a packet too long, microseconds.
    Router(u32),
    /// A link from a node to itself.
    Itself(String),
    /// No way leads from the first to the second.
    Apart(String, String),
}

impl fmt::Display for TopologyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => write!(
                f,
                "this is no topology: {why}; `bumpless wan topology --json` prints one"
            ),
            Self::Empty => f.write_str("a network without a node is none; give at least one"),
            Self::Name(name) => write!(
                f,
                "{name:?} cannot be a name; take 1 to 32 letters, digits and '-'"
            ),
            Self::Twice(name) => write!(f, "two nodes are called {name}; names are unique"),
            Self::Entry(which, why) => write!(f, "{which}: {why}"),
            Self::Unknown(link, name) => write!(
                f,
                "link {} ends at {name:?}, and no node is called so",
                link + 1
            ),
            Self::Impairment(link, why) => write!(f, "link {}: {why}", link + 1),
            Self::Delay(link, us) => write!(
                f,
                "link {} takes {us} us; give at most {DELAY_MAX_US}",
                link + 1
            ),
            Self::Router(us) => write!(
                f,
                "routers take {us} us; give at most {DELAY_MAX_US} (router_us)"
            ),
            Self::Itself(name) => write!(f, "{name} is linked to itself; remove that link"),
            Self::Apart(from, to) => write!(
                f,
                "no way leads from {from} to {to}: computers at the end of a way forward nothing; add a link between routers"
            ),
        }
    }
}

impl std::error::Error for TopologyFault {}

/// The file, with its nodes and links as such or as they stand there.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Told<N, L> {
    schema: String,
    router_us: u32,
    nodes: Vec<N>,
    links: Vec<L>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToldLink {
    ends: [String; 2],
    delay_us: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    loss_percent: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate_mbit: Option<u32>,
}

impl Topology {
    /// A network of these nodes and links in which each router adds `router_us` microseconds to a packet.
    ///
    /// # Errors
    /// Everything that keeps it from being one.
    pub fn new(
        nodes: Vec<Node>,
        links: Vec<Link>,
        router_us: u32,
    ) -> Result<Self, Vec<TopologyFault>> {
        let mut faults = named(&nodes);
        let delays = links.iter().map(|link| link.delay_us);
        faults.extend(slow(router_us, delays.enumerate()));
        let mut at = vec![Vec::new(); nodes.len()];
        for (index, link) in links.iter().enumerate() {
            let [one, other] = link.ends;
            for end in link.ends {
                match at.get_mut(end.index()) {
                    Some(links) => links.push(index),
                    None => faults.push(TopologyFault::Unknown(index, end.0.to_string())),
                }
            }
            if one == other
                && let Some(node) = nodes.get(one.index())
            {
                faults.push(TopologyFault::Itself(node.name.clone()));
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let topology = Self {
            nodes,
            links,
            router_us,
            at,
        };
        match topology.apart() {
            Some(fault) => Err(vec![fault]),
            None => Ok(topology),
        }
    }

    /// The network that `text` tells of, as [`Self::to_json`] has written it or a person has.
    ///
    /// # Errors
    /// Everything that keeps it from being one.
    pub fn from_json(text: &str) -> Result<Self, Vec<TopologyFault>> {
        let unreadable = |why: String| vec![TopologyFault::Unreadable(why)];
        let told: Told<Value, Value> =
            serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
        if told.schema != SCHEMA {
            return Err(unreadable(format!(
                "its schema is {:?}, and {SCHEMA} is what is understood here",
                told.schema
            )));
        }
        let mut faults = Vec::new();
        let nodes = entries("node", told.nodes, &mut faults).into_iter();
        let nodes: Vec<Node> = nodes.map(|(_, node)| node).collect();
        // Which node a link means is not known where one cannot be read.
        let are_known = faults.is_empty();
        let told_links: Vec<(usize, ToldLink)> = entries("link", told.links, &mut faults);
        let places: HashMap<&str, NodeId> = (0..)
            .zip(&nodes)
            .map(|(place, node)| (node.name.as_str(), NodeId(place)))
            .collect();
        let mut links = Vec::new();
        for (index, link) in &told_links {
            let mut end = |name: &String| {
                let place = places.get(name.as_str()).copied();
                if place.is_none() && are_known {
                    faults.push(TopologyFault::Unknown(*index, name.clone()));
                }
                place
            };
            let ends = [end(&link.ends[0]), end(&link.ends[1])];
            let told = impairment::told(link.loss_percent, link.rate_mbit);
            let impairment = told.unwrap_or_else(|why| {
                faults.push(TopologyFault::Impairment(*index, why));
                Impairment::default()
            });
            if let [Some(one), Some(other)] = ends {
                links.push(Link {
                    ends: [one, other],
                    delay_us: link.delay_us,
                    impairment,
                });
            }
        }
        if !faults.is_empty() {
            faults.extend(named(&nodes));
            let delays = told_links.iter().map(|(link, it)| (*link, it.delay_us));
            faults.extend(slow(told.router_us, delays));
            let links = told_links.iter().map(|(_, link)| link);
            let to_itself = links.filter(|link| link.ends[0] == link.ends[1]);
            faults.extend(to_itself.map(|link| TopologyFault::Itself(link.ends[0].clone())));
            return Err(faults);
        }
        // What stands twice in an entry is wrong only to who reads the file as it is.
        serde_json::from_str::<Told<Node, ToldLink>>(text)
            .map_err(|error| unreadable(error.to_string()))?;
        Self::new(nodes, links, told.router_us)
    }

    /// The file that tells of it (`bumpless.wan-topology/1`).
    pub fn to_json(&self) -> String {
        let told = Told {
            schema: SCHEMA.to_owned(),
            router_us: self.router_us,
            nodes: self.nodes.clone(),
            links: self
                .links
                .iter()
                .map(|link| ToldLink {
                    ends: link.ends.map(|end| self.node(end).name.clone()),
                    delay_us: link.delay_us,
                    loss_percent: Some(link.impairment.loss_percent()).filter(|loss| *loss > 0.0),
                    rate_mbit: link.impairment.rate_mbit,
                })
                .collect(),
        };
        serde_json::to_string_pretty(&told).expect("strings and numbers are JSON")
    }

    /// All nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Their places, in order.
    pub fn places(&self) -> impl Iterator<Item = NodeId> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// All links.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// What each router adds to a packet, microseconds.
    pub fn router_us(&self) -> u32 {
        self.router_us
    }

    /// The node at this place.
    ///
    /// # Panics
    /// The place is of another network.
    pub fn node(&self, place: NodeId) -> &Node {
        &self.nodes[place.index()]
    }

    /// Where the node of this name is.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.places().find(|&place| self.node(place).name == name)
    }

    /// Indices of the links at a node.
    pub fn links_at(&self, place: NodeId) -> &[usize] {
        &self.at[place.index()]
    }

    /// Computers at the end of a way, in order.
    pub fn hosts(&self) -> impl Iterator<Item = NodeId> {
        self.places()
            .filter(|&place| !self.node(place).kind.forwards())
    }

    /// How many links lie between each node and `to`, by breadth-first search; `None` if no way leads there.
    pub fn distances(&self, to: NodeId) -> Vec<Option<u32>> {
        self.distances_over(to, |_| true)
    }

    /// The same over the links that carry packets.
    pub fn distances_over(&self, to: NodeId, carries: impl Fn(usize) -> bool) -> Vec<Option<u32>> {
        let mut distances = vec![None; self.nodes.len()];
        distances[to.index()] = Some(0);
        let mut reached = VecDeque::from([(to, 0)]);
        while let Some((node, distance)) = reached.pop_front() {
            if node != to && !self.node(node).kind.forwards() {
                continue;
            }
            for &link in self.links_at(node) {
                let next = self.links[link].other(node);
                if distances[next.index()].is_none() && carries(link) {
                    distances[next.index()] = Some(distance + 1);
                    reached.push_back((next, distance + 1));
                }
            }
        }
        distances
    }

    /// Two nodes that cannot reach each other, if there are any.
    fn apart(&self) -> Option<TopologyFault> {
        let first = NodeId(0);
        let reached = self.distances(first);
        let lost = self
            .places()
            .find(|place| reached[place.index()].is_none())?;
        Some(TopologyFault::Apart(
            self.node(first).name.clone(),
            self.node(lost).name.clone(),
        ))
    }
}

/// Those that can be read, with their places; why each of the others cannot is added to `faults`.
fn entries<T: DeserializeOwned>(
    what: &str,
    all: Vec<Value>,
    faults: &mut Vec<TopologyFault>,
) -> Vec<(usize, T)> {
    let mut read = Vec::new();
    for (index, entry) in all.into_iter().enumerate() {
        match serde_json::from_value(entry) {
            Ok(entry) => read.push((index, entry)),
            Err(error) => {
                let which = format!("{what} {}", index + 1);
                faults.push(TopologyFault::Entry(which, error.to_string()));
            }
        }
    }
    read
}

/// Delays that are too long: of routers, and of links, which are counted from 0.
fn slow(router_us: u32, links: impl Iterator<Item = (usize, u32)>) -> Vec<TopologyFault> {
    let router = (router_us > DELAY_MAX_US).then_some(TopologyFault::Router(router_us));
    let links = links.filter(|(_, us)| *us > DELAY_MAX_US);
    let links = links.map(|(link, us)| TopologyFault::Delay(link, us));
    router.into_iter().chain(links).collect()
}

/// What is wrong with the names.
fn named(nodes: &[Node]) -> Vec<TopologyFault> {
    let mut faults = Vec::new();
    let mut seen = HashMap::new();
    for node in nodes {
        let name = &node.name;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if name.is_empty() || name.len() > 32 || !name.bytes().all(plain) {
            faults.push(TopologyFault::Name(name.clone()));
        }
        let times = seen.entry(name).or_insert(0);
        *times += 1;
        if *times == 2 {
            faults.push(TopologyFault::Twice(name.clone()));
        }
    }
    if nodes.is_empty() {
        faults.push(TopologyFault::Empty);
    }
    faults
}
