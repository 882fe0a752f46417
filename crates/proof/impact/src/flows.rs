//! The driver with flows (5.4) under two floods, the shipped guard deciding: what figures 5.16 and 5.18 measure.

use std::collections::VecDeque;

use bumpless_base::{Duration, Instant};
use bumpless_guard::{
    Flow, Guard, Match, Mode, Priority, Rate, Refusal, Setup, Terms, Transport, Verdict,
};

use crate::load::{Load, Shape, Stretch};
use crate::machine::PathCosts;

/// The flow's port that a task above the worker listens to.
const URGENT: u16 = 1;
/// The one below.
const LEISURELY: u16 = 2;
/// The worker that measures what is left of the processor (5.5.1, passive).
const WORKER: Priority = Priority(5);

/// Which stack receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// The original one: no flows, an overall limit, everything worked off at once.
    Original,
    /// With flows.
    Flows,
    /// With flows, without the short circuit.
    NoShortCircuit,
    /// With flows, caches made coherent in the interrupt.
    Eager,
}

/// What is received.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// By whom.
    pub stack: Stack,
    /// Packets a second to the urgent task.
    pub urgent: f64,
    /// Packets a second to the other.
    pub leisurely: f64,
    /// Limits, if any.
    pub limits: Limits,
    /// So long.
    pub lasts: Duration,
}

/// Rates at most.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Of all packets.
    pub overall: Option<Rate>,
    /// Of the urgent flow.
    pub urgent: Option<Rate>,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Packets that the guard was asked about, of both tasks.
    pub taken: u64,
    /// Packets to the urgent task.
    pub urgent_sent: u64,
    /// Of these, what it got.
    pub urgent_got: u64,
    /// The processor's time for all of it.
    pub busy: Duration,
    /// How long it lasted.
    pub lasted: Duration,
}

impl Outcome {
    /// The processor's share, percent.
    pub fn utilisation(&self) -> f64 {
        100.0 * self.busy.as_nanos() as f64 / self.lasted.as_nanos().max(1) as f64
    }

    /// The urgent packets that arrived, percent.
    pub fn liveness(&self) -> f64 {
        100.0 * self.urgent_got as f64 / self.urgent_sent.max(1) as f64
    }

    /// The processor's time for a packet, microseconds.
    pub fn per_packet(&self) -> f64 {
        self.busy.as_nanos() as f64 / 1e3 / self.taken.max(1) as f64
    }
}

/// Buffers of the ring and the queues together.
const BUFFERS: u32 = 128;
/// Packets that the ring holds while the network is polled.
const RING: usize = 64;

fn guard(case: &Case) -> Guard<()> {
    let flow = |port, priority, rate| Flow {
        matches: vec![Match::Port(Transport::Udp, port)],
        terms: Terms {
            priority: Priority(priority),
            rate,
            queue: u16::MAX,
        },
    };
    let setup = Setup {
        flows: vec![
            flow(URGENT, WORKER.0 + 1, case.limits.urgent),
            flow(LEISURELY, WORKER.0 - 1, None),
        ],
        overall: case.limits.overall,
        ..Setup::closed(BUFFERS)
    };
    Guard::new(&setup, Instant::ZERO).expect("the setup is sound")
}

/// A datagram without payload to `port`.
fn frame(port: u16) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, 9]);
    frame.extend(port.to_be_bytes());
    frame.extend([0, 8, 0, 0]);
    frame
}

struct Run<'a> {
    case: &'a Case,
    costs: &'a PathCosts,
    guard: Guard<()>,
    frames: [Vec<u8>; 2],
    /// When packets came, and to whom.
    ring: VecDeque<(Instant, usize)>,
    /// Until when the processor is busy with packets.
    until: Instant,
    outcome: Outcome,
}

