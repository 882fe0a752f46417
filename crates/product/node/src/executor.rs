//! How an application's executor meets the data plane: the four ports that the controller layer
//! asks for, made of atomics and thread parking.

mod clock;
mod environment;
mod output_gate;

use std::sync::Arc;
use std::thread;

use bumpless_base::{Counters, Duration, Instant, Pieces};
use bumpless_controller::retain::Record;
use bumpless_controller::state::Progress;
use bumpless_controller::{Replication, StateInfo, TransferOutcome};
use bumpless_mailbox::{ApplicationMailbox, PublishedPermit, StateLife};
use bumpless_transfer::{Publisher, StateView, Subscriber};

pub use self::clock::{Situation, ThreadClock, is_settled};
pub use self::environment::{Environment, Threads, now};
pub use self::output_gate::GroupOutputGate;
use crate::persist::Keeper;
use crate::state_security::StateGuard;

/// The ticket of all states that did not leave: it has failed from the start, and no other has it.
const WITHHELD: u64 = u64::MAX;

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
    /// What seals and opens states; `None`: they go as they are.
    pub guard: Option<StateGuard>,
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
        if let Some(guard) = &mut self.guard {
            guard.set_max_age(hot_restart);
        }
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
        match self.outcome(ticket) {
            TransferOutcome::Pending if lost => TransferOutcome::Failed,
            outcome => outcome,
        }
    }
}

impl<E> ChannelReplication<E> {
    /// How long a state that is published at `now` counts.
    fn life(&self, now: Instant) -> StateLife {
        StateLife {
            fresh_until: now + self.expiry,
            usable_until: now + self.hot_restart,
        }
    }

    fn outcome(&self, ticket: u64) -> TransferOutcome {
        match ticket {
            WITHHELD => TransferOutcome::Failed,
            _ => self.mailbox.outcome(ticket),
        }
    }

    /// Fills, keeps and seals a state, and hands it over. Without a key to seal with it is kept and goes no further.
    fn hand_over(&mut self, now: Instant, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> u64 {
        let keeper = &mut self.keeper;
        let mut fill_and_keep = |buffer: &mut [u8]| {
            let len = fill(buffer);
            if let Some((keeper, state)) = keeper.as_mut().zip(buffer.get(..len)) {
                keeper.keep(state, now);
            }
            len
        };
        let published = match &mut self.guard {
            None => self.publisher.publish(now, fill_and_keep),
            Some(guard) => {
                if !guard.can_seal() {
                    guard.withhold(fill_and_keep);
                    return WITHHELD;
                }
                self.publisher.publish(now, |buffer| {
                    let len = fill_and_keep(StateGuard::room(buffer));
                    guard.seal(len, buffer)
                })
            }
        };
        published.ticket
    }

    /// Has `look` look at the newest received state if it was young enough at `at`, as it came. Returns what that says;
    /// `None` if there is no such state.
    fn with_latest<T>(
        &mut self,
        at: Instant,
        look: impl FnOnce(&mut Option<StateGuard>, &StateView<'_>) -> T,
    ) -> Option<T> {
        let usable = at < self.mailbox.received_usable_until();
        self.mailbox.look_at_received();
        let view = self.subscriber.newest().filter(|_| usable)?;
        Some(look(&mut self.guard, &view))
    }
}

/// The state that came as `sealed`; `None` if it does not open.
fn opened<'a>(guard: &'a mut Option<StateGuard>, sealed: &'a [u8]) -> Option<&'a [u8]> {
    match guard {
        None => Some(sealed),
        Some(guard) => guard.open(sealed),
    }
}

impl<E: Environment> Replication for ChannelReplication<E> {
    fn publish(&mut self, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> u64 {
        let now = self.environment.now();
        let ticket = self.hand_over(now, fill);
        self.mailbox.note_published(ticket, self.life(now));
        self.environment.wake_data_plane();
        ticket
    }

    fn publish_pieces(&mut self, state: &dyn Pieces) -> u64 {
        let now = self.environment.now();
        // Sealing and keeping take all of it.
        let kept = self.keeper.as_ref().is_some_and(|it| it.is_due(now));
        if self.guard.is_some() || kept {
            return self.publish(&mut |buffer| state.copy_whole(buffer));
        }
        // Beforehand: what becomes of it may be told before all of it is copied.
        let ticket = self.publisher.next_ticket();
        self.mailbox.note_published(ticket, self.life(now));
        let environment = &self.environment;
        self.publisher
            .publish_pieces(now, state, || environment.wake_data_plane());
        environment.wake_data_plane();
        ticket
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
        self.outcome(ticket)
    }

    fn read_latest(&mut self, at: Instant, load: &mut dyn FnMut(&[u8], StateInfo)) -> bool {
        let shown = self.with_latest(at, |guard, view| {
            let info = StateInfo {
                transfer_cycle: view.cycle(),
                expires_at: view.expires_at(),
            };
            opened(guard, view.data())
                .map(|state| load(state, info))
                .is_some()
        });
        shown == Some(true)
    }

    fn peek_latest(&mut self, at: Instant, look: &mut dyn FnMut(&[u8])) -> bool {
        let shown = self.with_latest(at, |guard, view| {
            let front = match guard {
                None => Some(view.data()),
                Some(_) => StateGuard::front(view.data()),
            };
            front.map(look).is_some()
        });
        shown == Some(true)
    }

    fn read_restored(&mut self, at: Instant, load: &mut dyn FnMut(&[u8])) -> bool {
        let keeper = self.keeper.as_ref();
        let restored = keeper.and_then(|keeper| keeper.restored(at));
        restored.map(load).is_some()
    }

    fn read_retained(&mut self, take: &mut dyn FnMut(Progress, Record<'_>)) -> bool {
        let keeper = self.keeper.as_ref();
        let left = keeper.and_then(Keeper::retained);
        left.map(|(progress, record)| take(progress, record))
            .is_some()
    }

    fn keep_received(&mut self) {
        let now = self.environment.now();
        let keeper = self.keeper.as_mut().filter(|keeper| keeper.is_due(now));
        if keeper.is_none() && self.guard.is_none() {
            return;
        }
        let Some(view) = self.subscriber.newest() else {
            return;
        };
        let to_be_proven = match &mut self.guard {
            None => false,
            Some(guard) => guard.look_at(view.data(), now),
        };
        if !to_be_proven && keeper.is_none() {
            return;
        }
        if let Some((keeper, state)) = keeper.zip(opened(&mut self.guard, view.data())) {
            keeper.keep_received(state, view.cycle(), view.received_at(), now);
        }
    }

    fn count(&mut self, counters: &mut Counters) {
        if let Some(guard) = &mut self.guard {
            guard.count(counters);
        }
    }
}
