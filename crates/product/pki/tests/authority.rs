//! A site's authority: made once, issues for its site and its time alone, and revokes.

mod support;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use bumpless_guarded_file as guarded_file;
use bumpless_pki::{Authority, Cause, NodeName, Problem};
use support::{DAY, Foreign, NOW, Site, YEAR, mode, node_params, time};

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn bits(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn says(problem: &Problem, words: &[&str]) {
    let told = problem.to_string();
    for words in words {
        assert!(told.contains(words), "{words:?} is not in: {told}");
    }
}

#[test]
fn an_authority_is_a_folder_that_only_its_user_may_enter() {
    let site = Site::new("plant7");
    assert_eq!(
        names(&site.pki()),
        ["authority.key", "authority.pem", "revoked.pem"]
    );
    assert_eq!(bits(&site.pki()), 0o700);
    assert_eq!(bits(&site.pki().join("authority.key")), 0o600);
    let read = site.authority.certificate();
    assert!(read.authority && !read.signs);
    assert_eq!(read.may_issue, ["plant7"]);
    assert_eq!(
        (read.begins, read.ends),
        (time(NOW - 3600), time(NOW + 3650 * DAY))
    );
    assert_eq!(
        names(site.folder.path()),
        ["pki"],
        "and nothing half made stays"
    );
    let again = Authority::load(&site.pki()).unwrap();
    assert_eq!(again.certificate(), site.authority.certificate());
}

#[test]
fn an_authority_is_never_overwritten() {
    let site = Site::new("plant7");
    let before = fs::read(site.pki().join("authority.key")).unwrap();
    let refused = Authority::create(&site.pki(), "plant8", YEAR, time(NOW)).unwrap_err();
    assert!(matches!(
        refused.cause,
        Cause::File(guarded_file::Cause::Exists)
    ));
    says(
        &refused,
        &[site.pki().to_str().unwrap(), "nothing is overwritten"],
    );
    assert_eq!(fs::read(site.pki().join("authority.key")).unwrap(), before);
    assert_eq!(names(site.folder.path()), ["pki"]);
    // One with the same name in another folder is another one.
    let other = Authority::create(&site.path("other"), "plant7", YEAR, time(NOW)).unwrap();
    assert_ne!(
        other.certificate().subject,
        site.authority.certificate().subject
    );
}

#[test]
fn a_site_or_lifetime_that_cannot_be_is_refused_and_nothing_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let pki = folder.path().join("pki");
    let long = "s".repeat(49);
    for site in [
        "", ".", "plant7.", "-plant", "7", "plant.7", "pl ant", "pl,ant", "pl*nt", "wärme", &long,
    ] {
        let refused = Authority::create(&pki, site, YEAR, time(NOW)).unwrap_err();
        assert!(
            matches!(refused.cause, Cause::Name(_)),
            "{site}: {refused:?}"
        );
        says(
            &refused,
            &["cannot stand in a certificate", "such as plant7"],
        );
    }
    for lifetime in [0, 36_501 * DAY, u64::MAX] {
        let lifetime = Duration::from_secs(lifetime);
        let refused = Authority::create(&pki, "plant7", lifetime, time(NOW)).unwrap_err();
        assert!(matches!(refused.cause, Cause::Lifetime), "{refused:?}");
    }
    let refused = Authority::create(&pki, "plant7", YEAR, time(u64::MAX)).unwrap_err();
    assert!(matches!(refused.cause, Cause::Lifetime), "{refused:?}");
    assert_eq!(names(folder.path()), [""; 0]);
    for site in ["s", &"s".repeat(48), "Plant_7-b", "plant7.example.com"] {
        let made = Authority::create(&pki, site, YEAR, time(NOW)).unwrap();
        assert_eq!(made.site(), site.to_ascii_lowercase());
        fs::remove_dir_all(&pki).unwrap();
    }
}

