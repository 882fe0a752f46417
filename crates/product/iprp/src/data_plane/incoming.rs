//! Datagrams at the data port: copies for this host, which is given the packets that are in them, and answers to what it has sent.

use std::net::SocketAddr;

use bumpless_base::Instant;
use bumpless_capture::{Parsed, build};
use bumpless_iprp::{Delivery, is_feedback};

use super::{BURST, DataPlane};

impl DataPlane {
    /// What has come at one socket. A message that has several datagrams is taken whole, so a turn can take a message more than
    /// its bound.
    pub(super) fn receive(&mut self, now: Instant, place: usize) {
        // Lent for the turn, so that what is in it can be worked on beside everything else.
        let mut buffer = std::mem::take(&mut self.buffers.datagram);
        let mut taken = 0;
        while taken < BURST {
            let Ok(Some(arrived)) = self.attached.ports.receive(place, &mut buffer) else {
                break;
            };
            let before = taken;
            for datagram in arrived.datagrams(&mut buffer) {
                taken += 1;
                self.take_datagram(now, (arrived.on, arrived.from), datagram);
            }
            self.count_arrivals(arrived.on, taken - before);
        }
        self.buffers.datagram = buffer;
        self.pass_events();
    }

    /// So many datagrams came in one message on the network of this card.
    fn count_arrivals(&mut self, card: usize, count: usize) {
        if let Some(came) = self.passed.came.get_mut(card) {
            *came += count as u64;
        }
        if let Some(in_runs) = self.passed.in_runs.get_mut(card)
            && count > 1
        {
            *in_runs += count as u64;
        }
    }

    fn take_datagram(&mut self, now: Instant, (card, from): (usize, SocketAddr), bytes: &mut [u8]) {
        if is_feedback(bytes) {
            // What was refused is counted there.
            let _ = self.sender.handle_feedback(now, bytes);
            return;
        }
        let on = self.attached.inds.get(card).copied();
        // What was discarded is counted there.
        if let Ok(delivery) = self.receiver.handle_data(now, on, from, bytes) {
            self.give_back(&delivery);
        }
    }

    /// Gives a packet to the host, or to programs that are members of its group.
    fn give_back(&mut self, delivery: &Delivery<'_>) {
        let packet = Parsed {
            source: delivery.flow.source,
            destination: delivery.flow.destination,
            protocol: delivery.flow.protocol,
            source_port: delivery.flow.source_port,
            destination_port: delivery.flow.destination_port,
            payload: delivery.payload,
        };
        let destination = packet.destination;
        let member = self.members.of(destination);
        let is_wanted = match member {
            Some(it) => it.keeps(it.card, packet.source),
            None => !destination.is_multicast(),
        };
        if !is_wanted {
            // No program wants this source, or this group.
            self.passed.no_member += 1;
            return;
        }
        let made = build(&packet, &mut self.buffers.packet);
        let given = made.map(|len| {
            let packet = &self.buffers.packet[..len];
            match member {
                Some(it) => self.attached.injector.give(it.card, packet, it.group),
                None => self.injector.give(packet, destination),
            }
        });
        if !matches!(given, Some(Ok(()))) {
            self.passed.not_given += 1;
        }
    }
}
