//! Transfer times by size, both axes by powers.

use bumpless_svg::{Anchor, Svg};

use super::units;

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 216.0;
const TOP: f64 = 14.0;
const HEIGHT: f64 = 340.0;
const BOTTOM: f64 = 30.0;
/// Height of a row of the legend.
const LEGEND: f64 = 19.0;
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

/// Where sizes and times lie in the drawing.
struct Axes {
    sizes: Vec<usize>,
    /// Powers of ten at the lower and upper edge.
    low: f64,
    high: f64,
}

impl Axes {
    fn around(lines: &[Line]) -> Self {
        let points = || lines.iter().flat_map(|line| line.points.iter());
        let mut sizes: Vec<usize> = points().map(|point| point.0).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let values = || points().map(|point| point.1);
        let low = values()
            .fold(f64::INFINITY, f64::min)
            .max(1e-3)
            .log10()
            .floor();
        let high = values().fold(0.0, f64::max).max(1e-2).log10().ceil();
        Self {
            sizes,
            low,
            high: high.max(low + 1.0),
        }
    }

    fn x(&self, size: usize) -> f64 {
        let at = self.sizes.iter().position(|&known| known == size);
        let share = at.unwrap_or(0) as f64 / (self.sizes.len().max(2) - 1) as f64;
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, ms: f64) -> f64 {
        TOP + (self.high - ms.max(1e-3).log10()) / (self.high - self.low) * HEIGHT
    }

    fn draw(&self, svg: &mut Svg) {
        for decade in self.low as i32..=self.high as i32 {
            let value = 10f64.powi(decade);
            let y = self.y(value);
            svg.line("grid", (LEFT, y), (WIDTH - RIGHT, y));
            let name = format!("{value} ms");
            svg.text("tick", (LEFT - 8.0, y + 4.5), Anchor::End, &name);
        }
        for &size in &self.sizes {
            let place = (self.x(size), TOP + HEIGHT + 20.0);
            svg.text("tick", place, Anchor::Middle, &units::size(size));
        }
    }
}

/// The chart of `lines`; `label` is what a screen reader says.
pub fn draw(lines: &[Line], label: &str) -> String {
    let axes = Axes::around(lines);
    let mut svg = Svg::default();
    axes.draw(&mut svg);
    for (at, line) in lines.iter().enumerate() {
        curve(&mut svg, &axes, at, line);
    }
    let legend = TOP + 20.0 + lines.len() as f64 * LEGEND;
    svg.finish(WIDTH, (TOP + HEIGHT + BOTTOM).max(legend), label)
}

/// One line with its points and its place in the legend.
fn curve(svg: &mut Svg, axes: &Axes, at: usize, line: &Line) {
    let dash = if line.paper { " dash" } else { "" };
    let class = format!("c{}{dash}", at % COLOURS);
    let points = line
        .points
        .iter()
        .map(|&(size, ms)| (axes.x(size), axes.y(ms)));
    svg.polyline(&class, points.clone());
    for ((x, y), (size, ms)) in points.zip(&line.points) {
        let tip = format!("{}: {} {ms:.3} ms", line.name, units::size(*size));
        let corner = (x - 3.0, y - 3.0);
        svg.rect(&format!("p{}", at % COLOURS), corner, (6.0, 6.0), &tip);
    }
    let (x, y) = (WIDTH - RIGHT + 14.0, TOP + 8.0 + at as f64 * LEGEND);
    svg.line(&class, (x, y), (x + 24.0, y));
    svg.text("tick", (x + 30.0, y + 4.5), Anchor::Start, &line.name);
}
