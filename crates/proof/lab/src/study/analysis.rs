//! What a study comes to: round trips before and during outages, failovers, and whether ours keeps its promises.

use bumpless_bench::statistics::Summary;
use bumpless_wan::emulation::Line;

use super::result::{Run, Study};
use super::transport::{ALL, Transport, line_name, line_title};

mod promises;

pub use promises::promises;

/// Between two messages, microseconds.
const PERIOD_US: u64 = 50_000;
/// What teleprotection asks for (fifth paper, II-A), and what ours promises with a near backup, microseconds.
pub const LIMIT_US: u32 = 10_000;
/// A median round trip before the outage that is quicker than the links of the way by more than this, or that takes more than
/// twice as long and [`SLOWER_US`] besides, was not over the network.
const QUICKER_PERCENT: u64 = 5;
const SLOWER_US: u64 = 10_000;
/// A link that carries more than this carries messages: a quarter of what both directions of them come to without headers. *What
/// daemons tell each other is a tenth of it.*
const MESSAGES_BYTES_PER_S: u64 = 10_000;

/// An amount of round trips, microseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trips {
    sorted: Vec<u32>,
}

impl Trips {
    /// Of these.
    pub fn of(trips: impl IntoIterator<Item = u32>) -> Self {
        let mut sorted: Vec<u32> = trips.into_iter().collect();
        sorted.sort_unstable();
        Self { sorted }
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    /// Mean, minimum, maximum; nothing if there are none.
    pub fn summary(&self) -> Option<Summary> {
        Summary::of(self.sorted.iter().map(|&us| u64::from(us)))
    }

    /// So much of a hundred are not above it (nearest rank).
    pub fn percentile(&self, percent: usize) -> Option<u32> {
        let rank = (self.sorted.len() * percent).div_ceil(100).max(1) - 1;
        self.sorted.get(rank).copied()
    }

    /// How many are above it.
    pub fn above(&self, us: u32) -> usize {
        self.sorted.len() - self.sorted.partition_point(|&it| it <= us)
    }
}

/// A message that has waited for so long for its answer when the way dies was lost before; microseconds. *The longest round trip of
/// a backup is a tenth of it.*
const UNDER_WAY_US: u64 = 2_000_000;

/// What a message was to the outage of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Its answer came before, or should have, or there was no outage.
    Before,
    /// It was under way when the outage began, or is the first one after that.
    Failover,
    /// It left later, while the way was dead.
    During,
    /// It left when the way carried again.
    After,
}

/// The phase of each message of a run.
pub fn phases(run: &Run) -> Vec<Phase> {
    let (Some(cut), Some(healed)) = (run.cut_ns, run.healed_ns) else {
        return vec![Phase::Before; run.rtt_us.len()];
    };
    let mut is_first = true;
    let phase = |number: usize| {
        let sent = sent_us(run, number);
        let answered = run.rtt_us[number].map(|us| sent + u64::from(us));
        if sent < cut / 1000 {
            match answered {
                Some(at) if at <= cut / 1000 => Phase::Before,
                None if sent + UNDER_WAY_US < cut / 1000 => Phase::Before,
                _ => Phase::Failover,
            }
        } else if std::mem::take(&mut is_first) {
            Phase::Failover
        } else if sent < healed / 1000 {
            Phase::During
        } else {
            Phase::After
        }
    };
    (0..run.rtt_us.len()).map(phase).collect()
}

/// When a message was sent, microseconds since the first one was due.
pub fn sent_us(run: &Run, number: usize) -> u64 {
    let late = run.late_us.get(number).copied().unwrap_or(0);
    number as u64 * PERIOD_US + u64::from(late)
}

/// What all runs of one case come to.
#[derive(Clone, Debug)]
pub struct Cell<'a> {
    /// The transport.
    pub transport: &'static Transport,
    /// What the backup was like.
    pub line: Line,
    /// Messages of others in a second beside it.
    pub load: u32,
    /// Runs that gave figures.
    pub runs: Vec<&'a Run>,
    /// Runs that gave none.
    pub failed: usize,
    /// Those of them whose failovers count.
    pub on_time: Vec<&'a Run>,
    /// Runs in which the program was on the backup although the way was whole: their failovers do not count.
    pub premature: usize,
    /// Round trips before the outage.
    pub before: Trips,
    /// The time of each failover: the longest round trip of the messages that were under way when the outage began and of the
    /// first one after that.
    pub failovers: Trips,
    /// Failovers of which a message was never answered: they have no time, and are longer than any that has one.
    pub endless: usize,
    /// Round trips of later messages while the way was dead.
    pub during: Trips,
    /// All from the failover on while the way was dead.
    pub through: Trips,
    /// Messages from the failover on, while the way was dead, that were never answered.
    pub lost: usize,
    /// Round trips of messages that left when the way carried again.
    pub after: Trips,
    /// Messages of all runs that were lost before, while nothing was dead.
    pub lost_before: usize,
    /// Messages of all runs that left when the way carried again, and were never answered.
    pub lost_after: usize,
}

impl<'a> Cell<'a> {
    /// The run with the median failover.
    pub fn typical(&self) -> Option<&'a Run> {
        let median = self.failovers.percentile(50)?;
        let mut runs = self.on_time.iter().copied();
        runs.find(|run| failover(run) == Some(median))
    }

    /// What was lost through outages, and, if there was any, before and after, for people.
    pub fn losses(&self) -> String {
        let others = [(self.lost_before, "before"), (self.lost_after, "after")];
        let others = others.into_iter().filter(|(count, _)| *count > 0);
        let others = others.map(|(count, when)| format!(", and {count} {when}"));
        format!("{} lost{}", self.lost, others.collect::<String>())
    }

    /// Messages that were lost while nothing was dead, before or after.
    pub const fn lost_while_whole(&self) -> usize {
        self.lost_before + self.lost_after
    }

    /// Transport, backup, and messages of others if there were any, for people.
    pub fn title(&self) -> String {
        let (transport, line) = (self.transport.title, line_title(self.line));
        format!("{transport}, {line} backup{}", beside(self.load))
    }
}

