//! Taking the steps of a change in a daemon: a thread that may block, beside the data plane.

mod fitness;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use bumpless_net_linux::Clock;

use self::fitness::read;
use super::changer::Changer;
use super::job::Step;
use super::prepared::Newcomer;
use super::request::ChangeRequest;
use super::store::Store;
use super::tools::Tools;
use super::unmade::{Attempt, Unmade};
use crate::data_plane::Command;
use crate::data_plane::change::{ChangeAnswer, ChangeOrder};
use crate::event::NodeEvent;
use crate::running::Running;
use crate::short_text::ShortText;

/// The thread looks at least so often whether it is to end.
const LOOK: Duration = Duration::from_millis(200);

/// The thread while it runs. Dropped, it ends, and with it the applications' threads.
pub struct RunningChanges {
    entrance: (Sender<ChangeRequest>, Thread),
    stop: Arc<AtomicBool>,
    handle: Option<JoinHandle<Running>>,
}

impl RunningChanges {
    /// Takes the steps of `changer` as it is asked to, and goes on with what an earlier process has prepared:
    /// from here on status shows it.
    ///
    /// # Errors
    /// What the system says.
    pub fn start(changer: Changer, tools: Tools) -> io::Result<Self> {
        let (requests, asked) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let inside = ChangeThread::new(changer, tools, asked, Arc::clone(&stop));
        let thread = thread::Builder::new()
            .name("change".into())
            .spawn(move || inside.run())?;
        Ok(Self {
            entrance: (requests, thread.thread().clone()),
            stop,
            handle: Some(thread),
        })
    }

    /// Where it is asked, and who is to be unparked then.
    pub fn entrance(&self) -> (Sender<ChangeRequest>, Thread) {
        self.entrance.clone()
    }
}

impl Drop for RunningChanges {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.entrance.1.unpark();
        // The applications' threads end as they are dropped; a thread that panics ends the process.
        drop(self.handle.take().map(JoinHandle::join));
    }
}

/// The thread's inside.
struct ChangeThread {
    changer: Changer,
    tools: Tools,
    /// Ends the thread, which is to be unparked.
    stop: Arc<AtomicBool>,
    requests: Receiver<ChangeRequest>,
    asked: Option<SyncSender<Result<(), String>>>,
    /// Weaknesses of the configuration in force, all of which were told.
    weaknesses: Vec<String>,
    /// Applications that are to go on with other settings and do not yet.
    unmade: Unmade,
    /// The data plane's answers. One way for all, so that no end of it is the last to go on the data plane,
    /// which would free it.
    answers: (SyncSender<ChangeAnswer>, Receiver<ChangeAnswer>),
}

impl ChangeThread {
    fn new(
        changer: Changer,
        tools: Tools,
        requests: Receiver<ChangeRequest>,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let mut thread = Self {
            changer,
            tools,
            stop,
            requests,
            asked: None,
            weaknesses: Vec::new(),
            unmade: Unmade::default(),
            answers: sync_channel(1),
        };
        thread.tell_weaknesses();
        thread.resume();
        thread.show();
        thread
    }

    /// Runs until it is told to stop; gives the applications' threads back.
    fn run(mut self) -> Running {
        self.tools.board.register();
        while !self.stop.load(Ordering::Acquire) && self.turn() {
            let due = self.changer.wakes_at().since(Clock.now());
            thread::park_timeout(due.to_std().min(LOOK));
        }
        self.tools.running
    }

