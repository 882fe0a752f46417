//! The longest transfers of ours beside those of the paper's prototype: what it plots are maxima.

use super::table::{Kind, Table};
use super::transfers::{Block, blocks, paper_figures};
use super::units;
use crate::paper;
use crate::result::Run;
use crate::run::loss::LossCase;
use crate::run::transfers::Cell;

/// A cell whose longest transfer is longer than the paper's.
pub struct Above<'a> {
    cell: &'a Cell,
    /// The paper's longest one, milliseconds.
    paper_ms: f64,
    /// Transfers that are longer than that.
    longer: usize,
    /// Those that are longer even without the time for which the machine stood still meanwhile.
    own: usize,
}

/// The cells of one of our peers that the paper has, too.
pub struct Maxima<'a> {
    /// The peer.
    pub peer: &'a str,
    /// All cells that can be compared.
    cells: Vec<&'a Cell>,
    /// Those above the paper's.
    above: Vec<Above<'a>>,
}

/// Of each of ours that was measured as the paper measured: over 1 Gbit/s.
pub fn of(run: &Run) -> Vec<Maxima<'_>> {
    let ours = |block: &Block<'_>| block.0.starts_with("transfer") && block.2 == "1gbit";
    let all = blocks(run).into_iter().filter(ours);
    let maxima = all.map(|block| of_peer(run, block.0));
    maxima.filter(|maxima| !maxima.cells.is_empty()).collect()
}

fn of_peer<'a>(run: &'a Run, peer: &'a str) -> Maxima<'a> {
    let mut maxima = Maxima {
        peer,
        cells: Vec::new(),
        above: Vec::new(),
    };
    let cells = run.transfers.iter();
    for cell in cells.filter(|cell| cell.peer == peer && cell.network == "1gbit") {
        let loss = LossCase::ALL.into_iter().find(|it| it.name() == cell.loss);
        let paper = loss.and_then(|loss| paper_figures(&paper::TRANSFER, cell.size, loss));
        let (Some([.., paper_ms]), Some(_)) = (paper, cell.all) else {
            continue;
        };
        maxima.cells.push(cell);
        let limit = (paper_ms * 1e6) as u64;
        let longer = cell.samples_ns.iter().filter(|&&took| took > limit).count();
        if longer > 0 {
            let without_stalls = (0..cell.samples_ns.len()).map(|at| without_stalls(cell, at));
            maxima.above.push(Above {
                cell,
                paper_ms,
                longer,
                own: without_stalls.filter(|&took| took > limit).count(),
            });
        }
    }
    maxima
}

/// How long a transfer took besides the time for which the machine stood still, nanoseconds.
fn without_stalls(cell: &Cell, at: usize) -> u64 {
    let touched = cell.disturbed.iter().position(|&disturbed| disturbed == at);
    // A run that did not tell it for each transfer has at least the longest stall of all.
    let known = |place: usize| cell.stood_still_ns.get(place).copied();
    let stood_still = touched.map(|place| known(place).unwrap_or(cell.jitter.longest_ns));
    cell.samples_ns[at].saturating_sub(stood_still.unwrap_or(0))
}

impl Maxima<'_> {
    /// Cells above the paper's that no stall explains.
    pub fn unexplained(&self) -> usize {
        self.above.iter().filter(|above| above.own > 0).count()
    }

    /// How many are above, how many of them no stall explains, and of how many transfers each is the longest.
    pub fn told(&self) -> String {
        let counts = || self.cells.iter().map(|cell| cell.samples_ns.len());
        let (fewest, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        let transfers = match fewest == most {
            true => format!("{most}"),
            false => format!("{fewest} to {most}"),
        };
        format!(
            "{} of {}, no stall explains {}; of {transfers} transfers each (paper: 100)",
            self.above.len(),
            self.cells.len(),
            self.unexplained()
        )
    }
}

/// Each cell above the paper's.
pub fn table(run: &Run) -> Table {
    let mut table = Table::new(
        "Longest transfers of ours that are longer than the paper's (ms)",
        &[
            "peer",
            "size",
            "lost",
            "transfers",
            "longest",
            "paper's",
            "longer",
            "own",
            "longest stall",
        ],
    );
    table.note = "paper: RSTP prototype, table 21, 100 transfers each, in whole milliseconds; longer: transfers above the paper's \
                  longest; own: those that are above it even without the time for which the machine stood still \
                  meanwhile (in runs that did not tell that, without the longest stall of the cell)"
        .into();
    for maxima in of(run) {
        for above in &maxima.above {
            let cell = above.cell;
            let kind = if above.own > 0 {
                Kind::Bad
            } else {
                Kind::Plain
            };
            let longest = cell.all.map_or(0, |all| all.max);
            let row = [
                maxima.peer.to_owned(),
                units::size(cell.size),
                cell.loss.clone(),
                cell.samples_ns.len().to_string(),
                units::millis(longest),
                units::paper(above.paper_ms),
                above.longer.to_string(),
                above.own.to_string(),
                units::millis(cell.jitter.longest_ns),
            ];
            table.kind(kind, row);
        }
    }
    table
}
