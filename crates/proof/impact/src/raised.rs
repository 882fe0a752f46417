//! A flow that matters beside a flood that is raised on this computer, to several times what ends it without a guard: figure 5.18, measured, and
//! the model's beside it.

use bumpless_base::Duration;
use bumpless_svg::escape;
use serde_json::{Value, json};

use crate::chart::{self, Axes, Line};
use crate::flows::{Case, Stack, run};
use crate::machine::ZYNQ_PATHS;
use crate::paper::limits;
use crate::report::STYLE;

/// Schema of [`Raised::json`].
pub const SCHEMA: &str = "bumpless.impact-raised/1";
/// What of its packets a flow has lost when it counts as ended, percent: one packet may be a machine's that stood still.
pub const ENDED_PERCENT: f64 = 1.0;
/// By so much the 99th percentile may be longer with the flood than without, percent.
pub const LONGER_MOST_PERCENT: f64 = 10.0;

/// Packets of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// That were sent.
    pub sent: u64,
    /// That its program had.
    pub had: u64,
}

impl Flow {
    /// Those that it had not.
    pub const fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.had)
    }
}

/// How long packets took from the sender's call until their program had them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// Half of them at most.
    pub p50: Duration,
    /// 99 of 100 at most.
    pub p99: Duration,
    /// The longest.
    pub worst: Duration,
    /// 99 of 100 of those at most in whose time no processor stood still.
    pub p99_calm: Duration,
}

/// One rate, with a guard or without.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RaisedStep {
    /// Whether a guard decided what comes in.
    pub guarded: bool,
    /// Packets of the flood a second that were to be sent.
    pub asked_per_s: u64,
    /// Those that were.
    pub sent_per_s: f64,
    /// The flow's packets that a task reads at the beginning of each of its periods.
    pub cyclic: Flow,
    /// The flow's packets that a thread waits for.
    pub prompt: Flow,
    /// How long the latter took.
    pub delays: Delays,
    /// Frames that found the interface's ring full, whoever's they were: nobody could look at them.
    pub ring_full: u64,
    /// Packets of the flow that the guard has decided on, where there is one: all of those that it was given.
    pub decided: Option<u64>,
    /// Jobs of the task.
    pub jobs: u64,
    /// Of these, late ones.
    pub late: u64,
    /// How often a processor stood still.
    pub stalls: u64,
    /// The longest time that one did.
    pub longest_stall: Duration,
}

impl RaisedStep {
    const fn sent(&self) -> u64 {
        self.cyclic.sent + self.prompt.sent
    }

    /// Packets of the flow that no program had.
    pub const fn lost(&self) -> u64 {
        self.cyclic.lost() + self.prompt.lost()
    }

    /// Those that no program had although the guard was given them.
    pub fn lost_behind_ring(&self) -> u64 {
        let had = self.cyclic.had + self.prompt.had;
        self.decided
            .map_or(self.lost(), |it| it.saturating_sub(had))
    }

    /// Packets of the flow that its programs had, percent.
    pub fn had_percent(&self) -> f64 {
        match self.sent() {
            0 => 100.0,
            sent => 100.0 * (sent - self.lost()) as f64 / sent as f64,
        }
    }

    /// Whether the flow is ended at this rate.
    pub fn is_ended(&self) -> bool {
        self.had_percent() <= 100.0 - ENDED_PERCENT
    }
}

/// A run: steps in the order in which they were made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Raised {
    /// The computer and its kernel.
    pub computer: String,
    /// How many times the rate that ends the flow was to be reached.
    pub times: u64,
    /// Each step.
    pub steps: Vec<RaisedStep>,
    /// What makes the figures worse than they need be, a sentence each.
    pub weaknesses: Vec<String>,
    /// It was ended before all steps were made.
    pub interrupted: bool,
}

impl Raised {
    /// The first step without a guard in which the flow is ended.
    pub fn end(&self) -> Option<&RaisedStep> {
        let mut floods = self.steps_of(false).filter(|it| it.asked_per_s > 0);
        floods.find(|it| it.is_ended())
    }

    fn steps_of(&self, guarded: bool) -> impl Iterator<Item = &RaisedStep> {
        self.steps.iter().filter(move |it| it.guarded == guarded)
    }

    /// A step's rate as a multiple of the one that ends the flow.
    pub fn times_of(&self, step: &RaisedStep) -> Option<f64> {
        let end = self.end()?.sent_per_s;
        (end > 0.0).then(|| step.sent_per_s / end)
    }

