//! The protocols between data plane and executors in every order that their threads can take (loom).
//! CONTRIBUTING.md has the command.
//!
//! Shipped code all through, but for what loom cannot look into: the ring below [`Records`] is a
//! stand-in of `rtrb`'s contract (`src/sync.rs`), and [`Bell`] one of the kernel's eventfd. Time never
//! passes, so a thread that waits for what has been said already waits for ever, which loom reports.
#![cfg(loom)]

use std::sync::Arc;

use bumpless_atomic_box::{DirtySet, every_order};
use bumpless_base::{Epoch, Instant, Role};
use bumpless_mailbox::{
    ApplicationMailbox, MemberStatus, Permit, PublishedPermit, Records, Rendezvous, Stage,
    StateLife, TransferOutcome, end_simplex,
};
use loom::cell::UnsafeCell;
use loom::sync::{Condvar, Mutex};
use loom::thread::{self, park};

const fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

const fn permit(epoch: u32, until: u64) -> Permit {
    Permit {
        epoch: Epoch(epoch),
        until: at(until),
    }
}

/// What wakes the data plane: calls before a wait are merged and end it.
#[derive(Default)]
struct Bell(Mutex<bool>, Condvar);

impl Bell {
    fn ring(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_one();
    }

    fn wait(&self) {
        let mut rung = self.0.lock().unwrap();
        while !*rung {
            rung = self.1.wait(rung).unwrap();
        }
        *rung = false;
    }
}

/// The outputs. Whoever writes them without having seen that the other has stopped is found by loom.
#[derive(Default)]
struct Outputs(UnsafeCell<u32>);

// SAFETY: no reference leaves `write`; that no two threads are in it at a time is what loom checks.
unsafe impl Sync for Outputs {}

impl Outputs {
    fn write(&self) {
        // SAFETY: the pointer is valid, and loom stops where the access would not be exclusive.
        self.0.with_mut(|place| unsafe { *place += 1 });
    }
}

#[derive(Default)]
struct Shared {
    gate: PublishedPermit,
    mailbox: Arc<ApplicationMailbox>,
    bell: Bell,
    outputs: Outputs,
}

#[test]
fn a_permit_is_whole() {
    every_order(|| {
        let gate = Arc::new(PublishedPermit::default());
        let theirs = Arc::clone(&gate);
        gate.set_permit(Some(permit(3, 300)));
        let reader = thread::spawn(move || {
            for _ in 0..2 {
                let seen = theirs.permit();
                let whole = |seen: Permit| seen.until == at(u64::from(seen.epoch.0) * 100);
                assert!(seen.is_none_or(whole), "{seen:?}");
            }
        });
        gate.set_permit(None);
        gate.set_permit(Some(permit(4, 400)));
        gate.set_permit(Some(permit(5, 500)));
        reader.join().unwrap();
        assert_eq!(gate.permit(), Some(permit(5, 500)));
    });
}

#[test]
fn who_sees_a_role_sees_since_when_and_how_it_began() {
    every_order(|| {
        let gate = Arc::new(PublishedPermit::default());
        gate.set_role(Role::Backup, at(1));
        let theirs = Arc::clone(&gate);
        let executor = thread::spawn(move || {
            if theirs.is_primary() {
                assert_eq!(theirs.role_since(), at(2));
                assert!(theirs.cold());
            }
            if theirs.permit().is_some() {
                assert!(theirs.is_primary());
            }
        });
        gate.set_cold(true);
        gate.set_role(Role::Primary, at(2));
        gate.set_permit(Some(permit(1, 9)));
        executor.join().unwrap();
    });
}

#[test]
fn a_safe_state_never_passes_for_one_given_up_and_wakes_its_waiter() {
    every_order(|| {
        let mailbox = Arc::new(ApplicationMailbox::default());
        let theirs = Arc::clone(&mailbox);
        mailbox.register_executor();
        let data_plane = thread::spawn(move || {
            theirs.settle(0, true);
            theirs.settle(1, false);
        });
        let outcome = |ticket| {
            loop {
                match mailbox.outcome(ticket) {
                    TransferOutcome::Pending => park(),
                    known => return known,
                }
            }
        };
        assert_eq!(outcome(0), TransferOutcome::Safe);
        assert_eq!(outcome(1), TransferOutcome::Failed);
        data_plane.join().unwrap();
    });
}

