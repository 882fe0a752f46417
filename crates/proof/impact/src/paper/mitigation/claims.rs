//! What the text says of each figure, judged.

use bumpless_base::Duration;

use super::sweep::{Measured, SEEN, Sweep, Sweeps, trial};
use crate::load::{Shape, Stretch};
use crate::machine::ESP32;
use crate::paper::claim::Claim;
use crate::policy::Policy;

/// What the text says of the scheduler and the four mitigations, beside what the model does.
pub fn claims(all: &Sweeps) -> Vec<Claim> {
    let mut claims = Vec::from(scheduler(all));
    claims.extend([burst(all), raised(all), hysteresis(all), drowned(all)]);
    claims.extend(budget(all));
    claims.extend(queue(all));
    claims
}

fn scheduler(all: &Sweeps) -> [Claim; 4] {
    let (equal, first) = (&all.equal, &all.first);
    let lateness = equal.lateness();
    let share = |it: Measured| it.tally.handled as f64 / it.tally.sent as f64;
    let handled = share(equal.top());
    let (low, high) = (first.lateness_up_to(50_000.0), first.lateness());
    let most = first
        .up()
        .iter()
        .map(|it| Measured::per_second(it.tally.handled))
        .fold(0.0, f64::max);
    let top = Measured::per_second(first.top().tally.handled);
    [
        Claim::new(
            "equal-lateness",
            "5.3, baseline",
            "equal priorities: lateness up to 500 %",
            (
                format!("up to {lateness:.0} %"),
                (400.0..600.0).contains(&lateness),
            ),
        ),
        Claim::new(
            "equal-packets",
            "5.3, baseline",
            "equal priorities: the driver processes almost all packets",
            (
                format!("{:.1} % at the top", 100.0 * handled),
                handled > 0.97,
            ),
        ),
        Claim::new(
            "first-lateness",
            "5.8b, 5.3",
            "the task first: lateness almost zero, about 8 % above 50,000 packets a second",
            (
                format!("{low:.2} % up to 50,000 a second, {high:.1} % at most"),
                low < 0.5 && (5.0..11.0).contains(&high),
            ),
        ),
        Claim::new(
            "first-packets",
            "5.8a, 5.3",
            "the task first: far fewer packets processed, dropping even more as interrupts rise",
            (
                format!("{most:.0} a second at best, {top:.0} at the top"),
                top < 0.5 * most && most < 0.6 * ESP32.peak,
            ),
        ),
    ]
}

fn burst(all: &Sweeps) -> Claim {
    let received = all
        .burst
        .steps
        .iter()
        .map(|it| Measured::per_second(it.tally.received));
    let most = received.fold(0.0, f64::max);
    // A step's borders cut a slice, so the promise itself is for a steady load from its beginning.
    let stretch = Stretch {
        shape: Shape::Uniform(ESP32.peak),
        lasts: Duration::from_secs(2),
    };
    let slice = Duration::from_millis(20);
    let steady = trial(Policy::Burst(600, slice), 100).run(&[stretch], 0);
    let steady = steady.received / 2;
    let late = all.burst.late();
    Claim::new(
        "burst",
        "5.8c and d, 5.3",
        "burst mitigation with 600 in 20 ms: at most 30,000 received a second, no lateness",
        (
            format!(
                "{steady} a second at {:.0} a second, {most:.0} in a step whose borders cut a slice; {late} late jobs",
                ESP32.peak
            ),
            (29_000..=30_000).contains(&steady) && most < 30_100.0 && late == 0,
        ),
    )
}

fn raised(all: &Sweeps) -> Claim {
    let lateness = all.burst_raised.lateness();
    Claim::new(
        "burst-raised",
        "5.3",
        "raising the capacity significantly leads to lateness",
        (format!("{lateness:.1} % with 900"), lateness > 0.0),
    )
}

fn hysteresis(all: &Sweeps) -> Claim {
    let low = all.hysteresis.lateness_up_to(0.8 * ESP32.peak);
    Claim::new(
        "hysteresis-works",
        "5.9b, 5.3",
        "hysteresis mitigation is quite effective except when interrupts throttle the driver",
        (
            format!("{low:.2} % up to {:.0} a second", 0.8 * ESP32.peak),
            low < 1.0,
        ),
    )
}

fn drowned(all: &Sweeps) -> Claim {
    let top = all.hysteresis.top().tally;
    let best = all
        .hysteresis
        .up()
        .iter()
        .map(|it| it.tally.handled)
        .max()
        .unwrap_or(0);
    let received = top.received as f64 / top.sent as f64;
    Claim::new(
        "hysteresis-drowns",
        "5.9a, 5.3",
        "the throughput plummets; once interrupts preempt the driver for good, all that is sent is received again",
        (
            format!(
                "at the top {:.0} % of what is sent is received, {:.0} % of the best throughput left, lateness {:.1} %",
                100.0 * received,
                100.0 * top.handled as f64 / best.max(1) as f64,
                top.lateness_percent()
            ),
            received > 0.95 && top.handled * 2 < best && top.late > 0,
        ),
    )
}

