//! What a server says of what happens: a line each, in words or as JSON (`bumpless.key-server.event/1`).

use std::io::{self, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// Lines that wait for whoever reads them.
const WAITING: usize = 256;

/// The way to standard output, by a thread of its own: members must not wait for who reads slowly. What finds no room is
/// not said.
#[derive(Debug)]
pub struct Events {
    as_json: bool,
    lines: SyncSender<String>,
}

impl Events {
    /// Begins to say.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn start(as_json: bool) -> io::Result<Self> {
        let (lines, said) = sync_channel::<String>(WAITING);
        thread::Builder::new()
            .name("events".into())
            .spawn(move || {
                for line in said {
                    let mut out = io::stdout().lock();
                    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
                }
            })?;
        Ok(Self { as_json, lines })
    }

    /// Says what has happened: its name, what it is about, and the sentence for people.
    pub fn say(&self, event: &str, about: Value, words: &str) {
        let line = match self.as_json {
            false => words.to_owned(),
            true => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                let time_ms = now.map_or(0, |now| now.as_millis() as u64);
                json!({
                    "schema": "bumpless.key-server.event/1",
                    "time_ms": time_ms,
                    "event": event,
                    "about": about,
                    "words": words,
                })
                .to_string()
            }
        };
        let _ = self.lines.try_send(line);
    }
}
