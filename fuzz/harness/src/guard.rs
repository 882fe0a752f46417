//! Arbitrary frames at a guard, with time, polling and work in between.

use std::collections::BTreeSet;

use bumpless_base::{Duration, Instant};
use bumpless_guard::{
    Flow, FlowId, Guard, Match, Mode, Priority, Purpose, Rate, Setup, Taken, Terms, Transport,
    Verdict, classify,
};

use crate::input::Input;

/// Does what the bytes say.
///
/// # Panics
/// If a frame's beginning is for something else than the whole (V-3), a frame comes out twice or never (V-21), more wait than there is
/// room for (V-24), or a less urgent one is handed out first (V-22, V-23).
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let setup = setup(&mut input);
    let Ok(guard) = Guard::new(&setup, Instant::ZERO) else {
        return;
    };
    let mut world = World {
        room: setup.buffers - setup.reserve,
        guard,
        now: Instant::ZERO,
        inside: BTreeSet::new(),
        arrived: 0,
    };
    while !input.is_empty() {
        match input.below(8) {
            0 => world.now += Duration::from_micros(input.u16().into()),
            1 => {
                world.take();
            }
            2 => world.guard.handle_processed(),
            3 => world.guard.handle_ring_empty(world.now),
            _ => world.arrive(&mut input),
        }
        world.check();
    }
    world.empty();
}

fn terms(input: &mut Input<'_>) -> Terms {
    let rate = Rate {
        capacity: input.below(9) as u32,
        period: Duration::from_micros(input.u8().into()),
    };
    Terms {
        priority: Priority(input.u8()),
        rate: input.flag().then_some(rate),
        queue: input.below(9) as u16,
    }
}

fn setup(input: &mut Input<'_>) -> Setup {
    let transport = [Transport::Udp, Transport::Tcp];
    let flow = |input: &mut Input<'_>| {
        let (transport, port) = (input.one_of(&transport), input.u16() % 4);
        let from = [10, 0, 0, input.u8() % 4].into();
        let pattern = match input.below(5) {
            0 => Match::Port(transport, port),
            1 => Match::PortFrom(transport, port, from),
            2 => Match::EchoReplies(from),
            3 => Match::Resolution(from),
            _ => Match::Answers(transport, from, port),
        };
        Flow {
            matches: vec![pattern],
            terms: terms(input),
        }
    };
    let overall = Rate {
        capacity: input.below(20) as u32,
        period: Duration::from_micros(input.u8().into()),
    };
    Setup {
        flows: (0..input.below(6)).map(|_| flow(input)).collect(),
        resolution: terms(input),
        icmp: terms(input),
        fragments: terms(input),
        unregistered: terms(input),
        unknown: terms(input),
        overall: input.flag().then_some(overall),
        buffers: input.below(24) as u32,
        reserve: input.below(12) as u32,
    }
}

struct World {
    guard: Guard<u64>,
    now: Instant,
    /// Frames that wait, as the guard told.
    inside: BTreeSet<u64>,
    arrived: u64,
    room: u32,
}

impl World {
    fn arrive(&mut self, input: &mut Input<'_>) {
        let len = input.u8().into();
        let frame = input.take(len);
        check_cut(frame, input.below(256));
        self.arrived += 1;
        let verdict = self
            .guard
            .handle_frame(self.now, frame, frame.len(), self.arrived);
        if let Verdict::Queued { recycled, .. } = verdict {
            self.inside.insert(self.arrived);
            if let Some(given_up) = recycled {
                self.leave(given_up);
            }
        }
    }

    fn leave(&mut self, taken: Taken<u64>) {
        let was_inside = self.inside.remove(&taken.token);
        assert!(was_inside, "once: {taken:?} had left, or never come");
    }

    fn take(&mut self) -> Option<Taken<u64>> {
        let highest = {
            self.guard.handle_processed();
            self.guard.task_priority()
        };
        let taken = self.guard.poll_frame();
        assert_eq!(taken.map(|it| it.priority), highest, "most urgent first");
        taken.inspect(|&it| self.leave(it))
    }

    fn check(&mut self) {
        assert_eq!(self.guard.waiting() as usize, self.inside.len(), "bounded");
        assert!(self.guard.waiting() <= self.room, "bounded");
        let polls = self.guard.poll_timeout();
        assert_eq!(polls.is_some(), self.guard.mode() == Mode::Polling);
    }

    /// Takes what is left: everything that came in is accounted for.
    fn empty(&mut self) {
        while self.take().is_some() {}
        assert!(self.inside.is_empty(), "lost: {:?}", self.inside);
        let flows: Vec<FlowId> = self.guard.flows().collect();
        let counts = flows.into_iter().filter_map(|flow| self.guard.counts(flow));
        let counted: u64 = counts
            .map(|it| it.taken + it.pressure + it.capacity + it.queue_full + it.recycled)
            .sum();
        let all = counted + self.guard.overall_refused();
        assert_eq!(all, self.arrived, "counted under one outcome");
    }
}

/// The beginning of a frame says the same, or not enough.
fn check_cut(frame: &[u8], at: usize) {
    let whole = classify(frame, frame.len());
    let begun = classify(&frame[..at.min(frame.len())], frame.len());
    let less = match begun {
        Purpose::Unknown => true,
        Purpose::Icmp => matches!(
            whole,
            Purpose::Resolution { .. } | Purpose::EchoReply { .. }
        ),
        Purpose::Resolution { remote: None } => matches!(whole, Purpose::Resolution { .. }),
        _ => false,
    };
    assert!(
        begun == whole || less,
        "{begun:?} of {whole:?}: {frame:02x?}"
    );
}
