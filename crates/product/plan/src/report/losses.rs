//! The first paper's figure 12 for one's own channels: states lost in a year over the retransmission budget.

use bumpless_base::LinkSet;
use bumpless_svg::{Anchor, Svg};

use super::{Drawing, units};
use crate::input::{Channel, Scenario};
use crate::losses::of_packet;
use crate::reliability::{state_loss, states_per_year};

const WIDTH: f64 = 1190.0;
const LEFT: f64 = 70.0;
/// For names of 32 characters.
const RIGHT: f64 = 340.0;
const TOP: f64 = 14.0;
const HEIGHT: f64 = 340.0;
const BOTTOM: f64 = 46.0;
/// Height of a row of the legend.
const LEGEND: f64 = 19.0;
/// Largest budget that is drawn, as in the paper; further if a channel's is.
pub(super) const BUDGETS: u32 = 10;
/// Labels below the axis at most.
const LABELS: usize = 20;
/// Losses below this are not drawn, as in the paper.
const CUT: f64 = 1e-12;
/// Channels that are drawn: colours that the style sheet knows.
pub const CHANNELS: usize = 12;

const LABEL: &str = "States lost in a year over the retransmission budget";
const BELOW: &str = "retransmission budget; a square marks the one that is planned with";

/// One channel's line.
pub(super) struct Line {
    pub name: String,
    /// Channels of the same line besides.
    pub more: usize,
    /// The one that is planned with.
    pub budget: Option<u32>,
    /// By budget; with one network, and with all.
    pub single: Vec<f64>,
    pub all: Vec<f64>,
}

impl Line {
    /// Whether other networks lessen what is lost.
    fn differs(&self) -> bool {
        self.all != self.single
    }
}

/// The figure; `None` if there is no channel.
pub fn draw(scenario: &Scenario) -> Option<Drawing> {
    let budgets = scenario.channels.iter().map(|channel| channel.budget + 1);
    let most = budgets.max()?.max(BUDGETS);
    let mut lines: Vec<Line> = scenario
        .channels
        .iter()
        .map(|channel| line(scenario, channel, most))
        .collect();
    // Those that lose most, one for each kind, in the configuration's order.
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by(|&a, &b| lines[b].single[0].total_cmp(&lines[a].single[0]));
    let mut kinds: Vec<usize> = Vec::new();
    for at in order {
        let same = |&known: &usize| {
            lines[known].single == lines[at].single
                && lines[known].all == lines[at].all
                && lines[known].budget == lines[at].budget
        };
        match kinds.iter().copied().find(same) {
            Some(known) => lines[known].more += 1,
            None => kinds.push(at),
        }
    }
    kinds.truncate(CHANNELS);
    kinds.sort_unstable();
    let drawn: Vec<&Line> = kinds.iter().map(|&at| &lines[at]).collect();
    let mut caption = format!("{LABEL} (first paper, figure 12)");
    if drawn.iter().any(|line| line.differs()) {
        caption += ", if all other networks are out of service; dashed: with all of them";
    }
    Some(Drawing {
        caption,
        svg: figure(&drawn, most, (LABEL, BELOW)),
    })
}

fn line(scenario: &Scenario, channel: &Channel, most: u32) -> Line {
    let packets = scenario.packets.count(channel.size);
    let yearly = states_per_year(channel.period);
    let curve = |p: f64| -> Vec<f64> {
        let lost = |budget| state_loss(packets, budget, p) * yearly;
        (0..=most).map(lost).collect()
    };
    let each = channel.links.iter().map(LinkSet::only);
    let worst = each.filter_map(|up| of_packet(scenario, channel, up));
    let all = of_packet(scenario, channel, channel.links);
    Line {
        name: channel.name.clone(),
        more: 0,
        budget: Some(channel.budget),
        single: curve(worst.fold(0.0, f64::max)),
        all: curve(all.unwrap_or(0.0)),
    }
}

