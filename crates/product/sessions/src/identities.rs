//! A node's identity while its files change.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bumpless_pki::{Identity, IdentityPaths, system_clock};

/// Files of the identity are read again no more often than this.
const RELOAD: Duration = Duration::from_secs(1);

/// A node's identity, read again when sessions are made, so that renewed certificates and revocations count.
pub struct Identities {
    paths: IdentityPaths,
    loaded: Arc<Identity>,
    read_at: Instant,
    /// The list of what is revoked, and when it is looked at again.
    list: Mark,
    look_at: Instant,
}

/// When a file was changed last, and its length; `None`: it is not there.
type Mark = Option<(SystemTime, u64)>;

fn mark(paths: &IdentityPaths) -> Mark {
    let list = IdentityPaths::in_folder(paths.certificate.parent()?).revoked?;
    let metadata = std::fs::metadata(list).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

impl Identities {
    /// `loaded` from `paths`, which is read again from there.
    pub fn new(paths: IdentityPaths, loaded: Identity, now: Instant) -> Self {
        Self {
            list: mark(&paths),
            paths,
            loaded: Arc::new(loaded),
            read_at: now,
            look_at: now,
        }
    }

    /// The identity, if the list of what is revoked is another one than when it was looked at last.
    pub fn changed(&mut self, now: Instant) -> Option<Arc<Identity>> {
        if now < self.look_at {
            return None;
        }
        self.look_at = now + RELOAD;
        let found = mark(&self.paths);
        if found == self.list {
            return None;
        }
        self.list = found;
        self.read_at = now.checked_sub(RELOAD).unwrap_or(now);
        Some(self.fresh(now))
    }

    /// What was loaded last, to be kept.
    pub fn current(&self) -> Arc<Identity> {
        Arc::clone(&self.loaded)
    }

    /// What was loaded last.
    pub fn loaded(&self) -> &Identity {
        &self.loaded
    }

    /// What the files have, or, if they cannot be used at present, what they had.
    pub fn fresh(&mut self, now: Instant) -> Arc<Identity> {
        if now >= self.read_at + RELOAD {
            self.read_at = now;
            let folder = self.paths.certificate.parent();
            let paths = folder.map_or(self.paths.clone(), IdentityPaths::in_folder);
            let name = self.loaded.name();
            if let Ok(identity) = Identity::load(&paths, name.node(), name.pair(), system_clock()) {
                self.loaded = Arc::new(identity);
            }
        }
        Arc::clone(&self.loaded)
    }
}
