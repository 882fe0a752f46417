//! What the threads of a node share.

use std::path::Path;
use std::sync::{Arc, Mutex};

use bumpless_net_linux::Waker;
use rtrb::Producer;

use crate::RunError;
use crate::change::store::Store;
use crate::change::{RunningChanges, Tools};
use crate::data_plane::Command;
use crate::data_plane::change::ChangeBoard;
use crate::directory::Directory;
use crate::key_service::KeyService;
use crate::log::{EventLog, EventSink, LogHealth, LogRegistry, Names};
use crate::management::Sessions;
use crate::note::Note;
use crate::operator::Operator;
use crate::persist::Tellers;
use crate::reception::guard::NetworkGuard;
use crate::running::Running;
use crate::snapshot::Snapshot;
use crate::state_security::Healths;
use crate::wiring::Wiring;

/// What the threads of a node share.
pub struct Shared {
    /// Wakes the data plane.
    pub waker: Waker,
    /// Orders to the data plane.
    pub orders: Arc<Mutex<Producer<Command>>>,
    /// What the data plane shows of itself.
    pub snapshot: Arc<Mutex<Snapshot>>,
    /// What the data plane says of changes.
    pub board: Arc<ChangeBoard>,
    /// What status shows besides.
    pub directory: Arc<Mutex<Directory>>,
    /// What was not granted at the start.
    pub notes: Arc<Mutex<Vec<Note>>>,
    /// How the event log does.
    pub log: LogHealth,
}

impl Shared {
    /// Both ends of what the data plane has one of; `notes` is what was not granted so far.
    ///
    /// # Errors
    /// What the system says when the wake-up is made.
    pub fn new(
        directory: Directory,
        (orders, snapshot, board): (Producer<Command>, Arc<Mutex<Snapshot>>, Arc<ChangeBoard>),
        notes: Vec<Note>,
        log: LogHealth,
    ) -> Result<Self, RunError> {
        let waker = Waker::new()
            .map_err(|errno| RunError::system("make a wake-up descriptor")(errno.into()))?;
        Ok(Self {
            waker,
            orders: Arc::new(Mutex::new(orders)),
            snapshot,
            board,
            directory: Arc::new(Mutex::new(directory)),
            notes: Arc::new(Mutex::new(notes)),
            log,
        })
    }

    /// What writes states tells it there.
    pub fn tellers(&self, log: LogRegistry, sink: EventSink) -> Tellers {
        Tellers {
            notes: Arc::clone(&self.notes),
            log,
            sink,
        }
    }

    /// What changes are made with.
    pub fn tools(
        &self,
        (store, keys_folder): (Option<Store>, &Path),
        running: Running,
        (registry, sink): (LogRegistry, EventSink),
    ) -> Tools {
        Tools {
            store,
            keys_folder: keys_folder.to_owned(),
            board: Arc::clone(&self.board),
            orders: Arc::clone(&self.orders),
            waker: self.waker.clone(),
            running,
            registry,
            sink,
            directory: Arc::clone(&self.directory),
        }
    }

    /// Who answers at the control socket.
    pub fn operator(
        &self,
        names: Names,
        changes: &RunningChanges,
        (sessions, states, guard): ((Sessions, KeyService), Healths, NetworkGuard),
    ) -> Operator {
        Operator::new(
            Arc::clone(&self.directory),
            names,
            Arc::clone(&self.snapshot),
            Arc::clone(&self.orders),
            changes.entrance(),
            self.waker.clone(),
            (
                Arc::clone(&self.notes),
                Arc::clone(&self.log),
                sessions,
                states,
                guard,
            ),
        )
    }
}

/// Ways into the log, one for each thread that tells events.
pub struct WaysIntoLog {
    /// Of each application's thread.
    pub executors: Vec<EventSink>,
    /// Of the thread that makes changes.
    pub changes: EventSink,
    /// Of everybody else.
    pub registry: LogRegistry,
}

impl WaysIntoLog {
    /// Ways into `log` for all threads of `wiring`.
    pub fn new(log: &mut EventLog, wiring: &Wiring) -> Self {
        Self {
            executors: wiring.applications.iter().map(|_| log.sink()).collect(),
            changes: log.sink(),
            registry: log.registry(),
        }
    }
}
