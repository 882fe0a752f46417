//! What one application's executor and the data plane share.

use std::sync::{Arc, OnceLock};

use bumpless_atomic_box::DirtySet;
use bumpless_base::{Epoch, Instant, ProgramStanding, TransferOutcome};

use crate::PublishedPermit;
use crate::resume_order::ResumeOrder;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, Thread, current, fence};

/// For how long a state of an application counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateLife {
    /// Until when it is fresh, by its channel's expiry.
    pub fresh_until: Instant,
    /// Until when it is young enough to go on from (`hot_restart_ms`).
    pub usable_until: Instant,
}

impl StateLife {
    /// Fresh and usable until the same instant.
    pub const fn until(until: Instant) -> Self {
        Self {
            fresh_until: until,
            usable_until: until,
        }
    }
}

/// What an application reports to the data plane, which sums it up for the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// The highest epoch that its field device was seen to hold.
    pub epoch_seen: Epoch,
    /// The highest epoch in which an earlier process of this node is known to have written.
    pub epoch_spent: Epoch,
    /// The application can run here.
    pub fit: bool,
    /// Whether its program may, as far as its failures go.
    pub program: ProgramStanding,
    /// Since when its field device has shown an output that is later than the newest state here; `None` if it shows
    /// none.
    pub outdated: Option<Instant>,
    /// No state has come since that output was seen. One that comes may include it.
    pub lacking: bool,
    /// The field device answers, and has been compared with the state here since earlier comparisons became void.
    pub compared: bool,
    /// The primary role began without the certainty to have the newest state, and has not published one yet.
    pub undecided: bool,
    /// Outputs are to be written although their state is not safe.
    pub behind: bool,
    /// Its newest published state is at the backup.
    pub safe: bool,
}

impl Default for MemberStatus {
    /// What an application says that has done nothing.
    fn default() -> Self {
        Self {
            epoch_seen: Epoch::default(),
            epoch_spent: Epoch::default(),
            fit: true,
            program: ProgramStanding::Runs,
            outdated: None,
            lacking: false,
            compared: false,
            undecided: false,
            behind: false,
            safe: true,
        }
    }
}

/// What one application's executor and the data plane share.
///
/// `safe`, `settled` and `published` hold the number of states up to and including a ticket, so
/// that zero means "none yet".
#[derive(Debug, Default)]
pub struct ApplicationMailbox {
    safe: AtomicU64,
    settled: AtomicU64,
    published: AtomicU64,
    /// When the newest published state expires.
    fresh_until: AtomicU64,
    /// Until when it is young enough to go on from.
    usable_until: AtomicU64,
    /// Until when the newest received state is young enough to go on from.
    received_usable_until: AtomicU64,
    /// Since when the present cycle runs, zero between cycles.
    cycle_since: AtomicU64,
    behind: AtomicBool,
    in_cycle: AtomicBool,
    paused: AtomicBool,
    epoch_seen: AtomicU32,
    epoch_spent: AtomicU32,
    unfit: AtomicBool,
    /// Whether the program may run: [`ProgramStanding`] as a number.
    program: AtomicU32,
    resume_order: ResumeOrder,
    /// Others wait until this executor is between two cycles.
    called: AtomicBool,
    /// How many states have come.
    received: AtomicU64,
    /// How many of them had come when the executor last looked at the newest.
    looked_at: AtomicU64,
    /// What `looked_at` was when the executor last noted `outdated`.
    judged: AtomicU64,
    /// Since when the field device shows an output that the state here does not include, zero if it shows none.
    outdated: AtomicU64,
    /// When the cycle began in which the field device was last compared.
    compared: AtomicU64,
    /// A comparison counts only in a cycle that began after this.
    void_before: AtomicU64,
    /// When the primary role was taken that began in doubt and has not published a state yet, zero if none has.
    undecided: AtomicU64,
    executor: OnceLock<Thread>,
    /// Where the data plane finds which mailboxes have news, and this mailbox's number there.
    dirty: Option<(Arc<DirtySet>, usize)>,
}

/// Zero stands for none.
fn instant_of(nanos: u64) -> Option<Instant> {
    (nanos != 0).then(|| Instant::from_nanos(nanos))
}

impl ApplicationMailbox {
    /// A mailbox whose number is marked in `dirty` whenever [`ApplicationMailbox::status`] may be another.
    pub fn marking(dirty: Arc<DirtySet>, number: usize) -> Self {
        Self {
            dirty: Some((dirty, number)),
            ..Self::default()
        }
    }

