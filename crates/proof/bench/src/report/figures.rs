//! Plots like the paper's figures 7 to 10 and 19: the longest transfer by size.

use super::chart::{self, Line};
use super::transfers::{Block, blocks, cell, paper_figures};
use crate::paper;
use crate::result::Run;
use crate::run::loss::LossCase;

/// A plot.
pub struct Figure {
    /// Name of its file, without ending.
    pub file: String,
    /// What it shows.
    pub title: String,
    /// The drawing.
    pub svg: String,
}

impl Figure {
    /// The drawing as a file of its own, with its colours.
    pub fn alone(&self) -> String {
        let style = include_str!("chart.css");
        let opening = "<svg ";
        let body = self.svg.replacen(
            opening,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" ",
            1,
        );
        body.replacen('>', &format!("><style>{style}</style>"), 1)
    }
}

/// Every figure for which there is something to show.
pub fn all(run: &Run) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut networks: Vec<&str> = blocks(run)
        .into_iter()
        .map(|(_, _, network)| network)
        .collect();
    networks.dedup();
    for network in networks {
        for loss in LossCase::ALL {
            let lines = by_peer(run, network, loss);
            if lines.iter().any(|line| !line.paper) {
                figures.push(by_peer_figure(network, loss, &lines));
            }
        }
    }
    let lines = by_loss(run);
    if lines.len() > 1 {
        let title =
            "Longest transfer over ours by loss, 1 Gbit/s (the paper's figure 19)".to_owned();
        figures.push(Figure {
            file: "figure-19".into(),
            svg: chart::draw(&lines, &title),
            title,
        });
    }
    figures
}

fn by_peer_figure(network: &str, loss: LossCase, lines: &[Line]) -> Figure {
    let title = format!(
        "Longest transfer, {network}, lost: {}{}",
        loss.name(),
        counterpart(loss, lines)
    );
    Figure {
        file: format!("{network}-{}", loss.name()),
        svg: chart::draw(lines, &title),
        title,
    }
}

/// Which of the paper's figures a plot is like: 7 and 9 have TCP beside its prototype, 8 and 10 SCTP.
fn counterpart(loss: LossCase, lines: &[Line]) -> &'static str {
    let paper = lines.iter().any(|line| line.paper);
    match (loss, paper, lines.iter().any(is_sctp)) {
        (LossCase::None, true, false) => " (the paper's figure 7)",
        (LossCase::None, true, true) => " (the paper's figures 7 and 8)",
        (LossCase::First, true, false) => " (the paper's figure 9)",
        (LossCase::First, true, true) => " (the paper's figures 9 and 10)",
        _ => "",
    }
}

/// Whether it is SCTP as measured here.
fn is_sctp(line: &Line) -> bool {
    !line.paper && line.name.starts_with("usrsctp")
}

fn measured(run: &Run, block: Block<'_>, loss: LossCase, name: String) -> Option<Line> {
    let mut points: Vec<(usize, f64)> = run
        .transfers
        .iter()
        .filter_map(|known| {
            let found = cell(run, block, known.size, loss)?;
            Some((found.size, found.all?.max as f64 / 1e6))
        })
        .collect();
    points.sort_by_key(|point| point.0);
    points.dedup_by_key(|point| point.0);
    (!points.is_empty()).then_some(Line {
        name,
        paper: false,
        points,
    })
}

fn by_peer(run: &Run, network: &str, loss: LossCase) -> Vec<Line> {
    let mut lines: Vec<Line> = blocks(run)
        .into_iter()
        .filter(|block| block.2 == network && block.1 == "single")
        .filter_map(|block| measured(run, block, loss, block.0.to_owned()))
        .collect();
    if network == "unshaped" || lines.is_empty() {
        return lines;
    }
    let known = [
        ("paper: RSTP", &paper::TRANSFER),
        ("paper: TCP default", &paper::TCP_DEFAULT_SINGLE),
        ("paper: TCP optimized", &paper::TCP_OPTIMIZED_SINGLE),
        ("paper: SCTP default", &paper::SCTP_DEFAULT_SINGLE),
        ("paper: SCTP optimized", &paper::SCTP_OPTIMIZED_SINGLE),
    ];
    let shown = if lines.iter().any(is_sctp) { 5 } else { 3 };
    for (name, table) in known.into_iter().take(shown) {
        let figure = |&size: &usize| Some((size, paper_figures(table, size, loss)?[2]));
        let points: Vec<_> = paper::SIZES.iter().filter_map(figure).collect();
        if !points.is_empty() {
            lines.push(Line {
                name: name.into(),
                paper: true,
                points,
            });
        }
    }
    lines
}

fn by_loss(run: &Run) -> Vec<Line> {
    let block = ("transfer", "single", "1gbit");
    LossCase::ALL
        .into_iter()
        .filter_map(|loss| measured(run, block, loss, format!("lost: {}", loss.name())))
        .collect()
}
