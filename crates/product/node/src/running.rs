//! The application threads of a node while it runs: starting, tuning and ending each on its own.

mod together;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bumpless_base::{self as base, NodeId};
use bumpless_config as config;
use bumpless_mailbox::ApplicationMailbox;
use bumpless_net_linux::Waker;
use bumpless_transfer::{ChannelPlace, Publisher, Subscriber};

use crate::applications::{ApplicationThread, Tuning, TuningSlots};
use crate::build::Shared;
use crate::executor::{ChannelReplication, Threads};
use crate::field_drivers::Opened;
use crate::field_identity::FieldIdentity;
use crate::log::EventSink;
use crate::persist::Keeping;
use crate::program::build_while;
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
    /// Set where the node is to end: a program that begins is not waited for then.
    pub stop: Arc<AtomicBool>,
    /// How long the partner takes to take over.
    pub failover: base::Duration,
}

struct RunningApplication {
    thread: JoinHandle<()>,
    stop: Arc<AtomicBool>,
    mailbox: Arc<ApplicationMailbox>,
    tuning: Arc<TuningSlots>,
    version: Version,
}

/// What is made for an application that is to go on with other settings.
struct Made {
    tuning: Tuning,
    /// What it is from then on.
    next: Version,
    opened: Opened,
}

fn not_here(settings: &config::Application) -> String {
    format!("'{}' does not run here", settings.name)
}

/// The application threads, by place.
pub struct Running {
    common: Common,
    threads: BTreeMap<ChannelPlace, RunningApplication>,
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
        place: ChannelPlace,
        (settings, newcomer): (&config::Application, bool),
        shared: Shared,
        (publisher, subscriber): (Publisher, Subscriber),
        sink: EventSink,
    ) -> io::Result<()> {
        let Shared {
            application: number,
            gate,
            mailbox,
            board,
        } = shared;
        let stop = Arc::new(AtomicBool::new(false));
        let tuning = Arc::new(TuningSlots::default());
        let wanted = || !self.common.stop.load(Ordering::Acquire);
        let application = build_while(settings, self.common.priority, &wanted)?;
        let version = Version::of(settings, application.as_ref());
        let keeping = self.common.keeping.as_ref();
        let keeper = keeping.and_then(|keeping| keeping.keeper(number, settings, version.saved()));
        let guard = self.common.guards.guard(settings)?;
        let thread = ApplicationThread {
            number,
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
    pub fn stop(&mut self, place: ChannelPlace) {
        if let Some(running) = self.threads.remove(&place) {
            running.end();
        }
    }

    /// Whether what runs at `place` can go on as `settings` say, where these name another version of its program: that is started,
    /// and takes over a copy of the newest state.
    ///
    /// # Errors
    /// Why it cannot, in words.
    pub fn judge(&self, place: ChannelPlace, settings: &config::Application) -> Result<(), String> {
        let running = self.threads.get(&place);
        running.map_or(Ok(()), |running| running.judge(settings))
    }

    /// Has the application at `place` go on with `settings` after its cycle.
    ///
    /// # Errors
    /// Why it does not, in words.
    pub fn tune(
        &mut self,
        place: ChannelPlace,
        settings: &config::Application,
    ) -> Result<(), String> {
        let Some(running) = self.threads.get(&place) else {
            return Err(not_here(settings));
        };
        let name = &settings.name;
        let as_it_was = |error: String| format!("'{name}' goes on as it was: {error}");
        let made = self.make(place, settings, None).map_err(as_it_was)?;
        running.tuning.ask(made.tuning);
        running.mailbox.wake();
        match running.answered(TuningSlots::answer) {
            Some(Ok(())) => {
                self.follow(place, made.next, made.opened);
                Ok(())
            }
            Some(Err(error)) => Err(as_it_was(error)),
            None => Err(format!("'{name}' has not ended its cycle; see its log")),
        }
    }

    /// Makes everything with which the application at `place` goes on with `settings`; its next version takes over `state` for trial.
    fn make(
        &self,
        place: ChannelPlace,
        settings: &config::Application,
        state: Option<&[u8]>,
    ) -> Result<Made, String> {
        let running = self.threads.get(&place).ok_or_else(|| not_here(settings))?;
        let common = &self.common;
        let mut opened = Opened::following(&settings.name);
        let mut tuning = Tuning::new(
            (settings, &running.version),
            (common.node, &common.field),
            (common.priority, state),
            &mut opened,
        )
        .map_err(|error| error.to_string())?;
        tuning.warm_up();
        let next = tuning.version(settings);
        // Before the first state of it can come.
        if running.version.is_another(settings)
            && let Some(keeping) = &common.keeping
        {
            keeping.add_version(&settings.name, next.saved());
        }
        Ok(Made {
            tuning,
            next,
            opened,
        })
    }

    /// The application at `place` has gone on with what was made for it.
    fn follow(&mut self, place: ChannelPlace, next: Version, opened: Opened) {
        if let Some(running) = self.threads.get_mut(&place) {
            running.version = next;
        }
        self.common.field.drivers().used(opened);
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
    /// See [`Running::judge`].
    fn judge(&self, settings: &config::Application) -> Result<(), String> {
        if !self.version.is_another(settings) {
            let same = succession::refuse_same(&self.version.settings, settings);
            same.map_err(|why| format!("application '{}': {why}", settings.name))?;
            return match succession::runs_otherwise(&self.version, settings) {
                true => succession::try_again(settings, self.newest_state()?.as_deref()),
                false => Ok(()),
            };
        }
        let state = self.newest_state()?;
        succession::build(settings, &self.version, None, state.as_deref()).map(drop)
    }

    /// A copy of the newest state; `None`: there is none yet.
    ///
    /// # Errors
    /// Its thread does not say in time whether there is one. Without a trial nothing is announced.
    fn newest_state(&self) -> Result<Option<Vec<u8>>, String> {
        self.tuning.ask_for_state(self.version.size_max());
        self.mailbox.wake();
        let state = self.answered(TuningSlots::state).ok_or_else(|| {
            let name = &self.version.settings.name;
            format!(
                "'{name}' has not ended its cycle, so the next version cannot be tried with its state: try again"
            )
        })?;
        Ok((!state.is_empty()).then_some(state))
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

#[cfg(test)]
mod tests {
    use bumpless_controller::{Synthetic, SyntheticParameters};

    use super::*;
    use crate::succession::versions;

    /// An application whose thread does not answer.
    pub(super) fn silent() -> RunningApplication {
        let (mut settings, _) = versions(config::ProgramHost::Wasm);
        settings.period = base::Duration::from_millis(1);
        settings.deadline = settings.period;
        let application = Synthetic::new(SyntheticParameters {
            size: 100,
            changed_share: 1.0,
        });
        RunningApplication {
            thread: std::thread::spawn(|| ()),
            stop: Arc::default(),
            mailbox: Arc::default(),
            tuning: Arc::default(),
            version: Version::of(&settings, &application),
        }
    }

    /// A thread that does not answer leaves the next version untried, which is another thing than that there is no state.
    #[test]
    fn a_version_that_nobody_tries_in_time_is_refused() {
        let (_, next) = versions(config::ProgramHost::Wasm);
        let silent = silent();
        let settings = silent.version.settings.clone();
        assert_eq!(silent.judge(&settings), Ok(()), "the same version");
        let refused = silent.judge(&next).expect_err("it is not tried");
        assert!(
            refused.contains("has not ended its cycle") && refused.contains("try again"),
            "{refused}"
        );
        silent.end();
    }
}
