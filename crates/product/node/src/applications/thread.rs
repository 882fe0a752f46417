//! The thread of one application.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bumpless_base::{Counters, NodeId};
use bumpless_config as config;
use bumpless_controller::{Application, CycleReport, Executor, ExecutorSettings, FieldIo, Ports};
use bumpless_mailbox::{ApplicationMailbox, PublishedPermit};

use super::follow_up::{FollowUp, Reporter};
use super::tuning::TuningSlots;
use crate::counter_board::CounterBoard;
use crate::executor::{ChannelReplication, GroupOutputGate, ThreadClock, Threads};
use crate::field::open_field;
use crate::field_drivers::Opened;
use crate::field_identity::FieldIdentity;
use crate::log::EventSink;
use crate::membership::ApplicationNumber;
use crate::program::executor_settings;
use crate::realtime::prepare_executor_thread;
use crate::warn;

/// Everything that one application's thread takes with it.
pub struct ApplicationThread {
    /// Which application it is.
    pub number: ApplicationNumber,
    /// This node.
    pub node: NodeId,
    /// The channel's ends.
    pub replication: ChannelReplication<Threads>,
    /// Role and right to write.
    pub gate: Arc<PublishedPermit>,
    /// What the application's executor and the data plane share.
    pub mailbox: Arc<ApplicationMailbox>,
    /// Way into the log.
    pub sink: EventSink,
    /// Whether to log written outputs, too.
    pub log_outputs: bool,
    /// Where its counters are shown.
    pub board: Arc<CounterBoard>,
    /// Ends the thread.
    pub stop: Arc<AtomicBool>,
    /// Other settings for it.
    pub tuning: Arc<TuningSlots>,
    /// It came while the node ran.
    pub newcomer: bool,
}

impl ApplicationThread {
    /// Starts the thread of `application`; `own` is what it shows to field devices, `priority` the data plane's.
    pub fn start(
        self,
        settings: &config::Application,
        (application, own): (Box<dyn Application>, &FieldIdentity),
        priority: Option<u8>,
    ) -> io::Result<thread::JoinHandle<()>> {
        let mut opened = Opened::first(&settings.name);
        let field = open_field(settings, own, &mut opened)?;
        own.drivers().used(opened);
        let executor = executor_settings(settings, self.node);
        let name = format!("app {}", settings.name);
        thread::Builder::new()
            .name(name)
            .spawn(move || self.run(executor, application, field, priority))
    }

    fn run(
        self,
        settings: ExecutorSettings,
        application: Box<dyn Application>,
        field: Box<dyn FieldIo>,
        priority: Option<u8>,
    ) {
        let _guard = AbortOnPanic;
        self.mailbox.register_executor();
        prepare_executor_thread(priority);
        let environment = self.replication.environment.clone();
        let ports = Ports {
            field,
            replication: self.replication,
            gate: GroupOutputGate {
                gate: Arc::clone(&self.gate),
                mailbox: Arc::clone(&self.mailbox),
                environment: environment.clone(),
            },
            clock: ThreadClock::new(
                Arc::clone(&self.gate),
                Arc::clone(&self.mailbox),
                Arc::clone(&self.stop),
            ),
        };
        let reporter = Reporter::new(self.number, self.sink, self.log_outputs);
        let shared = (self.gate, self.mailbox);
        let mut follow_up = FollowUp::new(shared, self.board, reporter, environment);
        let observer = move |report: &CycleReport, counters: &Counters| {
            follow_up.cycle_ended(report, counters);
        };
        let mut executor = Executor::new(settings, application, ports, observer);
        if self.newcomer {
            executor.comes_late();
        }
        while !self.stop.load(Ordering::Acquire) {
            self.tuning.follow(&mut executor);
            executor.step();
        }
    }
}

/// A controller whose application has died must not keep the role: the process ends at once, and
/// the backup takes over while its state is fresh.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            warn("an application panicked; this node ends so that its partner takes over");
            std::process::abort();
        }
    }
}
