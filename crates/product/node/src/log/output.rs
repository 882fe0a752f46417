//! Places that the log goes to, each of which may refuse for a while: nothing waits for them, and what they missed is
//! counted and told, there and in status.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bumpless_net_linux::Clock;
use serde_json::{Value, json};

use super::LogFormat;
use super::line::{events_lost, plain};

/// Bytes of lines that wait for room; more are lost.
const WAITING_MAX: usize = 64 << 10;

/// How an output does, as status shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputState {
    /// The file's path, or `standard output`.
    pub to: String,
    /// Why it cannot be written at present.
    pub trouble: Option<String>,
    /// Events that it has missed since the start.
    pub lost: u64,
}

impl OutputState {
    /// What weakens the node, if it cannot be written.
    pub fn weakness(&self) -> Option<String> {
        let Self { to, trouble, lost } = self;
        trouble.as_ref().map(|trouble| {
            format!(
                "event log: {to} cannot be written: {trouble}; make room or put back what is missing, and it goes on \
                 by itself; {lost} events are lost so far"
            )
        })
    }

    /// As part of the status.
    pub fn json(&self) -> Value {
        json!({"to": self.to, "trouble": self.trouble, "events_lost": self.lost})
    }
}

/// How all outputs do; whoever shows status reads it.
pub type LogHealth = Arc<Mutex<Vec<OutputState>>>;

/// One place that the log goes to.
pub struct LogOutput {
    format: LogFormat,
    target: Target,
    /// Lines that are not written yet.
    waiting: Vec<u8>,
    /// The first of them is written in part.
    begun: bool,
    /// Missed and not told yet.
    untold: u64,
    state: OutputState,
}

enum Target {
    File {
        path: PathBuf,
        file: io::Result<File>,
    },
    Stream(Box<dyn Write + Send>),
    /// Its reader has left, who had read what they wanted.
    Closed,
}

impl std::fmt::Debug for LogOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogOutput")
            .field("format", &self.format)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl LogOutput {
    /// Appends JSON lines to the file `path`, which is made anew when it goes.
    ///
    /// # Errors
    /// The file cannot be made or opened.
    pub fn file(path: &Path) -> io::Result<Self> {
        let target = Target::File {
            path: path.to_owned(),
            file: Ok(open(path)?),
        };
        let to = path.display().to_string();
        Ok(Self::to(LogFormat::Json, target, to))
    }

    /// Writes to standard output.
    pub fn stdout(format: LogFormat) -> Self {
        Self::stream(format, "standard output", io::stdout())
    }

    fn stream(format: LogFormat, to: &str, writer: impl Write + Send + 'static) -> Self {
        Self::to(format, Target::Stream(Box::new(writer)), to.to_owned())
    }

    fn to(format: LogFormat, target: Target, to: String) -> Self {
        Self {
            format,
            target,
            waiting: Vec::new(),
            begun: false,
            untold: 0,
            state: OutputState {
                to,
                ..OutputState::default()
            },
        }
    }

    /// How it does.
    pub fn state(&self) -> &OutputState {
        &self.state
    }

    /// Takes a line, which [`flush`](Self::flush) writes at the latest.
    pub(super) fn write(&mut self, line: &Value) {
        if matches!(self.target, Target::Closed) {
            return;
        }
        let line = match self.format {
            LogFormat::Json => format!("{line}\n"),
            LogFormat::Plain => format!("{}\n", plain(line)),
        };
        if self.waiting.len() + line.len() > WAITING_MAX {
            // What keeps it from being written is told at the next flush.
            let _ = self.write_waiting();
        }
        if self.waiting.len() + line.len() > WAITING_MAX {
            self.lose(1);
        } else {
            self.waiting.extend_from_slice(line.as_bytes());
        }
    }

    fn lose(&mut self, count: u64) {
        self.untold += count;
        self.state.lost += count;
    }

    /// Writes what waits, as far as that goes; a full disk or a closed pipe must not stop a controller. Tells what was
    /// lost, `more` besides what was lost here, as soon as that can be written. Returns whether it has begun to fail.
    pub(super) fn flush(&mut self, more: u64, node: &str) -> bool {
        self.lose(more);
        self.find_again();
        let mut written = self.write_waiting();
        if written.is_ok() && self.untold > 0 {
            // What is lost from here on is told by a line of its own.
            let count = std::mem::take(&mut self.untold);
            self.write(&events_lost(node, Clock.now(), count));
            written = self.write_waiting();
        }
        let trouble = written.err().map(|error| error.to_string());
        let begins = trouble.is_some() && self.state.trouble.is_none();
        self.state.trouble = trouble;
        begins
    }

    fn write_waiting(&mut self) -> io::Result<()> {
        let writer: &mut dyn Write = match &mut self.target {
            Target::File { file, .. } => match file {
                Ok(file) => file,
                Err(error) => return Err(io::Error::new(error.kind(), error.to_string())),
            },
            Target::Stream(writer) => writer,
            Target::Closed => return Ok(()),
        };
        let written = write_from(writer, &mut self.waiting, &mut self.begun);
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.target = Target::Closed;
                self.waiting.clear();
                Ok(())
            }
            written => written,
        }
    }

    /// Opens the file again if another one is at its path, or none: nobody sees what is written to a file without a name.
    fn find_again(&mut self) {
        let Target::File { path, file } = &mut self.target else {
            return;
        };
        if file.as_ref().is_ok_and(|file| is_at(file, path)) {
            return;
        }
        *file = open(path);
        if std::mem::take(&mut self.begun) {
            // The other half of a line is of no use in another file.
            let end = self.waiting.iter().position(|&byte| byte == b'\n');
            self.waiting.drain(..end.map_or(0, |end| end + 1));
            self.lose(1);
        }
    }
}

/// Writes `waiting` and takes away what is written; `begun`: the first line of what is left is written in part.
fn write_from(writer: &mut dyn Write, waiting: &mut Vec<u8>, begun: &mut bool) -> io::Result<()> {
    while !waiting.is_empty() {
        match writer.write(waiting) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(length) => *begun = waiting.drain(..length).next_back() != Some(b'\n'),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    writer.flush()
}

fn open(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

/// Whether `file` is the one at `path`.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(own), Ok(named)) = (file.metadata(), fs::metadata(path)) else {
        return false;
    };
    (own.dev(), own.ino()) == (named.dev(), named.ino())
}

#[cfg(test)]
mod tests;
