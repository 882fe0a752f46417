//! What status shows of a group.

use bumpless_base::{Duration, Instant};
use serde_json::{Value, json};

use super::{Group, Source};

impl Group {
    /// What status shows of it; `connected`: who is there, by short name.
    pub fn status(&self, connected: &[String], now: Instant) -> Value {
        let schedule = self.schedule();
        let sealing = self.sealing(now);
        let ends = schedule.sealing(now).and(schedule.ends_at());
        let follows = match &self.source {
            Source::Leads(_) => Value::Null,
            Source::Follows(member) => json!({
                "server": member.server().map(|it| it.name.short().to_owned()),
                "answered_ago_s": member.answered().map(|at| seconds(now.since(at))),
                "problems": member.problems().map(|(server, why)| json!({
                    "server": server.name.short(), "problem": why,
                })).collect::<Vec<_>>(),
            }),
        };
        json!({
            "group": self.name(),
            "leads": matches!(self.source, Source::Leads(_)),
            "follows": follows,
            "lifetime_s": seconds(self.settings.terms.lifetime),
            "in_advance": self.settings.terms.future,
            "era": schedule.era(),
            "number": sealing.map(|(number, _)| number),
            "key": sealing.map(|(_, id)| format!("{id:04x}")),
            "keys": schedule.keys().len(),
            "ends_in_s": ends.map(|at| seconds(at.since(now))),
            "rolls": self.rolls,
            "roll_waits": self.roll,
            "members": self.settings.members.iter().map(|name| json!({
                "member": name,
                "connected": connected.contains(name),
                "has_keys": self.holders.iter().any(|it| it.name == *name),
            })).collect::<Vec<_>>(),
        })
    }
}

fn seconds(span: Duration) -> f64 {
    span.as_nanos() as f64 / 1e9
}
