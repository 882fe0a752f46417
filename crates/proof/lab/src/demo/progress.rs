//! Tells on standard error what goes on: one line that is rewritten on a terminal, otherwise one
//! line per phase.

use std::time::Duration;

use bumpless_bench::run::progress::{NEVER, ProgressLine, left};

/// Shows what is going on.
#[derive(Debug)]
pub struct Progress {
    line: ProgressLine,
    planned: Duration,
    what: String,
}

impl Progress {
    /// For something that is planned to take `planned`.
    pub fn new(planned: Duration) -> Self {
        Self {
            line: ProgressLine::new(Duration::ZERO, (NEVER, NEVER)),
            planned,
            what: String::new(),
        }
    }

    /// Something else goes on from here.
    pub fn now(&mut self, what: impl Into<String>) {
        self.what = what.into();
        let what = &self.what;
        self.line
            .tell_elsewhere(|spent| format!("{:4.0} s  {what}", spent.as_secs_f64()));
        self.tick();
    }

    /// Time goes by.
    pub fn tick(&mut self) {
        let (planned, what) = (self.planned, &self.what);
        self.line.show(|spent| {
            let left = left(planned.saturating_sub(spent).as_secs_f64());
            format!("  {what} (about {left})")
        });
    }

    /// Takes the line away.
    pub fn clear(&mut self) {
        self.line.end();
    }
}
