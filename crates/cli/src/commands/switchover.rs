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

/// A role as status names it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Role {
    Primary,
    Backup,
    /// On the way to one, or to the end.
    Other(String),
}

impl Role {
    fn of(name: &str) -> Self {
        match name {
            "primary" => Self::Primary,
            "backup" => Self::Backup,
            other => Self::Other(other.to_owned()),
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Primary => "primary",
            Self::Backup => "backup",
            Self::Other(name) => name,
        }
    }

    fn is_settled(&self) -> bool {
        !matches!(self, Self::Other(_))
    }
}

/// How a node stands in the group.
struct Standing {
    role: Role,
    partner: Option<String>,
    changed_ago: Duration,
    cause: String,
}

impl Standing {
    fn of(group: &Value) -> Option<Self> {
        let change = &group["last_change"];
        Some(Self {
            role: Role::of(group["role"].as_str()?),
            partner: group["partner"].as_str().map(str::to_owned),
            changed_ago: Duration::try_from_secs_f64(change["ago_s"].as_f64()?).ok()?,
            cause: change["cause"].as_str().unwrap_or_default().to_owned(),
        })
    }
}

/// Hand the primary role to the other node without a bump
///
/// The wish is fixed by the roles that the command finds: given on both nodes at once, it is one wish and one switchover.
/// Exit status 1 with the reason if it was refused or did not come about.
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
        let timeout = Duration::from_nanos(config.hand_over_time().as_nanos()) + ON_THE_WAY;
        let before = self.standing(&node)?;
        let order = Request::Switchover {
            group: self.group.clone(),
            to: match before.role {
                Role::Primary => before.partner.clone(),
                Role::Backup => Some(self.node.clone()),
                Role::Other(_) => None,
            },
        };
        let ordered = Instant::now();
        let reply = node.request(&order).map_err(Failure::refused)?;
        if let Some(error) = reply["error"].as_str() {
            return Err(Failure::refused(error));
        }
        self.await_change(&node, &before, (ordered, timeout))
    }

    fn await_change(
        &self,
        node: &Station,
        before: &Standing,
        (ordered, timeout): (Instant, Duration),
    ) -> Outcome {
        while ordered.elapsed() < timeout {
            let now = self.standing(node)?;
            if now.role != before.role && now.role.is_settled() {
                return Ok(self.done(before.role.name(), now.role.name(), ordered.elapsed()));
            }
            if now.role == before.role && now.changed_ago < ordered.elapsed() {
                return Err(Failure::refused(format_args!(
                    "'{}' is {} again: the roles have changed and changed back ({}); another order came, or a fault",
                    self.node,
                    now.role.name(),
                    now.cause,
                )));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Err(Failure::refused(format_args!(
            "'{}' is still {} after {:.1} s; see `bumpless status` on both nodes for the cause",
            self.node,
            before.role.name(),
            timeout.as_secs_f64()
        )))
    }

    fn standing(&self, node: &Station) -> Result<Standing, Failure> {
        let status = node.request(&Request::Status).map_err(Failure::refused)?;
        let wanted = |group: &&Value| {
            self.group
                .as_deref()
                .is_none_or(|name| group["name"] == name)
        };
        let groups = status["groups"].as_array();
        let group = groups.and_then(|groups| groups.iter().find(wanted));
        group.and_then(Standing::of).ok_or_else(|| {
            let names = groups.into_iter().flatten();
            let names: Vec<_> = names.filter_map(|group| group["name"].as_str()).collect();
            Failure::usage(format_args!(
                "node '{}' has no group '{}'; it has {}",
                self.node,
                self.group.as_deref().unwrap_or_default(),
                names.join(", ")
            ))
        })
    }

    fn done(&self, before: &str, after: &str, took: Duration) -> ExitCode {
        output::done("the roles have changed");
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
