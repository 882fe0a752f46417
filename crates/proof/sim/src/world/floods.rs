//! Floods, and what reception takes of the processors' time while a script has any (spec/simulation.md, S-18).

use bumpless_base::{Counter, Counters};

use super::World;
use crate::frame::{frame, stranger};
use crate::processor::{Loss, Processor, Through};
use crate::queue::What;
use crate::script::{Aim, End, Fault};
use crate::trace::Happening;

impl World {
    /// One packet of a flood comes.
    pub(super) fn flood_acts(&mut self, at: usize) {
        let Fault::Flood {
            network,
            node,
            aim,
            forged,
            rate,
            bytes,
        } = self.script[at].fault
        else {
            return;
        };
        if self.active.binary_search(&at).is_err() {
            return;
        }
        let now = self.now();
        // What came before goes before.
        self.take_in(node);
        let target = self.network.address(network, End::Node(node));
        let partner = self.partner_of(End::Node(node));
        if let Some(target) = target {
            let partner = partner.and_then(|end| self.network.address(network, end));
            let source = match forged {
                true => partner.unwrap_or(stranger(target)),
                false => stranger(target),
            };
            let mut header = std::mem::take(&mut self.header);
            frame(source, target, aim, bytes, &mut header);
            let received = self.receive(node, (now, network), &header);
            self.header = header;
            self.floods.came += 1;
            match received {
                Ok(through) if aim == Aim::DataPort && self.hosts[node].process.is_some() => {
                    self.floods.handed_on += 1;
                    let mut parcel = self.exchange.get().parcel(network, source, target);
                    parcel.sent = now;
                    parcel.bytes.resize(bytes, 0);
                    self.processors[node]
                        .passed
                        .push_back((through.done, parcel));
                    self.announce();
                }
                Ok(_) => self.floods.nobody += 1,
                Err(Loss::Ring) => self.floods.ring += 1,
                Err(Loss::Capacity) => self.floods.capacity += 1,
                Err(Loss::Closed) => self.floods.closed += 1,
            }
        }
        let gap = 2 * 1_000_000_000 / rate.max(1);
        let next = now + 1 + self.flood_gaps.below(gap);
        self.queue.push(next, What::FaultActs { fault: at as u32 });
    }

    /// The processor of `node` takes a packet that comes at `came`, or does not.
    fn receive(
        &mut self,
        node: usize,
        (came, network): (u64, usize),
        header: &[u8],
    ) -> Result<Through, Loss> {
        let runs = self.hosts[node].process.is_some();
        let processor = &mut self.processors[node];
        let received = processor.receive(came, (network, runs), header);
        let now = self.queue.now();
        self.checks
            .waits_in_ring(node, processor.waiting(network), processor.ring(), now);
        if let Ok(through) = received {
            self.checks.through(node, came, through.done, now);
            if let Some((flow, rate)) = through.budget {
                self.checks.let_in((node, network, flow), rate, came);
            }
        }
        received
    }

    /// Has what came for `node` pass its processor, and puts what is through into the receive buffers of its process.
    pub(super) fn take_in_through_processor(&mut self, node: usize) {
        let now = self.queue.now();
        let mut arrived = std::mem::take(&mut self.arrived);
        self.network
            .arrived(node, now, |came, parcel| arrived.push((came, parcel)));
        arrived.sort_by_key(|&(came, _)| came);
        let mut header = std::mem::take(&mut self.header);
        for (came, parcel) in arrived.drain(..) {
            let (source, target) = (parcel.source, parcel.target);
            frame(
                source,
                target,
                Aim::DataPort,
                parcel.bytes.len(),
                &mut header,
            );
            match self.receive(node, (came, parcel.network), &header) {
                Ok(through) => self.processors[node]
                    .passed
                    .push_back((through.done, parcel)),
                Err(_) => {
                    if parcel.sent_as.is_some() {
                        self.floods.own_lost += 1;
                        self.checks.own_lost(node, came);
                    }
                    self.exchange.get().recycle(parcel);
                }
            }
        }
        (self.arrived, self.header) = (arrived, header);
        let runs = self.hosts[node].process.is_some();
        let mut exchange = self.exchange.get();
        let passed = &mut self.processors[node].passed;
        while let Some((_, parcel)) = passed.pop_front_if(|(done, _)| *done <= now) {
            if !runs {
                exchange.recycle(parcel);
            } else if !exchange.deliver(node, parcel) {
                self.trace.tell(now, Happening::Overflow { node });
            }
        }
    }

    /// Whether the processor of `node` takes an echo reply.
    pub(super) fn takes_echo(&mut self, node: usize, parcel: &crate::network::Datagram) -> bool {
        if self.processors.is_empty() {
            return true;
        }
        self.take_in(node);
        let mut header = std::mem::take(&mut self.header);
        let (source, target) = (parcel.source, parcel.target);
        frame(source, target, Aim::Icmp, parcel.bytes.len(), &mut header);
        let now = self.queue.now();
        let received = self.receive(node, (now, parcel.network), &header);
        self.header = header;
        if received.is_err() {
            self.floods.own_lost += 1;
            self.checks.own_lost(node, now);
        }
        received.is_ok()
    }

    /// From when on threads of `node` run.
    pub(super) fn free_at(&self, node: usize) -> u64 {
        self.processors.get(node).map_or(0, Processor::free_at)
    }

    /// How much of its time reception of `node` has taken so far.
    pub(super) fn taken(&self, node: usize) -> u64 {
        let now = self.queue.now();
        let processor = self.processors.get(node);
        processor.map_or(0, |processor| processor.taken_until(now))
    }

    /// When the next datagram comes to `node`, or is through its processor; the end of time if none does.
    pub(super) fn next_arrival(&self, node: usize) -> u64 {
        let next = self.network.next_arrival(node);
        let processor = self.processors.get(node);
        processor.map_or(next, |processor| next.min(processor.next()))
    }

    /// Which deadlines were missed.
    pub(super) fn look_at_deadlines(&mut self) {
        if self.processors.is_empty() {
            return;
        }
        let now = self.now();
        for node in 0..self.hosts.len() {
            if let Some(process) = &self.hosts[node].process {
                let cores = process.plane.cores();
                let mut counters = Counters::default();
                counters.merge(cores.redundancy.counters());
                counters.merge(cores.sender.counters());
                for app in process.apps.iter().flatten() {
                    counters.merge(app.machine.counters());
                }
                let missed = [
                    Counter::StatesFailed,
                    Counter::LeaseLapses,
                    Counter::CyclesOverrun,
                ];
                let missed = missed.iter().map(|&it| counters.get(it)).sum();
                self.checks.missed(node, missed, now);
            }
        }
    }
}

/// The processors of a world with these faults: without a flood reception is not reckoned with.
///
/// # Errors
/// What a guard refuses.
pub(super) fn processors(
    config: &bumpless_config::Config,
    script: &[crate::script::Timed],
) -> Result<Vec<Processor>, String> {
    let flooded = |timed: &crate::script::Timed| matches!(timed.fault, Fault::Flood { .. });
    if !script.iter().any(flooded) {
        return Ok(Vec::new());
    }
    (0..config.nodes.len())
        .map(|node| Processor::new(config, node))
        .collect()
}
