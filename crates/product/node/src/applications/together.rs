//! Several applications that go on with other settings at one moment, or none of them does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use bumpless_base::{Counters, Duration, Instant};
use bumpless_controller::{Application, Clock as ExecutorClock, CycleReport, Executor, OutputGate};
use bumpless_mailbox::{ApplicationMailbox, PublishedPermit, Rendezvous, Stage};
use bumpless_net_linux::Clock;

use crate::executor::{ChannelReplication, Situation, Threads};

/// One of several applications that change together.
pub struct Participant {
    name: String,
    /// Until the change.
    period: Duration,
    deadline: Duration,
    expiry: Duration,
    mailbox: Arc<ApplicationMailbox>,
    /// It stands still between two cycles.
    here: AtomicBool,
    /// Its next version has taken over its state.
    ready: AtomicBool,
}

impl Participant {
    /// The application `name`, with this period, deadline and expiry until the change, whose executor and data plane share `mailbox`.
    pub const fn new(
        name: String,
        (period, deadline, expiry): (Duration, Duration, Duration),
        mailbox: Arc<ApplicationMailbox>,
    ) -> Self {
        Self {
            name,
            period,
            deadline,
            expiry,
            mailbox,
            here: AtomicBool::new(false),
            ready: AtomicBool::new(false),
        }
    }
}

/// Several applications that change together: those with the longest periods stand still first, as for a hand-over, so
/// that nobody waits for a long cycle of somebody else.
pub struct Together {
    rendezvous: Rendezvous,
    /// Longest periods first.
    participants: Vec<Participant>,
    /// How long a failover takes.
    failover: Duration,
    /// Why they do not change.
    why_not: OnceLock<String>,
}

impl Together {
    /// Of these applications; a backup needs `failover` to take over.
    pub fn new(mut participants: Vec<Participant>, failover: Duration) -> Self {
        participants.sort_by_key(|it| std::cmp::Reverse(it.period));
        let of = u32::try_from(participants.len()).unwrap_or(u32::MAX);
        Self {
            rendezvous: Rendezvous::new(of),
            participants,
            failover,
            why_not: OnceLock::new(),
        }
    }

    /// Which of them shares `mailbox` with its executor.
    pub fn number_of(&self, mailbox: &Arc<ApplicationMailbox>) -> Option<usize> {
        let mut participants = self.participants.iter();
        participants.position(|it| Arc::ptr_eq(&it.mailbox, mailbox))
    }

    /// All have what they are to do: those with the longest period are called.
    pub fn begin(&self) {
        self.call();
    }

    /// None of them changes, for this reason, unless that is decided already.
    pub fn call_off(&self, why: impl FnOnce() -> String) {
        // Beforehand: whoever sees that it is off finds the reason.
        self.why_not.get_or_init(why);
        self.rendezvous.call_off();
        self.call();
    }

    /// One of them has not come in time.
    pub fn call_off_late(&self) {
        self.call_off(|| {
            let is_here = |it: &&Participant| it.here.load(Ordering::Acquire);
            let is_ready = |it: &&Participant| it.ready.load(Ordering::Acquire);
            let all = || self.participants.iter();
            // As long as somebody has not come, nobody else could do anything.
            let late: Vec<_> = match all().all(|it| is_here(&it)) {
                true => all().filter(|it| !is_ready(it)).collect(),
                false => all().filter(|it| !is_here(it)).collect(),
            };
            let late: Vec<_> = late.into_iter().map(Participant::words).collect();
            match late.is_empty() {
                true => format!("the last of them was not ready {WITHIN}"),
                false => late.join(", "),
            }
        });
    }

    /// Whether it was called off.
    pub fn is_off(&self) -> bool {
        self.rendezvous.stage() == Stage::Off
    }

    /// Why it was.
    pub fn why_not(&self) -> String {
        self.why_not.get().cloned().unwrap_or_default()
    }

    /// Whether all with longer periods stand still, so that number `at` is to.
    pub fn is_turn(&self, at: usize) -> bool {
        let own = self.participants[at].period;
        let longer = self
            .participants
            .iter()
            .filter(|it| it.period > own)
            .count();
        let Stage::Gathering(arrived) = self.rendezvous.stage() else {
            return false;
        };
        arrived as usize >= longer
    }

    /// Calls those who are to come, and wakes all others to see what has become of it.
    fn call(&self) {
        for (at, participant) in self.participants.iter().enumerate() {
            let here = participant.here.load(Ordering::Acquire);
            match (self.is_turn(at) || self.is_off()) && !here {
                true => participant.mailbox.call(),
                false => participant.mailbox.wake(),
            }
        }
    }

