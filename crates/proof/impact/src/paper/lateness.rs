//! Figures 4.4 and 4.5: what real and simulated packets do to a task of each priority.

use bumpless_base::{Duration, Instant};

use super::claim::{Claim, Part, Picture};
use crate::chart::{Axes, Line, lines};
use crate::load::{Load, Shape, Stretch};
use crate::machine::{
    ESP32, ESP32_CLOSED, ESP32_CLOSED_DRIVER, ESP32_DRIVER, ESP32_WIFI, Machine, PHOTON,
    PHOTON_CRASHES,
};
use crate::nic::{Moderation, Nic};
use crate::policy::{Order, Policy};
use crate::processor::{Critical, Delay, Processor, Setup, Tally, Work};

/// Lateness beyond which a task is as good as starved; not drawn. Percent.
const STARVES: f64 = 600.0;

/// A curve: a machine, and the task's place among the priorities.
struct Curve {
    name: &'static str,
    machine: Machine,
    order: Order,
    /// Above this rate there is no driver any more.
    crash: f64,
}

impl Curve {
    fn run(&self, rate: f64, critical: Critical) -> Tally {
        let lasts = Duration::from_secs(1);
        let stretch = Stretch {
            shape: Shape::Uniform(rate),
            lasts,
        };
        let machine = &self.machine;
        let settings = bumpless_guard::mitigation::SlackSettings {
            target: machine.period,
            work: machine.work,
            interrupt: machine.interrupt.constant,
        };
        let setup = Setup {
            nic: Nic::new(Moderation::Simple, machine.ring),
            interrupt: machine.interrupt,
            packet: machine.packet,
            queue: machine.queue,
            order: self.order,
            critical,
            mitigation: Policy::None.build(settings),
            seed: 0,
        };
        let mut processor = Processor::new(setup, Load::new(vec![stretch], 60, 0));
        processor.run_until(Instant::ZERO + lasts);
        processor.tally_with_open_job()
    }

    fn lateness(&self, rate: f64) -> f64 {
        let critical = Critical::Periodic {
            period: self.machine.period,
            work: Work::Fixed(self.machine.work),
        };
        self.run(rate, critical).lateness_percent()
    }

    /// The task's share of the processor, percent.
    fn share(&self, rate: f64) -> f64 {
        100.0
            * self
                .run(rate, Critical::Endless)
                .critical_time
                .as_secs_f64()
    }

    fn line(&self, value: impl Fn(&Self, f64) -> f64) -> Line {
        let rates = (0..=26).map(|at| self.machine.peak * f64::from(at) / 26.0);
        let rates = rates.filter(|&rate| rate <= self.crash);
        let points = rates.map(|rate| (rate, value(self, rate)));
        Line::new(self.name, points.take_while(|it| it.1 <= STARVES).collect())
    }

    /// By how much the share falls for each packet a second, in percent for a thousand.
    fn slope(&self) -> f64 {
        let rate = self.machine.peak / 10.0;
        (self.share(0.0) - self.share(rate)) / rate * 1_000.0
    }
}

fn with_packet(machine: Machine, packet: Duration) -> Machine {
    Machine {
        packet: Delay::constant(packet),
        ..machine
    }
}

fn curve(name: &'static str, machine: Machine, order: Order) -> Curve {
    Curve {
        name,
        machine,
        order,
        crash: f64::INFINITY,
    }
}

fn esp32_wifi() -> [Curve; 5] {
    let [driver, closed_driver] =
        [ESP32_DRIVER, ESP32_CLOSED_DRIVER].map(|packet| with_packet(ESP32_WIFI, packet));
    let closed = with_packet(ESP32_WIFI, ESP32_CLOSED);
    [
        curve("p-, open port", ESP32_WIFI, Order::DriverFirst),
        curve("pd, open port", driver, Order::Sliced),
        curve("p-, closed port", closed, Order::DriverFirst),
        curve("pd, closed port", closed_driver, Order::Sliced),
        curve("p+", ESP32_WIFI, Order::CriticalFirst),
    ]
}

fn esp32_simulated() -> [Curve; 2] {
    [
        curve("p-, simulated", ESP32, Order::DriverFirst),
        curve("p+, simulated", ESP32, Order::CriticalFirst),
    ]
}

fn photon() -> [Curve; 2] {
    let mut curves = [
        curve("p-", PHOTON, Order::DriverFirst),
        curve("pd", PHOTON, Order::Sliced),
    ];
    curves[0].crash = PHOTON_CRASHES.0;
    curves
}

