//! Lines, bars and maps as SVG.

use bumpless_svg::{Anchor, Svg};

/// Colours of everything drawn here; part of the page's style sheet.
pub const STYLE: &str = include_str!("chart.css");

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 210.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 46.0;
const LEGEND: f64 = 18.0;
const COLOURS: usize = 7;
const SHADES: usize = 9;

/// A line of a chart.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Its points from left to right.
    pub points: Vec<(f64, f64)>,
}

impl Line {
    /// A line through these points.
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.into(),
            points,
        }
    }
}

/// What the axes say.
#[derive(Clone, Copy, Debug)]
pub struct Axes<'a> {
    /// Below.
    pub x: &'a str,
    /// At the left.
    pub y: &'a str,
}

/// A step of 1, 2 or 5 times a power of ten, so that about five lie below `most`.
fn step(most: f64) -> f64 {
    let rough = (most / 5.0).max(1e-9);
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|it| it * power >= rough);
    factor.unwrap_or(10.0) * power
}

/// A number for people: grouped thousands, and as many digits as a scale needs.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v == 0.0 || v >= 100.0 || (v >= 1.0 && v.fract() == 0.0) => 0,
        v if v >= 10.0 => 1,
        v if v >= 0.1 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, whole) = match whole.strip_prefix('-') {
        Some(whole) => ("-", whole),
        None => ("", whole),
    };
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{rest}")
}

struct Frame {
    most: (f64, f64),
}

impl Frame {
    fn x(&self, x: f64) -> f64 {
        LEFT + x / self.most.0 * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, y: f64) -> f64 {
        TOP + (1.0 - y / self.most.1) * HEIGHT
    }

    fn draw(&self, svg: &mut Svg, axes: Axes<'_>) {
        let ticks = |most: f64| {
            let step = step(most);
            (0..=(most / step + 1e-6) as usize).map(move |at| at as f64 * step)
        };
        for y in ticks(self.most.1) {
            svg.line("grid", (LEFT, self.y(y)), (WIDTH - RIGHT, self.y(y)));
            svg.text(
                "tick",
                (LEFT - 8.0, self.y(y) + 4.5),
                Anchor::End,
                &number(y),
            );
        }
        for x in ticks(self.most.0) {
            svg.text(
                "tick",
                (self.x(x), TOP + HEIGHT + 18.0),
                Anchor::Middle,
                &number(x),
            );
        }
        names(svg, axes);
    }
}

fn names(svg: &mut Svg, axes: Axes<'_>) {
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    svg.text(
        "tick",
        (middle, TOP + HEIGHT + 38.0),
        Anchor::Middle,
        axes.x,
    );
    svg.text(
        "tick",
        (WIDTH - RIGHT + 14.0, TOP + 4.0),
        Anchor::Start,
        axes.y,
    );
}

fn most(values: impl Iterator<Item = f64>) -> f64 {
    let most = values.fold(0.0, f64::max);
    if most > 0.0 { most * 1.04 } else { 1.0 }
}

/// Lines over two axes that begin at zero; behind them, bars of a histogram as shares of the height.
pub fn lines(axes: Axes<'_>, lines: &[Line], histograms: &[Line], label: &str) -> String {
    let points = || lines.iter().flat_map(|line| line.points.iter());
    let frame = Frame {
        most: (most(points().map(|it| it.0)), most(points().map(|it| it.1))),
    };
    let mut svg = Svg::default();
    for histogram in histograms {
        let peak = most(histogram.points.iter().map(|it| it.1));
        for pair in histogram.points.windows(2) {
            let height = pair[0].1 / peak * HEIGHT * 0.9;
            let (from, to) = (frame.x(pair[0].0), frame.x(pair[1].0));
            svg.rect(
                "bin",
                (from, TOP + HEIGHT - height),
                (to - from - 0.5, height),
                &histogram.name,
            );
        }
    }
    frame.draw(&mut svg, axes);
    for (at, line) in lines.iter().enumerate() {
        let colour = at % COLOURS;
        let dash = if at >= COLOURS { " dash" } else { "" };
        let points = line.points.iter().map(|&(x, y)| (frame.x(x), frame.y(y)));
        svg.polyline(&format!("c{colour}{dash}"), points.clone());
        for ((x, y), (value_x, value_y)) in points.zip(&line.points) {
            let tip = format!(
                "{}: {} at {}",
                line.name,
                number(*value_y),
                number(*value_x)
            );
            svg.rect(&format!("p{colour}"), (x - 2.0, y - 2.0), (4.0, 4.0), &tip);
        }
        let (x, y) = (WIDTH - RIGHT + 14.0, TOP + 26.0 + at as f64 * LEGEND);
        svg.line(&format!("c{colour}{dash}"), (x, y), (x + 22.0, y));
        svg.text("tick", (x + 28.0, y + 4.5), Anchor::Start, &line.name);
    }
    let legend = TOP + 40.0 + lines.len() as f64 * LEGEND;
    svg.finish(WIDTH, (TOP + HEIGHT + BOTTOM).max(legend), label)
}

