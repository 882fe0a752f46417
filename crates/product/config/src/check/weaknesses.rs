//! What a configuration permits although it is weaker than it could be: which of it is so.

use crate::model::{
    Application, ApplicationKind, Config, FieldDevices, FieldIo, Group, Output, OutputTo,
    ReferenceKind, WireVersion,
};
use crate::security::{Encryption, Security};
use crate::weakness::{Weakness, WeaknessCode};

/// Everything that is weak in `config`, in the order of the file's sections.
pub(crate) fn find(config: &Config) -> Vec<Weakness> {
    let mut all = Vec::new();
    if config.security == Security::Open {
        all.push(weakness(
            WeaknessCode::Unauthenticated,
            "security.packets".into(),
            "messages carry no authentication: whoever can send to these networks can disturb the pair",
            "leave packets out, and issue certificates with `bumpless pki`",
        ));
    }
    if config.transfer.version == WireVersion::V1 {
        all.push(weakness(
            WeaknessCode::EarlierSessions,
            "transfer.wire_version".into(),
            "version 1 cannot tell packets that were delayed since before a restart",
            "set wire_version = 2",
        ));
    }
    if config.plan.run_although_refused {
        all.push(weakness(
            WeaknessCode::RunAlthoughRefused,
            "plan.run_although_refused".into(),
            "a node starts even if the plan says that states cannot be in time",
            "make `bumpless plan` say yes, then set run_although_refused = false",
        ));
    }
    networks(config, &mut all);
    config
        .groups
        .iter()
        .for_each(|group| of_group(config, group, &mut all));
    config.applications.iter().for_each(|application| {
        of_application(application, &mut all);
        on_disk(application, &mut all);
    });
    all
}

fn networks(config: &Config, all: &mut Vec<Weakness>) {
    for network in config
        .networks
        .iter()
        .filter(|network| network.bandwidth == 0)
    {
        all.push(weakness(
            WeaknessCode::Unpaced,
            format!("network {:?}", network.name),
            "states no bandwidth: packets with a near deadline wait behind others in the kernel's queue, and \
             nobody can say whether states are in time",
            "set bandwidth_mbit to what the slowest hop carries",
        ));
    }
    for node in &config.nodes {
        let ips: Vec<_> = node
            .addresses
            .iter()
            .flatten()
            .map(|address| address.ip())
            .collect();
        if (1..ips.len()).any(|i| ips[..i].contains(&ips[i])) {
            all.push(weakness(
                WeaknessCode::SharedAddress,
                format!("node {:?}", node.name),
                "has one IP address on several networks, which then fail together",
                "give it an interface and an address on each network",
            ));
        }
    }
}

fn of_group(config: &Config, group: &Group, all: &mut Vec<Weakness>) {
    let subject = || format!("group {:?}", group.name);
    let references = || {
        group
            .references
            .iter()
            .filter_map(|&i| config.references.get(i))
    };
    if group.references.is_empty() {
        all.push(weakness(
            WeaknessCode::WithoutReference,
            subject(),
            "UNSAFE: has no reference point; when its nodes do not hear each other, both write",
            "set up a witness on each network and name them in references",
        ));
        return;
    }
    for reference in references().filter(|point| matches!(point.kind, ReferenceKind::Ping(_))) {
        all.push(weakness(
            WeaknessCode::PingReference,
            format!("{}, reference {:?}", subject(), reference.name),
            "an address that only answers ICMP answers both nodes when they do not hear each other, \
             and both write",
            "run a witness there instead",
        ));
    }
    let mut links = references().map(|reference| reference.network);
    let first = links.next();
    if links.all(|link| Some(link) == first) {
        all.push(weakness(
            WeaknessCode::ReferencesOnOneNetwork,
            subject(),
            "all its reference points are on one network; without that network there is no failover",
            "name a reference point on each network",
        ));
    }
}

fn of_application(application: &Application, all: &mut Vec<Weakness>) {
    let subject = || format!("application {:?}", application.name);
    if let Some(field) = &application.field {
        open_connections(field, subject(), all);
    }
    if application.networks.len() == 1 {
        all.push(weakness(
            WeaknessCode::SingleNetwork,
            subject(),
            "its state travels on one network; without that network the backup falls behind",
            "give the nodes addresses on a second network and use both",
        ));
    }
    if let (ApplicationKind::Program(program), Some(field)) =
        (&application.kind, &application.field)
    {
        let FieldDevices::Program(devices) = &field.devices else {
            return;
        };
        for (at, device) in devices.iter().enumerate() {
            let mut outputs = program.outputs.iter().filter(|output| output.device == at);
            let fenced = |output: &Output| output.to == OutputTo::Block && field.check_epoch;
            if outputs.any(|output| !fenced(output)) {
                let remedy = match device.driver() {
                    None => "use area = \"block\" with a device that compares epochs",
                    Some(_) => {
                        "write what may not be late over Modbus TCP with area = \"block\", where the device compares epochs"
                    }
                };
                all.push(weakness(
                    WeaknessCode::OutputsNotFenced,
                    format!("{}, device {:?}", subject(), device.name),
                    "compares no epochs: a write of the former primary that is on its way to it, or that it has not \
                     worked off when its connection is closed, may take effect after the next one's",
                    remedy,
                ));
            }
        }
        return;
    }
    if application
        .field
        .as_ref()
        .is_some_and(|field| !field.check_epoch)
    {
        all.push(weakness(
            WeaknessCode::OutputsNotFenced,
            subject(),
            "its process does not check epochs: a delayed write of the former primary may take effect",
            "set check_epoch = true with a process that can",
        ));
    }
}

fn open_connections(field: &FieldIo, subject: String, all: &mut Vec<Weakness>) {
    let (modbus, opc_ua) = field.open_places();
    if !modbus.is_empty() {
        all.push(weakness(
            WeaknessCode::FieldOpen,
            subject.clone(),
            &format!(
                "its connection to {} is open, as Modbus TCP is: whoever can send to that network can read and write there",
                modbus.join(", ")
            ),
            "write security = \"tls\" for devices that have Modbus/TCP Security, or keep that network apart",
        ));
    }
    if !opc_ua.is_empty() {
        all.push(weakness(
            WeaknessCode::FieldOpen,
            subject.clone(),
            &format!(
                "its connection to {} has policy = \"None\": whoever can send to that server can read and write there, and \
                 whoever is in between can change what is read",
                opc_ua.join(", ")
            ),
            "leave policy out, and give files with certificates",
        ));
    }
    for (device, login) in field.logins().filter(|(_, login)| login.exposed) {
        all.push(weakness(
            WeaknessCode::PasswordExposed,
            format!("{subject}, device {:?}", device.name),
            &format!(
                "has password_exposed = true with policy = \"None\": whoever is on that network may learn the password of \
                 user {:?}, and log in with it",
                login.user
            ),
            "leave policy and password_exposed out, give files with certificates, and then change the password",
        ));
    }
}

fn on_disk(application: &Application, all: &mut Vec<Weakness>) {
    if application.persist.is_some() && application.security.encryption != Encryption::None {
        all.push(weakness(
            WeaknessCode::StatesOnDiskInClear,
            format!("application {:?}", application.name),
            "its states are enciphered on their way, and its files on disk are not: their keys do not outlast a process",
            "keep state_dir where nobody else can read it, on an enciphered disk, or leave persist out",
        ));
    }
}

fn weakness(code: WeaknessCode, subject: String, hazard: &str, remedy: &str) -> Weakness {
    Weakness {
        code,
        subject,
        hazard: hazard.into(),
        remedy: remedy.into(),
    }
}
