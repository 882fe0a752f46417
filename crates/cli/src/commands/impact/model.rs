//! One run of the model, as its options say.

use std::path::PathBuf;
use std::process::ExitCode;

use bumpless_base::{Duration, Instant};
use bumpless_bench::run::progress::left;
use bumpless_guard::mitigation::SlackSettings;
use bumpless_impact::capture;
use bumpless_impact::load::{Load, Shape, Stretch};
use bumpless_impact::machine::{MACHINES, Machine};
use bumpless_impact::nic::{Moderation, Nic};
use bumpless_impact::policy::{Order, Policy};
use bumpless_impact::processor::{Critical, Processor, Setup, Tally, Work};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::{SCHEMA, progress_line};
use crate::output::{self, Failure, Outcome};

#[derive(Debug, Args)]
#[command(next_help_heading = "One run")]
pub struct Model {
    /// Whose figures to begin from
    #[arg(long, value_name = "NAME", default_value = "esp32", value_parser = machine, help = with_names("Whose figures to begin from", MACHINES.map(|it| it.name)))]
    machine: Machine,
    /// What an interrupt takes, microseconds
    #[arg(long, value_name = "US", value_parser = micros)]
    interrupt_us: Option<Duration>,
    /// What it takes for each byte, nanoseconds
    #[arg(long, value_name = "NS", value_parser = nanos)]
    interrupt_byte_ns: Option<u64>,
    /// What the driver's task takes for a packet, microseconds
    #[arg(long, value_name = "US", value_parser = micros)]
    packet_us: Option<Duration>,
    /// What it takes for each byte, nanoseconds
    #[arg(long, value_name = "NS", value_parser = nanos)]
    packet_byte_ns: Option<u64>,
    /// The critical task's period and target, microseconds
    #[arg(long, value_name = "US", value_parser = micros)]
    period_us: Option<Duration>,
    /// What a job of it takes, microseconds
    #[arg(long, value_name = "US", value_parser = micros)]
    work_us: Option<Duration>,
    /// What jobs of your code took: a file with microseconds, one job a line, repeated as long as the run lasts
    #[arg(long, value_name = "FILE", conflicts_with = "work_us")]
    work_file: Option<PathBuf>,
    /// When the network interface interrupts
    #[arg(long, value_enum, default_value = "simple")]
    nic: NicKind,
    /// Packets that make an interrupt (counter, both); 8 if left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    threshold: Option<u32>,
    /// Silence that makes an interrupt, microseconds (timer, both); 100 if left out
    #[arg(long, value_name = "US", value_parser = micros)]
    delay_us: Option<Duration>,
    /// The policy
    #[arg(long, value_name = "NAME", default_value = "none", value_parser = policy, help = with_names("The policy", Policy::ALL.map(Policy::name)))]
    policy: Policy,
    /// Whose priority is higher; the policy's own choice if left out
    #[arg(long, value_enum)]
    priority: Option<Priority>,
    /// Packets between interrupt and driver; the machine's if left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    queue: Option<u32>,
    /// How packets come
    #[arg(
        long,
        value_enum,
        default_value = "uniform",
        conflicts_with = "capture"
    )]
    load: LoadKind,
    /// Packets a second on average
    #[arg(long, value_name = "N", default_value = "10000", value_parser = rate)]
    rate: f64,
    /// Packets of a burst (burst); 100 if left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    burst: Option<u32>,
    /// Length of a packet, bytes
    #[arg(long, value_name = "BYTES", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    bytes: u32,
    /// Replay a recorded file (pcap)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["load", "rate", "burst", "bytes"])]
    capture: Option<PathBuf>,
    /// How long
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum NicKind {
    /// For each packet
    Simple,
    /// For so many packets
    Counter,
    /// After so long without one
    Timer,
    /// Whichever is first
    Both,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LoadKind {
    /// At equal distances
    Uniform,
    /// At random
    Poisson,
    /// So many at once
    Burst,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Priority {
    /// The critical task's
    Task,
    /// Equal, turns at every interrupt and tick
    Equal,
    /// Equal, turns at every tick
    Sliced,
    /// The driver's
    Driver,
}

/// A line of help with all names that an option takes.
fn with_names<const N: usize>(what: &str, names: [&str; N]) -> String {
    format!("{what}: {}", names.join(", "))
}

fn machine(name: &str) -> Result<Machine, String> {
    let found = MACHINES.into_iter().find(|it| it.name == name);
    found.ok_or_else(|| format!("the machines are {}", MACHINES.map(|it| it.name).join(", ")))
}

fn policy(name: &str) -> Result<Policy, String> {
    let found = Policy::ALL.into_iter().find(|it| it.name() == name);
    found.ok_or_else(|| {
        format!(
            "the policies are {}",
            Policy::ALL.map(Policy::name).join(", ")
        )
    })
}

/// A number that is not negative, up to `most`.
fn amount(text: &str, most: f64) -> Result<f64, String> {
    let number: f64 = text
        .trim()
        .parse()
        .map_err(|_| format!("'{text}' is no number"))?;
    match (0.0..=most).contains(&number) {
        true => Ok(number),
        false => Err(format!("'{text}' is not between 0 and {most}")),
    }
}

/// An hour.
const LONGEST_US: f64 = 3.6e9;

fn micros(text: &str) -> Result<Duration, String> {
    amount(text, LONGEST_US).map(|micros| Duration::from_nanos((micros * 1e3).round() as u64))
}

fn nanos(text: &str) -> Result<u64, String> {
    amount(text, 1e9).map(|nanos| (nanos * 1e3).round() as u64)
}

fn rate(text: &str) -> Result<f64, String> {
    amount(text, 1e7)
}

/// What becomes of so many seconds.
fn run_through(mut processor: Processor, seconds: u64) -> Tally {
    let mut line = progress_line();
    let parts = seconds * 10;
    for part in 1..=parts {
        processor.run_until(Instant::ZERO + Duration::from_millis(part * 100));
        line.show(|spent| {
            let rest = spent.as_secs_f64() * (parts as f64 / part as f64 - 1.0);
            format!("second {} of {seconds}, {}", part / 10, left(rest))
        });
    }
    line.end();
    processor.tally_with_open_job()
}

impl Model {
    /// Runs it.
    pub fn run(self, seed: u64, as_json: bool) -> Outcome {
        self.check()?;
        let machine = self.costs();
        if machine.period == Duration::ZERO {
            return Err(Failure::usage(
                "--period-us is 0: give the critical task a period",
            ));
        }
        let work = self.work(machine.work)?;
        let order = self.order();
        let queue = self.queue.unwrap_or(machine.queue);
        let (load, name) = self.load(seed)?;
        let settings = SlackSettings {
            target: machine.period,
            work: work.longest(),
            interrupt: machine.interrupt.of(self.bytes.into()),
        };
        let (threshold, delay) = (
            self.threshold.unwrap_or(8),
            self.delay_us.unwrap_or(Duration::from_micros(100)),
        );
        let moderation = match self.nic {
            NicKind::Simple => Moderation::Simple,
            NicKind::Counter => Moderation::Counter(threshold),
            NicKind::Timer => Moderation::Timer(delay),
            NicKind::Both => Moderation::Both(threshold, delay),
        };
        // An interface that gathers packets has room for them.
        let ring = machine.ring.max(match moderation {
            Moderation::Simple => 1,
            _ => 4_096,
        });
        let setup = Setup {
            nic: Nic::new(moderation, ring),
            interrupt: machine.interrupt,
            packet: machine.packet,
            queue,
            order,
            critical: Critical::Periodic {
                period: machine.period,
                work,
            },
            mitigation: self.policy.build(settings),
            seed,
        };
        let tally = run_through(Processor::new(setup, load), self.seconds);
        match as_json {
            true => output::print_line(self.json(&tally, queue, &name)),
            false => show(&tally, &name, self.seconds),
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Options that would have no effect are refused.
    fn check(&self) -> Result<(), Failure> {
        use NicKind::{Both, Counter, Timer};
        let idle = [
            (
                self.threshold.is_some() && !matches!(self.nic, Counter | Both),
                "--threshold needs --nic counter or both",
            ),
            (
                self.delay_us.is_some() && !matches!(self.nic, Timer | Both),
                "--delay-us needs --nic timer or both",
            ),
            (
                self.burst.is_some() && !matches!(self.load, LoadKind::Burst),
                "--burst needs --load burst",
            ),
        ];
        match idle.into_iter().find(|it| it.0) {
            Some((_, message)) => Err(Failure::usage(message)),
            None => Ok(()),
        }
    }

    fn costs(&self) -> Machine {
        let mut machine = self.machine;
        machine.interrupt.constant = self.interrupt_us.unwrap_or(machine.interrupt.constant);
        machine.interrupt.per_byte_ps = self
            .interrupt_byte_ns
            .unwrap_or(machine.interrupt.per_byte_ps);
        machine.packet.constant = self.packet_us.unwrap_or(machine.packet.constant);
        machine.packet.per_byte_ps = self.packet_byte_ns.unwrap_or(machine.packet.per_byte_ps);
        machine.period = self.period_us.unwrap_or(machine.period);
        machine.work = self.work_us.unwrap_or(machine.work);
        machine
    }

    fn order(&self) -> Order {
        match self.priority {
            None => self.policy.order(),
            Some(Priority::Task) => Order::CriticalFirst,
            Some(Priority::Equal) => Order::Equal,
            Some(Priority::Sliced) => Order::Sliced,
            Some(Priority::Driver) => Order::DriverFirst,
        }
    }

    fn work(&self, usual: Duration) -> Result<Work, Failure> {
        let Some(file) = &self.work_file else {
            return Ok(Work::Fixed(usual));
        };
        let named = |what: &dyn std::fmt::Display| {
            Failure::usage(format_args!("{}: {what}", file.display()))
        };
        let text = std::fs::read_to_string(file).map_err(|error| named(&error))?;
        let lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty());
        let jobs = lines.map(|(at, line)| {
            micros(line).map_err(|error| {
                named(&format_args!(
                    "line {}: {error}; write the microseconds of one job",
                    at + 1
                ))
            })
        });
        let jobs = jobs.collect::<Result<Vec<_>, _>>()?;
        match jobs.is_empty() {
            true => Err(named(
                &"it has no job: write the microseconds of one on each line",
            )),
            false => Ok(Work::Measured(jobs)),
        }
    }

    fn load(&self, seed: u64) -> Result<(Load, String), Failure> {
        if let Some(file) = &self.capture {
            let named = |what: &dyn std::fmt::Display| {
                Failure::usage(format_args!("{}: {what}", file.display()))
            };
            let bytes = std::fs::read(file).map_err(|error| named(&error))?;
            let arrivals = capture::read(&bytes).map_err(|error| named(&error))?;
            let name = format!("{} packets of {}", arrivals.len(), file.display());
            return Ok((Load::recorded(arrivals), name));
        }
        let rate = self.rate;
        let (shape, name) = match self.load {
            LoadKind::Uniform => (Shape::Uniform(rate), "uniform".to_owned()),
            LoadKind::Poisson => (Shape::Poisson(rate), "poisson".to_owned()),
            LoadKind::Burst => {
                let burst = self.burst.unwrap_or(100);
                let every = (f64::from(burst) * 1e9 / rate.max(1e-3)).round() as u64;
                let every = Duration::from_nanos(every);
                // At the rate of section 4.3.3 within one.
                let gap = Duration::from_nanos(8_333).min(every / u64::from(burst));
                let shape = Shape::Bursts {
                    packets: burst,
                    every,
                    gap,
                };
                (shape, format!("bursts of {burst}"))
            }
        };
        let lasts = Duration::from_secs(self.seconds);
        let load = Load::new(vec![Stretch { shape, lasts }], self.bytes, seed);
        Ok((load, format!("{name}, {rate} a second")))
    }

    fn json(&self, tally: &Tally, queue: u32, load: &str) -> Value {
        let order = match self.order() {
            Order::CriticalFirst => "task",
            Order::Equal => "equal",
            Order::Sliced => "sliced",
            Order::DriverFirst => "driver",
        };
        let nic = self.nic.to_possible_value();
        json!({
            "schema": SCHEMA,
            "kind": "run",
            "machine": self.machine.name,
            "nic": nic.as_ref().map(clap::builder::PossibleValue::get_name),
            "policy": self.policy.name(),
            "priority": order,
            "queue": queue,
            "load": load,
            "seconds": self.seconds,
            "sent": tally.sent,
            "missed": tally.missed,
            "received": tally.received,
            "overflowed": tally.overflowed,
            "handled": tally.handled,
            "interrupts": {
                "packet": tally.interrupts[0], "counter": tally.interrupts[1], "timer": tally.interrupts[2],
            },
            "interrupt_ns": tally.interrupt_time.as_nanos(),
            "driver_ns": tally.driver_time.as_nanos(),
            "critical_ns": tally.critical_time.as_nanos(),
            "jobs": tally.jobs,
            "late": tally.late,
            "lateness_percent": tally.lateness_percent(),
            "worst_ns": tally.worst.as_nanos(),
        })
    }
}

fn show(tally: &Tally, load: &str, seconds: u64) {
    let share = |time: Duration| 100.0 * time.as_secs_f64() / seconds as f64;
    let [packet, counter, timer] = tally.interrupts;
    output::print_line(format_args!(
        "{load}, {seconds} s\n\
         packets      {} sent, {} lost in the interface, {} without room in the queue, {} handed on\n\
         interrupts   {} (packet {packet}, counter {counter}, timer {timer})\n\
         processor    interrupts {:.1} %, driver {:.1} %, critical task {:.1} %\n\
         jobs         {}, {} late; lateness {:.2} %, {} at worst",
        tally.sent,
        tally.missed,
        tally.overflowed,
        tally.handled,
        tally.all_interrupts(),
        share(tally.interrupt_time),
        share(tally.driver_time),
        share(tally.critical_time),
        tally.jobs,
        tally.late,
        tally.lateness_percent(),
        tally.worst,
    ));
}
