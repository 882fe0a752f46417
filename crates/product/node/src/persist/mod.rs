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
use bumpless_controller::retain::{Applied, Record, Table};
use bumpless_net_linux::Clock;
use bumpless_transfer::ChannelPlace;

use self::folder::{Folder, FolderError};
use self::identity::{Identity, Saved, Versions};
use self::restore::{Judged, LeftRecord, Refusal, Restored, judge};
pub use self::way::Keeper;
use self::way::{Bell, way};
use self::writer::{Client, wall_ns};
pub use self::writer::{RunningWriter, Tellers};
use crate::RunError;
use crate::membership::ApplicationNumber;
use crate::program;
use crate::wiring::Wiring;

/// Files up to this size are looked into, whatever the application's own states may have.
const OTHERS_MAX: usize = 64 << 20;

/// A state that an earlier process of this node has left, as the roles have to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The application's place.
    pub place: ChannelPlace,
    /// Epoch in which the state's cycle ran.
    pub epoch: Epoch,
    /// Until when it may be gone on from; `None`: only its retained variables are of use.
    pub usable_until: Option<Instant>,
}

/// What was found of one application.
struct Left {
    restored: Option<(Restored, Instant)>,
    retained: Option<LeftRecord>,
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
    /// `None`: the node has no folder. What is not `wanted` any more while a program tries its state is left as it is.
    ///
    /// # Errors
    /// Another node has the folder.
    pub fn open(
        config: &Config,
        node: NodeId,
        wiring: &Wiring,
        wanted: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, RunError> {
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
        for place in wiring.applications.indices() {
            let application = &config.applications[wiring.applications[place]];
            if application.persist.is_some() {
                disk.look_for(place, application, wanted);
            }
        }
        Ok(Some(disk))
    }

    fn look_for(
        &mut self,
        place: ChannelPlace,
        application: &config::Application,
        wanted: &dyn Fn() -> bool,
    ) {
        let file = file_name(&self.prefix, &application.name);
        // Another version of the program may have had a larger state, and what it retained is of use.
        let most = format::size_max(application.state_max as usize).max(OTHERS_MAX);
        let Judged { state, retained } = match self.folder.read(&file, most) {
            Ok(None) => return,
            Ok(Some(bytes)) => judge(&bytes, (self.pair, application), wall_ns(), wanted),
            Err(error) => Judged::refused(Refusal::Unreadable(error.to_string())),
        };
        // A state of which nobody has found out whether it is taken is neither refused nor put aside.
        if state.is_err() && !wanted() {
            return;
        }
        let table = retained_of(application);
        let retained = retained.filter(|_| !table.is_empty());
        let progress = match (&state, &retained) {
            (Ok(restored), _) => Some(restored.progress),
            (Err(_), left) => left.as_ref().map(|left| left.progress),
        };
        let usable_until = state.as_ref().ok().map(|it| Clock.now() + it.usable_for);
        self.found.extend(progress.map(|progress| Found {
            place,
            epoch: progress.epoch,
            usable_until,
        }));
        let refused = state.as_ref().err().map(|refusal| {
            let applied = retained.as_ref().and_then(|left| {
                let record = Record::parse(&left.record)?;
                // Only what fits is of interest here.
                Some(table.apply(record, &mut vec![0; application.state_max as usize]))
            });
            self.refuse(&file, &application.name, (refusal, applied.as_ref()))
        });
        let left = Left {
            restored: state.ok().zip(usable_until),
            retained,
            refused,
        };
        self.left.insert(application.name.clone(), left);
    }

    /// `retained`: what becomes of what is retained in it, where the program begins anew.
    fn refuse(
        &self,
        file: &str,
        application: &str,
        (refusal, retained): (&Refusal, Option<&Applied>),
    ) -> String {
        let place = self.folder.file(file);
        let stays = "it stays until the first new state takes its place";
        let kept = if let Some(applied) = retained {
            let aside = self.folder.keep_beside(file);
            let aside = aside.map(|aside| format!(", and as {}", aside.display()));
            format!(
                "where the program begins anew, {applied}; {stays}{}",
                aside.unwrap_or_default()
            )
        } else {
            match self.folder.put_aside(file) {
                aside if aside == place => stays.to_owned(),
                aside => format!("it was put aside as {}", aside.display()),
            }
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
            versions: Arc::default(),
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
    /// Of each application that persists, by name.
    versions: Arc<Mutex<BTreeMap<String, Versions>>>,
    clients: Sender<Client>,
    bell: Arc<Bell>,
}

impl Keeping {
    /// The way of `application` with these settings, whose program is `version`; `None`: it does not
    /// persist. The first one of a name gets what was found of it.
    pub fn keeper(
        &self,
        application: ApplicationNumber,
        settings: &config::Application,
        version: Saved,
    ) -> Option<Keeper> {
        let every = settings.persist?;
        let name = &settings.name;
        let left = self.left.lock().ok().and_then(|mut left| left.remove(name));
        let (restored, retained, refused) = left.map_or((None, None, None), |left| {
            (left.restored, left.retained, left.refused)
        });
        let restored = restored
            .as_ref()
            .map(|(restored, until)| (&restored.state[..], *until));
        let (keeper, outlet) = way(settings.state_max as usize, every, restored, &self.bell);
        let versions = Versions::default();
        versions.add(version);
        if let Ok(mut all) = self.versions.lock() {
            all.insert(name.clone(), versions.clone());
        }
        let client = Client {
            application,
            file: file_name(&self.prefix, name),
            identity: Identity::new(self.pair, settings, versions),
            outlet,
            refused,
        };
        // The thread ends after all executors.
        let _ = self.clients.send(client);
        Some(keeper.retaining(retained))
    }

    /// From here on states of `version` may come of the application of this name, too.
    pub fn add_version(&self, application: &str, version: Saved) {
        let Ok(all) = self.versions.lock() else {
            return;
        };
        if let Some(versions) = all.get(application) {
            versions.add(version);
        }
    }
}

/// What the application retains. Where that cannot be told, it does not start either, and says why.
fn retained_of(settings: &config::Application) -> Table {
    program::retained(settings).unwrap_or_default()
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
