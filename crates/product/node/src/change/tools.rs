//! What a change is made with in a daemon.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bumpless_net_linux::Waker;
use rtrb::Producer;

use super::store::Store;
use crate::data_plane::Command;
use crate::data_plane::change::ChangeBoard;
use crate::directory::Directory;
use crate::log::{EventSink, LogRegistry};
use crate::running::Running;

/// What the thread works with.
pub struct Tools {
    /// The configuration's file; without one nothing is changed.
    pub store: Option<Store>,
    /// Where paths of keys begin.
    pub keys_folder: PathBuf,
    /// What the data plane says.
    pub board: Arc<ChangeBoard>,
    /// Orders to it.
    pub orders: Arc<Mutex<Producer<Command>>>,
    /// Wakes it.
    pub waker: Waker,
    /// The applications' threads.
    pub running: Running,
    /// The log's names.
    pub registry: LogRegistry,
    /// Way into the log.
    pub sink: EventSink,
    /// What status shows.
    pub directory: Arc<Mutex<Directory>>,
}
