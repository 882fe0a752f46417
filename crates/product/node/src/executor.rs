//! How an application's executor meets the data plane: the four ports that the controller layer
//! asks for, made of atomics and thread parking.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bumpless_base::{Duration, Epoch, Instant, ProgramStanding};
use bumpless_controller::{
    Clock, OutputGate, Permit, Replication, Role, StateInfo, TransferOutcome, Wake,
};
use bumpless_mailbox::{ApplicationMailbox, PublishedPermit, StateLife};
use bumpless_net_linux::Waker;
use bumpless_transfer::{Publisher, Subscriber};

use crate::persist::Keeper;

/// The time of this call on the monotonic clock.
pub fn now() -> Instant {
    bumpless_net_linux::Clock.now()
}

/// What the ports need of the process around them.
pub trait Environment {
    /// The time of this call.
    fn now(&self) -> Instant;
    /// Wakes the data plane.
    fn wake_data_plane(&self);
}

/// A process in which the data plane has a thread of its own.
#[derive(Clone, Debug)]
pub struct Threads(pub Waker);

impl Environment for Threads {
    fn now(&self) -> Instant {
        now()
    }
    fn wake_data_plane(&self) {
        self.0.wake();
    }
}

/// What an executor must look at when it changes: role, order to pause, right to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Situation {
    primary: bool,
    paused: bool,
    permitted: bool,
}

impl Situation {
    /// The situation at this moment.
    pub fn of(gate: &PublishedPermit, mailbox: &ApplicationMailbox) -> Self {
        Self {
            primary: gate.is_primary(),
            paused: mailbox.paused(),
            permitted: gate.permit().is_some(),
        }
    }
}

/// The executor's clock: parks the thread; a change of situation ends a wait and is never lost.
#[derive(Debug)]
pub struct ThreadClock {
    gate: Arc<PublishedPermit>,
    mailbox: Arc<ApplicationMailbox>,
    stop: Arc<AtomicBool>,
    seen: Situation,
}

impl ThreadClock {
    /// A clock that wakes for changes of `gate`, for a pause at `mailbox`, and for `stop`.
    pub fn new(
        gate: Arc<PublishedPermit>,
        mailbox: Arc<ApplicationMailbox>,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Self {
            gate,
            mailbox,
            stop,
            seen: Situation::default(),
        }
    }
}

impl Clock for ThreadClock {
    fn now(&self) -> Instant {
        now()
    }

    fn wait_until(&mut self, until: Instant) -> Wake {
        loop {
            let situation = Situation::of(&self.gate, &self.mailbox);
            if situation != self.seen || self.stop.load(Ordering::Acquire) {
                self.seen = situation;
                return Wake::Woken;
            }
            let left = until.since(now());
            if left == Duration::ZERO {
                return Wake::Reached;
            }
            thread::park_timeout(left.to_std());
        }
    }
}

/// The channel to the backup.
pub struct ChannelReplication<E> {
    /// Where states go while this node is primary.
    pub publisher: Publisher,
    /// Where states come from while it is backup.
    pub subscriber: Subscriber,
    /// How long a state is fresh.
    pub expiry: Duration,
    /// How long it is young enough to go on from.
    pub hot_restart: Duration,
    /// The way to the disk; `None`: states are kept in memory alone.
    pub keeper: Option<Keeper>,
    /// Where outcomes are told.
    pub mailbox: Arc<ApplicationMailbox>,
    /// Whether anybody is there to acknowledge.
    pub gate: Arc<PublishedPermit>,
    /// Time, and the way to the data plane.
    pub environment: E,
}

impl<E: Environment> ChannelReplication<E> {
    /// States published from here on have another deadline and expiry.
    ///
    /// # Errors
    /// Why the channel cannot have these, in words.
    pub fn set_times(
        &mut self,
        deadline: Duration,
        (expiry, hot_restart): (Duration, Duration),
    ) -> Result<(), String> {
        self.publisher
            .set_times(deadline, expiry)
            .map_err(|error| error.to_string())?;
        (self.expiry, self.hot_restart) = (expiry, hot_restart);
        Ok(())
    }

    /// States are written to disk at most once in `every` from here on.
    pub fn set_persist(&mut self, every: Option<Duration>) {
        if let Some((keeper, every)) = self.keeper.as_mut().zip(every) {
            keeper.set_every(every);
        }
    }

    /// What became of `ticket`; failed also if nobody is there to acknowledge it any more.
    pub fn settled_or_lost(&self, ticket: u64) -> TransferOutcome {
        let lost = !self.gate.backup_expected();
        match self.mailbox.outcome(ticket) {
            TransferOutcome::Pending if lost => TransferOutcome::Failed,
            outcome => outcome,
        }
    }
}

