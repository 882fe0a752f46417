//! A pair across sites of a wide-area network, of which one ends again and again (`spec/wan.md`, U-70 and further).
//!
//! | module | owns |
//! |---|---|
//! | `configuration` | the pair's file, with times from the plan |
//! | `pair` | the real programs, at their sites |
//! | `run` | sites that end, and are back |
//! | `judge` | whether promises were kept |
//! | `result`, `table` | what is kept and told |

mod configuration;
mod judge;
mod pair;
mod result;
mod run;
mod table;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bumpless_base::Duration;
use bumpless_wan::address::{Addresses, Pool};
use bumpless_wan::emulation::Place;
use bumpless_wan::{Kind, Topology};

pub use bumpless_plan::distance::Ending;
pub use result::SitesResult;
pub use run::run_sites;

/// Where everybody is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sites {
    /// Both controllers.
    pub nodes: [String; 2],
    /// The witness.
    pub witness: String,
    /// The field device.
    pub field: String,
}

impl Sites {
    /// Both control centres, and of the substations one a third of all in the order of the network for the witness, one
    /// two thirds for the field device.
    ///
    /// # Errors
    /// The network has too few of them.
    pub fn of(topology: &Topology) -> Result<Self, String> {
        let of = |kind: Kind| {
            let hosts = topology.hosts().map(|host| topology.node(host));
            let names = hosts
                .filter(|node| node.kind == kind)
                .map(|node| node.name.clone());
            names.collect::<Vec<_>>()
        };
        let (centres, substations) = (of(Kind::Centre), of(Kind::Substation));
        let [left, right, ..] = &centres[..] else {
            return Err("the network has no two control centres; give --centres 2, or say where the controllers are (--sites)".to_owned());
        };
        let at = |third: usize| substations.get(substations.len() * third / 3).cloned();
        let (Some(witness), Some(field)) = (at(1), at(2)) else {
            return Err(
                "the network has no substation for the witness; give more backbone pairs"
                    .to_owned(),
            );
        };
        Ok(Self {
            nodes: [left.clone(), right.clone()],
            witness,
            field,
        })
    }

    /// Whether everybody is somewhere on this network.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn check(&self, topology: &Topology) -> Result<(), String> {
        let addresses = Addresses::new(topology, Pool::V4).map_err(|error| error.to_string())?;
        configuration::Map::new(topology, &addresses, self).map(drop)
    }
}

/// What is to be done.
#[derive(Debug)]
pub struct SitesOptions {
    /// The program of which the processes are started.
    pub binary: PathBuf,
    /// The name of the network meanwhile.
    pub place: Place,
    /// The network.
    pub topology: Topology,
    /// Where everybody is on it.
    pub sites: Sites,
    /// Between two heartbeats.
    pub heartbeat: Duration,
    /// Between two cycles at least.
    pub period: Duration,
    /// A lease longer than the plan asks for.
    pub lease: Option<Duration>,
    /// How many sites end.
    pub failures: u32,
    /// How they do, in turn.
    pub endings: Vec<Ending>,
    /// What all chance is drawn from.
    pub seed: u64,
    /// Set to end early.
    pub stop: Arc<AtomicBool>,
}
