//! What an event looks like: a line of `bumpless.event/1` (spec/events.md), or of words.

use bumpless_base::{Instant, Role, TableIndex};
use serde_json::{Map, Value, json};

use crate::event::NodeEvent;
use crate::membership::ApplicationNumber;

/// The schema of every line.
const SCHEMA: &str = "bumpless.event/1";

/// Names of everything that events refer to by position.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// This node.
    pub node: String,
    /// Groups in configuration order.
    pub groups: Vec<String>,
    /// Applications and their channels, by number.
    pub applications: Vec<(String, u16)>,
    /// Networks in configuration order.
    pub links: Vec<String>,
    /// Partners of this node.
    pub partners: Vec<String>,
}

/// The word for a role in logs and status.
pub const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Starting => "starting",
        Role::Backup => "backup",
        Role::Primary => "primary",
        Role::Stopped => "stopped",
    }
}

/// The event as a line of the log.
pub fn render(names: &Names, at: Instant, event: &NodeEvent) -> Value {
    let (name, fields) = fields(names, event);
    let mut line = begin(&names.node, at, name);
    if let Value::Object(fields) = fields {
        line.extend(
            fields
                .into_iter()
                .filter(|(_, value)| value != &Value::from("")),
        );
    }
    Value::Object(line)
}

/// What every line begins with.
fn begin(node: &str, at: Instant, event: &str) -> Map<String, Value> {
    let mut line = Map::new();
    line.insert("schema".into(), SCHEMA.into());
    line.insert("time_ns".into(), at.as_nanos().into());
    line.insert("node".into(), node.into());
    line.insert("event".into(), event.into());
    line
}

/// The line that says that `count` events had no room, as found at `at`.
pub(super) fn events_lost(node: &str, at: Instant, count: u64) -> Value {
    let mut line = begin(node, at, "events_lost");
    line.insert("count".into(), count.into());
    Value::Object(line)
}

/// The line that says what weakens the node.
pub(super) fn weakness(names: &Names, at: Instant, text: &str) -> Value {
    let mut line = begin(&names.node, at, "weakness");
    line.insert("cause".into(), text.into());
    Value::Object(line)
}

impl Names {
    fn group(&self, at: u16) -> &str {
        named(&self.groups, at.into())
    }

    fn application(&self, at: ApplicationNumber) -> &str {
        let found = self.applications.get(at.index());
        found.map_or("", |(name, _)| name)
    }

    fn channel(&self, at: ApplicationNumber) -> u16 {
        let found = self.applications.get(at.index());
        found.map_or(0, |&(_, channel)| channel)
    }
}

fn named(names: &[String], at: usize) -> &str {
    names.get(at).map_or("", String::as_str)
}

/// The event's name, and what the line says of it; texts that are empty are left out.
fn fields(names: &Names, event: &NodeEvent) -> (&'static str, Value) {
    match *event {
        NodeEvent::Started { session } => (
            "started",
            json!({"pid": std::process::id(), "session": format!("{session:016x}")}),
        ),
        NodeEvent::Stopping => ("stopping", json!({})),
        NodeEvent::Role {
            group,
            from,
            to,
            epoch,
            cause,
        } => (
            "role",
            json!({
                "group": names.group(group), "from": role_name(from), "to": role_name(to),
                "epoch": epoch.0, "cause": cause.as_str(),
            }),
        ),
        NodeEvent::Redundancy {
            group,
            state,
            cause,
        } => (
            "redundancy",
            json!({"group": names.group(group), "state": state.name(), "cause": cause.as_str()}),
        ),
        NodeEvent::Link { partner, link, up } => {
            let partner = named(&names.partners, partner.0.into());
            let link = named(&names.links, link.0.into());
            ("link", json!({"partner": partner, "link": link, "up": up}))
        }
        NodeEvent::LeaseLapsed { group } => (
            "lease",
            json!({"group": names.group(group), "lapsed": true}),
        ),
        NodeEvent::Stall { length } => {
            let length = length.as_nanos() as f64 / 1e3;
            ("stall", json!({"length_us": length}))
        }
        NodeEvent::Notice {
            name,
            group,
            application,
            cause,
        } => {
            let group = group.map_or("", |group| names.group(group));
            let application = application.map_or("", |at| names.application(at));
            let cause = cause.as_str();
            let fields = json!({"group": group, "application": application, "cause": cause});
            (name, fields)
        }
        NodeEvent::Transfer { .. }
        | NodeEvent::Received { .. }
        | NodeEvent::Overdue { .. }
        | NodeEvent::Output { .. }
        | NodeEvent::Overrun { .. } => of_application(names, event),
    }
}

/// As [`fields`], for what happens to an application in each of its cycles.
fn of_application(names: &Names, event: &NodeEvent) -> (&'static str, Value) {
    match *event {
        NodeEvent::Transfer {
            application,
            completed,
            cause,
        } => {
            let (name, channel) = (names.application(application), names.channel(application));
            let fields = match completed {
                Some((cycle, took)) => json!({
                    "application": name, "channel": channel, "outcome": "safe",
                    "cycle": cycle, "took_us": took.as_nanos() as f64 / 1e3,
                }),
                None => json!({
                    "application": name, "channel": channel, "outcome": "failed", "cause": cause.as_str(),
                }),
            };
            ("transfer", fields)
        }
        NodeEvent::Received { application, cycle } => (
            "received",
            json!({"application": names.application(application), "cycle": cycle}),
        ),
        NodeEvent::Output {
            application,
            epoch,
            cycle,
            outcome,
            cause,
        } => (
            "output",
            json!({
                "application": names.application(application), "epoch": epoch.0, "cycle": cycle,
                "outcome": outcome.name(), "cause": cause.as_str(),
            }),
        ),
        NodeEvent::Overrun {
            application,
            skipped,
        } => (
            "overrun",
            json!({"application": names.application(application), "skipped": skipped}),
        ),
        NodeEvent::Overdue { application } => (
            "overdue",
            json!({"application": names.application(application)}),
        ),
        _ => ("", Value::Null),
    }
}

/// A line of words: seconds on the monotonic clock, node, event, then the fields.
pub(super) fn plain(line: &Value) -> String {
    let word = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
    let seconds = line["time_ns"].as_u64().unwrap_or_default() as f64 / 1e9;
    let mut text = format!("{seconds:>12.6} {} {}", word("node"), word("event"));
    let known = ["schema", "time_ns", "node", "event"];
    for (key, value) in line
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| !known.contains(&key.as_str()))
    {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        text.push_str(&format!(" {key}={value}"));
    }
    text
}
