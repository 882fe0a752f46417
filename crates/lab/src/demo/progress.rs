//! Tells on standard error what goes on: one line that is rewritten on a terminal, otherwise one
//! line per phase.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Shows what is going on.
#[derive(Debug)]
pub struct Progress {
    terminal: bool,
    since: Instant,
    planned: Duration,
    what: String,
    shown: Option<(u64, String)>,
}

impl Progress {
    /// For something that is planned to take `planned`.
    pub fn new(planned: Duration) -> Self {
        let terminal = io::stderr().is_terminal();
        Self {
            terminal,
            since: Instant::now(),
            planned,
            what: String::new(),
            shown: None,
        }
    }

    /// Something else goes on from here.
    pub fn now(&mut self, what: impl Into<String>) {
        self.what = what.into();
        if !self.terminal {
            // Nobody reads progress from a closed pipe.
            let _ = writeln!(
                io::stderr(),
                "{:4.0} s  {}",
                self.since.elapsed().as_secs_f64(),
                self.what
            );
        }
        self.tick();
    }

    /// Time goes by.
    pub fn tick(&mut self) {
        if !self.terminal {
            return;
        }
        let left = self.planned.saturating_sub(self.since.elapsed()).as_secs();
        let state = (left, self.what.clone());
        if self.shown.as_ref() != Some(&state) {
            let _ = write!(
                io::stderr(),
                "\r\x1b[K  {} (about {left} s left)",
                self.what
            );
            let _ = io::stderr().flush();
            self.shown = Some(state);
        }
    }

    /// Takes the line away.
    pub fn clear(&mut self) {
        if self.terminal && self.shown.take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
            let _ = io::stderr().flush();
        }
    }
}
