//! The event log: JSON lines of the schema `bumpless.event/1` (spec/events.md), written by a thread
//! of its own so that a slow disk never holds up the data plane.

mod line;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use bumpless_base::Instant;
use bumpless_meeting::{Entrance, Recorder, Records, Ring};
use bumpless_net_linux::Clock;
use serde_json::Value;

pub use self::line::{Names, render, role_name};
use self::line::{events_lost, plain, weakness};
use crate::event::NodeEvent;

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

/// One place that the log goes to.
pub struct LogOutput {
    format: LogFormat,
    writer: Box<dyn Write + Send>,
    failed: u64,
}

impl std::fmt::Debug for LogOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogOutput")
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

impl LogOutput {
    /// Appends JSON lines to the file `path`.
    pub fn file(path: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Self {
            format: LogFormat::Json,
            writer: Box::new(BufWriter::new(file)),
            failed: 0,
        })
    }

    /// Writes to standard output.
    pub fn stdout(format: LogFormat) -> Self {
        Self {
            format,
            writer: Box::new(BufWriter::new(io::stdout())),
            failed: 0,
        }
    }

    fn write(&mut self, line: &Value) {
        let written = match self.format {
            LogFormat::Json => writeln!(self.writer, "{line}"),
            LogFormat::Plain => writeln!(self.writer, "{}", plain(line)),
        };
        // A full disk or a closed pipe must not stop a controller; the rings keep draining, and what
        // could not be written is told as lost when there is room again.
        self.failed += u64::from(written.is_err());
    }

    fn flush(&mut self) {
        if self.writer.flush().is_err() {
            self.failed += 1;
        }
    }

    /// Tells what the rings lost and what could not be written here, as soon as that can be written.
    fn tell_lost(&mut self, lost: u64, node: &str) {
        let count = lost + std::mem::take(&mut self.failed);
        if count > 0 {
            self.write(&events_lost(node, Clock.now(), count));
            if self.failed > 0 {
                self.failed = count;
            }
        }
    }
}

/// The log's thread and the rings into it.
#[derive(Debug)]
pub struct EventLog {
    names: Names,
    records: Records<(Instant, NodeEvent)>,
    messages: (Sender<Message>, Receiver<Message>),
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
    application: u16,
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
    /// Has the log know the application number `application` by this name and channel; returns its way in.
    pub fn register(&self, application: u16, name: &str, channel: u16) -> EventSink {
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
        }
    }

    /// The way to it for applications that come later.
    pub fn registry(&self) -> LogRegistry {
        LogRegistry {
            entrance: self.records.entrance(),
            messages: self.messages.0.clone(),
        }
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
        let at = usize::from(newcomer.application);
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
            for output in &mut outputs {
                output.tell_lost(lost - reported, &self.names.node);
            }
            reported = lost;
            outputs.iter_mut().for_each(LogOutput::flush);
            if last {
                return;
            }
            thread::park_timeout(DRAIN_INTERVAL);
        }
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
        drop(log.start(vec![LogOutput::file(&path).unwrap()]).unwrap());
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
