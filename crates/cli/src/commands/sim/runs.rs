//! Runs with consecutive seeds, shared by threads, and what came of them.

use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bumpless_bench::run::progress::{ProgressLine, left};
use bumpless_sim::check::Forgiven;
use bumpless_sim::{FloodCounts, Report, Settings};

use super::SECOND;

/// The first seed is that of the settings.
pub struct Runs {
    settings: Settings,
    count: u64,
    next: AtomicU64,
    simulated: AtomicU64,
    failed: AtomicBool,
    ended: Mutex<Ended>,
}

/// The runs that have come to an end, in whatever order.
#[derive(Default)]
struct Ended {
    runs: Vec<Run>,
    /// The failed run with the lowest seed, counted from the first.
    failure: Option<(u64, Report)>,
    /// The same of runs whose faults break an assumption.
    breaks: Option<(u64, Vec<String>)>,
    error: Option<String>,
}

/// What is told of a run that did not fail.
struct Run {
    at: u64,
    simulated: u64,
    faults: usize,
    datagrams: u64,
    lost: u64,
    /// What became of the packets of floods.
    floods: FloodCounts,
    trace_hash: u64,
    /// By application, nanoseconds.
    longest_gaps: Vec<u64>,
    cold_starts: u64,
    forgiven: Forgiven,
}

/// What came of them: of those up to the first that failed, so that it does not depend on which thread was quicker.
#[derive(Default)]
pub struct Done {
    /// How many.
    pub runs: u64,
    /// Nanoseconds.
    pub simulated: u64,
    /// Planned.
    pub faults: usize,
    /// Handed to the networks.
    pub datagrams: u64,
    /// Of them.
    pub lost: u64,
    /// What became of the packets of floods.
    pub floods: FloodCounts,
    /// All runs' digests combined by exclusive or.
    pub trace_hash: u64,
    /// By application: the longest time between two outputs of a run, nanoseconds.
    pub longest_gaps: Vec<u64>,
    /// How often an application began from its initial state after its first output.
    pub cold_starts: u64,
    /// What the checkers forgave.
    pub forgiven: Forgiven,
    /// The user ended it.
    pub interrupted: bool,
    /// Of the first run whose faults break any, and of the failed one if it breaks any.
    pub broken_assumptions: Vec<String>,
    /// The failed run with the lowest seed.
    pub failure: Option<Report>,
    /// What kept a run from its end, or a trace from being written.
    pub error: Option<String>,
}

/// Does something when it goes out of scope, however that comes.
struct OnEnd<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl Runs {
    /// `count` runs of `settings`.
    pub fn new(settings: Settings, count: u64) -> Self {
        Self {
            settings,
            count,
            next: AtomicU64::new(0),
            simulated: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            ended: Mutex::default(),
        }
    }

    /// Runs them on `jobs` threads until all have ended, one has failed, or `stop`; progress is shown meanwhile.
    pub fn all(self, jobs: u16, stop: &AtomicBool) -> Done {
        let (left, shower) = (AtomicU16::new(jobs), std::thread::current());
        let work = || {
            // Counted also if it panics, which the scope passes on.
            let _ended = OnEnd(|| {
                left.fetch_sub(1, Ordering::Release);
                shower.unpark();
            });
            self.work(stop);
        };
        std::thread::scope(|scope| {
            (0..jobs).for_each(|_| drop(scope.spawn(work)));
            let mut line = ProgressLine::sparing();
            while left.load(Ordering::Acquire) > 0 {
                std::thread::park_timeout(Duration::from_millis(20));
                line.show(|spent| self.progress(spent));
            }
            line.end();
        });
        let ended = self.ended.into_inner();
        let mut done = ended.unwrap_or_else(PoisonError::into_inner).summed_up();
        done.interrupted = stop.load(Ordering::Relaxed);
        done
    }

    fn work(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) && !self.failed.load(Ordering::Relaxed) {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            if at >= self.count {
                return;
            }
            let settings = Settings {
                seed: self.settings.seed.wrapping_add(at),
                ..self.settings.clone()
            };
            let result = bumpless_sim::run_unless(&settings, || stop.load(Ordering::Relaxed));
            let Ok(mut ended) = self.ended.lock() else {
                return;
            };
            match result {
                Ok(report) => {
                    self.simulated
                        .fetch_add(report.simulated, Ordering::Relaxed);
                    self.failed
                        .fetch_or(!report.violations.is_empty(), Ordering::Relaxed);
                    ended.add(at, report);
                }
                Err(error) => {
                    ended.error = Some(error);
                    self.failed.store(true, Ordering::Relaxed);
                }
            }
        }
    }

    /// How far they have come after `spent`, and how long the others will take.
    fn progress(&self, spent: Duration) -> String {
        let done = self.simulated.load(Ordering::Relaxed);
        let spent = spent.as_secs_f64();
        let speed = done as f64 / SECOND / spent;
        let all = self.count as f64 * self.settings.time as f64;
        let left = match self.count {
            u64::MAX => "until one fails".to_owned(),
            _ => left(spent * (all / done as f64 - 1.0)),
        };
        let seconds = done as f64 / SECOND;
        format!("{seconds:.0} simulated seconds, {speed:.0} times real time, {left}")
    }
}

impl Ended {
    fn add(&mut self, at: u64, report: Report) {
        self.runs.push(Run {
            at,
            simulated: report.simulated,
            faults: report.faults,
            datagrams: report.datagrams,
            lost: report.lost,
            floods: report.flood_counts,
            trace_hash: report.trace_hash,
            longest_gaps: report.outputs.iter().map(|seen| seen.longest_gap).collect(),
            cold_starts: report.cold_starts,
            forgiven: report.forgiven,
        });
        if report.trace_error.is_some() {
            self.error.clone_from(&report.trace_error);
        }
        let broken = &report.broken_assumptions;
        if !broken.is_empty() && self.breaks.as_ref().is_none_or(|(first, _)| at < *first) {
            self.breaks = Some((at, broken.clone()));
        }
        let earlier = self.failure.as_ref().is_some_and(|(first, _)| *first < at);
        if !report.violations.is_empty() && !earlier {
            self.failure = Some((at, report));
        }
    }

    fn summed_up(self) -> Done {
        let last = self.failure.as_ref().map_or(u64::MAX, |(at, _)| *at);
        let mut done = Done {
            error: self.error,
            ..Done::default()
        };
        for run in self.runs.iter().filter(|run| run.at <= last) {
            done.runs += 1;
            done.simulated += run.simulated;
            done.faults += run.faults;
            done.datagrams += run.datagrams;
            done.lost += run.lost;
            done.floods.merge(&run.floods);
            done.trace_hash ^= run.trace_hash;
            done.cold_starts += run.cold_starts;
            done.forgiven.merge(&run.forgiven);
            done.longest_gaps.resize(run.longest_gaps.len(), 0);
            for (longest, gap) in done.longest_gaps.iter_mut().zip(&run.longest_gaps) {
                *longest = (*longest).max(*gap);
            }
        }
        let breaks = self.breaks.filter(|(at, _)| *at <= last);
        done.broken_assumptions = breaks.map_or_else(Vec::new, |(_, broken)| broken);
        done.failure = self.failure.map(|(_, report)| report);
        if let Some(failed) = &done.failure
            && !failed.broken_assumptions.is_empty()
        {
            done.broken_assumptions
                .clone_from(&failed.broken_assumptions);
        }
        done
    }
}
