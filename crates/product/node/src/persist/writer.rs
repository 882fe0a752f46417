//! The thread that writes states to disk. It may be as slow as the disk is: nobody waits for it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use bumpless_base::Instant;
use bumpless_net_linux::Clock;

use super::folder::{Folder, FolderError};
use super::format::encode;
use super::identity::Identity;
use super::way::{Bell, Outlet, StateCopy};
use crate::event::NodeEvent;
use crate::log::{EventSink, LogRegistry};
use crate::membership::ApplicationNumber;
use crate::note::Note;
use crate::short_text::ShortText;

/// It looks at least so often.
const LOOK: Duration = Duration::from_millis(200);
/// Between two attempts at a file that could not be written.
const RETRY: bumpless_base::Duration = bumpless_base::Duration::from_millis(500);
/// How long the end of a node waits for a disk.
const TIMEOUT: Duration = Duration::from_secs(2);

/// An application whose states are written.
pub struct Client {
    /// Its number, for the log.
    pub application: ApplicationNumber,
    /// Whose states they are.
    pub identity: Identity,
    /// What its file is called.
    pub file: String,
    /// Where its states come from.
    pub outlet: Outlet,
    /// What status says until a state has been written.
    pub refused: Option<String>,
}

/// Where it is told what cannot be written, for as long as that is so.
pub struct Tellers {
    /// What status shows.
    pub notes: Arc<Mutex<Vec<Note>>>,
    /// The log, for texts of any length.
    pub log: LogRegistry,
    /// The log, for events.
    pub sink: EventSink,
}

impl Tellers {
    fn show(&self, before: &mut Option<String>, after: Option<String>) {
        if let Ok(mut notes) = self.notes.lock() {
            notes.retain(|note| Some(&note.text) != before.as_ref());
            notes.extend(after.clone().map(Note::lasting));
        }
        if let Some(text) = &after {
            self.log.tell_weakness(Clock.now(), text.clone());
        }
        *before = after;
    }
}

/// The application on the thread.
struct Served {
    client: Client,
    /// Taken and not written yet.
    unsaved: Option<Box<StateCopy>>,
    retry_at: Instant,
    /// What status says of it.
    trouble: Option<String>,
    /// What is retained of the state that is written; its memory is kept.
    record: Vec<u8>,
}

/// The thread while it runs. Dropped, it writes what waits, and ends.
pub struct RunningWriter {
    stop: Arc<AtomicBool>,
    thread: thread::Thread,
    ended: Receiver<()>,
}

impl RunningWriter {
    /// Writes the states of whoever comes through `clients` to `folder`; is woken by `bell`.
    ///
    /// # Errors
    /// What the system says.
    pub fn start(
        folder: Folder,
        clients: Receiver<Client>,
        tellers: Tellers,
        bell: &Bell,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (ends, ended) = channel();
        let mut writer = Writer {
            folder,
            clients,
            served: Vec::new(),
            tellers,
            bytes: Vec::new(),
        };
        let stopping = Arc::clone(&stop);
        let handle = thread::Builder::new()
            .name("persist".into())
            .spawn(move || {
                writer.run(&stopping);
                let _ = ends.send(());
            })?;
        let thread = handle.thread().clone();
        bell.set(thread.clone());
        Ok(Self {
            stop,
            thread,
            ended,
        })
    }
}

impl Drop for RunningWriter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.thread.unpark();
        if self.ended.recv_timeout(TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            eprintln!("bumpless: the disk does not answer; the last states may not be on it");
        }
    }
}

struct Writer {
    folder: Folder,
    clients: Receiver<Client>,
    served: Vec<Served>,
    tellers: Tellers,
    /// The file that is being written; its memory is kept.
    bytes: Vec<u8>,
}

impl Writer {
    fn run(&mut self, stop: &AtomicBool) {
        loop {
            // Executors have ended by then, so what they have put in is there.
            let last = stop.load(Ordering::Acquire);
            self.turn(last);
            if last {
                return;
            }
            thread::park_timeout(LOOK);
        }
    }

    fn turn(&mut self, last: bool) {
        let served = |client| Served {
            client,
            unsaved: None,
            retry_at: Instant::ZERO,
            trouble: None,
            record: Vec::new(),
        };
        self.served.extend(self.clients.try_iter().map(served));
        let mut at = 0;
        while let Some(served) = self.served.get_mut(at) {
            let ended = served.client.outlet.has_ended();
            served.take();
            if served.unsaved.is_some() && (last || ended || Clock.now() >= served.retry_at) {
                served.write(&mut self.folder, &mut self.bytes, &mut self.tellers);
            }
            if ended {
                served.forget(&self.tellers);
                self.served.swap_remove(at);
            } else {
                at += 1;
            }
        }
    }
}

impl Served {
    /// The newest state takes the place of one that could not be written.
    fn take(&mut self) {
        let Some(newest) = self.client.outlet.take() else {
            return;
        };
        if let Some(before) = self.unsaved.replace(newest) {
            self.client.outlet.give_back(before);
        }
    }

    fn write(&mut self, folder: &mut Folder, bytes: &mut Vec<u8>, tellers: &mut Tellers) {
        let Some(copy) = self.unsaved.take() else {
            return;
        };
        let client = &self.client;
        let file = client
            .identity
            .file(&copy, (Clock.now(), wall_ns()), &mut self.record);
        let result = file.map(|file| {
            encode(&file, bytes);
            folder.replace(&client.file, bytes)
        });
        match result {
            Some(Err(error)) => {
                self.unsaved = Some(copy);
                self.retry_at = Clock.now() + RETRY;
                self.failed(folder, &error, tellers);
            }
            // What is no state does not come here; if it did, nobody could go on from it.
            None => client.outlet.give_back(copy),
            Some(Ok(())) => {
                client.outlet.give_back(copy);
                self.succeeded(tellers);
            }
        }
    }

    fn failed(&mut self, folder: &Folder, error: &FolderError, tellers: &mut Tellers) {
        let name = &self.client.identity.application;
        let text = format!(
            "the state of '{name}' is not kept on disk, so a power failure of both nodes loses it: {}: {error}; make \
             that a folder on a disk with room where this node's user may write",
            folder.file(&self.client.file).display()
        );
        if self.trouble.as_ref() == Some(&text) {
            return;
        }
        let cause = ShortText::of(format_args!("not written: {error}"));
        self.tell(cause, tellers);
        tellers.show(&mut self.trouble, Some(text));
    }

    fn succeeded(&mut self, tellers: &mut Tellers) {
        if self.client.refused.is_some() {
            tellers.show(&mut self.client.refused, None);
        }
        if self.trouble.is_some() {
            self.tell(ShortText::of("written again"), tellers);
            tellers.show(&mut self.trouble, None);
        }
    }

    fn forget(&mut self, tellers: &Tellers) {
        tellers.show(&mut self.client.refused, None);
        tellers.show(&mut self.trouble, None);
    }

    fn tell(&self, cause: ShortText, tellers: &mut Tellers) {
        let notice = NodeEvent::Notice {
            name: "persist",
            group: None,
            application: Some(self.client.application),
            cause,
        };
        tellers.sink.record(Clock.now(), notice);
    }
}

/// Nanoseconds since 1970, by the computer's clock.
pub fn wall_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}
