//! The event log: JSON lines of the schema `bumpless.event/1` (spec/events.md), written by a thread
//! of its own so that a slow disk never holds up the data plane.

mod line;
mod output;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use bumpless_base::{Instant, TableIndex};
use bumpless_mailbox::{Entrance, Recorder, Records, Ring};
use bumpless_net_linux::Clock;

use self::line::weakness;
pub use self::line::{Names, render, role_name};
pub use self::output::{LogHealth, LogOutput, OutputState};
use crate::event::NodeEvent;
use crate::membership::ApplicationNumber;

const RING_CAPACITY: usize = 4096;
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);

/// One thread's way into the log. Recording never blocks and never allocates; what does not fit is
/// counted and the count is logged.
#[derive(Debug)]
pub struct EventSink(Recorder<(Instant, NodeEvent)>);

impl EventSink {
    /// Records `event` as of `now`.
    pub fn record(&mut self, now: Instant, event: NodeEvent) {
        self.0.record((now, event));
    }
}

/// How lines of the log look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// `bumpless.event/1`.
    Json,
    /// For people: time of day aside, what happened in a line of words.
    Plain,
}

/// The log's thread and the rings into it.
#[derive(Debug)]
pub struct EventLog {
    names: Names,
    records: Records<(Instant, NodeEvent)>,
    messages: (Sender<Message>, Receiver<Message>),
    health: LogHealth,
}

/// What comes to the log on another way than its rings, from threads that may take memory.
#[derive(Debug)]
enum Message {
    Newcomer(Newcomer),
    /// Too long for an event.
    Weakness(Instant, String),
}

/// An application that comes while the log is written.
#[derive(Debug)]
struct Newcomer {
    application: ApplicationNumber,
    name: String,
    channel: u16,
    ring: Ring<(Instant, NodeEvent)>,
}

/// The way to the log for applications that come while it is written, and for weaknesses.
#[derive(Clone, Debug)]
pub struct LogRegistry {
    entrance: Entrance,
    messages: Sender<Message>,
}

impl LogRegistry {
    /// Has the log know `application` by this name and channel; returns its way in.
    pub fn register(&self, application: ApplicationNumber, name: &str, channel: u16) -> EventSink {
        let (recorder, ring) = self.entrance.recorder(RING_CAPACITY);
        // The log ends last; should it have ended, nobody reads what is recorded.
        let _ = self.messages.send(Message::Newcomer(Newcomer {
            application,
            name: name.to_owned(),
            channel,
            ring,
        }));
        self.entrance.announce();
        EventSink(recorder)
    }

    /// Has the log tell that this weakens the node, from `now` on.
    pub fn tell_weakness(&self, now: Instant, text: String) {
        let _ = self.messages.send(Message::Weakness(now, text));
        self.entrance.announce();
    }
}

/// The running log; ends with a last drain when dropped.
#[derive(Debug)]
pub struct RunningLog {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl EventLog {
    /// A log that resolves positions with `names`.
    pub fn new(names: Names) -> Self {
        Self {
            names,
            records: Records::default(),
            messages: mpsc::channel(),
            health: LogHealth::default(),
        }
    }

    /// The way to it for applications that come later.
    pub fn registry(&self) -> LogRegistry {
        LogRegistry {
            entrance: self.records.entrance(),
            messages: self.messages.0.clone(),
        }
    }

    /// How its outputs do, once it has started.
    pub fn health(&self) -> LogHealth {
        Arc::clone(&self.health)
    }

    /// Admits newcomers; returns the next weakness that is to be told.
    fn take_messages(&mut self) -> Option<(Instant, String)> {
        while let Ok(message) = self.messages.1.try_recv() {
            match message {
                Message::Newcomer(newcomer) => self.admit(newcomer),
                Message::Weakness(at, text) => return Some((at, text)),
            }
        }
        None
    }

    fn admit(&mut self, newcomer: Newcomer) {
        let at = newcomer.application.index();
        let known = &mut self.names.applications;
        known.resize(known.len().max(at + 1), Default::default());
        known[at] = (newcomer.name, newcomer.channel);
        self.records.forget_gone();
        self.records.admit(newcomer.ring);
    }

