//! How the world runs: delivery, the nodes' drivers and applications, the checkers.

use super::{End, MS, What, World};
use bumpless_base::{LinkId, PeerId};
use bumpless_redundancy::*;
use bumpless_wire::{GroupFlags, Packet, WitnessRequest, parse};
use std::cmp::Reverse;

impl World {
    pub fn run_for(&mut self, span: u64) {
        let end = self.now + span;
        while let Some(Reverse((at, ..))) = self.queue.peek()
            && *at <= end
        {
            let Some(Reverse((at, _, to, what))) = self.queue.pop() else {
                break;
            };
            self.now = self.now.max(at);
            self.dispatch(to, what);
        }
        self.now = end;
    }

    pub fn run_until(&mut self, most: u64, done: impl Fn(&Self) -> bool) -> u64 {
        let start = self.now;
        while !done(self) && self.now - start < most {
            self.run_for(MS / 10);
        }
        self.now - start
    }

    pub(super) fn push(&mut self, delay: u64, to: End, what: What) {
        self.serial += 1;
        self.queue
            .push(Reverse((self.now + delay, self.serial, to, what)));
    }

    pub(super) fn dispatch(&mut self, to: End, what: What) {
        if to >= 2 {
            return self.at_reference(to, what);
        }
        match what {
            What::Resume => self.resume(to),
            What::Cycle => self.cycle(to),
            _ if self.nodes[to].core.is_none() => {}
            _ if self.nodes[to].paused => {
                // A socket buffer has an end.
                if self.nodes[to].held.len() < 200 {
                    self.nodes[to].held.push(what);
                }
            }
            What::Wake if self.nodes[to].wake != self.now => {}
            _ => {
                self.deliver(to, what);
                self.settle(to);
            }
        }
    }

    pub(super) fn resume(&mut self, node: End) {
        self.nodes[node].paused = false;
        if self.nodes[node].core.is_none() {
            return;
        }
        let held = std::mem::take(&mut self.nodes[node].held);
        for what in held.into_iter().filter(|what| *what != What::Wake) {
            self.deliver(node, what);
            self.settle(node);
        }
        self.deliver(node, What::Wake);
        self.settle(node);
    }

