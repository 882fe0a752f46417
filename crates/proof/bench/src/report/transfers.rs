//! Tables 15, 16 and 21: transfer times by size and loss.

use super::table::{Kind, Table};
use super::units;
use crate::paper;
use crate::plan::ITERATIONS;
use crate::result::Run;
use crate::run::loss::LossCase;
use crate::run::transfers::Cell;

/// A peer with a kind of connection over a network.
pub type Block<'a> = (&'a str, &'a str, &'a str);

/// Each of them, in the order measured.
pub fn blocks(run: &Run) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    for cell in &run.transfers {
        let block = block_of(cell);
        if !blocks.contains(&block) {
            blocks.push(block);
        }
    }
    blocks
}

fn block_of(cell: &Cell) -> Block<'_> {
    (&cell.peer, &cell.connection, &cell.network)
}

/// One cell.
pub fn cell<'a>(run: &'a Run, block: Block<'_>, size: usize, loss: LossCase) -> Option<&'a Cell> {
    run.transfers
        .iter()
        .find(|cell| block_of(cell) == block && cell.size == size && cell.loss == loss.name())
}

/// What the paper has for a size and loss.
pub fn paper_figures(table: &paper::Table, size: usize, loss: LossCase) -> Option<[f64; 3]> {
    let row = paper::SIZES.iter().position(|&known| known == size)?;
    let column = LossCase::ALL.iter().position(|&known| known == loss)?;
    // Random loss of single transfers the paper has not.
    *table[row].get(column)?
}

const fn loss_title(loss: LossCase) -> &'static str {
    match loss {
        LossCase::None => "No loss",
        LossCase::First => "First pkt. lost",
        LossCase::Last => "Last pkt. lost",
        LossCase::Middle(1) => "1 mid pkt. lost",
        LossCase::Middle(5) => "5 mid pkts. lost",
        LossCase::Middle(_) => "10 mid pkts. lost",
        LossCase::Random => "1 % of pkts. lost",
    }
}

