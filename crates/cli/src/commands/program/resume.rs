//! `bumpless program resume`: lets a program go on that has failed and is stopped.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use bumpless_config::Config;
use bumpless_node::control::{Request, Station};
use clap::Args;
use serde_json::{Value, json};

use crate::output::{self, Failure, Outcome};

/// How long the order may be under way.
const ON_THE_WAY: Duration = Duration::from_secs(3);
/// How long the program may take to start again (F-29).
const START_MAX: Duration = Duration::from_secs(1);

/// Let a program go on that has failed and is stopped
///
/// Asks the primary. It goes on from the state before the cycle that failed. Exit status 1 with the reason if it was refused
/// or failed again.
#[derive(Debug, Args)]
pub struct Resume {
    /// The pair's configuration file
    config: PathBuf,
    /// The node to ask: the primary
    #[arg(long, value_name = "NAME")]
    node: String,
    /// The application; may be left out where the configuration has only one
    #[arg(long, value_name = "NAME")]
    application: Option<String>,
    /// Begin from the initial state, in a higher epoch, if the state before the cycle that failed is as old as `hot_restart_ms`
    #[arg(long)]
    from_initial: bool,
    /// Print the result as JSON (schema bumpless.resume/1)
    #[arg(long)]
    pub json: bool,
}

/// Why an order came to nothing.
fn not_resumed(name: &str, standing: &Standing, cause: &str) -> Failure {
    match standing.too_old {
        true => Failure::refused(format_args!(
            "'{name}' is not resumed: the state before its failure is as old as hot_restart_ms, so nobody goes on from \
             it; --from-initial has it begin from its initial state"
        )),
        false => Failure::refused(format_args!(
            "'{name}' has failed again and is stopped: {cause}; mend the program, then apply it"
        )),
    }
}

/// How a program stands on the node that was asked.
struct Standing {
    stopped: bool,
    /// What became of an earlier order.
    too_old: bool,
    /// The last failure: how long ago, and its cause.
    fault: Option<(Duration, String)>,
}

impl Standing {
    fn of(status: &Value, application: &str) -> Option<Self> {
        let mut all = status["applications"].as_array()?.iter();
        let program = &all.find(|it| it["name"] == application)?["program"];
        let last = &program["last_fault"];
        let cause = last["cause"].as_str().unwrap_or_default();
        let cause = format!("cycle {}: {cause}", last["cycle"]);
        let ago = last["ago_s"].as_f64().map(Duration::try_from_secs_f64);
        Some(Self {
            stopped: program["stopped"].as_bool()?,
            too_old: program["too_old_to_resume"].as_bool()?,
            fault: ago.and_then(Result::ok).map(|ago| (ago, cause)),
        })
    }
}

impl Resume {
    /// Runs the command.
    pub fn execute(&self) -> Outcome {
        let config = output::load(&self.config, self.json)?;
        let node = Station::of(&config, output::find_node(&config, &self.node)?);
        let (name, period) = self.application(&config)?;
        let order = Request::Resume {
            application: name.to_owned(),
            from_initial: self.from_initial,
        };
        let ordered = Instant::now();
        let reply = node.request(&order).map_err(Failure::refused)?;
        if let Some(error) = reply["error"].as_str() {
            return Err(Failure::refused(error));
        }
        self.await_result(&node, name, (ordered, period * 3 + START_MAX))
    }

    /// The application's name and period.
    fn application<'a>(&self, config: &'a Config) -> Result<(&'a str, Duration), Failure> {
        let names = || {
            let all: Vec<_> = config.applications.iter().map(|it| &*it.name).collect();
            all.join(", ")
        };
        let found = match &self.application {
            Some(name) => config.applications.iter().find(|it| it.name == *name),
            None if config.applications.len() == 1 => config.applications.first(),
            None => {
                return Err(Failure::usage(format_args!(
                    "name one of the applications with --application: {}",
                    names()
                )));
            }
        };
        let found = found.ok_or_else(|| {
            Failure::usage(format_args!(
                "no application is called '{}'; the configuration has {}",
                self.application.as_deref().unwrap_or_default(),
                names()
            ))
        })?;
        let period = Duration::from_nanos(found.period.as_nanos());
        Ok((&found.name, period))
    }

    fn await_result(
        &self,
        node: &Station,
        name: &str,
        (ordered, trial): (Instant, Duration),
    ) -> Outcome {
        let timeout = trial + ON_THE_WAY;
        let mut running_since = None;
        while ordered.elapsed() < timeout {
            thread::sleep(Duration::from_millis(5));
            // Before the answer: a failure that is as old happened before the order.
            let since = ordered.elapsed();
            let status = node.request(&Request::Status).map_err(Failure::refused)?;
            let Some(standing) = Standing::of(&status, name) else {
                return Err(Failure::refused(format_args!(
                    "'{name}' is not in the status of '{}' any more: another configuration was applied",
                    self.node
                )));
            };
            let later = standing.fault.as_ref().filter(|(ago, _)| *ago < since);
            if let Some((_, cause)) = later {
                return Err(not_resumed(name, &standing, cause));
            }
            // It is not stopped while it is being tried, either.
            running_since = running_since.filter(|_| !standing.stopped);
            if !standing.stopped && running_since.get_or_insert(since).saturating_add(trial) < since
            {
                return Ok(self.done(name, since));
            }
        }
        Err(Failure::refused(format_args!(
            "'{name}' has not gone on after {:.1} s; see `bumpless status` for role and cause",
            timeout.as_secs_f64()
        )))
    }

    fn done(&self, name: &str, took: Duration) -> ExitCode {
        if self.json {
            output::print_line(json!({
                "schema": "bumpless.resume/1", "node": self.node, "application": name,
                "took_ms": took.as_secs_f64() * 1e3,
            }));
        } else {
            output::print_line(format_args!("'{name}' goes on, on '{}'", self.node));
        }
        ExitCode::SUCCESS
    }
}
