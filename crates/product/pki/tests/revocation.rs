//! What was shown in a session, and is revoked while the session goes on.

mod support;

use bumpless_pki::rustls::pki_types::CertificateDer;
use bumpless_pki::rustls::pki_types::pem::PemObject;
use std::time::Duration;
use support::{DAY, NOW, Site, load_at, time};

/// When right is given its certificate, which is valid for a day.
const ISSUED: u64 = NOW + 2 * DAY;

/// What right has shown.
fn shown(site: &Site) -> Vec<CertificateDer<'static>> {
    let day = Duration::from_secs(DAY);
    let (name, out) = (site.name("right.tank"), site.path("right.tank"));
    site.authority
        .issue(&name, day, time(ISSUED), &out)
        .unwrap();
    let file = site.paths("right.tank").certificate;
    let all = CertificateDer::pem_file_iter(file).unwrap();
    all.collect::<Result<_, _>>().unwrap()
}

#[test]
fn who_is_revoked_is_so_before_within_and_after_the_time_of_its_certificate() {
    let site = Site::new("plant7");
    site.issue("left.tank");
    let shown = shown(&site);
    let has_revoked = |now: u64| {
        let left = load_at(&site.paths("left.tank"), "left.tank", now).unwrap();
        left.has_revoked(&shown)
    };
    let times = [NOW, ISSUED, ISSUED + DAY + 1, ISSUED + 5 * DAY];
    assert_eq!(times.map(has_revoked), [false; 4]);
    site.authority.revoke("right.tank", time(NOW)).unwrap();
    assert_eq!(
        times.map(has_revoked),
        [false; 4],
        "left knows nothing of it"
    );
    site.copy_list("left.tank");
    assert_eq!(times.map(has_revoked), [true; 4]);
    let left = site.load("left.tank").unwrap();
    assert!(!left.has_revoked(&[]), "nobody has shown anything");
}

#[test]
fn the_end_of_a_certificate_is_no_revocation_and_neither_is_nonsense() {
    let site = Site::new("plant7");
    site.issue("left.tank");
    site.issue("spare.tank");
    let shown = shown(&site);
    site.authority.revoke("spare.tank", time(NOW)).unwrap();
    site.copy_list("left.tank");
    for now in [NOW, ISSUED, ISSUED + 2 * DAY] {
        let left = load_at(&site.paths("left.tank"), "left.tank", now).unwrap();
        assert!(!left.has_revoked(&shown));
        assert!(!left.has_revoked(&[CertificateDer::from(vec![0x30, 0])]));
    }
}
