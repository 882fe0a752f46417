//! A frame's way: classified, weighed against budget and pressure, put in its queue or given up (figure 5.14).

use alloc::boxed::Box;
use alloc::vec::Vec;

use bumpless_base::Instant;

use crate::flow::{FlowId, Priority, Setup, SetupError, Terms};
use crate::frame::{Purpose, classify};
use crate::intake::{Intake, Mode};
use crate::server::DeferrableServer;
use crate::table::Table;
use crate::waiting::{Item, Waiting};

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<T> {
    /// It waits for the protocol task.
    Queued {
        /// Its flow.
        flow: FlowId,
        /// The frame that was given up for it, whose buffer goes back to the ring (path c).
        recycled: Option<Taken<T>>,
    },
    /// It is dropped; its buffer goes back to the ring.
    Refused {
        /// Its flow; `None`: it was not looked at.
        flow: Option<FlowId>,
        /// Why.
        cause: Refusal,
    },
}

/// Why a frame is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Buffers are short and nothing less urgent waits (path a, the short circuit).
    Pressure,
    /// Its flow has sent what it may in this period (path b).
    Capacity,
    /// Its flow's queue is full, or takes nothing at all (path b).
    QueueFull,
    /// All flows together have sent what they may in this period.
    Overall,
}

/// A frame on its way out of the guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken<T> {
    /// Its flow.
    pub flow: FlowId,
    /// Its priority.
    pub priority: Priority,
    /// What the driver gave in with it.
    pub token: T,
}

/// What happened to the frames of a flow. Every frame that came is in one of them, or waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Handed to the protocol task.
    pub taken: u64,
    /// Dropped for want of buffers before they were queued.
    pub pressure: u64,
    /// Dropped beyond the capacity.
    pub capacity: u64,
    /// Dropped by a full queue.
    pub queue_full: u64,
    /// Given up after they were queued.
    pub recycled: u64,
}

#[derive(Clone, Debug)]
struct State {
    id: FlowId,
    terms: Terms,
    server: Option<DeferrableServer>,
    waiting: u16,
    counts: Counts,
}

/// Receives for one processor: a frame at a time comes in, one at a time is worked off.
///
/// `T` is what the driver knows a frame by, such as the index of its buffer.
#[derive(Clone, Debug)]
pub struct Guard<T> {
    table: Table,
    flows: Box<[State]>,
    registered: usize,
    intake: Intake,
    waiting: Waiting<T>,
    /// Frames that wait or are worked off at most.
    room: u32,
    processing: Option<Priority>,
    overall_refused: u64,
}

impl<T: Copy> Guard<T> {
    /// A guard whose first periods begin at `now`. All memory is taken here.
    ///
    /// # Errors
    /// What is asked for contradicts itself: [`SetupError`].
    pub fn new(setup: &Setup, now: Instant) -> Result<Self, SetupError> {
        check(setup)?;
        let registered = (0u16..).map(FlowId::Registered);
        let registered = registered.zip(setup.flows.iter().map(|flow| flow.terms));
        let built_in = [
            setup.resolution,
            setup.icmp,
            setup.fragments,
            setup.unregistered,
            setup.unknown,
        ];
        let all = registered.chain(FlowId::BUILT_IN.into_iter().zip(built_in));
        let room = setup.buffers - setup.reserve;
        Ok(Self {
            table: Table::new(&setup.flows)?,
            flows: all.map(|(id, terms)| State::new(id, terms, now)).collect(),
            registered: setup.flows.len(),
            intake: Intake::new(setup.overall, now),
            waiting: Waiting::new(room),
            room,
            processing: None,
            overall_refused: 0,
        })
    }

