//! The executors' threads: when they go on, and what they need then.

use bumpless_controller::executor::{Answer, Need, Resumed};
use bumpless_controller::{FieldError, FieldErrorKind};

use super::World;
use crate::application::{App, AppEvent, Waiting};
use crate::check::Published;
use crate::device::Ask;
use crate::queue::What;
use crate::trace::Happening;

impl World {
    /// Has the thread go on at `at`, unless it does sooner anyway.
    pub(super) fn plan_application(&mut self, node: usize, app: usize, at: u64) {
        let now = self.queue.now();
        let host = &mut self.hosts[node];
        let at = at.max(host.paused_until).max(now);
        let Some(process) = host.process.as_mut() else {
            return;
        };
        let Some(thread) = process.app(app) else {
            return;
        };
        let at = at.max(thread.busy_until);
        if at < thread.run_at {
            thread.run_at = at;
            host.serials = host.serials.wrapping_add(1);
            let serial = host.serials;
            thread.serial = serial;
            self.queue.push(
                at,
                What::Application {
                    node: node as u8,
                    app: app as u16,
                    serial,
                },
            );
        }
    }

    /// Schedules the threads whose waits a turn of the data plane may have ended.
    pub(super) fn stir_applications(&mut self, node: usize) {
        let now = self.queue.now();
        let mut next = 0;
        while let Some(process) = self.hosts[node].process.as_mut() {
            let mut apps = process.apps.iter_mut().skip(next);
            let stirred = apps.position(|app| app.as_mut().is_some_and(App::is_stirred));
            let Some(app) = stirred.map(|ahead| next + ahead) else {
                return;
            };
            let latency = self.hosts[node].latency();
            self.plan_application(node, app, now + latency);
            next = app + 1;
        }
    }

    pub(super) fn application_is_due(&mut self, node: usize, app: usize, serial: u32) {
        let now = self.queue.now();
        let (free_at, taken) = (self.free_at(node), self.taken(node));
        let host = &mut self.hosts[node];
        let Some(process) = host.process.as_mut() else {
            return;
        };
        let Some(thread) = process.apps.get_mut(app).and_then(Option::as_mut) else {
            return;
        };
        if thread.serial != serial {
            return;
        }
        thread.run_at = u64::MAX;
        if host.paused_until > now {
            return self.plan_application(node, app, now);
        }
        if free_at > now {
            return self.plan_application(node, app, free_at);
        }
        // What reception took of the processor meanwhile is missing from the execution.
        if let Some(before) = thread.executes_since.take()
            && taken > before
        {
            thread.executes_since = Some(taken);
            return self.plan_application(node, app, now + taken - before);
        }
        let local = host.clock.local(now);
        host.environment.now.set(local);
        let answer = match &thread.waiting {
            Waiting::Nothing => None,
            Waiting::Request { need, until, .. } if local >= *until => {
                Some(failed(need, FieldErrorKind::Timeout))
            }
            Waiting::Request { .. } => return self.wait(node, app),
            Waiting::For(..) => match thread.answer(local) {
                Some(answer) => Some(answer),
                None => return self.wait(node, app),
            },
        };
        self.go_on(node, app, answer);
    }

    /// Goes on with `answer`, if one was awaited, until the thread waits again.
    pub(super) fn go_on(&mut self, node: usize, app: usize, answer: Option<Answer>) {
        let now = self.queue.now();
        let taken = self.taken(node);
        let host = &mut self.hosts[node];
        let local = host.clock.local(now);
        host.environment.now.set(local);
        let Some(process) = host.process.as_mut() else {
            return;
        };
        let Some(thread) = process.apps.get_mut(app).and_then(Option::as_mut) else {
            return;
        };
        thread.waiting = Waiting::Nothing;
        if let Some(answer) = answer {
            let executes = matches!(answer, Answer::Read(_)) && thread.slow > 0;
            thread.machine.answer(answer, local);
            if executes {
                let takes = match thread.jumps {
                    true => host.random.below(thread.slow + 1),
                    false => thread.slow,
                };
                // What it waited for has come: when it would have given up does not count any more.
                thread.run_at = u64::MAX;
                thread.busy_until = now.saturating_add(takes);
                thread.executes_since = Some(taken);
                return self.plan_application(node, app, now);
            }
        }
        let need = thread.machine.poll(local);
        thread.save(&mut host.disk, (now, local));
        self.meet(node, app, need);
        self.take_events(node, app);
        if self.hosts[node].environment.woken.replace(false) {
            self.wake(node);
        }
    }

