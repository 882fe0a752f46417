//! Changing the configuration while the pair runs: the shipped order of steps, each an event of its own,
//! so that everything can go wrong between two of them.

use std::sync::mpsc::{TryRecvError, sync_channel};

use bumpless_base::Counters;
use bumpless_config::{Application, Config};
use bumpless_node::change::{Newcomer, Step};
use bumpless_node::data_plane::Command;
use bumpless_node::program::executor_settings;
use bumpless_transfer::ChannelPlace;

use super::World;
use crate::application::App;
use crate::failing::{Fallible, build};
use crate::host::position;
use crate::queue::What;
use crate::variants::{Everybody, LAST, variant};

/// A step is taken at most so long after the one before.
const STEP: u64 = 2_000_000;
/// Who waits for an executor to end its cycle looks again after this.
const LOOK_AGAIN: u64 = 300_000;
/// After the change is made, an application that came has begun.
const BEGINS_WITHIN: u64 = 500_000_000;

/// The configurations between which `everybody` changes; with no guests, only the one.
pub(super) fn variants(everybody: &Everybody) -> Vec<Config> {
    let last = if everybody.guests > 0 { LAST } else { 0 };
    (0..=last)
        .map(|number| variant(&everybody.config, everybody.stay, number))
        .collect()
}

impl World {
    /// Somebody asks `node` to change, or to give up what it has prepared.
    pub(super) fn apply(&mut self, node: usize, number: usize) {
        let local = self.hosts[node].clock.local(self.now());
        let Some(next) = self.variants.get(number).cloned() else {
            return;
        };
        let Some(process) = self.hosts[node].process.as_mut() else {
            return;
        };
        let change = &mut process.change;
        // Whether it is refused is not for the world to judge.
        if change.changer.doing().is_some() {
            let _ = change.changer.withdraw();
        } else if change.changer.apply((next, "", ""), local).is_ok() {
            change.number = number;
        }
        self.stir_change(node);
    }

    /// A process has started with something beside its configuration.
    pub(super) fn resume_change(&mut self, node: usize) {
        let local = self.hosts[node].clock.local(self.now());
        let Some(number) = self.disks[node].next else {
            return;
        };
        let next = self.variants[number].clone();
        let Some(process) = self.hosts[node].process.as_mut() else {
            return;
        };
        if process.change.changer.resume((next, "", ""), local).is_ok() {
            process.change.number = number;
        } else {
            self.disks[node].next = None;
        }
        self.stir_change(node);
    }

    /// The process of `node` dies after so many further steps.
    pub(super) fn arm(&mut self, node: usize, steps: u32) {
        if let Some(process) = self.hosts[node].process.as_mut() {
            process.change.dies_after = Some(steps);
        }
    }

    /// The fault is over: a process that has died of it starts again.
    pub(super) fn disarm(&mut self, node: usize) {
        if let Some(process) = self.hosts[node].process.as_mut() {
            process.change.dies_after = None;
        } else if !self.is_held_down(node) {
            self.restart(node);
        }
    }

    /// Has the change go on, if there is one, after something may have happened to it.
    pub(super) fn stir_change(&mut self, node: usize) {
        let now = self.now();
        let Some(process) = self.hosts[node].process.as_ref() else {
            return;
        };
        if process.change.changer.doing().is_some() && process.change.runs_at > now + STEP {
            let at = now + self.delays.below(STEP);
            self.plan_change(node, at);
        }
    }

    fn plan_change(&mut self, node: usize, at: u64) {
        let host = &mut self.hosts[node];
        let incarnation = host.incarnation;
        let Some(process) = host.process.as_mut() else {
            return;
        };
        if at < process.change.runs_at {
            process.change.runs_at = at;
            let node = node as u8;
            self.queue.push(at, What::Change { node, incarnation });
        }
    }

