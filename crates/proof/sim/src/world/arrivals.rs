//! Datagrams at the end of their way.

use bumpless_node::witness::envelopes::{Envelopes, ROOM};
use bumpless_redundancy::Witness;
use bumpless_wire::{EnvelopeHeader, Packet, WitnessReply, parse};

use super::World;
use crate::echo::{self, replied};
use crate::network::Parcel;
use crate::readable::Readable;
use crate::script::End;
use crate::trace::Happening;

impl World {
    pub(super) fn arrival(&mut self, packet: u32) {
        let Some(parcel) = self.network.arrive(packet) else {
            return;
        };
        match parcel.to {
            Some(End::Node(node)) => self.echo_at_node(node, parcel),
            Some(End::Reference(reference)) => self.at_reference(reference, parcel),
            None => self.exchange.get().recycle(parcel),
        }
    }

    /// Puts what has arrived at `node` into the receive buffers of its process.
    pub(super) fn take_in(&mut self, node: usize) {
        let now = self.queue.now();
        let runs = self.hosts[node].process.is_some();
        let (exchange, trace) = (&mut *self.exchange.get(), &mut self.trace);
        self.network.arrived(node, now, |parcel| {
            if !runs {
                return exchange.recycle(parcel);
            }
            if !exchange.deliver(node, parcel) {
                trace.tell(now, Happening::Overflow { node });
            }
        });
    }

    /// Receive buffers fill, and overflow, although nobody empties them.
    pub(super) fn take_in_where_nobody_looks(&mut self) {
        for node in 0..self.hosts.len() {
            let host = &self.hosts[node];
            if host.process.is_none() || host.paused_until > self.queue.now() {
                self.take_in(node);
            }
        }
    }

    /// Has each node wake when the first of what is on its way arrives.
    pub(super) fn announce(&mut self) {
        for node in 0..self.hosts.len() {
            let arrival = self.network.next_arrival(node);
            if arrival < self.hosts[node].ready_at {
                self.wake_at(node, arrival);
            }
        }
    }

    fn echo_at_node(&mut self, node: usize, parcel: Parcel) {
        if self.hosts[node].process.is_none() {
            return self.exchange.get().recycle(parcel);
        }
        let sequence = replied(&parcel.bytes);
        let from = self.network.at_address(parcel.network, parcel.source);
        self.exchange.get().recycle(parcel);
        if let (Some(sequence), Some(End::Reference(reference))) = (sequence, from) {
            let mut exchange = self.exchange.get();
            exchange.deliver_echo(node, reference, sequence);
            drop(exchange);
            self.wake(node);
        }
    }

    fn at_reference(&mut self, reference: usize, mut parcel: Parcel) {
        let now = self.queue.now();
        let host = &mut self.witnesses[reference];
        let local = host.clock.local(now);
        let bytes = &mut parcel.bytes;
        let answered = match &mut host.witness {
            None => false,
            Some(_) if host.only_echoes => echo::answer(bytes),
            Some(witness) => answer((witness, &mut host.envelopes), bytes, local),
        };
        if !answered {
            return self.exchange.get().recycle(parcel);
        }
        let from = End::Reference(reference);
        let datagram = &mut *parcel;
        std::mem::swap(&mut datagram.source, &mut datagram.target);
        datagram.to = self.network.at_address(datagram.network, datagram.target);
        let sender = self.hosts.len() + reference;
        self.trace.datagram(now, sender, &parcel, || {
            self.network.address(parcel.network, from)
        });
        if let Some(lost) = self.network.send(&mut self.queue, from, now, parcel) {
            self.exchange.get().recycle(lost);
        }
        self.announce();
    }
}

/// Turns a request into the witness's answer; returns whether there is one.
fn answer(
    (witness, envelopes): (&mut Witness, &mut Envelopes<Readable>),
    bytes: &mut Vec<u8>,
    now: bumpless_base::Instant,
) -> bool {
    let Ok((way, message)) = envelopes.open(bytes, now) else {
        return false;
    };
    let Ok(Packet::WitnessRequest(request)) = parse(message) else {
        return false;
    };
    let Some(reply) = witness.handle_request(&request, now) else {
        return false;
    };
    let (mut encoded, mut room) = ([0; WitnessReply::LEN], [0; ROOM]);
    let len = reply.encode(&mut encoded);
    room[EnvelopeHeader::LEN..][..len].copy_from_slice(&encoded[..len]);
    let Some(datagram) = envelopes.seal(way, &mut room, len) else {
        return false;
    };
    bytes.clear();
    bytes.extend_from_slice(datagram);
    true
}
