//! Sorting what arrives: source, form, kind; each datagram goes to its core or is counted under the
//! cause of its discard.

use bumpless_base::{Counter, Counters, Instant, LinkId};
use bumpless_net_linux::Link;
use bumpless_redundancy::{Redundancy, ReferenceId};
use bumpless_secure::Suite;
use bumpless_transfer::{Receiver, Sender};
use bumpless_wire::{Packet, WireVersion, parse};

use super::addresses::Correspondent;
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

impl Cores {
    /// Takes everything that `port` has received, at most one batch; returns whether there is more.
    pub fn receive<L: Link, S: Suite>(&mut self, port: &mut LinkPort<L, S>, now: Instant) -> bool {
        let link = port.id();
        let (driver, addresses, protection, reached) = port.receiving();
        let mut strangers = 0;
        let outcome = driver.receive(&mut |from, datagram| {
            self.counters.count(Counter::DatagramsReceived);
            let bytes = datagram.len() as u64;
            self.counters.add(Counter::BytesReceived, bytes);
            let Some(source) = addresses.who(from) else {
                strangers += 1;
                return self.counters.count(Counter::DiscardUnknownSource);
            };
            match protection.open(source, datagram, now) {
                Ok(message) => {
                    if let Some(answered) = self.handle(link, source, message, now) {
                        protection.confirm(source);
                        reached.handle_answer(source, answered, now);
                    }
                }
                Err(cause) => self.counters.count(cause),
            }
        });
        if strangers > 0 {
            port.handle_strangers(strangers, now);
        }
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

    /// Hands `message` to its core. Returns, if it shows that `source` is there at present, when what it answers was sent on this link;
    /// zero: it answers nothing.
    fn handle(
        &mut self,
        link: LinkId,
        source: Correspondent,
        message: &[u8],
        now: Instant,
    ) -> Option<Instant> {
        match (parse(message), source) {
            (Err(error), _) => self.counters.count(error.counter()),
            (Ok(Packet::Data { header, payload }), Correspondent::Partner(peer)) => {
                if header.version == self.version {
                    self.receiver.handle_data(peer, link, &header, payload, now);
                } else {
                    self.counters.count(Counter::DiscardWrongVersion);
                }
            }
            (Ok(Packet::Ack(ack)), Correspondent::Partner(peer)) => {
                if ack.version == self.version {
                    self.sender.handle_ack(peer, &ack, link, now);
                } else {
                    self.counters.count(Counter::DiscardWrongVersion);
                }
            }
            (Ok(Packet::Heartbeat(heartbeat)), Correspondent::Partner(_)) => {
                let is_there = self.redundancy.handle_heartbeat(link, &heartbeat, now);
                return is_there.then_some(Instant::from_nanos(heartbeat.echo_sent_at));
            }
            (Ok(Packet::WitnessReply(reply)), Correspondent::Reference(reference)) => {
                let reference = ReferenceId(reference);
                let is_there = self.redundancy.handle_witness_reply(reference, &reply, now);
                return is_there.then_some(Instant::from_nanos(reply.echo_sent_at));
            }
            // A message of a kind that this source never sends.
            (Ok(_), _) => self.counters.count(Counter::DiscardWrongKind),
        }
        None
    }
}
