//! Nothing passes for a while, or hardly anything, or the primary does not run.

use std::thread;

use bumpless_base::Instant;
use bumpless_net_linux::{Clock, realtime};
use rustix::process::{Pid, Signal, kill_process};

use super::Done;
use crate::demo::configuration::{PERIOD_MS, PRIORITY};
use crate::torture::TortureError;
use crate::torture::judge::{Fault, Limits, TWO_PERIODS_NS};
use crate::torture::now_ns;
use crate::torture::result::{Outcome, Want};
use crate::torture::stage::{Finding, MS, Stage};
use crate::torture::switch::faults::{Cut, Episode, Faults, Flapping};

/// How long both networks flap, or lose nearly everything.
pub const fn long_ns(quick: bool) -> u64 {
    if quick { 2_000 * MS } else { 10_000 * MS }
}
const FLAPPING: Flapping = Flapping {
    there_ns: 15 * MS,
    gone_ns: 15 * MS,
};
/// A cycle counts if a path was up for so long in it.
const UP_NS: u64 = 5 * MS;
/// Shortest and longest time for which the primary stands still.
const STALL_NS: (u64, u64) = (9 * MS, 29 * MS);

fn of(episode: &Episode) -> Fault {
    Fault {
        from_ns: episode.from_ns,
        to_ns: episode.to_ns,
    }
}

/// Nothing.
pub fn quiet(stage: &mut Stage<'_>) -> Done {
    let scene = stage.open()?;
    let fault = Fault {
        from_ns: now_ns(),
        to_ns: now_ns() + 1_000 * MS,
    };
    stage.waiter.until(fault.to_ns)?;
    let finding = stage.close(scene, fault, &Limits::gap(TWO_PERIODS_NS))?;
    Ok((finding, fault))
}

/// Every path is silent for `length_ns`.
pub fn silence(stage: &mut Stage<'_>, length_ns: u64) -> Done {
    let scene = stage.open()?;
    let faults = Faults {
        cut: Cut::all(),
        ..Faults::default()
    };
    let fault = of(&stage.fault([true; 2], length_ns, None, faults));
    let finding = stage.close(scene, fault, &Limits::gap(length_ns + TWO_PERIODS_NS))?;
    Ok((finding, fault))
}

/// The primary stands still, each time for another while.
pub fn stall(stage: &mut Stage<'_>, number: u32, count: u32) -> Done {
    let scene = stage.open()?;
    let (shortest, longest) = STALL_NS;
    let step = (longest - shortest) / u64::from(count.max(2) - 1);
    let length_ns = longest - step * u64::from(number.saturating_sub(1));
    let pid = stage.pair.node_pid(scene.primary);
    let pid = pid.and_then(|pid| Pid::from_raw(pid as i32));
    let fault = match pid {
        Some(pid) => stand_still(pid, length_ns)?,
        None => return Err(TortureError::NotRedundant(stage.pair.last_words())),
    };
    // What it really was is what is judged: the thread that ends it may have been late.
    let limits = Limits::gap(fault.length_ns() + TWO_PERIODS_NS);
    let mut finding = stage.close(scene, fault, &limits)?;
    finding.trial.what = format!("{:.1} ms", fault.length_ns() as f64 / 1e6);
    Ok((finding, fault))
}

/// Stops the process `pid`, a child that has not been waited for, for `length_ns`.
fn stand_still(pid: Pid, length_ns: u64) -> Result<Fault, TortureError> {
    let still = move || {
        // A thread of its own, as prompt as what it stops: the priority must not pass to children.
        let _ = realtime::set_fifo(PRIORITY);
        let _ = realtime::tighten_timers();
        let signal = |signal| {
            let _ = kill_process(pid, signal);
            now_ns()
        };
        let from_ns = signal(Signal::STOP);
        Clock.sleep_until(Instant::from_nanos(from_ns + length_ns));
        let to_ns = signal(Signal::CONT);
        Fault { from_ns, to_ns }
    };
    let panicked = |_| TortureError::Impossible("a thread ended by a panic".into());
    thread::spawn(still).join().map_err(panicked)
}

/// Both networks come and go together.
pub fn flapping(stage: &mut Stage<'_>) -> Done {
    let faults = Faults {
        cut: Cut::all(),
        ..Faults::default()
    };
    long(stage, Some(FLAPPING), faults)
}

/// Hardly anything passes.
pub fn loss(stage: &mut Stage<'_>) -> Done {
    let faults = Faults {
        loss: 0.8,
        ..Faults::default()
    };
    long(stage, None, faults)
}

fn long(stage: &mut Stage<'_>, flapping: Option<Flapping>, faults: Faults) -> Done {
    let scene = stage.open()?;
    let episode = stage.fault([true; 2], long_ns(stage.quick), flapping, faults);
    let fault = of(&episode);
    let limits = Limits {
        gap_ns: None,
        ..Limits::gap(0)
    };
    let mut finding = stage.close(scene, fault, &limits)?;
    let up =
        |from_ns, to_ns| flapping.is_none() || episode.longest_without(from_ns, to_ns) >= UP_NS;
    let want = availability(&finding, &fault, up);
    finding.trial.wants.push(want);
    Ok((finding, fault))
}

/// Outputs in at least half of the cycles in which a path was `up` long enough.
fn availability(finding: &Finding, fault: &Fault, up: impl Fn(u64, u64) -> bool) -> Want {
    let run = &finding.evidence.run;
    let times: Vec<u64> = run
        .writes
        .iter()
        .filter(|w| w.accepted)
        .map(|w| w.time_ns)
        .collect();
    // All cycles; those without a stall of the machine in them.
    let (mut with, mut of) = ([0u64; 2], [0u64; 2]);
    for from in (fault.from_ns..fault.to_ns).step_by((PERIOD_MS * MS) as usize) {
        let to = from + PERIOD_MS * MS;
        if !up(from, to) {
            continue;
        }
        let written = times.partition_point(|&at| at < from) < times.partition_point(|&at| at < to);
        let quiet = run.stalled_ns(from, to) == 0;
        for (at, counts) in [true, quiet].into_iter().enumerate() {
            of[at] += u64::from(counts);
            with[at] += u64::from(counts && written);
        }
    }
    let enough = |at: usize| of[at] > 0 && with[at] * 2 >= of[at];
    let mut want = Want::strict(
        "outputs",
        "outputs in half of the cycles in which a path was up for 5 ms",
        enough(0) || enough(1),
        format!("in {} of {}", with[0], of[0]),
    );
    if !enough(0) && enough(1) {
        want.outcome = Outcome::Explained;
        want.seen += &format!(
            "; in {} of {} without a stall of the machine",
            with[1], of[1]
        );
    }
    want
}
