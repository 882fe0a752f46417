//! The long run: 2 % loss all the time and a kill every 7 s, of the primary and of the backup in turn.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

use bumpless_base::Random;

use super::hosts::Hosts;
use super::judge::{self, excused_ns, initial_starts};
use super::ledger::Count;
use super::pair::Pair;
use super::result::{Outcome, Soak, Usage, Want};
use super::stage::{LOG_LAG_NS, MS, Stage, Waiter};
use super::switch::faults::Faults;
use super::usage::{growth, usage};
use super::{TortureError, TortureOptions, configuration, now_ns};
use crate::demo::meter::Meter;
use crate::evaluate::gaps_in;
use crate::evaluate::statistics::OrderStatistics;
use crate::runlog::{Run, Stall, Write};

/// Probability that a frame is lost.
const LOSS: f64 = 0.02;
/// Time between two kills.
const EVERY_MS: u64 = 7_000;
/// How long the killed node is dead.
const DEAD_MS: u64 = 1_000;
/// Longest gap of a failover (spec/demo.md, D-14).
const GAP_NS: u64 = 40 * MS;
/// How long the pair has to be redundant beyond the time when the next kill is due.
const TIMEOUT_NS: u64 = 10_000 * MS;
/// How often the line of progress is told where there is no terminal, in kills.
const TOLD_EVERY: u64 = 9;

/// What is counted while it runs.
#[derive(Default)]
struct Sums {
    killed: [u64; 2],
    waited: u64,
    anew: u64,
    count: Count,
    initial_starts: u64,
    gaps_ms: Vec<f64>,
    missed: u64,
    explained: u64,
    usage: BTreeMap<String, Vec<Usage>>,
    log_bytes: BTreeMap<String, u64>,
    stalls: Vec<Stall>,
    last: Option<Write>,
    /// Until when gaps have been judged.
    judged_ns: Option<u64>,
    /// Events that nodes could not log, and lines of logs that cannot be understood or are missing.
    lost: u64,
    strange: u64,
}

/// Runs for so many seconds. Ended early, it judges what it has.
///
/// # Errors
/// Whatever keeps it from judging anything.
pub fn run(
    options: &TortureOptions,
    hosts: &Hosts,
    directory: &Path,
    seconds: u64,
    mut waiter: Waiter,
) -> Result<(Soak, Vec<Stall>), TortureError> {
    let at = directory.join("soak");
    waiter.progress.now(format!("soak of {seconds} s"));
    let mut pair = Pair::start(
        &options.binary,
        hosts,
        at.clone(),
        (&configuration::right(&at), false),
    )?;
    pair.keep_logs = options.keep.is_some();
    let mut stage = Stage {
        pair,
        random: Random::new(options.seed),
        waiter,
        quick: false,
        started_anew: 0,
        stalls: Vec::new(),
    };
    stage.make_redundant()?;
    let (began, until_ns) = (Instant::now(), now_ns() + seconds * 1_000 * MS);
    let faults = Faults {
        loss: LOSS,
        ..Faults::default()
    };
    stage.fault([true; 2], u64::MAX / 2, None, faults);
    let mut sums = Sums::default();
    // The pair's first start is one from the initial state.
    stage.pair.take_events();
    let done = go_on(&mut stage, &mut sums, until_ns);
    stage.waiter.progress.clear();
    if !matches!(done, Err(TortureError::Interrupted)) {
        done?;
    }
    for (name, bytes) in sizes(&at) {
        sums.log_bytes
            .entry(name)
            .and_modify(|sum| *sum += bytes)
            .or_insert(bytes);
    }
    let stalls = std::mem::take(&mut sums.stalls);
    Ok((
        sums.into_soak(seconds, began.elapsed().as_secs_f64()),
        stalls,
    ))
}

fn go_on(stage: &mut Stage<'_>, sums: &mut Sums, until_ns: u64) -> Result<(), TortureError> {
    let mut due_ns = now_ns() + EVERY_MS * MS;
    loop {
        let meter = Meter::start().map_err(|error| TortureError::system("a thread", error))?;
        let from_ns = now_ns();
        stage.waiter.until(due_ns.min(until_ns))?;
        if now_ns() < until_ns {
            kill_one(stage, sums)?;
        }
        // What comes of the kill belongs to the same stretch.
        stage.waiter.ms(DEAD_MS / 2)?;
        sums.stretch(stage, from_ns, meter.end());
        if now_ns() >= until_ns {
            return Ok(());
        }
        due_ns += EVERY_MS * MS;
    }
}

/// Kills one, and starts it again after a while.
fn kill_one(stage: &mut Stage<'_>, sums: &mut Sums) -> Result<(), TortureError> {
    let primary = match stage.await_redundant(0, 0)? {
        Some(primary) => primary,
        None => {
            sums.waited += 1;
            match stage.await_redundant(now_ns(), TIMEOUT_NS)? {
                Some(primary) => primary,
                None => {
                    sums.anew += 1;
                    return stage.make_redundant().map(|_| ());
                }
            }
        }
    };
    let kills = sums.killed[0] + sums.killed[1];
    let as_backup = (kills % 2) as usize;
    let victim = if as_backup == 0 { primary } else { 1 - primary };
    let role = ["a primary", "a backup"][as_backup];
    if let Some(taken) = stage.pair.node_pid(victim).and_then(usage) {
        sums.usage.entry(role.into()).or_default().push(taken);
    }
    for (name, pid) in stage.pair.surroundings() {
        sums.usage.entry(name).or_default().extend(usage(pid));
    }
    stage.pair.kill_node(victim);
    sums.killed[as_backup] += 1;
    if kills.is_multiple_of(TOLD_EVERY) {
        let resets = sums.count.resets.max(sums.initial_starts);
        let told = format!(
            "{} kills, {} outputs, {resets} resets, {} gaps over {} ms",
            kills + 1,
            sums.count.accepted,
            sums.missed,
            GAP_NS / MS
        );
        stage.waiter.progress.now(told);
    }
    stage.waiter.ms(DEAD_MS)?;
    let log = stage.pair.node_log(victim);
    let bytes = log
        .and_then(|log| fs::metadata(log).ok())
        .map_or(0, |file| file.len());
    *sums
        .log_bytes
        .entry("of both nodes' processes".into())
        .or_default() += bytes;
    sums.events(stage);
    let config = stage.pair.config();
    stage.pair.start_node(victim, &config)
}

