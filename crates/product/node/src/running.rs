//! The application threads of a node while it runs: starting, tuning and ending each on its own.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bumpless_base::NodeId;
use bumpless_config as config;
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
use crate::succession::{self, Version};

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
    version: Version,
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
        let application = build_at(settings, self.common.priority)?;
        let version = Version::of(settings, application.as_ref());
        let keeping = self.common.keeping.as_ref();
        let keeper =
            keeping.and_then(|keeping| keeping.keeper(index as u16, settings, version.saved()));
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
        let with = (application, &self.common.field);
        let thread = thread.start(settings, with, self.common.priority)?;
        let running = RunningApplication {
            thread,
            stop,
            mailbox,
            tuning,
            version,
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

    /// Whether what runs at `place` can go on as `settings` say, where these name another version of its program: that is started,
    /// and takes over a copy of the newest state.
    ///
    /// # Errors
    /// Why it cannot, in words.
    pub fn judge(&self, place: usize, settings: &config::Application) -> Result<(), String> {
        let Some(running) = self.threads.get(&place) else {
            return Ok(());
        };
        if !running.version.is_another(settings) {
            return Ok(());
        }
        let state = running.newest_state();
        succession::build(settings, &running.version, None, state.as_deref()).map(drop)
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
        let as_it_was = |error: String| format!("'{name}' goes on as it was: {error}");
        let tuning = Tuning::new(
            (settings, &running.version),
            (self.common.node, &self.common.field),
            self.common.priority,
        )
        .map_err(|error| as_it_was(error.to_string()))?;
        let next = tuning.version(settings);
        // Before the first state of it can come.
        if running.version.is_another(settings)
            && let Some(keeping) = &self.common.keeping
        {
            keeping.add_version(name, next.saved());
        }
        running.tuning.ask(tuning);
        running.mailbox.wake();
        match running.answered(TuningSlots::answer) {
            Some(Ok(())) => {
                running.version = next;
                Ok(())
            }
            Some(Err(error)) => Err(as_it_was(error)),
            None => Err(format!("'{name}' has not ended its cycle; see its log")),
        }
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
    /// A copy of the newest state, if its thread gives one in time.
    fn newest_state(&self) -> Option<Vec<u8>> {
        self.tuning.ask_for_state(self.version.size_max());
        self.mailbox.wake();
        let state = self.answered(TuningSlots::state)?;
        (!state.is_empty()).then_some(state)
    }

    /// What its thread says between two cycles.
    fn answered<T>(&self, answer: impl Fn(&TuningSlots) -> Option<T>) -> Option<T> {
        let settings = &self.version.settings;
        let cycle = settings.period * 2 + settings.deadline;
        let until = Instant::now() + cycle.to_std() + TIMEOUT;
        while Instant::now() < until {
            if let Some(answer) = answer(&self.tuning) {
                return Some(answer);
            }
            std::thread::sleep(LOOK);
        }
        None
    }

    fn end(self) {
        self.stop.store(true, Ordering::Release);
        self.mailbox.wake();
        // A thread that panics ends the process.
        let _ = self.thread.join();
    }
}
