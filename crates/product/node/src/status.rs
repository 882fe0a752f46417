//! What a node says of itself: its snapshot as `bumpless.status/1` (spec/status.md).

mod applications;
mod units;
mod weaknesses;

use bumpless_base::{Counter, Counters, Instant};
use bumpless_config::Config;
use serde_json::{Map, Value, json};

use self::applications::applications;
use self::units::millis;
pub use self::weaknesses::{
    flooded, refused_by_the_kernel, silent_devices, silent_fields, stopped_programs,
};
use crate::directory::Directory;
use crate::log::{Names, role_name};
use crate::snapshot::Snapshot;

/// Schema name and version of the status.
pub const SCHEMA: &str = "bumpless.status/1";

/// Renders `snapshot` as of `now`, with the `weaknesses` that hold.
pub fn render(
    snapshot: &Snapshot,
    directory: &Directory,
    names: &Names,
    weaknesses: &[String],
    now: Instant,
) -> Value {
    let config = &directory.config;
    json!({
        "schema": SCHEMA,
        "time_ns": now.as_nanos(),
        "snapshot_age_ms": millis(now.since(snapshot.at)),
        "pair": config.pair,
        "node": names.node,
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "session": format!("{:016x}", snapshot.session),
        "uptime_s": now.since(snapshot.started_at).as_secs_f64(),
        "groups": groups(snapshot, config, names, now),
        "applications": applications(snapshot, directory, names, now),
        "configuration": configuration(snapshot, directory),
        "links": links(snapshot, names, now),
        "weaknesses": weaknesses,
        "stalls": {"count": snapshot.stalls, "longest_ms": millis(snapshot.longest_stall)},
        "counters": counters(&snapshot.counters),
    })
}

fn groups(snapshot: &Snapshot, config: &Config, names: &Names, now: Instant) -> Vec<Value> {
    let members = snapshot
        .groups
        .iter()
        .zip(&config.groups)
        .filter(|(group, _)| group.member);
    members
        .map(|(group, settings)| {
            let reference = group
                .reference
                .and_then(|i| config.references.get(usize::from(i)));
            let candidates: Vec<_> = settings
                .candidates
                .iter()
                .map(|node| &config.nodes[usize::from(node.0)].name)
                .collect();
            json!({
                "name": settings.name,
                "candidates": candidates,
                "role": role_name(group.role),
                "epoch": group.epoch.0,
                "writes_outputs": group.permit_until.is_some_and(|until| until > snapshot.at),
                "redundancy": group.redundancy.name(),
                "cause": group.cause.as_str(),
                "synced": group.synced,
                "partner_heard": group.partner_heard,
                "partner": settings.candidates.iter()
                    .map(|node| &config.nodes[usize::from(node.0)].name)
                    .find(|name| **name != names.node),
                "reference": reference.map(|reference| &reference.name),
                "last_change": {
                    "ago_s": now.since(group.changed_at).as_secs_f64(),
                    "cause": group.change_cause.as_str(),
                },
            })
        })
        .collect()
}

fn configuration(snapshot: &Snapshot, directory: &Directory) -> Value {
    let fingerprint = |hash: u64| (hash != 0).then(|| format!("{hash:016x}"));
    json!({
        "fingerprint": fingerprint(directory.fingerprint),
        "next": fingerprint(snapshot.configurations.next),
        "change": directory.change,
    })
}

fn links(snapshot: &Snapshot, names: &Names, now: Instant) -> Vec<Value> {
    let pairs = names
        .partners
        .iter()
        .flat_map(|partner| names.links.iter().map(move |link| (partner, link)));
    snapshot
        .links
        .iter()
        .zip(pairs)
        .map(|(state, (partner, link))| {
            json!({
                "partner": partner,
                "network": link,
                "up": state.up,
                "passes_full_length": state.up && !state.narrow,
                "carries_states": state.carries,
                "round_trip_us": state.round_trip.map(|span| span.as_nanos() as f64 / 1e3),
                "receive_drops": state.receive_drops,
                "strangers_screened": state.screened,
                "send_failures": state.send_failures.count,
                "last_send_failure": state.send_failures.last.map(|(at, failure)| json!({
                    "cause": failure.to_string(),
                    "ago_s": now.since(at).as_secs_f64(),
                })),
            })
        })
        .collect()
}

fn counters(counters: &Counters) -> Map<String, Value> {
    Counter::ALL
        .iter()
        .map(|&counter| (counter.name().to_owned(), counters.get(counter).into()))
        .collect()
}
