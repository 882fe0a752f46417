//! Figures 5.8 to 5.10: the scheduler alone, the four mitigations, and ours.

mod claims;
mod sweep;

use self::claims::{beats, claims};
use self::sweep::{Measured, sweeps};
pub use self::sweep::{Sweep, sweep};
use super::claim::{Part, Picture};
use crate::chart::{Axes, Line, lines};
use crate::machine::ESP32;
use crate::patterns::Trial;
use crate::policy::Policy;
use crate::processor::Work;

const TIME: &str = "step of the pyramid";

fn packets(file: &str, title: &str, sweep: &Sweep) -> Picture {
    let drawn = [
        sweep.line("sent", |it| Measured::per_second(it.tally.sent)),
        sweep.line("received", |it| Measured::per_second(it.tally.received)),
        sweep.line("processed", |it| Measured::per_second(it.tally.handled)),
    ];
    let axes = Axes {
        x: TIME,
        y: "packets a second",
    };
    Picture::new(file, title, |label| lines(axes, &drawn, &[], label))
}

fn late(file: &str, title: &str, sweeps: &[(&str, &Sweep)]) -> Picture {
    let line = |(name, sweep): &(&str, &Sweep)| sweep.line(name, |it| it.tally.lateness_percent());
    let drawn: Vec<Line> = sweeps.iter().map(line).collect();
    let axes = Axes {
        x: TIME,
        y: "lateness, % of the target",
    };
    Picture::new(file, title, |label| lines(axes, &drawn, &[], label))
}

/// The part of the page with the scheduler and the four mitigations.
pub fn mitigations() -> Part {
    let all = sweeps();
    let [small, middle, large] = &all.queues;
    let pictures = vec![
        packets(
            "5-8a",
            "5.8a: the scheduler alone, task first: packets",
            &all.first,
        ),
        late(
            "5-8b",
            "5.8b: the scheduler alone: lateness",
            &[("task first", &all.first)],
        ),
        late(
            "5-8-equal",
            "5.3: the scheduler alone, equal priorities: lateness",
            &[("equal", &all.equal)],
        ),
        packets(
            "5-8-equal-packets",
            "5.3: the scheduler alone, equal priorities: packets",
            &all.equal,
        ),
        packets(
            "5-8c",
            "5.8c: burst mitigation, 600 in 20 ms: packets",
            &all.burst,
        ),
        late(
            "5-8d",
            "5.8d: burst mitigation: lateness",
            &[
                ("600 in 20 ms", &all.burst),
                ("900 in 20 ms", &all.burst_raised),
            ],
        ),
        packets(
            "5-9a",
            "5.9a: hysteresis mitigation, stopped at 90 %: packets",
            &all.hysteresis,
        ),
        late(
            "5-9b",
            "5.9b: hysteresis mitigation: lateness",
            &[("stopped at 90 %", &all.hysteresis)],
        ),
        packets(
            "5-9c",
            "5.9c: budget mitigation, the driver sees a quarter of its time: packets",
            &all.short,
        ),
        packets(
            "5-9c-exact",
            "5.9c: budget mitigation, the driver sees all of its time: packets",
            &all.budget,
        ),
        late(
            "5-9d",
            "5.9d: budget mitigation: lateness",
            &[("sees a quarter", &all.short), ("sees all", &all.budget)],
        ),
        packets(
            "5-10",
            "5.10: queue mitigation, queue of 500: packets",
            middle,
        ),
        late(
            "5-10-late",
            "5.10: queue mitigation: lateness by queue",
            &[("100", small), ("500", middle), ("750", large)],
        ),
    ];
    Part {
        title: "Figures 5.8 to 5.10: the scheduler and four mitigations",
        about: "The ESP32 of section 5.3: a task of 6.34 ms each 10 ms, simulated packets at 4,900 to 73,500 a second and back, each rate for 0.4 s.",
        pictures,
        claims: claims(&all),
    }
}

/// The part of the page with our policy beside the four.
pub fn hand_on() -> Part {
    let run = |work: &Work| {
        Policy::ALL.map(|policy| {
            let trial = Trial {
                work: work.clone(),
                ..Trial::of(ESP32, policy)
            };
            (policy.name(), sweep(&trial))
        })
    };
    let fixed = run(&Work::Fixed(ESP32.work));
    let varying = run(&Work::Between(ESP32.work / 2, ESP32.work));
    let drawn = |sweeps: &[(&str, Sweep)], file: &str, title: &str| {
        let line = |(name, sweep): &(&str, Sweep)| {
            sweep.line(name, |it| Measured::per_second(it.tally.handled))
        };
        let drawn: Vec<Line> = sweeps.iter().map(line).collect();
        let axes = Axes {
            x: TIME,
            y: "processed a second",
        };
        Picture::new(file, title, |label| lines(axes, &drawn, &[], label))
    };
    let lateness = |sweeps: &[(&'static str, Sweep)], file: &str, title: &str| {
        let named: Vec<(&str, &Sweep)> =
            sweeps.iter().map(|(name, sweep)| (*name, sweep)).collect();
        late(file, title, &named)
    };
    Part {
        title: "Ours beside the four: slack",
        about: "The same load. While a job runs, at most so many packets interrupt it as fit between its longest work and its target; between jobs \
                any number; a full queue silences the network until there is room. Queue has a queue of 500, slack of 1,152, the others of 100: longer ones make the queue mitigation late, and slack not.",
        pictures: vec![
            drawn(
                &fixed,
                "slack-packets",
                "Packets handed on, a task that always takes the same",
            ),
            lateness(
                &fixed,
                "slack-late",
                "Lateness, a task that always takes the same",
            ),
            drawn(
                &varying,
                "slack-packets-varying",
                "Packets handed on, a task that takes half of it to all",
            ),
            lateness(
                &varying,
                "slack-late-varying",
                "Lateness, a task that takes half of it to all",
            ),
        ],
        claims: vec![
            beats("slack-fixed", &fixed),
            beats("slack-varying", &varying),
        ],
    }
}
