//! What a snapshot shows that weakens the node, told for people.

use bumpless_base::Duration;
use bumpless_config::FieldDevices;
use bumpless_controller::executor::Then;
use bumpless_net_linux::Screen;

use crate::directory::Directory;
use crate::log::Names;
use crate::membership::ApplicationNumber;
use crate::short_text::ShortText;
use crate::snapshot::{ApplicationSnapshot, Snapshot};

/// The applications with their numbers.
fn numbered(
    snapshot: &Snapshot,
) -> impl Iterator<Item = (ApplicationNumber, &ApplicationSnapshot)> {
    snapshot.applications.indices().zip(&snapshot.applications)
}

/// Field devices that do not answer this node.
pub fn silent_fields(snapshot: &Snapshot, directory: &Directory) -> Vec<String> {
    let config = &directory.config;
    let silent = numbered(snapshot).filter(|(_, app)| app.field_silent);
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

/// Devices that a program can do without, and that do not answer this node.
pub fn silent_devices(snapshot: &Snapshot, directory: &Directory) -> Vec<String> {
    let config = &directory.config;
    let mut told = Vec::new();
    for (number, app) in numbered(snapshot) {
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
            .filter(|(at, _)| !app.answers(*at));
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

/// Programs that have failed and are stopped on this node.
pub fn stopped_programs(snapshot: &Snapshot, directory: &Directory) -> Vec<String> {
    let config = &directory.config;
    let stopped = numbered(snapshot).filter(|(_, app)| app.program_stopped);
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

/// A network on which the kernel did not take a datagram so recently weakens the node.
const RECENT_FAILURE: Duration = Duration::from_secs(1);

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
