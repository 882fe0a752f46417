//! `bumpless iprp status`, `senders`, `receivers`, `reload`: what the daemon on this host says of itself.

use std::path::PathBuf;
use std::process::ExitCode;

use bumpless_iprp_daemon::Request;
use clap::Args;
use serde_json::{Value, json};

use super::Daemon;
use crate::output::{self, Outcome};

/// Show networks, sessions, counters and weaknesses of the daemon on this host
///
/// Exit status 1 if the daemon does not answer.
#[derive(Debug, Args)]
pub struct Status {
    #[command(flatten)]
    asked: Asked,
    /// Show counters that are zero, too
    #[arg(long)]
    all: bool,
}

/// Show what this host sends: each session, with copies and round trip for each network
#[derive(Debug, Args)]
pub struct Senders {
    #[command(flatten)]
    asked: Asked,
}

/// Show what this host receives: for each sender what came first, twice, too late or on the wrong network, by network
#[derive(Debug, Args)]
pub struct Receivers {
    #[command(flatten)]
    asked: Asked,
}

/// Have the daemon on this host read its file again: monitored ports and networks change while it runs
#[derive(Debug, Args)]
pub struct Reload {
    #[command(flatten)]
    asked: Asked,
}

#[derive(Debug, Args)]
struct Asked {
    /// The host's file
    config: PathBuf,
    /// Print JSON (schema bumpless.iprp.status/1, of reload bumpless.iprp.reload/1)
    #[arg(long)]
    json: bool,
}

impl Asked {
    fn ask(&self, request: &Request, show: impl FnOnce(&Value)) -> Outcome {
        let answer = || {
            let reply = Daemon::of(&self.config, self.json)?.ask(request)?;
            Ok(reply)
        };
        let reply = answer().map_err(|failure: output::Failure| failure.in_json(self.json))?;
        show(&reply);
        Ok(ExitCode::SUCCESS)
    }
}

impl Status {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let (as_json, all) = (self.asked.json, self.all);
        self.asked.ask(&Request::Status, |status| match as_json {
            true => output::print_line(status),
            false => print_status(status, all),
        })
    }
}

impl Senders {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let as_json = self.asked.json;
        self.asked.ask(&Request::Status, |status| match as_json {
            true => output::print_line(
                json!({"schema": "bumpless.iprp.senders/1", "sending": status["sending"]}),
            ),
            false => print_sending(status),
        })
    }
}

impl Receivers {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let as_json = self.asked.json;
        self.asked.ask(&Request::Status, |status| match as_json {
            true => output::print_line(json!({
                "schema": "bumpless.iprp.receivers/1",
                "receiving": status["receiving"],
                "discarded": status["discarded"],
                "weaknesses": status["weaknesses"],
            })),
            false => {
                print_receiving(status);
                print_numbers("discarded", &status["discarded"], false);
                print_weaknesses(status);
            }
        })
    }
}

impl Reload {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let as_json = self.asked.json;
        self.asked.ask(&Request::Reload, |reply| match as_json {
            true => output::print_line(reply),
            false => output::print_line("the file was read again and is in force"),
        })
    }
}

fn print_status(status: &Value, all: bool) {
    output::print_line(format_args!(
        "iPRP, process {}, up {:.0} s",
        status["pid"],
        status["uptime_s"].as_f64().unwrap_or_default()
    ));
    for it in list(&status["networks"]) {
        output::print_line(format_args!(
            "  network {}: {} on {}; {} datagrams came, {} not taken by the system",
            it["ind"],
            text(&it["address"]),
            text(&it["interface"]),
            it["came"],
            it["not_taken"]
        ));
    }
    print_sending(status);
    print_receiving(status);
    print_numbers("counters", &status["counters"], all);
    print_numbers("discarded", &status["discarded"], all);
    print_numbers("control messages refused", &status["control_refused"], all);
    print_weaknesses(status);
}

fn print_sending(status: &Value) {
    for it in list(&status["sending"]) {
        let state = match it["suspended"] == true {
            true => "suspended, packets leave as they are",
            false => text(&it["mode"]),
        };
        output::print_line(format_args!("  sends {}: {state}", text(&it["flow"])));
        for path in list(&it["networks"]) {
            let trip = path["round_trip_us"].as_f64();
            let trip = trip.map_or(String::new(), |us| format!(", round trip {us:.0} us"));
            let carries = if path["carries"] == true {
                ", carries"
            } else {
                ""
            };
            let silent = if path["silent"] == true {
                ", silent"
            } else {
                ""
            };
            let absent = if path["usable"] == true {
                ""
            } else {
                ", not on this host"
            };
            output::print_line(format_args!(
                "    network {} to {}: {} copies, {} of them again{trip}{carries}{silent}{absent}",
                path["ind"],
                text(&path["to"]),
                path["sent"],
                path["again"]
            ));
        }
    }
}

fn print_receiving(status: &Value) {
    for it in list(&status["receiving"]) {
        let state = match it["replicated"] == true {
            true => "replicated",
            false => "not replicated: the sender has not answered",
        };
        output::print_line(format_args!(
            "  receives {} from {}: {state}, last {} ms ago",
            text(&it["flow"]),
            text(&it["source"]),
            it["last_ms"]
        ));
        for came in list(&it["networks"]) {
            output::print_line(format_args!(
                "    network {}: {} first, {} duplicate, {} very late, {} on another network",
                came["ind"],
                came["first"],
                came["duplicate"],
                came["very_late"],
                came["wrong_network"]
            ));
        }
    }
}

fn print_numbers(title: &str, numbers: &Value, all: bool) {
    let numbers = numbers.as_object().into_iter().flatten();
    let shown: Vec<_> = numbers
        .filter(|(_, value)| all || **value != 0)
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    for line in shown.chunks(6) {
        output::print_line(format_args!("  {title}: {}", line.join(", ")));
    }
}

fn print_weaknesses(status: &Value) {
    for weakness in list(&status["weaknesses"]) {
        output::print_line(format_args!("  weakness: {}", text(weakness)));
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}
