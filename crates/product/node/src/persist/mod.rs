//! States on disk (spec/persist.md): what a node keeps so that a power failure of both computers does not lose it, and
//! what it makes of that at its start.

pub mod folder;
pub mod format;
pub mod identity;
pub mod restore;
pub mod way;
mod writer;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use bumpless_base::{Epoch, Instant, NodeId};
use bumpless_config::{self as config, Config};
use bumpless_net_linux::Clock;

use self::folder::{Folder, FolderError};
use self::identity::Identity;
use self::restore::{Refusal, Restored, judge};
pub use self::way::Keeper;
use self::way::{Bell, way};
use self::writer::{Client, wall_ns};
pub use self::writer::{RunningWriter, Tellers};
use crate::RunError;
use crate::wiring::Wiring;

/// A state that an earlier process of this node has left, as the roles have to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The application's place.
    pub place: usize,
    /// Epoch in which the state's cycle ran.
    pub epoch: Epoch,
    /// Until when it may be gone on from.
    pub usable_until: Instant,
}

/// What was found of one application.
struct Left {
    restored: Option<(Restored, Instant)>,
    refused: Option<String>,
}

/// A node's folder for states, and what was found in it.
pub struct Disk {
    folder: Folder,
    pair: u32,
    prefix: String,
    left: BTreeMap<String, Left>,
    found: Vec<Found>,
}

impl Disk {
    /// Takes the folder of `node`, and reads what an earlier process has left of the applications that persist;
    /// `None`: the node has no folder.
    ///
    /// # Errors
    /// Another node has the folder.
    pub fn open(config: &Config, node: NodeId, wiring: &Wiring) -> Result<Option<Self>, RunError> {
        let settings = &config.nodes[usize::from(node.0)];
        let Some(path) = settings.state_dir.clone() else {
            return Ok(None);
        };
        let mut disk = Self {
            folder: Folder::new(path.clone()),
            pair: config.pair_id(),
            prefix: format!("{}-{}", config.pair, settings.name),
            left: BTreeMap::new(),
            found: Vec::new(),
        };
        match disk.folder.make() {
            Err(FolderError::InUse) => return Err(RunError::StateDir(path)),
            // It is said as soon as there is a state that cannot be written.
            Err(FolderError::Io(_)) => {}
            Ok(()) => disk.folder.remove_leftovers(),
        }
        for (place, &at) in wiring.applications.iter().enumerate() {
            let application = &config.applications[at];
            if application.persist.is_some() {
                disk.look_for(place, application);
            }
        }
        Ok(Some(disk))
    }

    fn look_for(&mut self, place: usize, application: &config::Application) {
        let file = file_name(&self.prefix, &application.name);
        let most = format::size_max(application.state_max as usize);
        let bytes = self.folder.read(&file, most);
        let judged = match bytes {
            Ok(None) => return,
            Ok(Some(bytes)) => judge(&bytes, (self.pair, application), wall_ns()),
            Err(error) => Err(Refusal::Unreadable(error.to_string())),
        };
        let left = match judged {
            Ok(restored) => {
                let usable_until = Clock.now() + restored.usable_for;
                self.found.push(Found {
                    place,
                    epoch: restored.progress.epoch,
                    usable_until,
                });
                Left {
                    restored: Some((restored, usable_until)),
                    refused: None,
                }
            }
            Err(refusal) => Left {
                restored: None,
                refused: Some(self.refuse(&file, &application.name, &refusal)),
            },
        };
        self.left.insert(application.name.clone(), left);
    }

    fn refuse(&self, file: &str, application: &str, refusal: &Refusal) -> String {
        let place = self.folder.file(file);
        let aside = self.folder.put_aside(file);
        let kept = match aside == place {
            true => "it stays until the first new state takes its place".to_owned(),
            false => format!("it was put aside as {}", aside.display()),
        };
        format!(
            "the state of '{application}' on disk is not gone on from: {}: {refusal}; {kept}",
            place.display()
        )
    }

    /// What may be gone on from.
    pub fn found(&self) -> &[Found] {
        &self.found
    }

    /// What was refused, a sentence each.
    pub fn refusals(&self) -> impl Iterator<Item = &String> {
        self.left.values().filter_map(|left| left.refused.as_ref())
    }

    /// Starts to write states; executors get their way to the disk from what is returned.
    ///
    /// # Errors
    /// What the system says.
    pub fn start(self, tellers: Tellers) -> std::io::Result<(RunningWriter, Keeping)> {
        let (clients, receiver): (Sender<Client>, Receiver<Client>) = channel();
        let bell = Arc::new(Bell::default());
        let writer = RunningWriter::start(self.folder, receiver, tellers, &bell)?;
        let keeping = Keeping {
            pair: self.pair,
            prefix: self.prefix,
            left: Arc::new(Mutex::new(self.left)),
            clients,
            bell,
        };
        Ok((writer, keeping))
    }
}

/// Gives executors their way to the disk.
#[derive(Clone)]
pub struct Keeping {
    pair: u32,
    prefix: String,
    left: Arc<Mutex<BTreeMap<String, Left>>>,
    clients: Sender<Client>,
    bell: Arc<Bell>,
}

impl Keeping {
    /// The way of the application number `application` with these settings; `None`: it does not persist. The first
    /// one of a name gets what was found of it.
    pub fn keeper(&self, application: u16, settings: &config::Application) -> Option<Keeper> {
        let every = settings.persist?;
        let name = &settings.name;
        let left = self.left.lock().ok().and_then(|mut left| left.remove(name));
        let (restored, refused) = left.map_or((None, None), |left| (left.restored, left.refused));
        let restored = restored
            .as_ref()
            .map(|(restored, until)| (&restored.state[..], *until));
        let (keeper, outlet) = way(settings.state_max as usize, every, restored, &self.bell);
        let client = Client {
            application,
            file: file_name(&self.prefix, name),
            identity: Identity::new(self.pair, settings),
            outlet,
            refused,
        };
        // The thread ends after all executors.
        let _ = self.clients.send(client);
        Some(keeper)
    }
}

fn file_name(prefix: &str, application: &str) -> String {
    format!("{prefix}-{application}")
}

/// What the start of a node says whose folder another one has.
pub(crate) fn in_use(path: &Path) -> String {
    format!(
        "state_dir {}: another node keeps its states there, maybe by another path; give each node a folder of its own",
        path.display()
    )
}
