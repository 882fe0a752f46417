//! The devices of a program: Modbus devices, and those that a field driver speaks to, with what is started and told.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::field_security::Secured;
use crate::file::ApplicationEntry;
use crate::model::{
    Bus, DriverProtocol, FieldDevice, FieldDriver, ModbusDevice, OpcUaLogin, OpcUaPolicy,
};
use crate::reader::{Place, Reader};
use crate::schema::{self, DeviceKindWord};

use DeviceKindWord::{Driver, Modbus, OpcUa};

/// The unit of a Modbus device that is addressed by its IP address alone.
pub(super) const UNIT: u64 = 255;
/// The field driver for OPC UA, and what it is told to be one.
const OPC_UA: &str = "bumpless-opcua";
const OPC_UA_ARGUMENTS: [&str; 1] = ["field"];

/// Fields that only devices of some kinds have, and which these are.
const BELONGS: [(&str, &[DeviceKindWord]); 14] = [
    ("unit", &[Modbus]),
    ("security", &[Modbus]),
    ("server_name", &[Modbus]),
    ("epoch_register", &[Modbus]),
    ("cycle_register", &[Modbus]),
    ("driver", &[OpcUa, Driver]),
    ("arguments", &[Driver]),
    ("max_age_ms", &[OpcUa, Driver]),
    ("path", &[OpcUa]),
    ("policy", &[OpcUa]),
    ("files", &[OpcUa]),
    ("user", &[OpcUa]),
    ("password_file", &[OpcUa]),
    ("password_exposed", &[OpcUa]),
];

const fn word(kind: DeviceKindWord) -> &'static str {
    match kind {
        Modbus => "modbus",
        OpcUa => "opcua",
        Driver => "driver",
    }
}

/// The devices of a program, each with its address and what protects a Modbus connection to it.
pub(crate) fn field_devices(
    reader: &mut Reader,
    entry: &ApplicationEntry,
    secured: Option<Vec<Secured>>,
) -> Option<Vec<FieldDevice>> {
    // All of them are looked at before anything that is wrong ends it.
    let drivers = entry.devices.iter();
    let drivers: Vec<_> = drivers.map(|given| check(reader, given)).collect();
    let devices = entry.devices.iter().zip(secured?).zip(drivers);
    let device = |((given, secured), driver)| field_device(given, secured, driver);
    devices.map(device).collect()
}

fn field_device(
    given: &schema::Device,
    (address, security): Secured,
    driver: Option<FieldDriver>,
) -> Option<FieldDevice> {
    let register = |given: Option<u64>| given.map(u16::try_from).transpose().ok();
    let bus = match given.kind? {
        DeviceKindWord::Modbus => Bus::Modbus(ModbusDevice {
            unit: u8::try_from(given.unit?.unwrap_or(UNIT)).ok()?,
            security,
            epoch_register: register(given.epoch_register?)?,
            cycle_register: register(given.cycle_register?)?,
        }),
        DeviceKindWord::OpcUa | DeviceKindWord::Driver => Bus::Driver(driver?),
    };
    Some(FieldDevice {
        name: given.name.clone()?,
        address,
        required: given.required?,
        bus,
    })
}

/// What speaks to the device; `None` as well where the node itself does.
fn check(reader: &mut Reader, given: &schema::Device) -> Option<FieldDriver> {
    let (place, kind) = (&given.place, given.kind?);
    for (key, kinds) in BELONGS {
        if !kinds.contains(&kind) && place.has(key) {
            let words: Vec<_> = kinds.iter().map(|&kind| word(kind)).collect();
            let wrong = format!("belongs to kind {}", words.join(", "));
            let right = format!("remove it, or set kind = {:?}", words[0]);
            reader.wrong(place, key, wrong, right);
        }
    }
    if kind == Modbus {
        return None;
    }
    if kind == Driver && given.address.is_some_and(|address| !address.has_port()) {
        let right = "give the port, too, such as \"192.0.2.1:4700\"";
        reader.wrong(place, "address", "has no port", right);
    }
    let protocol = match kind {
        OpcUa => opc_ua(reader, given),
        _ => Some(DriverProtocol::Own),
    };
    let program = program(reader, place, (kind, given.driver.as_ref()?.as_deref()));
    let arguments = match kind {
        OpcUa => OPC_UA_ARGUMENTS.map(str::to_owned).to_vec(),
        _ => given.arguments.clone()?.unwrap_or_default(),
    };
    Some(FieldDriver {
        program: program?,
        arguments,
        protocol: protocol?,
        max_age: given.max_age?,
    })
}