#[test]
fn names_that_a_configuration_allows_and_a_certificate_does_not_are_refused() {
    let site = Site::new("plant7");
    for text in [
        "left",
        "-left.tank",
        "left-.tank",
        "left.-tank",
        "left.",
        ".tank",
        "le ft.tank",
        "*.tank",
    ] {
        let refused = site.authority.name(text).unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("cannot stand in a certificate"),
            "{refused}"
        );
    }
    assert!(
        site.authority
            .name("left")
            .unwrap_err()
            .remedy()
            .contains("left.tank")
    );
    for text in ["left.tank", "LEFT.Tank", "left.tank.plant7", "1._2"] {
        let name = site.authority.name(text).unwrap();
        assert_eq!(name.site(), "plant7");
    }
    assert!(site.authority.name("left.tank.plant8").is_err());
    let most = "n".repeat(32);
    assert!(NodeName::new(&most, &most, "plant7").is_ok());
    assert!(NodeName::new(&format!("{most}n"), "tank", "plant7").is_err());
}

#[test]
fn a_node_gets_one_folder_with_all_that_it_needs() {
    let site = Site::new("plant7");
    let issued = site.issue("left.tank");
    let out = site.path("left.tank");
    assert_eq!(
        names(&out),
        ["authority.pem", "certificate.pem", "key.pem", "revoked.pem"]
    );
    assert_eq!((bits(&out), bits(&out.join("key.pem"))), (0o700, 0o600));
    assert_eq!(bits(&out.join("certificate.pem")), 0o644);
    let left = site.load("left.tank").unwrap();
    let read = left.certificate();
    assert_eq!(read.names, ["left.tank.plant7"]);
    assert!(read.signs && !read.authority);
    let (client, server) = ("1.3.6.1.5.5.7.3.2", "1.3.6.1.5.5.7.3.1");
    assert_eq!(
        read.purposes.as_deref(),
        Some(&[client, server].map(str::to_owned)[..])
    );
    assert_eq!(
        (read.begins, read.ends),
        (time(NOW - 3600), time(NOW + 365 * DAY))
    );
    assert_eq!(issued.serial.len(), 32);
    assert_eq!(
        names(&site.pki().join("issued")),
        [format!("{}.pem", issued.serial)]
    );
    let key = fs::read_to_string(out.join("key.pem")).unwrap();
    let copy = fs::read_to_string(site.pki().join(format!("issued/{}.pem", issued.serial)));
    assert!(
        !copy.unwrap().contains("PRIVATE"),
        "the authority keeps no node's key"
    );
    assert!(key.contains("BEGIN PRIVATE KEY"));
}

#[test]
fn serial_numbers_are_random() {
    let site = Site::new("plant7");
    let issued: Vec<_> = (0..20)
        .map(|at| site.issue_to("left.tank", &format!("left{at}")).serial)
        .collect();
    for bit in 0..126 {
        let has = |serial: &String| u128::from_str_radix(serial, 16).unwrap() >> bit & 1;
        // Chance leaves one of them the same 20 times less than once in 4,000 runs.
        let ones: u128 = issued.iter().map(has).sum();
        assert!((1..20).contains(&ones), "bit {bit}: {issued:?}");
    }
}

#[test]
fn a_folder_that_is_there_is_left_as_it_is_and_nothing_is_issued() {
    let site = Site::new("plant7");
    site.issue("left.tank");
    let before = fs::read(site.path("left.tank/key.pem")).unwrap();
    let (name, out) = (site.name("left.tank"), site.path("left.tank"));
    let refused = site
        .authority
        .issue(&name, YEAR, time(NOW), &out)
        .unwrap_err();
    assert!(matches!(
        refused.cause,
        Cause::File(guarded_file::Cause::Exists)
    ));
    assert_eq!(refused.path, out);
    assert_eq!(fs::read(site.path("left.tank/key.pem")).unwrap(), before);
    assert_eq!(names(&site.pki().join("issued")).len(), 1);
}

