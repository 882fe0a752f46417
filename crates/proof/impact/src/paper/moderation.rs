//! Figures 4.7 to 4.9: interrupt moderation and a user's code.

use bumpless_base::{Duration, Instant, Random};
use bumpless_guard::mitigation::Unmitigated;

use super::claim::{Claim, Part, Picture};
use crate::capture;
use crate::chart::{Axes, Line, Map, lines};
use crate::load::{Arrival, Load, Shape, Stretch};
use crate::nic::{Moderation, Nic};
use crate::policy::Order;
use crate::processor::{Critical, Delay, Processor, Setup, Tally};

/// What an interrupt takes, and what the receiving task takes for a packet: both parts twice (4.6.1).
const INTERRUPT: Delay = Delay {
    constant: Duration::from_micros(5),
    per_byte_ps: 200,
};
const PACKET: Delay = Delay {
    constant: Duration::from_nanos(1_000),
    per_byte_ps: 1_000,
};

/// The user's code takes so long without packets.
const WORK: Duration = Duration::from_millis(400);

fn run(moderation: Moderation, load: Load, work: Duration) -> (Duration, Tally) {
    let setup = Setup {
        nic: Nic::new(moderation, 4_096),
        interrupt: INTERRUPT,
        packet: PACKET,
        queue: 4_096,
        order: Order::DriverFirst,
        critical: Critical::Once(work),
        mitigation: Box::new(Unmitigated),
        seed: 0,
    };
    let mut processor = Processor::new(setup, load);
    let took = processor.run_once(Instant::ZERO + work * 20);
    (took.unwrap_or(work * 20), processor.tally())
}

fn poisson(rate: f64) -> Load {
    let stretch = Stretch {
        shape: Shape::Poisson(rate),
        lasts: WORK * 20,
    };
    Load::new(vec![stretch], 200, 7)
}

fn micros(n: u32) -> Duration {
    Duration::from_micros(n.into())
}

/// Share of the interrupts that the timer made, percent.
fn timer_share(tally: &Tally) -> f64 {
    100.0 * tally.interrupts[2] as f64 / tally.all_interrupts().max(1) as f64
}

/// A line over settings.
fn over(name: &str, settings: &[u32], value: impl Fn(u32) -> f64) -> Line {
    let points = settings.iter().map(|&it| (f64::from(it), value(it)));
    Line::new(name, points.collect())
}

const RATES: [f64; 3] = [4_000.0, 8_000.0, 16_000.0];
const DELAYS: [u32; 11] = [0, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200];
const THRESHOLDS: [u32; 12] = [1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20];

/// What packets add to the execution time, milliseconds.
fn added(took: Duration) -> f64 {
    (took - WORK).as_millis_f64()
}

/// Figure 4.7a: what is added to the execution time, and interrupts, over the timer's delay.
fn timers() -> (Line, Line) {
    let measured =
        DELAYS.map(|delay| run(Moderation::Both(16, micros(delay)), poisson(RATES[2]), WORK));
    let line = |name: &str, value: &dyn Fn(&(Duration, Tally)) -> f64| {
        let points = DELAYS.iter().zip(&measured);
        Line::new(
            name,
            points
                .map(|(&delay, it)| (delay.into(), value(it)))
                .collect(),
        )
    };
    (
        line("execution time", &|it| added(it.0)),
        line("interrupts", &|it| it.1.all_interrupts() as f64),
    )
}

/// Figure 4.7b: what is added to the execution time over the counter's threshold, at three rates.
fn counters() -> [Line; 3] {
    RATES.map(|rate| {
        let name = format!("{rate:.0} a second");
        over(&name, &THRESHOLDS, |threshold| {
            added(run(Moderation::Counter(threshold), poisson(rate), WORK).0)
        })
    })
}

/// Figure 4.8: a value for each delay (rows) and threshold (columns).
fn mixed(value: impl Fn(&(Duration, Tally)) -> f64) -> Vec<Vec<f64>> {
    let row = |&delay: &u32| {
        let cell = |&threshold: &u32| {
            let moderation = Moderation::Both(threshold, micros(delay));
            value(&run(moderation, poisson(RATES[2]), WORK))
        };
        THRESHOLDS.iter().map(cell).collect()
    };
    DELAYS.iter().map(row).collect()
}