    /// The highest multiple with a guard.
    pub fn reached(&self) -> Option<f64> {
        let all = self.steps_of(true).filter_map(|it| self.times_of(it));
        all.max_by(f64::total_cmp)
    }

    /// Packets of the flow that were lost with a guard although they came as far as that.
    pub fn lost_with_guard(&self) -> u64 {
        self.steps_of(true).map(RaisedStep::lost_behind_ring).sum()
    }

    /// 99th percentiles with a guard where no processor stood still: without a flood, or with the highest rate, in order.
    fn p99s(&self, is_flooded: bool) -> Vec<f64> {
        let highest = self.steps_of(true).map(|it| it.asked_per_s).max();
        let rate = if is_flooded { highest } else { Some(0) };
        let steps = self
            .steps_of(true)
            .filter(|it| Some(it.asked_per_s) == rate);
        let mut all: Vec<_> = steps
            .map(|it| it.delays.p99_calm.as_nanos() as f64)
            .collect();
        all.sort_by(f64::total_cmp);
        all
    }

    /// The 99th percentile with a guard and the highest rate, of that without a flood, percent: the middle one of each.
    pub fn p99_percent(&self) -> Option<f64> {
        let [quiet, flooded] = [false, true].map(|it| {
            let all = self.p99s(it);
            all.get(all.len() / 2).copied()
        });
        quiet
            .filter(|&it| it > 0.0)
            .zip(flooded)
            .map(|(quiet, flooded)| 100.0 * flooded / quiet)
    }

    /// The longest 99th percentile without a flood, of the shortest one, percent: by so much this computer differs from itself.
    pub fn p99_of_itself_percent(&self) -> Option<f64> {
        let all = self.p99s(false);
        let least = all.first().filter(|&&it| it > 0.0)?;
        Some(100.0 * all.last()? / least)
    }

    /// In words what was found.
    pub fn verdict(&self) -> String {
        let Some(end) = self.end() else {
            return "no rate that this computer sends ends the flow without a guard, so nothing is shown".to_owned();
        };
        let of = |percent: f64| format!("{percent:.0} % of that without a flood");
        format!(
            "Without a guard {:.0} packets a second end the flow ({:.1} % of its packets arrive). With it, at {:.1} times as many: {} of its packets lost \
             behind the interface's ring, p99 {} (this computer's own differ by {:.0} %).",
            end.sent_per_s,
            end.had_percent(),
            self.reached().unwrap_or(0.0),
            self.lost_with_guard(),
            self.p99_percent().map_or("not measured".to_owned(), of),
            self.p99_of_itself_percent().unwrap_or(100.0) - 100.0
        )
    }

    /// In lines for a terminal.
    pub fn lines(&self) -> Vec<String> {
        let head = format!(
            "{:<8}{:>10}{:>10}{:>7}{:>16}{:>16}{:>9}{:>11}{:>11}{:>11}{:>11}{:>12}{:>16}",
            "guard",
            "asked/s",
            "sent/s",
            "times",
            "each cycle",
            "at once",
            "had",
            "ring full",
            "p50",
            "p99",
            "p99 calm",
            "late jobs",
            "stood still"
        );
        let mut lines = vec![self.computer.clone(), head];
        lines.extend(self.steps.iter().map(|it| self.line(it)));
        lines.push(self.verdict());
        lines.extend(self.weaknesses.iter().map(|it| format!("weakness: {it}")));
        lines
    }

