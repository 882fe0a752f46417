//! What ours promises, judged.

use bumpless_wan::emulation::Line;

use super::{Cell, LIMIT_US, Phase, Trips, baseline, cells, phases, sent_us};
use crate::study::result::{Passed, Promise, Run, Study};
use crate::study::transport::Protection;

/// How many round trips `standby` may take, besides [`LIMIT_US`].
const STANDBY_ROUND_TRIPS: u32 = 3;

/// Every promise that can be judged by the study.
pub fn promises(study: &Study) -> Vec<Promise> {
    let judged = |cell: &Cell<'_>| match (cell.transport.protection?, cell.line) {
        (Protection::Redundant, Line::Ethernet) => Some(within(study, cell)),
        (Protection::Redundant, Line::Lte) => no_worse(study, cell),
        (Protection::Standby, _) => standby(study, cell),
    };
    let cells = cells(study);
    let bytes = cells.iter().filter_map(no_more_bytes);
    cells.iter().filter_map(judged).chain(bytes).collect()
}

/// How much more `standby` may send over its backup than what was on the way before, hundredths; and from how many seconds of
/// outages on that is judged, since single messages count in less.
const MORE_PERCENT: f64 = 5.0;
const SECONDS_OF_BYTES: f64 = 30.0;

/// Standby takes no more from its backup than what fails over: bytes over that while the way is dead, and those over the way for
/// as long before. Where others send over the same links nothing can be said.
fn no_more_bytes(cell: &Cell<'_>) -> Option<Promise> {
    let is_standby = cell.transport.protection == Some(Protection::Standby) && cell.load == 0;
    let bytes = cell.on_time.iter().filter(|_| is_standby);
    let bytes: Vec<_> = bytes.filter_map(|run| run.bytes).collect();
    let seconds = bytes.iter().map(|[_, dead]| dead.us as f64 / 1e6);
    if seconds.sum::<f64>() < SECONDS_OF_BYTES {
        return None;
    }
    let expected = |[before, dead]: &[Passed; 2]| {
        before.network as f64 * dead.us as f64 / before.us.max(1) as f64
    };
    let expected: f64 = bytes.iter().map(expected).sum();
    let seen: f64 = bytes.iter().map(|[_, dead]| dead.backup as f64).sum();
    let more = 100.0 * (seen / expected.max(1.0) - 1.0);
    let broken = more > MORE_PERCENT;
    Some(Promise {
        says: format!(
            "{}: while the way is dead, at most {MORE_PERCENT:.0} % more bytes over the backup than over the way before",
            cell.title()
        ),
        seen: format!("{more:+.1} %, {seen:.0} bytes in all"),
        count: bytes.len(),
        above: usize::from(broken),
        explained: 0,
        held: !broken,
    })
}

fn within(study: &Study, cell: &Cell<'_>) -> Promise {
    let wanted = [Phase::Failover, Phase::During, Phase::After];
    let what = "every message through the outage and after it";
    judge(study, cell, &wanted, LIMIT_US, what)
}

/// Standby: three round trips of the slower way, and 10 ms.
fn standby(study: &Study, cell: &Cell<'_>) -> Option<Promise> {
    let medians =
        [None, Some(cell.line)].map(|line| baseline(study, line, cell.load).percentile(50));
    let round_trip = medians.into_iter().flatten().max()?;
    let limit = STANDBY_ROUND_TRIPS * round_trip + LIMIT_US;
    let what = "each failover (3 round trips of the slower way and 10 ms)";
    Some(judge(study, cell, &[Phase::Failover], limit, what))
}

fn judge(study: &Study, cell: &Cell<'_>, wanted: &[Phase], limit: u32, what: &str) -> Promise {
    let (above, explained) = above(study, cell, wanted, limit);
    let of = cell.runs.iter().flat_map(|run| phases(run));
    let count = of.filter(|phase| wanted.contains(phase)).count();
    let mut trips = vec![&cell.through];
    trips.extend(wanted.contains(&Phase::After).then_some(&cell.after));
    let longest = trips.into_iter().filter_map(Trips::summary);
    let longest = longest.map(|it| it.max).max().unwrap_or(0);
    let failover = cell.failovers.summary().map_or(0, |it| it.max);
    Promise {
        says: format!(
            "{}: {what} within {:.1} ms",
            cell.title(),
            f64::from(limit) / 1e3
        ),
        seen: format!(
            "longest failover {:.1} ms, longest message {:.1} ms, {}",
            failover as f64 / 1e3,
            longest as f64 / 1e3,
            cell.losses()
        ),
        count,
        above,
        explained,
        held: count > 0 && above == explained && cell.lost_while_whole() == 0,
    }
}

/// How many messages of these phases are above the limit or lost, and how many of those the machine explains.
fn above(study: &Study, cell: &Cell<'_>, wanted: &[Phase], limit: u32) -> (usize, usize) {
    let (mut above, mut explained) = (0, 0);
    for run in &cell.runs {
        let of = phases(run).into_iter().enumerate();
        for (number, _) in of.filter(|(_, phase)| wanted.contains(phase)) {
            let over = run.rtt_us[number].is_none_or(|us| us > limit);
            above += usize::from(over);
            explained += usize::from(over && is_machines(study, run, number, limit));
        }
    }
    (above, explained)
}

/// Whether the machine stood still for as long as the message is above the limit, while that was under way.
fn is_machines(study: &Study, run: &Run, number: usize, limit: u32) -> bool {
    let Some(us) = run.rtt_us[number] else {
        return false;
    };
    let from = run.began_ns + sent_us(run, number) * 1000;
    let to = from + u64::from(us) * 1000;
    let stalls = &study.jitter.stalls;
    let next = stalls.partition_point(|&(at, lasted)| at + lasted < from);
    let within = stalls[next..].iter().take_while(|(at, _)| *at <= to);
    let late: u64 = within
        .map(|&(at, lasted)| (at + lasted).min(to).saturating_sub(at.max(from)))
        .sum();
    late >= u64::from(us - limit) * 1000
}

/// With a radio backup, 99 of 100 messages are no later than over that alone. Both are samples: three standard deviations of
/// what a hundredth of each may come to are not held against ours.
fn no_worse(study: &Study, cell: &Cell<'_>) -> Option<Promise> {
    let baseline = baseline(study, Some(cell.line), cell.load);
    let alone = baseline.percentile(99)?;
    let seen = cell.through.percentile(99);
    if seen.is_none() && cell.lost == 0 {
        return None;
    }
    let (above, explained) = above(study, cell, &[Phase::Failover, Phase::During], alone);
    let (count, other) = (cell.through.count() as f64, baseline.count() as f64);
    let share = 0.01 + 3.0 * (0.01 * 0.99 * (1.0 / count + 1.0 / other)).sqrt();
    Some(Promise {
        says: format!(
            "{}: 99 of 100 messages through the outage as over the backup alone, within {:.1} ms",
            cell.title(),
            f64::from(alone) / 1e3
        ),
        seen: match seen {
            Some(seen) => format!("{:.1} ms, {}", f64::from(seen) / 1e3, cell.losses()),
            None => format!("none was answered, {}", cell.losses()),
        },
        count: cell.through.count(),
        above,
        explained,
        held: (above - explained) as f64 <= share * count
            && cell.lost + cell.lost_while_whole() == 0,
    })
}
