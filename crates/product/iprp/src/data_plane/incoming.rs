//! Datagrams at the data port: copies for this host, which is given the packets that are in them, and answers to what it has sent.

use std::io::ErrorKind;
use std::net::SocketAddr;

use bumpless_base::Instant;
use bumpless_capture::{Parsed, build};
use bumpless_iprp::{Delivery, is_feedback};

use super::{BURST, DataPlane};

/// Datagrams of one message: a sender's kernel puts no more into one (since Linux 6.9).
const RUN_MAX: usize = 128;

impl DataPlane {
    /// What has come at one socket; how many datagrams were taken. Of a message that has several of them [`RUN_MAX`] are taken, so a turn can
    /// take a message more than its bound.
    pub(super) fn receive(&mut self, now: Instant, place: usize) -> usize {
        // Lent for the turn, so that what is in it can be worked on beside everything else.
        let mut buffer = std::mem::take(&mut self.buffers.datagram);
        let mut taken = 0;
        while taken < BURST {
            let Ok(Some(arrived)) = self.attached.ports.receive(place, &mut buffer) else {
                break;
            };
            let (count, rest) = each_of_run(arrived.datagrams(&mut buffer), |datagram| {
                self.take_datagram(now, (arrived.on, arrived.from), datagram);
            });
            taken += count;
            self.passed.run_too_long += rest as u64;
            self.count_arrivals(arrived.on, count + rest);
        }
        self.buffers.datagram = buffer;
        self.pass_events();
        taken
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
            self.give_back(now, &delivery);
        }
    }

    /// Gives a packet to the host, or to programs that are members of its group.
    fn give_back(&mut self, now: Instant, delivery: &Delivery<'_>) {
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
                None if self.here.has(now, destination) => self.injector.give(packet, destination),
                None => Err(ErrorKind::AddrNotAvailable.into()),
            }
        });
        if !matches!(given, Some(Ok(()))) {
            self.passed.not_given += 1;
        }
    }
}

/// Hands on the datagrams of one message, [`RUN_MAX`] at most; how many, and how many were left.
fn each_of_run<'a>(
    mut datagrams: impl Iterator<Item = &'a mut [u8]>,
    mut take: impl FnMut(&'a mut [u8]),
) -> (usize, usize) {
    let mut count = 0;
    for datagram in datagrams.by_ref().take(RUN_MAX) {
        count += 1;
        take(datagram);
    }
    (count, datagrams.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_keeps_a_turn_for_so_many_datagrams_and_what_is_left_is_counted() {
        for (came, taken, left) in [
            (0, 0, 0),
            (1, 1, 0),
            (128, 128, 0),
            (129, 128, 1),
            (500, 128, 372),
        ] {
            let mut bytes: Vec<u8> = (0..came).map(|at| at as u8).collect();
            let mut seen = Vec::new();
            let counts = each_of_run(bytes.chunks_mut(1), |datagram| seen.push(datagram[0]));
            assert_eq!(counts, (taken, left));
            assert!(seen.into_iter().eq((0..taken).map(|at| at as u8)));
        }
    }
}