/// Bars with a name, and a value that they carry.
pub fn bars(unit: &str, bars: &[(String, f64)], label: &str) -> String {
    let longest = most(bars.iter().map(|it| it.1));
    let mut svg = Svg::default();
    let left = 300.0;
    for (at, (name, value)) in bars.iter().enumerate() {
        let y = TOP + at as f64 * 26.0;
        let width = value / longest * (WIDTH - left - 110.0);
        svg.text("tick", (left - 8.0, y + 14.0), Anchor::End, name);
        svg.rect(
            &format!("p{}", at % COLOURS),
            (left, y),
            (width, 18.0),
            name,
        );
        let text = format!("{} {unit}", number(*value));
        svg.text("tick", (left + width + 6.0, y + 14.0), Anchor::Start, &text);
    }
    svg.finish(WIDTH, TOP + bars.len() as f64 * 26.0 + 8.0, label)
}

/// Quantiles of distributions, each a row with marks, on a logarithmic scale.
pub fn quantiles(unit: &str, rows: &[(String, Vec<(&str, f64)>)], label: &str) -> String {
    let values = || rows.iter().flat_map(|row| row.1.iter().map(|it| it.1));
    let low = values()
        .fold(f64::INFINITY, f64::min)
        .max(1.0)
        .log10()
        .floor();
    let high = values().fold(1.0, f64::max).log10().ceil().max(low + 1.0);
    let left = 200.0;
    let x =
        |value: f64| left + (value.max(1.0).log10() - low) / (high - low) * (WIDTH - left - 60.0);
    let mut svg = Svg::default();
    let bottom = TOP + rows.len() as f64 * 34.0;
    for decade in low as i32..=high as i32 {
        let at = x(10f64.powi(decade));
        svg.line("grid", (at, TOP), (at, bottom));
        let text = format!("{} {unit}", number(10f64.powi(decade)));
        svg.text("tick", (at, bottom + 18.0), Anchor::Middle, &text);
    }
    for (at, (name, marks)) in rows.iter().enumerate() {
        let y = TOP + 12.0 + at as f64 * 34.0;
        let class = format!("c{}", at % COLOURS);
        svg.text("tick", (left - 10.0, y + 5.0), Anchor::End, name);
        if let (Some(first), Some(last)) = (marks.first(), marks.last()) {
            svg.line(&class, (x(first.1), y), (x(last.1), y));
        }
        for (quantile, value) in marks {
            let tip = format!("{name}, {quantile}: {} {unit}", number(*value));
            svg.rect(
                &format!("p{}", at % COLOURS),
                (x(*value) - 1.5, y - 8.0),
                (3.0, 16.0),
                &tip,
            );
        }
    }
    svg.finish(WIDTH, bottom + 30.0, label)
}

/// A map: a value in each cell of a grid, `values` row by row from below.
pub struct Map<'a> {
    /// Where the columns stand.
    pub xs: &'a [f64],
    /// Where the rows stand.
    pub ys: &'a [f64],
    /// Of each row, of each column.
    pub values: &'a [Vec<f64>],
    /// Of the values.
    pub unit: &'a str,
}

impl Map<'_> {
    /// The map as a drawing.
    pub fn draw(&self, axes: Axes<'_>, label: &str) -> String {
        let values = || self.values.iter().flatten().copied();
        let (low, high) = (
            values().fold(f64::INFINITY, f64::min),
            values().fold(0.0, f64::max),
        );
        let shade = |value: f64| {
            let share = (value - low) / (high - low).max(1e-9);
            ((share * SHADES as f64) as usize).min(SHADES - 1)
        };
        let cell = (
            (WIDTH - LEFT - RIGHT) / self.xs.len().max(1) as f64,
            HEIGHT / self.ys.len().max(1) as f64,
        );
        let mut svg = Svg::default();
        for (row, (y, values)) in self.ys.iter().zip(self.values).enumerate() {
            let top = TOP + HEIGHT - (row + 1) as f64 * cell.1;
            if row.is_multiple_of(self.ys.len().div_ceil(8)) {
                let place = (LEFT - 8.0, top + cell.1 / 2.0 + 4.5);
                svg.text("tick", place, Anchor::End, &number(*y));
            }
            for (column, (x, value)) in self.xs.iter().zip(values).enumerate() {
                let corner = (LEFT + column as f64 * cell.0, top);
                let tip = format!(
                    "{} {} at {}, {}",
                    number(*value),
                    self.unit,
                    number(*x),
                    number(*y)
                );
                svg.rect(
                    &format!("h{}", shade(*value)),
                    corner,
                    (cell.0 + 0.3, cell.1 + 0.3),
                    &tip,
                );
            }
        }
        for (column, x) in self
            .xs
            .iter()
            .enumerate()
            .step_by(self.xs.len().div_ceil(8).max(1))
        {
            let place = (LEFT + (column as f64 + 0.5) * cell.0, TOP + HEIGHT + 18.0);
            svg.text("tick", place, Anchor::Middle, &number(*x));
        }
        names(&mut svg, axes);
        for at in 0..SHADES {
            let corner = (WIDTH - RIGHT + 14.0, TOP + 20.0 + at as f64 * LEGEND);
            svg.rect(&format!("h{at}"), corner, (22.0, 14.0), "");
            let from = low + (high - low) * at as f64 / SHADES as f64;
            let text = format!("from {} {}", number(from), self.unit);
            svg.text(
                "tick",
                (corner.0 + 28.0, corner.1 + 11.5),
                Anchor::Start,
                &text,
            );
        }
        svg.finish(WIDTH, TOP + HEIGHT + BOTTOM, label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_write_them() {
        for (value, text) in [
            (0.0, "0"),
            (1_234_567.0, "1,234,567"),
            (999.0, "999"),
            (12.34, "12.3"),
            (5.0, "5"),
            (0.766, "0.77"),
            (-1_500.0, "-1,500"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
