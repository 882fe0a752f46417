//! Figures 5.16 to 5.18: the driver with flows.

use std::time::Instant as Clock;

use bumpless_base::{Duration, Instant};
use bumpless_guard::{Flow, Guard, Match, Priority, Rate, Setup, Terms, Transport};

use super::claim::{Claim, Part, Picture};
use crate::chart::{Axes, Map, bars, quantiles};
use crate::flows::{Case, Limits, Outcome, Stack, run};
use crate::machine::ZYNQ_PATHS;

/// Packets a second of one flow alone, to a task above the worker or below it.
fn alone(stack: Stack, is_urgent: bool, rate: f64) -> Outcome {
    let (urgent, leisurely) = if is_urgent { (rate, 0.0) } else { (0.0, rate) };
    let packets = rate.clamp(20_000.0, 200_000.0);
    let case = Case {
        stack,
        urgent,
        leisurely,
        limits: Limits::default(),
        lasts: Duration::from_nanos((packets / rate * 1e9) as u64),
    };
    run(&case, &ZYNQ_PATHS)
}

const RATES: [f64; 5] = [1e2, 1e3, 1e4, 1e5, 1e6];

/// Microseconds of the processor for a packet, on average over all rates.
fn per_packet(stack: Stack, is_urgent: bool) -> f64 {
    let costs = RATES.map(|rate| alone(stack, is_urgent, rate).per_packet());
    costs.iter().sum::<f64>() / RATES.len() as f64
}

fn figure_16() -> [(String, f64); 5] {
    [
        ("original stack", Stack::Original, true),
        ("with flows, HP", Stack::Flows, true),
        ("with flows, LP", Stack::Flows, false),
        (
            "with flows, LP, no short circuit",
            Stack::NoShortCircuit,
            false,
        ),
        (
            "with flows, LP, caches eagerly coherent",
            Stack::Eager,
            false,
        ),
    ]
    .map(|(name, stack, is_urgent)| (name.to_owned(), per_packet(stack, is_urgent)))
}

/// Figure 5.18: outcomes over rates of the urgent flow (rows) and of the other (columns).
struct Grid {
    urgent: Vec<f64>,
    leisurely: Vec<f64>,
    outcomes: Vec<Vec<Outcome>>,
}

const STEPS: u32 = 16;

fn grid(stack: Stack, limits: Limits, most: (f64, f64)) -> Grid {
    let scale = |most: f64| -> Vec<f64> {
        (1..=STEPS)
            .map(|at| most * f64::from(at) / f64::from(STEPS))
            .collect()
    };
    let (urgent, leisurely) = (scale(most.0), scale(most.1));
    let row = |&urgent: &f64| {
        let cell = |&leisurely: &f64| {
            let lasts = Duration::from_secs(3);
            let case = Case {
                stack,
                urgent,
                leisurely,
                limits,
                lasts,
            };
            run(&case, &ZYNQ_PATHS)
        };
        leisurely.iter().map(cell).collect()
    };
    let outcomes = urgent.iter().map(row).collect();
    Grid {
        urgent,
        leisurely,
        outcomes,
    }
}

impl Grid {
    fn map(&self, file: &str, title: &str, value: impl Fn(&Outcome) -> f64) -> Picture {
        let values: Vec<Vec<f64>> = self
            .outcomes
            .iter()
            .map(|row| row.iter().map(&value).collect())
            .collect();
        let map = Map {
            xs: &self.leisurely,
            ys: &self.urgent,
            values: &values,
            unit: "%",
        };
        let axes = Axes {
            x: "LP packets a second",
            y: "by HP packets a second",
        };
        Picture::new(file, title, |label| map.draw(axes, label))
    }

    fn all(&self) -> impl Iterator<Item = (f64, f64, &Outcome)> {
        let rows = self.urgent.iter().zip(&self.outcomes);
        rows.flat_map(|(&urgent, row)| {
            self.leisurely
                .iter()
                .zip(row)
                .map(move |(&leisurely, it)| (urgent, leisurely, it))
        })
    }
}

fn rate(capacity: u32, period: Duration) -> Option<Rate> {
    Some(Rate { capacity, period })
}

/// What section 5.5.4 sets: of the original stack, and of the one with flows.
pub(crate) fn limits() -> (Limits, Limits) {
    let beat = Duration::from_millis(2);
    let original = Limits {
        overall: rate(3, beat),
        urgent: None,
    };
    let millisecond = Duration::from_millis(1);
    let flows = Limits {
        overall: rate(7, millisecond),
        urgent: rate(1, millisecond),
    };
    (original, flows)
}