    pub(super) fn change_is_due(&mut self, node: usize, incarnation: u32) {
        let now = self.now();
        let host = &mut self.hosts[node];
        if host.incarnation != incarnation {
            return;
        }
        let local = host.clock.local(now);
        let paused_until = host.paused_until;
        let Some(process) = host.process.as_mut() else {
            return;
        };
        if process.change.runs_at > now {
            return;
        }
        process.change.runs_at = u64::MAX;
        if paused_until > now {
            return self.plan_change(node, paused_until);
        }
        if !self.take_answer(node, local) {
            // The data plane's next turn comes back to it.
            return;
        }
        let Some(process) = self.hosts[node].process.as_mut() else {
            return;
        };
        let change = &mut process.change;
        let step = match change.pending.take() {
            Some(step) => Some(step),
            None => change.changer.poll(&change.board, local),
        };
        let Some(step) = step else {
            let due = change.changer.wakes_at();
            if due > local && change.changer.doing().is_some() {
                let at = self.hosts[node].clock.true_time(due);
                self.plan_change(node, at.max(now + STEP));
            }
            return;
        };
        if self.take_step(node, step) && self.dies_now(node) {
            return self.kill(node);
        }
        let at = now + self.delays.below(STEP);
        self.plan_change(node, at.max(now + LOOK_AGAIN));
    }

    fn dies_now(&mut self, node: usize) -> bool {
        let process = self.hosts[node].process.as_mut();
        let left = process.and_then(|process| process.change.dies_after.as_mut());
        match left {
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        }
    }

    /// Returns whether no answer is awaited any more.
    pub(super) fn take_answer(&mut self, node: usize, local: bumpless_base::Instant) -> bool {
        let Some(process) = self.hosts[node].process.as_mut() else {
            return false;
        };
        let Some(awaited) = &process.change.answer else {
            return true;
        };
        match awaited.try_recv() {
            Ok(answer) => {
                process.change.answer = None;
                process.change.changer.answered(answer, local);
                process.change.follow(&self.config);
                process.follow_places();
                self.show_readers(node);
                self.expect_outputs();
                true
            }
            Err(TryRecvError::Empty) => false,
            Err(TryRecvError::Disconnected) => unreachable!("the data plane answers"),
        }
    }

    /// Returns whether it was taken.
    fn take_step(&mut self, node: usize, step: Step) -> bool {
        let local = self.hosts[node].clock.local(self.now());
        let Some(process) = self.hosts[node].process.as_mut() else {
            return false;
        };
        let change = &mut process.change;
        match step {
            Step::Keep(_) => {
                self.disks[node].next = Some(change.number);
                change.changer.kept(Ok(()));
            }
            Step::MakeLast => {
                change.changer.made(Ok(()), local);
                self.make_last(node);
            }
            Step::Forget => self.disks[node].next = None,
            Step::Order(order) => {
                let (reply, answer) = sync_channel(1);
                change.answer = Some(answer);
                let order = Command::Change { order, reply };
                assert!(process.orders.push(order).is_ok(), "orders find room");
                self.wake(node);
            }
            Step::Stop(place) => {
                let ended = process
                    .app(place.0)
                    .is_none_or(|app| app.machine.is_between_cycles());
                if !ended {
                    process.change.pending = Some(Step::Stop(place));
                    return false;
                }
                process.apps[place.0] = None;
                process.change.changer.stopped();
                self.show_readers(node);
            }
            Step::Tune(place, settings) => return self.tune(node, vec![(place, *settings)], true),
            Step::TuneTogether { all, last } => return self.tune(node, all, last),
            Step::Start(newcomer) => self.begin(node, *newcomer),
            Step::Free(leavers) => drop(leavers),
            Step::Tell(_) => {}
        }
        true
    }

    /// Has these go on with their settings, all or none; returns whether that is decided: not as long as one of them is in a cycle, or
    /// one of several has a state on its way.
    fn tune(&mut self, node: usize, all: Vec<(ChannelPlace, Application)>, last: bool) -> bool {
        let local = self.hosts[node].clock.local(self.now());
        let Some(process) = self.hosts[node].process.as_mut() else {
            return false;
        };
        let several = all.len() > 1;
        let is_ready = |app: &mut App| {
            let settled = !several || app.is_settled();
            settled && app.machine.is_between_cycles()
        };
        let ready = |(place, _): &(ChannelPlace, _)| process.app(place.0).is_none_or(is_ready);
        if !all.iter().all(ready) {
            process.change.pending = Some(Step::TuneTogether { all, last });
            return false;
        }
        let mut next = Vec::new();
        let mut result = Ok(());
        for (place, settings) in all {
            let Some(app) = process.app(place.0) else {
                continue;
            };
            let mut application = Box::new(Fallible {
                inner: build(&settings).expect("what the world runs was built before"),
                failing: app.failing.clone(),
            });
            let taken = app.machine.hand_state_to(&mut *application);
            result = result.and(taken.map_err(|error| error.to_string()));
            next.push((place, settings, application));
        }
        if result.is_ok() {
            for (place, settings, application) in next {
                if let Some(app) = process.app(place.0) {
                    let executor = executor_settings(&settings, bumpless_base::NodeId(node as u8));
                    app.machine.exchange(executor, application);
                    let channel = &mut app.machine.replication().inner;
                    let life = (settings.expiry, settings.hot_restart);
                    result = result.and(channel.set_times(settings.deadline, life));
                }
            }
        }
        process.change.changer.tuned(result, local);
        true
    }