/// Lets the packets of `case` come.
pub fn run(case: &Case, costs: &PathCosts) -> Outcome {
    let load = |rate| {
        let stretch = Stretch {
            shape: Shape::Uniform(rate),
            lasts: case.lasts,
        };
        Load::new(vec![stretch], 60, 0).peekable()
    };
    let mut loads = [load(case.urgent), load(case.leisurely)];
    let mut run = Run {
        case,
        costs,
        guard: guard(case),
        frames: [frame(URGENT), frame(LEISURELY)],
        ring: VecDeque::new(),
        until: Instant::ZERO,
        outcome: Outcome {
            lasted: case.lasts,
            ..Outcome::default()
        },
    };
    loop {
        let due = [0, 1].map(|which| loads[which].peek().map(|it| it.at));
        let which = match due {
            [None, None] => break,
            [Some(urgent), Some(leisurely)] => usize::from(leisurely < urgent),
            [urgent, _] => usize::from(urgent.is_none()),
        };
        let Some(arrival) = loads[which].next() else {
            break;
        };
        while let Some(poll) = run.guard.poll_timeout().filter(|&it| it <= arrival.at) {
            run.poll(poll);
        }
        run.arrive(arrival.at, which);
    }
    run.outcome
}

impl Run<'_> {
    fn arrive(&mut self, at: Instant, which: usize) {
        self.outcome.urgent_sent += u64::from(which == 0);
        self.catch_up(at);
        // The interface loses what the ring has no place for.
        if self.ring.len() < RING {
            self.ring.push_back((at, which));
        }
        self.catch_up(at);
    }

    /// Interrupts for what is in the ring, as far as the processor has come by `at`.
    fn catch_up(&mut self, at: Instant) {
        while self.guard.mode() == Mode::Interrupts && self.until <= at {
            let Some((came, which)) = self.ring.pop_front() else {
                break;
            };
            self.receive(came.max(self.until), which, Duration::ZERO);
        }
    }

    /// The beginning of a period in polling: as many as the budget allows.
    fn poll(&mut self, at: Instant) {
        let mut saved = Duration::ZERO;
        while self.guard.allowance(at) != Some(0) {
            let Some((_, which)) = self.ring.pop_front() else {
                return self.guard.handle_ring_empty(at);
            };
            self.receive(at, which, saved);
            saved = self.costs.entry;
        }
    }

    fn receive(&mut self, at: Instant, which: usize, saved: Duration) {
        self.outcome.taken += 1;
        let frame = &self.frames[which];
        let verdict = self.guard.handle_frame(at, frame, frame.len(), ());
        let cost = self.eager(verdict) - saved;
        self.spend(at, cost);
        if self.case.stack == Stack::Original {
            // It knows no flows: what was let in is worked off.
            let let_in = !matches!(
                verdict,
                Verdict::Refused {
                    cause: Refusal::Overall,
                    ..
                }
            );
            while self.guard.poll_frame().is_some() {}
            self.outcome.urgent_got += u64::from(let_in && which == 0);
            return;
        }
        // Above the worker's priority a packet is worked off at once, below never.
        while self.guard.task_priority() > Some(WORKER) {
            let Some(taken) = self.guard.poll_frame() else {
                break;
            };
            debug_assert!(taken.priority > WORKER);
            self.spend(at, self.costs.whole - self.costs.queued);
            self.outcome.urgent_got += 1;
            self.guard.handle_processed();
        }
    }

    /// What the interrupt takes.
    fn eager(&self, verdict: Verdict<()>) -> Duration {
        match (self.case.stack, verdict) {
            (Stack::Original, _) => self.costs.original,
            (Stack::Eager, _) => self.costs.eager,
            (Stack::Flows, Verdict::Refused { .. }) => self.costs.short_circuit,
            _ => self.costs.queued,
        }
    }

    fn spend(&mut self, at: Instant, cost: Duration) {
        self.until = self.until.max(at) + cost;
        self.outcome.busy = self.outcome.busy + cost;
    }
}
