//! What an event looks like: a line of `bumpless.event/1` (spec/events.md), or of words.

use bumpless_base::Instant;
use bumpless_wire::Role;
use serde_json::{Map, Value, json};

use crate::event::NodeEvent;

/// The schema of every line.
const SCHEMA: &str = "bumpless.event/1";

/// Names of everything that events refer to by position.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// This node.
    pub node: String,
    /// Groups in configuration order.
    pub groups: Vec<String>,
    /// Applications and their channels in configuration order.
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

fn fields(names: &Names, event: &NodeEvent) -> (&'static str, Value) {
    let group = |g: u16| {
        names
            .groups
            .get(usize::from(g))
            .cloned()
            .unwrap_or_default()
    };
    let app = |a: u16| {
        names
            .applications
            .get(usize::from(a))
            .cloned()
            .unwrap_or_default()
    };
    let link = |l: u8| names.links.get(usize::from(l)).cloned().unwrap_or_default();
    match *event {
        NodeEvent::Started { session } => (
            "started",
            json!({"pid": std::process::id(), "session": format!("{session:016x}")}),
        ),
        NodeEvent::Stopping => ("stopping", json!({})),
        NodeEvent::Role {
            group: g,
            from,
            to,
            epoch,
            cause,
        } => (
            "role",
            json!({"group": group(g), "from": role_name(from), "to": role_name(to), "epoch": epoch.0, "cause": cause.as_str()}),
        ),
        NodeEvent::Redundancy {
            group: g,
            state,
            cause,
        } => (
            "redundancy",
            json!({"group": group(g), "state": state.name(), "cause": cause.as_str()}),
        ),
        NodeEvent::Link {
            partner,
            link: l,
            up,
        } => {
            let partner = names
                .partners
                .get(usize::from(partner.0))
                .cloned()
                .unwrap_or_default();
            (
                "link",
                json!({"partner": partner, "link": link(l.0), "up": up}),
            )
        }
        NodeEvent::Transfer {
            application,
            completed,
            cause,
        } => {
            let (name, channel) = app(application);
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
            json!({"application": app(application).0, "cycle": cycle}),
        ),
        NodeEvent::Overdue { application } => {
            ("overdue", json!({"application": app(application).0}))
        }
        NodeEvent::Output {
            application,
            epoch,
            cycle,
            outcome,
            cause,
        } => (
            "output",
            json!({"application": app(application).0, "epoch": epoch.0, "cycle": cycle, "outcome": outcome.name(), "cause": cause.as_str()}),
        ),
        NodeEvent::Overrun {
            application,
            skipped,
        } => (
            "overrun",
            json!({"application": app(application).0, "skipped": skipped}),
        ),
        NodeEvent::LeaseLapsed { group: g } => {
            ("lease", json!({"group": group(g), "lapsed": true}))
        }
        NodeEvent::Stall { length } => (
            "stall",
            json!({"length_us": length.as_nanos() as f64 / 1e3}),
        ),
        NodeEvent::Notice {
            name,
            group: g,
            application,
            cause,
        } => {
            let application = application.map(|a| app(a).0).unwrap_or_default();
            (
                name,
                json!({"group": g.map(group).unwrap_or_default(), "application": application, "cause": cause.as_str()}),
            )
        }
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
