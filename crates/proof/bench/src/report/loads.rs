//! Tables of everything but single transfers: applications, cuts, cost, channels.

use super::ramp::{self, MACHINES};
use super::table::{Kind, Table};
use super::units::{megabytes, millis, paper as paper_millis, size};
use crate::paper;
use crate::result::Run;
use crate::run::cyclic::Applications;

/// All of them.
pub fn tables(run: &Run) -> Vec<Table> {
    let summaries = [
        misses(run),
        ramp::table(run),
        cuts(run),
        costs(run),
        channels(run),
    ];
    let mut tables: Vec<Table> = summaries
        .into_iter()
        .filter(|table| !table.is_empty())
        .collect();
    tables.extend(run.of_case("applications").map(applications));
    tables
}

fn misses(run: &Run) -> Table {
    let mut table = Table::new(
        "Eleven applications (table 20) under loss: missed deadlines",
        &[
            "peer",
            "connection",
            "lost",
            "packets",
            "dropped",
            "sent",
            "missed",
            "share",
            "machine's",
            "longest stall (ms)",
            "stalls",
        ],
    );
    for result in run.of_case("applications") {
        let share = result.missed as f64 / (result.sent + result.missed).max(1) as f64 * 100.0;
        let missed = match &result.error {
            Some(error) => format!("no figures: {error}"),
            None => result.missed.to_string(),
        };
        table.row([
            result.peer.clone(),
            result.connection.clone(),
            result.loss.clone(),
            result.packets.to_string(),
            result.dropped.to_string(),
            result.sent.to_string(),
            missed,
            format!("{share:.2} %"),
            result.missed_standing_still.to_string(),
            millis(result.jitter.longest_ns),
            result.jitter.stalled.to_string(),
        ]);
    }
    table.note = MACHINES.into();
    if !table.is_empty() {
        let none = [
            "RSTP, paper",
            "-",
            "one-per-second",
            "-",
            "3600",
            "-",
            "0",
            "0 %",
            "-",
            "-",
            "-",
        ];
        table.kind(Kind::Paper, none.map(String::from));
    }
    table
}

fn applications(result: &Applications) -> Table {
    let caption = format!(
        "{}, {} connection, {}: eleven applications for {} s, lost: {} (ms)",
        result.peer, result.connection, result.network, result.seconds, result.loss
    );
    let head = [
        "app",
        "period",
        "size",
        "min",
        "avg",
        "p50",
        "p99",
        "max",
        "sent",
        "missed",
        "paper: min",
        "avg",
        "max",
    ];
    let mut table = Table::new(caption, &head);
    table.note = "paper: RSTP prototype, table 22, one packet lost each second".into();
    for (channel, paper) in result.channels.iter().zip(&paper::APPLICATIONS) {
        let times = match channel.times {
            Some(times) => [times.min, times.avg, times.p50, times.p99, times.max].map(millis),
            None => ["-"; 5].map(String::from),
        };
        let about = [
            (channel.channel + 1).to_string(),
            format!("{} ms", channel.period_us / 1000),
            size(channel.size),
        ];
        let counts = [channel.sent.to_string(), channel.missed.to_string()];
        table.row(
            about
                .into_iter()
                .chain(times)
                .chain(counts)
                .chain(paper.measured_ms.map(paper_millis)),
        );
    }
    table
}

fn cuts(run: &Run) -> Table {
    let mut table = Table::new(
        "Network A cut for a second in the middle of a transfer of 1 MB (ms)",
        &[
            "peer",
            "networks",
            "without: p50",
            "max",
            "with: p50",
            "max",
            "failed",
            "gap",
        ],
    );
    table.note = "gap: median with a cut less median without".into();
    for cuts in &run.cuts {
        let about = [cuts.peer.clone(), cuts.networks.to_string()];
        let figures = match (&cuts.quiet, &cuts.cut) {
            (Some(quiet), Some(cut)) => vec![
                millis(quiet.p50),
                millis(quiet.max),
                millis(cut.p50),
                millis(cut.max),
                cuts.failed.to_string(),
                format!("{:.3}", cut.p50 as f64 / 1e6 - quiet.p50 as f64 / 1e6),
            ],
            _ => vec![format!(
                "no figures: {}",
                cuts.error.as_deref().unwrap_or_default()
            )],
        };
        table.row(about.into_iter().chain(figures));
    }
    table
}

fn costs(run: &Run) -> Table {
    let mut table = Table::new(
        "Cost at 1 Gbit/s: processor seconds and allocations for 10^9 bytes of state, most resident memory",
        &[
            "peer",
            "state",
            "sender",
            "receiver",
            "both",
            "memory: sender",
            "receiver",
            "allocations: sender",
            "receiver",
        ],
    );
    table.note = "memory includes the program and the maker's own copy of the state; allocations: calls that ask the C \
                  library for memory, some of them to converse with the bench"
        .into();
    for cost in &run.costs {
        let about = [cost.peer.clone(), size(cost.size)];
        if let Some(error) = &cost.error {
            table.row(about.into_iter().chain([format!("no figures: {error}")]));
            continue;
        }
        let [sender, receiver] = cost.cpu_s_per_gb;
        let cpu = [sender, receiver, sender + receiver].map(|seconds| format!("{seconds:.3}"));
        let each_gigabyte = |count: f64| format!("{:.0}", count * 1e9 / cost.size as f64);
        let allocations = cost.allocations.map_or_else(
            || ["-", "-"].map(str::to_owned),
            |counts| counts.map(each_gigabyte),
        );
        let memory = cost.peak_bytes.map(megabytes);
        table.row(
            about
                .into_iter()
                .chain(cpu)
                .chain(memory)
                .chain(allocations),
        );
    }
    table
}

fn channels(run: &Run) -> Table {
    let mut table = Table::new(
        "More channels: processor time for each state of 1,000 bytes (us), most resident memory",
        &[
            "peer",
            "channels",
            "sender",
            "receiver",
            "both",
            "memory: sender",
            "receiver",
            "sent",
            "missed",
        ],
    );
    for result in run.of_case("channels") {
        let about = [result.peer.clone(), result.channels.len().to_string()];
        if let Some(error) = &result.error {
            table.row(about.into_iter().chain([format!("no figures: {error}")]));
            continue;
        }
        let [sender, receiver] = per_state_us(result);
        let cpu = [sender, receiver, sender + receiver].map(|us| format!("{us:.1}"));
        let memory = result.peak_bytes.map(megabytes);
        let counts = [result.sent.to_string(), result.missed.to_string()];
        table.row(about.into_iter().chain(cpu).chain(memory).chain(counts));
    }
    table
}

/// Processor time of sender and receiver for each state, microseconds.
pub fn per_state_us(result: &Applications) -> [f64; 2] {
    result
        .cpu_ns
        .map(|cpu| cpu as f64 / 1e3 / result.sent.max(1) as f64)
}