    /// A frame of `len` bytes has arrived that begins with `header` (see [`classify`]); `token` is what comes back with it.
    pub fn handle_frame(
        &mut self,
        now: Instant,
        header: &[u8],
        len: usize,
        token: T,
    ) -> Verdict<T> {
        if !self.intake.take(now) {
            self.overall_refused += 1;
            return Verdict::Refused {
                flow: None,
                cause: Refusal::Overall,
            };
        }
        let at = self.flow_of(classify(header, len));
        match self.decide(at, now) {
            Ok(()) => self.enqueue(at, token),
            Err(cause) => {
                let flow = &mut self.flows[at];
                flow.count(cause);
                Verdict::Refused {
                    flow: Some(flow.id),
                    cause,
                }
            }
        }
    }

    /// The most urgent frame, for the protocol task; the one before is done with.
    pub fn poll_frame(&mut self) -> Option<Taken<T>> {
        self.processing = None;
        let taken = self.waiting.pop_highest().map(|it| self.leave(it))?;
        if let Some(flow) = self.index(taken.flow).and_then(|at| self.flows.get_mut(at)) {
            flow.counts.taken += 1;
        }
        self.processing = Some(taken.priority);
        Some(taken)
    }

    /// The protocol task is done with the frame that it took.
    pub fn handle_processed(&mut self) {
        self.processing = None;
    }

    /// The priority that the protocol task must have: that of the most urgent frame which waits or is worked off (5.4.4).
    /// `None`: it has nothing to do.
    pub fn task_priority(&self) -> Option<Priority> {
        self.waiting.highest().max(self.processing)
    }

    /// Whether the network may interrupt, or is polled.
    pub fn mode(&self) -> Mode {
        self.intake.mode()
    }

    /// How many frames may come from the ring now; `None`: all.
    pub fn allowance(&mut self, now: Instant) -> Option<u32> {
        self.intake.allowance(now)
    }

    /// The ring has no frame left: before the period's budget is spent, that ends polling.
    pub fn handle_ring_empty(&mut self, now: Instant) {
        self.intake.handle_ring_empty(now);
    }

    /// When to poll the ring; `None`: its interrupts tell.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.intake.poll_timeout()
    }

    /// Frames that wait.
    pub fn waiting(&self) -> u32 {
        self.waiting.len()
    }

    /// What happened to the frames of a flow; `None`: there is no such flow.
    pub fn counts(&self, flow: FlowId) -> Option<Counts> {
        Some(self.flows.get(self.index(flow)?)?.counts)
    }

    /// Frames dropped for the overall rate, before they were looked at.
    pub fn overall_refused(&self) -> u64 {
        self.overall_refused
    }

    /// Every flow's name, the registered ones first.
    pub fn flows(&self) -> impl Iterator<Item = FlowId> {
        self.flows.iter().map(|flow| flow.id)
    }

    /// The flow of what a frame is for.
    pub fn flow(&self, purpose: Purpose) -> FlowId {
        self.flows[self.flow_of(purpose)].id
    }

    fn flow_of(&self, purpose: Purpose) -> usize {
        let built_in = match purpose {
            Purpose::Resolution { remote } => {
                let known = remote.and_then(|remote| self.table.find_resolution(remote));
                match known {
                    Some(flow) => return usize::from(flow),
                    None => 0,
                }
            }
            Purpose::EchoReply { remote } => match self.table.find_echo(remote) {
                Some(flow) => return usize::from(flow),
                None => 1,
            },
            Purpose::Icmp => 1,
            Purpose::Fragment => 2,
            Purpose::Port {
                transport,
                remote,
                remote_port,
                port,
            } => match self.table.find(transport, (remote, remote_port), port) {
                Some(flow) => return usize::from(flow),
                None => 3,
            },
            Purpose::Unknown => 4,
        };
        self.registered + built_in
    }

    fn index(&self, flow: FlowId) -> Option<usize> {
        match flow {
            FlowId::Registered(at) => Some(usize::from(at)).filter(|&at| at < self.registered),
            other => {
                let at = FlowId::BUILT_IN.iter().position(|&id| id == other)?;
                Some(self.registered + at)
            }
        }
    }

    fn held(&self) -> u32 {
        self.waiting.len() + u32::from(self.processing.is_some())
    }

    /// Whether the frame is worth its buffer: first whether there is one, so that what is given up for want of buffers
    /// costs its flow no budget.
    fn decide(&mut self, at: usize, now: Instant) -> Result<(), Refusal> {
        let flow = &mut self.flows[at];
        let pressed = self.waiting.len() + u32::from(self.processing.is_some()) >= self.room;
        if pressed && self.waiting.lowest() >= Some(flow.terms.priority) {
            return Err(Refusal::Pressure);
        }
        if pressed && self.waiting.len() == 0 {
            return Err(Refusal::Pressure);
        }
        if flow.waiting >= flow.terms.queue {
            return Err(Refusal::QueueFull);
        }
        match flow.server.as_mut().is_none_or(|server| server.take(now)) {
            true => Ok(()),
            false => Err(Refusal::Capacity),
        }
    }

    fn enqueue(&mut self, at: usize, token: T) -> Verdict<T> {
        let recycled = match self.held() >= self.room {
            true => self.waiting.pop_lowest().map(|it| self.leave(it)),
            false => None,
        };
        if let Some(at) = recycled.and_then(|taken| self.index(taken.flow)) {
            self.flows[at].counts.recycled += 1;
        }
        let flow = &mut self.flows[at];
        let item = Item {
            flow: at as u16,
            token,
        };
        if self.waiting.push(flow.terms.priority, item) {
            flow.waiting += 1;
        }
        Verdict::Queued {
            flow: flow.id,
            recycled,
        }
    }

    /// A frame has left its queue.
    fn leave(&mut self, (priority, item): (Priority, Item<T>)) -> Taken<T> {
        let flow = &mut self.flows[usize::from(item.flow)];
        flow.waiting -= 1;
        Taken {
            flow: flow.id,
            priority,
            token: item.token,
        }
    }
}

