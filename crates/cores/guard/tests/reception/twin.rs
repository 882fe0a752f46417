//! A guard as a list of all frames would be.

use super::*;

/// One list, no cleverness.
pub struct Twin {
    pub setup: Setup,
    /// Priority, arrival, flow, token.
    pub waiting: Vec<(Priority, u64, FlowId, u32)>,
    pub processing: Option<Priority>,
    pub arrivals: u64,
    /// When a frame of which flow took budget; the overall budget is `None`'s.
    pub spent: Vec<(Option<FlowId>, Instant)>,
    pub polling: bool,
}

impl Twin {
    fn terms(&self, flow: FlowId) -> Terms {
        match flow {
            FlowId::Registered(at) => self.setup.flows[usize::from(at)].terms,
            FlowId::Resolution => self.setup.resolution,
            FlowId::Icmp => self.setup.icmp,
            FlowId::Fragments => self.setup.fragments,
            FlowId::Unregistered => self.setup.unregistered,
            FlowId::Unknown => self.setup.unknown,
        }
    }

    pub fn left(&self, who: Option<FlowId>, rate: Option<Rate>, now: Instant) -> Option<u32> {
        let rate = rate?;
        let period = |at: Instant| at.since(START).as_nanos() / rate.period.as_nanos();
        let same = |it: &&(Option<FlowId>, Instant)| it.0 == who && period(it.1) == period(now);
        Some(rate.capacity - self.spent.iter().filter(same).count() as u32)
    }

    pub fn frame(&mut self, now: Instant, flow: FlowId, token: u32) -> Verdict<u32> {
        let refused = |flow, cause| Verdict::Refused { flow, cause };
        let overall = self.left(None, self.setup.overall, now);
        if overall == Some(0) {
            self.polling = true;
            return refused(None, Refusal::Overall);
        }
        self.spent.push((None, now));
        self.polling |= overall == Some(1);
        let terms = self.terms(flow);
        let held = self.waiting.len() + usize::from(self.processing.is_some());
        let pressed = held >= (self.setup.buffers - self.setup.reserve) as usize;
        let more_urgent = self.waiting.iter().all(|it| it.0 >= terms.priority);
        if pressed && more_urgent {
            return refused(Some(flow), Refusal::Pressure);
        }
        if self.waiting.iter().filter(|it| it.2 == flow).count() >= usize::from(terms.queue) {
            return refused(Some(flow), Refusal::QueueFull);
        }
        if self.left(Some(flow), terms.rate, now) == Some(0) {
            return refused(Some(flow), Refusal::Capacity);
        }
        self.spent.push((Some(flow), now));
        let recycled = pressed.then(|| {
            // The least urgent one, of these the latest.
            let given = self.waiting.iter().min_by_key(|it| (it.0, u64::MAX - it.1));
            let given = *given.expect("one is less urgent");
            self.waiting.retain(|it| it.1 != given.1);
            taken(given)
        });
        self.arrivals += 1;
        self.waiting
            .push((terms.priority, self.arrivals, flow, token));
        Verdict::Queued { flow, recycled }
    }

    pub fn poll(&mut self) -> Option<Taken<u32>> {
        self.processing = None;
        let first = self.waiting.iter().max_by_key(|it| (it.0, u64::MAX - it.1));
        let first = *first?;
        self.waiting.retain(|it| it.1 != first.1);
        self.processing = Some(first.0);
        Some(taken(first))
    }
}

fn taken((priority, _, flow, token): (Priority, u64, FlowId, u32)) -> Taken<u32> {
    Taken {
        flow,
        priority,
        token,
    }
}
