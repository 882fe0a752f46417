//! `bumpless sim --kept-promise`: drawn channel sets, what the plan says of them, and whether it is so.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use bumpless_sim::promise::{Broken, Row, Tally, Told, Verdict, judge};
use serde_json::json;

use crate::output::{self, Outcome};

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
    /// Print JSON.
    pub json: bool,
}

#[derive(Default)]
struct Done {
    tally: Tally,
    /// The one with the lowest seed.
    broken: Option<Broken>,
}

impl Promise {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        let stop = output::stop_flag()?;
        let (next, failed) = (AtomicU64::new(0), AtomicBool::new(false));
        let done = Mutex::new(Done::default());
        let began = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..self.jobs {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed) {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        if at >= self.count {
                            return;
                        }
                        let judged = judge(self.first.wrapping_add(at), Told::Truth, self.search);
                        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                        done.tally.add(&judged);
                        if let Verdict::Admitted {
                            broken: Some(broken),
                            ..
                        } = judged.verdict
                        {
                            failed.store(true, Ordering::Relaxed);
                            let earlier = done.broken.as_ref().map_or(u64::MAX, |b| b.seed);
                            if broken.seed < earlier {
                                done.broken = Some(broken);
                            }
                        }
                    }
                });
            }
        });
        let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.tell(&done, began.elapsed().as_secs_f64());
        Ok(ExitCode::from(u8::from(done.broken.is_some())))
    }

    fn tell(&self, done: &Done, wall: f64) {
        let all = done.tally.all();
        let broken = done.broken.as_ref();
        let replay = broken.map(|broken| replay(broken.seed));
        if self.json {
            output::print_line(json!({
                "schema": "bumpless.promise/1",
                "ok": broken.is_none(),
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
        let verdict = if broken.is_some() {
            "a promise is broken"
        } else {
            "no promise is broken"
        };
        output::print_line(format_args!(
            "{} sets, {} states of admitted ones, {wall:.1} s: {verdict}",
            all.sets, done.tally.states
        ));
    }
}

fn replay(seed: u64) -> String {
    format!("bumpless sim --kept-promise --seed {seed}")
}