    /// Called after a change, so that whoever takes the mark sees the change.
    fn mark(&self) {
        if let Some((dirty, number)) = &self.dirty {
            dirty.mark(*number);
        }
    }

    /// What the data plane wants to know of each application.
    pub fn status(&self) -> MemberStatus {
        let outdated = instant_of(self.outdated.load(Ordering::SeqCst));
        let judged = self.judged.load(Ordering::SeqCst);
        MemberStatus {
            epoch_seen: Epoch(self.epoch_seen.load(Ordering::SeqCst)),
            epoch_spent: Epoch(self.epoch_spent.load(Ordering::SeqCst)),
            fit: !self.unfit.load(Ordering::SeqCst),
            program: self.program(),
            outdated,
            lacking: outdated.is_some() && judged == self.received.load(Ordering::SeqCst),
            compared: self.is_compared(),
            undecided: self.undecided.load(Ordering::SeqCst) != 0,
            behind: self.behind(),
            safe: self.newest_is_safe(),
        }
    }

    /// Registers the calling thread as the one that [`ApplicationMailbox::wake`] wakes.
    pub fn register_executor(&self) {
        let _ = self.executor.set(current());
    }

    /// Wakes the executor; never blocks.
    pub fn wake(&self) {
        if let Some(thread) = self.executor.get() {
            thread.unpark();
        }
    }

    /// Notes the outcome of the state with this ticket and wakes the executor.
    pub fn settle(&self, ticket: u64, safe: bool) {
        let count = ticket.saturating_add(1);
        // Safe first: see `outcome`.
        if safe {
            self.safe.fetch_max(count, Ordering::SeqCst);
        }
        self.settled.fetch_max(count, Ordering::SeqCst);
        self.mark();
        self.wake();
    }

    /// What became of the state with this ticket.
    pub fn outcome(&self, ticket: u64) -> TransferOutcome {
        // Looked at in the order opposite to `settle`, lest a state that becomes safe in between pass
        // for one that was given up.
        let settled = self.settled.load(Ordering::SeqCst) > ticket;
        if self.safe.load(Ordering::SeqCst) > ticket {
            TransferOutcome::Safe
        } else if settled {
            TransferOutcome::Failed
        } else {
            TransferOutcome::Pending
        }
    }

    /// Notes the newest published ticket and for how long its state counts.
    pub fn note_published(&self, ticket: u64, life: StateLife) {
        self.published
            .store(ticket.saturating_add(1), Ordering::SeqCst);
        let StateLife {
            fresh_until,
            usable_until,
        } = life;
        self.fresh_until
            .store(fresh_until.as_nanos(), Ordering::SeqCst);
        self.usable_until
            .store(usable_until.as_nanos(), Ordering::SeqCst);
        self.mark();
    }

    /// Notes until when the newest received state is young enough to go on from. Where the field device has shown a
    /// later output, that stands until the device is compared with this state: it may be one that was long on its way.
    pub fn note_received(&self, usable_until: Instant) {
        self.received_usable_until
            .store(usable_until.as_nanos(), Ordering::SeqCst);
        self.received.fetch_add(1, Ordering::SeqCst);
    }

    /// The executor is about to look at the newest received state.
    pub fn look_at_received(&self) {
        let received = self.received.load(Ordering::SeqCst);
        self.looked_at.store(received, Ordering::SeqCst);
    }

    /// Until when the newest received state is young enough to go on from; an instant that has passed if there is
    /// none.
    pub fn received_usable_until(&self) -> Instant {
        Instant::from_nanos(self.received_usable_until.load(Ordering::SeqCst))
    }

    /// For how long this node's own newest state counts; instants that have passed if there is none.
    pub fn own_life(&self) -> StateLife {
        let instant = |at: &AtomicU64| Instant::from_nanos(at.load(Ordering::SeqCst));
        StateLife {
            fresh_until: instant(&self.fresh_until),
            usable_until: instant(&self.usable_until),
        }
    }

    /// Says that outputs are to be written although their state is not safe; what
    /// [`PublishedPermit::simplex`] says after that holds until [`ApplicationMailbox::in_step`].
    pub fn ask_simplex(&self) {
        self.behind.store(true, Ordering::SeqCst);
        // With the one in `end_simplex`: this thread sees that nobody is in simplex any more, or the other
        // sees what was asked.
        fence(Ordering::SeqCst);
        self.mark();
    }

    /// Says that no output is to be written any more whose state is not safe.
    pub fn in_step(&self) {
        self.behind.store(false, Ordering::SeqCst);
        self.mark();
    }

    /// Whether outputs are to be written although their state is not safe.
    pub fn behind(&self) -> bool {
        self.behind.load(Ordering::SeqCst)
    }

