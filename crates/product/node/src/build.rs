//! Putting a node together from its configuration, without the operating system: the daemon puts
//! threads and sockets around it, a simulator puts a world.

mod cores;
mod parts;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use bumpless_base::Instant;
use bumpless_config::Config;
use bumpless_transfer::{ReceiverFactory, SenderFactory};
use rtrb::{Producer, RingBuffer};

use crate::RunError;
use crate::data_plane::change::ChangeBoard;
use crate::data_plane::drivers::{Drivers, Pingers, Ports};
use crate::data_plane::{Command, DataPlane, Surroundings};
use crate::log::EventLog;
use crate::snapshot::Snapshot;
use crate::wiring::Wiring;

pub use cores::{Ends, build_cores};
pub use parts::{MemberSlot, Parts, Shared};

/// Orders that wait at a node.
const COMMANDS: usize = 8;

/// With what a process of a node begins, beyond its configuration.
pub struct Beginning {
    /// Random for each start: it tells the node's incarnations apart.
    pub seed: u64,
    /// The node's clock.
    pub now: Instant,
    /// Ends the node.
    pub stop: Arc<AtomicBool>,
    /// Whether to log every transfer.
    pub log_transfers: bool,
}

/// A node that is put together and has not begun: its data plane, and the ends of those that live beside it.
pub struct Node<D: Drivers> {
    /// Its data plane.
    pub plane: DataPlane<D>,
    /// The applications' ends of each channel.
    pub ends: Ends,
    /// What each application's executor shares with the data plane.
    pub parts: Parts,
    /// What it tells.
    pub log: EventLog,
    /// Orders to it.
    pub orders: Producer<Command<D::Suite>>,
    /// Where its status is read.
    pub snapshot: Arc<Mutex<Snapshot>>,
    /// What a change of the configuration waits for.
    pub board: Arc<ChangeBoard>,
    /// Channels of applications that come later.
    pub factories: (SenderFactory, ReceiverFactory),
}

impl<D: Drivers> Node<D> {
    /// The node of `wiring` with these `drivers`.
    ///
    /// # Errors
    /// What a core refuses of its setup.
    pub fn new(
        config: &Config,
        wiring: &Wiring,
        drivers: (Ports<D>, Pingers<D>),
        beginning: Beginning,
    ) -> Result<Self, RunError> {
        let Beginning { seed, now, .. } = beginning;
        let (cores, ends) = build_cores(config, wiring, seed, now)?;
        let factories = (cores.sender.factory(), cores.receiver.factory());
        let session = cores.redundancy.session();
        let snapshot = Snapshot::new(config, &wiring.names, session, now);
        let snapshot = Arc::new(Mutex::new(snapshot));
        let mut log = EventLog::new(wiring.names.clone());
        let (orders, commands) = RingBuffer::new(COMMANDS);
        let board = Arc::new(ChangeBoard::default());
        let parts = Parts::new(config, wiring);
        let surroundings = Surroundings {
            commands,
            sink: log.sink(),
            snapshot: Arc::clone(&snapshot),
            board: Arc::clone(&board),
            stop: beginning.stop,
            log_transfers: beginning.log_transfers,
        };
        let own = (parts.groups(config), parts.channels());
        let plane = DataPlane::new((config, wiring), (cores, own), drivers, surroundings, now);
        Ok(Self {
            plane,
            ends,
            parts,
            log,
            orders,
            snapshot,
            board,
            factories,
        })
    }
}