impl State {
    fn new(id: FlowId, terms: Terms, now: Instant) -> Self {
        Self {
            id,
            terms,
            server: terms.rate.map(|rate| DeferrableServer::new(rate, now)),
            waiting: 0,
            counts: Counts::default(),
        }
    }

    fn count(&mut self, cause: Refusal) {
        match cause {
            Refusal::Pressure => self.counts.pressure += 1,
            Refusal::Capacity => self.counts.capacity += 1,
            Refusal::QueueFull => self.counts.queue_full += 1,
            // Counted for the guard: no flow is known then.
            Refusal::Overall => {}
        }
    }
}

fn check(setup: &Setup) -> Result<(), SetupError> {
    if setup.flows.len() > Setup::MAX_FLOWS {
        return Err(SetupError::TooManyFlows(setup.flows.len()));
    }
    if setup.buffers > Setup::MAX_BUFFERS {
        return Err(SetupError::TooManyBuffers(setup.buffers));
    }
    if setup.reserve >= setup.buffers {
        return Err(SetupError::NoRoom {
            buffers: setup.buffers,
            reserve: setup.reserve,
        });
    }
    for (at, flow) in (0u16..).zip(&setup.flows) {
        if flow.matches.is_empty() {
            return Err(SetupError::NoMatch(at));
        }
    }
    let registered = (0u16..).map(FlowId::Registered);
    let registered = registered.zip(setup.flows.iter().map(|flow| flow.terms.rate));
    let built_in = [
        (FlowId::Resolution, setup.resolution.rate),
        (FlowId::Icmp, setup.icmp.rate),
        (FlowId::Fragments, setup.fragments.rate),
        (FlowId::Unregistered, setup.unregistered.rate),
        (FlowId::Unknown, setup.unknown.rate),
    ];
    let named = registered.chain(built_in);
    let named = named.map(|(flow, rate)| (Some(flow), rate));
    let all: Vec<_> = named.chain([(None, setup.overall)]).collect();
    let without =
        |rate: Option<crate::flow::Rate>| rate.is_some_and(|it| it.period.as_nanos() == 0);
    match all.into_iter().find(|(_, rate)| without(*rate)) {
        Some((flow, _)) => Err(SetupError::NoPeriod(flow)),
        None => Ok(()),
    }
}