/// The part of the page with figures 5.16 and 5.18.
pub fn driver_with_flows() -> Part {
    let costs = figure_16();
    let (original, flows) = limits();
    let original = grid(Stack::Original, original, (3_000.0, 3_000.0));
    let flows = grid(Stack::Flows, flows, (3_000.0, 15_000.0));
    let pictures = vec![
        Picture::new(
            "5-16",
            "5.16: the processor's time for a packet, on average over 100 to 1,000,000 a second",
            |label| bars("us", &costs, label),
        ),
        original.map(
            "5-18-original-time",
            "5.18: the processor's share, original stack with 3 in 2 ms",
            Outcome::utilisation,
        ),
        original.map(
            "5-18-original-liveness",
            "5.18: HP packets that arrive, original stack",
            Outcome::liveness,
        ),
        flows.map(
            "5-18-flows-time",
            "5.18: the processor's share, with flows, 7,000 a second and HP 1 in 1 ms",
            Outcome::utilisation,
        ),
        flows.map(
            "5-18-flows-liveness",
            "5.18: HP packets that arrive, with flows",
            Outcome::liveness,
        ),
    ];
    Part {
        title: "Figures 5.16 and 5.18: the driver with flows",
        about: "The Zynq of section 5.5: the shipped guard decides, the text's figures say what each way takes. HP: packets for a task above the worker that measures; LP: for one below, \
                which never runs.",
        pictures,
        claims: claims(&costs, &original, &flows),
    }
}

fn claims(costs: &[(String, f64); 5], original: &Grid, flows: &Grid) -> Vec<Claim> {
    let [whole, urgent, short, queued, eager] = costs.each_ref().map(|it| it.1);
    let near = |value: f64, said: f64| (value / said - 1.0).abs() < 0.01;
    let all_near = near(whole, 12.1)
        && near(urgent, 12.3)
        && near(short, 1.62)
        && near(queued, 1.75)
        && near(eager, 4.4);
    let unharmed = flows
        .all()
        .filter(|it| it.0 <= 1_000.0 && it.0 + it.1 <= 7_000.0);
    let least = unharmed.map(|it| it.2.liveness()).fold(100.0, f64::min);
    let beyond = |grid: &Grid, limit: f64| {
        let over = grid
            .all()
            .filter(|it| it.0 <= 1_000.0 && it.0 + it.1 > 1.3 * limit);
        let over: Vec<f64> = over.map(|it| it.2.liveness()).collect();
        over.iter().sum::<f64>() / over.len().max(1) as f64
    };
    let (flood, flood_flows) = (beyond(original, 1_500.0), beyond(flows, 7_000.0));
    let peak = |grid: &Grid, limit: f64| {
        let below = grid
            .all()
            .filter(|it| it.0 + it.1 <= limit)
            .map(|it| it.2.utilisation())
            .fold(0.0, f64::max);
        let above = grid
            .all()
            .filter(|it| it.0 + it.1 > 1.2 * limit)
            .map(|it| it.2.utilisation())
            .fold(0.0, f64::max);
        (below, above)
    };
    let (below, above) = peak(original, 1_500.0);
    let cut: Vec<f64> = flows
        .all()
        .filter(|it| it.0 > 2_900.0 && it.1 < 1_000.0)
        .map(|it| it.2.liveness())
        .collect();
    let cut = cut.first().copied().unwrap_or(0.0);
    let borne = least_total(flows) / least_total(original);
    vec![
        Claim::new("path-costs", "5.16, 5.5.2", "12.1 us original, 12.3 us HP, 1.62 us LP, 1.75 us without the short circuit, 4.4 us eagerly coherent; 7.5 times as fast for LP",
            (format!("{whole:.2}, {urgent:.2}, {short:.2}, {queued:.2}, {eager:.2} us; {:.1} times", whole / short), all_near)),
        Claim::new("flows-unharmed", "5.18, 5.5.4", "with flows, HP packets within their rate arrive while the sum is at most 7,000 a second",
            (format!("{least:.1} % at worst"), least > 99.0)),
        Claim::new("flows-cut", "5.18, 5.5.4", "above 1,000 a second the HP flow is cut to its own rate",
            (format!("{cut:.0} % of 3,000 a second arrive"), (30.0..37.0).contains(&cut))),
        Claim::new("flood-hurts", "5.18, 5.5.4", "beyond the overall limit HP packets are lost in both, whatever their own rate",
            (format!("on average {flood:.0} % (original) and {flood_flows:.0} % (flows) arrive beyond 1.3 times the limit"), flood < 80.0 && flood_flows < 80.0)),
        Claim::new("polling-drops", "5.18, 5.5.4", "the processor's share rises to the limit and drops noticeably once polling is active",
            (format!("{below:.2} % up to the limit, {above:.2} % beyond it (original)"), above < below)),
        Claim::new("flood-borne", "5.18, 5.5.4", "up to 600 % higher overall loads with HP packets alive and the same share of the processor",
            (format!("{borne:.1} times the load"), borne >= 6.0))
        .because(
            "The limits that section 5.5.4 states are 1,500 and 7,000 packets a second, 4.7 times, and the model loses its first HP packet where they are reached. \
             The 600 % of section 5.6 would be 9,000 to 10,500.",
        ),
    ]
}

