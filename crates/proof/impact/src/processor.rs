//! The model: one processor, interrupts above two tasks.

use std::collections::VecDeque;

use bumpless_base::{Duration, Instant, Random};
use bumpless_guard::metric::{Earliness, Fill};
use bumpless_guard::mitigation::Mitigation;

use crate::load::{Arrival, Load};
use crate::nic::Nic;
use crate::policy::Order;

/// What something takes of the processor: `d(l) = d_l l + d_c` (4.6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delay {
    /// Whatever the length.
    pub constant: Duration,
    /// For each byte, in picoseconds.
    pub per_byte_ps: u64,
}

impl Delay {
    /// A delay that does not depend on the length.
    pub const fn constant(constant: Duration) -> Self {
        Self {
            constant,
            per_byte_ps: 0,
        }
    }

    /// Of `bytes` altogether.
    pub fn of(&self, bytes: u64) -> Duration {
        self.constant + Duration::from_nanos(self.per_byte_ps.saturating_mul(bytes) / 1_000)
    }
}

/// What a job of the critical task takes of the processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Always the same.
    Fixed(Duration),
    /// Drawn evenly between both.
    Between(Duration, Duration),
    /// As measured of a user's code, over and over.
    Measured(Vec<Duration>),
}

impl Work {
    /// The most that a job takes.
    pub fn longest(&self) -> Duration {
        match self {
            Self::Fixed(work) | Self::Between(_, work) => *work,
            Self::Measured(list) => list.iter().copied().max().unwrap_or_default(),
        }
    }

    fn draw(&self, job: u64, random: &mut Random) -> Duration {
        match self {
            Self::Fixed(work) => *work,
            Self::Between(least, most) => {
                let span = (*most - *least).as_nanos().saturating_add(1);
                *least + Duration::from_nanos(random.below(span))
            }
            Self::Measured(list) => {
                let at = (job % list.len().max(1) as u64) as usize;
                list.get(at).copied().unwrap_or_default()
            }
        }
    }
}

/// The critical task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Critical {
    /// A job each period, which is also its target. A late one is finished, and the next begins at once (5.3).
    Periodic {
        /// Period and target.
        period: Duration,
        /// Of a job.
        work: Work,
    },
    /// It computes without end, so that its share of the processor shows (4.3.1).
    Endless,
    /// It computes once from the beginning: a user's code under test (4.6.2).
    Once(Duration),
}

/// What is modelled.
pub struct Setup {
    /// The network interface.
    pub nic: Nic,
    /// What an interrupt takes; the bytes are those of all its packets.
    pub interrupt: Delay,
    /// What the driver's task takes for a packet.
    pub packet: Delay,
    /// Packets between interrupt and driver.
    pub queue: u32,
    /// Whose priority is higher.
    pub order: Order,
    /// The critical task.
    pub critical: Critical,
    /// When the network may interrupt.
    pub mitigation: Box<dyn Mitigation>,
    /// Draws the work of jobs.
    pub seed: u64,
}

/// Tasks of equal priority with time slices take turns this often: the tick of FreeRTOS at 1 kHz.
const TICK: Duration = Duration::from_millis(1);

/// What has happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets on the wire.
    pub sent: u64,
    /// Packets that the interface lost, its ring being full or silenced.
    pub missed: u64,
    /// Packets that an interrupt has brought.
    pub received: u64,
    /// Of these, packets that found no room in the queue.
    pub overflowed: u64,
    /// Packets that the driver has worked off.
    pub handled: u64,
    /// Interrupts by cause: packet, counter, timer.
    pub interrupts: [u64; 3],
    /// The processor's time in interrupts.
    pub interrupt_time: Duration,
    /// The processor's time in the driver.
    pub driver_time: Duration,
    /// The processor's time in the critical task.
    pub critical_time: Duration,
    /// Jobs ended.
    pub jobs: u64,
    /// Of these, late ones.
    pub late: u64,
    /// By how much, together.
    pub lateness: Duration,
    /// The latest one.
    pub worst: Duration,
    /// The targets of the ended jobs, together.
    pub targets: Duration,
}

