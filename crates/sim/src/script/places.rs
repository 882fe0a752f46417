//! What the faults of a scenario file may name: the things of a configuration.

use bumpless_config::Config;

use super::End;

/// The names of a configuration.
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
