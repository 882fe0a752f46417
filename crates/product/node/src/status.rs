//! What a node says of itself: its snapshot as `bumpless.status/1` (spec/status.md).

use bumpless_base::{Counter, Counters, Duration, Instant};
use bumpless_config::{
    ApplicationKind, Bus, Config, DeviceSecurity, FieldDevices, FieldIo, Program, StateSecurity,
};
use bumpless_controller::executor::Then;
use bumpless_net_linux::Screen;
use serde_json::{Map, Value, json};

use crate::directory::Directory;
use crate::log::{Names, role_name};
use crate::short_text::ShortText;
use crate::snapshot::{ApplicationSnapshot, Snapshot};

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

fn millis(span: Duration) -> f64 {
    (span.as_nanos() as f64 / 1e3).round() / 1e3
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

fn applications(
    snapshot: &Snapshot,
    directory: &Directory,
    names: &Names,
    now: Instant,
) -> Vec<Value> {
    let config = &directory.config;
    // A number that was given anew, or is not yet, has no settings.
    // Of a pool, a node runs the applications of its groups.
    let runs_here = |settings: &bumpless_config::Application| {
        let candidates = &config.groups[settings.group].candidates;
        let mut nodes = candidates
            .iter()
            .map(|node| &config.nodes[usize::from(node.0)]);
        nodes.any(|node| node.name == names.node)
    };
    let known = |(number, app): (usize, _)| {
        let at = (*directory.applications.get(number)?)?;
        Some((at, app, config.applications.get(at)?))
    };
    let applications = snapshot.applications.iter().enumerate();
    let mut members: Vec<_> = applications
        .filter_map(known)
        .filter(|(_, _, settings)| runs_here(settings))
        .collect();
    members.sort_unstable_by_key(|&(at, _, _)| at);
    members
        .into_iter()
        .map(|(_, app, settings)| {
            json!({
                "name": settings.name,
                "group": config.groups[settings.group].name,
                "channel": settings.channel.get(),
                "period_ms": millis(settings.period),
                "deadline_ms": millis(settings.deadline),
                "transfers_safe": app.safe,
                "transfers_failed": app.failed,
                "last_transfer_ms": app.last_transfer.map(millis),
                "slowest_transfer_ms": millis(app.slowest_transfer),
                "state_security": state_security(&settings.security),
                "received_cycle": app.received_cycle,
                "received_age_ms": app.received_at.map(|at| millis(now.since(at))),
                "kind": kind_name(&settings.kind),
                "program": {
                    "sha256": program_of(settings).map(Program::sha256_hex),
                    "stopped": app.program_stopped,
                    "tried_again_after_ms": tried_again_after(app).map(|pause| pause.as_millis()),
                    "too_old_to_resume": is_too_old(app),
                    "faults": app.program_faults,
                    "last_fault": app.program_fault.map(|fault| json!({
                        "cycle": fault.cycle,
                        "cause": fault.cause.as_str(),
                        "ago_s": now.since(fault.at).as_secs_f64(),
                    })),
                    "retained": app.retained.map(|kept| json!({
                        "taken": kept.taken,
                        "lacking": kept.lacking,
                        "what": kept.what.as_str(),
                        "ago_s": now.since(kept.at).as_secs_f64(),
                    })),
                },
                "field": settings.field.as_ref().map(|field| field_io(field, (settings, app), directory, now)),
            })
        })
        .collect()
}

const fn kind_name(kind: &ApplicationKind) -> &'static str {
    match kind {
        ApplicationKind::QuadrupleTank(_) => "quadruple_tank",
        ApplicationKind::Synthetic(_) => "synthetic",
        ApplicationKind::Program(program) => program.host.name(),
    }
}

fn program_of(settings: &bumpless_config::Application) -> Option<&Program> {
    match &settings.kind {
        ApplicationKind::Program(program) => Some(program),
        _ => None,
    }
}

/// Whether the device at position `at` answered this node last.
fn answers(app: &ApplicationSnapshot, at: usize) -> bool {
    app.silent_devices
        .checked_shr(at as u32)
        .is_none_or(|rest| rest & 1 == 0)
}

/// What protects the connection to a device, as the configuration names it.
const fn security_name(security: Option<&DeviceSecurity>) -> &'static str {
    match security {
        None => "open",
        Some(_) => "tls",
    }
}

fn field_io(
    field: &FieldIo,
    (settings, app): (&bumpless_config::Application, &ApplicationSnapshot),
    directory: &Directory,
    now: Instant,
) -> Value {
    match &field.devices {
        FieldDevices::Tank { address, security } => json!({
            "address": address.to_string(),
            "security": security_name(security.as_ref()),
            "answers": !app.field_silent,
        }),
        FieldDevices::Program(devices) => {
            let drivers = &directory.field.drivers;
            let devices = devices.iter().enumerate().map(|(at, device)| {
                let unit = match &device.bus {
                    Bus::Modbus(modbus) => Some(modbus.unit),
                    Bus::Driver(_) => None,
                };
                json!({
                    "name": device.name,
                    "kind": device.kind(),
                    "address": device.address.to_string(),
                    "unit": unit,
                    "security": device.security_name(),
                    "required": device.required,
                    "answers": answers(app, at),
                    "driver": drivers.json(&settings.name, device, now),
                })
            });
            json!({
                "address": field.places(),
                "answers": !app.field_silent,
                "devices": devices.collect::<Vec<_>>(),
            })
        }
    }
}