/// Two tables for each block: the paper's layout, and what it has not.
pub fn tables(run: &Run) -> Vec<Table> {
    let mut tables = Vec::new();
    for block in blocks(run) {
        let of_block = || {
            run.transfers
                .iter()
                .filter(move |cell| block_of(cell) == block)
        };
        let mut sizes: Vec<usize> = of_block().map(|cell| cell.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let mut losses = LossCase::ALL.to_vec();
        losses.retain(|loss| of_block().any(|cell| cell.loss == loss.name()));
        tables.push(paper_layout(run, block, &sizes, &losses));
        tables.push(percentiles(run, block, &sizes, &losses));
    }
    tables
}

fn title((peer, connection, network): Block<'_>) -> String {
    format!("{peer}, {connection} connection, {network}")
}

fn groups(losses: &[LossCase], span: usize) -> Vec<(String, usize)> {
    let named = losses
        .iter()
        .map(|loss| (loss_title(*loss).to_owned(), span));
    std::iter::once((String::new(), 1)).chain(named).collect()
}

fn head(losses: &[LossCase], columns: &[&'static str]) -> Vec<&'static str> {
    std::iter::once("size")
        .chain(losses.iter().flat_map(|_| columns.iter().copied()))
        .collect()
}

fn paper_layout(run: &Run, block: Block<'_>, sizes: &[usize], losses: &[LossCase]) -> Table {
    let counterpart = paper::counterpart(block.0, block.1).filter(|_| block.2 != "unshaped");
    let caption = format!("{}: transfer times (ms)", title(block));
    let mut table = Table::new(caption, &head(losses, &["min", "avg", "max"]));
    table.groups = groups(losses, 3);
    table.note = counterpart.map_or_else(
        || "the paper has no counterpart".into(),
        |(name, _)| format!("rows marked 'paper': {name}{}", fewer(run, block)),
    );
    for &size in sizes {
        let figures = losses.iter().flat_map(|&loss| {
            let summary = cell(run, block, size, loss).and_then(|cell| cell.all);
            match summary {
                Some(all) => [all.min, all.avg, all.max].map(units::millis),
                None => ["-"; 3].map(String::from),
            }
        });
        table.row(std::iter::once(units::size(size)).chain(figures));
        let Some((_, known)) = counterpart.filter(|_| paper::SIZES.contains(&size)) else {
            continue;
        };
        let figures = losses
            .iter()
            .flat_map(|&loss| match paper_figures(known, size, loss) {
                Some(figures) => figures.map(units::paper),
                None => ["-"; 3].map(String::from),
            });
        table.kind(Kind::Paper, std::iter::once("paper".into()).chain(figures));
    }
    table
}

/// How many cells have fewer transfers than the paper's.
fn fewer(run: &Run, block: Block<'_>) -> String {
    let all = || run.transfers.iter().filter(|cell| block_of(cell) == block);
    let short = |cell: &&Cell| cell.samples_ns.len() < ITERATIONS;
    match all().filter(short).count() {
        0 => format!(", of {ITERATIONS} transfers each; here as many or more"),
        few => format!(
            ", of {ITERATIONS} transfers each; here {few} of {} cells have fewer (n below)",
            all().count()
        ),
    }
}

fn percentiles(run: &Run, block: Block<'_>, sizes: &[usize], losses: &[LossCase]) -> Table {
    let caption = format!(
        "{}: percentiles (ms), transfers, packets lost",
        title(block)
    );
    let columns = ["p50", "p99", "quiet", "n", "lost"];
    let mut table = Table::new(caption, &head(losses, &columns));
    table.groups = groups(losses, columns.len());
    table.note = "quiet: p99 of the transfers that no stall of the machine touches; lost: packets dropped of those that were to be"
        .into();
    for &size in sizes {
        let figures = losses
            .iter()
            .flat_map(|&loss| match cell(run, block, size, loss) {
                Some(cell) => percentile_cells(cell),
                None => [const { String::new() }; 5],
            });
        table.row(std::iter::once(units::size(size)).chain(figures));
    }
    for failed in run
        .transfers
        .iter()
        .filter(|cell| block_of(cell) == block && cell.error.is_some())
    {
        table.note.push_str(&format!(
            "; {}, lost {}: {} of {} failed: {}",
            units::size(failed.size),
            failed.loss,
            failed.failed,
            failed.begun,
            failed.error.as_deref().unwrap_or_default()
        ));
    }
    table
}

fn percentile_cells(cell: &Cell) -> [String; 5] {
    let figure = |summary: Option<crate::statistics::Summary>,
                  which: fn(&crate::statistics::Summary) -> u64| {
        summary.map_or_else(|| "-".into(), |summary| units::millis(which(&summary)))
    };
    let lost = match cell.to_drop {
        0 => "-".into(),
        wanted if cell.dropped == wanted => wanted.to_string(),
        wanted => format!("{} of {wanted}", cell.dropped),
    };
    [
        figure(cell.all, |all| all.p50),
        figure(cell.all, |all| all.p99),
        figure(cell.undisturbed, |quiet| quiet.p99),
        cell.samples_ns.len().to_string(),
        lost,
    ]
}

/// Our median as a multiple of each peer's, without loss.
pub fn ratios(run: &Run) -> Option<Table> {
    let mut sizes: Vec<usize> = run.transfers.iter().map(|cell| cell.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let names: Vec<String> = sizes.iter().map(|&size| units::size(size)).collect();
    let head: Vec<&str> = ["peer", "connection", "network"]
        .into_iter()
        .chain(names.iter().map(String::as_str))
        .collect();
    let mut table = Table::new(
        "Median of 'transfer' as a multiple of each peer's, without loss (below 1: ours is ahead)",
        &head,
    );
    for block in blocks(run)
        .into_iter()
        .filter(|(peer, ..)| *peer != "transfer")
    {
        let ratios: Vec<String> = sizes
            .iter()
            .map(|&size| ratio(run, ("transfer", "single", block.2), block, size))
            .map(|ratio| ratio.map_or_else(|| "-".into(), |ratio| format!("{ratio:.2}")))
            .collect();
        if ratios.iter().any(|ratio| ratio != "-") {
            let names = [block.0, block.1, block.2].map(String::from);
            table.row(names.into_iter().chain(ratios));
        }
    }
    (!table.is_empty()).then_some(table)
}

/// The median of `ours` as a multiple of that of `theirs`, without loss.
pub fn ratio(run: &Run, ours: Block<'_>, theirs: Block<'_>, size: usize) -> Option<f64> {
    let median = |block| {
        cell(run, block, size, LossCase::None)?
            .all
            .map(|all| all.p50 as f64)
    };
    Some(median(ours)? / median(theirs)?.max(1.0))
}
