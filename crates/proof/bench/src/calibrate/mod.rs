//! Measures what transfers between the nodes of a configuration take, for the plan (spec/plan.md, "Cost model").
//!
//! The nodes send states to each other over the data plane that the daemon runs, in [`session`]s of one direction
//! and one route, each in fresh processes. Both computers go through the same sessions: nodes of different
//! sessions do not listen to each other, and a session ends with a state that tells the receiver what the sender
//! has measured.

mod end;
mod run;
pub mod session;
mod summary;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bumpless_config::Config;

pub use end::run_end;
pub use run::{calibrate, keep};
pub use session::Session;
pub use verify::{Row, Verification, verify};

/// What the user wants measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `bumpless` program, which runs the ends of each session.
    pub program: PathBuf,
    /// The configuration's file, which they read.
    pub file: PathBuf,
    /// The configuration.
    pub config: Config,
    /// The two nodes.
    pub nodes: [String; 2],
    /// Those of them that this computer is.
    pub here: Vec<String>,
    /// States of each size.
    pub rounds: usize,
    /// Tell no progress.
    pub silent: bool,
    /// Set when the user wants to stop.
    pub stop: Arc<AtomicBool>,
}

/// Where the costs of the configuration at `file` are kept unless something else is said: `pair.toml` has
/// `pair.costs.json` beside it.
pub fn default_file(file: &Path) -> PathBuf {
    file.with_extension("costs.json")
}

/// The two nodes to be measured: those of the first group, or of the first group that `node` is in.
///
/// # Errors
/// There is no group with `node`.
pub fn nodes_of(config: &Config, node: Option<&str>) -> Result<[String; 2], String> {
    let name = |id: &bumpless_base::NodeId| config.nodes[usize::from(id.0)].name.clone();
    let pairs = config
        .groups
        .iter()
        .filter_map(|group| match group.candidates.as_slice() {
            [first, second, ..] => Some([name(first), name(second)]),
            _ => None,
        });
    let mut of_node =
        pairs.filter(|pair| node.is_none_or(|node| pair.iter().any(|name| name == node)));
    of_node.next().ok_or_else(|| match node {
        Some(node) => format!("no group has the node '{node}'; name a node of a group"),
        None => "the configuration has no group of two nodes; add one".into(),
    })
}

/// Those of `nodes` whose addresses are all on this computer.
pub fn here(config: &Config, nodes: &[String]) -> Vec<String> {
    let own = |name: &&String| {
        let node = config.nodes.iter().find(|node| node.name == **name);
        let mut addresses = node
            .into_iter()
            .flat_map(|node| node.addresses.iter().flatten());
        // Port 0 is any free one: whether the node's own is free is asked when it is opened.
        addresses.all(|address| std::net::UdpSocket::bind((address.ip(), 0)).is_ok())
    };
    nodes.iter().filter(own).cloned().collect()
}
