//! `bumpless sim --kept-promise`: drawn channel sets, what the plan says of them, and whether it is so.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bumpless_bench::run::progress::{ProgressLine, left};
use bumpless_sim::promise::{Broken, Judged, Row, Tally, Told, Verdict, judge, judge_flooded};
use serde_json::json;

use crate::output::{self, Outcome};
use crate::stop;

/// Which sets to judge.
pub struct Promise {
    /// The first seed.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// At the same time.
    pub jobs: u16,
    /// Whether a miss is looked for where the plan refuses.
    pub search: bool,
    /// Whether nodes are flooded.
    pub floods: bool,
    /// Print JSON.
    pub json: bool,
}

#[derive(Default)]
struct Done {
    sets: u64,
    tally: Tally,
    /// The one with the lowest seed.
    broken: Option<Broken>,
    /// The user ended it.
    interrupted: bool,
}

impl Done {
    /// Adds a set; returns whether it broke a promise.
    fn add(&mut self, judged: Judged) -> bool {
        self.sets += 1;
        self.tally.add(&judged);
        let Verdict::Admitted {
            broken: Some(broken),
            ..
        } = judged.verdict
        else {
            return false;
        };
        let earlier = self.broken.as_ref().map_or(u64::MAX, |b| b.seed);
        if broken.seed < earlier {
            self.broken = Some(broken);
        }
        true
    }
}

/// How many sets are judged, and how long the others will take.
fn progress(done: u64, all: u64, spent: Duration) -> String {
    let left = left(spent.as_secs_f64() * (all as f64 / done as f64 - 1.0));
    format!("{done} of {all} sets, {left}")
}

impl Promise {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        let stop = stop::stop_flag()?;
        let (next, failed) = (AtomicU64::new(0), AtomicBool::new(false));
        let done = Mutex::new(Done::default());
        let began = Instant::now();
        let work = || {
            while !stop.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed) {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= self.count {
                    return;
                }
                let seed = self.first.wrapping_add(at);
                let judged = match self.floods {
                    true => judge_flooded(seed, Told::Truth),
                    false => judge(seed, Told::Truth, self.search),
                };
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                failed.fetch_or(done.add(judged), Ordering::Relaxed);
            }
        };
        std::thread::scope(|scope| {
            let jobs: Vec<_> = (0..self.jobs).map(|_| scope.spawn(work)).collect();
            let mut line = ProgressLine::sparing();
            while jobs.iter().any(|job| !job.is_finished()) {
                std::thread::sleep(Duration::from_millis(20));
                line.show(|spent| {
                    let sets = done.lock().unwrap_or_else(PoisonError::into_inner).sets;
                    progress(sets, self.count, spent)
                });
            }
            line.end();
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.interrupted = stop.load(Ordering::Relaxed) && done.sets < self.count;
        self.tell(&done, began.elapsed().as_secs_f64());
        Ok(match done.broken {
            Some(_) => ExitCode::from(1),
            None if done.interrupted => ExitCode::from(output::INTERRUPTED),
            None => ExitCode::SUCCESS,
        })
    }

    fn replay(&self, seed: u64) -> String {
        let floods = if self.floods { " --floods" } else { "" };
        format!("bumpless sim --kept-promise --seed {seed}{floods}")
    }

    fn tell(&self, done: &Done, wall: f64) {
        let all = done.tally.all();
        let broken = done.broken.as_ref();
        let replay = broken.map(|broken| self.replay(broken.seed));
        if self.json {
            output::print_line(json!({
                "schema": "bumpless.promise/1",
                "ok": broken.is_none(),
                "interrupted": done.interrupted,
                "first_seed": self.first,
                "wall_s": wall,
                "all": all,
                "tally": done.tally,
                "broken": broken.map(|broken| &broken.what),
                "replay": replay,
            }));
            return;
        }
        output::print_line(" fullness   sets   yes  broken  over    no  searched  miss found");
        let line = |name: String, row: &Row| {
            output::print_line(format_args!(
                "{name:>9} {:>6} {:>5} {:>7} {:>5} {:>5} {:>9} {:>11}",
                row.sets, row.admitted, row.broken, row.over, row.refused, row.searched, row.found
            ));
        };
        for row in &done.tally.rows {
            line(format!("{:.1}-", row.from as f64 / 1_000.0), row);
        }
        line("all".into(), &all);
        if let Some(broken) = broken {
            output::print_line(format_args!("seed {}: {}", broken.seed, broken.what));
            output::print_line(format_args!("replay: {}", replay.unwrap_or_default()));
        }
        let verdict = match (broken, done.interrupted) {
            (Some(_), _) => "a promise is broken",
            (None, true) => "no promise was broken until it was interrupted",
            (None, false) => "no promise is broken",
        };
        let flooded = match self.floods {
            true => format!(", {} of these flooded", done.tally.flooded),
            false => String::new(),
        };
        output::print_line(format_args!(
            "{} sets, {} states of admitted ones{flooded}, {wall:.1} s: {verdict}",
            all.sets, done.tally.states
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_that_of_the_sets_that_are_left() {
        let spent = Duration::from_secs(10);
        assert_eq!(progress(20, 100, spent), "20 of 100 sets, 40 s left");
        assert_eq!(progress(0, 100, spent), "0 of 100 sets, time left unknown");
    }
}
