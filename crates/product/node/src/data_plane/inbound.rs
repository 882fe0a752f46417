//! Sorting what arrives: source, form, kind; each datagram goes to its core or is counted under the
//! cause of its discard.

use bumpless_base::{Counter, Counters, Instant, LinkId, PeerId};
use bumpless_net_linux::Link;
use bumpless_redundancy::{Redundancy, ReferenceId};
use bumpless_transfer::{Receiver, Sender};
use bumpless_wire::{Packet, WireVersion, parse};

use super::link_port::LinkPort;

/// The cores of a node.
pub struct Cores {
    /// Sends states.
    pub sender: Sender,
    /// Receives states.
    pub receiver: Receiver,
    /// Sessions, roles and leases.
    pub redundancy: Redundancy,
    /// What this layer counts.
    pub counters: Counters,
    /// The version of the transfer protocol that the configuration names.
    pub version: WireVersion,
}

/// Who sent a datagram, by its address on a network.
#[derive(Clone, Copy)]
enum Source {
    Partner(PeerId),
    Reference(u8),
}

impl Cores {
    /// Takes everything that `port` has received, at most one batch; returns whether there is more.
    pub fn receive<L: Link>(&mut self, port: &mut LinkPort<L>, now: Instant) -> bool {
        let link = port.id();
        let (driver, addresses) = port.driver_and_addresses();
        let outcome = driver.receive(&mut |from, datagram| {
            let source = addresses
                .partner_at(from)
                .map(Source::Partner)
                .or_else(|| addresses.reference_at(from).map(Source::Reference));
            self.handle(link, source, datagram, now);
        });
        if outcome.without_source > 0 {
            let count = outcome.without_source as u64;
            self.counters.add(Counter::DatagramsReceived, count);
            self.counters.add(Counter::DiscardNoSource, count);
        }
        if outcome.failure.is_some() {
            self.counters.count(Counter::ReceiveFailures);
        }
        outcome.more
    }

    fn handle(&mut self, link: LinkId, source: Option<Source>, datagram: &[u8], now: Instant) {
        self.counters.count(Counter::DatagramsReceived);
        self.counters
            .add(Counter::BytesReceived, datagram.len() as u64);
        let Some(source) = source else {
            return self.counters.count(Counter::DiscardUnknownSource);
        };
        match (parse(datagram), source) {
            (Err(error), _) => self.counters.count(error.counter()),
            (Ok(Packet::Data { header, payload }), Source::Partner(peer)) => {
                if header.version == self.version {
                    self.receiver.handle_data(peer, link, &header, payload, now);
                } else {
                    self.counters.count(Counter::DiscardWrongVersion);
                }
            }
            (Ok(Packet::Ack(ack)), Source::Partner(peer)) => {
                if ack.version == self.version {
                    self.sender.handle_ack(peer, &ack, link, now);
                } else {
                    self.counters.count(Counter::DiscardWrongVersion);
                }
            }
            (Ok(Packet::Heartbeat(heartbeat)), Source::Partner(_)) => {
                self.redundancy.handle_heartbeat(link, &heartbeat, now);
            }
            (Ok(Packet::WitnessReply(reply)), Source::Reference(reference)) => {
                self.redundancy
                    .handle_witness_reply(ReferenceId(reference), &reply, now);
            }
            // A message of a kind that this source never sends.
            (Ok(_), _) => self.counters.count(Counter::DiscardWrongKind),
        }
    }
}
