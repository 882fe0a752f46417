//! What a node's applications have read and written last, as `bumpless.values/1` (spec/status.md).

use bumpless_base::{Duration, Instant, Role};
use bumpless_config::{Application, Config, FieldDevices};
use serde_json::{Value, json};

use crate::directory::Directory;
use crate::field_values::{FieldValues, Signal, Values, signals};
use crate::log::{Names, role_name};
use crate::snapshot::Snapshot;

/// Schema name and version of the values.
pub const SCHEMA: &str = "bumpless.values/1";

/// Values count as fresh for three periods, and for this at least.
const FRESH_MIN: Duration = Duration::from_millis(500);

/// Renders the values of all applications that run here, or of the one that is `named`.
///
/// # Errors
/// There is no such application here.
pub fn render(
    (snapshot, values): (&Snapshot, &FieldValues),
    (directory, names): (&Directory, &Names),
    named: Option<&str>,
    now: Instant,
) -> Result<Value, String> {
    let config = &directory.config;
    let here: Vec<_> = config
        .applications
        .iter()
        .filter(|settings| runs_at(config, settings, &names.node))
        .collect();
    if let Some(named) = named
        && !here.iter().any(|settings| settings.name == named)
    {
        let known: Vec<_> = here.iter().map(|it| it.name.as_str()).collect();
        let known = known.join(", ");
        return Err(format!(
            "no application '{named}' runs on this node; it has {known}"
        ));
    }
    let wanted = here
        .into_iter()
        .filter(|settings| named.is_none_or(|named| settings.name == named));
    let applications: Vec<_> = wanted
        .map(|settings| {
            let group = snapshot.groups.get(settings.group);
            let role = group.map_or(Role::Starting, |group| group.role);
            let board = values.of(&settings.name);
            let looked = board.map(|board| board.look());
            json!({
                "name": settings.name,
                "group": config.groups[settings.group].name,
                "role": role_name(role),
                "inputs": inputs(settings, role, looked.as_ref(), now),
                "outputs": outputs(settings, role, looked.as_ref(), now),
            })
        })
        .collect();
    Ok(json!({
        "schema": SCHEMA,
        "time_ns": now.as_nanos(),
        "pair": config.pair,
        "node": names.node,
        "applications": applications,
    }))
}

/// Of a pool, a node runs the applications of its groups.
fn runs_at(config: &Config, settings: &Application, node: &str) -> bool {
    let candidates = config.groups[settings.group].candidates.iter();
    let mut names = candidates.map(|node| &config.nodes[usize::from(node.0)].name);
    names.any(|name| name == node)
}

fn inputs(settings: &Application, role: Role, looked: Option<&Values>, now: Instant) -> Value {
    let (signals, _) = signals(settings);
    let known = looked.and_then(|values| Some((values, values.read_at?)));
    let answers = |device: usize| {
        let silent = known.map_or(0, |(values, _)| values.silent);
        let silent = silent.checked_shr(device as u32).unwrap_or(0);
        silent & 1 == 0
    };
    let values = listed(
        settings,
        &signals,
        known.map(|(values, _)| &values.inputs[..]),
    );
    let with_answers = values.into_iter().zip(&signals);
    let values: Vec<_> = with_answers
        .map(|(mut value, (_, device))| {
            value["answers"] = (known.is_some() && answers(*device)).into();
            value
        })
        .collect();
    let at = known.map(|(_, at)| at);
    json!({
        "age_ms": at.map(|at| millis(now.since(at))),
        "fresh": is_fresh(settings, role, at, now),
        "values": values,
    })
}

fn outputs(settings: &Application, role: Role, looked: Option<&Values>, now: Instant) -> Value {
    let (_, signals) = signals(settings);
    let known = looked.and_then(|values| Some((values, values.written?)));
    let at = known.map(|(_, (_, at))| at);
    let stamp = known.map(|(_, (stamp, _))| stamp);
    json!({
        "age_ms": at.map(|at| millis(now.since(at))),
        "fresh": is_fresh(settings, role, at, now),
        "epoch": stamp.map(|stamp| stamp.epoch.0),
        "cycle": stamp.map(|stamp| stamp.cycle),
        "values": listed(settings, &signals, known.map(|(values, _)| &values.outputs[..])),
    })
}