impl Tally {
    /// Lateness in percent of the targets: 100 means that jobs took twice as long as intended (5.2.1).
    pub fn lateness_percent(&self) -> f64 {
        match self.targets {
            Duration::ZERO => 0.0,
            targets => 100.0 * self.lateness.as_nanos() as f64 / targets.as_nanos() as f64,
        }
    }

    /// All interrupts.
    pub fn all_interrupts(&self) -> u64 {
        self.interrupts.iter().sum()
    }

    /// What has happened since `before`; the latest job is the latest of all.
    pub fn since(&self, before: &Self) -> Self {
        let interrupts = [0, 1, 2].map(|at| self.interrupts[at] - before.interrupts[at]);
        Self {
            sent: self.sent - before.sent,
            missed: self.missed - before.missed,
            received: self.received - before.received,
            overflowed: self.overflowed - before.overflowed,
            handled: self.handled - before.handled,
            interrupts,
            interrupt_time: self.interrupt_time - before.interrupt_time,
            driver_time: self.driver_time - before.driver_time,
            critical_time: self.critical_time - before.critical_time,
            jobs: self.jobs - before.jobs,
            late: self.late - before.late,
            lateness: self.lateness - before.lateness,
            worst: self.worst,
            targets: self.targets - before.targets,
        }
    }
}

/// A job under way.
#[derive(Clone, Copy, Debug)]
struct Job {
    release: Instant,
    left: Duration,
}

/// A packet that the driver works off.
#[derive(Clone, Copy, Debug)]
struct Working {
    left: Duration,
    whole: Duration,
}

/// Who has the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runs {
    Interrupt,
    Driver,
    Critical,
    Nobody,
}

/// A processor under load.
pub struct Processor {
    setup: Setup,
    load: Load,
    now: Instant,
    arrival: Option<Arrival>,
    /// The rest of the interrupt under way, whose packets are in `announced`.
    interrupt: Option<Duration>,
    announced: Vec<u32>,
    queue: VecDeque<u32>,
    working: Option<Working>,
    job: Option<Job>,
    release: Option<Instant>,
    /// Whose turn it is among equals.
    turn: Runs,
    next_tick: Instant,
    random: Random,
    tally: Tally,
    ended: Option<Instant>,
}

impl Processor {
    /// A processor at the origin of time.
    pub fn new(setup: Setup, mut load: Load) -> Self {
        let arrival = load.next();
        let random = Random::new(setup.seed);
        let queue = VecDeque::with_capacity(setup.queue as usize);
        Self {
            setup,
            load,
            now: Instant::ZERO,
            arrival,
            interrupt: None,
            announced: Vec::new(),
            queue,
            working: None,
            job: None,
            release: Some(Instant::ZERO),
            turn: Runs::Critical,
            next_tick: Instant::ZERO + TICK,
            random,
            tally: Tally::default(),
            ended: None,
        }
    }

    /// What has happened so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The same, with a job that is under way counted as one that ends now, if it is late already: what starves never ends.
    pub fn tally_with_open_job(&self) -> Tally {
        let mut tally = self.tally;
        let (Critical::Periodic { period, .. }, Some(job)) = (&self.setup.critical, self.job)
        else {
            return tally;
        };
        let lateness = self.now.since(job.release) - *period;
        if lateness > Duration::ZERO {
            tally.jobs += 1;
            tally.late += 1;
            tally.lateness = tally.lateness + lateness;
            tally.worst = tally.worst.max(lateness);
            tally.targets = tally.targets + *period;
        }
        tally
    }

    /// When the code under test ended ([`Critical::Once`]).
    pub fn ended(&self) -> Option<Instant> {
        self.ended
    }

    /// Lets time pass until `end`.
    pub fn run_until(&mut self, end: Instant) -> Tally {
        while self.step(end) {}
        self.tally
    }

    /// Lets time pass until all packets are worked off that will be, at most until `end`.
    pub fn drain(&mut self, end: Instant) -> Tally {
        let busy = |it: &Self| {
            let held = it.interrupt.is_some() || it.working.is_some() || !it.queue.is_empty();
            it.arrival.is_some() || held || it.setup.nic.waiting() > 0
        };
        while busy(self) && self.step(end) {}
        self.tally
    }

