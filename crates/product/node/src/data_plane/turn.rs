//! One turn of the loop: takes what has come, lets the cores act, sends.

use std::sync::atomic::Ordering;

use bumpless_base::{Duration, Instant};
use bumpless_net_linux::Echo;
use bumpless_redundancy::{ReferenceId, SwitchoverRefused};

use super::change::ChangeAnswer;
use super::drivers::Drivers;
use super::group::GroupRuntime;
use super::{Command, DataPlane, Turn};
use crate::event::NodeEvent;

/// A wake-up later than this, or a turn longer than this, is a stall worth telling.
const STALL: Duration = Duration::from_millis(2);
const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(20);

impl<D: Drivers> DataPlane<D> {
    /// One turn: takes what has come, acts, sends. `clock` is read before receiving, before acting,
    /// and at the end.
    pub fn turn(&mut self, clock: impl Fn() -> Instant) -> Turn {
        let received = clock();
        let more = self.receive(received);
        let now = clock();
        self.act(now);
        let ended = self.surroundings.stop.load(Ordering::Acquire) && self.has_left(now);
        // A right that ends has ended here before the partner hears so.
        self.publish(now);
        let paced = self.transmit(now);
        if ended {
            return Turn::Ended;
        }
        let overdue = self.refresh_now_and_then(now);
        self.note_stall(self.stalls.turn_began.unwrap_or(received), clock());
        if !more {
            self.stalls.arrived_since = received;
        }
        if let Some(period) = overdue {
            return Turn::WatchdogExpired(period);
        }
        let next = self.next_deadline(now).min(paced);
        Turn::Wait(if more { now } else { next })
    }

    /// Hands over what this node is primary of; returns whether it may end.
    #[cold]
    fn has_left(&mut self, now: Instant) -> bool {
        for group in &mut self.groups {
            group.leave(&mut self.cores.redundancy, now);
        }
        self.drain_events(now);
        let deadline = *self
            .leaving_until
            .get_or_insert(now + self.hand_over_timeout);
        now >= deadline || self.groups.iter().all(GroupRuntime::may_leave)
    }

    /// Goes on after a wait until `due` that ended at `now`.
    pub fn resume(&mut self, due: Instant, now: Instant) {
        for port in self.ports.iter_mut().flatten() {
            port.full = false;
        }
        self.note_stall(due, now);
        self.stalls.turn_began = Some(now);
    }

    fn receive(&mut self, now: Instant) -> bool {
        let mut more = false;
        for port in self.ports.iter_mut().flatten() {
            more |= self.cores.receive(port, now);
        }
        for (index, pinger) in self.pingers.iter_mut().enumerate() {
            while let Some(reply) = pinger.as_mut().and_then(Echo::receive) {
                let reference = ReferenceId(index as u8);
                self.cores
                    .redundancy
                    .handle_ping_reply(reference, reply.sequence, now);
            }
        }
        more
    }

    fn act(&mut self, now: Instant) {
        let cores = &mut self.cores;
        // Whatever arrives is decided upon at once: what is left to do is due at a known time.
        if now >= self.redundancy_due {
            cores.redundancy.handle_timeout(now);
        }
        cores.sender.handle_timeout(now);
        cores.receiver.handle_timeout(now);
        cores.sender.handle_published(now);
        while let Ok(command) = self.surroundings.commands.pop() {
            self.obey(command, now);
        }
        for group in &mut self.groups {
            group.collect(&mut self.cores.redundancy, now);
        }
        self.drain_events(now);
        let mut handing_over = false;
        for group in &mut self.groups {
            handing_over |= group.drive_hand_over(&mut self.cores.redundancy, now);
        }
        if handing_over {
            self.drain_events(now);
        }
    }

    #[cold]
    fn obey(&mut self, command: Command<D::Suite>, now: Instant) {
        match command {
            Command::Switchover { group, reply } => {
                let answer = self.cores.redundancy.command_switchover(group, now);
                let _ = reply.try_send(answer);
            }
            Command::TakeRole { group, role, reply } => {
                let redundancy = &mut self.cores.redundancy;
                let answer = match redundancy.role(group) == Some(role) {
                    true => Ok(()),
                    false => redundancy.command_switchover(group, now),
                };
                let wanted = answer == Err(SwitchoverRefused::InProgress);
                let _ = reply.try_send(if wanted { Ok(()) } else { answer });
            }
            Command::Resume {
                application,
                from,
                reply,
            } => {
                let _ = reply.try_send(self.resume_program(application, from));
            }
            Command::SetKeys {
                with,
                keys,
                way,
                reply,
            } => {
                for port in self.ports.iter_mut().flatten() {
                    port.set_keys(with, &keys, way, now);
                }
                let _ = reply.try_send(keys);
            }
            Command::SetLimits { peer, limits } => self.take_limits(peer, limits, now),
            Command::Change { mut order, reply } => {
                // What has happened until here is of those who are there until here.
                self.drain_events(now);
                let result = self.change(&mut order, now);
                let _ = reply.try_send(ChangeAnswer { order, result });
            }
        }
    }

    fn next_deadline(&mut self, now: Instant) -> Instant {
        let cores = &self.cores;
        self.redundancy_due = cores.redundancy.poll_timeout();
        let sender = cores.sender.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
        let receiver = cores.receiver.poll_timeout();
        sender
            .min(receiver.unwrap_or(Instant::FAR_FUTURE))
            .min(self.redundancy_due)
            .min(now + SNAPSHOT_INTERVAL)
    }

    /// Tells when this thread went on later than `due`, whatever ended its wait.
    fn note_stall(&mut self, due: Instant, now: Instant) {
        let length = now.since(due);
        if length > STALL {
            self.tell_stall(length, now);
        }
    }

    #[cold]
    fn tell_stall(&mut self, length: Duration, now: Instant) {
        self.stalls.count += 1;
        self.stalls.longest = self.stalls.longest.max(length);
        self.stalls.ended_at = now;
        for group in &mut self.groups {
            group.void_comparisons(now);
        }
        self.surroundings
            .sink
            .record(now, NodeEvent::Stall { length });
    }

    /// Publishes to executors and status what the core says of each group at the end of a turn. A change of role was
    /// published when it happened, and what this node holds was told to the core by it.
    fn publish(&mut self, now: Instant) {
        for group in &mut self.groups {
            group.publish(&self.cores.redundancy, now);
        }
        self.await_partner();
    }

    /// Refreshes the status if it is time; returns the period of an application that hangs.
    fn refresh_now_and_then(&mut self, now: Instant) -> Option<Duration> {
        if now.since(self.refreshed) < SNAPSHOT_INTERVAL {
            return None;
        }
        self.refresh(now)
    }
}
