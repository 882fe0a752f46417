//! Tables for a terminal of everything but single transfers: applications, ramp, cuts, cost, channels.

use std::fmt::Write;

use super::text::{millis, paper_millis, size_name};
use crate::paper;
use crate::result::Run;
use crate::run::cyclic::Applications;

/// All of them.
pub fn render(text: &mut String, run: &Run) {
    for result in of(run, "applications") {
        applications(text, result);
    }
    ramp(text, run);
    cuts(text, run);
    costs(text, run);
    channels(text, run);
}

/// The results of one case.
pub fn of<'a>(run: &'a Run, case: &'a str) -> impl Iterator<Item = &'a Applications> {
    run.applications
        .iter()
        .filter(move |result| result.case == case)
}

fn applications(text: &mut String, result: &Applications) {
    let _ = writeln!(
        text,
        "\n{}, {} connection, {}: eleven applications (table 20) for {} s, lost: {} ({} of {} packets), {} \
         stalls up to {} ms (ms; paper: RSTP prototype, table 22)",
        result.peer,
        result.connection,
        result.network,
        result.seconds,
        result.loss,
        result.dropped,
        result.packets,
        result.jitter.stalled,
        millis(result.jitter.longest_ns)
    );
    if let Some(error) = &result.error {
        let _ = writeln!(text, "   no figures: {error}");
        return;
    }
    let _ = writeln!(
        text,
        "{:>4} {:>8} {:>8} | {:>8} {:>8} {:>8} {:>8} {:>8} | {:>6} {:>6} | {:>8} {:>8} {:>8}",
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
        "paper",
        "avg",
        "max"
    );
    for (channel, paper) in result.channels.iter().zip(&paper::APPLICATIONS) {
        let _ = write!(
            text,
            "{:>4} {:>5} ms {:>8} |",
            channel.channel + 1,
            channel.period_us / 1000,
            size_name(channel.size)
        );
        match channel.times {
            Some(times) => {
                for figure in [times.min, times.avg, times.p50, times.p99, times.max] {
                    let _ = write!(text, " {:>8}", millis(figure));
                }
            }
            None => text.push_str("        none arrived                        "),
        }
        let _ = write!(text, " | {:>6} {:>6} |", channel.sent, channel.missed);
        for figure in paper.measured_ms {
            let _ = write!(text, " {:>8}", paper_millis(figure));
        }
        text.push('\n');
    }
    let _ = writeln!(text, "missed in all: {} (paper: none)", result.missed);
}

fn ramp(text: &mut String, run: &Run) {
    if of(run, "ramp").next().is_none() {
        return;
    }
    text.push_str("\ngrowing load, table 20 with larger states: missed deadlines by payload utilisation (paper: none at 74.3 %)\n");
    for peer in &run.peers {
        let steps: Vec<_> = of(run, "ramp")
            .filter(|step| step.peer == peer.name)
            .collect();
        if steps.is_empty() {
            continue;
        }
        let _ = write!(text, "{:>18}", peer.name);
        for step in steps {
            let share = step.utilisation * 100.0;
            let _ = match &step.error {
                Some(error) => write!(text, "  {share:.1} %: {error}"),
                None => write!(text, "  {share:.1} %: {}", step.missed),
            };
        }
        text.push('\n');
    }
}

fn cuts(text: &mut String, run: &Run) {
    let Some(first) = run.cuts.first() else {
        return;
    };
    let _ = writeln!(
        text,
        "\nnetwork A cut for {} ms in the middle of a transfer of {} (ms)\n{:>18} | networks | {:>8} {:>8} | {:>8} {:>8} {:>8} | gap (p50 with cut - without)",
        first.cut_ns / 1_000_000,
        size_name(first.size),
        "",
        "p50",
        "max",
        "cut: p50",
        "max",
        "failed"
    );
    for cuts in &run.cuts {
        let _ = write!(text, "{:>18} | {:>8} |", cuts.peer, cuts.networks);
        match (&cuts.quiet, &cuts.cut) {
            (Some(quiet), Some(cut)) => {
                let gap = cut.p50 as f64 / 1e6 - quiet.p50 as f64 / 1e6;
                let _ = writeln!(
                    text,
                    " {:>8} {:>8} | {:>8} {:>8} {:>8} | {gap:.3}",
                    millis(quiet.p50),
                    millis(quiet.max),
                    millis(cut.p50),
                    millis(cut.max),
                    cuts.failed
                );
            }
            _ => {
                let _ = writeln!(
                    text,
                    " no figures: {}",
                    cuts.error.as_deref().unwrap_or_default()
                );
            }
        }
    }
}

fn costs(text: &mut String, run: &Run) {
    if run.costs.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "\ncost at 1 Gbit/s: processor seconds for 10^9 bytes of state, most resident memory (the maker's own copy of the state included)\n\
         {:>18} | {:>7} | {:>8} {:>8} {:>8} | {:>10} {:>10} | allocations",
        "", "state", "sender", "receiver", "both", "sender", "receiver"
    );
    for cost in &run.costs {
        let _ = write!(text, "{:>18} | {:>7} |", cost.peer, size_name(cost.size));
        if let Some(error) = &cost.error {
            let _ = writeln!(text, " no figures: {error}");
            continue;
        }
        let [sender, receiver] = cost.cpu_s_per_gb;
        let [near, far] = cost.peak_bytes.map(|bytes| bytes as f64 / (1 << 20) as f64);
        let allocations = cost
            .allocations
            .map_or_else(|| "-".into(), |count| count.to_string());
        let _ = writeln!(
            text,
            " {sender:>8.3} {receiver:>8.3} {:>8.3} | {near:>7.1} MB {far:>7.1} MB | {allocations}",
            sender + receiver
        );
    }
}

fn channels(text: &mut String, run: &Run) {
    if of(run, "channels").next().is_none() {
        return;
    }
    let _ = writeln!(
        text,
        "\nmore channels, 1,000 states of 1,000 bytes each second in all: processor time for each state (us), most resident memory\n\
         {:>18} | {:>8} | {:>8} {:>8} {:>8} | {:>10} {:>10} | missed",
        "", "channels", "sender", "receiver", "both", "sender", "receiver"
    );
    for result in of(run, "channels") {
        let _ = write!(text, "{:>18} | ", result.peer);
        if let Some(error) = &result.error {
            let _ = writeln!(text, "{error}");
            continue;
        }
        let [sender, receiver] = result
            .cpu_ns
            .map(|cpu| cpu as f64 / 1e3 / result.sent.max(1) as f64);
        let [near, far] = result
            .peak_bytes
            .map(|bytes| bytes as f64 / (1 << 20) as f64);
        let _ = writeln!(
            text,
            "{:>8} | {sender:>8.2} {receiver:>8.2} {:>8.2} | {near:>7.1} MB {far:>7.1} MB | {} of {}",
            result.channels.len(),
            sender + receiver,
            result.missed,
            result.sent
        );
    }
}
