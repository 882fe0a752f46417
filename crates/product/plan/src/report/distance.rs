//! How far apart a pair is, and what follows, for people and programs.

use std::fmt::Write;

use bumpless_base::Duration;
use serde_json::{Value, json};

use super::table::Table;
use super::units;
use crate::distance::{Distance, Far};

/// The longest lease that a witness grants unless it is told otherwise (`--longest-lease-ms`).
const LONGEST_LEASE: Duration = Duration::from_millis(1_000);

fn time(span: Duration) -> String {
    units::time_up(span.as_nanos())
}

/// Ways that are as long are told together.
fn ways(word: &str, ways: &[(String, Duration)]) -> String {
    let mut told: Vec<(Duration, Vec<&str>)> = Vec::new();
    for (name, way) in ways {
        match told.iter_mut().find(|(known, _)| known == way) {
            Some((_, names)) => names.push(name),
            None => told.push((*way, vec![name])),
        }
    }
    let each = told
        .iter()
        .map(|(way, names)| format!("{} {word} {}", time(*way), names.join(" and ")));
    each.collect::<Vec<_>>().join(", ")
}

/// What is known of a group's distance, in a sentence.
pub fn head(distance: &Distance) -> String {
    let mut text = format!(
        "Distance of {} and {}, there and back: {}",
        distance.nodes.first().map_or("", String::as_str),
        distance.nodes.last().map_or("", String::as_str),
        ways("over", &distance.networks)
    );
    if !distance.references.is_empty() {
        let _ = write!(text, "; {}", ways("to", &distance.references));
    }
    text
}

/// What the lease is and has to be, and how soon a backup takes over.
pub fn lease(distance: &Distance) -> String {
    let timing = &distance.timing;
    let mut text = format!(
        "A lease of {} (least: {}); a primary that ends is silent within {}, replaced within {}.",
        time(timing.lease),
        time(distance.least_lease),
        time(distance.detection),
        time(distance.takeover)
    );
    if timing.lease > LONGEST_LEASE {
        let _ = write!(
            text,
            " Start the witnesses with --longest-lease-ms {}.",
            timing.lease.as_nanos().div_ceil(1_000_000)
        );
    }
    text
}

/// The longest gaps between outputs, by application.
pub fn gaps(distance: &Distance) -> Table {
    let mut table = Table::new(&[
        "application",
        "least deadline",
        "least period",
        "gap: primary ends",
        "in order",
        "backup ends",
    ]);
    for Far {
        name, least, gaps, ..
    } in &distance.applications
    {
        table.row([
            name.clone(),
            time(least.deadline),
            time(least.period),
            time(gaps.unordered),
            time(gaps.ordered),
            time(gaps.backup),
        ]);
    }
    table
}

/// All of it for a terminal.
pub fn text(distances: &[Distance]) -> String {
    let mut text = String::new();
    for distance in distances {
        let _ = writeln!(text, "\n{}", head(distance));
        for refusal in &distance.refusals {
            let _ = writeln!(text, "  {}", refusal.text);
        }
        let _ = writeln!(text, "  {}", lease(distance));
        if !distance.applications.is_empty() {
            let _ = write!(text, "{}", gaps(distance).text());
        }
    }
    text
}

/// For `bumpless.plan/1`.
pub fn json(distances: &[Distance]) -> Value {
    let ways = |ways: &[(String, Duration)]| -> Value {
        let each = ways.iter();
        each.map(|(name, way)| json!({"name": name, "round_trip_ns": way.as_nanos()}))
            .collect()
    };
    let applications = |distance: &Distance| -> Value {
        let each = distance.applications.iter().map(|far| {
            json!({
                "name": far.name,
                "field_round_trip_ns": far.field.as_nanos(),
                "least": far.least,
                "gap": far.gaps,
            })
        });
        each.collect()
    };
    let each = distances.iter().map(|it| {
        json!({
            "group": it.group,
            "nodes": it.nodes,
            "networks": ways(&it.networks),
            "references": ways(&it.references),
            "heartbeat_ns": it.timing.heartbeat.as_nanos(),
            "lease_ns": it.timing.lease.as_nanos(),
            "least_lease_ns": it.least_lease.as_nanos(),
            "detection_ns": it.detection.as_nanos(),
            "takeover_ns": it.takeover.as_nanos(),
            "applications": applications(it),
            "refusals": it.refusals,
        })
    });
    each.collect()
}
