//! The bars that our transfer is to reach, and where it stands in this run.

use bumpless_base::frame;

use super::bar::{Bar, below};
use super::busy;
use super::loads;
use super::maxima;
use super::protection;
use super::ramp::Ramp;
use super::table::{Kind, Table};
use super::transfers::{Block, blocks, cell, ratio};
use super::units;
use crate::paper;
use crate::result::Run;
use crate::run::cost::Cost;
use crate::run::cyclic::Applications;
use crate::run::loss::LossCase;

const OURS: Block<'static> = ("transfer", "single", "1gbit");
/// Bytes of a packet of ours beside its piece of the state: our header, UDP and IP.
const HEADERS: usize = 30 + (frame::IPV4 + frame::UDP) as usize;
/// The same on the wire.
const PACKET_OVERHEAD: usize = HEADERS + frame::ETHERNET as usize;
/// Bytes of the piece.
const PIECE: usize = 1500 - HEADERS;
const MB: usize = 1 << 20;

/// Every bar that this run can judge.
pub fn table(run: &Run) -> Option<Table> {
    let mut bars = Vec::new();
    medians(run, &mut bars);
    losses(run, &mut bars);
    longest(run, &mut bars);
    spread(run, &mut bars);
    deadlines(run, &mut bars);
    costs(run, &mut bars);
    channels(run, &mut bars);
    protection::bars(run, &mut bars);
    busy::bars(run, &mut bars);
    let mut table = Table::new(
        "What is to hold, and what was seen",
        &["bar", "at most", "seen", ""],
    );
    table.words = true;
    for bar in bars {
        let (kind, verdict) = if bar.held {
            (Kind::Good, "held")
        } else {
            (Kind::Bad, "missed")
        };
        table.kind(kind, [bar.what, bar.bar, bar.measured, verdict.into()]);
    }
    (!table.is_empty()).then_some(table)
}

/// Nanoseconds that a state needs on a wire of 1 Gbit/s.
fn floor_ns(size: usize) -> f64 {
    (size + size.div_ceil(PIECE) * PACKET_OVERHEAD) as f64 * 8.0
}

fn medians(run: &Run, bars: &mut Vec<Bar>) {
    let alone = ("tcp", "many", "1gbit");
    // A connection that earlier sizes have not used, where there was one.
    let tcp = if blocks(run).contains(&alone) {
        alone
    } else {
        ("tcp", "single", "1gbit")
    };
    below(
        bars,
        "1 MB at 1 Gbit/s, median: of TCP's",
        1.02,
        ratio(run, OURS, tcp, MB),
    );
    let median = cell(run, OURS, MB, LossCase::None).and_then(|cell| cell.all);
    let floor = median.map(|all| all.p50 as f64 / floor_ns(MB));
    below(
        bars,
        "1 MB at 1 Gbit/s, median: of the wire's floor",
        1.04,
        floor,
    );
    for size in paper::SIZES.into_iter().filter(|&size| size <= 2048) {
        let what = format!("{} at 1 Gbit/s, median: of TCP's", units::size(size));
        below(bars, what, 1.2, ratio(run, OURS, tcp, size));
    }
    for size in [MB, 10 * MB] {
        let (ours, tcp) = (
            ("transfer", "single", "unshaped"),
            ("tcp", "single", "unshaped"),
        );
        let what = format!("{} unshaped, median: of TCP's", units::size(size));
        below(bars, what, 0.8, ratio(run, ours, tcp, size));
    }
}

/// With loss: 99 of 100 within a millisecond of the median without.
fn losses(run: &Run, bars: &mut Vec<Bar>) {
    for loss in LossCase::ALL
        .into_iter()
        .filter(|loss| *loss != LossCase::None)
    {
        let excess = |&size: &usize| {
            let quiet = cell(run, OURS, size, LossCase::None)?.all?;
            let lossy = cell(run, OURS, size, loss)?;
            // Of transfers that no stall of the machine touches, where the meter saw one.
            let p99 = lossy.undisturbed.or(lossy.all)?.p99;
            Some((size, (p99 as f64 - quiet.p50 as f64) / 1e6))
        };
        let excesses: Vec<(usize, f64)> = paper::SIZES.iter().filter_map(excess).collect();
        let failed = paper::SIZES
            .iter()
            .filter_map(|&size| cell(run, OURS, size, loss))
            .map(|cell| cell.failed)
            .sum::<usize>();
        let Some((size, worst)) = excesses.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))
        else {
            continue;
        };
        let over = excesses.iter().filter(|(_, excess)| *excess > 1.0).count();
        bars.push(Bar {
            what: format!(
                "lost: {}: p99 beyond the median without loss (ms)",
                loss.name()
            ),
            bar: "1.00".into(),
            measured: format!(
                "{worst:.3} at {}; {over} of {} sizes above; {failed} failed",
                units::size(size),
                excesses.len()
            ),
            held: worst <= 1.0 && failed == 0,
        });
    }
}