    fn line(&self, step: &RaisedStep) -> String {
        let of = |flow: &Flow| format!("{} of {}", flow.had, flow.sent);
        let micros = |it: Duration| format!("{:.1} us", it.as_nanos() as f64 / 1e3);
        let times = self.times_of(step);
        format!(
            "{:<8}{:>10}{:>10.0}{:>7}{:>16}{:>16}{:>8.2}%{:>11}{:>11}{:>11}{:>11}{:>12}{:>16}",
            if step.guarded { "with" } else { "without" },
            step.asked_per_s,
            step.sent_per_s,
            times.map_or("-".to_owned(), |it| format!("{it:.1}")),
            of(&step.cyclic),
            of(&step.prompt),
            step.had_percent(),
            step.ring_full,
            micros(step.delays.p50),
            micros(step.delays.p99),
            micros(step.delays.p99_calm),
            format!("{} of {}", step.late, step.jobs),
            format!(
                "{}, {:.1} ms",
                step.stalls,
                step.longest_stall.as_nanos() as f64 / 1e6
            ),
        )
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let flow = |it: &Flow| json!({"sent": it.sent, "had": it.had});
        let step = |it: &RaisedStep| {
            json!({
                "guarded": it.guarded,
                "asked_per_s": it.asked_per_s,
                "sent_per_s": it.sent_per_s,
                "times": self.times_of(it),
                "cyclic": flow(&it.cyclic),
                "prompt": flow(&it.prompt),
                "had_percent": it.had_percent(),
                "p50_ns": it.delays.p50.as_nanos(),
                "p99_ns": it.delays.p99.as_nanos(),
                "p99_calm_ns": it.delays.p99_calm.as_nanos(),
                "worst_ns": it.delays.worst.as_nanos(),
                "ring_full": it.ring_full,
                "decided": it.decided,
                "jobs": it.jobs,
                "late": it.late,
                "stalls": it.stalls,
                "longest_stall_ns": it.longest_stall.as_nanos(),
            })
        };
        json!({
            "schema": SCHEMA,
            "computer": self.computer,
            "times_asked": self.times,
            "times_reached": self.reached(),
            "ended_at_per_s": self.end().map(|it| it.sent_per_s),
            "lost_with_guard": self.lost_with_guard(),
            "p99_percent": self.p99_percent(),
            "p99_of_itself_percent": self.p99_of_itself_percent(),
            "p99_holds": self.p99_percent().map(|it| it <= 100.0 + LONGER_MOST_PERCENT),
            "steps": self.steps.iter().map(step).collect::<Vec<_>>(),
            "weaknesses": self.weaknesses,
            "interrupted": self.interrupted,
        })
    }

    /// The page; `head` says which program, and where.
    pub fn page(&self, head: &str) -> String {
        let pictures = [
            (
                "5.18 on this computer: packets of the flow that its programs had",
                self.had(),
            ),
            ("5.18 in the model: HP packets that arrive", self.modelled()),
            (
                "On this computer: how long packets took until their program had them",
                self.delays(),
            ),
        ];
        let figures = pictures.map(|(title, svg)| {
            format!("<figure><figcaption>{title}</figcaption>{svg}</figure>\n")
        });
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>Bumpless impact, a flood raised</title>\n<style>\n{STYLE}{}</style></head><body><main>\n\
             <h1>A flow that matters, and a flood that is raised</h1>\n<p>{}</p>\n<p>{}</p>\n\
             <p>Rates are multiples of the flood that ends the flow without a guard: here as measured, in the model where the original stack of section \
             5.5.4 with its limit of 3 packets in 2 ms begins to lose packets. The model's stack with flows has an overall limit of 7,000 a second, beyond which it polls and the flow loses \
             packets, too; Linux polls by itself and has none (V-57).</p>\n\
             <div class=\"pictures\">\n{}</div>\n<pre>{}</pre>\n</main></body></html>\n",
            chart::STYLE,
            escape(head),
            escape(&self.verdict()),
            figures.concat(),
            escape(&self.lines().join("\n"))
        )
    }

    fn points(&self, guarded: bool, value: impl Fn(&RaisedStep) -> f64) -> Vec<(f64, f64)> {
        let steps = self.steps_of(guarded);
        let mut points: Vec<_> = steps
            .filter_map(|it| Some((self.times_of(it)?, value(it))))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    }

    fn had(&self) -> String {
        let axes = Axes {
            x: FLOOD,
            y: "had, %",
        };
        let had = RaisedStep::had_percent;
        let lines = [
            Line::new("without", self.points(false, had)),
            Line::new("with a guard", self.points(true, had)),
        ];
        chart::lines(
            axes,
            &lines,
            &[],
            "Packets that arrived by the rate of a flood",
        )
    }

    fn delays(&self) -> String {
        let axes = Axes {
            x: FLOOD,
            y: "microseconds",
        };
        let micros = |it: Duration| it.as_nanos() as f64 / 1e3;
        let lines = [
            Line::new(
                "without, p99 calm",
                self.points(false, |it| micros(it.delays.p99_calm)),
            ),
            Line::new(
                "with a guard, p99 calm",
                self.points(true, |it| micros(it.delays.p99_calm)),
            ),
            Line::new(
                "without, p50",
                self.points(false, |it| micros(it.delays.p50)),
            ),
            Line::new(
                "with a guard, p50",
                self.points(true, |it| micros(it.delays.p50)),
            ),
        ];
        chart::lines(axes, &lines, &[], "Delays by the rate of a flood")
    }

    fn modelled(&self) -> String {
        let axes = Axes {
            x: FLOOD,
            y: "arrive, %",
        };
        let most = self.times.max(1) as f64;
        let curve = |stack| {
            let at = |it: u32| most * f64::from(it) / f64::from(CURVE);
            let points = (0..=CURVE).map(|it| (at(it), modelled(stack, at(it))));
            points.collect()
        };
        let lines = [
            Line::new("original stack", curve(Stack::Original)),
            Line::new("with flows", curve(Stack::Flows)),
        ];
        chart::lines(
            axes,
            &lines,
            &[],
            "HP packets that arrive by the rate of LP packets, in the model",
        )
    }
}

