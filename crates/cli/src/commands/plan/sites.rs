//! A pair's nodes, reference points and field devices at sites of a wide-area network: how far apart they are.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bumpless_base::{Duration, NodeId};
use bumpless_config::Config;
use bumpless_wan::route::round_trip_us;
use bumpless_wan::{NodeId as Site, Topology};
use clap::Args;

use crate::commands::wan;
use crate::output::Failure;

/// What all field devices are called among the sites.
const FIELD: &str = "field";

/// Where the pair is.
#[derive(Debug, Args)]
pub struct Sites {
    /// Take distances from this network, as `bumpless wan topology --json` prints one; with --sites
    #[arg(long, value_name = "FILE", requires = "sites", conflicts_with_all = ["new", "calibrate"])]
    wan: Option<PathBuf>,
    /// Where each node and reference point is on that network, and field devices: left=centre-1,right=s10,witness-a=s05,field=s03
    #[arg(long, value_name = "NAME=SITE", value_delimiter = ',', requires = "wan", value_parser = assignment)]
    sites: Vec<(String, String)>,
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, site)) if !name.is_empty() && !site.is_empty() => {
            Ok((name.into(), site.into()))
        }
        _ => Err("write NAME=SITE, such as left=centre-1".to_owned()),
    }
}

/// Where everybody is.
struct Map<'a> {
    topology: &'a Topology,
    sites: BTreeMap<&'a str, Site>,
}

impl Map<'_> {
    fn at(&self, name: &str) -> Option<Site> {
        self.sites.get(name).copied()
    }

    /// There and back between two that are on the map.
    fn round_trip(&self, one: &str, other: &str) -> Duration {
        let ends = self.at(one).zip(self.at(other));
        let us = ends.and_then(|(one, other)| round_trip_us(self.topology, one, other));
        Duration::from_micros(us.unwrap_or(0))
    }
}

impl Sites {
    /// Adds to what `config` says of round trips what the ways of the network take.
    pub fn put_apart(&self, config: &mut Config) -> Result<(), Failure> {
        let Some(file) = &self.wan else { return Ok(()) };
        let topology = wan::topology_in(file)?;
        let (map, mut wrong) = self.map(&topology, config);
        wrong.extend(together(&map, config));
        if !wrong.is_empty() {
            return Err(Failure::usage(wrong.join("\n  ")));
        }
        apply(&map, config);
        Ok(())
    }

    /// Where everybody is, and everything that is wrong with what is said of it.
    fn map<'a>(&'a self, topology: &'a Topology, config: &Config) -> (Map<'a>, Vec<String>) {
        let names = config.nodes.iter().map(|it| it.name.as_str());
        let names = names.chain(config.references.iter().map(|it| it.name.as_str()));
        let names: Vec<&str> = names.collect();
        let (mut sites, mut wrong) = (BTreeMap::new(), Vec::new());
        for (name, site) in &self.sites {
            if name != FIELD && !names.contains(&name.as_str()) {
                wrong.push(format!(
                    "--sites: the configuration has no {name}; it has {}, and field devices are called {FIELD}",
                    names.join(", ")
                ));
            }
            match topology.find(site) {
                None => wrong.push(format!(
                    "--sites: no node of the network is called {site:?}; `bumpless wan topology --json` names them all"
                )),
                Some(at) if topology.node(at).kind.forwards() => wrong.push(format!(
                    "--sites: {site} is a router; {name} needs a computer at the end of a way, a control centre or a substation"
                )),
                Some(at) if sites.insert(name.as_str(), at).is_some() => {
                    wrong.push(format!("--sites: {name} is given twice; give each name once"));
                }
                Some(_) => {}
            }
        }
        let given = |name: &str| self.sites.iter().any(|(known, _)| known == name);
        let missing = names.iter().filter(|name| !given(name));
        wrong.extend(
            missing.map(|name| format!("--sites: where {name} is, is missing; add {name}=SITE")),
        );
        (Map { topology, sites }, wrong)
    }
}

/// What ends together although one of the two is there to replace the other.
fn together(map: &Map<'_>, config: &Config) -> Vec<String> {
    let mut wrong = Vec::new();
    for group in &config.groups {
        let nodes: Vec<&str> = group
            .candidates
            .iter()
            .map(|id| name(config, *id))
            .collect();
        let references = group
            .references
            .iter()
            .map(|&at| config.references[at].name.as_str());
        let others = nodes.iter().copied().skip(1).chain(references);
        for (at, one) in nodes.iter().enumerate() {
            for other in others.clone().filter(|other| !nodes[..=at].contains(other)) {
                if let (Some(site), true) = (map.at(one), map.at(one) == map.at(other)) {
                    wrong.push(format!(
                        "--sites: {one} and {other} of group {} are both at {}, so that both end with that site; give them sites of their own",
                        group.name,
                        map.topology.node(site).name
                    ));
                }
            }
        }
    }
    wrong
}

fn name(config: &Config, node: NodeId) -> &str {
    &config.nodes[usize::from(node.0)].name
}

fn apply(map: &Map<'_>, config: &mut Config) {
    let (mut pair, mut references) = (
        Duration::ZERO,
        vec![Duration::ZERO; config.references.len()],
    );
    let mut fields = vec![Duration::ZERO; config.applications.len()];
    for (at, group) in config.groups.iter().enumerate() {
        let nodes = || group.candidates.iter().map(|id| name(config, *id));
        for one in nodes() {
            for other in nodes() {
                pair = pair.max(map.round_trip(one, other));
            }
            for &reference in &group.references {
                let way = map.round_trip(one, &config.references[reference].name);
                references[reference] = references[reference].max(way);
            }
            let mine = config.applications.iter().zip(&mut fields);
            for (_, way) in mine.filter(|(app, _)| app.group == at) {
                *way = (*way).max(map.round_trip(one, FIELD));
            }
        }
    }
    for (reference, way) in config.references.iter_mut().zip(references) {
        let network = &config.networks[usize::from(reference.network.0)];
        let near = reference.round_trip_max.unwrap_or(network.round_trip_max);
        reference.round_trip_max = Some(near + way);
    }
    for (app, way) in config.applications.iter_mut().zip(fields) {
        if let Some(field) = &mut app.field {
            field.round_trip_max = field.round_trip_max + way;
        }
    }
    for network in &mut config.networks {
        network.round_trip_max = network.round_trip_max + pair;
    }
}
