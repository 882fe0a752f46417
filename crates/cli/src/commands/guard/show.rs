//! `bumpless guard status`, `top` and `reload`: what the daemon on this host says of itself.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use bumpless_guard_daemon::Request;
use clap::Args;

use super::{daemon, picture};
use crate::output::{self, Failure, Outcome};
use crate::screen::Screen;
use crate::stop;

/// Between two looks at whether the view is to end.
const LOOK: Duration = Duration::from_millis(20);

/// Show interfaces, flows with their budgets, and what was dropped by which rule
///
/// Exit status 1 if the daemon does not answer.
#[derive(Debug, Args)]
pub struct Status {
    /// The host's file
    config: PathBuf,
    /// Print JSON (schema bumpless.guard.status/1)
    #[arg(long)]
    json: bool,
}

/// Show the same live, at once and then with rates, until Ctrl-C
///
/// In place on a terminal, else one block below the other; with --json one line each time.
#[derive(Debug, Args)]
pub struct Top {
    /// The host's file
    config: PathBuf,
    /// Look again every SECONDS (0.1 to 3600)
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    every: Duration,
    /// End after so many looks
    #[arg(long, value_name = "LOOKS")]
    count: Option<u64>,
    /// Print JSON (schema bumpless.guard.status/1 with per_s)
    #[arg(long)]
    json: bool,
}

/// Have the guard on this host read its file again: interfaces, flows and budgets change while it guards, whole or not at all
///
/// What programs have registered stays. Exit status 2 if the file is wrong, 1 if it is not taken for another reason, or no guard answers;
/// then everything is as it was.
#[derive(Debug, Args)]
pub struct Reload {
    /// The host's file
    config: PathBuf,
    /// Print JSON (schema bumpless.guard.reload/1)
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok();
    let seconds = seconds.filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "give 0.1 to 3600 seconds".to_owned())
}

impl Status {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let status =
            daemon(&self.config, self.json).and_then(|daemon| daemon.ask(&Request::Status));
        let status = status.map_err(|failure| failure.in_json(self.json))?;
        match self.json {
            true => output::print_line(&status),
            false => picture::lines(&status).iter().for_each(output::print_line),
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Top {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let json = self.json;
        self.execute().map_err(|failure| failure.in_json(json))?;
        Ok(ExitCode::SUCCESS)
    }

    fn execute(self) -> Result<(), Failure> {
        let daemon = daemon(&self.config, self.json)?;
        let stop = stop::stop_flag()?;
        let mut screen = Screen::new();
        let mut before = None;
        let mut due = Instant::now();
        for _ in 0..self.count.unwrap_or(u64::MAX) {
            while !stop.load(Ordering::Relaxed) && Instant::now() < due {
                thread::sleep(LOOK.min(due.saturating_duration_since(Instant::now())));
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            due = next_look(due, self.every, Instant::now());
            let is_read = match daemon.ask(&Request::Status) {
                Ok(status) => {
                    let mut shown = status.clone();
                    if let Some(before) = &before {
                        picture::add_rates(&mut shown, before);
                    }
                    before = Some(status);
                    match self.json {
                        true => output::print_text(&format!("{shown}\n")),
                        false => screen.show(&picture::lines(&shown)),
                    }
                }
                Err(failure) if before.is_none() => return Err(failure),
                // It may be starting again, and the view goes on then.
                Err(failure) if self.json => {
                    output::print_text(&format!("{}\n", failure.as_json()))
                }
                Err(failure) => screen.show(failure.lines()),
            };
            if !is_read {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// When to look again after a look that was due at `due` and began `now`. What was missed while the process was stopped is not made up for:
/// two looks at once would show rates of no time at all.
fn next_look(due: Instant, every: Duration, now: Instant) -> Instant {
    match due + every {
        next if next > now => next,
        _ => now + every,
    }
}

impl Reload {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let asked = daemon(&self.config, self.json).map_err(Failure::of_what_runs);
        let reply = asked.and_then(|daemon| daemon.ask(&Request::Reload));
        let reply = reply.map_err(|failure| failure.in_json(self.json))?;
        let words = match reply["changed"].as_bool() {
            Some(false) => "the file was read again and says nothing else than before",
            _ => "the file was read again and is in force",
        };
        match self.json {
            true => output::print_line(&reply),
            false => output::print_line(words),
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_keep_their_distance_however_late_one_is() {
        let (begin, every) = (Instant::now(), Duration::from_secs(10));
        let at = |seconds| begin + Duration::from_secs(seconds);
        // A little late: the next one is at its time.
        assert_eq!(next_look(at(0), every, at(1)), at(10));
        for late in [10, 11, 3600] {
            assert_eq!(next_look(at(0), every, at(late)), at(late + 10));
        }
    }
}
