//! Starting, looking after the interfaces, ending.

mod state;
mod told;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bumpless_node::control::{ControlServer, Handler};
use bumpless_node::{InstanceLock, LockError, key_file};
use bumpless_reception::{StartError, survey};
use serde_json::{Value, json};

use crate::config::Config;
use crate::event;
use crate::programs::Programs;
use crate::request::{Request, socket_path};
use state::{Admission, Shared};
use told::Told;

/// Between two looks at whether the daemon is to end.
const LOOK: Duration = Duration::from_millis(20);
/// Between two looks at the interfaces and at what was dropped.
const ROUND: Duration = Duration::from_secs(1);

/// How a daemon is run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Print events as JSON.
    pub json: bool,
    /// Set to end.
    pub stop: Arc<AtomicBool>,
}

/// Why a daemon did not start. Nothing of it is left on the host.
#[derive(Debug)]
pub enum RunError {
    /// The kernel, or interfaces.
    Reception(Vec<StartError>),
    /// It runs already.
    Lock(LockError),
    /// The control socket.
    Socket(io::Error),
    /// The socket for programs.
    Registration(PathBuf, io::Error),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reception(errors) => {
                let all: Vec<_> = errors.iter().map(ToString::to_string).collect();
                f.write_str(&all.join("\n"))
            }
            Self::Lock(LockError::Running { path, pid }) => {
                write!(f, "a guard runs already on this host")?;
                if let Some(pid) = pid {
                    write!(f, " (process {pid})")?;
                }
                write!(
                    f,
                    "; stop it first, or give this one another socket (lock {})",
                    path.display()
                )
            }
            Self::Lock(error) => error.fmt(f),
            Self::Socket(error) => write!(f, "cannot open the control socket: {error}"),
            Self::Registration(path, error) => write!(
                f,
                "cannot open the socket {} at which programs register: {error}; name another one as `socket` in [registration], or leave \
                 `group` out",
                path.display()
            ),
        }
    }
}

impl std::error::Error for RunError {}

/// Everything that would keep a start from being whole on this host. Nothing is attached.
pub fn check_host(config: &Config) -> Vec<StartError> {
    survey(&config.setup(), &config.host.interfaces)
}

/// Guards the host with the file at `file`, whose content is `config`, until it is told to stop.
///
/// # Errors
/// [`RunError`]. Whatever it ends by, no program of it is left on an interface.
pub fn run(config: Config, file: &Path, options: &Options) -> Result<(), RunError> {
    let folder = key_file::folder_of(Some(file));
    let socket = socket_path(&config, folder);
    let lock = PathBuf::from(format!("{}.lock", socket.display()));
    let _lock = InstanceLock::take(&lock).map_err(RunError::Lock)?;
    let asked = config.registration.as_ref();
    let at = asked.map_or_else(PathBuf::new, |it| it.socket_path(folder));
    let shared = Shared::start(&config, at.clone()).map_err(|errors| {
        // Rights are asked for first; what else is wrong is to be told, too.
        let all = check_host(&config);
        RunError::Reception(if all.is_empty() { errors } else { all })
    })?;
    let shared = Arc::new(shared);
    let programs = asked.map(|it| Programs::listen(&at, &it.group)).transpose();
    let programs = programs.map_err(|error| RunError::Registration(at, error))?;
    let asking = Asking(Arc::clone(&shared));
    let _server = ControlServer::start(&socket, None, asking).map_err(RunError::Socket)?;
    guard(&shared, programs, options);
    event::say(
        options.json,
        "stopped",
        json!({}),
        "stopped: frames arrive as they are",
    );
    Ok(())
}

/// Looks after interfaces and programs until it is to end.
fn guard(shared: &Shared, mut programs: Option<Programs>, options: &Options) {
    let mut told = Told::new(options.json);
    told.started(shared);
    let mut due = Instant::now() + ROUND;
    while !options.stop.load(Ordering::Relaxed) {
        match &mut programs {
            Some(programs) => programs.serve(LOOK, &mut Admission(shared)),
            None => thread::sleep(LOOK),
        }
        if Instant::now() >= due {
            due = Instant::now() + ROUND;
            if let Some(programs) = &mut programs {
                programs.look_after(&mut Admission(shared));
            }
            told.round(shared);
        }
    }
}

/// Answers at the control socket.
struct Asking(Arc<Shared>);

impl Handler for Asking {
    type Request = Request;

    fn is_order(_: &Request) -> bool {
        false
    }

    fn handle(&mut self, Request::Status: Request) -> Value {
        self.0.status()
    }
}

/// So many flows.
pub fn flows_in_words(count: usize) -> String {
    match count {
        1 => "1 flow".to_owned(),
        count => format!("{count} flows"),
    }
}