    /// Between two cycles, when it is the turn of number `at`, which `executor` runs: stands still until all do, has `next` take
    /// over the state, and returns whether all are to change before their next cycle.
    pub fn take_part<G, C, O>(
        &self,
        at: usize,
        executor: &mut Executor<ChannelReplication<Threads>, G, C, O>,
        next: &mut dyn Application,
    ) -> bool
    where
        G: OutputGate,
        C: ExecutorClock,
        O: FnMut(&CycleReport, &Counters),
    {
        let own = &self.participants[at];
        let gate = Arc::clone(&executor.replication().gate);
        // Before the role is asked for: one that changes from here on ends the wait.
        let begun = Situation::of(&gate, &own.mailbox);
        let fresh_until = fresh_until(&gate, &own.mailbox);
        let until = self.until(at, executor.next_at(), fresh_until, Clock.now());
        let moved = || Situation::of(&gate, &own.mailbox) != begun;
        if !self.rendezvous.arrive() {
            return false;
        }
        own.here.store(true, Ordering::Release);
        self.call();
        let stage = self.stand_still(|it| matches!(it, Stage::Gathering(_)), until, &moved);
        if matches!(stage, Stage::Trying(_)) {
            self.attempt(own, executor.hand_state_to(next).err());
        }
        self.stand_still(|it| matches!(it, Stage::Trying(_)), until, &moved) == Stage::Agreed
    }

    /// The next version of `own` has taken over the state, or not.
    fn attempt(&self, own: &Participant, error: Option<bumpless_controller::LoadError>) {
        match error {
            Some(error) => self.call_off(|| format!("'{}': {error}", own.name)),
            None => {
                own.ready.store(true, Ordering::Release);
                self.rendezvous.agree();
                self.call();
            }
        }
    }

    /// Waits as long as the stage is `awaited`, until then at most, and not longer than nothing has `moved`.
    fn stand_still(
        &self,
        awaited: impl Fn(Stage) -> bool,
        until: Instant,
        moved: &impl Fn() -> bool,
    ) -> Stage {
        loop {
            let stage = self.rendezvous.stage();
            if !awaited(stage) {
                return stage;
            }
            let left = until.since(Clock.now());
            if moved() {
                self.call_off(|| {
                    "the role of this node, or its right to write, changed meanwhile".into()
                });
            } else if left == Duration::ZERO {
                self.call_off_late();
            } else {
                thread::park_timeout(left.to_std());
            }
        }
    }

    /// Until when number `at` stands still, whose next cycle is due at `next_at`. As primary its newest state is fresh at the backup
    /// until `fresh_until`: one more must be made, as the last one was, and get there before, and the backup must have the time to
    /// take over.
    fn until(
        &self,
        at: usize,
        next_at: Instant,
        fresh_until: Option<Instant>,
        now: Instant,
    ) -> Instant {
        let own = &self.participants[at];
        let others = self.participants.iter().enumerate();
        let after = others.filter(|(other, it)| *other != at && it.period <= own.period);
        let enough = after.fold(Duration::ZERO, |sum, (_, it)| sum + it.period + it.deadline);
        let longest = self
            .participants
            .first()
            .map_or(Duration::ZERO, |it| it.period);
        // The others' cycles, and the longest time that a state takes to be converted.
        let enough = now + enough + longest;
        match fresh_until {
            Some(fresh) => {
                let made = fresh.before(own.expiry);
                let took = made.since(next_at.before(own.period));
                let latest = fresh.before(took + own.deadline + self.failover);
                enough.min(next_at.max(latest))
            }
            None => enough,
        }
    }
}

/// Until when the backup can take over from what it has of an application; `None`: this node is not primary. Of a newest state that
/// is not there nobody knows what is, and the executor waits for nobody.
fn fresh_until(gate: &PublishedPermit, mailbox: &ApplicationMailbox) -> Option<Instant> {
    let lacks_newest = gate.backup_expected() && !mailbox.newest_is_safe();
    gate.is_primary().then(|| match lacks_newest {
        true => Instant::ZERO,
        false => mailbox.own_life().fresh_until,
    })
}

/// What those who are late have missed.
const WITHIN: &str = "within the time that states at the backup leave for it";

impl Participant {
    fn words(&self) -> String {
        match self.here.load(Ordering::Acquire) {
            true => format!("'{}' has not taken over its state {WITHIN}", self.name),
            false => format!(
                "'{}' has not ended a cycle, with nothing of it on its way to the backup, {WITHIN}",
                self.name
            ),
        }
    }
}

#[cfg(test)]
mod tests;
