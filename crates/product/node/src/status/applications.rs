//! Applications, their programs and their field devices, as status shows them.

use bumpless_base::{Duration, Instant};
use bumpless_config::{
    ApplicationKind, Bus, DeviceSecurity, FieldDevices, FieldIo, Program, StateSecurity,
};
use bumpless_controller::executor::Then;
use serde_json::{Value, json};

use super::units::millis;
use crate::directory::Directory;
use crate::log::Names;
use crate::snapshot::{ApplicationSnapshot, Snapshot};

/// The applications that run on this node, in the order of the configuration.
pub fn applications(
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
    let known = |(number, app)| {
        let at = (*directory.applications.get(number)?)?;
        Some((at, app, config.applications.get(at)?))
    };
    let applications = snapshot.applications.indices().zip(&snapshot.applications);
    let mut members: Vec<_> = applications
        .filter_map(known)
        .filter(|(_, _, settings)| runs_here(settings))
        .collect();
    members.sort_unstable_by_key(|&(at, _, _)| at);
    members
        .into_iter()
        .map(|(_, app, settings)| application((settings, app), directory, now))
        .collect()
}

fn application(
    (settings, app): (&bumpless_config::Application, &ApplicationSnapshot),
    directory: &Directory,
    now: Instant,
) -> Value {
    let config = &directory.config;
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
        "program": program(settings, app, now),
        "field": settings.field.as_ref().map(|field| field_io(field, (settings, app), directory, now)),
    })
}

fn program(
    settings: &bumpless_config::Application,
    app: &ApplicationSnapshot,
    now: Instant,
) -> Value {
    json!({
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
    })
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
                    "user": device.login().map(|login| &login.user),
                    "required": device.required,
                    "answers": app.answers(at),
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

/// Whether a program that is stopped here was ordered to go on in vain, since its state is too old for that.
fn is_too_old(application: &ApplicationSnapshot) -> bool {
    let fault = application.program_fault;
    application.program_stopped && fault.is_some_and(|fault| fault.then == Then::NotResumed)
}