impl Sums {
    fn events(&mut self, stage: &mut Stage<'_>) {
        let events = stage.pair.take_events();
        self.initial_starts += initial_starts(&events);
        self.lost += judge::events_lost(&events);
    }

    /// Takes in what happened since `from_ns`.
    fn stretch(&mut self, stage: &mut Stage<'_>, from_ns: u64, stalls: Vec<Stall>) {
        self.events(stage);
        // What is written later than this may not be in the log yet.
        let logged_ns = now_ns() - LOG_LAG_NS;
        let mut writes: Vec<Write> = self.last.take().into_iter().collect();
        writes.extend(stage.pair.take_writes(&mut self.count));
        self.last = writes.iter().rev().find(|write| write.accepted).cloned();
        self.strange += stage.pair.take_strange();
        let last_ns = writes.last().map_or(0, |write| write.time_ns);
        let until_ns = logged_ns.max(last_ns);
        let from_ns = self.judged_ns.replace(until_ns).unwrap_or(from_ns);
        let run = Run {
            writes,
            stalls,
            ..Run::default()
        };
        let mut longest = 0;
        for gap in gaps_in(&run, from_ns, until_ns) {
            longest = longest.max(gap.length_ns());
            if gap.length_ns() > GAP_NS {
                let stalled = run.stalled_ns(gap.from_ns, gap.to_ns);
                self.missed += 1;
                self.explained += u64::from(gap.length_ns() <= GAP_NS + excused_ns(stalled));
            }
        }
        self.gaps_ms.push(longest as f64 / 1e6);
        self.stalls.extend(run.stalls);
    }

    fn into_soak(self, planned_s: u64, seconds: f64) -> Soak {
        let gaps = OrderStatistics::new(self.gaps_ms.iter().copied());
        let quantile = |rank| gaps.quantile(rank).unwrap_or_default();
        let samples = self.usage.iter();
        let growth: Vec<_> = samples
            .map(|(name, all)| growth(name.clone(), all))
            .collect();
        let per_hour = |bytes: u64| (bytes as f64 * 3_600.0 / seconds.max(1.0)) as u64;
        let log_bytes_per_hour = self
            .log_bytes
            .iter()
            .map(|(name, bytes)| (name.clone(), per_hour(*bytes)))
            .collect();
        let mut wants = vec![
            self.no_reset(),
            judge::one_writer(&self.count),
            self.gaps(),
            judge::record(self.lost, self.strange),
            Want::strict(
                "heals",
                "redundant again by itself after each kill",
                self.anew == 0,
                format!(
                    "not so {} times; later than the next kill {}",
                    self.anew, self.waited
                ),
            ),
        ];
        let grew: Vec<_> = growth
            .iter()
            .filter(|one| one.grew)
            .map(|one| &one.process)
            .collect();
        wants.push(Want::strict(
            "nothing-grows",
            "memory, descriptors and threads do not grow",
            grew.is_empty(),
            match grew.is_empty() {
                true => "nothing grew".to_owned(),
                false => format!("{grew:?} grew"),
            },
        ));
        Soak {
            planned_s,
            seconds,
            primaries_killed: self.killed[0],
            backups_killed: self.killed[1],
            waited: self.waited,
            writes: self.count,
            initial_starts: self.initial_starts,
            gaps_ms: [quantile(0.5), quantile(0.99), quantile(1.0)],
            gaps_missed: [self.missed, self.explained],
            growth,
            log_bytes_per_hour,
            wants,
        }
    }

    fn no_reset(&self) -> Want {
        let (backward, initial) = (self.count.resets, self.initial_starts);
        Want::strict(
            "no-reset",
            "the process goes on from its newest state",
            backward == 0 && initial == 0,
            format!(
                "{backward} accepted outputs went back, {initial} starts from the initial state"
            ),
        )
    }

    fn gaps(&self) -> Want {
        let mut want = Want::strict(
            "gap",
            format!("outputs go on within {} ms", GAP_NS / MS),
            self.missed == self.explained,
            format!(
                "{} gaps beyond, {} of them by no more than stalls of the machine explain",
                self.missed, self.explained
            ),
        );
        if want.outcome == Outcome::Held && self.missed > 0 {
            want.outcome = Outcome::Explained;
        }
        want
    }
}

/// Files that stay while all runs, and their sizes: what grows without end.
fn sizes(directory: &Path) -> Vec<(String, u64)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let stays = name.starts_with("plant") || name.ends_with(".out");
        stays.then(|| Some((name, entry.metadata().ok()?.len())))?
    };
    entries.filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_that_no_stall_explains_and_a_reset_break_the_soak() {
        let outcome = |sums: &Sums| (sums.no_reset().outcome, sums.gaps().outcome);
        let mut sums = Sums::default();
        assert_eq!(outcome(&sums), (Outcome::Held, Outcome::Held));
        (sums.missed, sums.explained) = (2, 2);
        assert_eq!(outcome(&sums).1, Outcome::Explained);
        (sums.explained, sums.initial_starts) = (1, 1);
        assert_eq!(outcome(&sums), (Outcome::Broken, Outcome::Broken));
    }
}
