//! Other settings for an application that runs: how they reach its thread, and what that had comes back.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use bumpless_atomic_box::AtomicBox;
use bumpless_base::{Counters, Duration, NodeId};
use bumpless_config as config;
use bumpless_controller::{
    Application, Clock as ExecutorClock, CycleReport, Executor, ExecutorSettings, FieldIo,
    OutputGate,
};
use bumpless_net_linux::Clock;

use super::together::Together;
use crate::executor::{ChannelReplication, Threads, is_settled};
use crate::field::open_field;
use crate::field_drivers::Opened;
use crate::field_identity::FieldIdentity;
use crate::program::{build_at, executor_settings};
use crate::succession::{self, Version};

/// How long field drivers that begin may take until their devices answer. Thereafter the application goes on with them as
/// they are.
const DRIVERS: Duration = Duration::from_secs(3);
/// How often that is looked at.
const LOOK: std::time::Duration = std::time::Duration::from_millis(10);

/// Other settings for an application that runs.
pub struct Tuning {
    settings: ExecutorSettings,
    application: Box<dyn Application>,
    field: Box<dyn FieldIo>,
    /// How long a state is young enough to go on from.
    hot_restart: Duration,
    /// Once in how long its state is written to disk, if it is.
    persist: Option<Duration>,
    /// Which request it is, in the order in which they are asked for.
    number: u64,
    /// With whom it changes, and its number among them.
    together: Option<(Arc<Together>, usize)>,
    /// What is told of the executor's thread when it has taken them, or not.
    result: Result<(), String>,
}

impl Tuning {
    /// With what `settings` describe, on `node`, which is `own` to field devices; `priority` is the data plane's. It takes the place of
    /// `before`. `state`, one of that version, is taken over for trial. The field drivers that begin stand in `opened`.
    ///
    /// # Errors
    /// What the system says of its field I/O, or why its program does not take the place of the one before.
    pub fn new(
        (settings, before): (&config::Application, &Version),
        (node, own): (NodeId, &FieldIdentity),
        (priority, state): (Option<u8>, Option<&[u8]>),
        opened: &mut Opened,
    ) -> io::Result<Self> {
        Ok(Self {
            settings: executor_settings(settings, node),
            application: match before.is_another(settings) {
                true => succession::build(settings, before, priority, state)
                    .map_err(io::Error::other)?,
                false => build_at(settings, priority)?,
            },
            field: open_field(settings, own, opened)?,
            hot_restart: settings.hot_restart,
            persist: settings.persist,
            number: 0,
            together: None,
            result: Ok(()),
        })
    }

    /// At the moment at which all of `together` change, of which it is number `at`, or not at all.
    pub fn change_with(&mut self, together: &Arc<Together>, at: usize) {
        self.together = Some((Arc::clone(together), at));
    }

    /// Waits until the devices of field drivers that begin answer, but not for ever.
    pub fn warm_up(&mut self) {
        let until = Clock.now() + DRIVERS;
        while !self.field.warm_up(until) && Clock.now() < until {
            thread::sleep(LOOK);
        }
    }

    /// What goes on with `settings`, from which this was made, to its own successors.
    pub fn version(&self, settings: &config::Application) -> Version {
        Version::of(settings, self.application.as_ref())
    }
}

/// Where an application's thread finds other settings, and leaves what it had. One thread asks, and may ask anew where it has waited long
/// enough for an answer.
#[derive(Default)]
pub struct TuningSlots {
    /// Room for a copy of the newest state, and the copy.
    room: AtomicBox<Vec<u8>>,
    copied: AtomicBox<Vec<u8>>,
    asked: AtomicBox<Tuning>,
    /// What was asked for and is not due yet. A place of its own: in that of `asked` it would push out what is asked for meanwhile.
    waiting: AtomicBox<Tuning>,
    /// What waited when a later request came, for who asks to drop: an application takes longer to end than a cycle has time.
    replaced: AtomicBox<Tuning>,
    done: AtomicBox<Tuning>,
    /// The number of the latest request, for who asks.
    latest: AtomicU64,
}

impl TuningSlots {
    /// Asks the thread to go on with `tuning` after its cycle.
    pub fn ask(&self, mut tuning: Tuning) {
        tuning.number = self.latest.fetch_add(1, Ordering::Relaxed) + 1;
        self.waiting.swap(None);
        self.replaced.swap(None);
        self.done.swap(None);
        self.asked.swap(Some(Box::new(tuning)));
    }

    /// Asks the thread for a copy of the newest state, which has at most `size_max` bytes.
    pub fn ask_for_state(&self, size_max: usize) {
        self.copied.swap(None);
        let room = Vec::with_capacity(size_max);
        self.room.swap(Some(Box::new(room)));
    }

    /// The copy; `None`: not yet.
    pub fn state(&self) -> Option<Vec<u8>> {
        self.copied.swap(None).map(|state| *state)
    }

