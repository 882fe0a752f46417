//! What processors take for a packet, and where that stands in the dissertation.

use bumpless_base::Duration;

use crate::processor::Delay;

/// How a figure was come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It stands in the text.
    Text,
    /// It follows from what stands in the text, with the model.
    Inferred,
    /// The text has nothing; chosen.
    Chosen,
}

impl Origin {
    /// The word for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Inferred => "inferred",
            Self::Chosen => "chosen",
        }
    }
}

/// A figure with its place.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Of which machine.
    pub machine: &'static str,
    /// What it is.
    pub name: &'static str,
    /// Its value with its unit.
    pub value: &'static str,
    /// How it was come by.
    pub origin: Origin,
    /// Section, table or figure.
    pub place: &'static str,
    /// How it follows, where it does.
    pub reason: &'static str,
}

/// A processor with what a packet takes of it.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Its name in commands.
    pub name: &'static str,
    /// An interrupt with one packet.
    pub interrupt: Delay,
    /// The driver's task for one packet.
    pub packet: Delay,
    /// The critical task's period and target.
    pub period: Duration,
    /// What a job of it takes.
    pub work: Duration,
    /// Packets between interrupt and driver.
    pub queue: u32,
    /// Packets in the interface's ring.
    pub ring: usize,
    /// The highest rate of the measurements, packets a second.
    pub peak: f64,
}

const fn nanos(n: u64) -> Duration {
    Duration::from_nanos(n)
}

/// The ESP32 with simulated packets, as in section 5.3.
pub const ESP32: Machine = Machine {
    name: "esp32",
    interrupt: Delay::constant(nanos(5_600)),
    packet: Delay::constant(nanos(6_600)),
    period: Duration::from_millis(10),
    work: nanos(6_340_000),
    queue: 100,
    ring: 1,
    peak: 73_500.0,
};

/// The ESP32 with real packets to an open port, as in section 4.4.
pub const ESP32_WIFI: Machine = Machine {
    name: "esp32-wifi",
    interrupt: Delay::constant(Duration::ZERO),
    packet: Delay::constant(nanos(38_000)),
    period: Duration::from_millis(10),
    work: nanos(6_340_000),
    queue: 100,
    ring: 32,
    peak: 26_000.0,
};

/// What the ESP32's driver takes for a packet without the network task above it.
pub const ESP32_DRIVER: Duration = nanos(21_500);
/// The same two for a closed port.
pub const ESP32_CLOSED: Duration = nanos(66_700);
/// See [`ESP32_CLOSED`].
pub const ESP32_CLOSED_DRIVER: Duration = nanos(31_700);

/// The Particle Photon with real packets, as in section 4.4.
pub const PHOTON: Machine = Machine {
    name: "photon",
    interrupt: Delay::constant(Duration::ZERO),
    packet: Delay::constant(nanos(200_000)),
    period: Duration::from_millis(10),
    work: nanos(6_340_000),
    queue: 100,
    ring: 32,
    peak: 4_000.0,
};

/// Rates at which the Photon's driver crashed: below its priority, and with it (4.4.2).
pub const PHOTON_CRASHES: (f64, f64) = (980.0, 2_000.0);

/// The Zynq-7000 with the original FreeRTOS+TCP, as in sections 5.1.1 and 5.5.
pub const ZYNQ: Machine = Machine {
    name: "zynq",
    interrupt: Delay::constant(nanos(800)),
    packet: Delay::constant(nanos(11_300)),
    period: Duration::from_millis(10),
    work: nanos(6_340_000),
    queue: 100,
    ring: 64,
    peak: 80_000.0,
};

/// All that can be named.
pub const MACHINES: [Machine; 4] = [ESP32, ESP32_WIFI, PHOTON, ZYNQ];

/// What the driver with flows takes on the Zynq, by path (5.5.2).
#[derive(Clone, Copy, Debug)]
pub struct PathCosts {
    /// An interrupt that classifies a packet and gives it up at once.
    pub short_circuit: Duration,
    /// One that queues it, or declines it in its queue, another being recycled where need be.
    pub queued: Duration,
    /// A packet worked off wholly, interrupt included.
    pub whole: Duration,
    /// The original stack: a packet worked off wholly.
    pub original: Duration,
    /// An interrupt that also makes caches coherent.
    pub eager: Duration,
    /// What of an interrupt is saved where a packet is fetched in a batch.
    pub entry: Duration,
}

/// As measured in section 5.5.2.
pub const ZYNQ_PATHS: PathCosts = PathCosts {
    short_circuit: nanos(1_620),
    queued: nanos(1_750),
    whole: nanos(12_300),
    original: nanos(12_100),
    eager: nanos(4_400),
    entry: nanos(800),
};

