//! The daemon of one controller: data-plane thread, executors, status and control.
//!
//! [`run`] builds everything from the configuration, starts the threads that ARCHITECTURE.md lists,
//! and returns when it is told to stop. Links are opened by a closure that the caller hands in, so
//! that a laboratory can put fault-injecting drivers where the product puts UDP sockets.

#![forbid(unsafe_code)]

pub mod admission;
pub mod applications;
mod assembly;
pub mod build;
pub mod certificates;
pub mod change;
pub mod control;
pub mod counter_board;
pub mod data_plane;
pub mod directory;
pub mod event;
pub mod executor;
mod field;
pub mod field_drivers;
pub mod field_identity;
pub mod field_values;
mod instance_lock;
pub mod key_file;
pub mod key_service;
pub mod log;
pub mod management;
pub mod membership;
pub mod note;
pub mod opening;
mod operator;
pub mod persist;
pub mod program;
pub mod realtime;
pub mod reception;
mod running;
pub mod short_text;
pub mod snapshot;
pub mod state_security;
pub mod status;
pub mod succession;
pub mod values;
pub mod wiring;
pub mod witness;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bumpless_base::{LinkId, NodeId};
use bumpless_config::Config;
use bumpless_net_linux::errno::explained;
use bumpless_net_linux::open_files::TooFew;
use bumpless_net_linux::{Link, OpenError, UdpConfig, UdpLink};

use crate::certificates::IdentityError;
use crate::key_file::KeyFileError;

pub use instance_lock::{InstanceLock, LockError};
pub use log::LogFormat;
pub use wiring::LinkSettings;

/// How a node is run, beyond its configuration.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The configuration's file, which a change while the node runs replaces; `None`: there is none, and
    /// the node refuses changes.
    pub config_file: Option<PathBuf>,
    /// Append the event log to this file.
    pub log_file: Option<PathBuf>,
    /// Print events on standard output in this format.
    pub log_stdout: Option<LogFormat>,
    /// Log every transfer, not only failed ones.
    pub log_transfers: bool,
    /// Log every cycle's outputs, not only those that were not written.
    pub log_outputs: bool,
    /// A command that calls `bumpless_placement::restore` when its input ends: it puts back what a node that is killed has changed
    /// of its interfaces. `None`: the next start does.
    pub keeper: Option<Vec<OsString>>,
    /// Set to end the node. A primary with a synchronised backup hands over first.
    pub stop: Arc<AtomicBool>,
}

/// Why a node did not start, or ended unbidden. Nothing keeps running.
#[derive(Debug)]
pub enum RunError {
    /// The node already runs on this machine, or the lock cannot be taken.
    Lock(LockError),
    /// A network's link could not be opened.
    Link {
        /// The network.
        network: String,
        /// What the system or driver said, with a remedy.
        cause: String,
    },
    /// Another node keeps its states in this node's folder.
    StateDir(PathBuf),
    /// Key files that cannot be used, all of them.
    Keys(Vec<KeyFileError>),
    /// The node has no certificate, or files of it that cannot be used, all of them.
    Identity(IdentityError),
    /// The plan refuses the configuration; why, and what to do.
    Refused(String),
    /// A core refused its setup; the configuration let something through that it should not have.
    Setup(String),
    /// The system permits fewer open files than the node needs.
    OpenFiles(TooFew),
    /// The event log's file cannot be made or opened.
    Log {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// Something of the system's was refused.
    System {
        /// What was attempted.
        what: &'static str,
        /// What the system said.
        cause: io::Error,
    },
    /// The data plane, which had started, ended by a panic: a defect of the program.
    Panicked,
}

impl RunError {
    /// Makes the error of a refusal by the system when `what` was attempted.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::System { what, cause }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock(error) => error.fmt(f),
            Self::StateDir(path) => f.write_str(&persist::in_use(path)),
            Self::Keys(errors) => f.write_str(&key_file::told(errors)),
            Self::Identity(error) => error.fmt(f),
            Self::Refused(reasons) => f.write_str(reasons),
            Self::Link { network, cause } => write!(f, "network '{network}': {cause}"),
            Self::Setup(cause) => write!(f, "the configuration cannot be run: {cause}"),
            Self::OpenFiles(error) => error.fmt(f),
            Self::Log { path, cause } => write!(
                f,
                "cannot write the event log {}: {}; give another file with --log, or make its folder, writable for \
                 this user",
                path.display(),
                explained(cause)
            ),
            Self::System { what, cause } => write!(f, "cannot {what}: {}", explained(cause)),
            Self::Panicked => f.write_str(
                "the data plane ended by a panic, so this node has ended; start it again, and report this with \
                 the log and what was said on standard error",
            ),
        }
    }
}

impl std::error::Error for RunError {}

/// A link that is ready for use.
pub struct OpenedLink {
    /// The driver.
    pub driver: Box<dyn Link + Send>,
    /// What was not granted, a line each; log and status show them.
    pub notes: Vec<String>,
    /// Whether its address is on this machine at present.
    pub present: bool,
}

/// Opens the link of one network.
pub type OpenLink<'a> = &'a mut dyn FnMut(LinkId, &LinkSettings) -> Result<OpenedLink, OpenError>;

/// Runs `node` of `config` until `options.stop` is set.
///
/// # Errors
/// A configuration that the plan refuses, unless it permits that itself, and whatever else keeps the node from
/// starting; [`RunError::Panicked`] if it ends by a defect of its own. Other trouble while it runs goes to log
/// and status.
pub fn run(
    config: &Config,
    node: NodeId,
    options: RunOptions,
    open_link: OpenLink<'_>,
) -> Result<(), RunError> {
    assembly::run(config, node, options, open_link)
}

/// Takes the lock under which `node` of `config` runs on this machine, so that nothing else runs it meanwhile.
///
/// # Errors
/// It runs already, or the lock's file cannot be made.
pub fn lock(config: &Config, node: NodeId) -> Result<InstanceLock, LockError> {
    let socket = config.control_socket(node);
    InstanceLock::take(&PathBuf::from(format!("{}.lock", socket.display())))
}

/// Says `message` on standard error. Where that cannot be written (a terminal that is gone) nothing is said, and
/// nothing else happens.
fn warn(message: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "bumpless: {message}");
}

/// Opens a UDP socket for `settings`: what the product passes to [`run`]. An address that is not on
/// this machine yet is waited for.
///
/// # Errors
/// The address is in use, or the system refuses; each with its remedy.
pub fn open_udp(_link: LinkId, settings: &LinkSettings) -> Result<OpenedLink, OpenError> {
    let mut config = UdpConfig::new(settings.local);
    config.dscp = settings.dscp;
    config.priority = settings.priority;
    config.busy_poll = settings.busy_poll;
    config.may_be_absent = true;
    config.receive_buffer = config.receive_buffer.max(settings.windows());
    let link = UdpLink::open(&config)?;
    let report = link.report();
    let (notes, present) = (report.notes.clone(), report.address_present);
    Ok(OpenedLink {
        driver: Box::new(link),
        notes,
        present,
    })
}
