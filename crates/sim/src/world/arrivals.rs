//! Datagrams at the end of their way.

use bumpless_redundancy::Witness;
use bumpless_wire::{Packet, WitnessReply, parse};

use super::World;
use crate::echo::{self, is_icmp, replied};
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
            End::Node(node) => self.at_node(node, datagram),
            End::Reference(reference) => self.at_reference(reference, datagram),
        }
    }

    fn at_node(&mut self, node: usize, datagram: InFlight) {
        if self.hosts[node].process.is_none() {
            return self.exchange.get().recycle(datagram.bytes);
        }
        if is_icmp(datagram.source) {
            return self.echo_at_node(node, datagram);
        }
        let arrived = Arrived {
            from: datagram.source,
            sent: datagram.sent,
            bytes: datagram.bytes,
        };
        let fits = self.exchange.get().deliver(node, datagram.network, arrived);
        if fits {
            self.wake(node);
        } else {
            self.tell(Happening::Overflow { node });
        }
    }

    fn echo_at_node(&mut self, node: usize, datagram: InFlight) {
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
