//! Field drivers of this node: what each is told, and how they fare (spec/field-driver.md).

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bumpless_base::Instant;
use bumpless_config::{
    self as config, ApplicationKind, DriverProtocol, FieldDevice, FieldDevices, InputFrom,
    OutputTo, Tag,
};
use bumpless_controller::driven::kind_of;
use bumpless_controller::{DriverLink, DriverNumber};
use bumpless_field_driver::{Direction, Point};
use bumpless_guarded_file::PasswordCause;
use bumpless_sidecar::{Driver, DriverBoard, DriverOrder};
use serde_json::{Value, json};

/// What is known of a driver.
#[derive(Clone, Debug)]
struct Known {
    board: DriverBoard,
    order: DriverOrder,
    number: DriverNumber,
}

/// All drivers in use, by application and device; shared between those who start them and those who show them.
#[derive(Clone, Debug, Default)]
pub struct FieldDrivers(Arc<Mutex<BTreeMap<(String, String), Known>>>);

/// The drivers of a field that is not in use yet.
#[derive(Debug)]
pub struct Opened {
    application: String,
    /// The field takes the place of one that is in use, and goes on with its drivers as far as they are the same.
    follows: bool,
    /// Those that begin, with their devices.
    drivers: Vec<(String, Known)>,
    /// Devices with drivers that go on.
    kept: Vec<String>,
}

impl Opened {
    /// The drivers of the first field of `application`.
    pub fn first(application: &str) -> Self {
        Self {
            application: application.to_owned(),
            follows: false,
            drivers: Vec::new(),
            kept: Vec::new(),
        }
    }

    /// The drivers of a field of `application` that takes the place of one in use.
    pub fn following(application: &str) -> Self {
        Self {
            follows: true,
            ..Self::first(application)
        }
    }
}

impl FieldDrivers {
    /// The driver of the field for `order`: one of its own, or the one in use.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(&self, order: DriverOrder, opened: &mut Opened) -> io::Result<Driver> {
        let device = order.device.clone();
        let key = (opened.application.clone(), device.clone());
        let in_use = self.lock().get(&key).cloned();
        match in_use.filter(|known| opened.follows && known.order == order) {
            Some(known) => {
                opened.kept.push(device);
                Driver::heir(known.number, order, known.board)
            }
            None => {
                let board = DriverBoard::default();
                let driver = Driver::begin(order.clone(), board.clone())?;
                let number = driver.number();
                let known = Known {
                    board,
                    order,
                    number,
                };
                opened.drivers.push((device, known));
                Ok(driver)
            }
        }
    }

    /// The field with these drivers is in use: they are the ones that are shown, and the only ones that the next field can
    /// go on with.
    pub fn used(&self, opened: Opened) {
        let mut all = self.lock();
        let stays = |(application, device): &(String, String)| {
            *application != opened.application || opened.kept.contains(device)
        };
        all.retain(|key, _| stays(key));
        let begun = opened.drivers.into_iter();
        all.extend(begun.map(|(device, known)| ((opened.application.clone(), device), known)));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(String, String), Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, application: &str, device: &str) -> Option<DriverBoard> {
        let key = (application.to_owned(), device.to_owned());
        let known = self.lock().get(&key).cloned();
        known.map(|known| known.board)
    }

    /// How the driver of `device` fares, if there is one.
    pub fn json(&self, application: &str, device: &FieldDevice, now: Instant) -> Option<Value> {
        let driver = device.driver()?;
        let state = self.find(application, &device.name)?.look();
        Some(json!({
            "file": driver.program,
            "what": state.pid.map(|_| &state.what),
            "pid": state.pid,
            "starts": state.starts,
            "failures": state.failures,
            "last_failure": state.last_failure.map(|(cause, at)| json!({
                "cause": cause,
                "ago_s": now.since(at).as_secs_f64(),
            })),
        }))
    }

    /// What is wrong with drivers, or what they tell, a sentence each.
    pub fn weaknesses(&self, config: &config::Config) -> Vec<String> {
        let mut told = Vec::new();
        for application in &config.applications {
            let Some(FieldDevices::Program(devices)) =
                application.field.as_ref().map(|field| &field.devices)
            else {
                continue;
            };
            for device in devices.iter().filter(|it| it.driver().is_some()) {
                let Some(board) = self.find(&application.name, &device.name) else {
                    continue;
                };
                let state = board.look();
                let failed = state.last_failure.filter(|_| state.pid.is_none());
                told.extend(failed.map(|(words, _)| words));
                if !state.note.is_empty() {
                    told.push(format!("field device {}: {}", device.place(), state.note));
                }
            }
        }
        told
    }
}

/// What the driver of `device` is started as, in this node of this pair, with the configuration in `folder`.
pub fn order(
    settings: &config::Application,
    at: usize,
    (folder, own): (&Path, (&str, &str)),
) -> Option<DriverOrder> {
    let FieldDevices::Program(devices) = &settings.field.as_ref()?.devices else {
        return None;
    };
    let ApplicationKind::Program(program) = &settings.kind else {
        return None;
    };
    let device = devices.get(at)?;
    let driver = device.driver()?;
    let point = |direction, tag: &Tag| Point {
        direction,
        kind: kind_of(tag.value),
        name: tag.name.clone(),
    };
    let inputs = program.inputs.iter().filter(|it| it.device == at);
    let inputs = inputs.filter_map(|it| match &it.from {
        InputFrom::Driver(tag, _) => Some(point(Direction::Input, tag)),
        _ => None,
    });
    let outputs = program.outputs.iter().filter(|it| it.device == at);
    let outputs = outputs.filter_map(|it| match &it.to {
        OutputTo::Driver(tag) => Some(point(Direction::Output, tag)),
        _ => None,
    });
    Some(DriverOrder {
        program: driver.program.clone(),
        arguments: driver.arguments.clone(),
        device: device.name.clone(),
        address: device.address.to_string(),
        options: options(device, &driver.protocol, (folder, own)),
        points: inputs.chain(outputs).collect(),
    })
}

