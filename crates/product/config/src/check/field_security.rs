//! What protects the connections to field devices.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::file::ApplicationEntry;
use crate::programs::DeviceSecurity;
use crate::reader::{Place, Reader};
use crate::schema::{self, DeviceAt, DeviceKindWord, FieldSecurityWord};
use crate::security::Security;

/// The usual port of an OPC UA server. Other drivers' devices have none.
const OPC_UA: u16 = 4840;

/// Where a device is, and what protects the connection to it.
pub(crate) type Secured = (SocketAddr, Option<DeviceSecurity>);

/// Of the one server of a quadruple tank. `Some(None)`: it has no address.
pub(crate) fn of_tank(reader: &mut Reader, given: &schema::FieldIo) -> Option<Option<Secured>> {
    let (word, name) = (given.security?, given.server_name.clone()?);
    named(reader, &given.place, word, name.as_deref());
    let address = given.address?;
    Some(address.map(|address| secured(address, word, name)))
}

/// Of each device of a program.
pub(crate) fn of_devices(
    reader: &mut Reader,
    (entry, field): (&ApplicationEntry, &schema::FieldIo),
) -> Option<Vec<Secured>> {
    if field.place.has("server_name") {
        let right = "remove it, and write it in [[application.field.device]] for each device";
        reader.wrong(
            &field.place,
            "server_name",
            "belongs to kind quadruple_tank",
            right,
        );
    }
    let mut all = Vec::new();
    // By address: what the first device there has, and on which line.
    let mut servers: BTreeMap<SocketAddr, (FieldSecurityWord, usize)> = BTreeMap::new();
    for device in &entry.devices {
        let one = of_device(reader, device, field.security);
        let modbus = device.kind == Some(DeviceKindWord::Modbus);
        if let Some((word, (address, _))) = one.as_ref().filter(|_| modbus) {
            let line = device.place.line_of("security");
            let (first, at) = servers.entry(*address).or_insert((*word, line));
            if first != word {
                let wrong = format!(
                    "is not that of the device on line {at} at the same address, {address}"
                );
                let right = "give all units behind one address and port the same security";
                reader.wrong(&device.place, "security", wrong, right);
            }
        }
        all.push(one.map(|(_, secured)| secured));
    }
    all.into_iter().collect()
}

fn of_device(
    reader: &mut Reader,
    device: &schema::Device,
    usual: Option<FieldSecurityWord>,
) -> Option<(FieldSecurityWord, Secured)> {
    if device.kind? != DeviceKindWord::Modbus {
        let usual = device.address?.or_port(OPC_UA);
        return Some((FieldSecurityWord::Open, (usual, None)));
    }
    let word = device.security?.or(usual)?;
    let name = device.server_name.clone()?;
    named(reader, &device.place, word, name.as_deref());
    Some((word, secured(device.address?, word, name)))
}

/// Where the device of a program is, as far as that is known.
pub(super) fn address(
    device: &schema::Device,
    field: Option<&schema::FieldIo>,
) -> Option<SocketAddr> {
    if device.kind? != DeviceKindWord::Modbus {
        return Some(device.address?.or_port(OPC_UA));
    }
    let word = device.security?.or(field.and_then(|it| it.security))?;
    Some(device.address?.with_port(word == FieldSecurityWord::Tls))
}

/// Where the server of a quadruple tank is, likewise.
pub(super) fn tank_address(given: &schema::FieldIo) -> Option<SocketAddr> {
    let secure = given.security? == FieldSecurityWord::Tls;
    Some(given.address??.with_port(secure))
}

fn secured(address: DeviceAt, word: FieldSecurityWord, server_name: Option<String>) -> Secured {
    let secure = word == FieldSecurityWord::Tls;
    let security = secure.then_some(DeviceSecurity { server_name });
    (address.with_port(secure), security)
}

/// A name of a certificate that nobody looks at is refused: whoever wrote it takes the connection for protected.
fn named(reader: &mut Reader, place: &Place, word: FieldSecurityWord, name: Option<&str>) {
    if word == FieldSecurityWord::Open && name.is_some() {
        let wrong = "stands here although the connection is open";
        let right = "write security = \"tls\", or leave it out";
        reader.wrong(place, "server_name", wrong, right);
    }
}

/// The folder with the certificates that nodes show to devices. `Some(None)`: all connections are open.
pub(crate) fn certificates(
    reader: &mut Reader,
    (entry, field): (&ApplicationEntry, &schema::FieldIo),
    packets: Option<&Security>,
) -> Option<Option<PathBuf>> {
    let usual = field.security?;
    let of_device = |it: &schema::Device| match it.kind? {
        DeviceKindWord::Modbus => it.security.map(|word| word.unwrap_or(usual)),
        _ => Some(FieldSecurityWord::Open),
    };
    let of_devices = entry.devices.iter().map(of_device);
    let words: Vec<_> = match entry.devices.is_empty() {
        true => vec![usual],
        false => of_devices.collect::<Option<_>>()?,
    };
    let secure = words.contains(&FieldSecurityWord::Tls);
    let given = field.certificates.clone()?;
    match (secure, given) {
        (false, Some(_)) => {
            let wrong = "stands here although all connections are open";
            let right = "write security = \"tls\", or leave it out";
            reader.wrong(&field.place, "certificates", wrong, right);
            None
        }
        (false, None) => Some(None),
        (true, Some(folder)) => Some(Some(folder.into())),
        (true, None) => match packets? {
            Security::Certificates(given) => Some(Some(given.folder.clone())),
            Security::Protected(_) | Security::Open => {
                let wrong = "is missing: connections to devices are \"tls\", and [security] names no certificates";
                let right =
                    "give the folder of the nodes' certificates, which `bumpless pki issue` makes";
                reader.wrong(&field.place, "certificates", wrong, right);
                None
            }
        },
    }
}
