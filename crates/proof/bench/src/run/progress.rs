//! How far a long run has come, and how long it will still take: on standard error.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often the line is written over on a terminal.
const ON_TERMINAL: Duration = Duration::from_millis(100);
/// How often what is under way is looked at.
const EACH: Duration = Duration::from_secs(1);
/// Longer than any run.
pub const NEVER: Duration = Duration::MAX;

/// A line that is written over on a terminal, and told now and then elsewhere.
#[derive(Debug)]
pub struct ProgressLine {
    began: Instant,
    shown: Option<Instant>,
    terminal: bool,
    first: Duration,
    again: Duration,
}

impl ProgressLine {
    /// Of a run that begins now: from `on_terminal` on if there is a terminal, else from `elsewhere` on, and anew
    /// after as long as that says.
    pub fn new(on_terminal: Duration, elsewhere: (Duration, Duration)) -> Self {
        let terminal = io::stderr().is_terminal();
        let (first, again) = match terminal {
            true => (on_terminal, ON_TERMINAL),
            false => elsewhere,
        };
        Self {
            began: Instant::now(),
            shown: None,
            terminal,
            first,
            again,
        }
    }

    /// As [`new`](Self::new): nothing in the first second, and once a minute where there is no terminal.
    pub fn sparing() -> Self {
        let minute = Duration::from_secs(60);
        Self::new(Duration::from_secs(1), (minute, minute))
    }

    /// Shows `line`, if it is time, with the time since the beginning to tell what is left.
    pub fn show(&mut self, line: impl FnOnce(Duration) -> String) {
        let (running, ago) = (self.began.elapsed(), self.shown.map(|at| at.elapsed()));
        if !is_due((self.first, self.again), running, ago) {
            return;
        }
        self.shown = Some(Instant::now());
        let line = line(running);
        // Nobody reads progress from a closed pipe.
        let _ = match self.terminal {
            true => write!(io::stderr(), "\r{line}\x1b[K"),
            false => writeln!(io::stderr(), "{line}"),
        };
    }

    /// Tells `line` at once where there is no terminal.
    pub fn tell_elsewhere(&self, line: impl FnOnce(Duration) -> String) {
        if !self.terminal {
            let _ = writeln!(io::stderr(), "{}", line(self.began.elapsed()));
        }
    }

    /// Clears the line.
    pub fn end(&mut self) {
        if self.terminal && self.shown.take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn is_due((first, again): (Duration, Duration), running: Duration, ago: Option<Duration>) -> bool {
    ago.map_or(running >= first, |ago| ago >= again)
}

/// So many seconds in words.
pub fn left(seconds: f64) -> String {
    match seconds.max(0.0) {
        s if !s.is_finite() => "time left unknown".into(),
        s if s >= 120.0 => format!("{:.0} min left", s / 60.0),
        s => format!("{s:.0} s left"),
    }
}

/// A line about work whose parts were estimated before the start.
pub struct Progress {
    line: Arc<Mutex<ProgressLine>>,
    work: Work,
}

/// Work in seconds, as estimated.
#[derive(Clone, Copy)]
struct Work {
    planned: f64,
    done: f64,
}

impl Progress {
    /// `planned` seconds of work, as estimated.
    pub fn new(planned: f64, quiet: bool) -> Self {
        let first = if quiet { NEVER } else { Duration::ZERO };
        let line = ProgressLine::new(first, (first, Duration::from_secs(15)));
        Self {
            line: Arc::new(Mutex::new(line)),
            work: Work { planned, done: 0.0 },
        }
    }

    /// Shows that `what` is under way, if it is time.
    pub fn show(&self, what: &str) {
        show(&self.line, self.work, what);
    }

    /// Work called `what`, of `estimate` seconds, begins. It lasts until the answer is dropped, and as long the line
    /// is kept up to date.
    #[must_use]
    pub fn begins(&self, what: &str, estimate: f64) -> Part {
        self.show(what);
        let (line, work, what) = (self.line.clone(), self.work, what.to_owned());
        let (ended, waits) = mpsc::channel::<()>();
        let began = Instant::now();
        let shows = thread::spawn(move || {
            while waits.recv_timeout(EACH) == Err(RecvTimeoutError::Timeout) {
                show(&line, work.within(began.elapsed(), estimate), &what);
            }
        });
        Part {
            ended: Some(ended),
            shows: Some(shows),
        }
    }

    /// Work of `estimate` seconds has ended.
    pub fn ends(&mut self, estimate: f64) {
        self.work.done += estimate;
    }

    /// Clears the line.
    pub fn end(&mut self) {
        self.line
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .end();
    }
}

/// A part of the work that is under way; see [`Progress::begins`].
pub struct Part {
    ended: Option<Sender<()>>,
    shows: Option<JoinHandle<()>>,
}

impl Drop for Part {
    fn drop(&mut self) {
        self.ended.take();
        // The thread only writes a line: if it panicked, there is none.
        let _ = self.shows.take().map(JoinHandle::join);
    }
}

fn show(line: &Mutex<ProgressLine>, work: Work, what: &str) {
    let mut line = line.lock().unwrap_or_else(PoisonError::into_inner);
    line.show(|spent| {
        let left = left(work.rest(spent.as_secs_f64()));
        format!("{:3.0} %  about {left}  {what}", work.share() * 100.0)
    });
}

impl Work {
    /// The same once a part of `estimate` seconds has run for `spent`: a part that takes longer than estimated is not
    /// done before it ends.
    fn within(self, spent: Duration, estimate: f64) -> Self {
        Self {
            done: self.done + spent.as_secs_f64().min(estimate),
            ..self
        }
    }

    fn share(self) -> f64 {
        if self.planned > 0.0 {
            self.done / self.planned
        } else {
            1.0
        }
    }

    /// The seconds left, from the time spent and the work done of the work planned.
    fn rest(self, spent: f64) -> f64 {
        // Before anything is done the estimate is all there is.
        let pace = if self.done > 0.0 {
            spent / self.done
        } else {
            1.0
        };
        pace * (self.planned - self.done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_when_it_is_time_and_then_as_often_as_it_should() {
        let ms = Duration::from_millis;
        let due =
            |running, ago: Option<u64>| is_due((ms(1_000), ms(250)), ms(running), ago.map(ms));
        assert_eq!([due(999, None), due(1_000, None)], [false, true]);
        assert_eq!(
            [due(9_000, Some(249)), due(9_000, Some(250))],
            [false, true]
        );
        assert!(!is_due((NEVER, NEVER), ms(u64::MAX), None));
    }

    #[test]
    fn the_time_left_follows_the_pace_so_far() {
        let told = |spent, done, planned| left(Work { planned, done }.rest(spent));
        assert_eq!(told(0.0, 0.0, 60.0), "60 s left");
        assert_eq!(told(20.0, 10.0, 60.0), "100 s left");
        assert_eq!(told(600.0, 10.0, 20.0), "10 min left");
        assert_eq!(told(70.0, 70.0, 60.0), "0 s left");
        assert_eq!(left(f64::INFINITY), "time left unknown");
    }

    #[test]
    fn a_part_under_way_counts_for_as_long_as_it_has_run_but_not_beyond_its_estimate() {
        let hour = Work {
            planned: 3_660.0,
            done: 0.0,
        };
        let after = |minutes: u64| hour.within(Duration::from_secs(60 * minutes), 3_600.0);
        assert_eq!(left(after(30).rest(1_800.0)), "31 min left");
        assert_eq!(after(61).done, 3_600.0);
        assert_eq!(left(after(122).rest(7_320.0)), "2 min left");
        assert!(after(61).share() < 1.0);
    }
}