fn pictures() -> Vec<Picture> {
    let late = Axes {
        x: "packets a second",
        y: "lateness, % of the target",
    };
    let share = Axes {
        x: "packets a second",
        y: "the task's share, %",
    };
    let draw = |file: &str, title: &str, axes, curves: &[Curve], value: fn(&Curve, f64) -> f64| {
        let drawn: Vec<Line> = curves.iter().map(|it| it.line(value)).collect();
        Picture::new(file, title, |label| lines(axes, &drawn, &[], label))
    };
    let late_of: fn(&Curve, f64) -> f64 = Curve::lateness;
    let share_of: fn(&Curve, f64) -> f64 = Curve::share;
    vec![
        draw(
            "4-4a",
            "4.4a: lateness on the ESP32, simulated packets",
            late,
            &esp32_simulated(),
            late_of,
        ),
        draw(
            "4-4b",
            "4.4b: lateness on the ESP32, real packets",
            late,
            &esp32_wifi(),
            late_of,
        ),
        draw(
            "4-4c",
            "4.4c: lateness on the Photon, real packets",
            late,
            &photon(),
            late_of,
        ),
        draw(
            "4-5a",
            "4.5: share of a task without end on the ESP32, real packets",
            share,
            &esp32_wifi(),
            share_of,
        ),
        draw(
            "4-5b",
            "4.5: share of a task without end on the Photon, real packets",
            share,
            &photon(),
            share_of,
        ),
    ]
}

/// The part of the page.
pub fn lateness() -> Part {
    Part {
        title: "Figures 4.4 and 4.5: what packets do to a task",
        about: "Packets at an even rate; a task of 6.34 ms each 10 ms, and one that computes without end. p-: its priority is below the \
                network's tasks; pd: that of the driver; p+: above.",
        pictures: pictures(),
        claims: claims(),
    }
}

fn claims() -> Vec<Claim> {
    let [open, equal, closed, closed_equal, above] = esp32_wifi();
    let [photon_below, photon_equal] = photon();
    let slopes = [&equal, &open, &closed_equal, &closed].map(Curve::slope);
    let said = [2.15, 3.8, 3.17, 6.67];
    let near = slopes
        .iter()
        .zip(said)
        .all(|(slope, said)| (slope / said - 1.0).abs() < 0.05);
    let [a, b, c, d] = slopes;
    let top = above.machine.peak;
    let (share, late) = (above.share(top), above.lateness(top));
    let photon_slope = photon_below.slope() / 10.0;
    let halves = [3_000.0, 4_000.0].map(|rate| photon_equal.share(rate));
    let steps = |curve: &Curve, rates: [f64; 3]| {
        let [low, middle, high] = rates.map(|rate| curve.lateness(rate));
        (
            (middle - low) / (rates[1] - rates[0]),
            (high - middle) / (rates[2] - rates[1]),
        )
    };
    let (first, second) = steps(&open, [12_000.0, 14_000.0, 16_000.0]);
    vec![
        Claim::new(
            "esp32-slopes",
            "4.5, 4.4.2",
            "performance decreases by 2.15 % (driver's priority) and 3.8 % (below), on an unused port by 3.17 % and 6.67 %",
            (format!("{a:.2} %, {b:.2} %, {c:.2} %, {d:.2} % for 1,000 packets a second"), near),
        ),
        Claim::new(
            "esp32-above",
            "4.4, 4.4.1",
            "a task of critical priority sees no impact, it starves the network's tasks",
            (format!("share {share:.1} %, lateness {late:.1} % at {top:.0} a second"), share > 99.9 && late == 0.0),
        ),
        Claim::new(
            "esp32-closed",
            "4.4b, 4.4.1",
            "the impact is much higher when the port is not open",
            (format!("{:.2} times the processor's time for a packet", d / b), d > 1.5 * b),
        ),
        Claim::new(
            "lateness-linear",
            "4.4, 4.4.1",
            "a linear increase in lateness with increasing load once lateness occurs, below the driver's priority, up to 50 % a packet a second",
            (
                format!(
                    "{:.0} % and {:.0} % more lateness for 1,000 packets a second more, at 13,000 and 15,000",
                    first * 1_000.0,
                    second * 1_000.0
                ),
                false,
            ),
        )
        .because(
            "A job is finished in the time that packets leave, so lateness grows as 1 / (1 - rate x cost), faster towards the end: a line \
             only near where it begins. The text's 50 % for one packet a second would be 5 ms of the processor for each, which would \
             end the task at 75 packets a second; for 1,000 packets a second it is of the model's size.",
        ),
        Claim::new(
            "photon-slope",
            "4.4c, 4.5, 4.4.2",
            "on the Photon 2 % for each packet a second (taken as for each 100), and a crash at 980 before the task starves",
            (
                format!("{photon_slope:.2} % for 100 packets a second; share {:.0} % at 980", photon_below.share(980.0)),
                (photon_slope - 2.0).abs() < 0.1 && photon_below.share(980.0) > 10.0,
            ),
        ),
        Claim::new(
            "photon-halves",
            "4.4c, 4.4.1",
            "when the driver needs half of the processor, the scheduler distributes it equally between driver and task, which keeps both constant",
            (
                format!("share {:.0} % at 3,000 and {:.0} % at 4,000 a second", halves[0], halves[1]),
                halves.iter().all(|share| (share - 50.0).abs() < 2.0),
            ),
        ),
    ]
}
