//! Sending: what the cores want sent, onto the links, the urgent and small first.

use bumpless_base::{Counter, Instant, LinkId};
use bumpless_net_linux::Echo;
use bumpless_redundancy::Outgoing;
use bumpless_secure::Suite;

use super::DataPlane;
use super::drivers::Drivers;
use super::link_port::{LinkPort, SendState};

impl<D: Drivers> DataPlane<D> {
    /// Sends everything that may go out; returns when pacing next lets something go.
    pub(super) fn transmit(&mut self, now: Instant) -> Instant {
        self.transmit_redundancy(now);
        self.transmit_acks(now);
        self.transmit_states(now)
    }

    fn transmit_redundancy(&mut self, now: Instant) {
        let (cores, buffer) = (&mut self.cores, &mut self.scratch.message);
        while let Some(outgoing) = cores.redundancy.poll_transmit(now, buffer) {
            match outgoing {
                Outgoing::Heartbeat {
                    peer,
                    link,
                    len,
                    padded,
                } => {
                    if let Some(port) = port(&mut self.ports, link) {
                        let bytes = &buffer[..len];
                        let (sender, counters) = (&mut cores.sender, &mut cores.counters);
                        match padded {
                            true => port.send_at_full_length(peer, bytes, now, sender, counters),
                            false => port.send_to_partner(peer, bytes, now, sender, counters),
                        }
                    }
                }
                Outgoing::Witness { reference, len } => {
                    let link = self.reference_links[usize::from(reference.0)];
                    if let Some(Some(port)) = self.ports.get_mut(link) {
                        port.send_to_reference(
                            reference.0,
                            &buffer[..len],
                            now,
                            &mut cores.sender,
                            &mut cores.counters,
                        );
                    }
                }
                Outgoing::Ping {
                    reference,
                    sequence,
                } => {
                    if let Some(Some(pinger)) = self.pingers.get_mut(usize::from(reference.0)) {
                        // Silence of the address is what decides; a failed send is one form of it.
                        if pinger.send(sequence).is_err() {
                            cores.counters.count(Counter::PingFailures);
                        }
                    }
                }
            }
        }
    }

    fn transmit_acks(&mut self, now: Instant) {
        let (cores, buffer) = (&mut self.cores, &mut self.scratch.ack);
        while let Some(ack) = cores.receiver.poll_ack(buffer) {
            for link in ack.links.iter() {
                if let Some(port) = port(&mut self.ports, link) {
                    let bytes = &buffer[..ack.len];
                    let (sender, counters) = (&mut cores.sender, &mut cores.counters);
                    port.send_to_partner(ack.peer, bytes, now, sender, counters);
                }
            }
        }
    }

    fn transmit_states(&mut self, now: Instant) -> Instant {
        let mut next = Instant::FAR_FUTURE;
        // Most turns have no state to send.
        if self.cores.sender.is_idle() {
            return next;
        }
        for port in self.ports.iter_mut().flatten() {
            match port.send_states(&mut self.cores.sender, now, &mut self.cores.counters) {
                SendState::Paced(at) => next = next.min(at),
                // A full queue is waited for by its descriptor.
                SendState::Drained | SendState::Full => {}
            }
        }
        next
    }
}

fn port<L, S: Suite>(
    ports: &mut [Option<LinkPort<L, S>>],
    link: LinkId,
) -> Option<&mut LinkPort<L, S>> {
    ports.get_mut(usize::from(link.0)).and_then(Option::as_mut)
}
