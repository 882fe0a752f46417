//! What a running node makes of its files when they change: who is revoked is so, whatever else is wrong with them.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bumpless_pki::rustls::pki_types::pem::PemObject;
use bumpless_pki::rustls::pki_types::{CertificateDer, UnixTime};
use bumpless_pki::rustls::time_provider::TimeProvider;
use bumpless_pki::{Authority, Identity, IdentityPaths};
use bumpless_sessions::Identities;
use tempfile::TempDir;

/// Some time in 2027, and a day.
const NOW: u64 = 1_800_000_000;
const DAY: u64 = 86_400;
const SECOND: Duration = Duration::from_secs(1);

/// A clock that the test moves on.
#[derive(Debug)]
struct Moved(Arc<AtomicU64>);

impl TimeProvider for Moved {
    fn current_time(&self) -> Option<UnixTime> {
        Some(time(self.0.load(Ordering::Relaxed)))
    }
}

fn time(seconds: u64) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(seconds))
}

/// `left.tank`, which has been shown the certificate of `right.tank`.
struct Site {
    folder: TempDir,
    authority: Authority,
    clock: Arc<AtomicU64>,
    identities: Identities,
    shown: Vec<CertificateDer<'static>>,
    began: Instant,
    looks: u32,
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let years = Duration::from_secs(3_650 * DAY);
        let pki = folder.path().join("pki");
        let authority = Authority::create(&pki, "plant", years, time(NOW)).unwrap();
        for (name, days) in [("left.tank", 90), ("right.tank", 900)] {
            let lasts = Duration::from_secs(days * DAY);
            let (out, name) = (folder.path().join(name), authority.name(name).unwrap());
            authority.issue(&name, lasts, time(NOW), &out).unwrap();
        }
        let right = folder.path().join("right.tank/certificate.pem");
        let shown = CertificateDer::pem_file_iter(right).unwrap();
        let shown = shown.collect::<Result<_, _>>().unwrap();
        let clock = Arc::new(AtomicU64::new(NOW));
        let paths = IdentityPaths::in_folder(&folder.path().join("left.tank"));
        let moved = Arc::new(Moved(Arc::clone(&clock)));
        let identity = Identity::load(&paths, "left", "tank", moved).unwrap();
        let began = Instant::now();
        let mut site = Self {
            folder,
            authority,
            clock,
            identities: Identities::new(paths, identity, began),
            shown,
            began,
            looks: 0,
        };
        assert!(!site.look(), "at first it is judged, and nobody is revoked");
        site
    }

    fn own(&self, file: &str) -> PathBuf {
        self.folder.path().join("left.tank").join(file)
    }

    /// Revokes `right.tank`, and brings the list to `left.tank`.
    fn revoke(&self) {
        self.authority.revoke("right.tank", time(NOW)).unwrap();
        let list = fs::read(self.folder.path().join("pki/revoked.pem")).unwrap();
        fs::write(self.own("revoked.pem"), list).unwrap();
    }

    /// A second later: whether `right.tank` is found to be revoked.
    fn look(&mut self) -> bool {
        self.looks += 1;
        let now = self.began + SECOND * self.looks;
        let changed = self.identities.changed(now);
        changed.is_some_and(|identity| identity.has_revoked(&self.shown))
    }

    /// Whether it would be let in by a session that begins a second later.
    fn lets_in(&mut self) -> bool {
        self.looks += 1;
        let identity = self.identities.fresh(self.began + SECOND * self.looks);
        !identity.has_revoked(&self.shown)
    }

    fn cares(&self) -> String {
        self.identities.cares().join("\n")
    }
}

#[test]
fn a_list_counts_once_and_when_it_is_another_one() {
    let mut site = Site::new();
    assert!(!site.look());
    site.revoke();
    assert!(site.look());
    assert!(!site.look(), "it has been told");
    assert!(!site.lets_in());
}

#[test]
fn a_list_counts_though_the_nodes_own_certificate_has_ended() {
    let mut site = Site::new();
    site.clock.store(NOW + 91 * DAY, Ordering::Relaxed);
    site.revoke();
    assert!(site.look());
    assert!(
        !site.lets_in(),
        "nor is it let in by what was loaded before"
    );
    assert!(site.cares().contains("has ended"), "{}", site.cares());
}

#[test]
fn a_list_counts_though_the_nodes_own_files_are_only_half_copied() {
    for file in ["certificate.pem", "key.pem"] {
        let mut site = Site::new();
        let whole = fs::read(site.own(file)).unwrap();
        fs::write(site.own(file), &whole[..whole.len() / 2]).unwrap();
        site.revoke();
        assert!(site.look(), "{file}");
        assert!(site.cares().contains(file), "{}", site.cares());
        fs::write(site.own(file), &whole).unwrap();
        assert!(!site.lets_in(), "{file}");
        assert_eq!(site.cares(), "");
    }
}

#[test]
fn a_list_that_cannot_be_used_is_told_and_tried_until_it_can() {
    let mut site = Site::new();
    fs::write(site.own("revoked.pem"), "nonsense").unwrap();
    assert!(!site.look());
    assert!(site.cares().contains("revoked.pem"), "{}", site.cares());
    // It is whole by now, and by whom it is cannot be seen; then that is mended, and the list stays as it is.
    let authority = fs::read(site.own("authority.pem")).unwrap();
    fs::write(site.own("authority.pem"), "nonsense").unwrap();
    site.revoke();
    assert!(!site.look());
    fs::write(site.own("authority.pem"), authority).unwrap();
    assert!(site.look());
    assert_eq!(site.cares(), "");
}

#[test]
fn a_list_that_cannot_be_used_and_is_taken_away_again_is_told_no_more() {
    let mut site = Site::new();
    fs::remove_file(site.own("revoked.pem")).unwrap();
    assert!(!site.look(), "there is none, and that is judged by");
    fs::write(site.own("revoked.pem"), "nonsense").unwrap();
    assert!(!site.look());
    assert!(site.cares().contains("revoked.pem"), "{}", site.cares());
    fs::remove_file(site.own("revoked.pem")).unwrap();
    assert!(!site.look());
    assert_eq!(site.cares(), "");
}

#[test]
fn what_stays_wrong_is_told_once() {
    let mut site = Site::new();
    let mut told = 0;
    for days in [91, 92, 93] {
        site.clock.store(NOW + days * DAY, Ordering::Relaxed);
        assert!(site.lets_in());
        let now = site.began + SECOND * site.looks;
        told += u32::from(site.identities.news(now).is_some());
    }
    assert_eq!(told, 1);
    assert!(site.cares().contains("has ended"), "{}", site.cares());
}

#[test]
fn the_end_of_the_nodes_certificate_is_told_before_it_comes() {
    let mut site = Site::new();
    let told_after = |site: &mut Site, days: u64| {
        site.clock.store(NOW + days * DAY, Ordering::Relaxed);
        site.cares()
    };
    assert_eq!(told_after(&mut site, 59), "");
    for days in [61, 89] {
        let cares = told_after(&mut site, days);
        assert!(cares.contains("left.tank ends on 2027"), "{cares}");
    }
}
