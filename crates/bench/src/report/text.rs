//! Tables for a terminal.

use std::fmt::Write;

use crate::paper;
use crate::result::Run;
use crate::run::transfers::{Cell, LossCase};
use crate::statistics::Summary;

/// The whole run as text.
pub fn render(run: &Run) -> String {
    let mut text = heading(run);
    for (peer, connection, network) in blocks(run) {
        let cells: Vec<&Cell> = run
            .transfers
            .iter()
            .filter(|cell| {
                cell.peer == peer && cell.connection == connection && cell.network == network
            })
            .collect();
        transfers(&mut text, (peer, connection, network), &cells);
    }
    ratios(&mut text, run);
    super::loads::render(&mut text, run);
    text
}

fn heading(run: &Run) -> String {
    let host = &run.host;
    let mut text = format!(
        "{} x {}, {}; load {}\n",
        host.processors, host.processor, host.kernel, host.load
    );
    for peer in &run.peers {
        let _ = match &peer.error {
            Some(error) => writeln!(text, "{:18} not measured: {error}", peer.name),
            None => writeln!(text, "{:18} {}; {}", peer.name, peer.version, peer.settings),
        };
    }
    text
}

/// Each peer with each kind of connection and network, in the order measured.
pub fn blocks(run: &Run) -> Vec<(&str, &str, &str)> {
    let mut blocks = Vec::new();
    for cell in &run.transfers {
        let block = (
            cell.peer.as_str(),
            cell.connection.as_str(),
            cell.network.as_str(),
        );
        if !blocks.contains(&block) {
            blocks.push(block);
        }
    }
    blocks
}

/// The size as the paper writes it.
pub fn size_name(size: usize) -> String {
    match size {
        _ if size >= 1 << 20 && size.is_multiple_of(1 << 20) => format!("{} MB", size >> 20),
        _ if size >= 1 << 10 && size.is_multiple_of(1 << 10) => format!("{} KB", size >> 10),
        _ if size >= 1_000_000 => format!("{:.1} MB", size as f64 / 1e6),
        _ if size >= 10_000 => format!("{} kB", size / 1000),
        _ => format!("{size} B"),
    }
}

/// Milliseconds in as many digits as mean something.
pub fn millis(nanoseconds: u64) -> String {
    let ms = nanoseconds as f64 / 1e6;
    match ms {
        ms if ms < 10.0 => format!("{ms:.3}"),
        ms if ms < 100.0 => format!("{ms:.2}"),
        _ => format!("{ms:.0}"),
    }
}

/// Milliseconds of the paper, which has one digit after the point.
pub fn paper_millis(ms: f64) -> String {
    if ms >= 100.0 {
        format!("{ms:.0}")
    } else {
        format!("{ms:.1}")
    }
}

fn transfers(text: &mut String, (peer, connection, network): (&str, &str, &str), cells: &[&Cell]) {
    let counterpart = paper::counterpart(peer, connection);
    let name = counterpart.map_or("no counterpart in the paper", |(name, _)| name);
    for loss in LossCase::ALL {
        let rows: Vec<&&Cell> = cells
            .iter()
            .filter(|cell| cell.loss == loss.name())
            .collect();
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(
            text,
            "\n{peer}, {connection} connection, {network}, lost: {} (ms; paper: {name})",
            loss.name()
        );
        let _ = writeln!(
            text,
            "{:>7} | {:>8} {:>8} {:>8} {:>8} {:>8} | {:>5} {:>6} {:>6} | {:>8} {:>8} {:>8}",
            "size", "min", "avg", "p50", "p99", "max", "n", "lost", "stall", "paper", "avg", "max"
        );
        for cell in rows {
            row(
                text,
                cell,
                counterpart.and_then(|(_, table)| paper_figures(table, cell.size, loss)),
            );
        }
    }
}

/// What the paper has for that size and loss.
pub fn paper_figures(table: &paper::Table, size: usize, loss: LossCase) -> Option<[f64; 3]> {
    let row = paper::SIZES.iter().position(|&known| known == size)?;
    let column = LossCase::ALL.iter().position(|&known| known == loss)?;
    table[row][column]
}

fn row(text: &mut String, cell: &Cell, paper: Option<[f64; 3]>) {
    let _ = write!(text, "{:>7} |", size_name(cell.size));
    match &cell.all {
        Some(Summary {
            min,
            avg,
            p50,
            p99,
            max,
            ..
        }) => {
            for figure in [min, avg, p50, p99, max] {
                let _ = write!(text, " {:>8}", millis(*figure));
            }
        }
        None => text.push_str("        no figures                          "),
    }
    let _ = write!(
        text,
        " | {:>5} {:>6} {:>6} |",
        cell.samples_ns.len(),
        cell.dropped,
        cell.disturbed.len()
    );
    for figure in paper.iter().flatten() {
        let _ = write!(text, " {:>8}", paper_millis(*figure));
    }
    if cell.failed > 0 || cell.all.is_none() {
        let _ = write!(
            text,
            "  {} failed: {}",
            cell.failed,
            cell.error.as_deref().unwrap_or_default()
        );
    }
    text.push('\n');
}

/// How many times each peer's median ours takes, by size, without loss.
fn ratios(text: &mut String, run: &Run) {
    let quiet: Vec<&Cell> = run
        .transfers
        .iter()
        .filter(|cell| cell.loss == "none")
        .collect();
    let ours: Vec<&&Cell> = quiet
        .iter()
        .filter(|cell| cell.peer == "transfer")
        .collect();
    let mut others = blocks(run);
    others.retain(|(peer, ..)| *peer != "transfer");
    if ours.is_empty() || others.is_empty() {
        return;
    }
    text.push_str("\nmedian of `transfer` as a multiple of each peer's, without loss (below 1: ours is ahead)\n");
    for (peer, connection, network) in others {
        let _ = write!(text, "{peer:>18}, {connection:6}, {network:8} ");
        for cell in &ours {
            let other = quiet.iter().find(|other| {
                (
                    other.peer.as_str(),
                    other.connection.as_str(),
                    other.network.as_str(),
                ) == (peer, connection, network)
                    && other.size == cell.size
                    && cell.network == network
            });
            if let (Some(mine), Some(theirs)) = (cell.all, other.and_then(|other| other.all)) {
                let ratio = mine.p50 as f64 / theirs.p50.max(1) as f64;
                let _ = write!(text, " {} {ratio:.2}", size_name(cell.size));
            }
        }
        text.push('\n');
    }
}