fn opc_ua(reader: &mut Reader, given: &schema::Device) -> Option<DriverProtocol> {
    let place = &given.place;
    let path = given.path.clone()?.unwrap_or_else(|| "/".into());
    if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        let right = "give a path such as \"/UA/Server\", without spaces";
        reader.wrong(place, "path", format!("is {path:?}"), right);
    }
    // All that is wrong is said, whatever of it comes first.
    let (files, login) = (certificates(reader, given), login(reader, given));
    let (policy, files) = files?;
    Some(DriverProtocol::OpcUa {
        path,
        policy,
        files,
        login: login?,
    })
}

fn policy(given: &schema::Device) -> Option<OpcUaPolicy> {
    Some(given.policy?.unwrap_or(OpcUaPolicy::Basic256Sha256))
}

/// What protects the session, and where the certificates for that are.
fn certificates(
    reader: &mut Reader,
    given: &schema::Device,
) -> Option<(OpcUaPolicy, Option<PathBuf>)> {
    let place = &given.place;
    let (policy, files) = (policy(given)?, given.files.clone()?.map(PathBuf::from));
    match (policy, &files) {
        (OpcUaPolicy::Open, Some(_)) => {
            let wrong = "stands here although policy is \"None\"";
            reader.wrong(place, "files", wrong, "leave policy out, or remove it");
        }
        (OpcUaPolicy::Open, None) => {}
        (_, None) if !reader.incomplete => {
            let right = "give the folder with certificates, or in so many words policy = \"None\"";
            reader.wrong(place, "files", "is missing for kind opcua", right);
            return None;
        }
        _ => {}
    }
    Some((policy, files))
}

/// As whom the nodes log in.
fn login(reader: &mut Reader, given: &schema::Device) -> Option<Option<OpcUaLogin>> {
    let place = &given.place;
    let (user, file) = (given.user.clone()?, given.password_file.clone()?);
    let exposed = given.password_exposed?;
    if user
        .as_deref()
        .is_some_and(|it| it.contains(char::is_control))
    {
        let right = "give the name as the server knows it";
        reader.wrong(place, "user", "has control characters", right);
    }
    let Some(file) = file else {
        if user.is_some() && !reader.incomplete {
            let right = "give a file with the password, or remove user";
            reader.wrong(place, "password_file", "is missing beside user", right);
        }
        if exposed {
            let wrong = "means nothing without password_file";
            reader.wrong(place, "password_exposed", wrong, "remove it");
        }
        return Some(None);
    };
    match (policy(given), exposed) {
        (Some(OpcUaPolicy::Open), false) => {
            let wrong = "would be sent unprotected, since policy is \"None\"";
            let right = "leave policy out, and give files with certificates, or in so many words password_exposed = true";
            reader.wrong(place, "password_file", wrong, right);
        }
        (Some(policy), true) if policy != OpcUaPolicy::Open => {
            let wrong = format!("is true although policy {} protects it", policy.name());
            reader.wrong(place, "password_exposed", wrong, "remove it");
        }
        _ => {}
    }
    let Some(user) = user else {
        if !reader.incomplete {
            let right = "give the name of the user, or remove password_file";
            reader.wrong(place, "user", "is missing beside password_file", right);
        }
        return None;
    };
    Some(Some(OpcUaLogin {
        user,
        password_file: file.into(),
        exposed,
    }))
}

/// The file that is started.
fn program(
    reader: &mut Reader,
    place: &Place,
    (kind, given): (DeviceKindWord, Option<&str>),
) -> Option<PathBuf> {
    let named = match (given, kind) {
        (Some(given), _) => given,
        (None, OpcUa) => OPC_UA,
        (None, _) => {
            if !reader.incomplete {
                let right = "give the path of the driver's program";
                reader.wrong(place, "driver", "is missing for kind driver", right);
            }
            return None;
        }
    };
    let found = match Path::new(named).components().count() {
        1 if !named.starts_with('/') => {
            in_path(named).ok_or_else(|| format!("{named} is not in PATH"))
        }
        _ => {
            let path = reader.folder().join(named);
            let path = std::path::absolute(&path).unwrap_or(path);
            runnable(&path).map(|()| path)
        }
    };
    match found {
        Ok(path) => Some(path),
        Err(wrong) => {
            let right = match kind {
                OpcUa => {
                    "install it on each node (`cargo install --locked --path bridges/opcua`), or give its path in driver"
                }
                _ => "put the driver there, on each node, or give its path",
            };
            reader.wrong(place, "driver", wrong, right);
            None
        }
    }
}

fn in_path(name: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    let mut files = env::split_paths(&folders).map(|folder| folder.join(name));
    files.find(|path| runnable(path).is_ok())
}

/// Whether it can be started.
fn runnable(path: &Path) -> Result<(), String> {
    let shown = path.display();
    let found = fs::metadata(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    match found.is_file() && found.permissions().mode() & 0o111 != 0 {
        true => Ok(()),
        false => Err(format!("{shown} is no file that can be executed")),
    }
}
