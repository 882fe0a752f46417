//! One application's executor on one node: the shipped cycle on the shipped ports, its waits and
//! requests as events.

use bumpless_base::{Counters, Epoch, Instant, NodeId};
use bumpless_config as config;
use bumpless_controller::executor::{Answer, CycleMachine, Need, Resumed};
use bumpless_controller::retain::Record;
use bumpless_controller::state::{Envelope, Progress};
use bumpless_controller::{CycleReport, Replication, StateInfo, TransferOutcome};
use bumpless_mailbox::{ApplicationMailbox, PublishedPermit};
use bumpless_node::applications::{FollowUp, Reporter};
use bumpless_node::build::Shared;
use bumpless_node::executor::{ChannelReplication, GroupOutputGate, Situation, is_settled};
use bumpless_node::log::EventSink;
use bumpless_node::persist::Keeper;
use bumpless_node::program::executor_settings;
use bumpless_transfer::{Publisher, Subscriber};
use std::sync::Arc;

use crate::check::State;
use crate::digest::digest;
use crate::failing::{Failing, Fallible, build};
use crate::host::{Environment, Slot};
use crate::kept::{Saver, StateDisk};

/// The seed of all digests of states.
pub const STATE: u64 = 0x7374_6174_6500;

/// Something that an application did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppEvent {
    /// It handed a state with this progress and digest to its channel.
    Published {
        /// The state's epoch.
        epoch: Epoch,
        /// The state's cycle.
        cycle: u64,
        /// Digest of its bytes.
        digest: u64,
        /// The same for its channel.
        state: State,
    },
    /// It went on from a state that it had, or from none.
    Resumed(Resumed),
}

/// The shipped channel, with a look at what passes.
pub struct WatchedChannel {
    /// The shipped one.
    pub inner: ChannelReplication<Environment>,
    events: Slot<AppEvent>,
}