    /// Tells the checkers whose states somebody reads.
    pub(super) fn show_readers(&mut self, node: usize) {
        let Some(process) = self.hosts[node].process.as_ref() else {
            return;
        };
        for application in 0..self.config.applications.len() {
            let mut runs = process.apps.iter().flatten();
            let reads = runs.any(|app| app.index == application);
            self.checks.reads(node, application, reads);
        }
    }

    fn make_last(&mut self, node: usize) {
        let now = self.now();
        let disk = &mut self.disks[node];
        self.changes += 1;
        if let Some(next) = disk.next.take() {
            disk.current = next;
        }
        self.checks.made_last(&self.disks, now);
    }

    fn begin(&mut self, node: usize, newcomer: Newcomer) {
        let now = self.now();
        let host = &mut self.hosts[node];
        host.environment.now.set(host.clock.local(now));
        let Some(process) = host.process.as_mut() else {
            return;
        };
        let Newcomer {
            place,
            settings,
            shared,
            ends,
        } = newcomer;
        let Some(index) = position(&self.config, &settings.name) else {
            return;
        };
        let channel = settings.channel.get();
        let sink = process
            .change
            .registry
            .register(shared.application, &settings.name, channel);
        let ours = (index, &settings);
        let mut app = App::new(
            ours,
            shared,
            ends,
            sink,
            (&host.environment, None, None),
            node,
        );
        app.machine.comes_late();
        // What came before it began is not looked at.
        if let Some(channel) = process.plane.channels().get(place).and_then(Option::as_ref) {
            app.received_at = channel.snapshot.received_at;
            app.received_cycle = channel.snapshot.received_cycle;
        }
        if process.apps.len() <= place.0 {
            process.apps.resize_with(place.0 + 1, || None);
        }
        process.apps[place.0] = Some(app);
        self.show_readers(node);
        self.plan_application(node, place.0, now);
    }

    /// Outputs are expected of the applications of which a configuration is in force on both nodes, from a
    /// while after; in the longer of their periods where these differ for a moment.
    pub(super) fn expect_outputs(&mut self) {
        let now = self.now();
        for (index, application) in self.config.applications.iter().enumerate() {
            let periods = self.disks.iter().map(|disk| {
                let config = &self.variants[disk.current];
                let place = position(config, &application.name)?;
                Some(config.applications[place].period.as_nanos())
            });
            let period = periods.collect::<Option<Vec<_>>>();
            let longest = period.and_then(|periods| periods.into_iter().max());
            self.checks
                .expect_outputs(index, longest, now + BEGINS_WITHIN);
        }
    }

    /// What the processes have counted.
    pub fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        for process in self.hosts.iter().filter_map(|host| host.process.as_ref()) {
            let cores = process.plane.cores();
            counters.merge(&cores.counters);
            counters.merge(cores.redundancy.counters());
            counters.merge(cores.sender.counters());
            counters.merge(cores.receiver.counters());
            for app in process.apps.iter().flatten() {
                counters.merge(app.machine.counters());
            }
        }
        counters
    }

    /// Whether nodes run with one configuration, with nothing left to do; else what they have.
    pub(super) fn wrong_with_configurations(&self) -> Option<String> {
        let disks = self.disks.windows(2);
        let apart = disks
            .filter(|pair| pair[0].current != pair[1].current)
            .count();
        (apart > 0).then(|| format!("the nodes have different configurations: {:?}", self.disks))
    }
}
