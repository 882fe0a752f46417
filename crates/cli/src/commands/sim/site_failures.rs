//! `bumpless sim --site-failures`: pairs over drawn distances, of which a site ends, and what the plan promises of it.

use std::process::ExitCode;
use std::time::Instant;

use bumpless_sim::sites::{Ending, Judged, Obeyed, judge};
use serde_json::{Value, json};

use crate::commands::each_seed::Seeds;
use crate::output::{self, Failure, Outcome};
use crate::stop;

/// Which sites to end.
pub struct SiteFailures {
    /// The first seed.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// At the same time.
    pub jobs: u16,
    /// Print JSON.
    pub json: bool,
}

/// What ended in one way.
struct Row {
    ending: Ending,
    count: usize,
    broken: usize,
    /// The largest gap as a share of what is promised.
    share: f64,
}

impl SiteFailures {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        let stop = stop::stop_flag()?;
        let began = Instant::now();
        let seeds = Seeds {
            first: self.first,
            count: self.count,
            jobs: self.jobs,
        };
        let one = |seed| judge(seed, Obeyed::Whole);
        let done = seeds.all(&stop, one, "sites have ended");
        let all: Result<Vec<Judged>, String> = done.into_iter().collect();
        let mut all = all.map_err(Failure::refused)?;
        all.sort_by_key(|judged| judged.seed);
        let interrupted = (all.len() as u64) < self.count;
        self.tell(&all, interrupted, began.elapsed().as_secs_f64());
        Ok(match all.iter().all(|judged| judged.broken.is_empty()) {
            false => ExitCode::from(1),
            true if interrupted => ExitCode::from(output::INTERRUPTED),
            true => ExitCode::SUCCESS,
        })
    }

    fn tell(&self, all: &[Judged], interrupted: bool, wall: f64) {
        let rows = Ending::ALL.map(|ending| row(all, ending));
        let broken = all.iter().find(|judged| !judged.broken.is_empty());
        let replay =
            broken.map(|judged| format!("bumpless sim --site-failures --seed {}", judged.seed));
        if self.json {
            let each: Vec<Value> = rows
                .iter()
                .map(|row| json!({"ending": row.ending, "count": row.count, "broken": row.broken, "largest_share": row.share}))
                .collect();
            output::print_line(json!({
                "schema": "bumpless.site-failures/1",
                "ok": broken.is_none(),
                "interrupted": interrupted,
                "first_seed": self.first,
                "wall_s": wall,
                "endings": each,
                "failures": all,
                "replay": replay,
            }));
            return;
        }
        output::print_line("site ends         times  BROKEN  longest gap, of what was promised");
        for row in &rows {
            let name = json!(row.ending);
            output::print_line(format_args!(
                "{:<16} {:>6} {:>7} {:>10.1} %",
                name.as_str().unwrap_or_default(),
                row.count,
                row.broken,
                row.share * 100.0
            ));
        }
        for (judged, replay) in broken.iter().zip(replay) {
            judged
                .broken
                .iter()
                .for_each(|what| output::print_line(format_args!("seed {}: {what}", judged.seed)));
            output::print_line(format_args!("replay: {replay}"));
        }
        output::print_line(format_args!(
            "{} sites have ended, {wall:.1} s: {}",
            all.len(),
            match (broken, interrupted) {
                (Some(_), _) => "a promise is broken",
                (None, true) => "no promise was broken until it was interrupted",
                (None, false) => "no promise is broken",
            }
        ));
    }
}

fn row(all: &[Judged], ending: Ending) -> Row {
    let of = all.iter().filter(|judged| judged.ending == ending);
    let gaps = of.clone().flat_map(|judged| &judged.gaps_ms);
    Row {
        ending,
        count: of.clone().count(),
        broken: of.filter(|judged| !judged.broken.is_empty()).count(),
        share: gaps
            .map(|(gap, promised)| gap / promised)
            .fold(0.0, f64::max),
    }
}