/// What the driver is told besides.
fn options(
    device: &FieldDevice,
    protocol: &DriverProtocol,
    (folder, (node, pair)): (&Path, (&str, &str)),
) -> Vec<(String, String)> {
    let DriverProtocol::OpcUa {
        path,
        policy,
        files,
        login,
    } = protocol
    else {
        return Vec::new();
    };
    let mut all = vec![
        ("path".to_owned(), path.clone()),
        ("policy".to_owned(), policy.name().to_owned()),
        ("uri".to_owned(), format!("urn:bumpless:{pair}:{node}")),
    ];
    if let Some(files) = files {
        let files = absolute(folder, files);
        let server = files.join("servers").join(format!("{}.der", device.name));
        let own = files.join(format!("{node}.{pair}"));
        all.push(("own".to_owned(), own.display().to_string()));
        all.push(("server".to_owned(), server.display().to_string()));
    }
    if let Some(login) = login {
        // The password itself stays between its file and the driver.
        let file = absolute(folder, &login.password_file);
        all.push(("user".to_owned(), login.user.clone()));
        all.push(("password_file".to_owned(), file.display().to_string()));
        let exposed = login.exposed.to_string();
        all.push(("password_exposed".to_owned(), exposed));
    }
    all
}

/// Where a file of the configuration is, whatever the driver's own folder.
fn absolute(folder: &Path, file: &Path) -> PathBuf {
    let path = folder.join(file);
    std::path::absolute(&path).unwrap_or(path)
}

/// A file of a password that cannot be used on this computer.
#[derive(Debug)]
pub struct PasswordProblem {
    /// Whose password it is, in words.
    pub device: String,
    /// The file.
    pub path: PathBuf,
    cause: PasswordCause,
}

impl PasswordProblem {
    /// What is wrong with it. Nothing of what it holds is in here.
    pub fn wrong(&self) -> String {
        self.cause.wrong()
    }

    /// What would be right.
    pub fn remedy(&self) -> String {
        self.cause.remedy(&self.path)
    }
}

impl fmt::Display for PasswordProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (device, path) = (&self.device, self.path.display());
        let (wrong, remedy) = (self.wrong(), self.remedy());
        write!(
            f,
            "field device {device}: password_file {path} {wrong}; {remedy}"
        )
    }
}

/// What is wrong with the files of passwords of `config`, a configuration in `folder`, each of them.
pub fn password_problems(config: &config::Config, folder: &Path) -> Vec<PasswordProblem> {
    let fields = { config.applications.iter() }.filter_map(|it| it.field.as_ref());
    let logins = fields.flat_map(config::FieldIo::logins);
    let problem = |(device, login): (&FieldDevice, &config::OpcUaLogin)| {
        let path = absolute(folder, &login.password_file);
        let cause = bumpless_guarded_file::password(&path).err()?;
        Some(PasswordProblem {
            device: device.place(),
            path,
            cause,
        })
    };
    logins.filter_map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(address: &str) -> DriverOrder {
        DriverOrder {
            program: "/nowhere/driver".into(),
            arguments: Vec::new(),
            device: "furnace".into(),
            address: address.into(),
            options: Vec::new(),
            points: Vec::new(),
        }
    }

    #[test]
    fn a_field_that_follows_has_the_driver_in_use_and_shows_others_when_used() {
        let drivers = FieldDrivers::default();
        let mut first = Opened::first("tank");
        let in_use = drivers.open(order("a"), &mut first).unwrap();
        assert_eq!(in_use.heir_to(), None);
        assert!(drivers.find("tank", "furnace").is_none());
        drivers.used(first);
        let shown = || drivers.lock().values().next().unwrap().number;
        assert_eq!(shown(), in_use.number());

        let mut next = Opened::following("tank");
        let same = drivers.open(order("a"), &mut next).unwrap();
        assert_eq!(same.heir_to(), Some(in_use.number()));
        let other = drivers.open(order("b"), &mut next).unwrap();
        assert_eq!(other.heir_to(), None);
        assert_eq!(shown(), in_use.number(), "as long as it is in use");
        drivers.used(next);
        assert_eq!(shown(), other.number());

        let anew = drivers.open(order("b"), &mut Opened::first("tank"));
        assert_eq!(anew.unwrap().heir_to(), None);
    }

    #[test]
    fn a_driver_that_was_removed_and_comes_back_is_kept_from_then_on() {
        let drivers = FieldDrivers::default();
        let mut others = Opened::first("boiler");
        let other = drivers.open(order("a"), &mut others).unwrap();
        drivers.used(others);
        let mut first = Opened::first("tank");
        let removed = drivers.open(order("a"), &mut first).unwrap();
        drivers.used(first);

        drivers.used(Opened::following("tank"));
        assert!(drivers.find("tank", "furnace").is_none(), "it is gone");
        drop(removed);
        let mut next = Opened::following("tank");
        let back = drivers.open(order("a"), &mut next).unwrap();
        assert_eq!(back.heir_to(), None, "nobody is there to follow");
        drivers.used(next);
        for _ in 0..2 {
            let mut later = Opened::following("tank");
            let kept = drivers.open(order("a"), &mut later).unwrap();
            assert_eq!(kept.heir_to(), Some(back.number()));
            drivers.used(later);
        }
        let mut later = Opened::following("boiler");
        let kept = drivers.open(order("a"), &mut later).unwrap();
        assert_eq!(
            kept.heir_to(),
            Some(other.number()),
            "another's is untouched"
        );
    }
}