struct Axes {
    most: u32,
    /// Powers of ten at the lower and upper edge.
    low: f64,
    high: f64,
}

impl Axes {
    fn x(&self, budget: usize) -> f64 {
        LEFT + budget as f64 / f64::from(self.most) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, lost: f64) -> f64 {
        TOP + (self.high - lost.max(CUT).log10()) / (self.high - self.low) * HEIGHT
    }
}

/// The lines up to a budget of `most`; `label` is what a screen reader says, `below` stands under the axis.
pub(super) fn figure(lines: &[&Line], most: u32, (label, below): (&str, &str)) -> String {
    let largest = lines.iter().map(|line| line.single[0]).fold(1.0, f64::max);
    let axes = Axes {
        most,
        low: CUT.log10(),
        high: largest.log10().ceil(),
    };
    let mut svg = Svg::default();
    for power in (axes.low as i32..=axes.high as i32).rev().step_by(2) {
        let y = axes.y(10f64.powi(power));
        svg.line("grid", (LEFT, y), (WIDTH - RIGHT, y));
        svg.text(
            "tick",
            (LEFT - 8.0, y + 4.5),
            Anchor::End,
            &format!("1e{power}"),
        );
    }
    let every = most as usize / LABELS + 1;
    for budget in (0..=most as usize).step_by(every) {
        let place = (axes.x(budget), TOP + HEIGHT + 18.0);
        svg.text("tick", place, Anchor::Middle, &budget.to_string());
    }
    let middle = (LEFT + (WIDTH - LEFT - RIGHT) / 2.0, TOP + HEIGHT + 38.0);
    svg.text("tick", middle, Anchor::Middle, below);
    for (at, line) in lines.iter().enumerate() {
        curve(&mut svg, &axes, at, (line, &line.single), "");
        if line.differs() {
            curve(&mut svg, &axes, at, (line, &line.all), " dash");
        }
        let (x, y) = (WIDTH - RIGHT + 14.0, TOP + 8.0 + at as f64 * LEGEND);
        svg.line(&format!("c{at}"), (x, y), (x + 24.0, y));
        let name = match line.more {
            0 => line.name.clone(),
            more => format!("{} and {more} alike", line.name),
        };
        svg.text("tick", (x + 30.0, y + 4.5), Anchor::Start, &name);
    }
    let legend = TOP + 20.0 + lines.len() as f64 * LEGEND;
    let height = (TOP + HEIGHT + BOTTOM).max(legend);
    svg.finish(WIDTH, height, label)
}

fn curve(svg: &mut Svg, axes: &Axes, at: usize, (line, lost): (&Line, &[f64]), dash: &str) {
    let seen = lost.iter().take_while(|&&lost| lost >= CUT).count();
    let point = |budget: usize| (axes.x(budget), axes.y(lost[budget]));
    let mut points: Vec<(f64, f64)> = (0..seen).map(point).collect();
    if let (Some(&last), Some(&beyond)) = (points.last(), lost.get(seen)) {
        // The last stretch leads towards what is cut off, as far as the edge.
        let share = match beyond {
            0.0 => 1.0,
            _ => (CUT / lost[seen - 1]).ln() / (beyond / lost[seen - 1]).ln(),
        };
        let x = last.0 + share * (axes.x(seen) - last.0);
        points.push((x, axes.y(CUT)));
    }
    svg.polyline(&format!("c{at}{dash}"), points);
    let Some(budget) = line.budget.map(|budget| budget as usize) else {
        return;
    };
    if let Some(&planned) = lost.get(budget).filter(|&&lost| lost >= CUT) {
        let tip = format!(
            "{}: budget {budget}, {} states lost in a year{}",
            line.name,
            units::losses(planned),
            if dash.is_empty() {
                " on one network"
            } else {
                " with all networks"
            }
        );
        let corner = (axes.x(budget) - 4.0, axes.y(planned) - 4.0);
        svg.rect(&format!("p{at}"), corner, (8.0, 8.0), &tip);
    }
}
