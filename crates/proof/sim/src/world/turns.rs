//! The data planes: when they take their turns, and what a turn has done.

use std::cell::Cell;

use bumpless_base::Role;
use bumpless_base::{Counter, Instant};
use bumpless_node::data_plane::Turn;
use bumpless_node::event::NodeEvent;

use super::World;
use crate::application::STATE;
use crate::check::{Delivered, Load, Permit};
use crate::digest::digest;
use crate::queue::What;
use crate::script::End;
use crate::trace::Happening;

/// A data plane that has just had a turn takes the next no sooner than this.
const TURN: u64 = 5_000;
/// Why a node says that it took the role in an ordered hand-over (`spec/events.md`).
const HANDED_OVER: &str = "the partner handed over";
/// After how long somebody starts a node again that has ended itself.
const RESTART_AFTER: u64 = 200_000_000;

impl World {
    /// Has the data plane of `node` take a turn at `at`, unless it does sooner anyway.
    pub(super) fn plan_turn(&mut self, node: usize, at: u64) {
        let host = &self.hosts[node];
        let at = at.max(host.paused_until).max(self.queue.now());
        if host.process.is_some() {
            self.turns[node] = self.turns[node].min(at);
        }
    }

    /// Wakes the data plane of `node`, unless it is awake and only has not gone on yet.
    pub(super) fn wake(&mut self, node: usize) {
        self.wake_at(node, self.queue.now());
    }

    /// The same at a time to come.
    pub(super) fn wake_at(&mut self, node: usize, at: u64) {
        let host = &mut self.hosts[node];
        if at < host.ready_at {
            host.ready_at = at;
            self.turns[node] = u64::MAX;
            let latency = host.latency();
            self.plan_turn(node, at + latency);
        }
    }

    /// Has the data plane of `node` take a turn at once.
    pub(super) fn turn_now(&mut self, node: usize) {
        let now = self.queue.now();
        self.hosts[node].ready_at = now;
        self.plan_turn(node, now);
    }

    /// The data plane of `node` takes its turn.
    pub(super) fn turn_is_due(&mut self, node: usize) {
        self.turns[node] = u64::MAX;
        let now = self.queue.now();
        let free_at = self.free_at(node);
        if free_at > now {
            return self.plan_turn(node, free_at);
        }
        let host = &mut self.hosts[node];
        if host.paused_until > now {
            return self.plan_turn(node, now);
        }
        if std::mem::take(&mut host.owes_observation) {
            self.observe(node);
        }
        let turn = self.take_turn(node);
        match turn {
            Turn::Wait(until) => {
                let arrival = self.next_arrival(node);
                let host = &mut self.hosts[node];
                let wake = host.wakes(until).min(arrival);
                host.ready_at = wake;
                let latency = host.latency();
                let next = wake.saturating_add(latency).max(now + TURN);
                self.plan_turn(node, next);
                if self.hosts[node].paused_until <= now {
                    self.observe(node);
                } else {
                    self.hosts[node].owes_observation = true;
                }
            }
            Turn::Ended | Turn::WatchdogExpired(_) => self.node_ends(node, turn),
        }
    }

    fn take_turn(&mut self, node: usize) -> Turn {
        let now = self.queue.now();
        self.take_in(node);
        if self.checks.are_apart() {
            let heard = self.exchange.get().heard(node);
            self.checks.hears(node, heard);
        }
        let host = &mut self.hosts[node];
        let departs = std::mem::take(&mut host.stalled_until).max(now);
        host.received_at = now;
        host.paused_until = host.paused_until.max(departs);
        let before = host.clock.local(now);
        let after = match departs == now {
            true => before,
            false => host.clock.local(departs),
        };
        let Some(process) = host.process.as_mut() else {
            return Turn::Ended;
        };
        self.exchange.get().set_now(now);
        process.plane.resume(host.due, before);
        // The first reading is the one before receiving.
        let first = Cell::new(true);
        let turn = process
            .plane
            .turn(|| if first.replace(false) { before } else { after });
        self.post(node, departs);
        // Who came or went did so after what this turn has received.
        self.take_answer(node, after);
        self.account(node, before, after);
        turn
    }

    /// Gives what the node has sent to the networks.
    fn post(&mut self, node: usize, departs: u64) {
        let (from, mut any) = (End::Node(node), false);
        let mut exchange = self.exchange.get();
        for network in 0..self.network.count() {
            if !exchange.swap_outbox(node, network, &mut self.outbox) {
                continue;
            }
            any = true;
            for parcel in self.outbox.drain(..) {
                self.trace.datagram(departs, node, &parcel, || {
                    self.network.address(network, from)
                });
                let lost = self.network.send(&mut self.queue, from, departs, parcel);
                if let Some(parcel) = lost {
                    exchange.recycle(parcel);
                    self.trace.lost();
                }
            }
        }
        drop(exchange);
        if any {
            self.announce();
        }
    }

    /// Looks at what a turn has done, from outside.
    fn observe(&mut self, node: usize) {
        let process = self.hosts[node].process.as_ref();
        if process.is_some_and(|process| process.log.has_news()) {
            self.drain_log(node);
        }
        self.observe_permits(node);
        self.observe_deliveries(node);
        let (exchange, networks) = (&self.exchange, self.network.count());
        self.checks.looked(node, self.queue.now(), || {
            let mut exchange = exchange.get();
            (0..networks).any(|network| exchange.mailbox(node, network).has_waiting())
        });
        self.observe_load(node);
        self.stir_applications(node);
        self.stir_change(node);
    }

