//! The ServiceLevel of a node: OPC 10000-4, 6.6.2.4.2; which value for what stands in spec/opcua.md (O-20 to O-26).

use serde_json::Value;

/// The bridge is ending: clients go to the other server.
pub const MAINTENANCE: u8 = 0;
/// The node does not answer, or has not decided anything yet.
pub const NO_DATA: u8 = 1;
/// A primary that may not write outputs, or a backup that could not take over.
pub const DEGRADED_IN_DOUBT: u8 = 100;
/// A backup that does not reach the process.
pub const DEGRADED_BACKUP: u8 = 150;
/// A primary that does not reach the process.
pub const DEGRADED_PRIMARY: u8 = 199;
/// A backup that could take over at any moment.
pub const HEALTHY_BACKUP: u8 = 220;
/// The primary.
pub const HEALTHY_PRIMARY: u8 = 255;

/// Figures of a node that are older than this, in milliseconds, count as none: its data plane stands still.
const STALE_MS: f64 = 1000.0;

/// The level of a node with this status (`bumpless.status/1`): that of its lowest group.
pub fn of(status: &Value) -> u8 {
    let age = status["snapshot_age_ms"].as_f64();
    if age.is_none_or(|age| age > STALE_MS) {
        return NO_DATA;
    }
    let groups = status["groups"].as_array().map_or(&[][..], |it| it);
    let levels = groups.iter().map(|group| of_group(group, status));
    levels.min().unwrap_or(NO_DATA)
}

fn of_group(group: &Value, status: &Value) -> u8 {
    let reaches_the_process = reaches_the_process(group, status);
    match group["role"].as_str() {
        Some("primary") if group["writes_outputs"] != true => DEGRADED_IN_DOUBT,
        Some("primary") if !reaches_the_process => DEGRADED_PRIMARY,
        Some("primary") => HEALTHY_PRIMARY,
        Some("backup") if group["synced"] != true => DEGRADED_IN_DOUBT,
        Some("backup") if !reaches_the_process => DEGRADED_BACKUP,
        Some("backup") => HEALTHY_BACKUP,
        _ => NO_DATA,
    }
}

/// Whether every application of the group runs, and every field device that it cannot do without answers this node.
fn reaches_the_process(group: &Value, status: &Value) -> bool {
    let applications = status["applications"].as_array().map_or(&[][..], |it| it);
    let mut of_this_group = applications
        .iter()
        .filter(|application| application["group"] == group["name"]);
    of_this_group.all(|application| {
        application["field"]["answers"] != false && application["program"]["stopped"] != true
    })
}

/// So many looks in a row must see that the process is not reached: a single answer of a device that comes late is no
/// reason for clients to change servers.
const LOOKS: u32 = 3;

/// The level that is shown, over time.
#[derive(Debug, Default)]
pub struct Steady {
    shown: Option<u8>,
    /// Looks in a row that saw that the process is not reached.
    unreached: u32,
}

impl Steady {
    /// What to show when `level` is seen.
    pub fn see(&mut self, level: u8) -> u8 {
        let healthy = match level {
            DEGRADED_PRIMARY => Some(HEALTHY_PRIMARY),
            DEGRADED_BACKUP => Some(HEALTHY_BACKUP),
            _ => None,
        };
        self.unreached = healthy.map_or(0, |_| self.unreached.saturating_add(1));
        let stays = healthy.is_some() && self.shown == healthy && self.unreached < LOOKS;
        if !stays {
            self.shown = Some(level);
        }
        self.shown.unwrap_or(level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_late_answer_of_a_device_changes_no_level_and_a_silent_one_does() {
        let seen = |levels: &[u8]| {
            let mut steady = Steady::default();
            levels
                .iter()
                .map(|&level| steady.see(level))
                .collect::<Vec<_>>()
        };
        assert_eq!(seen(&[255, 199, 199, 255, 199, 199]), [255; 6]);
        assert_eq!(
            seen(&[255, 199, 199, 199, 199, 255]),
            [255, 255, 255, 199, 199, 255]
        );
        assert_eq!(seen(&[220, 150, 150, 150]), [220, 220, 220, 150]);
        // Whatever else is seen is shown at once.
        assert_eq!(
            seen(&[255, 1, 199, 220, 199, 100]),
            [255, 1, 199, 220, 199, 100]
        );
    }

    fn node(role: &str, good: bool) -> Value {
        json!({
            "snapshot_age_ms": 20.0,
            "groups": [{"name": "tank", "role": role, "writes_outputs": good, "synced": good}],
            "applications": [{"group": "tank", "field": {"answers": true}, "program": {"stopped": false}}],
        })
    }

    #[test]
    fn a_healthy_pair_has_both_in_the_healthy_range_and_the_primary_above() {
        assert_eq!(of(&node("primary", true)), 255);
        let backup = of(&node("backup", true));
        assert!((200..255).contains(&backup), "{backup}");
    }

    #[test]
    fn who_may_not_write_or_could_not_take_over_is_degraded() {
        for role in ["primary", "backup"] {
            let level = of(&node(role, false));
            assert!((2..200).contains(&level), "{role}: {level}");
        }
    }

    #[test]
    fn without_the_process_both_are_degraded_and_the_primary_stays_above() {
        let cut_off = |role, field: &str, value: bool| {
            let mut status = node(role, true);
            match field {
                "answers" => status["applications"][0]["field"]["answers"] = value.into(),
                _ => status["applications"][0]["program"]["stopped"] = value.into(),
            }
            of(&status)
        };
        for (field, value) in [("answers", false), ("stopped", true)] {
            let (primary, backup) = (
                cut_off("primary", field, value),
                cut_off("backup", field, value),
            );
            assert!(primary < 200 && backup < primary, "{primary} {backup}");
        }
    }

    #[test]
    fn a_node_that_has_not_decided_or_stands_still_has_no_data() {
        for role in ["starting", "stopped", "something"] {
            assert_eq!(of(&node(role, true)), NO_DATA, "{role}");
        }
        let mut still = node("primary", true);
        still["snapshot_age_ms"] = 1000.1.into();
        assert_eq!(of(&still), NO_DATA);
        for broken in [
            json!({}),
            json!([]),
            json!({"snapshot_age_ms": 1, "groups": "no"}),
        ] {
            assert_eq!(of(&broken), NO_DATA, "{broken}");
        }
    }

    #[test]
    fn of_several_groups_the_lowest_counts() {
        let mut both = node("primary", true);
        let second = json!({"name": "press", "role": "backup", "synced": true});
        both["groups"].as_array_mut().unwrap().push(second);
        assert_eq!(of(&both), HEALTHY_BACKUP);
    }

    #[test]
    fn a_device_of_another_group_says_nothing_of_this_one() {
        let mut status = node("primary", true);
        status["applications"][0]["group"] = "press".into();
        status["applications"][0]["field"]["answers"] = false.into();
        assert_eq!(of(&status), HEALTHY_PRIMARY);
    }
}
