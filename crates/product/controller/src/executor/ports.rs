//! The traits through which an executor meets its surroundings.

pub use bumpless_base::Role;
use bumpless_base::{Counters, Epoch, Instant, Pieces};
pub use bumpless_base::{Permit, ProgramStanding, ResumeFrom, TransferOutcome};

use crate::retain::Record;
use crate::state::Progress;

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The instant was reached.
    Reached,
    /// Something changed that the executor must look at: the role, or the order to stop.
    Woken,
}

/// The executor's clock.
pub trait Clock {
    /// The time of this call.
    fn now(&self) -> Instant;
    /// Sleeps until `until`, or until somebody wakes the executor. A wake that comes before the
    /// call must not be lost.
    fn wait_until(&mut self, until: Instant) -> Wake;
}

/// What is known about a received state besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateInfo {
    /// The transfer cycle that brought it.
    pub transfer_cycle: u32,
    /// When it expires on this node's clock.
    pub expires_at: Instant,
}

/// The channel that carries an application's state to its backup.
pub trait Replication {
    /// Hands the channel's spare buffer to `fill`, which writes the state to its front and returns
    /// the length, and queues it. Returns a ticket; tickets only grow. Must not block.
    fn publish(&mut self, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> u64;

    /// Queues a state that can be copied in pieces: the first ones may be sent while the others are copied. As
    /// [`publish`](Self::publish) else.
    fn publish_pieces(&mut self, state: &dyn Pieces) -> u64 {
        self.publish(&mut |buffer| state.copy_whole(buffer))
    }

    /// Waits until the state of `ticket` is safe or failed, at most until `until`. Ends early
    /// with [`TransferOutcome::Failed`] when the backup is lost.
    fn wait_settled(&mut self, ticket: u64, until: Instant) -> TransferOutcome;

    /// What became of `ticket`, without waiting.
    fn settled(&mut self, ticket: u64) -> TransferOutcome;

    /// Until when the state that was published last is young enough to go on from. Before any was published, an
    /// instant that has passed.
    fn own_usable_until(&self) -> Instant;

    /// Shows the newest whole state that came from a partner, if there is one that was young enough to go on from
    /// at `at`. Returns whether `load` was called.
    fn read_latest(&mut self, at: Instant, load: &mut dyn FnMut(&[u8], StateInfo)) -> bool;

    /// Shows the front of the state that [`read_latest`](Self::read_latest) would show, at least as much as
    /// [`progress_of`](crate::state::progress_of) takes. It is not opened for that, so nothing may rest on what it
    /// says once it is. Returns whether `look` was called.
    fn peek_latest(&mut self, at: Instant, look: &mut dyn FnMut(&[u8])) -> bool {
        self.read_latest(at, &mut |state, _| look(state))
    }

    /// Shows the state that an earlier process of this node has left on disk, if it was young enough to go on from
    /// at `at`, and neither a state of a partner nor an own one has come since. It may
    /// lack outputs that were written later. Returns whether `load` was called.
    fn read_restored(&mut self, _at: Instant, _load: &mut dyn FnMut(&[u8])) -> bool {
        false
    }

    /// Shows the record of retained variables that an earlier process of this node has left on disk, however old, and
    /// how far its state had come. Returns whether `take` was called.
    fn read_retained(&mut self, _take: &mut dyn FnMut(Progress, Record<'_>)) -> bool {
        false
    }

    /// Called in each cycle as backup: what has come may be kept where it survives a loss of memory. Must not block.
    fn keep_received(&mut self) {}

    /// Adds what was counted since this was called last.
    fn count(&mut self, _counters: &mut Counters) {}
}

/// The redundancy layer as an executor sees it.
pub trait OutputGate {
    /// The right to write at this moment, if this node has it. Asked at the start of each cycle as
    /// primary and again immediately before its outputs are written, never between cycles.
    fn permit(&mut self) -> Option<Permit>;
    /// The role at this moment.
    fn role(&self) -> Role;
    /// Whether there is a healthy backup to which a state can be made safe. While there is none,
    /// no output waits.
    fn backup_expected(&self) -> bool;
    /// When the present role was taken, which may have been lost and taken again unseen.
    fn role_since(&self) -> Instant {
        Instant::ZERO
    }
    /// Whether this primary is to stand still for a moment, for an ordered hand-over: no cycle is
    /// executed, and the role goes on.
    fn paused(&self) -> bool {
        false
    }
    /// Whether the present role of primary began without the certainty that this node has the newest state. What
    /// it has is then gone on from only if the field device shows that nothing later was written (F-27).
    fn began_cold(&self) -> bool {
        false
    }
    /// Makes certain that nobody takes over without a bump from an older state than this node's,
    /// waiting until `until` at most; returns whether it is certain. Called before each output whose
    /// state is not safe.
    fn go_simplex(&mut self, _until: Instant) -> bool {
        true
    }
    /// The state that a cycle's outputs needed was safe: whoever takes over has it.
    fn in_step(&mut self) {}
    /// A device has accepted this epoch. Called after every read or rejected write that tells.
    fn epoch_seen(&mut self, _epoch: Epoch) {}
    /// A device holds the present epoch although this process has written nothing in it: an earlier
    /// process of this node has. Outputs need a higher one.
    fn epoch_spent(&mut self, _epoch: Epoch) {}
    /// The field device was compared with the newest state that is here, in the cycle that began at `began`. It has
    /// accepted an output later than that, and shows the same since `outdated`; `None`: it has not. Called in each
    /// cycle as backup, and when a tenure begins.
    fn note_compared(&mut self, _outdated: Option<Instant>, _began: Instant) {}
    /// A state has been published in the role that was taken at `since`.
    fn note_decided(&mut self, _since: Instant) {}
    /// Whether this node can reach its field devices and run the application. Called on changes.
    fn fit_changed(&mut self, _fit: bool) {}
    /// The program has failed so often that this node stops it, or it may run here again. Called on changes.
    fn program_changed(&mut self, _standing: ProgramStanding) {}
    /// Takes an operator's order that the program, which is stopped, go on. Asked for in each cycle in which it is.
    fn resume_ordered(&mut self) -> Option<ResumeFrom> {
        None
    }
}

/// Everything around an executor.
pub struct Ports<R, G, C> {
    /// Inputs and outputs.
    pub field: Box<dyn crate::FieldIo>,
    /// The channel to the backup.
    pub replication: R,
    /// Role and right to write.
    pub gate: G,
    /// Time.
    pub clock: C,
}
