//! `bumpless iprp status`, `senders`, `receivers`, `reload`: what the daemon on this host says of itself.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use bumpless_iprp_daemon::Request;
use clap::Args;
use serde_json::{Value, json};

use super::{daemon, picture, rates};
use crate::output::{self, Failure, Outcome};
use crate::screen::Screen;
use crate::stop;

/// Between two looks at whether the view is to end.
const LOOK: Duration = Duration::from_millis(20);

/// Show networks, sessions, counters and weaknesses of the daemon on this host
///
/// Exit status 1 if the daemon does not answer.
#[derive(Debug, Args)]
pub struct Status {
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    view: View,
    /// Show counters that are zero, too
    #[arg(long)]
    all: bool,
}

/// Show what this host sends: each session, with copies and round trip for each network
#[derive(Debug, Args)]
pub struct Senders {
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    view: View,
}

/// Show what this host receives: for each sender what came first, twice, too late or on the wrong network, by network
#[derive(Debug, Args)]
pub struct Receivers {
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    view: View,
}

/// Have the daemon on this host read its file again: monitored ports and networks change while it runs
///
/// Exit status 2 if the file is wrong, 1 if it is not taken for another reason, or no daemon answers; then everything is as it was.
#[derive(Debug, Args)]
pub struct Reload {
    #[command(flatten)]
    asked: Asked,
}

#[derive(Debug, Args)]
struct Asked {
    /// The host's file
    config: PathBuf,
    /// Print JSON (schema bumpless.iprp.status/1, senders/1, receivers/1, of reload bumpless.iprp.reload/1)
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct View {
    /// Look again every SECONDS (0.1 to 3600; 1 if left out) until Ctrl-C, with rates per second since the last look: in
    /// place on a terminal, else one block below the other; with --json one line each time
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = seconds)]
    watch: Option<Duration>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok();
    let seconds = seconds.filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "give 0.1 to 3600 seconds; a file's name comes before --watch".to_owned())
}

/// How a status is shown.
struct Form {
    lines: fn(&Value) -> Vec<String>,
    json: fn(&Value) -> Value,
}

impl Asked {
    /// Shows the daemon's status in this form: once, or again and again.
    fn show(&self, view: &View, form: &Form) -> Outcome {
        let shown = match view.watch {
            None => self.status().map(|status| self.show_once(&status, form)),
            Some(every) => self.watch(every, form),
        };
        shown.map_err(|failure| failure.in_json(self.json))?;
        Ok(ExitCode::SUCCESS)
    }

    fn status(&self) -> Result<Value, Failure> {
        daemon(&self.config, self.json)?.ask(&Request::Status)
    }

    fn show_once(&self, status: &Value, form: &Form) {
        match self.json {
            true => output::print_line((form.json)(status)),
            false => (form.lines)(status).iter().for_each(output::print_line),
        }
    }

    fn watch(&self, every: Duration, form: &Form) -> Result<(), Failure> {
        let daemon = daemon(&self.config, self.json)?;
        let stop = stop::stop_flag()?;
        let mut screen = Screen::new();
        let mut before = daemon.ask(&Request::Status)?;
        let mut picture: Result<_, Failure> = Ok(before.clone());
        let mut due = Instant::now();
        loop {
            let is_read = match (&picture, self.json) {
                (Ok(status), true) => output::print_text(&format!("{}\n", (form.json)(status))),
                (Ok(status), false) => screen.show(&(form.lines)(status)),
                // It may be starting again, and the view goes on then.
                (Err(failure), true) => output::print_text(&format!("{}\n", failure.as_json())),
                (Err(failure), false) => screen.show(failure.lines()),
            };
            due += every;
            while is_read && !stop.load(Ordering::Relaxed) && Instant::now() < due {
                thread::sleep(LOOK.min(due.saturating_duration_since(Instant::now())));
            }
            if !is_read || stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            // What was missed while the process was stopped is not made up for.
            if due + every < Instant::now() {
                due = Instant::now();
            }
            picture = daemon.ask(&Request::Status).map(|mut status| {
                let as_it_is = status.clone();
                rates::add(&mut status, &before);
                before = as_it_is;
                status
            });
        }
    }
}

impl Status {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let lines: fn(&Value) -> Vec<String> = match self.all {
            true => |status| picture::status(status, true),
            false => |status| picture::status(status, false),
        };
        let json = Value::clone;
        self.asked.show(&self.view, &Form { lines, json })
    }
}

impl Senders {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let form = Form {
            lines: picture::sending,
            json: |status| json!({"schema": "bumpless.iprp.senders/1", "sending": status["sending"]}),
        };
        self.asked.show(&self.view, &form)
    }
}

impl Receivers {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let form = Form {
            lines: picture::receiving,
            json: receivers,
        };
        self.asked.show(&self.view, &form)
    }
}

fn receivers(status: &Value) -> Value {
    let mut shown = json!({
        "schema": "bumpless.iprp.receivers/1",
        "receiving": status["receiving"],
        "discarded": status["discarded"],
        "weaknesses": status["weaknesses"],
    });
    if !status["discarded_per_s"].is_null() {
        shown["discarded_per_s"] = status["discarded_per_s"].clone();
    }
    shown
}

impl Reload {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let as_json = self.asked.json;
        let asked = daemon(&self.asked.config, as_json).map_err(Failure::of_what_runs);
        let reply = asked.and_then(|daemon| daemon.ask(&Request::Reload));
        match (reply.map_err(|failure| failure.in_json(as_json))?, as_json) {
            (reply, true) => output::print_line(&reply),
            (_, false) => output::print_line("the file was read again and is in force"),
        }
        Ok(ExitCode::SUCCESS)
    }
}
