//! The plots of a run, all on one time axis.

use super::decimate::decimate;
use super::panel::{COLUMNS, Panel, Scale};
use crate::evaluate::{Limits, deviations, gaps_in};
use crate::runlog::{EventKind, OwnProgram, Run, Sample, TransferOutcome, Write};
use bumpless_svg::Anchor;

/// A drawing with its heading and the explanation of its colours.
pub struct Plot {
    /// What is shown, with unit.
    pub heading: &'static str,
    /// What it says, in one sentence.
    pub note: String,
    /// Colours and what they mean, as style class and text.
    pub key: Vec<(&'static str, String)>,
    /// The drawing.
    pub svg: String,
}

const TANKS: [&str; 4] = ["tank1", "tank2", "tank3", "tank4"];

/// From the first phase's begin to the last one's end.
pub fn extent(run: &Run) -> (u64, u64) {
    let from = run.phases.first().map_or(0, |phase| phase.from_ns);
    let to = run.phases.last().map_or(1, |phase| phase.to_ns);
    (from, to.max(from + 1))
}

/// All plots in the order in which they stand on the page.
pub fn all(run: &Run, limits: &Limits) -> Vec<Plot> {
    let mut plots = match &run.program {
        None => vec![
            levels(run, [0, 1]),
            levels(run, [2, 3]),
            deviation(run),
            pumps(run),
        ],
        Some(program) => vec![outputs(run, program)],
    };
    plots.extend([roles(run), gaps(run, limits), transfers(run)]);
    if !run.stalls.is_empty() {
        plots.push(stalls(run));
    }
    plots
}

/// A curve through the samples in the extent.
fn curve(
    panel: &mut Panel,
    extent: (u64, u64),
    samples: &[Sample],
    class: &str,
    value: impl Fn(&Sample) -> f64,
) {
    let points: Vec<_> = samples
        .iter()
        .filter(|sample| (extent.0..=extent.1).contains(&sample.time_ns))
        .map(|sample| (panel.x(sample.time_ns), panel.y(value(sample))))
        .collect();
    panel.svg.polyline(class, decimate(&points, COLUMNS));
}

/// The lowest and highest of `values`, widened a little; a default if there is none.
fn scale_of(values: impl Iterator<Item = f64>, otherwise: (f64, f64)) -> Scale {
    let (low, high) = values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
            (low.min(v), high.max(v))
        });
    let (low, high) = if low <= high { (low, high) } else { otherwise };
    let margin = ((high - low) * 0.08).max(1e-3);
    Scale::Linear(low - margin, high + margin)
}

/// The levels of two of the tanks, with set points where there are some.
fn levels(run: &Run, tanks: [usize; 2]) -> Plot {
    let controlled = tanks == [0, 1];
    let extent = extent(run);
    let inside = |s: &&Sample| (extent.0..=extent.1).contains(&s.time_ns);
    let set_points = |s: &Sample| s.set_points.into_iter().filter(move |_| controlled);
    let values = run.samples.iter().filter(inside);
    let values = values.flat_map(|s| tanks.map(|i| s.levels[i]).into_iter().chain(set_points(s)));
    let height = if controlled { 200.0 } else { 90.0 };
    let mut panel = Panel::new(run, extent, height, scale_of(values, (0.0, 20.0)));
    for tank in tanks {
        let class = format!("curve baseline {}", TANKS[tank]);
        curve(&mut panel, extent, &run.baseline, &class, |s| {
            s.levels[tank]
        });
    }
    for tank in tanks.into_iter().filter(|_| controlled) {
        let class = format!("curve wanted {}", TANKS[tank]);
        curve(&mut panel, extent, &run.samples, &class, |s| {
            s.set_points[tank]
        });
    }
    for tank in tanks {
        let class = format!("curve {}", TANKS[tank]);
        curve(&mut panel, extent, &run.samples, &class, |s| s.levels[tank]);
    }
    let mut key: Vec<_> = tanks.map(|i| (TANKS[i], format!("tank {}", i + 1))).into();
    if controlled {
        key.push(("dashed", "set point".into()));
    }
    key.push(("wide", "computed run without faults".into()));
    let (heading, note) = match controlled {
        true => (
            "Levels of the controlled tanks, cm",
            "They follow their set points through every fault, as they would without.",
        ),
        false => (
            "Levels of the upper tanks, cm",
            "They drain into the controlled ones.",
        ),
    };
    Plot {
        heading,
        note: note.into(),
        key,
        svg: panel.finish(heading),
    }
}

fn deviation(run: &Run) -> Plot {
    let extent = extent(run);
    let apart = deviations(run, extent.0, extent.1);
    let highest = apart.iter().map(|&(_, mm)| mm).fold(0.1, f64::max) * 1.15;
    let mut panel = Panel::new(run, extent, 90.0, Scale::Linear(0.0, highest));
    let points: Vec<_> = apart
        .iter()
        .map(|&(t, mm)| (panel.x(t), panel.y(mm)))
        .collect();
    panel
        .svg
        .polyline("curve plain", decimate(&points, COLUMNS));
    Plot {
        heading: "Largest difference from the run without faults, mm",
        note: "Over all four tanks; the computed run has no jitter and no faults.".into(),
        key: Vec::new(),
        svg: panel.finish("difference of levels from the computed run over time"),
    }
}

