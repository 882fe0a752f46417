//! The paper's figures 4 to 7, drawn from our data.

use bumpless_svg::{Anchor, Svg};
use bumpless_wan::emulation::Line;

use crate::study::analysis::{Cell, Trips, cells, sent_us};
use crate::study::paper;
use crate::study::result::{Run, Study};
use crate::study::transport::{line_name, line_title};

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 250.0;
const RIGHT: f64 = 40.0;
/// Where drawings over time begin.
const EDGE: f64 = 70.0;
const TOP: f64 = 26.0;
/// Height of a row of boxes, one for each phase.
const ROW: f64 = 46.0;
const BOX: f64 = 10.0;
/// Height of a drawing over time.
const TALL: f64 = 90.0;
/// What is between two of them, for a name and an axis.
const BETWEEN: f64 = 44.0;
/// Powers of ten of milliseconds at the ends of an axis.
const LOW: f64 = 0.0;
const HIGH: f64 = 4.0;

/// A drawing.
#[derive(Debug)]
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// The drawing.
    pub svg: String,
}

/// Every figure for which there is something to show.
pub fn all(study: &Study) -> Vec<Figure> {
    let cells = cells(study);
    let mut figures = Vec::new();
    figures.extend(figure_4(study));
    figures.extend(boxes(&cells, Line::Ethernet, 5));
    figures.extend(figure_6(&cells));
    figures.extend(boxes(&cells, Line::Lte, 7));
    figures
}

/// How far along an axis of powers of ten a round trip lies, 0 to 1.
fn share(us: f64) -> f64 {
    let power = (us / 1e3).max(1e-3).log10();
    ((power - LOW) / (HIGH - LOW)).clamp(0.0, 1.0)
}

/// Values that an axis names, milliseconds.
const NAMED: [f64; 8] = [1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0];

fn x(us: f64) -> f64 {
    LEFT + share(us) * (WIDTH - LEFT - RIGHT)
}

