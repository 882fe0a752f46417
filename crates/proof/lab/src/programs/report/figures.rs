//! How many substations the centres heard, over time.

use bumpless_svg::{Anchor, Svg};

use super::super::plan::Outage;
use super::super::protocol::Protocol;
use super::super::result::{Course, Pass, Programs};

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 34.0;
/// Height of one drawing over time.
const TALL: f64 = 80.0;
/// What is between two of them, for a name and an axis.
const BETWEEN: f64 = 52.0;
/// What is below the last one, for its axis.
const AXIS: f64 = 20.0;
const SECOND_MS: u64 = 1_000;

/// A drawing.
#[derive(Debug)]
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// The drawing.
    pub svg: String,
}

/// One for each protocol that was run.
pub fn all(programs: &Programs) -> Vec<Figure> {
    let of = |&protocol: &Protocol| figure(programs, protocol);
    Protocol::ALL.iter().filter_map(of).collect()
}

fn figure(programs: &Programs, protocol: Protocol) -> Option<Figure> {
    let of = |pass: Pass| {
        let all = programs.courses.iter();
        let courses = all.filter(|it| it.protocol == protocol && it.pass == pass);
        courses.collect::<Vec<_>>()
    };
    let passes = Pass::ALL.map(of);
    let within = passes.iter().flatten().next()?.within_ms;
    let title = format!(
        "{protocol}: of how many substations something was heard within the last {:.1} s (blue: {}, green: {}; shaded: what is named is dead)",
        within as f64 / 1e3,
        programs.centres.first()?,
        programs.centres.get(1)?
    );
    let mut svg = Svg::default();
    for (place, (name, courses)) in ["without iPRP", "under iPRP"]
        .iter()
        .zip(&passes)
        .enumerate()
    {
        let top = TOP + place as f64 * (TALL + BETWEEN);
        strip(
            &mut svg,
            (top, programs.settings.substations),
            name,
            courses,
        );
    }
    Some(Figure {
        svg: svg.finish(WIDTH, TOP + 2.0 * TALL + BETWEEN + AXIS, &title),
        title,
    })
}

fn strip(svg: &mut Svg, (top, substations): (f64, usize), name: &str, courses: &[&Course]) {
    let Some(first) = courses.first() else {
        return;
    };
    let span_ms = (first.heard.len() as u64 * first.step_ms).max(1);
    let x = |ms: u64| LEFT + ms as f64 / span_ms as f64 * (WIDTH - LEFT - RIGHT);
    let y = |count: f64| top + (1.0 - count / substations.max(1) as f64) * TALL;
    svg.text("tick", (LEFT, top - 18.0), Anchor::Start, name);
    for &(outage, from, to) in &first.outages {
        if outage == Outage::None {
            continue;
        }
        let [from, to] = [x(from), x(to)];
        svg.rect("outage", (from, top), (to - from, TALL), outage.title());
        svg.text("tick", (from, top - 4.0), Anchor::Start, outage.title());
    }
    for part in [0.0, 0.5, 1.0] {
        let count = part * substations as f64;
        svg.line("grid", (LEFT, y(count)), (WIDTH - RIGHT, y(count)));
        let place = (LEFT - 6.0, y(count) + 4.0);
        svg.text("tick", place, Anchor::End, &format!("{count:.0}"));
    }
    // The primary centre is drawn last: where both see the same, it is the one that is seen.
    for (place, course) in courses.iter().enumerate().rev() {
        let class = if place == 0 { "first" } else { "second" };
        let points = course.heard.iter().enumerate();
        let points =
            points.map(|(number, heard)| (x(number as u64 * course.step_ms), y(f64::from(*heard))));
        svg.polyline(class, points);
    }
    let every = match span_ms / SECOND_MS {
        0..20 => 2,
        20..60 => 5,
        _ => 20,
    };
    for second in (0..=span_ms / SECOND_MS).step_by(every) {
        let place = (x(second * SECOND_MS), top + TALL + 14.0);
        svg.text("tick", place, Anchor::Middle, &format!("{second} s"));
    }
}