fn pumps(run: &Run) -> Plot {
    let extent = extent(run);
    let accepted = || {
        run.writes
            .iter()
            .filter(|w| w.accepted && (extent.0..=extent.1).contains(&w.time_ns))
    };
    let scale = scale_of(
        accepted().flat_map(|write| write.outputs.iter().copied()),
        (0.0, 10.0),
    );
    let mut panel = Panel::new(run, extent, 130.0, scale);
    for (pump, tank) in TANKS[..2].iter().enumerate() {
        let points: Vec<_> = accepted()
            .map(|w| (panel.x(w.time_ns), panel.y(w.outputs[pump])))
            .collect();
        panel
            .svg
            .polyline(&format!("curve {tank}"), decimate(&points, COLUMNS));
    }
    Plot {
        heading: "Outputs: pump voltages, V",
        note: "Every write that the plant accepted, whoever sent it.".into(),
        key: (0..2)
            .map(|i| (TANKS[i], format!("pump {}", i + 1)))
            .collect(),
        svg: panel.finish("pump voltages over time"),
    }
}

/// The first outputs of a program, each between its own least and greatest value, and where one differs.
fn outputs(run: &Run, program: &OwnProgram) -> Plot {
    let extent = extent(run);
    let inside = |time_ns: u64| (extent.0..=extent.1).contains(&time_ns);
    let accepted = || {
        run.writes
            .iter()
            .filter(|write| write.accepted && inside(write.time_ns))
    };
    let mut panel = Panel::new(run, extent, 150.0, Scale::Linear(-0.05, 1.05));
    let shown = program.outputs.min(TANKS.len());
    let mut key: Vec<(&'static str, String)> = Vec::new();
    for (output, class) in TANKS[..shown].iter().enumerate() {
        let value = |write: &Write| write.outputs.get(output).copied().unwrap_or(f64::NAN);
        let (low, high) = accepted()
            .map(value)
            .fold((f64::MAX, f64::MIN), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        let share = |value: f64| match high > low {
            true => (value - low) / (high - low),
            false => 0.5,
        };
        let points: Vec<_> = accepted()
            .map(|write| (panel.x(write.time_ns), panel.y(share(value(write)))))
            .collect();
        let curve = decimate(&points, COLUMNS);
        panel.svg.polyline(&format!("curve {class}"), curve);
        key.push((
            class,
            format!("output {output}, from {low:.4} to {high:.4}"),
        ));
    }
    let differing = program.compared.iter().filter(|it| it.differs.is_some());
    let crosses: Vec<_> = differing
        .filter(|it| inside(it.time_ns))
        .map(|it| (panel.x(it.time_ns), panel.y(1.0)))
        .collect();
    for &place in decimate(&crosses, COLUMNS / 4).iter() {
        panel.svg.cross("failed", place);
    }
    if !crosses.is_empty() {
        key.push(("failedkey", "differs from the program alone".into()));
    }
    Plot {
        heading: "Outputs, each in its own range",
        note: format!(
            "The first {shown} of {}: every write that the device accepted, whoever sent it.",
            program.outputs
        ),
        key,
        svg: panel.finish("outputs over time"),
    }
}

fn roles(run: &Run) -> Plot {
    let extent = extent(run);
    let mut panel = Panel::new(run, extent, 34.0 * run.nodes.len() as f64, Scale::None);
    for (index, node) in run.nodes.iter().enumerate() {
        let y = panel.top() + 4.0 + 34.0 * index as f64;
        panel.svg.text("tick", (55.0, y + 17.0), Anchor::End, node);
        for (from, to, role, epoch) in bands(run, node, extent) {
            let (x, end) = (panel.x(from), panel.x(to));
            let class = match role.as_str() {
                "primary" => "role primary",
                "backup" => "role backup",
                "" => "role gone",
                _ => "role other",
            };
            let tip = format!(
                "{node}: {}",
                if role.is_empty() {
                    "not running"
                } else {
                    &role
                }
            );
            panel.svg.rect(class, (x, y), (end - x, 26.0), &tip);
            if role == "primary" && end - x > 70.0 {
                let text = format!("epoch {epoch}");
                panel
                    .svg
                    .text("onrole", (x + 6.0, y + 17.5), Anchor::Start, &text);
            }
        }
    }
    Plot {
        heading: "Roles",
        note: "Who is primary, with the epoch that its outputs carry.".into(),
        key: ["primary", "backup", "other", "gone"]
            .into_iter()
            .zip(["primary", "backup", "starting", "not running"].map(String::from))
            .collect(),
        svg: panel.finish("roles of both nodes over time"),
    }
}

/// Stretches of one role of `node`: from, to, role (empty: not running) and epoch.
fn bands(run: &Run, node: &str, (from, to): (u64, u64)) -> Vec<(u64, u64, String, u64)> {
    let mut bands = Vec::new();
    let (mut since, mut role, mut epoch) = (from, String::new(), 0);
    for event in run
        .events
        .iter()
        .filter(|e| e.node == node && e.time_ns <= to)
    {
        let (next, next_epoch) = match &event.kind {
            EventKind::Role { to, epoch, .. } => (to.clone(), *epoch),
            EventKind::Started {} => ("starting".into(), 0),
            EventKind::Gone {} | EventKind::Stopping {} => (String::new(), 0),
            _ => continue,
        };
        let at = event.time_ns.max(from);
        if at > since {
            bands.push((since, at, std::mem::take(&mut role), epoch));
        }
        (since, role, epoch) = (at, next, next_epoch);
    }
    bands.push((since, to, role, epoch));
    bands
}

fn gaps(run: &Run, limits: &Limits) -> Plot {
    let extent = extent(run);
    let scale = Scale::Logarithmic(1.0, 200.0);
    let mut panel = Panel::new(run, extent, 110.0, scale);
    let limit = panel.y(limits.gap_failover_ns as f64 / 1e6);
    panel.svg.line(
        "limit",
        (panel.x(extent.0), limit),
        (panel.x(extent.1), limit),
    );
    let points: Vec<_> = gaps_in(run, extent.0, extent.1)
        .iter()
        .map(|gap| (panel.x(gap.to_ns), panel.y(gap.length_ns() as f64 / 1e6)))
        .collect();
    let strokes = columns(&points);
    panel.svg.strokes(
        "stroke",
        strokes
            .into_iter()
            .map(|(x, low, high)| (x, low, high + 2.0)),
    );
    let limit = limits.gap_failover_ns / 1_000_000;
    Plot {
        heading: "Time between two outputs, ms",
        note: format!(
            "Logarithmic. The period is {:.0} ms; the line is the limit of {limit} ms for a failover.",
            run.period_ns as f64 / 1e6
        ),
        key: Vec::new(),
        svg: panel.finish("time between accepted outputs over time"),
    }
}

fn transfers(run: &Run) -> Plot {
    let extent = extent(run);
    let deadline_us = run.deadline_ns as f64 / 1e3;
    let scale = Scale::Logarithmic(10.0, 100_000f64.max(deadline_us * 2.0));
    let mut panel = Panel::new(run, extent, 150.0, scale);
    let line = panel.y(deadline_us);
    panel.svg.line(
        "limit",
        (panel.x(extent.0), line),
        (panel.x(extent.1), line),
    );
    let (mut safe, mut failed) = (Vec::new(), Vec::new());
    for event in run
        .events
        .iter()
        .filter(|e| (extent.0..=extent.1).contains(&e.time_ns))
    {
        if let EventKind::Transfer {
            outcome, took_us, ..
        } = event.kind
        {
            let point = (panel.x(event.time_ns), panel.y(took_us));
            match outcome {
                TransferOutcome::Safe => safe.push(point),
                TransferOutcome::Failed => failed.push(point),
            }
        }
    }
    let strokes = columns(&safe);
    panel.svg.strokes(
        "stroke",
        strokes
            .into_iter()
            .map(|(x, low, high)| (x, low, high + 2.0)),
    );
    for &(x, _) in decimate(&failed, COLUMNS / 4).iter() {
        panel.svg.cross("failed", (x, line));
    }
    let mut key = vec![(
        "plainkey",
        "safe (from publication to acknowledgement)".into(),
    )];
    if !failed.is_empty() {
        key.push(("failedkey", "given up".into()));
    }
    Plot {
        heading: "Transfer of the state to the backup, us",
        note: format!(
            "Logarithmic. The line is the deadline of {:.0} ms.",
            deadline_us / 1e3
        ),
        key,
        svg: panel.finish("transfer times over time"),
    }
}

fn stalls(run: &Run) -> Plot {
    let extent = extent(run);
    let mut panel = Panel::new(run, extent, 22.0, Scale::None);
    let (top, height) = (panel.top(), panel.height);
    let inside = |s: &&crate::runlog::Stall| (extent.0..extent.1).contains(&s.time_ns);
    for stall in run.stalls.iter().filter(inside) {
        let (x, end) = (panel.x(stall.from_ns()), panel.x(stall.time_ns));
        let tip = format!(
            "{:.1} ms, seen by {}",
            stall.length_ns as f64 / 1e6,
            stall.seen_by
        );
        panel
            .svg
            .rect("stalled", (x, top), ((end - x).max(1.5), height), &tip);
    }
    Plot {
        heading: "Stalls of this machine",
        note:
            "Moments in which a thread that was due did not run for more than 2 ms. They are taken \
               out of no figure."
                .into(),
        key: Vec::new(),
        svg: panel.finish("stalls of the machine over time"),
    }
}

/// One stroke per column of the plot, from the lowest to the highest point in it.
fn columns(points: &[(f64, f64)]) -> Vec<(f64, f64, f64)> {
    points
        .chunk_by(|a, b| a.0.floor() == b.0.floor())
        .map(|group| {
            let low = group.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
            let high = group.iter().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
            (group[0].0, low, high)
        })
        .collect()
}