#[test]
fn a_permit_that_comes_ends_the_executors_wait() {
    every_order(|| {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        shared.mailbox.register_executor();
        let data_plane = thread::spawn(move || {
            theirs.gate.set_role(Role::Primary, at(1));
            theirs.mailbox.wake();
            theirs.gate.set_permit(Some(permit(1, 9)));
            theirs.mailbox.wake();
        });
        while shared.gate.permit().is_none() {
            park();
        }
        assert!(shared.gate.is_primary());
        data_plane.join().unwrap();
    });
}

#[test]
fn whatever_ends_the_wait_for_simplex_wakes_its_waiter() {
    // It is certain, the permit is taken back, or the state is safe after all.
    for (until, simplex, safe) in [
        (Some(15), true, false),
        (None, false, false),
        (Some(12), false, true),
    ] {
        every_order(move || {
            let shared = Arc::new(Shared::default());
            let theirs = Arc::clone(&shared);
            shared.gate.publish(Some(permit(1, 9)), true, false);
            let executor = thread::spawn(move || {
                let Shared { gate, mailbox, .. } = &*theirs;
                mailbox.register_executor();
                mailbox.note_published(0, StateLife::until(at(9)));
                theirs.bell.ring();
                while !gate.simplex() && !mailbox.newest_is_safe() && gate.permit().is_some() {
                    park();
                }
            });
            shared.bell.wait();
            // Its transfer fails, and the permit's end moves: neither ends the wait.
            shared.mailbox.settle(0, false);
            for (until, simplex) in [(Some(12), false), (until, simplex)] {
                let permit = until.map(|until| permit(1, until));
                if shared.gate.publish(permit, true, simplex) {
                    shared.mailbox.wake();
                }
            }
            if safe {
                shared.mailbox.settle(0, true);
            }
            executor.join().unwrap();
        });
    }
}

/// What an executor does in a cycle, for which its state is at the backup already.
fn cycle(shared: &Shared) {
    if shared.mailbox.enter_cycle(at(5)) {
        shared.outputs.write();
    } else {
        shared.bell.ring();
    }
    if shared.mailbox.leave_cycle(&shared.gate) {
        shared.bell.ring();
    }
}

#[test]
fn a_pause_holds_off_every_output_and_is_not_waited_for_in_vain() {
    every_order(|| {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let executor = thread::spawn(move || cycle(&theirs));
        shared.gate.set_handing_over(true);
        while !shared.mailbox.try_pause() {
            shared.bell.wait();
        }
        // The partner's, from here on.
        shared.outputs.write();
        executor.join().unwrap();
    });
}

#[test]
fn a_state_on_its_way_keeps_the_executor_from_being_paused() {
    every_order(|| {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let executor = thread::spawn(move || {
            if theirs.mailbox.enter_cycle(at(5)) {
                theirs.mailbox.note_published(0, StateLife::until(at(50)));
            }
            theirs.mailbox.leave_cycle(&theirs.gate);
        });
        if shared.mailbox.try_pause() {
            assert!(shared.mailbox.newest_is_safe());
            executor.join().unwrap();
            assert!(
                shared.mailbox.newest_is_safe(),
                "published during the pause"
            );
        } else {
            executor.join().unwrap();
        }
    });
}

#[test]
fn no_output_leaves_on_a_certainty_that_was_taken_back() {
    every_order(|| {
        let shared = Arc::new(Shared::default());
        shared.gate.set_simplex(true);
        let theirs = Arc::clone(&shared);
        let executor = thread::spawn(move || {
            theirs.mailbox.ask_simplex();
            if theirs.gate.simplex() {
                theirs.outputs.write();
            }
        });
        if end_simplex(&shared.gate, [&shared.mailbox].into_iter()) {
            // The partner is told that it is in step, and may take over.
            shared.outputs.write();
        }
        executor.join().unwrap();
    });
}

#[test]
fn whatever_an_application_says_is_found_by_its_mark() {
    every_order(|| {
        let dirty = Arc::new(DirtySet::new(1));
        let mailbox = Arc::new(ApplicationMailbox::marking(Arc::clone(&dirty), 0));
        let theirs = Arc::clone(&mailbox);
        let executor = thread::spawn(move || {
            theirs.note_published(0, StateLife::until(at(50)));
            theirs.set_fit(false);
            theirs.note_epoch_seen(Epoch(4));
        });
        let mut known = MemberStatus::default();
        dirty.take(|_| known = mailbox.status());
        mailbox.settle(0, true);
        executor.join().unwrap();
        dirty.take(|_| known = mailbox.status());
        let said = MemberStatus {
            epoch_seen: Epoch(4),
            fit: false,
            ..MemberStatus::default()
        };
        assert_eq!((known, mailbox.status()), (said, said));
    });
}

