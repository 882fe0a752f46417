//! Datagrams at the end of their way.

use bumpless_base::Epoch;
use bumpless_node::witness::envelopes::{ROOM, Way};
use bumpless_wire::{EnvelopeHeader, NO_HOLDER, Packet, WitnessReply, parse};

use super::{WitnessHost, World};
use crate::check::Exemption;
use crate::echo::{self, replied};
use crate::network::{Datagram, Parcel};
use crate::script::{End, Lie};
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
        if !self.processors.is_empty() {
            return self.take_in_through_processor(node);
        }
        let now = self.queue.now();
        let runs = self.hosts[node].process.is_some();
        let (exchange, trace) = (&mut *self.exchange.get(), &mut self.trace);
        self.network.arrived(node, now, |_, parcel| {
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
            let arrival = self.next_arrival(node);
            if arrival < self.hosts[node].ready_at {
                self.wake_at(node, arrival);
            }
        }
    }

    fn echo_at_node(&mut self, node: usize, parcel: Parcel) {
        if self.hosts[node].process.is_none() || !self.takes_echo(node, &parcel) {
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
        let lie = self.lie_of(reference);
        let host = &mut self.witnesses[reference];
        let local = host.clock.local(now);
        let answered = match host.witness {
            None => Ok(false),
            Some(_) if host.only_echoes => Ok(echo::answer(&mut parcel.bytes)),
            Some(_) => {
                let processes = self.exchange.get().processes_of_sender(&parcel);
                let taken = answer(host, (reference, processes), &mut parcel, (local, lie));
                taken.map(|(answered, forgiven)| {
                    forgiven.into_iter().for_each(|it| self.checks.forgives(it));
                    answered
                })
            }
        };
        let answered = answered.unwrap_or_else(|what| {
            let what = format!("witness {reference} {what}");
            self.checks.genuine(now, Err(what));
            false
        });
        if !answered {
            return self.exchange.get().recycle(parcel);
        }
        let from = End::Reference(reference);
        let datagram = &mut *parcel;
        std::mem::swap(&mut datagram.source, &mut datagram.target);
        datagram.to = self.network.at_address(datagram.network, datagram.target);
        let sent = self
            .exchange
            .get()
            .sent_as(datagram.network, from, datagram.to);
        datagram.leaves(sent);
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

/// Turns a request into the witness's answer; returns whether there is one, and what is forgiven.
///
/// # Errors
/// What is wrong with a request that was opened and is not genuine.
fn answer(
    host: &mut WitnessHost,
    (reference, processes): (usize, u32),
    parcel: &mut Datagram,
    (now, lie): (bumpless_base::Instant, Option<Lie>),
) -> Result<(bool, Option<Exemption>), String> {
    let Some(witness) = &mut host.witness else {
        return Ok((false, None));
    };
    let sealed = EnvelopeHeader::is_one(&parcel.bytes);
    let opened = host.envelopes.open(host.place, &mut parcel.bytes, now);
    if opened.is_err() && sealed {
        let here = (parcel.network, End::Reference(reference));
        host.genuine.refuses(parcel, here, processes)?;
        return Ok((false, None));
    }
    let Ok((way, message)) = opened else {
        return Ok((false, None));
    };
    let parsed = match parse(message) {
        Ok(Packet::WitnessRequest(request)) => Some(request),
        _ => None,
    };
    let mut forgiven = None;
    if way != Way::Open {
        let here = (parcel.network, End::Reference(reference));
        forgiven = host.genuine.takes(parcel, here, processes)?;
    }
    let permitted = |request: &_| host.envelopes.permits(way, request).is_ok();
    let parsed = parsed.filter(permitted);
    let answered =
        parsed.and_then(|asked| Some((asked.epoch, witness.handle_request(&asked, now)?)));
    let Some((asked, reply)) = answered else {
        return Ok((false, forgiven));
    };
    let reply = lie.map_or(reply, |lie| told(lie, (asked, reply), host.said));
    host.said = Some(reply);
    let (mut encoded, mut room) = ([0; WitnessReply::LEN], [0; ROOM]);
    let len = reply.encode(&mut encoded);
    room[EnvelopeHeader::LEN..][..len].copy_from_slice(&encoded[..len]);
    let Some(datagram) = host.envelopes.seal(way, &mut room, len) else {
        return Ok((false, forgiven));
    };
    parcel.bytes.clear();
    parcel.bytes.extend_from_slice(datagram);
    Ok((true, forgiven))
}

/// What a witness says that lies, in place of its true `reply` to who has `asked` for this epoch, after it has said `before`.
fn told(
    lie: Lie,
    (asked, reply): (Epoch, WitnessReply),
    before: Option<WitnessReply>,
) -> WitnessReply {
    match lie {
        Lie::Grants => WitnessReply {
            granted: reply.granted || reply.kind.is_lease(),
            old: false,
            holder: NO_HOLDER,
            epoch: asked,
            holder_silent_us: u32::MAX,
            retry_after_us: 0,
            ..reply
        },
        Lie::Old => WitnessReply { old: true, ..reply },
        Lie::Fresh => WitnessReply {
            old: false,
            ..reply
        },
        Lie::Repeats => before.unwrap_or(reply),
    }
}
