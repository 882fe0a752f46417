//! The networks that are told of: each with what is asked of it.

use bumpless_base::LinkSet;

use super::words;
use crate::pair::Sender;
use crate::resource::{Kind, Resource, resources};

/// Networks with what is asked of them, those that are asked the same together.
pub fn asked(sender: &Sender) -> Vec<(Vec<String>, Resource)> {
    let scenario = &sender.scenario;
    let all = LinkSet::first(scenario.links.len());
    let mut lines: Vec<(Vec<String>, Resource)> = Vec::new();
    // Without a bandwidth nothing has a length.
    if sender.plan.is_err() {
        return lines;
    }
    for resource in resources(scenario, all) {
        let judged = resource.blocking.iter().any(Option::is_some);
        if !judged || !matches!(resource.kind, Kind::Networks(_)) {
            continue;
        }
        let name = words::resource(scenario, resource.kind);
        let same = |known: &&mut (Vec<String>, Resource)| {
            known.1.tasks == resource.tasks && known.1.channels == resource.channels
        };
        match lines.iter_mut().find(same) {
            Some((names, _)) => names.push(name),
            None => lines.push((vec![name], resource)),
        }
    }
    lines
}