#[test]
fn a_look_at_the_device_after_a_pause_is_known_whoever_is_first() {
    every_order(|| {
        let dirty = Arc::new(DirtySet::new(1));
        let mailbox = Arc::new(ApplicationMailbox::marking(Arc::clone(&dirty), 0));
        mailbox.note_compared(None, at(1));
        dirty.take(|_| ());
        let theirs = Arc::clone(&mailbox);
        let executor = thread::spawn(move || {
            theirs.note_compared(None, at(5));
        });
        // This thread stood still until 3, and says so when the executor may have looked again.
        let mut compared = mailbox.void_comparison(at(3));
        executor.join().unwrap();
        dirty.take(|_| compared = mailbox.status().compared);
        assert!(compared);
    });
}

#[test]
fn every_record_comes_out_in_order_or_is_counted() {
    every_order(|| {
        let mut records = Records::default();
        let recorders = [(0, 1, records.recorder(2)), (10, 2, records.recorder(1))];
        let threads = recorders.map(|(first, count, mut recorder)| {
            thread::spawn(move || (first..first + count).for_each(|entry| recorder.record(entry)))
        });
        let mut seen = Vec::new();
        records.drain(|entry| seen.push(entry));
        let lost = records.lost();
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(lost <= records.lost());
        records.drain(|entry| seen.push(entry));
        assert_eq!(seen.len() as u64 + records.lost(), 3);
        let (one, other): (Vec<u32>, Vec<u32>) = seen.into_iter().partition(|&entry| entry < 10);
        assert!(one.is_sorted() && other.is_sorted());
    });
}

/// What two executors share that do something together, or none of them does.
struct Together {
    rendezvous: Rendezvous,
    mailboxes: [ApplicationMailbox; 2],
}

impl Together {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            rendezvous: Rendezvous::new(2),
            mailboxes: Default::default(),
        })
    }

    fn wake(&self) {
        self.mailboxes.iter().for_each(ApplicationMailbox::wake);
    }

    /// Executor `me` takes part; returns whether it does it.
    fn take_part(&self, me: usize, can: bool) -> bool {
        self.mailboxes[me].register_executor();
        if !self.rendezvous.arrive() {
            return false;
        }
        self.wake();
        while matches!(self.rendezvous.stage(), Stage::Gathering(_)) {
            park();
        }
        match can {
            true => self.rendezvous.agree(),
            false => self.rendezvous.call_off(),
        };
        self.wake();
        while matches!(self.rendezvous.stage(), Stage::Trying(_)) {
            park();
        }
        self.rendezvous.stage() == Stage::Agreed
    }
}

#[test]
fn two_executors_do_it_together_or_none_does_and_none_waits_in_vain() {
    for can in [true, false] {
        every_order(move || {
            let together = Together::new();
            let theirs = Arc::clone(&together);
            let other = thread::spawn(move || theirs.take_part(1, can));
            assert_eq!(together.take_part(0, true), can);
            assert_eq!(other.join().unwrap(), can);
        });
    }
}

#[test]
fn whoever_calls_it_off_at_any_moment_does_so_for_both_or_for_none() {
    every_order(|| {
        let rendezvous = Arc::new(Rendezvous::new(2));
        let executors = [0, 1].map(|_| {
            let theirs = Arc::clone(&rendezvous);
            thread::spawn(move || {
                theirs.arrive();
                theirs.agree();
            })
        });
        let off = rendezvous.call_off();
        for executor in executors {
            executor.join().unwrap();
        }
        let stage = rendezvous.stage();
        assert_eq!(off, stage == Stage::Off, "{stage:?}");
        assert!(off || stage == Stage::Agreed, "{stage:?}");
    });
}

/// What an executor does whose turn comes when the other one stands still: it looks between two cycles, and sleeps until it is called.
fn await_turn(together: &Together, me: usize) {
    let mailbox = &together.mailboxes[me];
    loop {
        mailbox.end_call();
        if together.rendezvous.stage() == Stage::Gathering(1) {
            return;
        }
        while !mailbox.is_called() {
            park();
        }
    }
}

#[test]
fn whoever_is_called_when_its_turn_comes_looks_again() {
    every_order(|| {
        let together = Together::new();
        let theirs = Arc::clone(&together);
        let runs = Arc::new(Bell::default());
        let begun = Arc::clone(&runs);
        let other = thread::spawn(move || {
            theirs.mailboxes[1].register_executor();
            begun.ring();
            await_turn(&theirs, 1);
        });
        runs.wait();
        assert!(together.rendezvous.arrive());
        together.mailboxes[1].call();
        other.join().unwrap();
    });
}