    fn deliver(&mut self, node: End, what: What) {
        let now = self.local(node);
        let core = self.core(node);
        match what {
            What::Wake => core.handle_timeout(now),
            What::State { tag, sent, cycle } => self.take_state(node, tag, sent, cycle),
            What::Safe { tag, cycle } => self.take_acknowledgement(node, tag, cycle),
            What::Deadline { cycle } => self.take_deadline(node, cycle),
            What::Echo {
                reference,
                sequence,
                ..
            } => {
                core.handle_ping_reply(ReferenceId(reference), sequence, now);
            }
            What::Datagram { from, link, bytes } => match parse(&bytes) {
                Ok(Packet::Heartbeat(hb)) => {
                    core.handle_heartbeat(LinkId(link), &hb, now);
                }
                Ok(Packet::WitnessReply(reply)) => {
                    core.handle_witness_reply(ReferenceId(from as u8 - 2), &reply, now);
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn at_reference(&mut self, to: End, what: What) {
        let reference = to - 2;
        let link = reference as u8 % self.plan.links;
        let now = self.witness_clocks[reference].local(self.now);
        match what {
            What::Datagram { from, bytes, .. } => {
                let Some(witness) = self.witnesses[reference].as_mut() else {
                    return;
                };
                let Ok(Packet::WitnessRequest(request)) = parse(&bytes) else {
                    return;
                };
                if let Some(reply) = witness.handle_request(&request, now) {
                    let mut bytes = [0; bumpless_wire::WitnessReply::LEN];
                    reply.encode(&mut bytes);
                    let bytes = bytes.to_vec();
                    self.send(
                        to,
                        from,
                        link,
                        What::Datagram {
                            from: to,
                            link,
                            bytes,
                        },
                    );
                }
            }
            What::Echo {
                reference,
                sequence,
                from,
                ..
            } if self.witnesses[to - 2].is_some() => {
                let echo = What::Echo {
                    reference,
                    sequence,
                    reply: true,
                    from: to,
                };
                self.send(to, from, link, echo);
            }
            _ => {}
        }
    }

    fn send(&mut self, from: End, to: End, link: u8, what: What) {
        if self.cuts.contains(&(from, to, link)) || self.random.chance(self.loss) {
            return;
        }
        let copies = 1 + u8::from(self.random.chance(self.duplicates));
        for _ in 0..copies {
            let delay = self.random_delay();
            self.push(delay, to, what.clone());
        }
    }

    pub(super) fn random_delay(&mut self) -> u64 {
        let (low, high) = self.delay;
        low + self.random.below(high - low + 1)
    }

    /// Drains a node after a call, lets its application go on, and looks at the world.
    pub(super) fn settle(&mut self, node: End) {
        self.drain(node);
        self.proceed(node);
        self.drain(node);
        let timeout = self.core(node).poll_timeout();
        let wake = self.nodes[node].clock.true_time(timeout).max(self.now);
        if wake != self.nodes[node].wake || wake == self.now {
            self.nodes[node].wake = wake;
            self.push(wake - self.now, node, What::Wake);
        }
        self.check();
    }

    fn drain(&mut self, node: End) {
        let now = self.local(node);
        let mut buffer = [0; MAX_MESSAGE_LEN];
        while let Some(outgoing) = self.core(node).poll_transmit(now, &mut buffer) {
            self.transmit(node, outgoing, &buffer);
        }
        while let Some(event) = self.core(node).poll_event() {
            let at = self.now;
            self.nodes[node].events.push((at, event));
            if let Event::RoleChanged { to, .. } = event
                && to == Role::Primary
            {
                self.nodes[node].primary_since = at;
            }
            self.application_hears(node, &event);
            self.configuration_hears(node, &event);
        }
    }

    fn configuration_hears(&mut self, node: End, event: &Event) {
        let now = self.local(node);
        match event {
            Event::ConfigurationDue => {
                let next = self.nodes[node].next.take().expect("it is on the disk");
                self.nodes[node].fingerprint = next;
                self.core(node).configuration_switched(now);
            }
            Event::ChangeWithdrawn => {
                self.core(node).withdraw_configuration(now).unwrap();
                self.nodes[node].next = None;
            }
            _ => {}
        }
    }

    fn transmit(&mut self, node: End, outgoing: Outgoing, buffer: &[u8]) {
        match outgoing {
            Outgoing::Heartbeat {
                peer, link, len, ..
            } => {
                assert_eq!(peer, PeerId(0));
                let bytes = buffer[..len].to_vec();
                self.check_promise(node, &bytes);
                if self.record {
                    self.recorded.push((node, link.0, bytes.clone()));
                }
                let what = What::Datagram {
                    from: node,
                    link: link.0,
                    bytes,
                };
                self.send(node, 1 - node, link.0, what);
            }
            Outgoing::Witness { reference, len } => {
                assert_eq!(len, WitnessRequest::LEN);
                let Ok(Packet::WitnessRequest(request)) = parse(&buffer[..len]) else {
                    panic!("not a witness request")
                };
                // Drift included, so that the witness need not know how much there is.
                let timing = self.plan.timing;
                let least = timing.lease.stretched(timing.drift_ppm).as_nanos();
                assert!(u64::from(request.lease_us) * 1000 >= least);
                let link = reference.0 % self.plan.links;
                let bytes = buffer[..len].to_vec();
                let what = What::Datagram {
                    from: node,
                    link,
                    bytes,
                };
                self.send(node, 2 + usize::from(reference.0), link, what);
            }
            Outgoing::Ping {
                reference,
                sequence,
            } => {
                let link = reference.0 % self.plan.links;
                let echo = What::Echo {
                    reference: reference.0,
                    sequence,
                    reply: false,
                    from: node,
                };
                self.send(node, 2 + usize::from(reference.0), link, echo);
            }
        }
    }

    pub(super) fn check(&mut self) {
        if let (Some(a), Some(b)) = (self.writes(0), self.writes(1)) {
            self.violate(format!(
                "one_writer: epochs {a} and {b} may be written at once"
            ));
        }
    }

    /// A primary promises nothing, nor does a node that may be bound by what it forgot.
    fn check_promise(&mut self, node: End, bytes: &[u8]) {
        let Ok(Packet::Heartbeat(heartbeat)) = parse(bytes) else {
            return self.violate("heartbeats can be read".to_string());
        };
        let young = self.now < self.nodes[node].started + self.plan.timing.lease.as_nanos();
        for entry in heartbeat.groups() {
            let granting = entry.flags.contains(GroupFlags::GRANTING);
            if granting && (young || entry.role == Role::Primary) {
                self.violate(format!(
                    "promises: node {node}, {:?}, young: {young}",
                    entry.role
                ));
            }
        }
    }

    pub(super) fn violate(&mut self, what: String) {
        self.violations
            .push(format!("{what}; at {} us", self.now / 1000));
    }
}