impl<E: Environment> Replication for ChannelReplication<E> {
    fn publish(&mut self, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> u64 {
        let now = self.environment.now();
        let keeper = &mut self.keeper;
        let published = self.publisher.publish(now, |buffer| {
            let len = fill(buffer);
            if let Some((keeper, state)) = keeper.as_mut().zip(buffer.get(..len)) {
                keeper.keep(state, now);
            }
            len
        });
        let life = StateLife {
            fresh_until: now + self.expiry,
            usable_until: now + self.hot_restart,
        };
        self.mailbox.note_published(published.ticket, life);
        self.environment.wake_data_plane();
        published.ticket
    }

    fn own_usable_until(&self) -> Instant {
        self.mailbox.own_life().usable_until
    }

    fn wait_settled(&mut self, ticket: u64, until: Instant) -> TransferOutcome {
        loop {
            let left = until.since(self.environment.now());
            if left == Duration::ZERO {
                return self.settled(ticket);
            }
            let settled = self.settled_or_lost(ticket);
            if settled != TransferOutcome::Pending {
                return settled;
            }
            thread::park_timeout(left.to_std());
        }
    }

    fn settled(&mut self, ticket: u64) -> TransferOutcome {
        self.mailbox.outcome(ticket)
    }

    fn read_latest(&mut self, at: Instant, load: &mut dyn FnMut(&[u8], StateInfo)) -> bool {
        let usable = at < self.mailbox.received_usable_until();
        self.mailbox.look_at_received();
        match self.subscriber.newest().filter(|_| usable) {
            Some(view) => {
                let info = StateInfo {
                    transfer_cycle: view.cycle(),
                    expires_at: view.expires_at(),
                };
                load(view.data(), info);
                true
            }
            None => false,
        }
    }

    fn read_restored(&mut self, at: Instant, load: &mut dyn FnMut(&[u8])) -> bool {
        let keeper = self.keeper.as_ref();
        let restored = keeper.and_then(|keeper| keeper.restored(at));
        restored.map(load).is_some()
    }

    fn keep_received(&mut self) {
        let now = self.environment.now();
        let Some(keeper) = self.keeper.as_mut().filter(|keeper| keeper.is_due(now)) else {
            return;
        };
        if let Some(view) = self.subscriber.newest() {
            keeper.keep_received(view.data(), view.cycle(), view.received_at(), now);
        }
    }
}

/// The role and the right to write, as the data plane last published them.
#[derive(Debug)]
pub struct GroupOutputGate<E> {
    /// The group's gate.
    pub gate: Arc<PublishedPermit>,
    /// Where the device's epoch is told.
    pub mailbox: Arc<ApplicationMailbox>,
    /// Time, and the way to the data plane.
    pub environment: E,
}

impl<E: Environment> GroupOutputGate<E> {
    /// Asks the data plane for the certainty that nobody takes over with an older state.
    pub fn ask_simplex(&self) {
        self.mailbox.ask_simplex();
        self.environment.wake_data_plane();
    }

    /// Whether outputs may be written: nobody takes over with an older state, or the newest one
    /// has become safe after all.
    pub fn simplex_or_safe(&mut self) -> bool {
        if self.gate.simplex() {
            return true;
        }
        let safe = self.mailbox.newest_is_safe();
        if safe {
            self.in_step();
        }
        safe
    }
}

impl<E: Environment> OutputGate for GroupOutputGate<E> {
    fn permit(&mut self) -> Option<Permit> {
        if !self.mailbox.enter_cycle(self.environment.now()) {
            self.environment.wake_data_plane();
            return None;
        }
        self.gate.permit()
    }

    fn role(&self) -> Role {
        self.gate.role()
    }

    fn backup_expected(&self) -> bool {
        self.gate.backup_expected()
    }

    fn role_since(&self) -> Instant {
        self.gate.role_since()
    }

    fn paused(&self) -> bool {
        self.mailbox.paused()
    }

    fn began_cold(&self) -> bool {
        self.gate.cold()
    }

    fn go_simplex(&mut self, until: Instant) -> bool {
        self.ask_simplex();
        while !self.simplex_or_safe() {
            let left = until.since(self.environment.now());
            // A node that ends takes the right back, however long it was given for.
            if left == Duration::ZERO || self.gate.permit().is_none() {
                return false;
            }
            // Whatever ends this wait, the data plane wakes this thread for: that certainty, a state that is safe, a
            // right that ends.
            thread::park_timeout(left.to_std());
        }
        true
    }

    fn in_step(&mut self) {
        self.mailbox.in_step();
    }

    fn epoch_seen(&mut self, epoch: Epoch) {
        if self.mailbox.note_epoch_seen(epoch) {
            self.environment.wake_data_plane();
        }
    }

    fn epoch_spent(&mut self, epoch: Epoch) {
        if self.mailbox.note_epoch_spent(epoch) {
            self.environment.wake_data_plane();
        }
    }

    fn note_compared(&mut self, outdated: Option<Instant>, began: Instant) {
        if self.mailbox.note_compared(outdated, began) {
            self.environment.wake_data_plane();
        }
    }

    fn note_decided(&mut self, since: Instant) {
        self.mailbox.note_decided(since);
    }

    fn fit_changed(&mut self, fit: bool) {
        self.mailbox.set_fit(fit);
        self.environment.wake_data_plane();
    }

    fn program_changed(&mut self, standing: ProgramStanding) {
        self.mailbox.set_program(standing);
        self.environment.wake_data_plane();
    }
}
