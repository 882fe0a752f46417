//! What happens in a turn: arrivals, the machine, its driver, and what the observer sees of it.

use super::plan::{Fault, GROUP};
use super::world::{Body, Datagram, End, World, path};
use bumpless_base::{Instant, LinkId, PeerId};
use bumpless_redundancy::*;
use bumpless_wire::{GroupFlags, Packet, parse};
use std::sync::Arc;

/// Most datagrams that wait on one path; what comes then finds the receive buffer full.
const WAITING: usize = 2;

impl World {
    /// The turn of a node or of all reference points: what waits is handed over, in the order in
    /// which it was sent, and then time-outs happen.
    pub fn turn(&mut self) {
        let end = self.turn;
        let (arrived, flight) = std::mem::take(&mut self.flight)
            .into_iter()
            .partition::<Vec<_>, _>(|d| d.to.min(2) == end);
        self.flight = flight;
        if end == 2 {
            arrived.iter().for_each(|d| self.at_reference(d));
        } else if self.is_up(end) {
            self.nodes[end].paused = false;
            arrived.iter().for_each(|d| self.deliver(end, d));
            self.look_at_device(end);
            let now = self.clock(end);
            self.core(end).handle_timeout(now);
            self.settle(end);
            self.apply(end);
        }
        self.pass();
    }

    /// The next one has its turn. After the last, a quantum has passed.
    pub fn pass(&mut self) {
        self.turn = (self.turn + 1) % 3;
        if self.turn == 0 {
            self.time += 1;
            let counts = self.is_steady() && !self.is_redundant();
            let ailing = self.seen.ailing.saturating_add(1);
            self.seen.ailing = if counts { ailing } else { 0 };
        }
    }

    /// The adversary did something: healing is counted from here.
    pub fn disturb(&mut self, fault: Fault) {
        self.budget.pay(fault);
        self.seen.ailing = 0;
    }

    fn deliver(&mut self, node: End, datagram: &Datagram) {
        let now = self.clock(node);
        let core = self.core(node);
        match &*datagram.body {
            Body::Heartbeat(bytes) => {
                if let Ok(Packet::Heartbeat(heartbeat)) = parse(bytes) {
                    core.handle_heartbeat(LinkId(datagram.link), &heartbeat, now);
                }
            }
            Body::Reply(reply, _) => {
                let reference = ReferenceId(datagram.from as u8 - 2);
                core.handle_witness_reply(reference, reply, now);
            }
            Body::Echo { sequence } => {
                let reference = ReferenceId(datagram.from as u8 - 2);
                core.handle_ping_reply(reference, *sequence, now);
            }
            Body::Request(_) => {}
        }
        self.settle(node);
    }

    fn at_reference(&mut self, datagram: &Datagram) {
        let now = self.clock(datagram.to);
        let answer = match (&*datagram.body, &mut self.witnesses[datagram.to - 2]) {
            (Body::Request(request), Some(witness)) => {
                let reply = Arc::make_mut(witness).handle_request(request, now);
                reply.map(|reply| Body::Reply(reply, request.session))
            }
            (Body::Echo { sequence }, None) => Some(Body::Echo {
                sequence: *sequence,
            }),
            _ => None,
        };
        if let Some(body) = answer {
            self.send(datagram.to, datagram.from, datagram.link, body);
        }
    }

    fn send(&mut self, from: End, to: End, link: u8, body: Body) {
        let same = |d: &&Datagram| (d.from, d.to, d.link) == (from, to, link);
        let full = self.flight.iter().filter(same).count() >= WAITING;
        if self.cuts & path(from, to, link) == 0 && !full {
            let body = Arc::new(body);
            self.flight.push(Datagram {
                from,
                to,
                link,
                body,
            });
        }
    }

    /// Drains the machine after a call.
    pub fn settle(&mut self, node: End) {
        let now = self.clock(node);
        let mut buffer = [0; MAX_MESSAGE_LEN];
        while let Some(outgoing) = self.core(node).poll_transmit(now, &mut buffer) {
            self.transmit(node, outgoing, &buffer);
        }
        while let Some(event) = self.core(node).poll_event() {
            self.follow(node, &event, now);
        }
    }