const fn row(
    machine: &'static str,
    name: &'static str,
    value: &'static str,
    (origin, place): (Origin, &'static str),
    reason: &'static str,
) -> Parameter {
    Parameter {
        machine,
        name,
        value,
        origin,
        place,
        reason,
    }
}

use Origin::{Chosen, Inferred, Text};

/// Every figure with its place.
pub const PARAMETERS: &[Parameter] = &[
    row("esp32", "period and target", "10 ms", (Text, "5.3"), ""),
    row(
        "esp32",
        "queue",
        "100; 500 and 750 for the queue mitigation",
        (Text, "5.3, figures 5.8 to 5.10"),
        "",
    ),
    row(
        "esp32",
        "slack of a job, in interrupts",
        "600 to 750",
        (Inferred, "5.3, burst and queue mitigation"),
        "600 interrupts in 20 ms is the best setting without lateness and more is late, so 600 fill the slack of a job; \
         a queue of 750 is late, so 750 do not fit",
    ),
    row(
        "esp32",
        "interrupt and driver for a packet",
        "12.2 us",
        (Inferred, "5.3, queue mitigation"),
        "the stack copes with 30,000 a second in the time that the task leaves: (1 - work / period) / 30,000",
    ),
    row(
        "esp32",
        "work of a job, highest rate",
        "6.34 ms, 73,500 a second",
        (Inferred, "5.3, baseline"),
        "the one pair with which, at the same rate, lateness is 8 % with the task first and 500 % among equals, given the two rows above",
    ),
    row(
        "esp32",
        "interrupt; driver",
        "5.6 us; 6.6 us",
        (Inferred, "as above"),
        "slack of 3.66 ms over 653 interrupts; the rest of the 12.2 us",
    ),
    row(
        "esp32",
        "ring",
        "1 packet",
        (Inferred, "5.3, figure 5.7"),
        "packets are edges on a pin: one is remembered while interrupts are off, the rest is lost",
    ),
    row(
        "esp32-wifi",
        "driver and network task for a packet",
        "38 us, closed port 66.7 us",
        (Text, "4.4.2, figure 4.5"),
        "'3.8 %' and '6.67 %' below both tasks, taken as percent of the processor for 1,000 packets a second: \
         for each packet a second, as the text has it, 27 would fill the processor",
    ),
    row(
        "esp32-wifi",
        "driver alone for a packet",
        "21.5 us, closed port 31.7 us",
        (Text, "4.4.2, figure 4.5"),
        "'2.15 %' and '3.17 %' with the driver's priority, which is above the network task's (table 4.1)",
    ),
    row(
        "esp32-wifi",
        "interrupt",
        "0",
        (Text, "4.4.1, 4.5.1"),
        "no impact of interrupts was observed",
    ),
    row(
        "photon",
        "driver for a packet",
        "200 us",
        (Text, "4.4.2"),
        "'2 %' taken as percent of the processor for 100 packets a second: with the driver's crash at 980 a second \
         before the task starves it cannot be for fewer, and half of the processor at 2,000 a second fits",
    ),
    row(
        "photon",
        "driver crashes at",
        "980 a second; 2,000 among equals",
        (Text, "4.4.2"),
        "",
    ),
    row(
        "esp32-wifi, photon",
        "task",
        "10 ms, 6.34 ms of work",
        (Chosen, "4.3.1"),
        "the text has no period; that of section 5.3",
    ),
    row(
        "zynq",
        "interrupt; interrupt and its task; all",
        "0.8 us; 6.9 us; 12.5 us",
        (Inferred, "5.1.1, table 5.2"),
        "10 % of the processor over 125,000, 14,500 and 8,000 packets a second",
    ),
    row(
        "zynq",
        "original stack, all",
        "12.1 us",
        (Text, "5.5.2, figure 5.16"),
        "",
    ),
    row(
        "zynq",
        "with flows: short circuit; queued",
        "1.62 us; 1.75 us",
        (Text, "5.5.2, figure 5.16"),
        "",
    ),
    row(
        "zynq",
        "with flows: worked off",
        "12.3 us",
        (Text, "5.5.2, figure 5.16"),
        "",
    ),
    row(
        "zynq",
        "with flows, caches eagerly coherent",
        "4.4 us",
        (Text, "5.5.2, figure 5.16"),
        "",
    ),
    row(
        "zynq",
        "saved in a batch",
        "0.8 us",
        (Inferred, "5.1.1, table 5.2"),
        "an interrupt's entry, which polling has once for a batch",
    ),
    row(
        "zynq",
        "limits",
        "3 in 2 ms (original); 7,000 a second and 1 in 1 ms (with flows)",
        (Text, "5.5.4"),
        "",
    ),
    row(
        "zynq",
        "ring",
        "64 packets",
        (Chosen, "5.4.3"),
        "the text has no size",
    ),
];