/// Each of `signals` with its device and its value, if there are `values`.
fn listed(settings: &Application, signals: &[Signal<'_>], values: Option<&[f64]>) -> Vec<Value> {
    let device_of = |at: usize| match settings.field.as_ref().map(|field| &field.devices) {
        Some(FieldDevices::Program(devices)) => devices.get(at).map(|it| it.name.clone()),
        Some(FieldDevices::Tank { address, .. }) => Some(address.to_string()),
        None => None,
    };
    let listed = signals.iter().enumerate().map(|(at, (name, device))| {
        // What is no number, or beyond all of them, has none in JSON.
        let value = values.and_then(|values| values.get(at));
        json!({"name": name, "value": value, "device": device_of(*device)})
    });
    listed.collect()
}

/// Whether what was read or written at `at` still says how the process stands: this node has it in hand.
fn is_fresh(settings: &Application, role: Role, at: Option<Instant>, now: Instant) -> bool {
    let limit = (settings.period * 3).max(FRESH_MIN);
    role == Role::Primary && at.is_some_and(|at| now.since(at) <= limit)
}

fn millis(span: Duration) -> f64 {
    (span.as_nanos() as f64 / 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use bumpless_config::Config;

    use super::*;

    /// The application of the example, whose period is given in the file.
    fn settings() -> Application {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../examples/own-program.toml"
        );
        let config = Config::load(path.as_ref()).unwrap();
        config.applications[0].clone()
    }

    const NOW: Instant = Instant::from_nanos(10_000_000_000);

    fn values() -> Values {
        Values {
            inputs: [1.5, f64::NAN, 2.0][..].into(),
            read_at: Some(NOW),
            silent: 1,
            outputs: [3.0, f64::INFINITY][..].into(),
            written: None,
        }
    }

    #[test]
    fn values_are_fresh_at_the_primary_alone_and_not_for_long() {
        let settings = settings();
        let limit = (settings.period * 3).max(FRESH_MIN);
        assert!(is_fresh(&settings, Role::Primary, Some(NOW), NOW));
        assert!(is_fresh(&settings, Role::Primary, Some(NOW), NOW + limit));
        let late = NOW + limit + Duration::from_nanos(1);
        assert!(!is_fresh(&settings, Role::Primary, Some(NOW), late));
        for role in [Role::Backup, Role::Starting, Role::Stopped] {
            assert!(!is_fresh(&settings, role, Some(NOW), NOW), "{role:?}");
        }
        assert!(!is_fresh(&settings, Role::Primary, None, NOW));
    }

    #[test]
    fn inputs_of_a_silent_device_are_told_as_such() {
        let told = inputs(&settings(), Role::Primary, Some(&values()), NOW);
        assert_eq!(told["values"][0]["value"], 1.5);
        assert_eq!(told["values"][0]["answers"], false);
        let heard = Values {
            silent: 2,
            ..values()
        };
        let told = inputs(&settings(), Role::Primary, Some(&heard), NOW);
        assert_eq!(told["values"][0]["answers"], true);
    }

    #[test]
    fn what_is_no_number_and_what_was_never_written_has_no_value() {
        let told = inputs(&settings(), Role::Primary, Some(&values()), NOW);
        assert_eq!(told["values"][1]["value"], Value::Null);
        for looked in [Some(&values()), None] {
            let told = outputs(&settings(), Role::Primary, looked, NOW);
            assert_eq!(told["age_ms"], Value::Null);
            assert_eq!(told["cycle"], Value::Null);
            assert_eq!(told["values"][0]["value"], Value::Null, "{told}");
            assert!(told["values"][0]["name"].is_string());
        }
    }
}
