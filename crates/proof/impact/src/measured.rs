//! What was measured of a real task under a flood, beside the model of the same processor.
//!
//! The model has one figure of the computer's: what a packet takes of the processor, as measured. Everything else is the rate, the period and
//! the work; so the distance between both curves is what the model leaves out.

use bumpless_base::{Duration, Instant};
use bumpless_guard::mitigation::SlackSettings;
use bumpless_svg::escape;
use serde_json::{Value, json};

use crate::chart::{self, Axes, Line};
use crate::load::{Load, Shape, Stretch};
use crate::nic::{Moderation, Nic};
use crate::policy::{Order, Policy};
use crate::processor::{Critical, Delay, Processor, Setup, Work};
use crate::report::STYLE;

/// Schema of [`Measured::json`].
pub const SCHEMA: &str = "bumpless.impact-measured/1";

/// One rate, with a guard or without.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Step {
    /// Whether a guard decided what comes in.
    pub guarded: bool,
    /// Packets a second that were to be sent.
    pub asked_per_s: u64,
    /// How long it took.
    pub lasted: Duration,
    /// Packets of the flood that were sent.
    pub sent: u64,
    /// Packets that were worked off, those that the guard dropped among them.
    pub worked_off: u64,
    /// The processor's time for that.
    pub worked: Duration,
    /// Packets of the application's own that were sent to it.
    pub wanted: u64,
    /// Of these, those that it had.
    pub had: u64,
    /// Packets of the flood that the task read.
    pub let_in: u64,
    /// Packets that came while the task's socket was full.
    pub overflowed: u64,
    /// Jobs of the task.
    pub jobs: u64,
    /// Of these, late ones.
    pub late: u64,
    /// By how much, together.
    pub lateness: Duration,
    /// The latest one.
    pub worst: Duration,
}

impl Step {
    /// Packets of the flood a second.
    pub fn rate(&self) -> f64 {
        per_s(self.sent, self.lasted)
    }

    /// What a packet of the flood took, nanoseconds; `None`: there were too few to say.
    pub fn packet_ns(&self) -> Option<f64> {
        // One packet at a time takes a wake-up of the thread each.
        (self.sent.min(self.worked_off) >= 1000 && self.worked > Duration::ZERO)
            .then(|| self.worked.as_nanos() as f64 / self.worked_off as f64)
    }

    /// In percent of all jobs' targets.
    pub fn lateness_percent(&self, period: Duration) -> f64 {
        match self.jobs {
            0 => 0.0,
            jobs => 100.0 * self.lateness.as_nanos() as f64 / (jobs * period.as_nanos()) as f64,
        }
    }
}

/// A run: the task, and each step.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The computer and its kernel.
    pub computer: String,
    /// The task's period and target.
    pub period: Duration,
    /// What a job takes.
    pub work: Duration,
    /// How long the task runs in each step.
    pub lasts: Duration,
    /// In the order in which they were made.
    pub steps: Vec<Step>,
    /// What makes the figures worse than they need be, a sentence each.
    pub weaknesses: Vec<String>,
    /// It was ended before all steps were made.
    pub interrupted: bool,
}

impl Measured {
    /// What a packet takes with a guard or without: the middle one of all steps with a flood, nanoseconds.
    pub fn packet_ns(&self, guarded: bool) -> Option<f64> {
        let steps = self.steps_of(guarded);
        let mut all: Vec<_> = steps.filter_map(Step::packet_ns).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    }

    fn steps_of(&self, guarded: bool) -> impl Iterator<Item = &Step> {
        self.steps
            .iter()
            .filter(move |step| step.guarded == guarded)
    }

    /// What the model says of lateness at `rate`, percent, where a packet takes so many nanoseconds of the processor before anything else.
    pub fn model(&self, rate: f64, packet_ns: f64) -> f64 {
        let lasts = self.lasts;
        let stretch = Stretch {
            shape: Shape::Uniform(rate),
            lasts,
        };
        let interrupt = Duration::from_nanos(packet_ns.round() as u64);
        let settings = SlackSettings {
            target: self.period,
            work: self.work,
            interrupt,
        };
        let setup = Setup {
            nic: Nic::new(Moderation::Simple, RING),
            interrupt: Delay::constant(interrupt),
            packet: Delay::default(),
            queue: QUEUE,
            order: Order::CriticalFirst,
            critical: Critical::Periodic {
                period: self.period,
                work: Work::Fixed(self.work),
            },
            mitigation: Policy::None.build(settings),
            seed: 0,
        };
        let mut processor = Processor::new(setup, Load::new(vec![stretch], 60, 0));
        processor.run_until(Instant::ZERO + lasts);
        processor.tally_with_open_job().lateness_percent()
    }

