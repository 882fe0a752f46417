//! How fast counters of a daemon's status grow: for the live view.

use serde_json::{Map, Value, json};

/// Counters of the whole daemon.
const TOTALS: [&str; 3] = ["counters", "discarded", "control_refused"];
/// Counters of a network of the host, of one in which a session sends, of one in which a session receives.
const OF_NETWORK: [&str; 2] = ["came", "not_taken"];
const OF_SENDING: [&str; 4] = ["sent", "again", "asked", "answered"];
const OF_RECEIVING: [&str; 4] = ["first", "duplicate", "very_late", "wrong_network"];

/// Adds to `now` by how much counters have grown in a second since `before`, which is an earlier status of the same
/// daemon: `per_s` beside a network's counters, `counters_per_s` and the like beside those of the whole daemon. Of a daemon
/// that has been started again, and of what was not there before, nothing is said.
pub fn add(now: &mut Value, before: &Value) {
    let uptime = |status: &Value| status["uptime_s"].as_f64().unwrap_or_default();
    let seconds = uptime(now) - uptime(before);
    if now["pid"] != before["pid"] || seconds <= 0.0 {
        return;
    }
    add_to_all(
        &mut now["networks"],
        &before["networks"],
        &OF_NETWORK,
        seconds,
    );
    add_to_sessions(now, before, "sending", &OF_SENDING, seconds);
    add_to_sessions(now, before, "receiving", &OF_RECEIVING, seconds);
    for name in TOTALS {
        let names: Vec<_> = now[name].as_object().into_iter().flatten().collect();
        let names: Vec<_> = names.iter().map(|(name, _)| name.as_str()).collect();
        let grown = grown(&now[name], &before[name], &names, seconds);
        now[format!("{name}_per_s")] = grown;
    }
}

fn add_to_sessions(now: &mut Value, before: &Value, direction: &str, names: &[&str], seconds: f64) {
    let earlier = before[direction].as_array().map_or(&[][..], Vec::as_slice);
    for session in now[direction].as_array_mut().into_iter().flatten() {
        let same = |it: &&Value| ["flow", "source"].iter().all(|key| it[key] == session[key]);
        if let Some(before) = earlier.iter().find(same) {
            add_to_all(
                &mut session["networks"],
                &before["networks"],
                names,
                seconds,
            );
        }
    }
}

fn add_to_all(now: &mut Value, before: &Value, names: &[&str], seconds: f64) {
    let earlier = before.as_array().map_or(&[][..], Vec::as_slice);
    for network in now.as_array_mut().into_iter().flatten() {
        if let Some(before) = earlier.iter().find(|it| it["ind"] == network["ind"]) {
            network["per_s"] = grown(network, before, names, seconds);
        }
    }
}

/// What has begun anew, and is less than before, is left out.
fn grown(now: &Value, before: &Value, names: &[&str], seconds: f64) -> Value {
    let rate = |name: &&str| {
        let (now, before) = (now[*name].as_u64()?, before[*name].as_u64().unwrap_or(0));
        let more = now.checked_sub(before)?;
        // Tenths: more would tell of the moment of asking.
        Some((
            (*name).to_owned(),
            json!((more as f64 / seconds * 10.0).round() / 10.0),
        ))
    };
    Value::Object(names.iter().filter_map(rate).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(pid: u32, uptime: f64, came: u64, sent: u64) -> Value {
        json!({
            "pid": pid, "uptime_s": uptime,
            "networks": [{"ind": 10, "came": came, "not_taken": 0}],
            "sending": [{"flow": "a", "networks": [{"ind": 10, "sent": sent, "again": 0}]}],
            "receiving": [],
            "counters": {"captured": came},
        })
    }

    #[test]
    fn rates_are_of_the_time_between_the_two_and_of_the_same_session() {
        let before = status(1, 10.0, 100, 40);
        let mut now = status(1, 12.0, 300, 45);
        add(&mut now, &before);
        assert_eq!(
            now["networks"][0]["per_s"],
            json!({"came": 100.0, "not_taken": 0.0})
        );
        assert_eq!(now["sending"][0]["networks"][0]["per_s"]["sent"], 2.5);
        assert_eq!(now["counters_per_s"]["captured"], 100.0);
        let mut other = status(1, 12.0, 300, 45);
        other["sending"][0]["flow"] = "b".into();
        add(&mut other, &before);
        assert_eq!(other["sending"][0]["networks"][0]["per_s"], Value::Null);
    }

    #[test]
    fn a_daemon_or_a_session_that_has_begun_anew_has_no_rate() {
        let before = status(1, 10.0, 100, 40);
        let mut restarted = status(2, 12.0, 300, 45);
        add(&mut restarted, &before);
        assert_eq!(restarted, status(2, 12.0, 300, 45));
        let mut anew = status(1, 12.0, 300, 3);
        add(&mut anew, &before);
        assert_eq!(
            anew["sending"][0]["networks"][0]["per_s"],
            json!({"again": 0.0})
        );
    }
}
