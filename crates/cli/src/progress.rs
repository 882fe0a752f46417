//! How far a long run has come, on standard error.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Shorter runs say nothing.
const AT_FIRST: Duration = Duration::from_secs(1);
/// How often the line is written over on a terminal, and told anew where there is none.
const ON_TERMINAL: Duration = Duration::from_millis(250);
const ELSEWHERE: Duration = Duration::from_secs(60);

/// A line that is written over on a terminal, and told once a minute elsewhere.
pub struct ProgressLine {
    began: Instant,
    shown: Option<Instant>,
    terminal: bool,
}

impl ProgressLine {
    /// Of a run that began at `began`.
    pub fn new(began: Instant) -> Self {
        Self {
            began,
            shown: None,
            terminal: io::stderr().is_terminal(),
        }
    }

    /// Shows `line`, if it is time, with the time since the beginning to tell what is left.
    pub fn show(&mut self, line: impl FnOnce(Duration) -> String) {
        if !is_due(
            self.terminal,
            self.began.elapsed(),
            self.shown.map(|at| at.elapsed()),
        ) {
            return;
        }
        self.shown = Some(Instant::now());
        let line = line(self.began.elapsed());
        let _ = match self.terminal {
            true => write!(io::stderr(), "\r{line}\x1b[K"),
            false => writeln!(io::stderr(), "{line}"),
        };
    }

    /// Clears the line.
    pub fn end(&self) {
        if self.terminal && self.shown.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn is_due(terminal: bool, running: Duration, shown: Option<Duration>) -> bool {
    let (first, again) = match terminal {
        true => (AT_FIRST, ON_TERMINAL),
        false => (ELSEWHERE, ELSEWHERE),
    };
    shown.map_or(running >= first, |ago| ago >= again)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_four_times_a_second_on_a_terminal_and_once_a_minute_elsewhere() {
        let ms = Duration::from_millis;
        let never = |terminal, running| is_due(terminal, ms(running), None);
        assert_eq!([never(true, 999), never(true, 1_000)], [false, true]);
        assert_eq!([never(false, 59_999), never(false, 60_000)], [false, true]);
        let again = |terminal, ago| is_due(terminal, ms(100_000), Some(ms(ago)));
        assert_eq!([again(true, 249), again(true, 250)], [false, true]);
        assert_eq!([again(false, 59_999), again(false, 60_000)], [false, true]);
    }
}
