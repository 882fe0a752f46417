//! The network with both ways to every host that takes part.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use bumpless_wan::Topology;
use bumpless_wan::address::{Addresses, Pool};
use bumpless_wan::emulation::{
    self, Backup, Cables, Carrying, Line, Place, Routing, Running, Tie, UpError, speak_from_link,
};

use super::plan::{Outage, Plan};
use super::protocol::Protocol;
use crate::study::daemons::{Daemons, monitor};
use crate::study::host::Host;
use crate::study::needs;

/// What the programs of a substation take, bytes. Measured, with a margin.
const SITE_BYTES: u64 = 24 << 20;

/// The network; gone when this is dropped.
#[derive(Debug)]
pub struct Stage {
    /// The network that runs.
    pub running: Running,
    /// Its nodes and links.
    pub topology: Topology,
    /// The control centres, the primary first.
    pub centres: Vec<Host>,
    /// The substations.
    pub sites: Vec<Host>,
    /// Where files are while it is up.
    pub folder: PathBuf,
    cables: Cables,
    carrying: Carrying,
    place: Place,
    _tie: Tie,
}

impl Stage {
    /// Puts the network on this machine, whose routes are `routing`'s, with a second way of the kind `line` to each host of `plan`.
    ///
    /// # Errors
    /// What is missing or refused. Nothing of it is left then.
    pub fn new(
        binary: &Path,
        place: &Place,
        (topology, plan): (&Topology, &Plan),
        (line, routing, seed): (Line, Routing, u64),
    ) -> Result<Self, String> {
        let mut lacking = emulation::lacking(topology);
        lacking.extend(needs::lacking(
            (topology.nodes().len(), plan.substations.len()),
            &needs::Each {
                what: "substations at once",
                option: "--substations",
                bytes: SITE_BYTES,
                protected: true,
            },
        ));
        if !lacking.is_empty() {
            return Err(UpError::Lacking(lacking).to_string());
        }
        let addresses = Addresses::new(topology, Pool::V4).map_err(|error| error.to_string())?;
        let mut keeper = Command::new(binary);
        keeper.args(["wan", "keep", "--tied", "--name", place.name()]);
        let (running, tie) = emulation::up_tied(place, topology, (Pool::V4, routing), &mut keeper)
            .map_err(|error| error.to_string())?;
        let centres = plan.centres.iter().copied();
        let nodes: Vec<_> = centres.chain(plan.substations.iter().copied()).collect();
        let refused = |error: std::io::Error| format!("cannot make the second way: {error}");
        let count = plan.centres.len();
        let backup = Backup::new(&running, topology, (&nodes, count)).map_err(refused)?;
        for &node in &nodes {
            speak_from_link(&running, topology, &addresses, node).map_err(refused)?;
        }
        let lines = backup.lines();
        (count..nodes.len()).for_each(|at| lines.set(at, line));
        let host = |at| Host::new(&running, topology, &addresses, at);
        let mut centres: Vec<_> = nodes.into_iter().enumerate().map(host).collect();
        let sites = centres.split_off(count);
        let folder = place.folder().map_err(|error| error.to_string())?;
        let cables = backup.cables();
        Ok(Self {
            topology: topology.clone(),
            centres,
            sites,
            folder,
            cables,
            carrying: backup.carry(seed),
            running,
            place: place.clone(),
            _tie: tie,
        })
    }

    /// Whether the second way has carried packets until this moment.
    ///
    /// # Errors
    /// Why not.
    pub fn stood(&self) -> Result<(), String> {
        self.carrying.stood()
    }

    /// How many packets found no room where they were to be held, over both ways.
    pub fn overflowed(&self) -> Option<u64> {
        let network = emulation::overflowed(&self.running, &self.topology).ok()?;
        Some(network.unwrap_or(0) + self.cables.overflowed().ok()?)
    }

    /// Starts a daemon of iPRP at each host.
    ///
    /// # Errors
    /// What one says that does not start.
    pub fn protect(&self, binary: &Path, stop: &AtomicBool) -> Result<Daemons, String> {
        let hosts = self.centres.iter().chain(&self.sites).cloned().collect();
        let ports = Protocol::ALL.iter();
        let monitors: String = ports
            .map(|it| monitor(it.transport(), it.port(), "redundant"))
            .collect();
        Daemons::start(binary, &self.folder, (hosts, &monitors), stop)
    }

    /// Makes what `outage` is about carry nothing.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn cut(&self, plan: &Plan, outage: Outage) -> Result<(), String> {
        let refused = |error: std::io::Error| format!("cannot cut a link: {error}");
        emulation::cut(&self.running, &self.topology, plan.links(outage)).map_err(refused)?;
        match outage {
            Outage::Centre => self.cables.cut(0).map_err(refused),
            _ => Ok(()),
        }
    }

    /// Makes it carry everything again.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn heal(&self, plan: &Plan, outage: Outage) -> Result<(), String> {
        let refused = |error: std::io::Error| format!("cannot heal a link: {error}");
        emulation::heal(&self.running, &self.topology, plan.links(outage)).map_err(refused)?;
        match outage {
            Outage::Centre => self.cables.heal(0).map_err(refused),
            _ => Ok(()),
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // What does not end in order ends with the process that holds it.
        let _ = emulation::down(&self.place);
    }
}
