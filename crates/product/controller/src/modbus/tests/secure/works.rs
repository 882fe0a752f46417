//! A site's certificates, its plant behind TLS, and clients of that.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use bumpless_base::NodeId;
use bumpless_pki::rustls::pki_types::UnixTime;
use bumpless_pki::rustls::time_provider::TimeProvider;
use bumpless_pki::{Authority, Identity, IdentityPaths, Role, Wanted, system_clock};
use tempfile::TempDir;

use super::super::super::*;
use super::super::clock;
use crate::plant::{DoorSettings, Plant, PlantOptions, Refused, Rights};

pub type Field = ModbusField<fn() -> Instant>;

pub const DAY: std::time::Duration = std::time::Duration::from_secs(86_400);
pub const STAMP: OutputStamp = OutputStamp {
    epoch: Epoch(5),
    writer: NodeId(1),
    cycle: 7,
};

pub fn later() -> Instant {
    clock() + Duration::from_secs(10)
}

/// A clock that is ahead.
#[derive(Debug)]
pub struct Ahead(pub std::time::Duration);

impl TimeProvider for Ahead {
    fn current_time(&self) -> Option<UnixTime> {
        let now = UnixTime::now().as_secs() + self.0.as_secs();
        Some(UnixTime::since_unix_epoch(std::time::Duration::from_secs(
            now,
        )))
    }
}

/// Certificates, and the plant's processes.
pub struct Works {
    pub folder: TempDir,
    pub authority: Authority,
}

impl Works {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pki = folder.path().join("pki");
        let authority = Authority::create(&pki, "site", 30 * DAY, UnixTime::now()).unwrap();
        Self { folder, authority }
    }

    pub fn issue(&self, short: &str, role: Option<&str>, days: u32) -> &Self {
        let (name, role) = (
            self.authority.name(short).unwrap(),
            role.map(|it| Role::new(it).unwrap()),
        );
        let wanted = Wanted {
            name: &name,
            role: role.as_ref(),
            addresses: &["127.0.0.1".parse().unwrap()],
        };
        let out = self.folder.path().join(short);
        self.authority
            .issue(wanted, days * DAY, UnixTime::now(), &out)
            .unwrap();
        self
    }

    pub fn paths(&self, short: &str) -> IdentityPaths {
        IdentityPaths::in_folder(&self.folder.path().join(short))
    }

    pub fn identity(&self, short: &str) -> Identity {
        Identity::load_as_named(&self.paths(short), system_clock()).unwrap()
    }

    /// The plant with the certificate of `short`; `rights` as `read` and `write`.
    pub fn plant(&self, short: &str, rights: (&[&str], &[&str])) -> Running {
        self.plant_as(short, self.identity(short), rights)
    }

    /// The same with this `identity`.
    pub fn plant_as(
        &self,
        short: &str,
        identity: Identity,
        (read, write): (&[&str], &[&str]),
    ) -> Running {
        let roles = |all: &[&str]| all.iter().map(|it| Role::new(it).unwrap()).collect();
        let (said, refused) = channel();
        let said = Mutex::new(said);
        let door = DoorSettings {
            paths: self.paths(short),
            identity,
            rights: Rights {
                read: roles(read),
                write: roles(write),
            },
            refused: Box::new(move |it: &Refused| drop(said.lock().unwrap().send(it.to_string()))),
        };
        let plant = Plant::bind(PlantOptions::at(([127, 0, 0, 1], 0).into())).unwrap();
        let (plant, stop) = (plant.behind(door), Arc::new(AtomicBool::new(false)));
        let (address, stopped) = (plant.address(), stop.clone());
        let thread = std::thread::spawn(move || plant.run(clock, &stopped).unwrap());
        Running {
            address,
            stop,
            refused,
            thread: Some(thread),
        }
    }

    /// A client with the certificate of `short` of a plant at `address`, and what it says.
    pub fn client(
        &self,
        short: &str,
        address: SocketAddr,
        name: Option<&str>,
    ) -> (Field, Receiver<FieldNote>) {
        client_as((self.paths(short), self.identity(short)), address, name)
    }
}

pub fn client_as(
    (paths, identity): (IdentityPaths, Identity),
    address: SocketAddr,
    name: Option<&str>,
) -> (Field, Receiver<FieldNote>) {
    let (said, notes) = channel();
    let dialer = SecureDialer::start(paths, identity, move |note| drop(said.send(note))).unwrap();
    let security = bumpless_config::DeviceSecurity {
        server_name: name.map(str::to_owned),
    };
    let name = dialer.name_of(&security, address).unwrap();
    let settings = ModbusSettings {
        reconnect_max: Duration::from_millis(64),
        ..ModbusSettings::quadruple_tank(address)
    };
    let field = ModbusField::secure(settings, (dialer, name), clock as fn() -> Instant);
    (field.unwrap(), notes)
}

pub struct Running {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    pub refused: Receiver<String>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.thread
            .take()
            .into_iter()
            .for_each(|it| it.join().unwrap());
    }
}

/// What the client says of a device that it cannot read, or that refuses it.
pub fn refusal(field: &mut Field, notes: &Receiver<FieldNote>) -> (FieldErrorKind, String) {
    let give_up = later();
    let mut kind = None;
    loop {
        match field.read(&mut [0.0; 3], later()) {
            Ok(_) => panic!("it was not refused"),
            Err(error) => kind = kind.or(Some(error.kind)),
        }
        if let Ok(note) = notes.try_recv() {
            return (kind.unwrap(), note.refused.unwrap());
        }
        assert!(clock() < give_up, "nothing is said: {kind:?}");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

pub fn said(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} in {text}");
    }
}

pub fn path(paths: &Path) -> &str {
    paths.to_str().unwrap()
}

/// As [`refusal`], of a connection that is up.
pub fn refusal_at_last(field: &mut Field, notes: &Receiver<FieldNote>) -> (FieldErrorKind, String) {
    let give_up = later();
    while field.read(&mut [0.0; 3], later()).is_ok() {
        assert!(clock() < give_up, "it is still let in");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    refusal(field, notes)
}