    fn meet(&mut self, node: usize, app: usize, need: Need) {
        let now = self.queue.now();
        let Some(process) = self.hosts[node].process.as_mut() else {
            return;
        };
        let Some(thread) = process.app(app) else {
            return;
        };
        // Its cycle says so when it ends; its output comes before.
        if let Some(with) = thread.machine.take_resumed() {
            if with == Resumed::ColdStart {
                let with_state = !thread.began_cold();
                self.checks.cold_start(thread.index, with_state, now);
            }
            if matches!(with, Resumed::Restored { .. }) {
                self.checks.restored(thread.index);
            }
            self.checks.begins(thread.index, node, with, now);
        }
        let (ask, until) = match need {
            Need::Sleep { until } | Need::Settle { until, .. } => {
                thread.waiting = Waiting::For(need, until);
                return self.wait(node, app);
            }
            Need::Simplex { until } => {
                thread.machine.gate().ask_simplex();
                thread.waiting = Waiting::For(need, until);
                return self.wait(node, app);
            }
            Need::Read { until } | Need::KeepWarm { until } => (Ask::Read, until),
            Need::Write { stamp, until } => (Ask::Write(stamp), until),
        };
        let application = thread.index;
        let request = self.ask(node, app, application, ask);
        let process = self.hosts[node].process.as_mut();
        if let Some(thread) = process.and_then(|process| process.app(app)) {
            thread.waiting = Waiting::Request {
                request,
                need,
                until,
            };
        }
        self.wait(node, app);
    }

    /// Schedules the end of the present wait, or at once what has ended it already.
    fn wait(&mut self, node: usize, app: usize) {
        let now = self.queue.now();
        let host = &mut self.hosts[node];
        let latency = host.latency();
        let Some(process) = host.process.as_mut() else {
            return;
        };
        let Some(thread) = process.apps.get_mut(app).and_then(Option::as_mut) else {
            return;
        };
        let until = match &thread.waiting {
            Waiting::Nothing => return,
            Waiting::For(_, until) | Waiting::Request { until, .. } => *until,
        };
        let at = if thread.is_stirred() {
            now
        } else {
            host.clock.true_time(until).max(now)
        };
        self.plan_application(node, app, at.saturating_add(latency));
        if self.hosts[node].environment.woken.replace(false) {
            self.wake(node);
        }
    }

    fn take_events(&mut self, node: usize, app: usize) {
        let now = self.queue.now();
        let host = &mut self.hosts[node];
        let incarnation = host.incarnation;
        let Some(process) = host.process.as_mut() else {
            return;
        };
        let Some(thread) = process.app(app) else {
            return;
        };
        let application = thread.index;
        let (checks, trace) = (&mut self.checks, &mut self.trace);
        thread.take_events(|event| match event {
            AppEvent::Published {
                epoch,
                cycle,
                digest,
                state,
            } => {
                let published = Published {
                    application,
                    node,
                    incarnation,
                    epoch,
                    cycle,
                    digest,
                    at: now,
                };
                checks.published(published, state);
                trace.tell(
                    now,
                    Happening::Published {
                        node,
                        application,
                        cycle,
                        digest,
                    },
                );
            }
            AppEvent::Resumed(with) => {
                trace.tell(
                    now,
                    Happening::Resumed {
                        node,
                        application,
                        with,
                    },
                );
            }
        });
    }
}

/// The failed answer to `need`.
pub(super) fn failed(need: &Need, kind: FieldErrorKind) -> Answer {
    let error = FieldError {
        kind,
        place: "simulated".into(),
    };
    match need {
        Need::Write { .. } => Answer::Written(Err(error)),
        Need::KeepWarm { .. } => Answer::Warm(Err(error)),
        _ => Answer::Read(Err(error)),
    }
}
