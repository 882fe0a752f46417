//! Where packets of a node's networks are worked off: changed as the configuration asks for as long as the node runs, and looked at for
//! what is to be said against it.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use bumpless_base::NodeId;
use bumpless_config::Config;
use bumpless_placement::{
    Advice, FOLDER, Found, Placement, Surroundings, Tree, Wanted, advice, has_irqbalance, online,
    survey,
};

use super::budgets::{interfaces_of, is_awaited};
use crate::note::Note;

/// One of this computer's interfaces that has an address of a node's.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// The node's name.
    pub node: &'a str,
    /// The interface as it is.
    pub found: Found,
    /// What is to be said against it.
    pub advice: Vec<Advice>,
}

/// All interfaces of this computer with an address of a node's, the loopback one left out.
pub fn seen(config: &Config) -> Vec<Seen<'_>> {
    let tree = Tree::default();
    let with = surroundings(config, &tree);
    let mut all = Vec::new();
    for (at, node) in (0u8..).zip(&config.nodes) {
        for name in interfaces_of(config, NodeId(at)) {
            let found = survey(&tree, &name);
            all.push(Seen {
                node: &node.name,
                advice: advice(&found, &with),
                found,
            });
        }
    }
    all
}

/// Has the interfaces of this node's networks be as the configuration asks, until what is returned is dropped. What the system refuses is
/// added to `notes`. `keeper` is a command that puts everything back when its input ends.
pub fn start(
    (config, node): (&Config, NodeId),
    keeper: Option<&[OsString]>,
    notes: &mut Vec<Note>,
) -> Placement {
    let command = keeper.and_then(<[OsString]>::split_first);
    let command = command.map(|(program, arguments)| {
        let mut command = Command::new(program);
        command.args(arguments);
        command
    });
    let names = interfaces_of(config, node);
    let (with, wanted) = ((Tree::default(), Path::new(FOLDER)), wanted(config));
    if names.is_empty() && !wanted.is_nothing() && is_awaited(config, node) {
        let text = "no interface but the loopback one has an address of this node's yet, so that interrupts and threads stay where they are, other than [reception] \
                    asks for: start the node again once one has";
        notes.push(Note::lasting(text.to_owned()));
    }
    let (placement, refused) = Placement::start(with, &names, &wanted, command);
    notes.extend(refused.into_iter().map(Note::lasting));
    placement
}

const fn wanted(config: &Config) -> Wanted {
    let asked = config.reception.placement;
    Wanted {
        interrupts: asked.interrupt_cpus,
        rps: asked.rps_cpus,
        napi_priority: asked.napi_priority,
    }
}

fn surroundings(config: &Config, tree: &Tree) -> Surroundings {
    Surroundings {
        ring: config.reception.ring,
        data_plane: config.realtime.cpu,
        priority: config.realtime.priority,
        busy_poll: config.reception.busy_poll > bumpless_base::Duration::ZERO,
        online: online(tree),
        has_irqbalance: has_irqbalance(tree),
        wanted: wanted(config),
    }
}
