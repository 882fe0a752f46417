//! What became of a change that was withdrawn: a node that decides may have decided, and one that follows must, so only the
//! nodes know which configuration is in force.

use std::thread;
use std::time::{Duration, Instant};

use bumpless_node::control::Request;
use serde_json::Value;

use super::{Asked, LOOK};

/// How long nodes are asked after a withdrawal: one that is bound is free when its partner is heard.
const SETTLE: Duration = Duration::from_secs(5);

/// Which configuration is in force on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InForce {
    Old,
    Next,
    /// It still has the change before it.
    Open,
    /// It does not answer.
    Unknown,
}

impl InForce {
    /// As the `configuration` of a status tells it of the change to the one with this fingerprint.
    fn of(configuration: Option<&Value>, fingerprint: &str) -> Self {
        match configuration {
            None => Self::Unknown,
            Some(it) if it["fingerprint"] == fingerprint => Self::Next,
            Some(it) if it["next"] == fingerprint && !it["change"].is_null() => Self::Open,
            Some(_) => Self::Old,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Old => "has the old configuration in force",
            Self::Next => "has the new configuration in force",
            Self::Open => "still has the change before it",
            Self::Unknown => "does not answer",
        }
    }
}

/// What is in force on the nodes that were asked, by name.
#[derive(Debug)]
pub(super) struct Ending(Vec<(String, InForce)>);

impl Ending {
    /// Withdraws on `prepared` what can be withdrawn, and asks `nodes` until all have one configuration in force, for 5 s at most.
    pub(super) fn withdrawn(prepared: &[&Asked], nodes: &[Asked], fingerprint: &str) -> Self {
        for node in prepared {
            // A refusal says that it is bound, or done; what it came to is asked below.
            let _ = node.station.request(&Request::Withdraw);
        }
        let began = Instant::now();
        loop {
            let of = |node: &Asked| {
                let configuration = node.configuration().ok();
                let in_force = InForce::of(configuration.as_ref(), fingerprint);
                (node.name.clone(), in_force)
            };
            let ending = Self(nodes.iter().map(of).collect());
            if ending.is(InForce::Old) || ending.is(InForce::Next) || began.elapsed() >= SETTLE {
                return ending;
            }
            thread::sleep(LOOK);
        }
    }

    fn is(&self, wanted: InForce) -> bool {
        self.0.iter().all(|(_, in_force)| *in_force == wanted)
    }

    /// Whether the change was made on all that were asked, before it could be withdrawn.
    pub(super) fn is_made(&self) -> bool {
        self.is(InForce::Next)
    }

    /// For people.
    pub(super) fn told(&self) -> String {
        if self.is_made() {
            return "it could not be withdrawn any more: the change is made".into();
        }
        let name = |(name, _): &(String, InForce)| format!("'{name}'");
        let names: Vec<_> = self.0.iter().map(name).collect();
        if self.is(InForce::Old) {
            let names = names.join(" and ");
            return format!(
                "the change is withdrawn: the old configuration is in force on {names}"
            );
        }
        let each = |(name, in_force): &(String, InForce)| format!("'{name}' {}", in_force.words());
        let each: Vec<_> = self.0.iter().map(each).collect();
        format!(
            "it is not known yet which configuration both end with: {}; ask again with `bumpless status`",
            each.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ending(left: Option<Value>, right: Option<Value>) -> Ending {
        let of = |name: &str, configuration: Option<Value>| {
            let in_force = InForce::of(configuration.as_ref(), "beef");
            (name.to_owned(), in_force)
        };
        Ending(vec![of("left", left), of("right", right)])
    }

    #[test]
    fn after_a_withdrawal_only_what_the_nodes_say_is_told() {
        let old = json!({"fingerprint": "aa", "next": null, "change": null});
        let other = json!({"fingerprint": "aa", "next": "cc", "change": "being prepared"});
        let bound = json!({"fingerprint": "aa", "next": "beef", "change": "being made"});
        let made = json!({"fingerprint": "beef", "next": "beef", "change": "made; cleared"});
        let told = |left: &Value, right: Option<&Value>| {
            let ending = ending(Some(left.clone()), right.cloned());
            (ending.is_made(), ending.told())
        };
        for next in [&old, &other] {
            let (is_made, words) = told(&old, Some(next));
            assert!(
                !is_made && words.contains("old configuration is in force on 'left' and 'right'")
            );
        }
        assert!(told(&made, Some(&made)).0);
        for (left, right, open) in [
            (&old, Some(&made), "'right' has the new"),
            (&old, Some(&bound), "'right' still has the change"),
            (&made, None, "'right' does not answer"),
        ] {
            let (is_made, words) = told(left, right);
            assert!(!is_made && words.contains("not known yet"), "{words}");
            assert!(words.contains(open), "{words}");
        }
    }
}
