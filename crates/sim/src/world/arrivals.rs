//! Datagrams at the end of their way.

use bumpless_redundancy::Witness;
use bumpless_wire::{Packet, WitnessReply, parse};

use super::World;
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
            End::Reference(reference) => self.at_witness(reference, datagram),
        }
    }

    fn at_node(&mut self, node: usize, datagram: InFlight) {
        if self.hosts[node].process.is_none() {
            return self.exchange.get().recycle(datagram.bytes);
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

    fn at_witness(&mut self, reference: usize, datagram: InFlight) {
        let now = self.queue.now();
        let host = &mut self.witnesses[reference];
        let local = host.clock.local(now);
        let answer = host
            .witness
            .as_mut()
            .and_then(|witness| answer(witness, &datagram.bytes, local));
        let mut bytes = datagram.bytes;
        let Some((reply, len)) = answer else {
            return self.exchange.get().recycle(bytes);
        };
        bytes.clear();
        bytes.extend_from_slice(&reply[..len]);
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

fn answer(
    witness: &mut Witness,
    bytes: &[u8],
    now: bumpless_base::Instant,
) -> Option<([u8; WitnessReply::LEN], usize)> {
    let Ok(Packet::WitnessRequest(request)) = parse(bytes) else {
        return None;
    };
    let reply = witness.handle_request(&request, now)?;
    let mut bytes = [0; WitnessReply::LEN];
    let len = reply.encode(&mut bytes);
    Some((bytes, len))
}
