//! One plot among several that share a time axis: scales, grid, shading of phases and faults.

use crate::runlog::{PhaseKind, Run};
use bumpless_svg::{Anchor, Svg};

/// Width of every drawing, in its own units.
pub const WIDTH: f64 = 1000.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 24.0;
/// Columns to which curves are thinned.
pub const COLUMNS: usize = 900;

/// How the vertical axis is divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Evenly from the first to the second figure.
    Linear(f64, f64),
    /// By powers of ten from the first to the second figure, both above zero.
    Logarithmic(f64, f64),
    /// No axis: the caller places things itself.
    None,
}

/// A plot in the making.
pub struct Panel {
    /// The drawing.
    pub svg: Svg,
    /// Height of the plot area.
    pub height: f64,
    from_ns: u64,
    to_ns: u64,
    scale: Scale,
}

/// Short name of a phase that fits above its band.
fn label(kind: PhaseKind) -> &'static str {
    match kind {
        PhaseKind::Normal => "normal",
        PhaseKind::Loss => "5 % loss",
        PhaseKind::Bursts => "bursts of 10",
        PhaseKind::CutOne => "A cut",
        PhaseKind::Kill => "kill",
        PhaseKind::Return => "return",
        PhaseKind::Switchover => "switchover",
        PhaseKind::CutBoth => "A and B cut",
        PhaseKind::Healing => "healed",
        PhaseKind::Change => "change",
        PhaseKind::ChangeKill => "change, kill",
    }
}

impl Panel {
    /// A plot of the time from `from_ns` to `to_ns` with the phases of `run` as its background.
    pub fn new(run: &Run, (from_ns, to_ns): (u64, u64), height: f64, scale: Scale) -> Self {
        let mut panel = Self {
            svg: Svg::default(),
            height,
            from_ns,
            to_ns,
            scale,
        };
        panel.background(run);
        panel.grid();
        panel
    }

    /// Horizontal place of a time.
    pub fn x(&self, time_ns: u64) -> f64 {
        let span = self.to_ns.saturating_sub(self.from_ns).max(1) as f64;
        let time = time_ns.clamp(self.from_ns, self.to_ns.max(self.from_ns));
        LEFT + (time - self.from_ns) as f64 / span * (WIDTH - LEFT - RIGHT)
    }

    /// Vertical place of a figure; what lies outside of the scale is put at its edge.
    pub fn y(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear(low, high) => (value - low) / (high - low),
            Scale::Logarithmic(low, high) => (value.max(low) / low).log10() / (high / low).log10(),
            Scale::None => 0.0,
        };
        TOP + self.height * (1.0 - share.clamp(0.0, 1.0))
    }

    /// The plot area's upper edge.
    pub const fn top(&self) -> f64 {
        TOP
    }

    /// The plot area's lower edge.
    pub fn bottom(&self) -> f64 {
        TOP + self.height
    }

    fn background(&mut self, run: &Run) {
        for (index, phase) in run.phases.iter().enumerate() {
            let (from, to) = (self.x(phase.from_ns), self.x(phase.to_ns));
            let class = if index % 2 == 0 {
                "phase even"
            } else {
                "phase odd"
            };
            self.svg.rect(
                class,
                (from, TOP),
                (to - from, self.height),
                phase.kind.title(),
            );
            let Some((fault_from, fault_to)) = phase.fault else {
                continue;
            };
            let (x, x_end) = (self.x(fault_from), self.x(fault_to));
            if fault_to > fault_from {
                self.svg.rect(
                    "fault",
                    (x, TOP),
                    (x_end - x, self.height),
                    phase.kind.title(),
                );
            }
            self.svg.line("mark", (x, TOP), (x, TOP + self.height));
        }
    }

    fn grid(&mut self) {
        for value in self.ticks() {
            let y = self.y(value);
            self.svg.line("grid", (LEFT, y), (WIDTH - RIGHT, y));
            self.svg
                .text("tick", (LEFT - 7.0, y + 4.5), Anchor::End, &short(value));
        }
        let seconds = (self.to_ns.saturating_sub(self.from_ns)) as f64 / 1e9;
        let step = if seconds > 20.0 { 5 } else { 1 };
        for second in (0..=seconds as u64).step_by(step) {
            let x = self.x(self.from_ns + second * 1_000_000_000);
            self.svg
                .line("axis", (x, self.bottom()), (x, self.bottom() + 4.0));
            let text = if second == 0 {
                "0 s".into()
            } else {
                second.to_string()
            };
            self.svg
                .text("tick", (x, self.bottom() + 18.0), Anchor::Middle, &text);
        }
        self.svg.line(
            "axis",
            (LEFT, self.bottom()),
            (WIDTH - RIGHT, self.bottom()),
        );
    }

    fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear(low, high) => {
                let step = nice_step((high - low) / 6.0);
                let first = (low / step).ceil() as i64;
                let last = (high / step).floor() as i64;
                (first..=last).map(|i| i as f64 * step).collect()
            }
            Scale::Logarithmic(low, high) => {
                let decades = low.log10().ceil() as i32..=high.log10().floor() as i32;
                decades.map(|decade| 10f64.powi(decade)).collect()
            }
            Scale::None => Vec::new(),
        }
    }

    /// The names of the phases, to stand above the first plot.
    pub fn phase_names(run: &Run, (from_ns, to_ns): (u64, u64)) -> String {
        let mut panel = Self {
            svg: Svg::default(),
            height: 0.0,
            from_ns,
            to_ns,
            scale: Scale::None,
        };
        for phase in &run.phases {
            let middle = f64::midpoint(panel.x(phase.from_ns), panel.x(phase.to_ns));
            panel
                .svg
                .text("name", (middle, 15.0), Anchor::Middle, label(phase.kind));
        }
        panel.svg.finish(WIDTH, 20.0, "names of the phases")
    }

    /// The finished drawing.
    pub fn finish(self, label: &str) -> String {
        let height = TOP + self.height + BOTTOM;
        self.svg.finish(WIDTH, height, label)
    }
}

/// The smallest of 1, 2, 5 times a power of ten that is not below `step`.
fn nice_step(step: f64) -> f64 {
    let step = step.max(1e-9);
    let power = 10f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|n| n * power)
        .into_iter()
        .find(|&n| n >= step)
        .unwrap_or(step)
}

/// A figure in as few digits as it needs.
fn short(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    match rounded {
        v if v >= 10_000.0 => format!("{}k", v / 1000.0),
        v => format!("{v}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_figures_inside_the_scale() {
        assert_eq!([0.3, 1.0, 2.1, 7.0].map(nice_step), [0.5, 1.0, 5.0, 10.0]);
        let run = Run::default();
        let panel = Panel::new(&run, (0, 10), 100.0, Scale::Linear(-0.1, 10.3));
        assert_eq!(panel.ticks(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        let panel = Panel::new(&run, (0, 10), 100.0, Scale::Logarithmic(30.0, 20_000.0));
        assert_eq!(panel.ticks(), [100.0, 1000.0, 10_000.0]);
    }

    #[test]
    fn what_lies_outside_is_drawn_at_the_edge() {
        let panel = Panel::new(&Run::default(), (5, 10), 100.0, Scale::Linear(0.0, 1.0));
        assert_eq!((panel.x(0), panel.x(5)), (LEFT, LEFT));
        assert_eq!(panel.x(u64::MAX), WIDTH - RIGHT);
        assert_eq!((panel.y(9.0), panel.y(-9.0)), (panel.top(), panel.bottom()));
    }
}
