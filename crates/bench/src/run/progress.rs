//! How far a long run has come, and how long it will still take.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// A line on standard error: written over on a terminal, told now and then otherwise.
pub struct Progress {
    began: Instant,
    told: Option<Instant>,
    /// Planned work, seconds as estimated before the start.
    planned: f64,
    done: f64,
    terminal: bool,
    quiet: bool,
}

impl Progress {
    /// `planned` seconds of work, as estimated.
    pub fn new(planned: f64, quiet: bool) -> Self {
        Self {
            began: Instant::now(),
            told: None,
            planned,
            done: 0.0,
            terminal: std::io::stderr().is_terminal(),
            quiet,
        }
    }

    /// Work of `estimate` seconds called `what` begins.
    pub fn begins(&mut self, what: &str) {
        let interval = Duration::from_millis(if self.terminal { 100 } else { 15_000 });
        if self.quiet || self.told.is_some_and(|at| at.elapsed() < interval) {
            return;
        }
        self.told = Some(Instant::now());
        let share = if self.planned > 0.0 {
            self.done / self.planned
        } else {
            1.0
        };
        let left = left(self.began.elapsed().as_secs_f64(), self.done, self.planned);
        let (start, end) = if self.terminal {
            ("\r\x1b[K", "")
        } else {
            ("", "\n")
        };
        let _ = write!(
            std::io::stderr(),
            "{start}{:3.0} %  {left}  {what}{end}",
            share * 100.0
        );
    }

    /// Work of `estimate` seconds has ended.
    pub fn ends(&mut self, estimate: f64) {
        self.done += estimate;
    }

    /// Clears the line.
    pub fn end(&self) {
        if self.terminal && !self.quiet {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// The time left in words, from the time spent and the work done of the work planned.
fn left(spent: f64, done: f64, planned: f64) -> String {
    // Before anything is done the estimate is all there is.
    let pace = if done > 0.0 { spent / done } else { 1.0 };
    let seconds = (pace * (planned - done)).max(0.0);
    match seconds {
        s if s >= 120.0 => format!("about {:.0} min left", s / 60.0),
        s => format!("about {s:.0} s left"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_the_pace_so_far() {
        assert_eq!(left(0.0, 0.0, 60.0), "about 60 s left");
        assert_eq!(left(20.0, 10.0, 60.0), "about 100 s left");
        assert_eq!(left(600.0, 10.0, 20.0), "about 10 min left");
        assert_eq!(left(70.0, 70.0, 60.0), "about 0 s left");
    }
}