const FLOOD: &str = "times the flood that ends the flow without a guard";
/// Pieces of a curve of the model's.
const CURVE: u32 = 24;
/// HP packets a second in the model: within their rate, and at no beat of the limits, where the same packets would be lost always or never.
const URGENT: f64 = 470.0;
/// LP packets a second beside these that reach the original stack's limit.
const ENDS: f64 = 1_030.0;

/// HP packets that arrive in the model of section 5.5.4 beside `times` the flood that reaches the original stack's limit, percent.
pub fn modelled(stack: Stack, times: f64) -> f64 {
    let (original, flows) = limits();
    let case = Case {
        stack,
        urgent: URGENT,
        leisurely: ENDS * times,
        limits: match stack {
            Stack::Original => original,
            _ => flows,
        },
        lasts: Duration::from_secs(3),
    };
    run(&case, &ZYNQ_PATHS).liveness()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(guarded: bool, rate: u64, had: u64) -> RaisedStep {
        RaisedStep {
            guarded,
            asked_per_s: rate,
            sent_per_s: rate as f64,
            cyclic: Flow { sent: 1000, had },
            prompt: Flow {
                sent: 1000,
                had: 1000,
            },
            delays: Delays {
                p99_calm: Duration::from_micros(40 + rate / 10_000),
                ..Delays::default()
            },
            ..RaisedStep::default()
        }
    }

    fn raised(steps: Vec<RaisedStep>) -> Raised {
        Raised {
            computer: "a <computer>".to_owned(),
            times: 6,
            steps,
            ..Raised::default()
        }
    }

    #[test]
    fn a_flow_is_ended_where_a_hundredth_is_lost_and_rates_are_multiples_of_that() {
        let steps = [
            // The machine stood still.
            step(false, 0, 900),
            step(false, 10_000, 990),
            step(false, 20_000, 970),
            step(true, 0, 1000),
            step(true, 120_000, 1000),
        ];
        let run = raised(steps.to_vec());
        assert_eq!(run.end().map(|it| it.asked_per_s), Some(20_000));
        assert_eq!(run.reached(), Some(6.0));
        assert_eq!(run.lost_with_guard(), 0);
        let json = run.json();
        assert_eq!(json["p99_percent"], 130.0);
        assert_eq!(json["p99_holds"], false);
        assert_eq!(json["ended_at_per_s"], 20_000.0);
    }

    #[test]
    fn what_the_ring_had_no_room_for_is_not_the_guards_loss_and_more_than_that_is() {
        let lost = |decided| RaisedStep {
            ring_full: 558,
            decided: Some(decided),
            ..step(true, 10_000, 990)
        };
        assert_eq!(raised(vec![lost(1_990)]).lost_with_guard(), 0);
        assert_eq!(raised(vec![lost(1_997)]).lost_with_guard(), 7);
    }

    #[test]
    fn where_nothing_ends_the_flow_nothing_is_shown_and_that_is_said() {
        let run = raised(vec![step(false, 500_000, 1000), step(true, 500_000, 1000)]);
        assert_eq!(run.json()["ended_at_per_s"], Value::Null);
        assert!(run.verdict().contains("nothing is shown"));
    }

    #[test]
    fn the_model_beside_it_loses_packets_beyond_its_limits_and_not_before() {
        assert!(modelled(Stack::Original, 0.9) > 99.0);
        assert!(modelled(Stack::Original, 2.0) < 90.0);
        assert!(modelled(Stack::Flows, 6.0) > 99.0);
    }

    #[test]
    fn the_page_needs_nothing_else_and_has_measured_beside_modelled() {
        let run = raised(vec![step(false, 20_000, 900), step(true, 120_000, 1000)]);
        let page = run.page("Bumpless 1");
        for part in [
            "5.18 in the model",
            "5.18 on this computer",
            "a &lt;computer&gt;",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("http"));
    }
}
