//! What the faults of a scenario file may name: the things of a configuration, and the paths between them.

use bumpless_config::Config;

use super::{End, Paths};

/// The names of a configuration.
#[derive(Default)]
pub(super) struct Names<'a> {
    pub(super) nodes: Vec<&'a str>,
    pub(super) ends: Vec<&'a str>,
    pub(super) networks: Vec<&'a str>,
    pub(super) references: Vec<&'a str>,
    pub(super) applications: Vec<&'a str>,
    pub(super) groups: Vec<&'a str>,
}

impl<'a> Names<'a> {
    pub(super) fn of(config: &'a Config) -> Self {
        let nodes: Vec<_> = config.nodes.iter().map(|n| n.name.as_str()).collect();
        let references: Vec<_> = config.references.iter().map(|r| r.name.as_str()).collect();
        Self {
            ends: nodes.iter().chain(&references).copied().collect(),
            networks: config.networks.iter().map(|n| n.name.as_str()).collect(),
            applications: config
                .applications
                .iter()
                .map(|a| a.name.as_str())
                .collect(),
            groups: config.groups.iter().map(|g| g.name.as_str()).collect(),
            nodes,
            references,
        }
    }

    pub(super) fn end(&self, at: usize) -> End {
        match at.checked_sub(self.nodes.len()) {
            Some(reference) => End::Reference(reference),
            None => End::Node(at),
        }
    }

    pub(super) fn at(&self, end: End) -> usize {
        match end {
            End::Node(node) => node,
            End::Reference(reference) => self.nodes.len() + reference,
        }
    }
}

/// The nodes and reference points on a network.
pub(super) fn ends_on(config: &Config, network: usize) -> Vec<End> {
    let nodes = config.nodes.iter().enumerate();
    let nodes = nodes.filter(|(_, node)| node.addresses[network].is_some());
    let references = config.references.iter().enumerate();
    let references = references.filter(|(_, it)| usize::from(it.network.0) == network);
    nodes
        .map(|(at, _)| End::Node(at))
        .chain(references.map(|(at, _)| End::Reference(at)))
        .collect()
}

/// A network, a sender and a receiver.
type Path = (usize, End, End);

/// Every path that datagrams take: nodes talk to each other and to reference points.
pub(super) fn real_paths(config: &Config) -> impl Iterator<Item = Path> {
    let is_node = |end: &End| matches!(end, End::Node(_));
    (0..config.networks.len()).flat_map(move |network| {
        let ends = ends_on(config, network);
        let ways = ends
            .iter()
            .flat_map(|from| ends.iter().map(move |to| (from, to)));
        let ways = ways.filter(|(from, to)| from != to && (is_node(from) || is_node(to)));
        let paths: Vec<Path> = ways.map(|(from, to)| (network, *from, *to)).collect();
        paths
    })
}

/// Whether `path` is among `paths`.
pub(super) fn is_among(paths: &Paths, (network, from, to): Path) -> bool {
    let fits = |wanted: Option<End>, end| wanted.is_none_or(|wanted| wanted == end);
    let leads = |from, to| fits(paths.from, from) && fits(paths.to, to);
    paths.network.is_none_or(|wanted| wanted == network)
        && (leads(from, to) || paths.both && leads(to, from))
}