/// Devices that a program can do without, and that do not answer this node.
pub fn silent_devices(snapshot: &Snapshot, directory: &Directory) -> Vec<String> {
    let config = &directory.config;
    let mut told = Vec::new();
    for (number, app) in snapshot.applications.iter().enumerate() {
        let at = directory.applications.get(number).copied().flatten();
        let Some(settings) = at.and_then(|at| config.applications.get(at)) else {
            continue;
        };
        let Some(FieldDevices::Program(devices)) = settings.field.as_ref().map(|it| &it.devices)
        else {
            continue;
        };
        let silent = devices
            .iter()
            .enumerate()
            .filter(|(at, _)| !answers(app, *at));
        for (_, device) in silent.filter(|(_, device)| !device.required) {
            told.push(format!(
                "device '{}' of '{}' ({}) does not answer this node: the program goes on with what it said last; check \
                 the device and its network",
                device.name, settings.name, device.address
            ));
        }
    }
    told
}

/// `None`: nothing protects states but what protects messages.
fn state_security(security: &StateSecurity) -> Option<Value> {
    (!security.is_none()).then(|| {
        json!({
            "integrity": security.integrity.name(),
            "encryption": security.encryption.name(),
            "replay": security.replay.name(),
            "key_exchange": security.keys.name(),
        })
    })
}

/// A network on which the kernel did not take a datagram so recently weakens the node.
const RECENT_FAILURE: Duration = Duration::from_secs(1);

/// Field devices that do not answer this node.
pub fn silent_fields(snapshot: &Snapshot, directory: &Directory) -> Vec<String> {
    let config = &directory.config;
    let numbered = snapshot.applications.iter().enumerate();
    let silent = numbered.filter(|(_, app)| app.field_silent);
    let told = silent.filter_map(|(number, _)| {
        let settings = config.applications.get((*directory.applications.get(number)?)?)?;
        let address = settings.field.as_ref()?.places();
        Some(format!(
            "field device {address} of '{}' does not answer this node: its outputs do not get there; check the \
             device and its network",
            settings.name
        ))
    });
    told.collect()
}

/// Whether a program that is stopped here was ordered to go on in vain, since its state is too old for that.
fn is_too_old(application: &ApplicationSnapshot) -> bool {
    let fault = application.program_fault;
    application.program_stopped && fault.is_some_and(|fault| fault.then == Then::NotResumed)
}

/// How long after it was stopped a program that is stopped here is tried again; `None` if none is, or not at all.
fn tried_again_after(application: &ApplicationSnapshot) -> Option<Duration> {
    let fault = application
        .program_fault
        .filter(|_| application.program_stopped)?;
    match fault.then {
        Then::TriedAfter(pause) => Some(pause),
        Then::TriedAtOnce | Then::Stopped | Then::NotResumed => None,
    }
}

/// Programs that have failed and are stopped on this node.
pub fn stopped_programs(snapshot: &Snapshot, directory: &Directory) -> Vec<String> {
    let config = &directory.config;
    let numbered = snapshot.applications.iter().enumerate();
    let stopped = numbered.filter(|(_, app)| app.program_stopped);
    let told = stopped.filter_map(|(number, app)| {
        let settings = config.applications.get((*directory.applications.get(number)?)?)?;
        let fault = app.program_fault;
        let cycle = fault.map_or(0, |fault| fault.cycle);
        let cause = fault.map_or(ShortText::EMPTY, |fault| fault.cause);
        let remedy = match fault.map(|fault| fault.then) {
            Some(Then::TriedAfter(pause)) => format!(
                "it is tried again by itself {} ms after it was stopped: see to it that the computer has time for it, and \
                 that it waits for nothing",
                pause.as_millis()
            ),
            _ => "mend the program, then apply it or restart the nodes; if it was not the program, order \
                  `bumpless program resume`"
                .to_owned(),
        };
        Some(format!(
            "the program of '{}' has failed in cycle {cycle} and is stopped on this node ({}); where no other node runs \
             it, its outputs are what on_program_fault says: {remedy}",
            settings.name,
            cause.as_str()
        ))
    });
    told.collect()
}

/// What keeps datagrams from leaving, network by network.
pub fn refused_by_the_kernel(snapshot: &Snapshot, names: &Names) -> Vec<String> {
    // Each partner has the figures of the networks, and these are the same for all.
    let networks = snapshot.links.iter().zip(&names.links);
    let told = networks.filter_map(|(link, name)| {
        let (at, cause) = link.send_failures.last?;
        let recent = snapshot.at.since(at) < RECENT_FAILURE;
        recent.then(|| {
            format!("network '{name}': the system does not send what this node gives it: {cause}")
        })
    });
    told.collect()
}

/// Networks on which strangers send so much that most of that is dropped unseen.
pub fn flooded(snapshot: &Snapshot, names: &Names) -> Vec<String> {
    let networks = snapshot.links.iter().zip(&names.links);
    let told = networks.filter(|(link, _)| link.screened).map(|(_, name)| {
        format!(
            "network '{name}': strangers flood this node's port; of {} of their datagrams one is looked at until that is over",
            Screen::ONE_IN
        )
    });
    told.collect()
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