    /// A way into the log for one more thread.
    pub fn sink(&mut self) -> EventSink {
        EventSink(self.records.recorder(RING_CAPACITY))
    }

    /// Whether [`drain`](Self::drain) may hand on something.
    pub fn has_news(&self) -> bool {
        self.records.has_news()
    }

    /// Hands on what was recorded so far, one thread's after the other's; weaknesses are not told.
    pub fn drain(&mut self, mut each: impl FnMut(&Names, Instant, &NodeEvent)) {
        while self.take_messages().is_some() {}
        let Self { names, records, .. } = self;
        records.drain(|(at, event)| each(names, at, &event));
    }

    /// Starts writing to `outputs`.
    pub fn start(self, outputs: Vec<LogOutput>) -> io::Result<RunningLog> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("log".into())
            .spawn(move || self.run(outputs, &stopping))?;
        Ok(RunningLog {
            stop,
            thread: Some(thread),
        })
    }

    /// Writes everything; where one output begins to fail, the others tell.
    fn flush(&self, outputs: &mut [LogOutput], lost: u64) {
        for at in 0..outputs.len() {
            if !outputs[at].flush(lost, &self.names.node) {
                continue;
            }
            let Some(text) = outputs[at].state().weakness() else {
                continue;
            };
            let line = weakness(&self.names, Clock.now(), &text);
            let others = outputs.iter_mut().enumerate();
            others
                .filter(|&(other, _)| other != at)
                .for_each(|(_, output)| output.write(&line));
        }
    }

    fn run(mut self, mut outputs: Vec<LogOutput>, stop: &AtomicBool) {
        let mut reported = 0;
        loop {
            let last = stop.load(Ordering::Acquire);
            while let Some((at, text)) = self.take_messages() {
                let line = weakness(&self.names, at, &text);
                outputs.iter_mut().for_each(|output| output.write(&line));
            }
            self.drain(|names, at, event| {
                let line = render(names, at, event);
                outputs.iter_mut().for_each(|output| output.write(&line));
            });
            let lost = self.records.lost();
            self.flush(&mut outputs, lost - reported);
            reported = lost;
            show(&outputs, &self.health);
            if last {
                return;
            }
            thread::park_timeout(DRAIN_INTERVAL);
        }
    }
}

/// Shows how the outputs do, where that has changed.
fn show(outputs: &[LogOutput], health: &LogHealth) {
    let mut shown = health.lock().unwrap_or_else(PoisonError::into_inner);
    if !outputs.iter().map(LogOutput::state).eq(shown.iter()) {
        *shown = outputs.iter().map(LogOutput::state).cloned().collect();
    }
}

impl Drop for RunningLog {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::short_text::ShortText;

    #[test]
    fn every_event_of_every_thread_reaches_the_file_and_losses_are_said() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        let names = Names {
            node: "left".into(),
            groups: vec!["tank".into()],
            ..Names::default()
        };
        let mut log = EventLog::new(names);
        let (mut one, mut other) = (log.sink(), log.sink());
        for n in 0..=RING_CAPACITY {
            one.record(Instant::from_nanos(n as u64), NodeEvent::Stopping);
        }
        other.record(
            Instant::from_nanos(7),
            NodeEvent::Notice {
                name: "epoch_raised",
                group: Some(0),
                application: None,
                cause: ShortText::of("higher epoch"),
            },
        );
        let health = log.health();
        let outputs = vec![LogOutput::file(&path).unwrap()];
        drop(log.start(outputs).unwrap());
        assert_eq!(health.lock().unwrap()[0].lost, 1);
        assert_eq!(health.lock().unwrap()[0].trouble, None);
        let text = std::fs::read_to_string(path).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), RING_CAPACITY + 2);
        assert_eq!(lines[RING_CAPACITY]["cause"], "higher epoch");
        assert_eq!(lines[RING_CAPACITY]["group"], "tank");
        assert_eq!(lines[RING_CAPACITY + 1]["count"], 1);
        assert!(lines.iter().all(|line| line["time_ns"].is_u64()));
    }
}
