//! What makes the guards of a node's applications.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bumpless_base::{NodeId, PeerId};
use bumpless_config::{self as config, Config, StateKeys};
use bumpless_net_linux::random;

use super::guard::{StateGuard, wall_ns};
use super::health::Healths;
use super::keys::{ChannelKeys, StateRings};
use crate::key_file::{self, KeyFileError};
use crate::wiring::Wiring;

/// Makes the guards of a node's applications, which may come while it runs.
#[derive(Clone)]
pub struct StateGuards {
    node: NodeId,
    /// With whom the applications of each group are shared; `None`: with nobody.
    partners: Vec<Option<(PeerId, NodeId)>>,
    folder: PathBuf,
    rings: StateRings,
    group_rings: StateRings,
    healths: Healths,
}

impl StateGuards {
    /// For the node of `wiring`, with paths of keys from `folder`.
    pub fn new((config, wiring): (&Config, &Wiring), folder: &Path) -> Self {
        let partner = |group| {
            let peer = wiring.partner_in(config, group)?;
            Some((peer, *wiring.partners.get(usize::from(peer.0))?))
        };
        Self {
            node: wiring.node,
            partners: (0..config.groups.len()).map(partner).collect(),
            folder: folder.to_owned(),
            rings: StateRings::default(),
            group_rings: StateRings::default(),
            healths: Healths::default(),
        }
    }

    /// Where secrets of sessions go.
    pub fn rings(&self) -> StateRings {
        self.rings.clone()
    }

    /// Where secrets of key servers go.
    pub fn group_rings(&self) -> StateRings {
        self.group_rings.clone()
    }

    /// Whether states open.
    pub fn healths(&self) -> Healths {
        self.healths.clone()
    }

    /// The guard of the application with these settings; `None`: its states go as they are.
    ///
    /// # Errors
    /// Its key files cannot be used, or the system gives no random number.
    pub fn guard(&self, settings: &config::Application) -> io::Result<Option<StateGuard>> {
        if settings.security.is_none() {
            return Ok(None);
        }
        let partner = self.partners.get(settings.group).copied().flatten();
        let (peer, partner) = partner.ok_or_else(|| io::Error::other("it has no partner"))?;
        let keys = match &settings.security.keys {
            StateKeys::None => ChannelKeys::None,
            StateKeys::Sessions => self.rings.channel(peer),
            StateKeys::Servers => self.group_rings.channel(peer),
            StateKeys::Files(paths) => {
                let keys = key_file::load(paths, &self.folder);
                let keys = keys.map_err(|errors| io::Error::other(key_file::told(&errors)))?;
                ChannelKeys::Given(Arc::new(keys))
            }
        };
        let origin = random::seed().map_err(io::Error::from)?;
        let ends = (self.node.0, partner.0);
        let health = self.healths.of(&settings.name);
        Ok(StateGuard::new(
            settings,
            ends,
            (keys, origin, wall_ns),
            health,
        ))
    }
}

/// What is wrong with the files of keys with which states are sealed, of a configuration in `folder`, each once.
pub fn key_problems(config: &Config, folder: &Path) -> Vec<KeyFileError> {
    let mut lists: Vec<&Vec<PathBuf>> = Vec::new();
    for application in &config.applications {
        if let StateKeys::Files(paths) = &application.security.keys
            && !lists.contains(&paths)
        {
            lists.push(paths);
        }
    }
    let wrong = lists
        .into_iter()
        .filter_map(|paths| key_file::load(paths, folder).err());
    let mut all: Vec<KeyFileError> = Vec::new();
    for error in wrong.flatten() {
        if !all.iter().any(|known| known.path == error.path) {
            all.push(error);
        }
    }
    all
}