    fn resume(&mut self) {
        let Some(store) = &self.tools.store else {
            return;
        };
        let file = store.file().display().to_string();
        let found = match store.next() {
            Ok(None) => return,
            Ok(Some(text)) => read(&text, &file)
                .and_then(|next| self.fit(next, &file))
                .and_then(|next| self.changer.resume((next, &text, &file), Clock.now())),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = found {
            // It is in force already, or nobody can ever change to it.
            let _ = store.forget();
            self.tell(&format!(
                "what was prepared before the start was given up: {error}"
            ));
        }
    }

    fn turn(&mut self) -> bool {
        loop {
            match self.requests.try_recv() {
                Ok(request) => self.take(request),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
        while let Some(step) = self.changer.poll(&self.tools.board, Clock.now()) {
            if !self.take_step(step) {
                return false;
            }
            self.show();
        }
        self.tune_again();
        self.show();
        true
    }

    fn take(&mut self, request: ChangeRequest) {
        let (reply, result) = match request {
            ChangeRequest::Apply {
                text,
                file,
                carried,
                reply,
            } => {
                let next = read(&text, &file);
                let known = next.as_ref().is_ok_and(|next| self.changer.has(next));
                if carried && known {
                    let _ = reply.try_send(Ok(()));
                    return;
                }
                let result = match self.tools.store {
                    Some(_) => next
                        .and_then(|next| self.fit(next, &file))
                        .and_then(|next| self.changer.apply((next, &text, &file), Clock.now())),
                    None => Err("the node was started without a file to replace".into()),
                };
                (reply, result)
            }
            ChangeRequest::Withdraw { reply } => (reply, self.changer.withdraw()),
        };
        match result {
            Ok(()) => self.asked = Some(reply),
            Err(error) => {
                let _ = reply.try_send(Err(error));
            }
        }
    }

    fn show(&mut self) {
        if let Some(verdict) = self.changer.take_verdict()
            && let Some(reply) = self.asked.take()
        {
            let _ = reply.try_send(verdict);
        }
        let directory = self.tools.directory.lock();
        let followed = directory.is_ok_and(|mut directory| {
            directory.change = self.changer.doing();
            let (config, admission, places) = self.changer.in_force();
            directory.follow((config, admission), places.slots())
        });
        if followed {
            self.tell_weaknesses();
        }
    }

    /// Tells what weakens the configuration in force and did not weaken the one before.
    fn tell_weaknesses(&mut self) {
        let Ok(directory) = self.tools.directory.lock() else {
            return;
        };
        let weaknesses = directory.weaknesses();
        drop(directory);
        for text in &weaknesses {
            if !self.weaknesses.contains(text) {
                self.tools.registry.tell_weakness(Clock.now(), text.clone());
            }
        }
        self.weaknesses = weaknesses;
    }

    fn tell(&mut self, words: &str) {
        let notice = NodeEvent::Notice {
            name: "configuration",
            group: None,
            application: None,
            cause: ShortText::of(words),
        };
        self.tools.sink.record(Clock.now(), notice);
    }

    /// Returns whether the node goes on.
    fn take_step(&mut self, step: Step) -> bool {
        match step {
            Step::Keep(text) => {
                let kept = self.store().and_then(|store| store.keep(&text));
                self.changer.kept(kept);
            }
            Step::MakeLast => {
                let next = self.changer.next().unwrap_or_default();
                let made = self.store().and_then(|store| store.make_last(next));
                self.changer.made(made, Clock.now());
            }
            Step::Forget => {
                if let Err(error) = self.store().and_then(Store::forget) {
                    self.tell(&error);
                }
            }
            Step::Order(order) => {
                let Some(answer) = self.order(order) else {
                    return false;
                };
                self.changer.answered(answer, Clock.now());
            }
            Step::Stop(place) => {
                self.unmade.forget(place);
                self.tools.running.stop(place);
                self.changer.stopped();
            }
            Step::Tune(place, settings) => {
                let tuned = self.tune(Attempt::first(vec![(place, *settings)]), true);
                self.changer.tuned(tuned, Clock.now());
            }
            Step::TuneTogether { all, last } => {
                let tuned = self.tune(Attempt::first(all), last);
                self.changer.tuned(tuned, Clock.now());
            }
            Step::Start(newcomer) => self.start_newcomer(*newcomer),
            Step::Free(leavers) => drop(leavers),
            Step::Tell(words) => self.tell(&words),
        }
        true
    }

    /// Where they do not change and it was the `last` attempt that the change makes, status says so, and it is tried again.
    fn tune(&mut self, attempt: Attempt, last: bool) -> Result<(), String> {
        let running = &mut self.tools.running;
        let tuned = match &attempt.all[..] {
            [(place, settings)] if last => running.tune(*place, settings),
            all => running.tune_together(all),
        };
        self.unmade.conclude(attempt, &tuned, last, Clock.now());
        if let Ok(mut directory) = self.tools.directory.lock() {
            directory.unmade = self.unmade.told();
        }
        tuned
    }

    /// Those that are due first.
    fn tune_again(&mut self) {
        let Some(attempt) = self.unmade.take_due(Clock.now()) else {
            return;
        };
        let names = attempt.all.iter().map(|it| format!("'{}'", it.1.name));
        let names = names.collect::<Vec<_>>().join(", ");
        let go_on = if attempt.all.len() == 1 {
            "goes on"
        } else {
            "go on"
        };
        if self.tune(attempt, true).is_ok() {
            self.tell(&format!("{names} {go_on} as the configuration says"));
        }
    }

    fn store(&self) -> Result<&Store, String> {
        self.tools
            .store
            .as_ref()
            .ok_or_else(|| "the node has no file".to_owned())
    }

    fn start_newcomer(&mut self, newcomer: Newcomer) {
        let (place, settings) = (newcomer.place, &newcomer.settings);
        let (name, channel) = (&settings.name, settings.channel.get());
        let sink = self
            .tools
            .registry
            .register(newcomer.shared.application, name, channel);
        let mailbox = Arc::clone(&newcomer.shared.mailbox);
        let (shared, ends) = (newcomer.shared, newcomer.ends);
        let running = &mut self.tools.running;
        let started = running.start(place, (settings, true), shared, ends, sink);
        if let Err(error) = started {
            mailbox.set_fit(false);
            self.tell(&format!("'{name}' does not run: {error}"));
        }
    }

    /// `None`: the data plane has ended.
    fn order(&mut self, order: ChangeOrder) -> Option<ChangeAnswer> {
        let (reply, answers) = &self.answers;
        let reply = reply.clone();
        let mut command = Command::Change { order, reply };
        // However long it takes: a node that was frozen goes on with the change when it is not any more.
        while !self.stop.load(Ordering::Acquire) {
            let pushed = self.tools.orders.lock().ok()?.push(command);
            self.tools.waker.wake();
            let Err(rtrb::PushError::Full(back)) = pushed else {
                return self.await_answer(answers);
            };
            command = back;
            thread::sleep(Duration::from_millis(1));
        }
        None
    }

    fn await_answer(&self, answers: &Receiver<ChangeAnswer>) -> Option<ChangeAnswer> {
        loop {
            match answers.recv_timeout(LOOK) {
                Ok(answer) => return Some(answer),
                Err(_) if self.stop.load(Ordering::Acquire) => return None,
                Err(_) => {}
            }
        }
    }
}