/// What is said of messages of others, if there were any.
pub fn beside(load: u32) -> String {
    match load {
        0 => String::new(),
        load => format!(", beside {load} messages a second"),
    }
}

/// How many messages of others there were in a second, each amount once: none first.
pub fn loads(study: &Study) -> Vec<u32> {
    let mut loads: Vec<u32> = study.runs.iter().map(|run| run.background).collect();
    loads.sort_unstable();
    loads.dedup();
    loads
}

/// Every case with an outage that was measured, in order; those of a transport with different loads side by side.
pub fn cells(study: &Study) -> Vec<Cell<'_>> {
    let loads = loads(study);
    let mut cells = Vec::new();
    for line in [Line::Ethernet, Line::Lte] {
        for transport in &ALL {
            let of = loads.iter().map(|&load| (transport, line, load));
            cells.extend(of.filter_map(|case| cell(study, case)));
        }
    }
    cells
}

fn cell<'a>(
    study: &'a Study,
    (transport, line, load): (&'static Transport, Line, u32),
) -> Option<Cell<'a>> {
    let ours = |run: &&Run| {
        run.transport == transport.name
            && run.backup == line_name(line)
            && run.over == "network"
            && run.background == load
    };
    let (runs, failed): (Vec<_>, Vec<_>) = study
        .runs
        .iter()
        .filter(ours)
        .partition(|run| run.error.is_none() && run.cut_ns.is_some());
    if runs.is_empty() && failed.is_empty() {
        return None;
    }
    let is_on_time = |run: &&Run| !left_early(run) && (transport.spreads() || took_network(run));
    let (on_time, premature): (Vec<_>, Vec<_>) = runs.iter().copied().partition(is_on_time);
    let trips = |runs: &[&Run], wanted: &[Phase]| {
        let trips = runs.iter().flat_map(|run| chosen(run, wanted));
        Trips::of(trips.flatten())
    };
    let through = [Phase::Failover, Phase::During];
    let has_no_end = |run: &&&Run| chosen(run, &[Phase::Failover]).any(|us| us.is_none());
    let lost = |runs: &[&Run], wanted: &[Phase]| {
        let trips = runs.iter().flat_map(|run| chosen(run, wanted));
        trips.filter(Option::is_none).count()
    };
    Some(Cell {
        transport,
        line,
        load,
        failed: failed.len(),
        premature: premature.len(),
        before: trips(&on_time, &[Phase::Before]),
        failovers: Trips::of(on_time.iter().filter_map(|run| failover(run))),
        endless: on_time.iter().filter(has_no_end).count(),
        during: trips(&on_time, &[Phase::During]),
        through: trips(&on_time, &through),
        after: trips(&on_time, &[Phase::After]),
        lost: lost(&on_time, &through),
        lost_before: lost(&runs, &[Phase::Before]),
        lost_after: lost(&runs, &[Phase::After]),
        on_time,
        runs,
    })
}

/// The time of a run's failover (U-53), microseconds; `None`: one of its messages was never answered.
pub fn failover(run: &Run) -> Option<u32> {
    let trips: Option<Vec<u32>> = chosen(run, &[Phase::Failover]).collect();
    trips?.into_iter().max()
}

/// Whether the program says that it left the way before that died.
fn left_early(run: &Run) -> bool {
    matches!((run.switched_ns, run.cut_ns), (Some(at), Some(cut)) if at < cut)
}

/// Whether messages went over the network before it died, by what the backup carried and by their median: no program that is on
/// the backup says so on its own. A run without a way's length, or without a message before, is believed.
fn took_network(run: &Run) -> bool {
    if run
        .bytes
        .is_some_and(|[before, _]| carried(before.backup, before.us))
    {
        return false;
    }
    let path = run.path_us;
    let before = Trips::of(chosen(run, &[Phase::Before]).flatten());
    let median = before.percentile(50).filter(|_| path > 0);
    let least = path * (100 - QUICKER_PERCENT) / 100;
    median.is_none_or(|us| (least..=2 * path + SLOWER_US).contains(&us.into()))
}

/// Whether so many bytes in so many microseconds are messages.
const fn carried(bytes: u64, us: u64) -> bool {
    bytes * 1_000_000 > MESSAGES_BYTES_PER_S * us
}

fn chosen<'a>(run: &'a Run, wanted: &'a [Phase]) -> impl Iterator<Item = Option<u32>> + 'a {
    let phases = phases(run).into_iter().zip(&run.rtt_us);
    phases
        .filter(|(phase, _)| wanted.contains(phase))
        .map(|(_, &us)| us)
}

/// Round trips of TCP without outages beside so many messages of others: over the network (`None`), or over a backup (table II).
pub fn baseline(study: &Study, line: Option<Line>, load: u32) -> Trips {
    let (backup, over) = line.map_or(("none", "network"), |line| (line_name(line), "backup"));
    let ours = |run: &&Run| run.backup == backup && run.over == over && run.background == load;
    let runs = study.runs.iter().filter(ours);
    Trips::of(runs.flat_map(|run| run.rtt_us.iter().flatten().copied()))
}

#[cfg(test)]
mod tests;
