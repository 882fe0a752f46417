//! Groups: who may stand in for whom, and what decides between them.

use bumpless_base::{Duration, LinkSet, NodeId};

use super::addresses::Map;
use super::{Known, node};
use crate::file::File;
use crate::model::{AfterHotRestart, Group};
use crate::reader::Reader;
use crate::schema;

/// Candidates of a group: the redundancy protocol is one between two nodes.
const CANDIDATES: usize = 2;

/// A group as far as it is known.
pub(crate) struct Draft {
    name: Option<String>,
    /// `None` where some candidate is unknown.
    pub(crate) candidates: Option<Vec<NodeId>>,
    references: Option<Vec<usize>>,
    hot_restart: Option<Option<Duration>>,
    after_hot_restart: Option<AfterHotRestart>,
    /// Networks on which all known candidates have addresses.
    pub(crate) links: LinkSet,
}

impl Draft {
    pub(crate) fn finish(self) -> Option<Group> {
        Some(Group {
            name: self.name?,
            candidates: self.candidates?,
            references: self.references?,
            hot_restart: self.hot_restart?,
            after_hot_restart: self.after_hot_restart?,
        })
    }
}

pub(crate) fn check(reader: &mut Reader, file: &File, known: &Known, map: &Map) -> Vec<Draft> {
    let drafts: Vec<Draft> = file
        .groups
        .iter()
        .map(|given| group(reader, file, known, map, given))
        .collect();
    let unknown = drafts.is_empty() || drafts.iter().any(|draft| draft.candidates.is_none());
    for (i, given) in file.nodes.iter().enumerate() {
        let is_in = |draft: &Draft| draft.candidates.iter().flatten().any(|&id| id == node(i));
        if !unknown && !drafts.iter().any(is_in) {
            let right = "name it in the nodes of a [[group]], or remove it";
            reader.wrong(&given.place, "", "this node is in no group", right);
        }
    }
    drafts
}

fn group(
    reader: &mut Reader,
    file: &File,
    known: &Known,
    map: &Map,
    given: &schema::Group,
) -> Draft {
    let candidates = candidates(reader, known, given);
    let mut links = LinkSet::first(file.networks.len());
    for id in candidates.iter().flatten() {
        links = links.intersection(map.links(usize::from(id.0)));
    }
    if candidates.is_some() && links.is_empty() && !file.networks.is_empty() {
        let wrong = "there is no network on which all nodes of this group have an address";
        reader.wrong(
            &given.place,
            "nodes",
            wrong,
            "give them addresses on the same networks",
        );
    }
    let references = references(reader, file, known, map, given, candidates.as_deref());
    Draft {
        name: given.name.clone(),
        candidates,
        references,
        hot_restart: given.hot_restart,
        after_hot_restart: given.after_hot_restart,
        links,
    }
}

fn candidates(reader: &mut Reader, known: &Known, given: &schema::Group) -> Option<Vec<NodeId>> {
    let names = given.nodes.as_ref()?;
    if names.len() != CANDIDATES {
        let wrong = format!("names {} nodes", names.len());
        reader.wrong(
            &given.place,
            "nodes",
            wrong,
            "name two, the preferred one first; a pool is several groups",
        );
    }
    let mut find = |name: &crate::shape::Mention| {
        known
            .nodes
            .find(reader, &given.place, ("nodes", name.line), &name.name)
            .map(node)
    };
    // Every name is looked up before the first failure counts.
    let found: Vec<Option<NodeId>> = names.iter().map(&mut find).collect();
    found.into_iter().collect()
}

fn references(
    reader: &mut Reader,
    file: &File,
    known: &Known,
    map: &Map,
    given: &schema::Group,
    candidates: Option<&[NodeId]>,
) -> Option<Vec<usize>> {
    let place = &given.place;
    let names = given.references.as_ref()?.as_deref().unwrap_or_default();
    match given.without_reference {
        Some(false) if names.is_empty() && !reader.incomplete => {
            let right = "name at least one [[reference]], or set without_reference = true and read \
                         its hazard";
            reader.wrong(
                place,
                "references",
                "the group has no reference point",
                right,
            );
        }
        Some(true) if !names.is_empty() => {
            let right = "remove it, or remove the references";
            let wrong = "is true although reference points are named";
            reader.wrong(place, "without_reference", wrong, right);
        }
        _ => {}
    }
    let mut found = Vec::new();
    for name in names {
        let at = ("references", name.line);
        let position = known.references.find(reader, place, at, &name.name);
        if let Some(reference) = position.and_then(|i| map.references.get(i)?.as_ref()) {
            for id in candidates.unwrap_or_default() {
                if map.links(usize::from(id.0)).contains(reference.network) {
                    continue;
                }
                let node = file
                    .nodes
                    .get(usize::from(id.0))
                    .and_then(|node| node.name.as_deref());
                let wrong = format!(
                    "node {:?} has no address on the network of {:?}",
                    node.unwrap_or("?"),
                    name.name
                );
                let right = "give it one, or name a reference point that all nodes reach";
                reader.wrong_on(
                    name.line,
                    format!("{}.references", place.path),
                    wrong,
                    right,
                );
            }
        }
        found.push(position);
    }
    found.into_iter().collect()
}