#[test]
fn no_certificate_outlives_its_authority() {
    let site = Site::new("plant7");
    let name = site.name("left.tank");
    let issue = |lifetime: u64, now: u64| {
        let out = site.path(&format!("{lifetime}-{now}"));
        let lifetime = Duration::from_secs(lifetime);
        site.authority.issue(&name, lifetime, time(now), &out)
    };
    let ends = NOW + 3650 * DAY;
    assert!(issue(3650 * DAY, NOW).is_ok());
    let refused = issue(3650 * DAY + 1, NOW).unwrap_err();
    let told = matches!(refused.cause, Cause::Outlives { ends: found, .. } if found == time(ends));
    assert!(told, "{refused:?}");
    says(
        &refused,
        &["the authority ends at 2037-01-12T08:00:00Z", "--days"],
    );
    assert!(matches!(
        issue(1, ends).unwrap_err().cause,
        Cause::Outlives { .. }
    ));
    for lifetime in [0, u64::MAX] {
        assert!(matches!(
            issue(lifetime, NOW).unwrap_err().cause,
            Cause::Lifetime
        ));
    }
}

#[test]
fn a_name_of_another_site_is_not_signed() {
    let site = Site::new("plant7");
    let name = NodeName::new("left", "tank", "plant8").unwrap();
    let out = site.path("left");
    let refused = site
        .authority
        .issue(&name, YEAR, time(NOW), &out)
        .unwrap_err();
    assert!(matches!(refused.cause, Cause::NotSigned(_)), "{refused:?}");
    assert!(!out.exists() && !site.pki().join("issued").exists());
}

#[test]
fn an_authority_whose_files_are_not_right_issues_nothing() {
    let load = |site: &Site| Authority::load(&site.pki()).unwrap_err();
    let site = Site::new("plant7");
    let key = site.pki().join("authority.key");
    mode(&key, 0o640);
    let refused = load(&site);
    assert!(matches!(
        refused.cause,
        Cause::AuthorityExposed(guarded_file::Cause::Exposed { .. })
    ));
    mode(&key, 0o600);
    fs::copy(Site::new("plant7").pki().join("authority.key"), &key).unwrap();
    assert!(matches!(load(&site).cause, Cause::OtherKey(_)));
    fs::write(&key, "nothing").unwrap();
    assert!(matches!(load(&site).cause, Cause::Lacks("private key")));
    fs::remove_file(&key).unwrap();
    says(
        &load(&site),
        &["authority.key", "is not there", "bumpless pki init"],
    );
    mode(&site.pki().join("authority.pem"), 0o666);
    assert!(matches!(
        load(&site).cause,
        Cause::File(guarded_file::Cause::Exposed { .. })
    ));
    says(
        &Authority::load(&site.path("none")).unwrap_err(),
        &["none/authority.pem"],
    );

    let foreign = Foreign::new("Works authority");
    let node = site.issue_foreign(&foreign);
    for certificate in [foreign.pem(), node] {
        fs::write(site.pki().join("authority.pem"), certificate).unwrap();
        mode(&site.pki().join("authority.pem"), 0o644);
        let refused = load(&site);
        assert!(matches!(refused.cause, Cause::NoIssuer(_)), "{refused:?}");
        says(&refused, &["its own tools"]);
    }
}