    #[inline(never)] // Most turns have nothing to tell.
    pub(super) fn drain_log(&mut self, node: usize) {
        let now = self.queue.now();
        let Some(process) = self.hosts[node].process.as_mut() else {
            return;
        };
        let (trace, checks, config) = (&mut self.trace, &mut self.checks, &self.config);
        process.log.drain(|names, _, event| {
            trace.log(now, node, names, event);
            let NodeEvent::Role {
                group,
                to: Role::Primary,
                cause,
                ..
            } = event
            else {
                return;
            };
            checks.takes_role(node, now);
            if cause.as_str() == HANDED_OVER {
                let applications = config.applications.iter().enumerate();
                let channels = &process.channels;
                applications
                    .filter(|(_, app)| app.group == usize::from(*group))
                    .filter(|(at, _)| channels[*at].is_some())
                    .for_each(|(at, _)| checks.handed_over(at));
            }
        });
    }

    pub(super) fn observe_permits(&mut self, node: usize) {
        let now = self.queue.now();
        let host = &mut self.hosts[node];
        let Some(process) = host.process.as_ref() else {
            return;
        };
        for group in process.plane.groups() {
            let at = usize::from(group.id.0);
            let permit = group.gate.permit();
            if host.permits[at].0 != permit {
                let end = permit.map_or(Instant::ZERO, |permit| permit.until);
                let until = host.clock.true_time(end);
                host.permits[at] = (permit, until);
                let epoch = permit.map(|permit| permit.epoch);
                let permit = epoch.map(|epoch| Permit { epoch, until });
                self.checks.permit(at, node, permit, now);
            }
        }
    }

    fn observe_deliveries(&mut self, node: usize) {
        let Some(process) = self.hosts[node].process.as_mut() else {
            return;
        };
        let plane = &process.plane;
        let delivered = plane
            .cores()
            .receiver
            .counters()
            .get(Counter::StatesDelivered);
        if std::mem::replace(&mut process.states_delivered, delivered) != delivered {
            self.show_deliveries(node);
        }
    }

    #[inline(never)] // Nothing was delivered in most turns.
    fn show_deliveries(&mut self, node: usize) {
        let now = self.queue.now();
        let received_at = self.hosts[node].received_at;
        let Some(process) = self.hosts[node].process.as_mut() else {
            return;
        };
        let plane = &process.plane;
        for (app, channel) in process.apps.iter_mut().zip(plane.channels().iter()) {
            let (Some(app), Some(channel)) = (app, channel) else {
                continue;
            };
            let cycle = channel.snapshot.received_cycle;
            if channel.snapshot.received_at != app.received_at || cycle != app.received_cycle {
                (app.received_at, app.received_cycle) = (channel.snapshot.received_at, cycle);
                let peer = plane.groups()[channel.membership.group].peer;
                let tag = plane.cores().redundancy.transfer_tag(peer);
                let session = tag.unwrap_or_default();
                let id = self.config.applications[app.index].channel.get();
                // Whatever its age: whether it is fresh is for the checker to say.
                let subscriber = &mut app.machine.replication().inner.subscriber;
                let Some(view) = subscriber.read(Instant::ZERO) else {
                    continue;
                };
                let transit = self.exchange.get().quickest(node, id, view.cycle());
                self.checks.delivered(&Delivered {
                    application: app.index,
                    node,
                    session,
                    transfer_cycle: view.cycle(),
                    digest: digest(STATE, view.data()),
                    len: view.data().len(),
                    expires_at: view.expires_at(),
                    at: received_at,
                    // Unknown of what came in the turn that began the session: then nothing is
                    // said of it.
                    transit: transit.unwrap_or(u64::MAX),
                });
                let application = app.index;
                self.trace.tell(
                    now,
                    Happening::Delivered {
                        node,
                        application,
                        cycle: view.cycle(),
                    },
                );
            }
        }
    }

    fn observe_load(&mut self, node: usize) {
        let now = self.queue.now();
        let Some(process) = self.hosts[node].process.as_ref() else {
            return;
        };
        let cores = process.plane.cores();
        let in_flight = process
            .plane
            .groups()
            .iter()
            .map(|group| cores.sender.in_flight(group.peer))
            .max()
            .unwrap_or_default();
        let lost = [
            cores.sender.counters(),
            cores.receiver.counters(),
            cores.redundancy.counters(),
        ];
        let load = Load {
            node,
            in_flight,
            in_flight_max: self.config.transfer.in_flight_max,
            notices_lost: lost.iter().map(|c| c.get(Counter::EventsLost)).sum(),
        };
        self.checks.load(&load, now);
    }

    /// A node's process has ended by itself; somebody starts it again.
    #[cold]
    fn node_ends(&mut self, node: usize, turn: Turn) {
        if matches!(turn, Turn::WatchdogExpired(_)) {
            self.tell(Happening::WatchdogExpired { node });
        }
        self.kill(node);
        let now = self.now();
        self.checks.process_ended(node, now, now + RESTART_AFTER);
        let incarnation = self.hosts[node].incarnation;
        self.queue.push(
            now + RESTART_AFTER,
            What::Restart {
                node: node as u8,
                incarnation,
            },
        );
    }
}
