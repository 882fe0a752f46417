//! What a daemon says of what happens: a line each, in words or as JSON (`bumpless.guard.event/1`).

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// Says what has happened on standard output: its name, what it is about, and the sentence for people. Frames are judged by the
/// kernel, so that nothing waits for whoever reads slowly.
pub fn say(as_json: bool, event: &str, about: Value, words: &str) {
    let mut out = io::stdout().lock();
    let line = match as_json {
        false => words.to_owned(),
        true => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let time_ms = now.map_or(0, |now| now.as_millis() as u64);
            json!({
                "schema": "bumpless.guard.event/1",
                "time_ms": time_ms,
                "event": event,
                "about": about,
                "words": words,
            })
            .to_string()
        }
    };
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
