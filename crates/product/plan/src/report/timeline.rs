//! The time line of a network: a row for each channel, every state with its sending, its budget, its waiting and
//! what is left until its deadline.

use bumpless_svg::{Anchor, Svg};

use super::schedule::{Job, Schedule, schedule};
use super::{Drawing, units};
use crate::input::Scenario;
use crate::resource::{Blocking, Resource};

const WIDTH: f64 = 1190.0;
/// For names of 32 characters.
const LEFT: f64 = 240.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 26.0;
const ROW: f64 = 26.0;
const BAR: f64 = 16.0;
/// Channels that are drawn.
const ROWS: usize = 40;

struct Frame<'a> {
    scenario: &'a Scenario,
    resource: &'a Resource,
    length: u64,
    /// For each task, its row; `None` if it is not drawn.
    rows: Vec<Option<usize>>,
}

impl Frame<'_> {
    fn x(&self, nanos: u64) -> f64 {
        let share = nanos.min(self.length) as f64 / self.length.max(1) as f64;
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }

    fn name(&self, task: usize) -> &str {
        &self.scenario.channels[self.resource.channels[task]].name
    }

    /// A piece of a bar; too short ones are still seen, and what is spare among what is sent.
    fn bar(&self, svg: &mut Svg, class: &str, row: usize, (from, to): (u64, u64), tip: &str) {
        if from >= self.length || to <= from {
            return;
        }
        let y = TOP + row as f64 * ROW + (ROW - BAR) / 2.0;
        let least = if class == "budget" { 1.6 } else { 0.6 };
        let width = (self.x(to) - self.x(from)).max(least);
        svg.rect(class, (self.x(from), y), (width, BAR), tip);
    }
}

/// The time line of `resource`.
pub fn draw(scenario: &Scenario, resource: &Resource, name: &str) -> Drawing {
    let planned = schedule(resource);
    let mut order: Vec<usize> = (0..resource.tasks.len()).collect();
    order.sort_by_key(|&task| (resource.tasks[task].deadline, resource.ids[task]));
    let mut rows = vec![None; order.len()];
    for (row, &task) in order.iter().take(ROWS).enumerate() {
        rows[task] = Some(row);
    }
    let frame = Frame {
        scenario,
        resource,
        length: planned.length,
        rows,
    };
    let mut svg = Svg::default();
    let count = order.len().min(ROWS);
    axis(&mut svg, &frame, count);
    for (row, &task) in order.iter().take(ROWS).enumerate() {
        let y = TOP + row as f64 * ROW + ROW / 2.0 + 4.0;
        svg.text("tick", (LEFT - 8.0, y), Anchor::End, frame.name(task));
    }
    for job in &planned.jobs {
        state(&mut svg, &frame, job);
    }
    let height = TOP + count as f64 * ROW + 8.0;
    Drawing {
        caption: caption(name, &planned, order.len()),
        svg: svg.finish(WIDTH, height, &format!("Time line of {name}")),
    }
}

fn caption(name: &str, planned: &Schedule, channels: usize) -> String {
    let length = units::time(planned.length as f64);
    let what = if planned.whole {
        format!("over {length}, after which everything repeats")
    } else {
        format!("over its first {length}; it repeats only after much longer")
    };
    let left_out = channels.saturating_sub(ROWS);
    let more = match left_out {
        0 => String::new(),
        n => format!(" {n} channels with longer deadlines are not drawn."),
    };
    format!(
        "Time line of {name} {what}, from the worst start: all channels publish at once, each state is the \
         largest and loses its whole budget.{more}"
    )
}

fn axis(svg: &mut Svg, frame: &Frame<'_>, rows: usize) {
    const PARTS: u64 = 10;
    for part in 0..=PARTS {
        let at = frame.length / PARTS * part;
        let x = frame.x(at);
        svg.line("grid", (x, TOP - 4.0), (x, TOP + rows as f64 * ROW));
        let anchor = match part {
            0 => Anchor::Start,
            PARTS => Anchor::End,
            _ => Anchor::Middle,
        };
        svg.text("tick", (x, TOP - 10.0), anchor, &units::time(at as f64));
    }
}

fn state(svg: &mut Svg, frame: &Frame<'_>, job: &Job) {
    let Some(row) = frame.rows[job.task] else {
        return;
    };
    let task = frame.resource.tasks[job.task];
    let end = job.end(task.cost);
    let blocking = &frame.resource.blocking[job.task];
    let waiting = blocking.as_ref().map_or(0, Blocking::total);
    let answered = end.map(|end| end.saturating_add(waiting));
    let tip = tip(frame, job, answered);
    let late = answered.is_some_and(|at| at > job.deadline);
    if let (Some(end), Some(answered)) = (end, answered) {
        let until = answered.min(job.deadline);
        frame.bar(svg, "wait", row, (end, until), &tip);
        frame.bar(svg, "slack", row, (answered, job.deadline), &tip);
        frame.bar(svg, "late", row, (job.deadline.max(end), answered), &tip);
    }
    let channel = &frame.scenario.channels[frame.resource.channels[job.task]];
    let mut state = task.cost - share_of_budget(frame.scenario, channel, task.cost);
    for &(from, to) in &job.sent {
        let plain = state.min(to - from);
        let class = if late { "send late" } else { "send" };
        frame.bar(svg, class, row, (from, from + plain), &tip);
        frame.bar(svg, "budget", row, (from + plain, to), &tip);
        state -= plain;
    }
    if job.deadline <= frame.length {
        let (x, y) = (frame.x(job.deadline), TOP + row as f64 * ROW);
        svg.line("deadline", (x, y + 2.0), (x, y + ROW - 2.0));
    }
}

/// How much of a state's time its budget takes.
fn share_of_budget(scenario: &Scenario, channel: &crate::input::Channel, cost: u64) -> u64 {
    let Some(link) = channel
        .links
        .iter()
        .find_map(|id| scenario.links.get(usize::from(id.0)))
    else {
        return 0;
    };
    let once = u128::from(scenario.packets.state_on(link, channel.size));
    let packet = scenario.packets.largest_on(link, channel.size);
    let again = u128::from(channel.budget) * u128::from(packet);
    u64::try_from(u128::from(cost) * again / (once + again).max(1)).unwrap_or(0)
}

fn tip(frame: &Frame<'_>, job: &Job, answered: Option<u64>) -> String {
    let at = |nanos: u64| units::time(nanos as f64);
    let name = frame.name(job.task);
    let begin = format!(
        "{name}, state {}, published at {}",
        job.number,
        at(job.published)
    );
    let Some(answered) = answered else {
        return format!("{begin}, deadline {}", at(job.deadline));
    };
    if answered > job.deadline {
        let late = at(answered - job.deadline);
        return format!(
            "{begin}: acknowledged by {} at worst, {late} late",
            at(answered)
        );
    }
    let left = at(job.deadline - answered);
    format!(
        "{begin}: acknowledged by {} at worst, deadline {}, {left} left",
        at(answered),
        at(job.deadline)
    )
}