/// Two recordings to replay: music that is fetched in bursts, and a conference that flows. The dissertation's are not published;
/// these have their shapes, and go through a file as a user's would.
fn recordings() -> [(&'static str, Vec<Arrival>); 2] {
    let mut random = Random::new(9);
    let (mut bursts, mut flow) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < 4_000_000_000 {
        let mut within = at;
        for _ in 0..40 + random.below(60) {
            bursts.push(arrival(within, 1_400));
            within += 20_000 + random.below(60_000);
        }
        at = within + 30_000_000 + random.below(30_000_000);
    }
    at = 0;
    while at < 4_000_000_000 {
        flow.push(arrival(at, 200 + random.below(1_000) as u32));
        at += 50_000 + random.below(1_200_000);
    }
    let replayed = |arrivals: Vec<Arrival>| {
        let file = capture::write(&arrivals);
        capture::read(&file).expect("what is written is read")
    };
    [("bursts", replayed(bursts)), ("flow", replayed(flow))]
}

fn arrival(nanos: u64, len: u32) -> Arrival {
    Arrival {
        at: Instant::from_nanos(nanos),
        len,
    }
}

const RELAXED: [u32; 12] = [0, 10, 20, 30, 40, 60, 80, 100, 150, 200, 300, 400];

/// Figure 4.9: what is added to the execution time over the timer's delay, in percent of that without packets.
fn replayed() -> [Line; 2] {
    recordings().map(|(name, arrivals)| {
        over(name, &RELAXED, |delay| {
            let load = Load::recorded(arrivals.clone());
            let work = Duration::from_secs(2);
            let took = run(Moderation::Both(64, micros(delay)), load, work).0;
            100.0 * (took - work).as_secs_f64() / work.as_secs_f64()
        })
    })
}

/// How often which interval occurs, in microseconds.
fn intervals(name: &str, arrivals: &[Arrival]) -> Line {
    let mut bins = vec![0.0; 41];
    for pair in arrivals.windows(2) {
        let gap = pair[1].at.since(pair[0].at).as_micros() as usize / 10;
        if let Some(bin) = bins.get_mut(gap) {
            *bin += 1.0;
        }
    }
    let points = bins
        .iter()
        .enumerate()
        .map(|(at, &count)| (at as f64 * 10.0, count));
    Line::new(format!("intervals of the {name}"), points.collect())
}

/// The part of the page.
pub fn moderation() -> Part {
    let (time, interrupts) = timers();
    let counters = counters();
    let shares = mixed(|it| timer_share(&it.1));
    let times = mixed(|it| added(it.0));
    let replayed = replayed();
    let recorded = recordings();
    let histograms = [intervals(recorded[0].0, &recorded[0].1)];
    let map = |values: &[Vec<f64>], unit, label: &str| {
        let map = Map {
            xs: &THRESHOLDS.map(f64::from),
            ys: &DELAYS.map(f64::from),
            values,
            unit,
        };
        let axes = Axes {
            x: "counter's threshold, packets",
            y: "by timer's delay, us",
        };
        map.draw(axes, label)
    };
    let axes = |x, y| Axes { x, y };
    let delay = "timer's delay, us";
    let execution = "added by packets, ms";
    let pictures = vec![
        Picture::new(
            "4-7a-time",
            "4.7a: execution time above 400 ms over the timer's delay (16 packets or the timer, 16,000 a second)",
            |label| {
                lines(
                    axes(delay, execution),
                    std::slice::from_ref(&time),
                    &[],
                    label,
                )
            },
        ),
        Picture::new(
            "4-7a-interrupts",
            "4.7a: interrupts over the timer's delay",
            |label| {
                lines(
                    axes(delay, "interrupts"),
                    std::slice::from_ref(&interrupts),
                    &[],
                    label,
                )
            },
        ),
        Picture::new(
            "4-7b",
            "4.7b: execution time above 400 ms over the counter's threshold",
            |label| {
                lines(
                    axes("counter's threshold, packets", execution),
                    &counters,
                    &[],
                    label,
                )
            },
        ),
        Picture::new(
            "4-8-causes",
            "4.8: interrupts that the timer made, %",
            |label| map(&shares, "%", label),
        ),
        Picture::new(
            "4-8-time",
            "4.8: execution time that packets add, ms",
            |label| map(&times, "ms", label),
        ),
        Picture::new(
            "4-9",
            "4.9: execution time in two replayed recordings; behind, intervals of the bursts",
            |label| {
                lines(
                    axes(delay, "added by packets, %"),
                    &replayed,
                    &histograms,
                    label,
                )
            },
        ),
    ];
    Part {
        title: "Figures 4.7 to 4.9: interrupt moderation",
        about: "A user's code of 400 ms, replayed loads 2 s; an interrupt takes 5 us and 0.2 ns a byte, the receiving task 1 us and 1 ns a byte for each packet \
                (chosen: the text has no values). The recordings of figure 4.9 are not published; two with their shapes stand in.",
        pictures,
        claims: claims(&time, &interrupts, &counters, &shares, &replayed),
    }
}

fn falls(line: &Line) -> bool {
    // Poisson arrivals scatter a little.
    line.points.windows(2).all(|it| it[1].1 <= it[0].1 * 1.02)
}

fn ends(line: &Line) -> (f64, f64) {
    let value = |it: Option<&(f64, f64)>| it.map_or(0.0, |it| it.1);
    (value(line.points.first()), value(line.points.last()))
}

fn claims(
    time: &Line,
    interrupts: &Line,
    counters: &[Line; 3],
    shares: &[Vec<f64>],
    replayed: &[Line; 2],
) -> Vec<Claim> {
    let ((slow, fast), (many, few)) = (ends(time), ends(interrupts));
    let ratios: Vec<f64> = (0..THRESHOLDS.len())
        .map(|at| {
            let [low, middle, high] = [0, 1, 2].map(|line: usize| counters[line].points[at].1);
            (high - middle) / (middle - low)
        })
        .collect();
    let (least, most) = ratios.iter().fold((f64::MAX, 0f64), |it, &ratio| {
        (it.0.min(ratio), it.1.max(ratio))
    });
    // Where the colour is balanced: for each delay, the threshold at which the timer makes half.
    let balanced: Vec<(u32, u32)> = DELAYS
        .iter()
        .zip(shares)
        .filter_map(|(&delay, row)| {
            let at = row.iter().position(|&share| share >= 50.0)?;
            Some((delay, THRESHOLDS[at]))
        })
        .collect();
    let grows = balanced.is_sorted_by_key(|it| it.1) && balanced.len() >= 3;
    let crossing = balanced.iter().find(|it| it.1 > 4);
    let gain = |line: &Line| {
        let (begin, end) = ends(line);
        (begin - end) / begin.max(1e-9)
    };
    let (bursts, flow) = (gain(&replayed[0]), gain(&replayed[1]));
    vec![
        Claim::new(
            "timer-relaxes",
            "4.7a, 4.6.2",
            "both the execution time and the number of interrupts decrease as the packet delay timer increases",
            (
                format!(
                    "{slow:.1} ms to {fast:.1} ms above 400 ms, {many:.0} to {few:.0} interrupts"
                ),
                falls(time) && falls(interrupts) && few < many / 2.0,
            ),
        ),
        Claim::new(
            "counter-linear",
            "4.7b, 4.6.2",
            "the difference between the execution times of the two higher loads is twice that between the two lower ones, along the whole axis",
            (
                format!("{least:.2} to {most:.2} times"),
                least > 1.8 && most < 2.4,
            ),
        ),
        Claim::new(
            "causes-balance",
            "4.8, 4.6.2",
            "an area of balance between the two reasons extends in both directions; as the threshold grows, the counter plays less of a role than the timer",
            (
                match crossing {
                    Some((delay, threshold)) => format!(
                        "balance moves from threshold {} at {} us to {threshold} at {delay} us",
                        balanced[0].1, balanced[0].0
                    ),
                    None => "no balance".into(),
                },
                grows && crossing.is_some(),
            ),
        ),
        Claim::new(
            "bursts-gain",
            "4.9, 4.6.2",
            "the bursty load gains more from a relaxed timer than the continuous one",
            (
                format!(
                    "{:.0} % of the packets' cost saved at 400 us in bursts, {:.0} % in flow",
                    100.0 * bursts,
                    100.0 * flow
                ),
                bursts > 1.5 * flow,
            ),
        ),
    ]
}