    /// Between two cycles: has `executor` go on with what was asked for, if anything.
    pub(super) fn follow<G, C, O>(
        &self,
        executor: &mut Executor<ChannelReplication<Threads>, G, C, O>,
    ) where
        G: OutputGate,
        C: ExecutorClock,
        O: FnMut(&CycleReport, &Counters),
    {
        if let Some(mut room) = self.room.swap(None) {
            executor.newest_state(&mut room);
            self.copied.swap(Some(room));
        }
        // Before it looks: a call that comes later is not lost.
        executor.replication().mailbox.end_call();
        let Some(tuning) = self.next() else {
            return;
        };
        if is_due(executor, &tuning) {
            self.done.swap(Some(tune(executor, tuning)));
        } else {
            self.waiting.swap(Some(tuning));
        }
    }

    /// The newest of what was asked for. What has waited until then for its turn is not followed later.
    fn next(&self) -> Option<Box<Tuning>> {
        let asked = self.asked.swap(None);
        let waiting = self.waiting.swap(None);
        if asked.is_some() && waiting.is_some() {
            self.replaced.swap(waiting);
            return asked;
        }
        asked.or(waiting)
    }

    /// Whether it has; `None`: not yet. What it had is dropped here. An answer to an earlier request, which came too late for it, is none to
    /// the latest.
    pub fn answer(&self) -> Option<Result<(), String>> {
        self.replaced.swap(None);
        let done = self.done.swap(None)?;
        (done.number == self.latest.load(Ordering::Relaxed)).then_some(done.result)
    }
}

/// Whether `executor` can go on as `tuning` says before its next cycle. With others it waits for its turn, and until nothing is on
/// its way to the backup.
fn is_due<G, C, O>(
    executor: &mut Executor<ChannelReplication<Threads>, G, C, O>,
    tuning: &Tuning,
) -> bool
where
    G: OutputGate,
    C: ExecutorClock,
    O: FnMut(&CycleReport, &Counters),
{
    let Some((together, at)) = &tuning.together else {
        return true;
    };
    let ChannelReplication { gate, mailbox, .. } = executor.replication();
    let turn = together.is_off() || together.is_turn(*at);
    let due = turn && (together.is_off() || is_settled(gate, mailbox));
    if turn && !due {
        mailbox.call();
    }
    due
}

/// The state stays, everything else is as `tuning` says; it comes back with what was there before, or as it is with the reason.
fn tune<G, C, O>(
    executor: &mut Executor<ChannelReplication<Threads>, G, C, O>,
    mut tuning: Box<Tuning>,
) -> Box<Tuning>
where
    G: OutputGate,
    C: ExecutorClock,
    O: FnMut(&CycleReport, &Counters),
{
    let takes_over = match tuning.together.take() {
        None => executor
            .hand_state_to(&mut *tuning.application)
            .map_err(|error| error.to_string()),
        Some((together, at)) => match together.take_part(at, executor, &mut *tuning.application) {
            true => Ok(()),
            false => Err(together.why_not()),
        },
    };
    if takes_over.is_err() {
        tuning.result = takes_over;
        return tuning;
    }
    let Tuning {
        settings,
        application,
        field,
        hot_restart,
        persist,
        ..
    } = *tuning;
    (tuning.application, tuning.field) = executor.exchange(settings.clone(), application, field);
    let replication = executor.replication();
    replication.set_persist(persist);
    tuning.result = replication.set_times(settings.deadline, (settings.expiry, hot_restart));
    tuning.settings = settings;
    tuning
}

#[cfg(test)]
mod tests {
    use bumpless_controller::{NoField, Synthetic, SyntheticParameters};

    use super::*;

    fn tuning(result: Result<(), String>) -> Tuning {
        let (settings, _) = succession::versions(config::ProgramHost::Wasm);
        let application = Synthetic::new(SyntheticParameters {
            size: 100,
            changed_share: 1.0,
        });
        Tuning {
            settings: executor_settings(&settings, NodeId(1)),
            application: Box::new(application),
            field: Box::new(NoField),
            hot_restart: settings.hot_restart,
            persist: None,
            number: 0,
            together: None,
            result,
        }
    }

    #[test]
    fn what_is_asked_for_while_an_earlier_request_is_looked_at_is_not_lost() {
        let slots = TuningSlots::default();
        slots.ask(tuning(Ok(())));
        let earlier = slots.next().unwrap();
        slots.ask(tuning(Ok(())));
        slots.waiting.swap(Some(earlier));
        assert_eq!(slots.next().unwrap().number, 2);
        assert!(slots.next().is_none(), "the earlier one does not follow");
    }

    #[test]
    fn a_late_answer_to_an_earlier_request_is_not_taken_for_one_to_the_latest() {
        let slots = TuningSlots::default();
        slots.ask(tuning(Ok(())));
        let earlier = slots.next().unwrap();
        slots.ask(tuning(Err("the latest".into())));
        slots.done.swap(Some(earlier));
        assert_eq!(slots.answer(), None);
        let latest = slots.next();
        slots.done.swap(latest);
        assert_eq!(slots.answer(), Some(Err("the latest".into())));
        assert_eq!(slots.answer(), None);
    }
}
