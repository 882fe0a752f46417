//! From an attempt that comes near to a miss, step by step to one that comes nearer.

use bumpless_base::Random;

use super::judge::Trial;
use super::losses::Pattern;
use super::search::{Attempt, run};
use super::world::{Lateness, Note};

/// Attempts from which it begins.
pub const FROM: usize = 6;
/// Changes that are tried from each, at most.
const CHANGES: usize = 1_200;
/// It is given up when so many changes have led no nearer.
const TIMEOUT: usize = 300;

/// Whether changes of `from` lead to a miss.
pub fn climbs(trial: &Trial<'_>, mut from: Attempt, random: &mut Random) -> bool {
    // So that everything may also come earlier.
    let room = trial.scenario.channels.iter().map(|c| c.period.as_nanos());
    let room = room.max().unwrap_or(0);
    from.manner.start.later(room);
    from.victim = from
        .victim
        .map(|(victim, deadline)| (victim, deadline + room));
    let mut best = run(trial, &from);
    let mut since = 0;
    for _ in 0..CHANGES {
        if best.nearness > 1.0 || since == TIMEOUT {
            break;
        }
        since += 1;
        let mut changed = from.clone();
        for _ in 0..=random.below(2) {
            change(trial, &mut changed, &best.notes, random);
        }
        let ran = run(trial, &changed);
        if ran.nearness >= best.nearness {
            if ran.nearness > best.nearness {
                since = 0;
            }
            (from, best) = (changed, ran);
        }
    }
    best.nearness > 1.0
}

fn change(trial: &Trial<'_>, attempt: &mut Attempt, notes: &[Note], random: &mut Random) {
    let channels = &trial.scenario.channels;
    let at = random.below(channels.len() as u64) as usize;
    let (period, deadline) = (
        channels[at].period.as_nanos(),
        channels[at].deadline.as_nanos(),
    );
    let late = trial.scenario.machine.jitter_ns;
    let first = attempt.manner.start.first[at];
    let shift = (period >> random.below(16)).max(1);
    let shift = 1 + random.below(shift);
    let due = attempt.victim.map(|(_, due)| due);
    match random.below(9) {
        0 | 1 => set(attempt, at, first + shift),
        2 | 3 => set(attempt, at, first.saturating_sub(shift)),
        // Due just before or just after the one that comes last.
        4 => set(
            attempt,
            at,
            due.map_or(first, |due| due.saturating_sub(deadline + shift / 8)) % period,
        ),
        5 => set(
            attempt,
            at,
            due.map_or(first, |due| due.saturating_sub(deadline) + 1) % period,
        ),
        // Just before that is sent again.
        6 if !notes.is_empty() => {
            let note = notes[random.below(notes.len() as u64) as usize];
            let early = [1, late + 1, 2 * late + 1][random.below(3) as usize];
            set(attempt, at, note.at.saturating_sub(early) % period);
        }
        7 => attempt.patterns[at] = Pattern::ALL[random.below(Pattern::ALL.len() as u64) as usize],
        _ => manner(attempt, random),
    }
}

fn set(attempt: &mut Attempt, channel: usize, first: u64) {
    attempt.manner.start.first[channel] = first;
}

fn manner(attempt: &mut Attempt, random: &mut Random) {
    let manner = &mut attempt.manner;
    match random.below(4) {
        0 => manner.slow_before = !manner.slow_before,
        1 => {
            let all = [Lateness::Never, Lateness::Always, Lateness::Sometimes];
            manner.lateness = all[random.below(3) as usize];
        }
        2 => attempt.index = random.below(1_000) as usize,
        _ => manner.start.heartbeats = random.below(2_000_000),
    }
}