    /// The model's lateness for a step.
    pub fn modelled(&self, step: &Step) -> Option<f64> {
        let packet_ns = self.packet_ns(step.guarded)?;
        Some(self.model(step.rate(), packet_ns))
    }

    /// In lines for a terminal.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            format!(
                "{}: a task that computes {} in each {}",
                self.computer, self.work, self.period
            ),
            format!(
                "{:<8}{:>10}{:>10}{:>12}{:>11}{:>16}{:>12}{:>10}{:>12}{:>9}",
                "guard",
                "asked/s",
                "sent/s",
                "worked/s",
                "packet",
                "wanted",
                "late jobs",
                "late",
                "worst",
                "model"
            ),
        ];
        lines.extend(self.steps.iter().map(|step| self.line(step)));
        lines.extend(self.weaknesses.iter().map(|it| format!("weakness: {it}")));
        lines
    }

    fn line(&self, step: &Step) -> String {
        let packet = step.packet_ns();
        format!(
            "{:<8}{:>10}{:>10.0}{:>12.0}{:>11}{:>16}{:>12}{:>9.2}%{:>12}{:>9}",
            in_words(step.guarded),
            step.asked_per_s,
            step.rate(),
            per_s(step.worked_off, step.lasted),
            packet.map_or("-".to_owned(), |it| format!("{it:.0} ns")),
            format!("{} of {}", step.had, step.wanted),
            format!("{} of {}", step.late, step.jobs),
            step.lateness_percent(self.period),
            step.worst.to_string(),
            self.modelled(step)
                .map_or("-".to_owned(), |it| format!("{it:.2}%")),
        )
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let step = |it: &Step| {
            json!({
                "guarded": it.guarded,
                "asked_per_s": it.asked_per_s,
                "lasted_ns": it.lasted.as_nanos(),
                "sent": it.sent,
                "worked_off": it.worked_off,
                "worked_ns": it.worked.as_nanos(),
                "wanted": it.wanted,
                "had": it.had,
                "let_in": it.let_in,
                "overflowed": it.overflowed,
                "jobs": it.jobs,
                "late": it.late,
                "lateness_percent": it.lateness_percent(self.period),
                "worst_ns": it.worst.as_nanos(),
                "model_lateness_percent": self.modelled(it),
            })
        };
        let packet_ns = |guarded| self.packet_ns(guarded).map(f64::round);
        json!({
            "schema": SCHEMA,
            "computer": self.computer,
            "period_ns": self.period.as_nanos(),
            "work_ns": self.work.as_nanos(),
            "packet_ns": {"unguarded": packet_ns(false), "guarded": packet_ns(true)},
            "steps": self.steps.iter().map(step).collect::<Vec<_>>(),
            "weaknesses": self.weaknesses,
            "interrupted": self.interrupted,
        })
    }

    /// The page.
    pub fn page(&self, version: &str) -> String {
        let pictures = [
            ("Lateness of the task", self.lateness()),
            (
                "Packets of the application's own that it had",
                self.share_had(),
            ),
        ];
        let figures = pictures.map(|(title, svg)| {
            format!("<figure><figcaption>{title}</figcaption>{svg}</figure>\n")
        });
        let lines = self.lines().join("\n");
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>Bumpless impact, measured</title>\n<style>\n{STYLE}{}</style></head><body><main>\n\
             <h1>A critical task and a flood on this computer</h1>\n\
             <p>Bumpless {}. Measured in namespaces of its own: packets are worked off on the task's processor, above the task, with a guard at \
             the driver and without. Beside it the model, which has one figure of this computer: what a packet takes.</p>\n\
             <div class=\"pictures\">\n{}</div>\n<pre>{}</pre>\n</main></body></html>\n",
            chart::STYLE,
            escape(version),
            figures.concat(),
            escape(&lines)
        )
    }

    fn lateness(&self) -> String {
        let axes = Axes {
            x: "packets of the flood a second",
            y: "lateness, % of the target",
        };
        let measured = |guarded, name: &str| {
            let steps = self.steps_of(guarded);
            let points = steps.map(|it| (it.rate(), it.lateness_percent(self.period)));
            Line::new(name, in_order(points))
        };
        let highest = self.steps.iter().map(Step::rate).fold(0.0, f64::max);
        let rates = (0..=CURVE).map(|at| highest * f64::from(at) / f64::from(CURVE));
        let modelled = |guarded, name: &str| {
            let packet_ns = self.packet_ns(guarded)?;
            let points = rates
                .clone()
                .map(|rate| (rate, self.model(rate, packet_ns)));
            Some(Line::new(name, points.collect()))
        };
        let mut lines = vec![
            measured(false, "without, measured"),
            measured(true, "with a guard, measured"),
        ];
        lines.extend(modelled(false, "without, model"));
        lines.extend(modelled(true, "with a guard, model"));
        chart::lines(
            axes,
            &lines,
            &[],
            "Lateness of a task by the rate of a flood",
        )
    }

    fn share_had(&self) -> String {
        let axes = Axes {
            x: "packets of the flood a second",
            y: "had, %",
        };
        let line = |guarded, name: &str| {
            let steps = self.steps_of(guarded).filter(|it| it.wanted > 0);
            let points = steps.map(|it| (it.rate(), 100.0 * it.had as f64 / it.wanted as f64));
            Line::new(name, in_order(points))
        };
        let lines = [line(false, "without"), line(true, "with a guard")];
        chart::lines(
            axes,
            &lines,
            &[],
            "Packets that an application had by the rate of a flood",
        )
    }
}