/// The least sum of rates at which an HP flow within its own rate loses more than 1 %.
fn least_total(grid: &Grid) -> f64 {
    let lost = grid
        .all()
        .filter(|it| it.0 <= 1_000.0 && it.2.liveness() < 99.0);
    lost.map(|it| it.0 + it.1).fold(f64::INFINITY, f64::min)
}

/// Nanoseconds that the shipped guard takes on this machine for a frame, by the way it goes (figure 5.17): the one picture that differs
/// from machine to machine.
pub fn core_latencies() -> Part {
    let rows: Vec<(String, Vec<(&'static str, f64)>)> = ways()
        .into_iter()
        .map(|(name, taken)| (name.to_owned(), marks(taken)))
        .collect();
    let median = |name: &str| {
        let row = rows.iter().find(|row| row.0 == name);
        row.and_then(|row| row.1.get(1)).map_or(0.0, |it| it.1)
    };
    let quick = median("regular")
        .max(median("short circuit"))
        .max(median("mitigating"));
    let recycling = median("recycling");
    Part {
        title: "Figure 5.17: what the shipped guard takes on this machine",
        about: "100,000 frames by each way, classified and decided; the clock's own reading is in each figure. This machine interrupts the measurement as it likes: \
                the upper quantiles are its own.",
        pictures: vec![Picture::new("5-17", "5.17: time for a frame by its way (quantiles 0, 50, 90, 99, 99.9, 99.99 %)", |label| quantiles("ns", &rows, label))],
        claims: vec![Claim::new("ways", "5.17, 5.5.3", "regular, short circuit and mitigating are similarly fast; recycling costs more",
            (format!("medians: at most {quick:.0} ns, recycling {recycling:.0} ns"), recycling >= quick))
        .because("The text has no values. Here all ways lie within a few reads of the clock of one another: lists and bitmaps make recycling as constant as the rest.")],
    }
}

fn marks(mut taken: Vec<u64>) -> Vec<(&'static str, f64)> {
    taken.sort_unstable();
    let at = |share: f64| taken[((taken.len() - 1) as f64 * share) as usize] as f64;
    [
        ("0 %", 0.0),
        ("50 %", 0.5),
        ("90 %", 0.9),
        ("99 %", 0.99),
        ("99.9 %", 0.999),
        ("99.99 %", 0.9999),
    ]
    .map(|(name, share)| (name, at(share)))
    .to_vec()
}

const FRAMES: usize = 100_000;

fn ways() -> [(&'static str, Vec<u64>); 5] {
    let flow = |port, priority, capacity| Flow {
        matches: vec![Match::Port(Transport::Udp, port)],
        terms: Terms {
            priority: Priority(priority),
            rate: capacity,
            queue: u16::MAX,
        },
    };
    let never = rate(0, Duration::from_secs(1));
    let setup = Setup {
        flows: vec![flow(1, 9, None), flow(2, 1, None), flow(3, 9, never)],
        ..Setup::closed(128)
    };
    let guard = || Guard::new(&setup, Instant::ZERO).expect("the setup is sound");
    let frame = |port: u16| {
        let mut frame = vec![0; 12];
        frame.extend([
            8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 9,
        ]);
        frame.extend(port.to_be_bytes());
        frame.extend([0, 8, 0, 0]);
        frame
    };
    let (urgent, leisurely, closed) = (frame(1), frame(2), frame(3));
    // What is done before each frame that is measured, so that it goes the wanted way.
    let measure = |frame: &[u8], filled: bool, prepare: &dyn Fn(&mut Guard<u32>)| {
        let mut guard = guard();
        while filled && guard.waiting() < 64 {
            guard.handle_frame(Instant::ZERO, &leisurely, leisurely.len(), 0);
        }
        let one = |_| {
            prepare(&mut guard);
            let begun = Clock::now();
            let verdict = guard.handle_frame(Instant::ZERO, frame, frame.len(), 1);
            let taken = begun.elapsed();
            std::hint::black_box(verdict);
            taken.as_nanos() as u64
        };
        (0..FRAMES).map(one).collect()
    };
    let empty = |guard: &mut Guard<u32>| {
        guard.poll_frame();
        guard.handle_processed();
    };
    let refill = |guard: &mut Guard<u32>| {
        guard.poll_frame();
        guard.handle_processed();
        guard.handle_frame(Instant::ZERO, &leisurely, leisurely.len(), 0);
    };
    [
        ("regular", measure(&leisurely, false, &empty)),
        ("short circuit", measure(&leisurely, true, &|_| {})),
        ("mitigating", measure(&closed, true, &|_| {})),
        ("prio+", measure(&urgent, false, &empty)),
        ("recycling", measure(&urgent, true, &refill)),
    ]
}
