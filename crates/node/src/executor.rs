//! How an application's executor meets the data plane: the four ports that the controller layer
//! asks for, made of atomics and thread parking.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bumpless_base::{Duration, Epoch, Instant};
use bumpless_controller::{Clock, OutputGate, Permit, Replication, Role, Settled, StateInfo, Wake};
use bumpless_net_linux::Waker;
use bumpless_transfer::{Publisher, Subscriber};

use crate::shared::{ApplicationPort, GroupGate, Outcome};

/// How often a waiting executor looks again whether it may go alone.
const ALONE_POLL: Duration = Duration::from_millis(1);

/// The time of this call on the monotonic clock.
pub fn now() -> Instant {
    bumpless_net_linux::Clock.now()
}

/// What an executor must look at when it changes: role, order to pause, right to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Situation {
    primary: bool,
    paused: bool,
    permitted: bool,
}

impl Situation {
    fn of(gate: &GroupGate, port: &ApplicationPort) -> Self {
        Self {
            primary: gate.is_primary(),
            paused: port.paused(),
            permitted: gate.permit().is_some(),
        }
    }
}

/// The executor's clock: parks the thread; a change of situation ends a wait and is never lost.
#[derive(Debug)]
pub struct ThreadClock {
    gate: Arc<GroupGate>,
    port: Arc<ApplicationPort>,
    stop: Arc<AtomicBool>,
    seen: Situation,
}

impl ThreadClock {
    /// A clock that wakes for changes of `gate`, for a pause at `port`, and for `stop`.
    pub fn new(gate: Arc<GroupGate>, port: Arc<ApplicationPort>, stop: Arc<AtomicBool>) -> Self {
        Self {
            gate,
            port,
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
            let situation = Situation::of(&self.gate, &self.port);
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
pub struct ChannelReplication {
    /// Where states go while this node is primary.
    pub publisher: Publisher,
    /// Where states come from while it is backup.
    pub subscriber: Subscriber,
    /// How long a state may be used.
    pub expiry: Duration,
    /// Where outcomes are told.
    pub port: Arc<ApplicationPort>,
    /// Whether anybody is there to acknowledge.
    pub gate: Arc<GroupGate>,
    /// Wakes the data plane.
    pub waker: Waker,
}

impl Replication for ChannelReplication {
    fn publish(&mut self, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> u64 {
        let now = now();
        let published = self.publisher.publish(now, fill);
        self.port
            .note_published(published.ticket, now + self.expiry);
        self.waker.wake();
        published.ticket
    }

    fn wait_settled(&mut self, ticket: u64, until: Instant) -> Settled {
        loop {
            let settled = self.settled(ticket);
            let left = until.since(now());
            if settled != Settled::Pending || left == Duration::ZERO {
                return settled;
            }
            if !self.gate.backup_expected() {
                return Settled::Failed;
            }
            thread::park_timeout(left.to_std());
        }
    }

    fn settled(&mut self, ticket: u64) -> Settled {
        match self.port.outcome(ticket) {
            Outcome::Safe => Settled::Safe,
            Outcome::Failed => Settled::Failed,
            Outcome::Pending => Settled::Pending,
        }
    }

    fn read_latest(&mut self, load: &mut dyn FnMut(&[u8], StateInfo)) -> bool {
        // What was fresh when the role was taken is what it was taken with.
        match self.subscriber.read(self.gate.role_since().min(now())) {
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
}

/// The role and the right to write, as the data plane last published them.
#[derive(Debug)]
pub struct GroupOutputGate {
    /// The group's gate.
    pub gate: Arc<GroupGate>,
    /// Where the device's epoch is told.
    pub port: Arc<ApplicationPort>,
    /// Wakes the data plane.
    pub waker: Waker,
}

impl OutputGate for GroupOutputGate {
    fn permit(&mut self) -> Option<Permit> {
        // The mark comes before the look: a hand-over that finds it absent afterwards knows that
        // this thread will see the pause before it writes.
        self.port.set_in_cycle(true);
        self.port.set_cycle_since(Some(now()));
        if self.port.paused() {
            self.port.set_in_cycle(false);
            self.waker.wake();
            return None;
        }
        self.gate
            .permit()
            .map(|(epoch, until)| Permit { epoch, until })
    }

    fn role(&self) -> Role {
        if !self.gate.is_member() {
            Role::Inactive
        } else if self.gate.is_primary() && !self.port.paused() {
            Role::Primary
        } else {
            Role::Backup
        }
    }

    fn backup_expected(&self) -> bool {
        self.gate.backup_expected()
    }

    fn go_alone(&mut self, until: Instant) -> bool {
        self.port.set_behind(true);
        while !self.gate.alone() {
            if self.port.newest_is_safe() {
                self.in_step();
                return true;
            }
            let left = until.since(now());
            if left == Duration::ZERO {
                return false;
            }
            self.waker.wake();
            thread::park_timeout(left.min(ALONE_POLL).to_std());
        }
        true
    }

    fn in_step(&mut self) {
        self.port.set_behind(false);
    }

    fn epoch_seen(&mut self, epoch: Epoch) {
        if self.port.note_epoch_seen(epoch) {
            self.waker.wake();
        }
    }

    fn fit_changed(&mut self, fit: bool) {
        self.port.set_fit(fit);
        self.waker.wake();
    }
}