/// Additional packets processed for each sent, from the first step on the way up at which not all are received; and that step's rate.
fn slope(sweep: &Sweep) -> (f64, f64) {
    let up = sweep.up();
    let depleted = up
        .iter()
        .find(|it| it.tally.received * 100 < it.tally.sent * 99);
    let (Some(first), top) = (depleted, sweep.top().tally) else {
        return (0.0, 0.0);
    };
    let handled = top.handled as f64 - first.tally.handled as f64;
    (
        handled / (top.sent as f64 - first.tally.sent as f64),
        first.rate,
    )
}

fn budget(all: &Sweeps) -> [Claim; 3] {
    let ((exact, exact_from), (short, short_from)) = (slope(&all.budget), slope(&all.short));
    let lateness =
        [20_000.0, 50_000.0, 60_000.0, f64::INFINITY].map(|rate| all.short.lateness_up_to(rate));
    let [low, middle, high, most] = lateness;
    [
        Claim::new(
            "budget-slope-exact",
            "5.9c, 5.3",
            "budget mitigation: once the budget is depleted there is a drop; then for each additional packet 0.76 additional ones are processed",
            (
                format!("{exact:.2} from {exact_from:.0} a second on, if the driver sees all of its own time"),
                (0.7..0.82).contains(&exact),
            ),
        )
        .because(
            "The drop is there. Then a budget that is kept cannot go on at 0.76: the task leaves 3.66 ms of each 10 ms, which is 30,000 packets a second. \
             Section 5.3.1 says why it did: the driver underestimates what a packet takes. The next line has that.",
        ),
        Claim::new(
            "budget-slope",
            "5.9c, 5.3, 5.3.1",
            "the same, by an underestimation of the packet processing time",
            (
                format!("{short:.2} from {short_from:.0} a second on, if the driver sees {SEEN} % of its own time"),
                (0.7..0.82).contains(&short),
            ),
        ),
        Claim::new(
            "budget-late",
            "5.9d, 5.3, 5.3.1",
            "budget mitigation: breaks the guarantees at high loads, the more the higher they are",
            (
                format!("{low:.2} % up to 20,000 a second, {middle:.0} % up to 50,000, {high:.0} % up to 60,000, {most:.0} % at most"),
                low < 0.5 && middle > 5.0 && high > middle && most > high,
            ),
        ),
    ]
}

fn queue(all: &Sweeps) -> [Claim; 4] {
    let [small, middle, large] = &all.queues;
    let late = [small.late(), middle.late(), large.late()];
    let top = Measured::per_second(middle.top().tally.handled);
    let tally = middle.top().tally;
    let balance = tally.handled as f64 / tally.received as f64;
    let handled = [small.handled(), middle.handled()];
    let others = [&all.burst, &all.hysteresis].map(Sweep::handled);
    [
        Claim::new(
            "queue-lateness",
            "5.10, 5.3",
            "queue mitigation: no lateness with queues of 100 and 500, some with 750",
            (
                format!("{}, {} and {} late jobs", late[0], late[1], late[2]),
                late[0] == 0 && late[1] == 0 && late[2] > 0,
            ),
        ),
        Claim::new(
            "queue-packets",
            "5.10, 5.3",
            "not all packets are coped with above 30,000 a second, and processed nicely trace received ones",
            (
                format!(
                    "{top:.0} a second at the top, {:.1} % of the received",
                    100.0 * balance
                ),
                (27_000.0..33_000.0).contains(&top) && balance > 0.97,
            ),
        ),
        Claim::new(
            "queue-small",
            "5.3",
            "a queue of 100 diminishes the throughput",
            (
                format!("{} instead of {} packets", handled[0], handled[1]),
                handled[0] < handled[1],
            ),
        ),
        Claim::new(
            "queue-best",
            "5.3, 5.3.1",
            "queue mitigation processes far more packets than burst and hysteresis",
            (
                format!(
                    "{} packets; burst {}, hysteresis {}",
                    handled[1], others[0], others[1]
                ),
                others
                    .iter()
                    .all(|&other| handled[1] as f64 > 1.1 * other as f64),
            ),
        ),
    ]
}

/// Whether slack is never late, and at every moment ahead of the queue mitigation.
pub fn beats(name: &'static str, sweeps: &[(&str, Sweep); 6]) -> Claim {
    let [.., (_, queue), (_, ours)] = sweeps;
    let mut steps = ours.steps.iter().zip(&queue.steps);
    // What is in the queue at the end of a step is handed on in the next.
    let (mut mine, mut theirs) = (0, 0);
    let ahead = steps.all(|(ours, queue)| {
        mine += ours.tally.handled;
        theirs += queue.tally.handled;
        mine >= theirs
    });
    Claim::new(
        name,
        "ours",
        "to be: no lateness at any rate, and at every moment at least as many packets handed on as by the queue mitigation",
        (
            format!(
                "{} late jobs; {} packets, queue mitigation {}",
                ours.late(),
                ours.handled(),
                queue.handled()
            ),
            ours.late() == 0 && ahead,
        ),
    )
}
