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

use bumpless_node::control::{ControlServer, Handler, refusal};
use bumpless_node::reception::programs::{self, Programs};
use bumpless_node::{InstanceLock, LockError, key_file};
use bumpless_reception::{AttachError, StartError, survey};
use serde_json::{Value, json};

use crate::config::Config;
use crate::event;
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
    /// Set to read the file again.
    pub reload: Arc<AtomicBool>,
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

/// Everything that would keep a start from being whole on this host, but for a guard that runs already as process `running`. Nothing
/// is attached.
pub fn check_host(config: &Config, running: Option<u32>) -> Vec<StartError> {
    let mut errors = survey(&config.setup(), &config.host.interfaces);
    errors.retain(|error| match error {
        StartError::Attach(_, AttachError::Occupied(Some(who))) => {
            let mut processes = who.processes.iter();
            !processes.any(|(process, _)| Some(*process) == running)
        }
        _ => true,
    });
    errors
}

/// What would keep programs from registering with a guard that runs with the file at `file`.
pub fn check_registration(config: &Config, file: &Path) -> Option<RunError> {
    let asked = config.registration.as_ref()?;
    let at = programs::socket_path(asked, key_file::folder_of(Some(file)));
    let obstacle = programs::obstacle(&at, &asked.group);
    obstacle
        .err()
        .map(|error| RunError::Registration(at, error))
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
    let at = asked.map_or_else(PathBuf::new, |it| programs::socket_path(it, folder));
    let shared = Shared::start(config.clone(), at.clone()).map_err(|errors| {
        // Rights are asked for first; what else is wrong is to be told, too.
        let all = check_host(&config, None);
        RunError::Reception(if all.is_empty() { errors } else { all })
    })?;
    let shared = Arc::new(shared);
    let programs = asked.map(|it| Programs::listen(&at, &it.group)).transpose();
    let programs = programs.map_err(|error| RunError::Registration(at, error))?;
    let file = File {
        shared: Arc::clone(&shared),
        path: file.to_owned(),
        json: options.json,
    };
    let asking = Asking(file.clone());
    let _server = ControlServer::start(&socket, None, asking).map_err(RunError::Socket)?;
    guard(&file, programs, options);
    event::say(
        options.json,
        "stopped",
        json!({}),
        "stopped: frames arrive as they are",
    );
    Ok(())
}

/// Looks after interfaces and programs until it is to end.
fn guard(file: &File, mut programs: Option<Programs>, options: &Options) {
    let shared = &*file.shared;
    let mut told = Told::new(options.json);
    told.started(shared);
    let mut due = Instant::now() + ROUND;
    while !options.stop.load(Ordering::Relaxed) {
        match &mut programs {
            Some(programs) => programs.serve(LOOK, &mut Admission(shared)),
            None => thread::sleep(LOOK),
        }
        if options.reload.swap(false, Ordering::Relaxed) {
            file.reload();
        }
        if Instant::now() >= due || shared.take_changed() {
            due = Instant::now() + ROUND;
            if let Some(programs) = &mut programs {
                programs.look_after(&mut Admission(shared));
            }
            told.round(shared);
        }
    }
}

/// The host's file, which may be read again.
#[derive(Clone)]
struct File {
    shared: Arc<Shared>,
    path: PathBuf,
    json: bool,
}

impl File {
    /// Reads it again and says what came of that.
    fn reload(&self) -> Value {
        let followed = self.shared.reload(&self.path);
        let words = match &followed {
            Ok(true) => "the file was read again and is in force; counts begin anew".to_owned(),
            Ok(false) => "the file was read again and says nothing else than before".to_owned(),
            Err(wrong) => format!(
                "the file was not taken, everything is as it was:\n{}",
                wrong.join("\n")
            ),
        };
        let reply = match &followed {
            Ok(changed) => {
                json!({"schema": "bumpless.guard.reload/1", "ok": true, "changed": changed})
            }
            Err(wrong) => refusal(wrong.join("\n")),
        };
        event::say(self.json, "reload", reply.clone(), &words);
        reply
    }
}

/// Answers at the control socket.
struct Asking(File);

impl Handler for Asking {
    type Request = Request;
    type Reply = Value;

    fn is_order(request: &Request) -> bool {
        match request {
            Request::Status => false,
            Request::Reload => true,
        }
    }

    fn handle(&mut self, request: Request) -> Value {
        match request {
            Request::Status => self.0.shared.status(),
            Request::Reload => self.0.reload(),
        }
    }
}

/// So many flows.
pub fn flows_in_words(count: usize) -> String {
    match count {
        1 => "1 flow".to_owned(),
        count => format!("{count} flows"),
    }
}
