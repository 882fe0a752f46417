//! Transfer times by size, both axes by powers.

use bumpless_drawing::{Anchor, Svg};

use super::units;

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 216.0;
const TOP: f64 = 14.0;
const HEIGHT: f64 = 340.0;
const BOTTOM: f64 = 30.0;
/// Colours that the style sheet knows.
const COLOURS: usize = 12;

/// One line: its name, and milliseconds by size.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// What it shows.
    pub name: String,
    /// Whether it is the paper's.
    pub paper: bool,
    /// Bytes and milliseconds.
    pub points: Vec<(usize, f64)>,
}

/// The chart of `lines`; `label` is what a screen reader says.
pub fn draw(lines: &[Line], label: &str) -> String {
    let mut sizes: Vec<usize> = lines
        .iter()
        .flat_map(|line| line.points.iter().map(|point| point.0))
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    let values = || {
        lines
            .iter()
            .flat_map(|line| line.points.iter().map(|point| point.1))
    };
    let low = values()
        .fold(f64::INFINITY, f64::min)
        .max(1e-3)
        .log10()
        .floor();
    let high = values()
        .fold(0.0, f64::max)
        .max(1e-2)
        .log10()
        .ceil()
        .max(low + 1.0);
    let x = |size: usize| {
        let at = sizes.iter().position(|&known| known == size).unwrap_or(0) as f64;
        LEFT + at / (sizes.len().max(2) - 1) as f64 * (WIDTH - LEFT - RIGHT)
    };
    let y = |ms: f64| TOP + (high - ms.max(1e-3).log10()) / (high - low) * HEIGHT;
    let mut svg = Svg::default();
    for decade in low as i32..=high as i32 {
        let value = 10f64.powi(decade);
        svg.line("grid", (LEFT, y(value)), (WIDTH - RIGHT, y(value)));
        svg.text(
            "tick",
            (LEFT - 8.0, y(value) + 4.5),
            Anchor::End,
            &format!("{value} ms"),
        );
    }
    for &size in &sizes {
        svg.text(
            "tick",
            (x(size), TOP + HEIGHT + 20.0),
            Anchor::Middle,
            &units::size(size),
        );
    }
    for (at, line) in lines.iter().enumerate() {
        let dash = if line.paper { " dash" } else { "" };
        let class = format!("c{}{dash}", at % COLOURS);
        svg.polyline(
            &class,
            line.points.iter().map(|&(size, ms)| (x(size), y(ms))),
        );
        for &(size, ms) in &line.points {
            let tip = format!("{}: {} {ms:.3} ms", line.name, units::size(size));
            svg.rect(
                &format!("p{}", at % COLOURS),
                (x(size) - 3.0, y(ms) - 3.0),
                (6.0, 6.0),
                &tip,
            );
        }
        let row = TOP + 8.0 + at as f64 * 19.0;
        svg.line(
            &class,
            (WIDTH - RIGHT + 14.0, row),
            (WIDTH - RIGHT + 38.0, row),
        );
        svg.text(
            "tick",
            (WIDTH - RIGHT + 44.0, row + 4.5),
            Anchor::Start,
            &line.name,
        );
    }
    let height = (TOP + HEIGHT + BOTTOM).max(TOP + 20.0 + lines.len() as f64 * 19.0);
    svg.finish(WIDTH, height, label)
}