    fn transmit(&mut self, node: End, outgoing: Outgoing, buffer: &[u8]) {
        let link_of = |reference: ReferenceId| reference.0 % self.plan.links;
        match outgoing {
            Outgoing::Heartbeat { link, len, .. } => {
                let bytes = buffer[..len].to_vec();
                self.check_promise(&bytes);
                self.send(node, 1 - node, link.0, Body::Heartbeat(bytes));
            }
            Outgoing::Witness { reference, len } => {
                let Ok(Packet::WitnessRequest(request)) = parse(&buffer[..len]) else {
                    panic!("not a request")
                };
                let to = 2 + usize::from(reference.0);
                self.send(node, to, link_of(reference), Body::Request(request));
            }
            Outgoing::Ping {
                reference,
                sequence,
            } => {
                let at = usize::from(reference.0);
                let link = link_of(reference);
                self.nodes[node].pings[at] = sequence.wrapping_add(1);
                self.send(node, 2 + at, link, Body::Echo { sequence });
            }
        }
    }

    /// The driver follows an event.
    fn follow(&mut self, node: End, event: &Event, now: Instant) {
        match event {
            Event::HandOverBegun { .. } => self.nodes[node].draining = true,
            Event::HandOverAborted { .. } => self.nodes[node].draining = false,
            Event::LeaseRegained { .. } => self.seen.regained = true,
            Event::RoleChanged { from, to, .. } => {
                self.nodes[node].draining = false;
                if *from == Role::Primary {
                    let holding = self.held_after_role(node);
                    self.nodes[node].holding = holding;
                    self.core(node).set_holding(GROUP, holding, now);
                }
                let doubt = *to == Role::Primary && self.core(node).is_cold(GROUP);
                (self.nodes[node].undecided, self.nodes[node].asked) = (doubt, false);
                if doubt {
                    self.begin_in_doubt(node);
                }
            }
            _ => {}
        }
    }

    /// What a node holds whose primary role has ended. In a role that began in doubt and has made no state, that is what
    /// was in doubt.
    fn held_after_role(&self, node: End) -> Holding {
        let node = &self.nodes[node];
        match node.undecided {
            true => Holding {
                fresh_until: None,
                usable_until: None,
                ..node.holding
            },
            false => node.holding,
        }
    }

    /// Whether states reach the partner, and their acknowledgements come back, at present.
    fn is_transferring(&self, node: End) -> bool {
        let other = 1 - node;
        let tag = |n: End| self.nodes[n].core.as_ref()?.transfer_tag(PeerId(0));
        let open = |link| self.cuts & (path(node, other, link) | path(other, node, link)) == 0;
        self.transfers
            && !self.nodes[other].paused
            && self.role(other) == Some(Role::Backup)
            && tag(node).is_some()
            && tag(node) == tag(other)
            && (0..self.plan.links).any(open)
    }

    /// The application of a primary: its state becomes safe at the partner and the output
    /// leaves; or it does not, and the output leaves when the machine says that it is in simplex.
    fn apply(&mut self, node: End) {
        let Some(epoch) = self.permit(node) else {
            return;
        };
        self.check_epoch(node, epoch.0);
        let (other, now) = (1 - node, self.clock(node));
        let core = self.nodes[node].core.as_ref();
        let tag = core.and_then(|core| core.transfer_tag(PeerId(0)));
        if self.nodes[node].undecided && !std::mem::replace(&mut self.nodes[node].asked, true) {
            return;
        }
        self.decide(node);
        self.nodes[node].published |= tag.is_some();
        if self.is_transferring(node) {
            self.receive_state(other);
            self.core(node).set_simplex(GROUP, false, now);
            self.write(node, true);
            if self.nodes[node].draining {
                self.nodes[node].draining = false;
                self.core(node).hand_over_ready(GROUP, now);
            }
        } else {
            self.core(node).set_simplex(GROUP, true, now);
            if self.core(node).is_simplex(GROUP) {
                self.write(node, false);
            }
        }
        self.settle(node);
    }

