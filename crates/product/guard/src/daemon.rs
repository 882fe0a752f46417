//! Starting, looking after the interfaces, ending.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bumpless_guard::Setup;
use bumpless_node::control::{ControlServer, Handler, refusal};
use bumpless_node::{InstanceLock, LockError, key_file, reception};
use bumpless_reception::{InterfaceReport, Reception, StartError, survey};
use serde_json::{Value, json};

use crate::config::Config;
use crate::event;
use crate::request::{Request, socket_path};

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
    let socket = socket_path(&config, key_file::folder_of(Some(file)));
    let lock = PathBuf::from(format!("{}.lock", socket.display()));
    let _lock = InstanceLock::take(&lock).map_err(RunError::Lock)?;
    let setup = config.setup();
    let held = Reception::start(&setup, &config.host.interfaces).map_err(|errors| {
        // Rights are asked for first; what else is wrong is to be told, too.
        let all = check_host(&config);
        RunError::Reception(if all.is_empty() { errors } else { all })
    })?;
    let shared = Arc::new(Shared {
        names: config.flows.iter().map(|flow| flow.name.clone()).collect(),
        load_percent: config.load_percent(),
        setup,
        started: Instant::now(),
        held: Mutex::new(held),
    });
    let asking = Asking(Arc::clone(&shared));
    let _server = ControlServer::start(&socket, None, asking).map_err(RunError::Socket)?;
    let mut told = Told::new(options.json);
    told.started(&shared);
    let mut due = Instant::now() + ROUND;
    while !options.stop.load(Ordering::Relaxed) {
        thread::sleep(LOOK);
        if Instant::now() >= due {
            due = Instant::now() + ROUND;
            told.round(&shared);
        }
    }
    event::say(
        options.json,
        "stopped",
        json!({}),
        "stopped: frames arrive as they are",
    );
    Ok(())
}

/// What the daemon's threads share.
struct Shared {
    names: Vec<String>,
    load_percent: f64,
    setup: Setup,
    started: Instant,
    held: Mutex<Reception>,
}

impl Shared {
    fn report(&self, look_after: bool) -> io::Result<Vec<InterfaceReport>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if look_after {
            held.look_after();
        }
        held.report()
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
        let shared = &self.0;
        let reports = match shared.report(false) {
            Ok(reports) => reports,
            Err(error) => {
                return refusal(format_args!("the kernel does not give the counts: {error}"));
            }
        };
        json!({
            "schema": "bumpless.guard.status/1",
            "pid": std::process::id(),
            "uptime_s": shared.started.elapsed().as_secs_f64(),
            "budgets_percent_of_processor": shared.load_percent,
            "interfaces": reception::interfaces(&reports, &shared.setup, &shared.names),
            "weaknesses": reception::weaknesses(&reports),
        })
    }
}

/// So many flows.
pub fn flows_in_words(count: usize) -> String {
    match count {
        1 => "1 flow".to_owned(),
        count => format!("{count} flows"),
    }
}

/// What was told already, so that it is told once.
struct Told {
    json: bool,
    modes: BTreeMap<String, Option<&'static str>>,
    /// Frames dropped, by interface and flow, and whether the last round had some.
    dropped: BTreeMap<(String, String), (u64, bool)>,
}

impl Told {
    const fn new(json: bool) -> Self {
        Self {
            json,
            modes: BTreeMap::new(),
            dropped: BTreeMap::new(),
        }
    }

    fn started(&mut self, shared: &Shared) {
        let Ok(reports) = shared.report(false) else {
            return;
        };
        for it in &reports {
            let mode = it.mode.map(|mode| mode.name());
            self.modes.insert(it.name.clone(), mode);
            let how = mode.unwrap_or("not");
            let words = match &it.weakness {
                None => format!("{}: guarded ({how})", it.name),
                Some(weakness) => format!("{}: guarded ({how}); weakness: {weakness}", it.name),
            };
            event::say(
                self.json,
                "guarded",
                json!({"interface": it.name, "mode": mode}),
                &words,
            );
        }
        let words = format!(
            "runs with {}; all budgets together take {:.1} % of a processor at most",
            flows_in_words(shared.names.len()),
            shared.load_percent
        );
        event::say(self.json, "started", json!({"flows": shared.names}), &words);
    }

    fn round(&mut self, shared: &Shared) {
        let Ok(reports) = shared.report(true) else {
            return;
        };
        for it in &reports {
            self.mode(it);
            for (flow, counts) in &it.flows {
                let name = reception::name(*flow, &shared.names);
                self.drops((&it.name, name), counts.capacity + counts.closed);
            }
        }
    }

    fn mode(&mut self, it: &InterfaceReport) {
        let mode = it.mode.map(|mode| mode.name());
        let before = self.modes.insert(it.name.clone(), mode);
        if before == Some(mode) {
            return;
        }
        let about = json!({"interface": it.name, "mode": mode});
        match mode {
            Some(mode) => {
                let words = format!("{}: guarded again ({mode})", it.name);
                event::say(self.json, "guarded", about, &words);
            }
            None => {
                let why = it.weakness.as_deref().unwrap_or_default();
                let words = format!("{}: guarded no more: {why}", it.name);
                event::say(self.json, "unguarded", about, &words);
            }
        }
    }

    /// Says when frames of a flow begin to be dropped, and when that has ended.
    fn drops(&mut self, (interface, flow): (&str, &str), dropped: u64) {
        let key = (interface.to_owned(), flow.to_owned());
        let (before, was_dropping) = self.dropped.get(&key).copied().unwrap_or_default();
        let is_dropping = dropped > before;
        self.dropped.insert(key, (dropped, is_dropping));
        let about = json!({"interface": interface, "flow": flow, "dropped": dropped});
        match (was_dropping, is_dropping) {
            (false, true) => {
                let words = format!(
                    "{interface}: more than its budget of {flow}: {} dropped",
                    dropped - before
                );
                event::say(self.json, "dropping", about, &words);
            }
            (true, false) => {
                let words = format!(
                    "{interface}: {flow} within its budget again; {dropped} dropped since the start"
                );
                event::say(self.json, "not_dropping", about, &words);
            }
            _ => {}
        }
    }
}