    /// Lets time pass until the code under test has ended, at most until `end`.
    pub fn run_once(&mut self, end: Instant) -> Option<Duration> {
        while self.ended.is_none() && self.step(end) {}
        self.ended.map(|at| at.since(Instant::ZERO))
    }

    /// Until the next thing happens; `false`: `end` is reached.
    fn step(&mut self, end: Instant) -> bool {
        self.happen();
        if self.now >= end {
            return false;
        }
        let runs = self.choose();
        let due = [
            self.arrival.map(|it| it.at),
            self.setup.nic.poll_timeout(),
            self.setup.mitigation.poll_timeout(),
            self.release,
            self.left(runs).map(|left| self.now + left),
            self.tick(),
        ];
        let next = due.into_iter().flatten().fold(end, Instant::min);
        self.pass(runs, next.since(self.now).min(end.since(self.now)));
        self.finish(runs);
        true
    }

    /// Everything that is due now, the processor's own work excepted.
    fn happen(&mut self) {
        while let Some(arrival) = self.arrival.filter(|it| it.at <= self.now) {
            self.tally.sent += 1;
            let kept = self.setup.nic.handle_packet(self.now, arrival.len);
            self.tally.missed += u64::from(!kept);
            self.arrival = self.load.next();
            // Taken off at once where nothing hinders it, so that back-to-back packets do not share a place.
            self.begin_interrupt();
        }
        if self
            .setup
            .nic
            .poll_timeout()
            .is_some_and(|due| due <= self.now)
        {
            self.setup.nic.handle_timeout(self.now);
        }
        while self
            .setup
            .mitigation
            .poll_timeout()
            .is_some_and(|due| due <= self.now)
        {
            self.setup.mitigation.handle_timeout(self.now);
        }
        if self.release.is_some_and(|at| at <= self.now) {
            self.begin_job();
        }
        if self.next_tick <= self.now {
            self.next_tick = self.now + TICK;
            if self.setup.order == Order::Sliced {
                self.turn = self.other();
            }
        }
        self.begin_interrupt();
    }

    fn begin_job(&mut self) {
        let left = match &self.setup.critical {
            Critical::Periodic { work, .. } => work.draw(self.tally.jobs, &mut self.random),
            Critical::Endless => Duration::MAX,
            Critical::Once(work) => *work,
        };
        self.job = Some(Job {
            release: self.now,
            left,
        });
        self.release = None;
        self.setup.mitigation.handle_release(self.now);
    }

    fn begin_interrupt(&mut self) {
        let may = self.interrupt.is_none() && self.setup.nic.is_pending();
        if !may || !self.setup.mitigation.gates().interrupts {
            return;
        }
        if let Some(cause) = self.setup.nic.take(&mut self.announced) {
            let bytes = self.announced.iter().map(|&len| u64::from(len)).sum();
            self.interrupt = Some(self.setup.interrupt.of(bytes));
            self.tally.interrupts[cause as usize] += 1;
        }
    }

    fn choose(&mut self) -> Runs {
        if self.interrupt.is_some() {
            return Runs::Interrupt;
        }
        let driver = self.is_driver_ready();
        let critical = self.job.is_some();
        let runs = match (driver, critical, self.setup.order) {
            (false, false, _) => return Runs::Nobody,
            (true, false, _) | (true, true, Order::DriverFirst) => Runs::Driver,
            (false, true, _) | (true, true, Order::CriticalFirst) => Runs::Critical,
            (true, true, Order::Equal | Order::Sliced) => self.turn,
        };
        self.turn = runs;
        if runs == Runs::Driver && !self.take_packet() {
            return self.choose_without_driver();
        }
        // Taking a packet may have let the network interrupt.
        match self.interrupt {
            Some(_) => Runs::Interrupt,
            None => runs,
        }
    }

    fn choose_without_driver(&mut self) -> Runs {
        match self.job {
            Some(_) => Runs::Critical,
            None => Runs::Nobody,
        }
    }

    fn is_driver_ready(&self) -> bool {
        let may = self.setup.mitigation.gates().driver;
        self.working.is_some() || (may && !self.queue.is_empty())
    }