    /// The first state of a role that began in doubt is made: the node goes on from what it holds, if the field device
    /// shows that to be the newest, else it begins anew. Nothing that was written before is lacking from then on.
    fn decide(&mut self, node: End) {
        if std::mem::take(&mut self.nodes[node].undecided) {
            self.nodes[node].holding = Holding::until(Some(Instant::FAR_FUTURE));
            self.seen.fresh[node] = true;
        }
    }

    /// A state arrives whole. How long it is good is the adversary's choice.
    pub fn receive_state(&mut self, node: End) {
        self.tell(node, Holding::until(Some(Instant::FAR_FUTURE)));
    }

    /// The node is told what it holds.
    pub fn tell(&mut self, node: End, holding: Holding) {
        let now = self.clock(node);
        self.nodes[node].holding = holding;
        self.core(node).set_holding(GROUP, holding, now);
        self.settle(node);
    }

    /// As backup: whether the field device shows an output that the state that is here does not include (F-27).
    fn look_at_device(&mut self, node: End) {
        let lacking = self.seen.written.filter(|_| !self.seen.fresh[node]);
        let seen_at = lacking.map(|written| {
            let ago = self.time - written;
            let step = self.plan.steps[node];
            Instant::from_nanos(self.clock(node).as_nanos() - ago * step + step)
        });
        let outdated_until = seen_at.map(|seen_at| seen_at + self.plan.hot_restart());
        let before = self.nodes[node].holding;
        if self.role(node) != Some(Role::Primary) && before.outdated_until != outdated_until {
            let some_usable_until = match outdated_until {
                Some(_) => None,
                None => before.usable_until,
            };
            self.tell(
                node,
                Holding {
                    outdated_until,
                    some_usable_until,
                    ..before
                },
            );
        }
    }

    /// A primary begins in doubt: the field device decides whether what it holds is the newest state. It is not
    /// while another that lives holds that, until the hot restart is over.
    fn begin_in_doubt(&mut self, node: End) {
        if self.seen.fresh[node] {
            return;
        }
        let over = self.plan.hot_restart_quanta();
        let bears = self.idle().is_some_and(|idle| idle < over);
        if bears && self.is_up(1 - node) && self.seen.fresh[1 - node] {
            self.violate(
                "continues: a primary begins anew although the other holds the newest state",
            );
        }
        self.seen.fresh = [false; 2];
    }

    /// An output leaves. A role that began without a state begins anew, any other goes on from what
    /// the node held.
    fn write(&mut self, node: End, safe: bool) {
        let cold = self.nodes[node]
            .core
            .as_ref()
            .is_some_and(|core| core.is_cold(GROUP));
        if !cold && !self.seen.fresh[node] {
            self.violate("no bump: an output follows from a state older than the last output");
        }
        self.nodes[node].holding = Holding::until(Some(Instant::FAR_FUTURE));
        self.seen.written = Some(self.time);
        self.seen.fresh[node] = true;
        self.seen.fresh[1 - node] = safe;
    }

    fn check_epoch(&mut self, node: End, epoch: u32) {
        let (seen, writer) = (self.seen.epoch, (node, self.nodes[node].incarnation));
        if epoch == seen && writer == self.seen.writer {
            return;
        }
        let cause = self.status(node).and_then(|status| status.cause);
        let anew = matches!(cause, Some(RoleCause::Start | RoleCause::LoneStart));
        self.seen.repeated |= epoch <= seen;
        if epoch <= seen && !(self.seen.forgotten && anew) {
            self.violate("epochs grow: an epoch is used that is not above the last one");
        }
        (self.seen.epoch, self.seen.writer, self.seen.forgotten) = (epoch, writer, false);
    }

    fn check_promise(&mut self, bytes: &[u8]) {
        let Ok(Packet::Heartbeat(heartbeat)) = parse(bytes) else {
            panic!("not a heartbeat")
        };
        let promises = |flags: GroupFlags| flags.contains(GroupFlags::GRANTING);
        let mut entries = heartbeat.groups();
        if entries.any(|e| promises(e.flags) && e.role == Role::Primary) {
            self.violate("one writer: a primary promises");
        }
    }

    fn violate(&mut self, what: &'static str) {
        self.seen.violation.get_or_insert(what);
    }
}
