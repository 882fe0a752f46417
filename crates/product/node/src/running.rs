//! The application threads of a node while it runs: starting, tuning and ending each on its own.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bumpless_base::NodeId;
use bumpless_config as config;
use bumpless_controller::Application;
use bumpless_mailbox::ApplicationMailbox;
use bumpless_net_linux::Waker;
use bumpless_transfer::{Publisher, Subscriber};

use crate::applications::{ApplicationThread, Tuning, TuningSlots};
use crate::build::Shared;
use crate::executor::{ChannelReplication, Threads};
use crate::field_identity::FieldIdentity;
use crate::log::EventSink;
use crate::persist::Keeping;
use crate::program::build_at;
use crate::state_security::StateGuards;

/// Between two looks at whether a thread has taken its new settings.
const LOOK: Duration = Duration::from_millis(1);
/// How much longer than two periods and a deadline that may take.
const TIMEOUT: Duration = Duration::from_secs(2);

/// What every application's thread of a node has in common.
#[derive(Clone)]
pub struct Common {
    /// This node.
    pub node: NodeId,
    /// Wakes the data plane.
    pub waker: Waker,
    /// Whether to log written outputs, too.
    pub log_outputs: bool,
    /// Priority of the data plane's thread; the applications' is one lower.
    pub priority: Option<u8>,
    /// The way to the disk, if the node has a folder for states.
    pub keeping: Option<Keeping>,
    /// What seals and opens states.
    pub guards: StateGuards,
    /// What it shows to field devices.
    pub field: FieldIdentity,
}

struct RunningApplication {
    thread: JoinHandle<()>,
    stop: Arc<AtomicBool>,
    mailbox: Arc<ApplicationMailbox>,
    tuning: Arc<TuningSlots>,
    settings: config::Application,
    /// Those that it takes over, with every version of its program.
    states: States,
}

/// Which states an application takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct States {
    owner: Option<u64>,
    size_max: usize,
}

impl States {
    fn of(application: &dyn Application) -> Self {
        Self {
            owner: application.state_owner(),
            size_max: application.state_size_max(),
        }
    }
}

/// The application threads, by place.
pub struct Running {
    common: Common,
    threads: BTreeMap<usize, RunningApplication>,
}

impl Running {
    /// None so far.
    pub const fn new(common: Common) -> Self {
        Self {
            common,
            threads: BTreeMap::new(),
        }
    }

    /// Starts the application at `place`; `newcomer`: it came while the node ran.
    ///
    /// # Errors
    /// What the system says.
    pub fn start(
        &mut self,
        place: usize,
        (settings, newcomer): (&config::Application, bool),
        shared: Shared,
        (publisher, subscriber): (Publisher, Subscriber),
        sink: EventSink,
    ) -> io::Result<()> {
        let Shared {
            index,
            gate,
            mailbox,
            board,
        } = shared;
        let stop = Arc::new(AtomicBool::new(false));
        let tuning = Arc::new(TuningSlots::default());
        let keeping = self.common.keeping.as_ref();
        let keeper = keeping.and_then(|keeping| keeping.keeper(index as u16, settings));
        let guard = self.common.guards.guard(settings)?;
        let thread = ApplicationThread {
            index,
            node: self.common.node,
            replication: ChannelReplication {
                publisher,
                subscriber,
                expiry: settings.expiry,
                hot_restart: settings.hot_restart,
                keeper,
                guard,
                mailbox: Arc::clone(&mailbox),
                gate: Arc::clone(&gate),
                environment: Threads(self.common.waker.clone()),
            },
            gate,
            mailbox: Arc::clone(&mailbox),
            sink,
            log_outputs: self.common.log_outputs,
            board,
            stop: Arc::clone(&stop),
            tuning: Arc::clone(&tuning),
            newcomer,
        };
        let application = build_at(settings, self.common.priority)?;
        let states = States::of(application.as_ref());
        let with = (application, &self.common.field);
        let thread = thread.start(settings, with, self.common.priority)?;
        let running = RunningApplication {
            states,
            thread,
            stop,
            mailbox,
            tuning,
            settings: settings.clone(),
        };
        self.threads.insert(place, running);
        Ok(())
    }

    /// What the node shows to field devices.
    pub const fn field(&self) -> &FieldIdentity {
        &self.common.field
    }

    /// Ends the application at `place` after its cycle.
    pub fn stop(&mut self, place: usize) {
        if let Some(running) = self.threads.remove(&place) {
            running.end();
        }
    }

    /// Whether what runs at `place` can go on as `settings` say, where these name another version of its program: that is started
    /// to see which states it takes over.
    ///
    /// # Errors
    /// Why it cannot, in words.
    pub fn judge(&self, place: usize, settings: &config::Application) -> Result<(), String> {
        let Some(running) = self.threads.get(&place) else {
            return Ok(());
        };
        if !config::changes_program(&running.settings, settings) {
            return Ok(());
        }
        let name = &settings.name;
        let application =
            build_at(settings, None).map_err(|error| format!("application '{name}': {error}"))?;
        let (here, next) = (running.states, States::of(application.as_ref()));
        if next == here {
            return Ok(());
        }
        let differs = match next.owner == here.owner {
            true => format!(
                "has a state of {} bytes, and the one that runs has one of {}",
                next.size_max, here.size_max
            ),
            false => "does not say that its state has the layout of the one that runs".into(),
        };
        Err(format!(
            "application '{name}': this version of its program {differs}; build it with the state_version of the one that runs if \
             its state is the same, or give it another name and a channel that was not used since the nodes started: it then \
             begins anew, and the old one ends"
        ))
    }

    /// Has the application at `place` go on with `settings` after its cycle.
    ///
    /// # Errors
    /// Why it does not, in words.
    pub fn tune(&mut self, place: usize, settings: &config::Application) -> Result<(), String> {
        let Some(running) = self.threads.get_mut(&place) else {
            return Err(format!("'{}' does not run here", settings.name));
        };
        let name = &settings.name;
        let tuning = Tuning::new(
            settings,
            (self.common.node, &self.common.field),
            self.common.priority,
        )
        .map_err(|error| format!("'{name}' goes on as it was: {error}"))?;
        running.tuning.ask(tuning);
        running.mailbox.wake();
        // It looks between two cycles.
        let before = &running.settings;
        let cycle = before.period * 2 + before.deadline;
        let until = Instant::now() + cycle.to_std() + TIMEOUT;
        while Instant::now() < until {
            if let Some(result) = running.tuning.answer() {
                running.settings = settings.clone();
                return result.map_err(|error| format!("'{name}' goes on as it was: {error}"));
            }
            std::thread::sleep(LOOK);
        }
        Err(format!("'{name}' has not ended its cycle; see its log"))
    }

    /// Ends all, at once.
    pub fn stop_all(&mut self) {
        for running in self.threads.values() {
            running.stop.store(true, Ordering::Release);
            running.mailbox.wake();
        }
        for (_, running) in std::mem::take(&mut self.threads) {
            running.end();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop_all();
    }
}

impl RunningApplication {
    fn end(self) {
        self.stop.store(true, Ordering::Release);
        self.mailbox.wake();
        // A thread that panics ends the process.
        let _ = self.thread.join();
    }
}
