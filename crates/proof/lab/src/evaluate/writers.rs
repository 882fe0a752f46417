//! Who wrote to the plant: one writer in each epoch, epochs that only grow, outputs that only grow.

use std::collections::BTreeMap;

use super::Promise;
use crate::runlog::{Run, Write};

fn accepted(run: &Run) -> impl Iterator<Item = &Write> {
    run.writes.iter().filter(|write| write.accepted)
}

fn refused(run: &Run) -> usize {
    run.writes.iter().filter(|write| !write.accepted).count()
}

/// No two nodes had writes accepted in one epoch.
pub fn one_writer_in_each_epoch(run: &Run) -> Promise {
    let mut writer_of: BTreeMap<u64, u64> = BTreeMap::new();
    let mut broken = None;
    for write in accepted(run) {
        let writer = *writer_of.entry(write.epoch).or_insert(write.writer);
        if writer != write.writer {
            broken.get_or_insert((write, writer));
        }
    }
    let seen = match broken {
        Some((write, other)) => format!(
            "{} and {} both wrote in epoch {} (cycle {})",
            run.node_name(other as usize),
            run.node_name(write.writer as usize),
            write.epoch,
            write.cycle
        ),
        None => format!("one in each of {} epochs", writer_of.len()),
    };
    let held = broken.is_none() && !writer_of.is_empty();
    Promise::whole_run(
        "one-writer",
        "never two writers accepted in one epoch",
        held,
        seen,
    )
}

/// No write was accepted with an older epoch than one before.
pub fn epochs_only_grow(run: &Run) -> Promise {
    let (broken, count) = first_step_back(run, |write| write.epoch);
    let seen = match broken {
        Some((highest, write)) => {
            format!(
                "epoch {} accepted after epoch {highest} (cycle {})",
                write.epoch, write.cycle
            )
        }
        None => format!(
            "{count} accepted writes; {} older ones refused",
            refused(run)
        ),
    };
    let promised = "no write accepted with an older epoch than one before";
    Promise::whole_run("epochs", promised, broken.is_none() && count > 0, seen)
}

/// No accepted output was of an earlier cycle than one before, whoever wrote it.
pub fn no_output_is_older_than_the_last(run: &Run) -> Promise {
    let (broken, count) = first_step_back(run, |write| write.cycle);
    let seen = match broken {
        Some((highest, write)) => format!(
            "cycle {} of {} accepted after cycle {highest}",
            write.cycle,
            run.node_name(write.writer as usize)
        ),
        None => format!("{count} accepted writes, cycles never step back"),
    };
    let promised = "no output older than the last one";
    Promise::whole_run("no-bump", promised, broken.is_none() && count > 0, seen)
}

/// The first accepted write whose figure is below one before, with that higher figure, and how many
/// accepted writes there are.
fn first_step_back(run: &Run, figure: impl Fn(&Write) -> u64) -> (Option<(u64, &Write)>, usize) {
    let (mut highest, mut broken, mut count) = (0, None, 0);
    for write in accepted(run) {
        if figure(write) < highest {
            broken.get_or_insert((highest, write));
        }
        highest = highest.max(figure(write));
        count += 1;
    }
    (broken, count)
}

#[cfg(test)]
mod tests;