#[test]
fn what_a_node_has_is_revoked_by_its_name_or_one_by_one_by_number() {
    let site = Site::new("plant7");
    let first = site.issue("left.tank").serial;
    let second = site.issue_to("left.tank", "again").serial;
    let right = site.issue("right.tank").serial;
    let revoke = |what: &str| site.authority.revoke(what, time(NOW + DAY));
    let done = revoke(&first).unwrap();
    assert_eq!(
        (done.serials, done.before.len(), done.list),
        (vec![first.clone()], 0, 2)
    );
    let done = revoke("LEFT.tank").unwrap();
    assert_eq!(
        (done.serials, done.before, done.list),
        (vec![second], vec![first.clone()], 3)
    );
    let done = revoke("left.tank.plant7").unwrap();
    assert_eq!(
        (done.serials.len(), done.before.len(), done.list),
        (0, 2, 3)
    );
    // As other tools write numbers.
    let pairs: Vec<_> = right
        .as_bytes()
        .chunks(2)
        .map(String::from_utf8_lossy)
        .collect();
    let done = revoke(&pairs.join(":").to_uppercase()).unwrap();
    assert_eq!((done.serials, done.list), (vec![right], 4));
    for folder in ["left.tank", "again", "right.tank"] {
        site.copy_list(folder);
    }
    assert!(site.load("left.tank").is_err() && site.load("right.tank").is_err());
    assert!(support::load(&site.paths("again"), "left.tank").is_err());
    // What is issued afterwards brings the list, and is not on it.
    site.issue_to("left.tank", "third");
    assert!(support::load(&site.paths("third"), "left.tank").is_ok());
    let [mine, lists] = ["third/revoked.pem", "pki/revoked.pem"].map(|it| fs::read(site.path(it)));
    assert_eq!(mine.unwrap(), lists.unwrap());
}

#[test]
fn a_number_that_has_no_copy_can_be_revoked_and_a_name_cannot() {
    let site = Site::new("plant7");
    site.issue("left.tank");
    fs::remove_dir_all(site.pki().join("issued")).unwrap();
    let refused = site.authority.revoke("left.tank", time(NOW)).unwrap_err();
    assert!(matches!(refused.cause, Cause::NotIssued(_)), "{refused:?}");
    says(&refused, &["for left.tank.plant7", "serial number"]);
    assert!(site.authority.revoke("left", time(NOW)).is_err());
    let left = site.load("left.tank").unwrap();
    site.authority
        .revoke(&left.certificate().serial, time(NOW))
        .unwrap();
    site.copy_list("left.tank");
    assert!(site.load("left.tank").is_err());
}

#[test]
fn a_list_that_cannot_be_believed_is_not_continued() {
    let site = Site::new("plant7");
    site.issue("left.tank");
    let list = site.pki().join("revoked.pem");
    let own = fs::read_to_string(&list).unwrap();
    let other = fs::read_to_string(Site::new("plant7").pki().join("revoked.pem")).unwrap();
    for text in [
        String::new(),
        other,
        own.clone() + &own,
        own[..own.len() / 2].to_owned(),
    ] {
        fs::write(&list, &text).unwrap();
        let refused = site.authority.revoke("left.tank", time(NOW)).unwrap_err();
        assert_eq!(refused.path, list);
        assert_eq!(fs::read_to_string(&list).unwrap(), text);
    }
    fs::write(&list, own).unwrap();
    let issued = site.pki().join("issued");
    let copy = issued.join(&names(&issued)[0]);
    fs::write(&copy, "nothing").unwrap();
    let refused = site.authority.revoke("left.tank", time(NOW)).unwrap_err();
    assert_eq!(refused.path, copy);
}

#[test]
fn who_revokes_at_one_time_loses_nothing_of_the_other() {
    let site = Site::new("plant7");
    let nodes: Vec<_> = (0..8).map(|at| format!("node{at}.tank")).collect();
    nodes.iter().for_each(|node| drop(site.issue(node)));
    std::thread::scope(|scope| {
        for node in &nodes {
            let authority = Authority::load(&site.pki()).unwrap();
            scope.spawn(move || authority.revoke(node, time(NOW)).unwrap());
        }
    });
    for node in &nodes {
        site.copy_list(node);
        assert!(site.load(node).is_err(), "{node}");
    }
}

impl Site {
    /// A node's certificate of `foreign`, whose key takes the place of this site's authority's.
    fn issue_foreign(&self, foreign: &Foreign) -> String {
        let key = support::pem("PRIVATE KEY", foreign.key.serialized_der());
        fs::write(self.pki().join("authority.key"), key).unwrap();
        mode(&self.pki().join("authority.key"), 0o600);
        let out = self.path("foreign");
        foreign.issue(&out, &node_params(&["left.tank.works"]), "");
        fs::read_to_string(out.join("certificate.pem")).unwrap()
    }
}