impl Replication for WatchedChannel {
    fn publish(&mut self, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> u64 {
        let mut seen = None;
        let ticket = self.inner.publish(&mut |buffer| {
            let len = fill(buffer);
            let state = &buffer[..len];
            if let Ok(envelope) = Envelope::parse(state) {
                seen = Some((envelope.progress, len, digest(STATE, state)));
            }
            len
        });
        if let Some((Progress { epoch, cycle }, len, digest)) = seen {
            let at = self.inner.environment.now.get();
            self.events.borrow_mut().push(AppEvent::Published {
                epoch,
                cycle,
                digest,
                state: State {
                    ticket,
                    at,
                    len: len as u32,
                    digest,
                },
            });
        }
        ticket
    }
    fn own_usable_until(&self) -> Instant {
        self.inner.own_usable_until()
    }
    fn wait_settled(&mut self, ticket: u64, _: Instant) -> TransferOutcome {
        self.inner.settled(ticket)
    }
    fn settled(&mut self, ticket: u64) -> TransferOutcome {
        self.inner.settled(ticket)
    }
    fn read_latest(&mut self, at: Instant, load: &mut dyn FnMut(&[u8], StateInfo)) -> bool {
        self.inner.read_latest(at, load)
    }
    fn read_restored(&mut self, at: Instant, load: &mut dyn FnMut(&[u8])) -> bool {
        self.inner.read_restored(at, load)
    }
    fn read_retained(&mut self, take: &mut dyn FnMut(Progress, Record<'_>)) -> bool {
        self.inner.read_retained(take)
    }
    fn keep_received(&mut self) {
        self.inner.keep_received();
    }
}

type Observer = Box<dyn FnMut(&CycleReport, &Counters)>;
type Machine = CycleMachine<WatchedChannel, GroupOutputGate<Environment>, Observer>;

/// For what the thread waits.
#[derive(Clone, Debug, PartialEq)]
pub enum Waiting {
    /// For nothing: it goes on when it is scheduled.
    Nothing,
    /// For what the cycle needs, until then.
    For(Need, Instant),
    /// For a device's answer.
    Request {
        /// Which request.
        request: u32,
        /// For what.
        need: Need,
        /// At most until then.
        until: Instant,
    },
}

/// An executor's thread.
pub struct App {
    /// Position of the application among all that there ever are.
    pub index: usize,
    /// The shipped cycle.
    pub machine: Machine,
    /// What its thread waits for.
    pub waiting: Waiting,
    /// When it is scheduled to go on.
    pub run_at: u64,
    /// It executes until then, whatever happens.
    pub busy_until: u64,
    /// While it executes: what reception had taken of the processor until it was last looked at.
    pub executes_since: Option<u64>,
    /// Serial of what is scheduled: an event that bears an earlier one is void.
    pub serial: u32,
    /// An execution takes this much longer.
    pub slow: u64,
    /// Each by another time, up to this.
    pub jumps: bool,
    /// Whether its executions fail.
    pub failing: Failing,
    /// When the newest state came that was looked at.
    pub received_at: Option<Instant>,
    /// Its transfer cycle.
    pub received_cycle: Option<u32>,
    gate: Arc<PublishedPermit>,
    mailbox: Arc<ApplicationMailbox>,
    seen: Situation,
    events: Slot<AppEvent>,
    /// Where its way to the disk ends.
    saver: Option<Saver>,
}

impl App {
    /// The executor of the application at position `index` among all that there ever are, on `node`, with its way to
    /// the disk.
    pub fn new(
        (index, settings): (usize, &config::Application),
        shared: Shared,
        (publisher, subscriber): (Publisher, Subscriber),
        sink: EventSink,
        (environment, keeper, saver): (&Environment, Option<Keeper>, Option<Saver>),
        node: usize,
    ) -> Self {
        let events = Slot::default();
        let channel = WatchedChannel {
            inner: ChannelReplication {
                publisher,
                subscriber,
                expiry: settings.expiry,
                hot_restart: settings.hot_restart,
                keeper,
                guard: None,
                mailbox: Arc::clone(&shared.mailbox),
                gate: Arc::clone(&shared.gate),
                environment: environment.clone(),
            },
            events: Slot::clone(&events),
        };
        let gate = GroupOutputGate {
            gate: Arc::clone(&shared.gate),
            mailbox: Arc::clone(&shared.mailbox),
            environment: environment.clone(),
        };
        let mut follow_up = FollowUp::new(
            (Arc::clone(&shared.gate), Arc::clone(&shared.mailbox)),
            shared.board,
            Reporter::new(shared.application, sink, false),
            environment.clone(),
        );
        let resumed = Slot::clone(&events);
        let observer: Observer = Box::new(move |report, counters| {
            if let Some(with) = report.resumed {
                resumed.borrow_mut().push(AppEvent::Resumed(with));
            }
            follow_up.cycle_ended(report, counters);
        });
        let failing = Failing::default();
        let application = Fallible {
            inner: build(settings).expect("what the world runs was built before"),
            failing: failing.clone(),
        };
        Self {
            index,
            failing,
            machine: CycleMachine::new(
                executor_settings(settings, NodeId(node as u8)),
                Box::new(application),
                (channel, gate),
                observer,
                environment.now.get(),
            ),
            waiting: Waiting::Nothing,
            run_at: u64::MAX,
            busy_until: 0,
            executes_since: None,
            serial: 0,
            slow: 0,
            jumps: false,
            received_at: None,
            received_cycle: None,
            gate: shared.gate,
            mailbox: shared.mailbox,
            seen: Situation::default(),
            events,
            saver,
        }
    }

    /// At true time `now`, what waits for the disk is written.
    pub fn save(&self, disk: &mut StateDisk, now: (u64, Instant)) {
        if let Some(saver) = &self.saver {
            disk.save(self.index, saver, now);
        }
    }

    /// What it has done since it was asked last.
    pub fn take_events(&mut self, mut each: impl FnMut(AppEvent)) {
        self.events.borrow_mut().drain(..).for_each(&mut each);
    }

    /// The answer to what it waits for, if there is one at `now`; `end` ends every wait that has an
    /// end.
    pub fn answer(&mut self, now: Instant) -> Option<Answer> {
        let Waiting::For(need, until) = self.waiting.clone() else {
            return None;
        };
        let over = now >= until;
        match need {
            Need::Sleep { .. } => {
                let situation = Situation::of(&self.gate, &self.mailbox);
                if situation != self.seen {
                    self.seen = situation;
                    return Some(Answer::Slept(bumpless_controller::Wake::Woken));
                }
                over.then_some(Answer::Slept(bumpless_controller::Wake::Reached))
            }
            Need::Settle { ticket, .. } => {
                let channel = &mut self.machine.replication().inner;
                if over {
                    return Some(Answer::Settled(channel.settled(ticket)));
                }
                let settled = channel.settled_or_lost(ticket);
                (settled != TransferOutcome::Pending).then_some(Answer::Settled(settled))
            }
            Need::Simplex { .. } => {
                if self.machine.gate().simplex_or_safe() {
                    return Some(Answer::Simplex(true));
                }
                over.then_some(Answer::Simplex(false))
            }
            Need::Read { .. } | Need::KeepWarm { .. } | Need::Write { .. } => None,
        }
    }

    /// Whether nothing of it is on its way to the backup.
    pub fn is_settled(&self) -> bool {
        is_settled(&self.gate, &self.mailbox)
    }

    /// Whether its node took the role without a fresh state of every application.
    pub fn began_cold(&self) -> bool {
        self.gate.cold()
    }

    /// Whether what it waits for may have come, without looking at the time.
    pub fn is_stirred(&mut self) -> bool {
        match self.waiting {
            Waiting::For(Need::Sleep { .. }, _) => {
                Situation::of(&self.gate, &self.mailbox) != self.seen
            }
            Waiting::For(Need::Settle { ticket, .. }, _) => {
                let channel = &self.machine.replication().inner;
                channel.settled_or_lost(ticket) != TransferOutcome::Pending
            }
            Waiting::For(Need::Simplex { .. }, _) => {
                self.gate.simplex() || self.mailbox.newest_is_safe()
            }
            _ => false,
        }
    }
}