    /// Whether the driver has a packet to work on, an old or a fresh one.
    fn take_packet(&mut self) -> bool {
        if self.working.is_some() {
            return true;
        }
        let fill = self.fill(self.queue.len().saturating_sub(1));
        self.setup.mitigation.handle_driver(self.now, fill);
        if !self.setup.mitigation.gates().driver {
            return false;
        }
        self.working = self.queue.pop_front().map(|len| {
            let whole = self.setup.packet.of(len.into());
            Working { left: whole, whole }
        });
        // A place in the queue may have opened the network's gate.
        self.begin_interrupt();
        self.working.is_some()
    }

    fn fill(&self, waiting: usize) -> Fill {
        Fill {
            waiting: waiting as u32,
            capacity: self.setup.queue,
        }
    }

    fn other(&self) -> Runs {
        match self.turn {
            Runs::Driver => Runs::Critical,
            _ => Runs::Driver,
        }
    }

    /// When equals with time slices change turns.
    fn tick(&self) -> Option<Instant> {
        (self.setup.order == Order::Sliced).then_some(self.next_tick)
    }

    fn left(&self, runs: Runs) -> Option<Duration> {
        match runs {
            Runs::Interrupt => self.interrupt,
            Runs::Driver => self.working.map(|it| it.left),
            Runs::Critical => self.job.map(|it| it.left),
            Runs::Nobody => None,
        }
    }

    fn pass(&mut self, runs: Runs, span: Duration) {
        self.now += span;
        match runs {
            Runs::Interrupt => {
                self.interrupt = self.interrupt.map(|left| left - span);
                self.tally.interrupt_time = self.tally.interrupt_time + span;
            }
            Runs::Driver => {
                if let Some(working) = &mut self.working {
                    working.left = working.left - span;
                }
                self.tally.driver_time = self.tally.driver_time + span;
            }
            Runs::Critical => {
                let endless = self.setup.critical == Critical::Endless;
                if let Some(job) = self.job.as_mut().filter(|_| !endless) {
                    job.left = job.left - span;
                }
                self.tally.critical_time = self.tally.critical_time + span;
            }
            Runs::Nobody => {}
        }
    }

    /// Ends what has used up its time.
    fn finish(&mut self, runs: Runs) {
        if self.left(runs) != Some(Duration::ZERO) {
            return;
        }
        match runs {
            Runs::Interrupt => self.end_interrupt(),
            Runs::Driver => self.end_packet(),
            Runs::Critical => self.end_job(),
            Runs::Nobody => {}
        }
    }

    fn end_interrupt(&mut self) {
        self.interrupt = None;
        let wakes = self.working.is_none() && self.queue.is_empty();
        let mut announced = std::mem::take(&mut self.announced);
        for len in announced.drain(..) {
            let fill = self.fill(self.queue.len());
            self.tally.received += 1;
            match fill.is_full() {
                true => self.tally.overflowed += 1,
                false => self.queue.push_back(len),
            }
            self.setup.mitigation.handle_packet(self.now, fill);
        }
        self.announced = announced;
        if wakes && self.setup.order == Order::Equal {
            self.turn = Runs::Driver;
        }
    }

    fn end_packet(&mut self) {
        let spent = self.working.take().map(|it| it.whole).unwrap_or_default();
        self.tally.handled += 1;
        let fill = self.fill(self.queue.len());
        self.setup
            .mitigation
            .handle_processed(self.now, spent, fill);
    }

    fn end_job(&mut self) {
        let Some(job) = self.job.take() else { return };
        let Critical::Periodic { period, .. } = self.setup.critical else {
            self.ended = Some(self.now);
            return;
        };
        let earliness = Earliness {
            target: period,
            took: self.now.since(job.release),
        };
        let lateness = earliness.lateness();
        self.tally.jobs += 1;
        self.tally.late += u64::from(lateness > Duration::ZERO);
        self.tally.lateness = self.tally.lateness + lateness;
        self.tally.worst = self.tally.worst.max(lateness);
        self.tally.targets = self.tally.targets + period;
        self.release = Some((job.release + period).max(self.now));
        self.setup.mitigation.handle_completion(self.now, earliness);
    }
}