/// Packets in the ring of a virtual Ethernet interface (VETH_RING_SIZE).
const RING: usize = 256;
/// Packets between interrupt and driver: what is in it takes nothing of the task.
const QUEUE: u32 = 1 << 12;
/// Pieces of a curve of the model's.
const CURVE: u32 = 20;

fn in_order(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut points: Vec<_> = points.collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

const fn in_words(guarded: bool) -> &'static str {
    match guarded {
        true => "with",
        false => "without",
    }
}

fn per_s(count: u64, lasted: Duration) -> f64 {
    match lasted {
        Duration::ZERO => 0.0,
        lasted => count as f64 / lasted.as_secs_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(guarded: bool, rate: u64, packet_ns: u64) -> Step {
        Step {
            guarded,
            asked_per_s: rate,
            lasted: Duration::from_secs(1),
            sent: rate,
            worked_off: rate,
            worked: Duration::from_nanos(rate * packet_ns),
            wanted: 1000,
            had: 1000,
            jobs: 100,
            ..Step::default()
        }
    }

    fn measured(steps: Vec<Step>) -> Measured {
        Measured {
            computer: "a computer".to_owned(),
            period: Duration::from_millis(10),
            work: Duration::from_millis(8),
            lasts: Duration::from_secs(1),
            steps,
            weaknesses: vec!["no <priority>".to_owned()],
            interrupted: false,
        }
    }

    #[test]
    fn the_model_is_late_where_packets_take_more_than_the_task_leaves_and_not_before() {
        let run = measured(vec![]);
        // The task leaves a fifth of the processor: 100,000 packets of 2 us.
        assert!(run.model(90_000.0, 2000.0) < 1.0);
        assert!(run.model(150_000.0, 2000.0) > 10.0);
        assert!(run.model(150_000.0, 200.0) < 1.0);
    }

    #[test]
    fn a_packet_takes_what_the_middle_step_says_and_too_few_say_nothing() {
        let steps = [(100, 9000), (10_000, 2500), (20_000, 2000), (40_000, 1000)];
        let steps = steps.map(|(rate, ns)| step(false, rate, ns));
        let run = measured(steps.to_vec());
        assert_eq!(run.packet_ns(false), Some(2000.0));
        assert_eq!(run.packet_ns(true), None);
        assert_eq!(run.json()["packet_ns"]["guarded"], Value::Null);
    }

    #[test]
    fn lateness_is_that_of_all_jobs_in_percent_of_their_targets() {
        let late = Step {
            lateness: Duration::from_millis(250),
            late: 10,
            ..step(true, 10_000, 100)
        };
        let run = measured(vec![late]);
        assert_eq!(run.json()["steps"][0]["lateness_percent"], 25.0);
    }

    #[test]
    fn the_page_needs_nothing_else_and_shows_measured_and_modelled() {
        let run = measured(vec![step(false, 20_000, 2000), step(true, 20_000, 200)]);
        let page = run.page("1");
        for part in [
            "without, measured",
            "with a guard, model",
            "no &lt;priority&gt;",
            "1000 of 1000",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("http"));
    }
}
