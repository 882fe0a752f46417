//! `bumpless switchover`: hand the primary role to the other node, on order.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use bumpless_node::control::{Request, Station};
use clap::Args;
use serde_json::{Value, json};

use crate::output::{self, Failure, Outcome};

/// How long an order and its answer may be under way beyond the hand-over itself.
const ON_THE_WAY: Duration = Duration::from_secs(2);

/// Hand the primary role to the other node without a bump
#[derive(Debug, Args)]
pub struct Switchover {
    /// The pair's configuration file
    config: PathBuf,
    /// The node to ask; either of the group's
    #[arg(long, value_name = "NAME")]
    node: String,
    /// The group; may be left out where the configuration has only one
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// Print the result as JSON (schema bumpless.switchover/1)
    #[arg(long)]
    json: bool,
}

impl Switchover {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let json = self.json;
        self.execute().map_err(|failure| failure.in_json(json))
    }

    fn execute(self) -> Outcome {
        let config = output::load(&self.config, self.json)?;
        let node = Station::of(&config, output::find_node(&config, &self.node)?);
        let patience = Duration::from_nanos(config.hand_over_time().as_nanos()) + ON_THE_WAY;
        let before = self.role(&node.request(&Request::Status).map_err(Failure::refused)?)?;
        let order = Request::Switchover {
            group: self.group.clone(),
        };
        let reply = node.request(&order).map_err(Failure::refused)?;
        if let Some(error) = reply["error"].as_str() {
            return Err(Failure::refused(error));
        }
        let started = Instant::now();
        while started.elapsed() < patience {
            let status = node.request(&Request::Status).map_err(Failure::refused)?;
            let role = self.role(&status)?;
            if role != before && (role == "primary" || role == "backup") {
                return Ok(self.done(&before, &role, started.elapsed()));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Err(Failure::refused(format_args!(
            "'{}' is still {before} after {:.1} s; see `bumpless status` on both nodes for the cause",
            self.node,
            patience.as_secs_f64()
        )))
    }

    fn role(&self, status: &Value) -> Result<String, Failure> {
        let groups = status["groups"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let wanted = |group: &&Value| {
            self.group
                .as_deref()
                .is_none_or(|name| group["name"] == name)
        };
        groups
            .iter()
            .find(wanted)
            .and_then(|group| group["role"].as_str())
            .map(str::to_owned)
            .ok_or_else(|| Failure::usage(format_args!("node '{}' has no such group", self.node)))
    }

    fn done(&self, before: &str, after: &str, took: Duration) -> ExitCode {
        if self.json {
            output::print_line(json!({
                "schema": "bumpless.switchover/1", "node": self.node, "from": before, "to": after,
                "took_ms": took.as_secs_f64() * 1e3,
            }));
        } else {
            output::print_line(format_args!(
                "'{}' went from {before} to {after}",
                self.node
            ));
        }
        ExitCode::SUCCESS
    }
}