/// Figures 5 and 7: before, at and after the failover.
fn boxes(cells: &[Cell<'_>], line: Line, number: u8) -> Option<Figure> {
    let of: Vec<_> = cells.iter().filter(|it| it.line == line).collect();
    if of.is_empty() {
        return None;
    }
    let backup = line_title(line);
    let title = format!(
        "Figure {number}: round trips before the outage, of the failover, and later while the way is dead, {backup} backup (bar: 1 to 99 %, stroke: median, cross: the paper's mean failover)"
    );
    // The paper's crosses are where its figures were measured as ours were, or where there is but one kind of ours.
    let is_loaded = |cell: &Cell<'_>| cell.load > 0;
    let both = of.iter().any(|it| is_loaded(it)) && !of.iter().all(|it| is_loaded(it));
    let papers = |cell: &Cell<'_>| !both || is_loaded(cell) == paper::loaded(line);
    let mut svg = Svg::default();
    let bottom = TOP + of.len() as f64 * ROW;
    for ms in NAMED {
        let x = x(ms * 1e3);
        let class = if ms == 10.0 { "limit" } else { "grid" };
        svg.line(class, (x, TOP), (x, bottom));
        svg.text("tick", (x, TOP - 8.0), Anchor::Middle, &format!("{ms} ms"));
    }
    for (place, cell) in of.iter().enumerate() {
        let y = TOP + place as f64 * ROW;
        svg.text(
            "tick",
            (LEFT - 10.0, y + 24.0),
            Anchor::End,
            &match cell.load {
                0 => cell.transport.title.to_owned(),
                load => format!("the same, beside {load}/s"),
            },
        );
        let phases = [
            ("before", "p1", &cell.before),
            ("failover", "p3", &cell.failovers),
            ("later", "p2", &cell.during),
        ];
        for (row, (name, class, trips)) in phases.into_iter().enumerate() {
            bar(
                &mut svg,
                y + 6.0 + row as f64 * (BOX + 2.0),
                (name, class),
                trips,
            );
        }
        let of = cell.transport.paper.filter(|_| papers(cell));
        if let Some(figures) = of.and_then(|row| paper::failover(row, line)) {
            svg.cross("paper", (x(figures.mean * 1e3), y + 6.0 + BOX * 1.5 + 2.0));
        }
    }
    Some(Figure {
        svg: svg.finish(WIDTH, bottom + 6.0, &title),
        title,
    })
}

fn bar(svg: &mut Svg, y: f64, (name, class): (&str, &str), trips: &Trips) {
    let ends = [1, 50, 99].map(|percent| trips.percentile(percent));
    let [Some(low), Some(median), Some(high)] = ends else {
        return;
    };
    let [low, median, high] = [low, median, high].map(f64::from);
    let tip = format!(
        "{name}: median {:.1} ms, 1 to 99 %: {:.1} to {:.1} ms, {} figures",
        median / 1e3,
        low / 1e3,
        high / 1e3,
        trips.count()
    );
    svg.rect(class, (x(low), y), ((x(high) - x(low)).max(2.0), BOX), &tip);
    svg.line("median", (x(median), y - 1.0), (x(median), y + BOX + 1.0));
}

/// Figure 4: one run over each way.
fn figure_4(study: &Study) -> Option<Figure> {
    let first = |backup: &str, over: &str| {
        let mut runs = study.runs.iter();
        runs.find(|run| run.backup == backup && run.over == over && !run.rtt_us.is_empty())
    };
    let mut rows = vec![("emulated network".to_owned(), first("none", "network"))];
    for line in [Line::Lte, Line::Ethernet] {
        let name = format!("backup, {}", line_title(line));
        rows.push((name, first(line_name(line), "backup")));
    }
    let rows: Vec<_> = rows
        .into_iter()
        .filter_map(|(name, run)| Some((name, run?)))
        .collect();
    over_time("Figure 4: a run without outage over each way", &rows)
}

/// Figure 6: the run of each transport whose failover is the median one.
fn figure_6(cells: &[Cell<'_>]) -> Option<Figure> {
    // As the paper's, without background traffic if there are such runs.
    let load = cells.iter().map(|it| it.load).min();
    let rows: Vec<_> = cells
        .iter()
        .filter(|cell| Some(cell.load) == load)
        .filter_map(|cell| {
            let name = format!("{}, {}", cell.transport.title, line_title(cell.line));
            Some((name, cell.typical()?))
        })
        .collect();
    over_time(
        "Figure 6: round trips before, during and after an outage (marked), for each transport the run with the median failover",
        &rows,
    )
}

/// Round trips of runs over time, a strip for each.
fn over_time(title: &str, rows: &[(String, &Run)]) -> Option<Figure> {
    let seconds = rows.iter().map(|(_, run)| run.rtt_us.len()).max()? as f64 / 20.0;
    let mut svg = Svg::default();
    for (place, (name, run)) in rows.iter().enumerate() {
        let top = TOP + place as f64 * (TALL + BETWEEN);
        strip(&mut svg, (top, seconds), name, run);
    }
    let height = TOP + rows.len() as f64 * (TALL + BETWEEN);
    Some(Figure {
        svg: svg.finish(WIDTH, height, title),
        title: title.to_owned(),
    })
}

fn strip(svg: &mut Svg, (top, seconds): (f64, f64), name: &str, run: &Run) {
    let at = |us: f64| EDGE + us / 1e6 / seconds * (WIDTH - EDGE - RIGHT);
    let y = |us: f64| top + (1.0 - share(us)) * TALL;
    if let (Some(cut), Some(healed)) = (run.cut_ns, run.healed_ns) {
        let [from, to] = [cut, healed].map(|ns| at(ns as f64 / 1e3));
        svg.rect("outage", (from, top), (to - from, TALL), "the way is dead");
    }
    for ms in [1.0, 10.0, 100.0, 1000.0] {
        svg.line("grid", (EDGE, y(ms * 1e3)), (WIDTH - RIGHT, y(ms * 1e3)));
        let place = (EDGE - 6.0, y(ms * 1e3) + 4.0);
        svg.text("tick", place, Anchor::End, &format!("{ms} ms"));
    }
    let path = run.path_us as f64 / 1e3;
    let name = format!("{name}, to {} ({path:.1} ms by its links)", run.substation);
    svg.text("tick", (EDGE, top - 5.0), Anchor::Start, &name);
    let points = run.rtt_us.iter().enumerate();
    let points = points
        .filter_map(|(number, us)| Some((at(sent_us(run, number) as f64), y(f64::from((*us)?)))));
    svg.polyline("trip", points);
    for (number, _) in run.rtt_us.iter().enumerate().filter(|(_, us)| us.is_none()) {
        svg.cross("lost", (at(sent_us(run, number) as f64), top + 6.0));
    }
    for second in (0..=seconds as u32).step_by(10) {
        let place = (at(f64::from(second) * 1e6), top + TALL + 14.0);
        svg.text("tick", place, Anchor::Middle, &format!("{second} s"));
    }
}
