//! Where one trial takes place: a pair that is redundant, a fault, and what came of it.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bumpless_base::Random;

use super::judge::{self, Evidence, Fault, Limits};
use super::ledger::Count;
use super::pair::{NodeEvent, Pair};
use super::result::{Outcome, Trial};
use super::switch::faults::{Episode, Faults, Flapping, NETWORKS};
use super::watch::{Heard, Watch, texts};
use super::{TortureError, now_ns};
use crate::demo::configuration::NODES;
use crate::demo::meter::Meter;
use crate::demo::progress::Progress;
use crate::runlog::{Run, Stall, Write};

/// Nanoseconds of a millisecond.
pub const MS: u64 = 1_000_000;
/// Interval at which conditions are looked at.
const LOOK_NS: u64 = 10 * MS;
/// How long a pair has to become redundant by itself before it is started anew.
const TIMEOUT_NS: u64 = 6_000 * MS;
/// How long one that has just been started has.
const START_TIMEOUT_NS: u64 = 20_000 * MS;
/// How often it is started anew.
const STARTS_MAX: u32 = 3;
/// What the logs of plant and nodes may lag behind.
pub(super) const LOG_LAG_NS: u64 = 160 * MS;
/// Events that a broken trial keeps.
const EVENTS_MAX: usize = 40;
/// Kinds of events that say nothing about roles and states.
const DULL: [&str; 5] = ["stall", "weakness", "transfer", "overdue", "started"];

/// Waiting that a Ctrl-C ends, with progress.
pub struct Waiter {
    stop: Arc<AtomicBool>,
    /// What people see.
    pub progress: Progress,
}

impl Waiter {
    /// Waits that `stop` ends.
    pub fn new(stop: Arc<AtomicBool>, progress: Progress) -> Self {
        Self { stop, progress }
    }

    /// Waits until the clock shows `until_ns`.
    ///
    /// # Errors
    /// [`TortureError::Interrupted`].
    pub fn until(&mut self, until_ns: u64) -> Result<(), TortureError> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(TortureError::Interrupted);
            }
            self.progress.tick();
            let left = until_ns.saturating_sub(now_ns());
            if left == 0 {
                return Ok(());
            }
            thread::sleep(Duration::from_nanos(left.min(LOOK_NS)));
        }
    }

    /// Waits for so many milliseconds.
    ///
    /// # Errors
    /// [`TortureError::Interrupted`].
    pub fn ms(&mut self, ms: u64) -> Result<(), TortureError> {
        self.until(now_ns() + ms * MS)
    }
}

/// What a case works with.
pub struct Stage<'a> {
    /// The pair.
    pub pair: Pair<'a>,
    /// Chance.
    pub random: Random,
    /// Waiting.
    pub waiter: Waiter,
    /// Whether all is to be short.
    pub quick: bool,
    /// Times that the pair was started anew.
    pub started_anew: u64,
    /// Every stall that was seen.
    pub stalls: Vec<Stall>,
}

/// A trial that has begun.
pub struct Scene {
    /// The primary before the fault.
    pub primary: usize,
    /// The highest epoch that the plant had accepted.
    pub epoch: u64,
    /// When the trial began.
    pub from_ns: u64,
    watch: Watch,
    meter: Meter,
    writes: Vec<Write>,
    count: Count,
}

/// What came of a trial: its record, and what cases look at for promises of their own.
pub struct Finding {
    /// The record.
    pub trial: Trial,
    /// What it rests on.
    pub evidence: Evidence,
    /// What the nodes said.
    pub heard: Vec<Heard>,
}

