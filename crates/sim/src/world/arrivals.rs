//! Datagrams at the end of their way.

use bumpless_redundancy::Witness;
use bumpless_wire::{Packet, WitnessReply, parse};

use super::World;
use crate::echo::{self, replied};
use crate::exchange::Arrived;
use crate::network::InFlight;
use crate::script::End;
use crate::trace::Happening;

impl World {
    pub(super) fn arrival(&mut self, packet: u32) {
        let Some(datagram) = self.network.arrive(packet) else {
            return;
        };
        match datagram.to {
            End::Node(node) => self.echo_at_node(node, datagram),
            End::Reference(reference) => self.at_reference(reference, datagram),
        }
    }

    /// Puts what has arrived at `node` into the receive buffers of its process.
    pub(super) fn take_in(&mut self, node: usize) {
        let now = self.queue.now();
        let runs = self.hosts[node].process.is_some();
        let (exchange, trace) = (&mut *self.exchange.get(), &mut self.trace);
        self.network.arrived(node, now, |datagram| {
            if !runs {
                return exchange.recycle(datagram.bytes);
            }
            let arrived = Arrived {
                from: datagram.source,
                sent: datagram.sent,
                bytes: datagram.bytes,
            };
            if !exchange.deliver(node, datagram.network, arrived) {
                trace.tell(now, Happening::Overflow { node });
            }
        });
    }

    /// Has each node wake when the first of what is on its way arrives.
    pub(super) fn announce(&mut self) {
        for node in 0..self.hosts.len() {
            let arrival = self.network.next_arrival(node);
            self.wake_at(node, arrival);
        }
    }

    fn echo_at_node(&mut self, node: usize, datagram: InFlight) {
        if self.hosts[node].process.is_none() {
            return self.exchange.get().recycle(datagram.bytes);
        }
        let sequence = replied(&datagram.bytes);
        let from = self.network.at_address(datagram.network, datagram.source);
        self.exchange.get().recycle(datagram.bytes);
        if let (Some(sequence), Some(End::Reference(reference))) = (sequence, from) {
            let mut exchange = self.exchange.get();
            exchange.deliver_echo(node, reference, sequence);
            drop(exchange);
            self.wake(node);
        }
    }

    fn at_reference(&mut self, reference: usize, mut datagram: InFlight) {
        let now = self.queue.now();
        let host = &mut self.witnesses[reference];
        let local = host.clock.local(now);
        let bytes = &mut datagram.bytes;
        let answered = match &mut host.witness {
            None => false,
            Some(_) if host.only_echoes => echo::answer(bytes),
            Some(witness) => answer(witness, bytes, local),
        };
        if !answered {
            return self.exchange.get().recycle(datagram.bytes);
        }
        let bytes = datagram.bytes;
        let from = End::Reference(reference);
        let (network, to) = (datagram.network, datagram.source);
        let sender = self.hosts.len() + reference;
        self.trace.datagram(now, (network, sender, to), &bytes, || {
            self.network.address(network, from)
        });
        let exchange = &self.exchange;
        self.network
            .send(&mut self.queue, (network, from, to), now, bytes, &mut |b| {
                exchange.get().recycle(b);
            });
        self.announce();
    }
}

/// Turns a request into the witness's answer; returns whether there is one.
fn answer(witness: &mut Witness, bytes: &mut Vec<u8>, now: bumpless_base::Instant) -> bool {
    let Ok(Packet::WitnessRequest(request)) = parse(bytes) else {
        return false;
    };
    let Some(reply) = witness.handle_request(&request, now) else {
        return false;
    };
    let mut reply_bytes = [0; WitnessReply::LEN];
    let len = reply.encode(&mut reply_bytes);
    bytes.clear();
    bytes.extend_from_slice(&reply_bytes[..len]);
    true
}