/// What the paper plots: the longest of all, stalls of the machine or not.
fn longest(run: &Run, bars: &mut Vec<Bar>) {
    for maxima in maxima::of(run) {
        bars.push(Bar {
            what: format!(
                "{}: sizes and losses with a longest transfer above the paper's",
                maxima.peer
            ),
            bar: "0 unexplained".into(),
            measured: maxima.told(),
            held: maxima.unexplained() == 0,
        });
    }
}

fn spread(run: &Run, bars: &mut Vec<Bar>) {
    let ours = ("transfer-spread", "single", "1gbit");
    below(
        bars,
        "1 MB spread over two networks, median: of one network's",
        0.55,
        ratio(run, ours, OURS, MB),
    );
    for theirs in blocks(run)
        .into_iter()
        .filter(|(peer, _, network)| *peer == "mptcp" && *network == "1gbit")
    {
        let what = format!(
            "1 MB spread over two networks, median: of MPTCP's ({})",
            theirs.1
        );
        below(bars, what, 1.0, ratio(run, ours, theirs, MB));
    }
}

fn told(result: &Applications) -> String {
    let stood_still = match result.missed_standing_still {
        0 => String::new(),
        missed => format!("; {missed} more while the machine stood still"),
    };
    let (missed, sent) = (result.own_misses(), result.sent);
    format!("{missed} of {sent}{stood_still}")
}

fn deadlines(run: &Run, bars: &mut Vec<Bar>) {
    let ours = |result: &&Applications| result.peer.starts_with("transfer");
    for result in run.of_case("applications").filter(ours) {
        bars.push(Bar {
            what: format!("{}: table 20, lost: {}: misses", result.peer, result.loss),
            bar: "0".into(),
            measured: told(result),
            held: result.own_misses() == 0 && result.error.is_none(),
        });
    }
    let ramp = Ramp::of(run, "transfer", "single");
    if !ramp.is_empty() {
        bars.push(Bar {
            what: "growing load: highest utilisation without a miss in any try (%)".into(),
            bar: "at least 93".into(),
            measured: ramp.told(),
            held: ramp.without_miss() >= 92.9,
        });
    }
    for cuts in run
        .cuts
        .iter()
        .filter(|cuts| cuts.peer == "transfer-replicate")
    {
        if let (Some(quiet), Some(cut)) = (cuts.quiet, cuts.cut) {
            bars.push(Bar {
                what: "one network of two cut, replicated: median with the cut against the longest without (ms)".into(),
                bar: units::millis(quiet.max),
                measured: units::millis(cut.p50),
                held: cut.p50 <= quiet.max && cuts.failed == 0,
            });
        }
    }
}

fn costs(run: &Run, bars: &mut Vec<Bar>) {
    let of = |peer: &str, size: usize| {
        run.costs
            .iter()
            .find(|cost| cost.peer == peer && cost.size == size && cost.error.is_none())
    };
    let cpu = |cost: &Cost| cost.cpu_s_per_gb.iter().sum::<f64>();
    let against = |peer| Some(cpu(of("transfer", MB)?) / cpu(of(peer, MB)?).max(1e-9));
    below(
        bars,
        "processor time at 1 Gbit/s: of TCP's",
        2.0,
        against("tcp"),
    );
    below(
        bars,
        "processor time at 1 Gbit/s: of quinn's",
        1.0 / 3.0,
        against("quinn"),
    );
    if let (Some(small), Some(large)) = (of("transfer", MB), of("transfer", 16 * MB)) {
        let grown = |side: usize| {
            large.peak_bytes[side].saturating_sub(small.peak_bytes[side]) as f64 / (15 * MB) as f64
        };
        // The sender's process also makes the states, in a buffer of its own.
        below(
            bars,
            "memory for each byte of state, sender",
            2.1,
            Some(grown(0) - 1.0),
        );
        below(
            bars,
            "memory for each byte of state, receiver",
            2.1,
            Some(grown(1)),
        );
    }
}

/// What a packet costs with many channels and with one.
fn channels(run: &Run, bars: &mut Vec<Bar>) {
    let per_state = |count: usize| {
        let mut results = run
            .of_case("channels")
            .filter(|result| result.peer == "transfer");
        let result = results.find(|result| result.channels.len() == count)?;
        let cost = loads::per_state_us(result).iter().sum::<f64>();
        result.error.is_none().then_some(cost)
    };
    let growth = per_state(1000).zip(per_state(1));
    let growth = growth.map(|(many, one)| many / one.max(1e-9));
    let what = "processor time for each packet: of 1,000 channels against one";
    below(bars, what, 2.0, growth);
}