impl Stage<'_> {
    /// Faults on `networks` from this moment on.
    pub fn fault(
        &self,
        networks: [bool; NETWORKS],
        length_ns: u64,
        flapping: Option<Flapping>,
        faults: Faults,
    ) -> Episode {
        let from_ns = now_ns();
        let episode = Episode {
            networks,
            from_ns,
            to_ns: from_ns + length_ns,
            flapping,
            faults,
        };
        self.pair.hosts.switch.begin(episode);
        episode
    }

    /// Waits until the pair is redundant at a moment after `since_ns`.
    ///
    /// # Errors
    /// [`TortureError::Interrupted`].
    pub fn await_redundant(
        &mut self,
        since_ns: u64,
        timeout_ns: u64,
    ) -> Result<Option<usize>, TortureError> {
        let until = now_ns().max(since_ns) + timeout_ns;
        loop {
            if let Some(primary) = self.pair.redundant(since_ns) {
                return Ok(Some(primary));
            }
            if now_ns() > until {
                return Ok(None);
            }
            self.waiter.until(now_ns() + LOOK_NS)?;
        }
    }

    /// Makes the pair redundant, by starting it anew if need be; gives the primary.
    ///
    /// # Errors
    /// It cannot be made so.
    pub fn make_redundant(&mut self) -> Result<usize, TortureError> {
        let mut timeout_ns = TIMEOUT_NS;
        for _ in 0..=STARTS_MAX {
            if let Some(primary) = self.await_redundant(now_ns(), timeout_ns)? {
                return Ok(primary);
            }
            self.pair.hosts.switch.clear();
            self.pair.start_anew()?;
            self.started_anew += 1;
            timeout_ns = START_TIMEOUT_NS;
        }
        Err(TortureError::NotRedundant(self.pair.last_words()))
    }

    /// Begins a trial at a moment of the cycle that is a matter of chance.
    ///
    /// # Errors
    /// The pair cannot be made redundant.
    pub fn open(&mut self) -> Result<Scene, TortureError> {
        self.make_redundant()?;
        self.waiter.ms(200)?;
        let primary = self.make_redundant()?;
        let usual = [0, 1].map(|node| {
            let view = self.pair.view(node);
            view.map(|view| texts(&view.0["weaknesses"]))
                .unwrap_or_default()
        });
        let controls = [0, 1].map(|node| self.pair.control(node));
        let fail = |error| TortureError::system("a thread", error);
        let watch = Watch::start(controls, usual).map_err(fail)?;
        let meter = Meter::start().map_err(fail)?;
        // What was before is judged where it belongs; the last write is where a gap begins.
        self.waiter
            .until(now_ns() + LOG_LAG_NS + self.random.below(20 * MS))?;
        self.pair.take_events();
        let writes = self.pair.take_writes(&mut Count::default());
        Ok(Scene {
            primary,
            epoch: self.pair.epoch(),
            from_ns: now_ns(),
            watch,
            meter,
            writes: writes
                .into_iter()
                .rev()
                .find(|write| write.accepted)
                .into_iter()
                .collect(),
            count: Count::default(),
        })
    }

    /// Takes in what the plant has logged so far, before another plant's log takes its place.
    pub fn take_writes(&mut self, scene: &mut Scene) {
        scene.writes.extend(self.pair.take_writes(&mut scene.count));
    }

    /// Ends a trial: waits until the pair is whole again, and judges what came of it.
    ///
    /// # Errors
    /// [`TortureError::Interrupted`].
    pub fn close(
        &mut self,
        mut scene: Scene,
        fault: Fault,
        limits: &Limits,
    ) -> Result<Finding, TortureError> {
        let since_ns = fault.to_ns + limits.settle_ns;
        self.waiter.until(since_ns)?;
        let whole = self.await_redundant(since_ns, limits.heal_ns.max(TIMEOUT_NS))?;
        let healed_ns = whole.map(|_| now_ns());
        self.waiter.until(now_ns() + LOG_LAG_NS)?;
        self.take_writes(&mut scene);
        let heard = scene.watch.end();
        let stalls = scene.meter.end();
        let evidence = Evidence {
            run: Run {
                writes: scene.writes,
                stalls: stalls.clone(),
                ..Run::default()
            },
            count: scene.count,
            events: self.pair.take_events(),
            strange: self.pair.take_strange(),
            healed_ns,
            until_ns: now_ns() - LOG_LAG_NS,
        };
        self.stalls.extend(stalls);
        let mut trial = judge::trial(&evidence, &fault, limits);
        trial.primary = NODES[scene.primary].to_owned();
        Ok(Finding {
            trial,
            evidence,
            heard,
        })
    }
}

impl Finding {
    /// The record, with the events if a promise is broken.
    pub fn into_trial(mut self, fault: &Fault) -> (Trial, Vec<Heard>) {
        if self.trial.outcome() == Outcome::Broken {
            let events = self.evidence.events.iter();
            let telling = events.filter(|event| !DULL.contains(&event.text("event")));
            self.trial.events = telling
                .take(EVENTS_MAX)
                .map(|event| describe(event, fault.from_ns))
                .collect();
        }
        (self.trial, self.heard)
    }
}

/// An event for people.
fn describe(event: &NodeEvent, origin_ns: u64) -> String {
    let ms = (event.time_ns as f64 - origin_ns as f64) / 1e6;
    let mut text = format!("{ms:.1} ms {} {}", NODES[event.node], event.text("event"));
    for field in ["application", "from", "to", "state", "link", "cause"] {
        if !event.line[field].is_null() {
            let _ = write!(text, " {}", event.text(field));
        }
    }
    text
}
