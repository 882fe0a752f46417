//! What a server says of what happens, and of how things stand.

use bumpless_base::{Duration, Instant};
use bumpless_sessions::{Ended, absent};
use serde_json::{Value, json};

use super::Service;
use crate::callers::Outcome;
use crate::event::Events;

/// Of those that are refused one is told in so long.
const TELL_REFUSED: Duration = Duration::from_secs(1);

/// Who did not show who it is.
#[derive(Default)]
pub struct Refusals {
    count: u64,
    /// Whom and why last.
    last: Option<String>,
    /// When one is told again.
    tell_at: Instant,
}

impl Service {
    pub(super) fn tell(&mut self, outcome: Outcome, now: Instant) {
        match outcome {
            Outcome::Came(name) => {
                let words = format!("{} is there", name.short());
                self.events
                    .say("came", json!({"member": name.short()}), &words);
            }
            Outcome::Left(name, why) => {
                let words = format!("{} is not there any more: {why}", name.short());
                self.events
                    .say("left", json!({"member": name.short()}), &words);
            }
            Outcome::Refused(from, why) => {
                let refusals = &mut self.refusals;
                refusals.count += 1;
                let words = format!("{from} was refused: {why}");
                // Who connects and leaves again has only looked.
                if now >= refusals.tell_at && !matches!(why, Ended::System(_)) {
                    refusals.tell_at = now + TELL_REFUSED;
                    let about = json!({"from": from.to_string(), "refused": refusals.count});
                    self.events.say("refused", about, &words);
                }
                refusals.last = Some(words);
            }
        }
    }

    pub(super) fn tell_sealing(&self, at: usize, sealing: Option<(u64, u16)>) {
        let group = self.groups[at].name();
        match sealing {
            Some((number, id)) => self.events.say(
                "sealing",
                json!({"group": group, "number": number, "key": format!("{id:04x}")}),
                &format!("group '{group}' seals with key {id:04x}, number {number}"),
            ),
            None => self.events.say(
                "no_keys",
                json!({"group": group}),
                &format!("group '{group}' has no keys"),
            ),
        }
    }

    pub(super) fn status(&self, now: Instant) -> Value {
        let (members, guests) = self.callers.counts();
        let groups = self.groups.iter().enumerate();
        let listen = self.listeners.iter().filter_map(|it| it.local_addr().ok());
        let listen: Vec<_> = listen.collect();
        json!({
            "schema": "bumpless.key-server.status/1",
            "name": self.name,
            "site": self.site,
            "problem": self.problem,
            "cares": self.identities.cares(),
            "absent_addresses": absent(&listen).iter().map(ToString::to_string).collect::<Vec<_>>(),
            "connections": members,
            "unknown_connections": guests,
            "refused": self.refusals.count,
            "refused_last": self.refusals.last,
            "groups": groups.map(|(at, group)| group.status(&self.callers.connected(at), now)).collect::<Vec<_>>(),
        })
    }
}

/// A member has the next keys no more.
pub fn given_up(events: &Events, group: &str, name: &str, why: &str) {
    events.say(
        "given_up",
        json!({"group": group, "member": name, "why": why}),
        &format!("{name} is {why}: the keys of group '{group}' are rolled, and it has none of the next ones"),
    );
}
