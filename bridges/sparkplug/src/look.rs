//! From what a node says to metrics: the edge node's own, and those of each application that it has in hand.

use std::collections::{BTreeMap, BTreeSet};

use bumpless_bridge::model::{Quality, Shown, entries};
use bumpless_bridge::node::Said;

use crate::metrics::Values;

/// Whether the node answers: the one metric that an edge node always has.
pub const ANSWERS: &str = "Answers";

/// What one look at a node gives.
#[derive(Debug, Default, PartialEq)]
pub struct Look {
    /// The edge node's metrics.
    pub node: Values,
    /// By application that has inputs or outputs, those whose values are what holds.
    pub applications: BTreeMap<String, Values>,
}

impl Look {
    /// Of a node that has `said` this; `None`: it does not answer.
    pub fn of(said: Option<&Said>) -> Self {
        let mut look = Self::default();
        let answers = Shown::Flag(said.is_some());
        look.node.insert(ANSWERS.into(), answers);
        let Some(said) = said else { return look };
        for entry in entries(&said.status, &said.values) {
            let folders: Vec<_> = entry.folders.iter().map(String::as_str).collect();
            if let ["Applications", application, side @ ("Inputs" | "Outputs")] = folders[..] {
                let values = look.applications.entry(application.into()).or_default();
                if entry.quality == Quality::Good && entry.value != Shown::Nothing {
                    values.insert(format!("{side}/{}", entry.name), entry.value);
                }
            } else if entry.value != Shown::Nothing {
                let name = folders.iter().copied().chain([entry.name.as_str()]);
                let name = name.collect::<Vec<_>>().join("/");
                look.node.insert(name, entry.value);
            }
        }
        look
    }
}

/// Metrics that change all the time and tell nobody what to do: they are told once in a while.
pub fn is_slow(name: &str) -> bool {
    const ENDS: [&str; 7] = ["S", "Ms", "Us", "Safe", "Cycle", "Drops", "Failures"];
    let last = name.rsplit('/').next().unwrap_or(name);
    name.starts_with("Counters/") || ENDS.iter().any(|end| last.ends_with(end))
}

/// Applications of which nothing is said any more.
pub fn gone<'a>(known: impl Iterator<Item = &'a String>, look: &Look) -> BTreeSet<String> {
    known
        .filter(|name| !look.applications.contains_key(*name))
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn said(fresh: bool, answers: bool) -> Said {
        Said {
            status: json!({
                "schema": "bumpless.status/1", "pair": "p", "uptime_s": 3.0,
                "groups": [{"name": "tank", "role": "primary", "epoch": 3}],
                "applications": [{"name": "levels", "group": "tank", "received_cycle": null}],
            }),
            values: json!({"applications": [{
                "name": "levels",
                "inputs": {"age_ms": 3.0, "fresh": fresh, "values": [
                    {"name": "level", "value": 1.5, "answers": answers},
                    {"name": "other", "value": 2.5, "answers": true},
                ]},
                "outputs": {"age_ms": null, "fresh": false, "values": [{"name": "pump", "value": null}]},
            }]}),
        }
    }

    #[test]
    fn only_what_holds_is_a_metric_of_an_application() {
        let of = |fresh, answers| {
            let look = Look::of(Some(&said(fresh, answers)));
            let names = look.applications["levels"].keys().cloned();
            names.collect::<Vec<_>>()
        };
        assert_eq!(of(true, true), ["Inputs/level", "Inputs/other"]);
        assert_eq!(of(true, false), ["Inputs/other"]);
        assert!(of(false, true).is_empty());
    }

    #[test]
    fn a_node_says_its_own_metrics_and_one_that_is_silent_says_that() {
        let look = Look::of(Some(&said(true, true)));
        assert_eq!(look.node[ANSWERS], Shown::Flag(true));
        assert_eq!(look.node["Groups/tank/Epoch"], Shown::Count(3));
        assert_eq!(
            look.node["Applications/levels/Group"],
            Shown::Text("tank".into())
        );
        assert!(!look.node.contains_key("Applications/levels/ReceivedCycle"));
        let silent = Look::of(None);
        assert_eq!(silent.node, [(ANSWERS.into(), Shown::Flag(false))].into());
        assert!(silent.applications.is_empty());
        let known = ["levels".to_owned()];
        assert_eq!(gone(known.iter(), &silent).len(), 1);
        assert!(gone(known.iter(), &look).is_empty());
    }

    #[test]
    fn what_people_wait_for_is_told_at_once_and_figures_once_in_a_while() {
        for slow in [
            "UptimeS",
            "Counters/x",
            "Links/A/RoundTripUs",
            "Applications/a/TransfersSafe",
        ] {
            assert!(is_slow(slow), "{slow}");
        }
        for quick in [
            "Groups/tank/Role",
            "Groups/tank/Epoch",
            "Links/A/Up",
            "Weaknesses",
            ANSWERS,
        ] {
            assert!(!is_slow(quick), "{quick}");
        }
        let odd = Said {
            status: Value::Null,
            values: json!([1]),
        };
        assert!(Look::of(Some(&odd)).applications.is_empty());
    }
}
