//! A node's identity while its files change.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bumpless_pki::{Identity, IdentityPaths, Problem, Problems};

/// Files of the identity are read again no more often than this.
const RELOAD: Duration = Duration::from_secs(1);
/// And no less often, so that what is wrong with them is known before a session needs them.
const RELOAD_IDLE: Duration = Duration::from_secs(60);

/// A node's identity, read again when sessions are made, so that renewed certificates and revocations count.
///
/// The list of what is revoked counts by itself: whatever is wrong with the node's own certificate or key, who is
/// revoked is not believed.
pub struct Identities {
    paths: IdentityPaths,
    loaded: Arc<Identity>,
    read_at: Instant,
    /// Why the node's files cannot be used as they are.
    refused: Option<Problems>,
    /// The list by which was judged last; `None`: it is to be judged anew.
    list: Option<Mark>,
    /// Why the list cannot be used, though it is another one.
    list_refused: Option<Problems>,
    /// When the list is looked at again.
    look_at: Instant,
    /// What was told to need care, and when that is looked at again.
    told: Vec<String>,
    tell_at: Instant,
}

/// Which file it was: number, time of its last change in seconds and nanoseconds, and length. `None`: none is there.
type Mark = Option<(u64, i64, i64, u64)>;

fn mark(paths: &IdentityPaths) -> Mark {
    let metadata = std::fs::metadata(paths.revoked.as_ref()?).ok()?;
    let changed = (metadata.ctime(), metadata.ctime_nsec());
    Some((metadata.ino(), changed.0, changed.1, metadata.len()))
}

impl Identities {
    /// `loaded` from `paths`, which is read again from there.
    pub fn new(paths: IdentityPaths, loaded: Identity, now: Instant) -> Self {
        Self {
            paths,
            loaded: Arc::new(loaded),
            read_at: now,
            refused: None,
            list: None,
            list_refused: None,
            look_at: now,
            told: Vec::new(),
            tell_at: now,
        }
    }

    /// The identity, if the list of what is revoked is another one than when it was judged by last, and at first. A list
    /// that cannot be used is tried again at each look.
    pub fn changed(&mut self, now: Instant) -> Option<Arc<Identity>> {
        if now < self.look_at {
            return None;
        }
        self.look_at = now + RELOAD;
        if now >= self.read_at + RELOAD_IDLE {
            self.read(now);
        }
        let paths = self.paths();
        // Before it is read: if it changes meanwhile, it is read again.
        let found = mark(&paths);
        if self.list == Some(found) {
            // Another one may have been there meanwhile.
            self.list_refused = None;
            return None;
        }
        match self.loaded.with_lists(&paths) {
            Ok(identity) => {
                (self.list, self.list_refused) = (Some(found), None);
                self.loaded = Arc::new(identity);
                self.read(now);
                Some(Arc::clone(&self.loaded))
            }
            Err(problems) => {
                self.list_refused = Some(problems);
                None
            }
        }
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
            self.read(now);
        }
        Arc::clone(&self.loaded)
    }

    /// What needs care, if that is not what this told last; it is looked at each second.
    pub fn news(&mut self, now: Instant) -> Option<&[String]> {
        if now < self.tell_at {
            return None;
        }
        self.tell_at = now + RELOAD;
        let cares = self.cares();
        (cares != self.told).then(|| {
            self.told = cares;
            &*self.told
        })
    }

    /// What needs care, a line each: files that cannot be used, what will end, and what has not been renewed.
    pub fn cares(&self) -> Vec<String> {
        let refused = |(what, problems): (&str, &Option<Problems>)| {
            let problems = problems.as_ref()?.0.iter().map(Problem::lasting);
            Some(format!(
                "{what}: {}",
                problems.collect::<Vec<_>>().join("; ")
            ))
        };
        let files =
            "the files of this node's certificate cannot be used, and what they had is used on";
        let list = "the list of what is revoked cannot be used, and the one before counts";
        let all = [(files, &self.refused), (list, &self.list_refused)];
        let mut lines: Vec<_> = all.into_iter().filter_map(refused).collect();
        lines.extend(self.loaded.ending());
        lines.extend(self.loaded.notes().iter().cloned());
        lines
    }

    fn read(&mut self, now: Instant) {
        self.read_at = now;
        match self.loaded.load_again(&self.paths()) {
            Ok(identity) => {
                self.loaded = Arc::new(identity);
                self.refused = None;
            }
            Err(problems) => self.refused = Some(problems),
        }
    }

    /// The paths, with the list if there is one by now.
    fn paths(&self) -> IdentityPaths {
        let folder = self.paths.certificate.parent();
        folder.map_or(self.paths.clone(), IdentityPaths::in_folder)
    }
}
