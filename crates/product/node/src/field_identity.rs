//! What a node shows of itself to field devices with Modbus/TCP Security, and what became of that.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bumpless_config::{self as config, Certificates, Config, FieldDevices, FieldIo};
use bumpless_controller::{DriverLink, FieldNote, SecureDialer};
use bumpless_pki::Identity;

use crate::certificates::{self, IdentityError};
use crate::field_drivers::{self, FieldDrivers, Opened};
use crate::field_values::FieldValues;
use crate::warn;

/// What devices are refused, or refuse, by device; shared between those that hear of it and those that show it.
#[derive(Clone, Debug, Default)]
pub struct FieldNotes(Arc<Mutex<BTreeMap<String, String>>>);

impl FieldNotes {
    /// Keeps `note`, and tells people.
    fn take(&self, note: FieldNote) {
        warn(&note);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match note.refused {
            Some(refused) => all.insert(note.device, refused),
            None => all.remove(&note.device),
        };
    }

    /// What holds, a sentence each.
    pub fn weaknesses(&self) -> Vec<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let told =
            |(device, refused): (&String, &String)| format!("field device {device}: {refused}");
        all.iter().map(told).collect()
    }
}

/// What field I/O has to tell people: refusals, and values.
#[derive(Clone, Debug, Default)]
pub struct FieldBoards {
    /// What devices are refused, or refuse.
    pub notes: FieldNotes,
    /// What was read and written.
    pub values: FieldValues,
    /// How field drivers fare.
    pub drivers: FieldDrivers,
}

/// This node, as devices see it.
#[derive(Clone, Debug)]
pub struct FieldIdentity {
    /// The configuration's folder.
    folder: PathBuf,
    node: String,
    pair: String,
    boards: FieldBoards,
}

impl FieldIdentity {
    /// Of the node `node` of `config`, a configuration in `folder`.
    pub fn new((config, node): (&Config, &str), folder: &Path, boards: FieldBoards) -> Self {
        Self {
            folder: folder.to_owned(),
            node: node.to_owned(),
            pair: config.pair.clone(),
            boards,
        }
    }

    /// The driver of `device` of the application with `settings`, which stands in `opened` if it begins.
    ///
    /// # Errors
    /// What the system says.
    pub fn driver(
        &self,
        settings: &config::Application,
        device: usize,
        opened: &mut Opened,
    ) -> io::Result<Box<dyn DriverLink>> {
        let own = (&*self.node, &*self.pair);
        let order = field_drivers::order(settings, device, (&self.folder, own));
        let order = order.ok_or_else(|| io::Error::other("no field driver is configured there"))?;
        let driver = self.boards.drivers.open(order, opened)?;
        Ok(Box::new(driver))
    }

    /// How field drivers fare.
    pub const fn drivers(&self) -> &FieldDrivers {
        &self.boards.drivers
    }

    /// Where what is read and written is left.
    pub const fn values(&self) -> &FieldValues {
        &self.boards.values
    }

    /// What makes the protected connections of an application; `None`: it has none.
    ///
    /// # Errors
    /// The files of the identity cannot be used, or what the system says.
    pub fn dialer(&self, settings: &config::Application) -> io::Result<Option<SecureDialer>> {
        let certificates = settings
            .field
            .as_ref()
            .and_then(|it| it.certificates.as_deref());
        let Some(certificates) = certificates else {
            return Ok(None);
        };
        let folder = self.folder.join(certificates);
        let paths = certificates::paths(&folder, &self.node, &self.pair);
        let identity = Identity::load(&paths, &self.node, &self.pair, bumpless_pki::system_clock());
        let identity = identity.map_err(|problems| io::Error::other(problems.to_string()))?;
        let notes = self.boards.notes.clone();
        let dialer = SecureDialer::start(paths, identity, move |note| notes.take(note))?;
        Ok(Some(dialer))
    }

    /// Whether the node has what the protected connections of `config` need.
    ///
    /// # Errors
    /// As [`check`].
    pub fn check(&self, config: &Config) -> Result<(), IdentityError> {
        check((config, &self.node), &self.folder)
    }
}

/// Whether `node` of `config`, a configuration in `folder`, has the certificate that it shows to field devices.
///
/// # Errors
/// It has none, or everything that is wrong with its files.
pub fn check((config, node): (&Config, &str), folder: &Path) -> Result<(), IdentityError> {
    for certificates in folders(config) {
        certificates::identity(&certificates, (config, node), folder)?;
    }
    Ok(())
}

/// Folders with certificates for field devices that are not those of messages, each once.
pub fn folders(config: &Config) -> Vec<Certificates> {
    let of_messages = match &config.security {
        config::Security::Certificates(given) => Some(&given.folder),
        _ => None,
    };
    let fields = config
        .applications
        .iter()
        .filter_map(|it| it.field.as_ref());
    let mut folders: Vec<_> = fields.filter_map(|it| it.certificates.as_ref()).collect();
    folders.retain(|folder| Some(*folder) != of_messages);
    folders.sort();
    folders.dedup();
    let certificates = |folder: &PathBuf| Certificates {
        folder: folder.clone(),
        key_lifetime: bumpless_base::Duration::ZERO,
        key_servers: Vec::new(),
    };
    folders.into_iter().map(certificates).collect()
}

/// How many devices the connection is protected to.
pub fn secure_count(field: &FieldIo) -> usize {
    match &field.devices {
        FieldDevices::Tank { security, .. } => usize::from(security.is_some()),
        FieldDevices::Program(devices) => {
            devices.iter().filter(|it| it.security().is_some()).count()
        }
    }
}