    /// Since when the present cycle runs.
    pub fn cycle_since(&self) -> Option<Instant> {
        instant_of(self.cycle_since.load(Ordering::SeqCst))
    }

    /// Has the executor look up between two cycles as soon as nothing is on its way to the backup: others wait for that.
    pub fn call(&self) {
        self.called.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// The executor has looked up, or nobody waits any more.
    pub fn end_call(&self) {
        // Hardly ever is there one: to look does not take the line from whoever else reads it.
        if self.is_called() {
            self.called.store(false, Ordering::SeqCst);
        }
    }

    /// Whether others wait until this executor is between two cycles.
    pub fn is_called(&self) -> bool {
        self.called.load(Ordering::SeqCst)
    }

    /// Whether it is known what became of the newest published state. Of one that was withheld nothing is awaited.
    pub fn newest_is_settled(&self) -> bool {
        let published = self.published.load(Ordering::SeqCst);
        let settled = self.settled.load(Ordering::SeqCst);
        published == u64::MAX || settled >= published || self.newest_is_safe()
    }

    /// Whether the newest published state is at the backup.
    pub fn newest_is_safe(&self) -> bool {
        self.safe.load(Ordering::SeqCst) >= self.published.load(Ordering::SeqCst)
    }

    /// The executor begins the span in which it may write outputs, or is still in it. Returns whether
    /// it may: not if it is to pause. Then the data plane must be woken, which may have seen a cycle
    /// where none is.
    pub fn enter_cycle(&self, now: Instant) -> bool {
        // The mark comes before the look: a pause that finds it absent afterwards is seen here.
        self.in_cycle.store(true, Ordering::SeqCst);
        self.cycle_since.store(now.as_nanos(), Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if self.paused() {
            self.in_cycle.store(false, Ordering::SeqCst);
            return false;
        }
        true
    }

    /// The executor has ended its cycle. Returns whether the data plane awaits that and must be woken.
    pub fn leave_cycle(&self, gate: &PublishedPermit) -> bool {
        self.in_cycle.store(false, Ordering::SeqCst);
        self.cycle_since.store(0, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        gate.handing_over()
    }

    /// The data plane asks the executor to pause, for an ordered hand-over; returns whether it has: its
    /// newest state is at the backup, and it writes no output before [`ApplicationMailbox::go_on`].
    pub fn try_pause(&self) -> bool {
        // With the one in `leave_cycle`: the end of the cycle is seen here, or the hand-over there.
        fence(Ordering::SeqCst);
        if self.paused() {
            return !self.in_cycle();
        }
        if self.in_cycle() || !self.newest_is_safe() {
            return false;
        }
        self.paused.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        // A cycle may have begun in between: it is let go on, and the next moment tried.
        let paused = !self.in_cycle() && self.newest_is_safe();
        self.paused.store(paused, Ordering::SeqCst);
        paused
    }

    /// Ends a pause.
    pub fn go_on(&self) {
        self.paused.store(false, Ordering::SeqCst);
    }

    /// Whether the executor is to stop before its next cycle.
    pub fn paused(&self) -> bool {
        self.paused.load(Ordering::SeqCst)
    }

    fn in_cycle(&self) -> bool {
        self.in_cycle.load(Ordering::SeqCst)
    }

    /// Notes the epoch that the field device holds; returns whether it is higher than any before.
    pub fn note_epoch_seen(&self, epoch: Epoch) -> bool {
        let higher = self.epoch_seen.fetch_max(epoch.0, Ordering::SeqCst) < epoch.0;
        self.mark();
        higher
    }

    /// Notes an epoch in which an earlier process of this node has written; returns whether it is
    /// higher than any before.
    pub fn note_epoch_spent(&self, epoch: Epoch) -> bool {
        let higher = self.epoch_spent.fetch_max(epoch.0, Ordering::SeqCst) < epoch.0;
        self.mark();
        higher
    }

    fn is_compared(&self) -> bool {
        let compared = self.compared.load(Ordering::SeqCst);
        let fit = !self.unfit.load(Ordering::SeqCst);
        fit && compared > self.void_before.load(Ordering::SeqCst)
    }

    /// Voids what the field device showed in cycles that began before `now`. Returns whether a comparison of a later
    /// cycle is there already; one that comes afterwards marks this mailbox.
    pub fn void_comparison(&self, now: Instant) -> bool {
        self.void_before.store(now.as_nanos(), Ordering::SeqCst);
        // With the one in `note_compared`: a later look is seen here, or there that earlier ones are void.
        fence(Ordering::SeqCst);
        self.is_compared()
    }

    /// Notes what the field device showed in the cycle that began at `began`. `since`: since when it shows an output
    /// later than the newest state that was looked at, if it shows one. Returns whether the data plane is to know at
    /// once.
    pub fn note_compared(&self, since: Option<Instant>, began: Instant) -> bool {
        let before = self.compared.swap(began.as_nanos(), Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let void_before = self.void_before.load(Ordering::SeqCst);
        let first = before <= void_before && began.as_nanos() > void_before;
        if first {
            self.mark();
        }
        self.set_outdated(since) || first
    }

    fn set_outdated(&self, since: Option<Instant>) -> bool {
        let nanos = since.map_or(0, |since| since.as_nanos().max(1));
        let looked_at = self.looked_at.load(Ordering::SeqCst);
        let judged = self.judged.swap(looked_at, Ordering::SeqCst);
        let before = self.outdated.swap(nanos, Ordering::SeqCst);
        if before != nanos || (nanos != 0 && judged != looked_at) {
            self.mark();
        }
        (before == 0) != (nanos == 0)
    }

    /// A primary role was taken at `since` without the certainty that this node has the newest state: what the partner
    /// holds of this application is in doubt, too, until a state of this role is there. `None`: there is no such role.
    pub fn set_undecided(&self, since: Option<Instant>) {
        let nanos = since.map_or(0, |since| since.as_nanos().max(1));
        if self.undecided.swap(nanos, Ordering::SeqCst) != nanos {
            self.mark();
        }
    }

    /// The first state of the role that was taken at `since` has been published.
    pub fn note_decided(&self, since: Instant) {
        let nanos = since.as_nanos().max(1);
        let decided = self
            .undecided
            .compare_exchange(nanos, 0, Ordering::SeqCst, Ordering::SeqCst);
        if decided.is_ok() {
            self.mark();
        }
    }

    /// An operator's order that the stopped program go on.
    pub fn resume_order(&self) -> &ResumeOrder {
        &self.resume_order
    }

    /// Notes whether the program may run here, as far as its failures go. If it does, an order to go on has no object.
    pub fn set_program(&self, standing: ProgramStanding) {
        self.program.store(standing as u32, Ordering::SeqCst);
        if standing == ProgramStanding::Runs {
            self.resume_order.take();
        }
        self.mark();
    }

    /// What was noted last.
    fn program(&self) -> ProgramStanding {
        const SEEKS: u32 = ProgramStanding::StoppedSeeksRelief as u32;
        const STAYS: u32 = ProgramStanding::Stopped as u32;
        match self.program.load(Ordering::SeqCst) {
            SEEKS => ProgramStanding::StoppedSeeksRelief,
            STAYS => ProgramStanding::Stopped,
            _ => ProgramStanding::Runs,
        }
    }

    /// Notes whether the application can run here: its field answers and its state was loaded.
    pub fn set_fit(&self, fit: bool) {
        self.unfit.store(!fit, Ordering::SeqCst);
        self.mark();
    }
}

/// The data plane takes back that outputs may be written whose state is not safe. Returns whether it is
/// certain that none will be: not if one of `mailboxes` asks for it meanwhile, since it may have read the permission.
pub fn end_simplex<'a>(
    gate: &PublishedPermit,
    mut mailboxes: impl Iterator<Item = &'a Arc<ApplicationMailbox>>,
) -> bool {
    gate.set_simplex(false);
    fence(Ordering::SeqCst);
    !mailboxes.any(|mailbox| mailbox.behind())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_later_safe_state_covers_the_ones_before_it() {
        let mailbox = ApplicationMailbox::default();
        assert_eq!(mailbox.outcome(0), TransferOutcome::Pending);
        mailbox.note_published(0, StateLife::default());
        assert!(!mailbox.newest_is_safe());
        assert_eq!(mailbox.outcome(1), TransferOutcome::Pending);
        mailbox.note_published(1, StateLife::default());
        assert!(!mailbox.newest_is_settled());
        mailbox.settle(1, false);
        assert_eq!(mailbox.outcome(1), TransferOutcome::Failed);
        assert!(mailbox.newest_is_settled() && !mailbox.newest_is_safe());
        mailbox.note_published(3, StateLife::default());
        assert!(!mailbox.newest_is_safe());
        mailbox.settle(3, true);
        assert_eq!(
            (mailbox.outcome(1), mailbox.outcome(2)),
            (TransferOutcome::Safe, TransferOutcome::Safe)
        );
        assert!(mailbox.newest_is_safe());
    }
}
