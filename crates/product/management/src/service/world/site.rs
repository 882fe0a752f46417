//! Authorities and what they issue and revoke, and the clocks by which nodes judge that.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bumpless_pki::rustls::pki_types::UnixTime;
use bumpless_pki::rustls::time_provider::TimeProvider;
use bumpless_pki::{Authority, NodeName};
use tempfile::TempDir;

pub const DAY: u64 = 86_400;
/// When everything is issued, seconds since 1970.
const ISSUED: u64 = 1_700_000_000;
/// What clocks show that are right.
const RIGHT: u64 = ISSUED + 3_600;
pub const NAMES: [&str; 2] = ["left.tank", "right.tank"];
/// What a foreign authority's list revokes of its own.
const FOREIGN: &str = "right.tank";

fn at(seconds: u64) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(seconds))
}

/// A node's clock.
#[derive(Clone, Debug)]
pub struct WallClock(Arc<AtomicU64>);

impl WallClock {
    pub fn right() -> Self {
        Self(Arc::new(AtomicU64::new(RIGHT)))
    }

    /// Shows what is so many days off.
    pub fn set(&self, days: i64) {
        let shown = RIGHT.saturating_add_signed(days * DAY as i64);
        self.0.store(shown, Ordering::Relaxed);
    }
}

impl TimeProvider for WallClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(at(self.0.load(Ordering::Relaxed)))
    }
}

pub struct Site {
    folder: TempDir,
    authority: Authority,
    foreign: Authority,
    /// How many certificates each node was issued, and how many of the first of them are revoked.
    issued: [usize; 2],
    pub revoked: [usize; 2],
    files: usize,
}

impl Site {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let year = Duration::from_secs(365 * DAY);
        let [authority, foreign] = ["pki", "foreign"].map(|name| {
            Authority::create(&folder.path().join(name), "plant", year, at(ISSUED)).unwrap()
        });
        let site = Self {
            folder,
            authority,
            foreign,
            issued: [0; 2],
            revoked: [0; 2],
            files: 0,
        };
        site.give(&site.authority, "right.boiler", "boiler");
        site.give(&site.foreign, FOREIGN, "stranger");
        site.foreign.revoke(FOREIGN, at(RIGHT)).unwrap();
        site
    }

    fn give(&self, by: &Authority, name: &str, folder: &str) -> PathBuf {
        let out = self.folder.path().join(folder);
        let name = by.name(name).unwrap();
        by.issue(&name, Duration::from_secs(DAY), at(ISSUED), &out)
            .unwrap();
        out
    }

    pub fn name(&self, of: usize) -> NodeName {
        self.authority.name(NAMES[of]).unwrap()
    }

    pub fn folder(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A certificate of the node at `of`, in a folder of its own with the list of by now; its number and the folder.
    pub fn issue(&mut self, of: usize) -> (usize, PathBuf) {
        let number = self.issued[of];
        self.issued[of] += 1;
        let folder = self.give(
            &self.authority,
            NAMES[of],
            &format!("{}-{number}", NAMES[of]),
        );
        (number, folder)
    }

    /// All that the node at `of` was issued is revoked.
    pub fn revoke(&mut self, of: usize) {
        if self.revoked[of] < self.issued[of] {
            self.authority.revoke(NAMES[of], at(RIGHT)).unwrap();
            self.revoked[of] = self.issued[of];
        }
    }

    pub fn list(&self) -> Vec<u8> {
        std::fs::read(self.folder("pki/revoked.pem")).unwrap()
    }

    /// A list of another authority, which says nothing here.
    pub fn foreign_list(&self) -> Vec<u8> {
        std::fs::read(self.folder("foreign/revoked.pem")).unwrap()
    }

    /// Puts a list into a node's folder at once, as a file that was never there: two within a tick of the file system's
    /// clock would look alike.
    pub fn put(&mut self, list: &[u8], folder: &Path) {
        self.files += 1;
        let kept = self.folder(&format!("list-{}", self.files));
        std::fs::write(&kept, list).unwrap();
        let coming = folder.join("coming");
        std::fs::hard_link(&kept, &coming).unwrap();
        std::fs::rename(coming, folder.join("revoked.pem")).unwrap();
    }
}
