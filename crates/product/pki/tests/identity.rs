//! The files of a node: used when all is right, and refused with file, reason and remedy when anything is not.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use bumpless_guarded_file as guarded_file;
use bumpless_pki::{Cause, CertificateFault, Identity, IdentityPaths, Problem, Problems};
use rcgen::{
    ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P384_SHA384, PKCS_ED25519,
    SerialNumber,
};
use support::{DAY, Foreign, NOW, Site, clock, load, load_at, mode, node_params, pem, time};

const FILES: [&str; 4] = ["certificate.pem", "key.pem", "authority.pem", "revoked.pem"];

/// A site with the node left.tank.
fn site() -> Site {
    let site = Site::new("plant7");
    site.issue("left.tank");
    site
}

fn file(site: &Site, name: &str) -> PathBuf {
    site.path("left.tank").join(name)
}

fn problems<T: std::fmt::Debug>(loaded: Result<T, Problems>) -> Vec<Problem> {
    let problems = loaded.expect_err("it is refused").0;
    assert!(!problems.is_empty());
    for problem in &problems {
        let told = problem.to_string();
        assert!(!told.contains('\n'), "{told}");
        assert!(!problem.wrong().is_empty() && !problem.remedy().is_empty());
        assert!(
            told.starts_with(&problem.path.display().to_string()),
            "{told}"
        );
    }
    problems
}

/// The one thing that is wrong with left.tank, which is the file called `name`.
fn refused(site: &Site, name: &str) -> Problem {
    refused_in(&site.paths("left.tank"), name)
}

fn refused_in(paths: &IdentityPaths, name: &str) -> Problem {
    let mut problems = problems(load(paths, "left.tank"));
    assert_eq!(problems.len(), 1, "{problems:#?}");
    let problem = problems.remove(0);
    assert!(problem.path.ends_with(name), "{problem:?}");
    problem
}

fn fault(problem: &Problem) -> &CertificateFault {
    match &problem.cause {
        Cause::Certificate(fault) => fault,
        other => panic!("{other:?}"),
    }
}

fn says(problem: &Problem, words: &[&str]) {
    let told = problem.to_string();
    for words in words {
        assert!(told.contains(words), "{words:?} is not in: {told}");
    }
}

#[test]
fn what_was_issued_for_a_node_is_its_identity() {
    let site = Site::new("plant7");
    let issued = site.issue("left.tank");
    let left = site.load("left.tank").unwrap();
    assert_eq!(left.name().as_str(), "left.tank.plant7");
    assert_eq!((left.name().node(), left.name().pair()), ("left", "tank"));
    assert_eq!(left.name().site(), "plant7");
    assert_eq!(left.certificate().serial, issued.serial);
    assert_eq!(left.certificate().ends, issued.ends);
    assert_eq!(left.notes(), [""; 0]);
}

#[test]
fn a_host_takes_its_name_from_its_certificate_if_that_has_one() {
    let site = site();
    let paths = IdentityPaths::in_folder(&site.path("left.tank"));
    let identity = Identity::load_as_named(&paths, clock(NOW)).unwrap();
    assert_eq!(identity.name().as_str(), "left.tank.plant7");
    // An authority's certificate is no host's.
    fs::copy(site.path("pki/authority.pem"), &paths.certificate).unwrap();
    let problems = problems(Identity::load_as_named(&paths, clock(NOW)));
    let told = problems.iter().map(ToString::to_string).collect::<String>();
    assert!(told.contains("not for HOST.GROUP.SITE"), "{told}");
}

#[test]
fn a_configuration_may_use_capitals_where_certificates_have_none() {
    let site = Site::new("Plant7");
    site.issue("Left.TANK");
    let left = load(&site.paths("Left.TANK"), "LEFT.Tank").unwrap();
    assert_eq!(left.name().as_str(), "left.tank.plant7");

    let works = Foreign::new("Works authority");
    let params = node_params(&["Left.Tank.Works"]);
    let paths = works.issue(&site.path("works"), &params, "");
    let left = load(&paths, "left.tank").unwrap();
    assert_eq!(left.name().as_str(), "left.tank.works");
}

#[test]
fn a_missing_file_is_told_with_the_commands_that_make_it() {
    for name in &FILES[..3] {
        let site = site();
        fs::remove_file(file(&site, name)).unwrap();
        let problem = refused(&site, name);
        let missing = matches!(problem.cause, Cause::File(guarded_file::Cause::Missing));
        assert!(missing, "{problem:?}");
        says(
            &problem,
            &["is not there", "bumpless pki init", "bumpless pki issue"],
        );
    }
    // Without a list nothing is revoked; one that is named must be there.
    let site = site();
    fs::remove_file(file(&site, "revoked.pem")).unwrap();
    assert!(site.load("left.tank").is_ok());
    let mut paths = site.paths("left.tank");
    paths.revoked = Some(file(&site, "revoked.pem"));
    says(&refused_in(&paths, "revoked.pem"), &["is not there"]);
}

#[test]
fn a_truncated_file_is_refused_as_that() {
    for name in FILES {
        let site = site();
        let whole = fs::read_to_string(file(&site, name)).unwrap();
        for len in [whole.len() / 2, whole.len() - 6] {
            fs::write(file(&site, name), &whole[..len]).unwrap();
            let problem = refused(&site, name);
            assert!(matches!(problem.cause, Cause::Garbled(_)), "{problem:?}");
            says(&problem, &["truncated", "copy it again"]);
        }
        // Where the end is there and something before it is not.
        let lines: Vec<_> = whole.lines().collect();
        let less = [&lines[..2], &lines[3..]].concat().join("\n");
        fs::write(file(&site, name), less).unwrap();
        let problem = refused(&site, name);
        assert!(!matches!(problem.cause, Cause::File(_)), "{problem:?}");
    }
}

#[test]
fn what_is_something_else_is_refused() {
    let garbage = pem("GARBAGE", b"garbage");
    for name in FILES {
        let site = site();
        for text in ["", "garbage", "\0\u{ff}", &garbage] {
            fs::write(file(&site, name), text).unwrap();
            let problem = refused(&site, name);
            assert!(matches!(problem.cause, Cause::Lacks(_)), "{problem:?}");
            says(&problem, &["in PEM", "copy it again"]);
        }
        let label = match name {
            "key.pem" => "PRIVATE KEY",
            "revoked.pem" => "X509 CRL",
            _ => "CERTIFICATE",
        };
        fs::write(file(&site, name), pem(label, b"garbage")).unwrap();
        let problem = refused(&site, name);
        let told = match (name, &problem.cause) {
            ("key.pem", cause) => matches!(cause, Cause::UnknownKey),
            ("revoked.pem", cause) => matches!(cause, Cause::Garbled(_)),
            (_, cause) => matches!(cause, Cause::Certificate(CertificateFault::Garbled)),
        };
        assert!(told, "{problem:?}");
    }
}

#[test]
fn a_changed_byte_anywhere_in_certificate_or_list_is_refused() {
    for name in ["certificate.pem", "revoked.pem"] {
        let site = site();
        let whole = fs::read(file(&site, name)).unwrap();
        let text = whole.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        let end = whole.len() - 40;
        for at in (text..end).step_by(3) {
            let mut changed = whole.clone();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            fs::write(file(&site, name), &changed).unwrap();
            problems(site.load("left.tank"));
        }
    }
}

#[test]
fn a_key_behind_a_password_is_told_as_no_key() {
    let site = site();
    let text = pem("ENCRYPTED PRIVATE KEY", b"whatever");
    fs::write(file(&site, "key.pem"), text).unwrap();
    says(
        &refused(&site, "key.pem"),
        &["no private key", "without a password"],
    );
}

#[test]
fn a_certificate_is_refused_before_and_after_its_time() {
    let site = site();
    let ends = NOW + 365 * DAY;
    let paths = site.paths("left.tank");
    for now in [NOW - 3600, NOW, ends] {
        assert!(load_at(&paths, "left.tank", now).is_ok(), "{now}");
    }
    let late = problems(load_at(&paths, "left.tank", ends + 1));
    let (ended, now) = (time(ends), time(ends + 1));
    assert_eq!(fault(&late[0]), &CertificateFault::Expired { ended, now });
    let words = [
        "expired at 2028-01-15T08:00:00Z",
        "it is 2028-01-15T08:00:01Z here",
    ];
    says(&late[0], &words);
    says(&late[0], &["bumpless pki issue"]);
    assert_eq!(late.len(), 1, "{late:?}");

    // An hour is for clocks that are behind; the authority is as old.
    let early = problems(load_at(&paths, "left.tank", NOW - 3601));
    let (begins, now) = (time(NOW - 3600), time(NOW - 3601));
    assert_eq!(early.len(), 2, "{early:?}");
    for problem in &early {
        assert_eq!(fault(problem), &CertificateFault::NotYet { begins, now });
        says(
            problem,
            &["is valid from 2027-01-15T07:00:00Z on", "set the clock"],
        );
    }
}

#[test]
fn a_certificate_for_another_node_or_pair_is_refused() {
    let site = Site::new("plant7");
    for (issued, asked) in [
        ("right.tank", "left.tank"),
        ("left.mill", "left.tank"),
        ("lef.tank", "left.tank"),
    ] {
        site.issue(issued);
        let told = problems(load(&site.paths(issued), asked));
        let expected = vec!["left.tank.SITE".to_owned()];
        let found = vec![format!("{issued}.plant7")];
        assert_eq!(
            fault(&told[0]),
            &CertificateFault::OtherName { expected, found }
        );
        assert!(told[0].path.ends_with("certificate.pem"));
        let words = format!("is for {issued}.plant7, not for left.tank.SITE");
        says(&told[0], &[&words, "its name in the configuration"]);
    }
    let told = problems(load(&site.paths("right.tank"), "-left.tank"));
    assert!(matches!(told[0].cause, Cause::Name(_)), "{told:?}");
    says(&told[0], &["\"-left\" cannot stand in a certificate"]);
}

#[test]
fn the_first_name_that_comes_does_not_count_if_there_are_several() {
    let folder = tempfile::tempdir().unwrap();
    let works = Foreign::new("Works authority");
    let several = ["left.tank.works", "left.tank.other"];
    let paths = works.issue(folder.path(), &node_params(&several), "");
    let problem = refused_in(&paths, "certificate.pem");
    assert!(matches!(fault(&problem), CertificateFault::SeveralNames(names) if names.len() == 2));
    let others = ["service.works", "left.tank.works", "10.0.0.1"];
    let paths = works.issue(folder.path(), &node_params(&others), "");
    let left = load(&paths, "left.tank").unwrap();
    assert_eq!(left.name().as_str(), "left.tank.works");
    for wild in ["*.tank.works", "*.works"] {
        let paths = works.issue(folder.path(), &node_params(&[wild]), "");
        let problem = refused_in(&paths, "certificate.pem");
        assert!(matches!(
            fault(&problem),
            CertificateFault::OtherName { .. }
        ));
    }
}

#[test]
fn a_certificate_of_another_authority_is_refused() {
    let (site, other) = (site(), site());
    fs::copy(file(&other, "authority.pem"), file(&site, "authority.pem")).unwrap();
    fs::remove_file(file(&site, "revoked.pem")).unwrap();
    let problem = refused(&site, "certificate.pem");
    assert_eq!(fault(&problem), &CertificateFault::OtherAuthority);
    says(
        &problem,
        &["issued by none of the authorities", "one authority"],
    );

    // One that calls itself the same is another one all the same.
    let folder = tempfile::tempdir().unwrap();
    let [works, false_works] = ["Works authority"; 2].map(Foreign::new);
    let paths = works.issue(folder.path(), &node_params(&["left.tank.works"]), "");
    fs::write(&paths.authorities, false_works.pem()).unwrap();
    let problem = refused_in(&paths, "certificate.pem");
    let by_key = matches!(
        fault(&problem),
        CertificateFault::BadSignature | CertificateFault::OtherAuthority
    );
    assert!(by_key, "{problem:?}");
    // Beside the right one it does no harm.
    fs::write(&paths.authorities, false_works.pem() + &works.pem()).unwrap();
    assert!(load(&paths, "left.tank").is_ok());
}

#[test]
fn an_authority_issues_names_of_its_site_alone() {
    let site = site();
    let key = fs::read_to_string(site.pki().join("authority.key")).unwrap();
    let der = x509_cert::der::pem::decode_vec(key.as_bytes()).unwrap().1;
    let key = KeyPair::try_from(der).unwrap();
    let mut params = support::params("unused");
    params.distinguished_name = rcgen::DistinguishedName::new();
    let called = site.authority.certificate().subject.replace("CN=", "");
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, called);
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let issuer = rcgen::Issuer::new(params, &key);
    let own = KeyPair::generate().unwrap();
    for (name, fine) in [("left.tank.plant7", true), ("left.tank.plant8", false)] {
        let made = node_params(&[name]).signed_by(&own, &issuer).unwrap();
        fs::write(
            file(&site, "certificate.pem"),
            pem("CERTIFICATE", made.der()),
        )
        .unwrap();
        fs::write(
            file(&site, "key.pem"),
            pem("PRIVATE KEY", own.serialized_der()),
        )
        .unwrap();
        let loaded = site.load("left.tank");
        assert_eq!(loaded.is_ok(), fine, "{name}: {loaded:?}");
    }
}

#[test]
fn a_certificate_for_another_use_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let works = Foreign::new("Works authority");
    let good = || node_params(&["left.tank.works"]);
    let mut encipher = good();
    encipher.key_usages = vec![KeyUsagePurpose::KeyEncipherment];
    let one_sided = [
        ExtendedKeyUsagePurpose::ClientAuth,
        ExtendedKeyUsagePurpose::ServerAuth,
    ];
    let one_sided = one_sided.map(|purpose| {
        let mut params = good();
        params.extended_key_usages = vec![purpose];
        (params, "both sides")
    });
    let mut mail = good();
    mail.extended_key_usages = vec![ExtendedKeyUsagePurpose::EmailProtection];
    let all = [(encipher, "digital signatures"), (mail, "both sides")];
    for (params, words) in all.into_iter().chain(one_sided) {
        let paths = works.issue(folder.path(), &params, "");
        let problem = refused_in(&paths, "certificate.pem");
        assert!(matches!(fault(&problem), CertificateFault::Usage(_)));
        says(&problem, &[words, "extended usages"]);
    }
    // What says nothing of uses permits all.
    let mut silent = good();
    (silent.key_usages, silent.extended_key_usages) = (Vec::new(), Vec::new());
    let paths = works.issue(folder.path(), &silent, "");
    assert!(load(&paths, "left.tank").is_ok());
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let site = site();
    site.issue_to("left.tank", "again");
    fs::copy(site.path("again/key.pem"), file(&site, "key.pem")).unwrap();
    let problem = refused(&site, "key.pem");
    let certificate = file(&site, "certificate.pem");
    assert!(matches!(&problem.cause, Cause::OtherKey(path) if *path == certificate));
    says(
        &problem,
        &["not the key of", "certificate.pem", "both from the folder"],
    );
}

#[test]
fn a_key_that_others_may_read_and_what_others_may_change_is_refused() {
    for (name, modes, remedy) in [
        ("key.pem", &[0o640, 0o604, 0o620, 0o601][..], "chmod 600"),
        ("certificate.pem", &[0o664, 0o646], "chmod go-w"),
        ("authority.pem", &[0o664, 0o646], "chmod go-w"),
        ("revoked.pem", &[0o664, 0o646], "chmod go-w"),
    ] {
        let site = site();
        for &bits in modes {
            mode(&file(&site, name), bits);
            let problem = refused(&site, name);
            let exposed = matches!(problem.cause, Cause::File(guarded_file::Cause::Exposed { mode, .. }) if mode == bits);
            assert!(exposed, "{problem:?}");
            says(&problem, &[&format!("mode {bits:o}"), remedy]);
        }
    }
}

#[test]
fn a_revoked_certificate_is_refused_where_it_is_used() {
    let site = site();
    site.authority.revoke("left.tank", time(NOW)).unwrap();
    site.copy_list("left.tank");
    let problem = refused(&site, "certificate.pem");
    assert_eq!(fault(&problem), &CertificateFault::Revoked);
    says(
        &problem,
        &["revoked by its authority", "another certificate"],
    );
}

#[test]
fn a_list_of_another_authority_is_refused() {
    let (site, other) = (site(), site());
    fs::copy(file(&other, "revoked.pem"), file(&site, "revoked.pem")).unwrap();
    let problem = refused(&site, "revoked.pem");
    assert!(matches!(problem.cause, Cause::OtherList), "{problem:?}");

    // Also one of somebody who has the authority's name and not its key.
    let folder = tempfile::tempdir().unwrap();
    let [works, false_works] = ["Works authority"; 2].map(Foreign::new);
    works.issue(folder.path(), &node_params(&["left.tank.works"]), "");
    let list = folder.path().join("revoked.pem");
    fs::write(&list, false_works.list(&[], NOW + DAY)).unwrap();
    let paths = IdentityPaths::in_folder(folder.path());
    let problem = refused_in(&paths, "revoked.pem");
    let unsigned = matches!(fault(&problem), CertificateFault::RevocationList(_));
    assert!(unsigned, "{problem:?}");
    says(&problem, &["signature", "copy revoked.pem again"]);
}

#[test]
fn a_list_that_should_have_been_renewed_still_counts_and_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let works = Foreign::new("Works authority");
    let mut params = node_params(&["left.tank.works"]);
    params.serial_number = Some(SerialNumber::from(7_001u64));
    works.issue(folder.path(), &params, "");
    let list = folder.path().join("revoked.pem");
    fs::write(&list, works.list(&[7_002], NOW - DAY)).unwrap();
    let paths = IdentityPaths::in_folder(folder.path());
    let left = load(&paths, "left.tank").unwrap();
    let [note] = left.notes() else {
        panic!("{:?}", left.notes())
    };
    assert!(note.contains("renewed by 2027-01-14T08:00:00Z"), "{note}");
    fs::write(&list, works.list(&[7_001], NOW - DAY)).unwrap();
    assert_eq!(
        fault(&refused_in(&paths, "certificate.pem")),
        &CertificateFault::Revoked
    );
}

#[test]
fn an_authority_that_has_ended_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let mut params = Foreign::new("Old authority").params;
    params.not_after = (std::time::UNIX_EPOCH + std::time::Duration::from_secs(NOW - 1)).into();
    let old = Foreign::with(params);
    let paths = old.issue(folder.path(), &node_params(&["left.tank.works"]), "");
    let told = problems(load(&paths, "left.tank"));
    assert!(told[0].path.ends_with("authority.pem"), "{told:?}");
    assert!(matches!(fault(&told[0]), CertificateFault::Expired { .. }));

    let works = Foreign::new("Works authority");
    let paths = works.issue(folder.path(), &node_params(&["left.tank.works"]), "");
    fs::write(&paths.authorities, old.pem() + &works.pem()).unwrap();
    let left = load(&paths, "left.tank").unwrap();
    assert!(left.notes()[0].contains("authority.pem: an authority's certificate expired"));
    let paths = old.issue(folder.path(), &node_params(&["left.tank.works"]), "");
    fs::write(&paths.authorities, old.pem() + &works.pem()).unwrap();
    let problem = refused_in(&paths, "certificate.pem");
    assert_eq!(fault(&problem), &CertificateFault::OtherAuthority);
}

#[test]
fn a_nodes_certificate_is_no_authority() {
    let site = site();
    fs::copy(file(&site, "certificate.pem"), file(&site, "authority.pem")).unwrap();
    fs::remove_file(file(&site, "revoked.pem")).unwrap();
    let problem = refused(&site, "authority.pem");
    assert_eq!(fault(&problem), &CertificateFault::NoAuthority);
    says(
        &problem,
        &["is not an authority's", "authority.pem of the folder"],
    );
}

#[test]
fn another_authoritys_files_are_three_and_its_keys_of_several_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let works = Foreign::new("Works authority");
    for kind in [&PKCS_ED25519, &PKCS_ECDSA_P384_SHA384] {
        let key = KeyPair::generate_for(kind).unwrap();
        let params = node_params(&["left.tank.plant7.example.com"]);
        let paths = works.issue_for(&key, folder.path(), &params, "");
        assert_eq!(paths.revoked, None);
        let left = load(&paths, "left.tank").unwrap();
        assert_eq!(left.name().site(), "plant7.example.com");
        let partner = left.name().partner("right").unwrap();
        assert_eq!(partner.as_str(), "right.tank.plant7.example.com");
    }
}

#[test]
fn everything_that_is_wrong_is_told_at_once_and_nothing_of_the_key() {
    let site = Site::new("plant7");
    site.issue("right.tank");
    let folder = site.path("right.tank");
    mode(&folder.join("key.pem"), 0o644);
    fs::write(folder.join("revoked.pem"), "nothing").unwrap();
    let late = NOW + 400 * DAY;
    let told = problems(load_at(&site.paths("right.tank"), "left.tank", late));
    let names = |problem: &Problem| problem.path.file_name().unwrap().to_owned();
    let named: Vec<_> = told.iter().map(names).collect();
    let certificate = "certificate.pem";
    assert_eq!(named, ["key.pem", "revoked.pem", certificate, certificate]);
    says(&told[2], &["expired at"]);
    says(&told[3], &["is for right.tank.plant7"]);

    let site = self::site();
    fs::copy(site.pki().join("authority.key"), file(&site, "key.pem")).unwrap();
    mode(&file(&site, "authority.pem"), 0o666);
    let told = problems(load_at(&site.paths("left.tank"), "right.tank", late));
    assert_eq!(told.len(), 4, "{told:#?}");
    let key = fs::read_to_string(file(&site, "key.pem")).unwrap();
    let secret = key.lines().nth(1).unwrap();
    let mut said = format!("{told:?}");
    said += &Problems(told).to_string();
    assert!(
        said.lines().count() >= 3 && !said.contains(secret),
        "{said}"
    );
}

#[test]
fn a_file_that_is_longer_than_any_is_not_read_to_its_end() {
    let site = site();
    for name in FILES {
        let long = fs::File::options().write(true).open(file(&site, name));
        let before = fs::read(file(&site, name)).unwrap();
        long.unwrap().set_len(1 << 40).unwrap();
        let problem = refused(&site, name);
        let told = matches!(problem.cause, Cause::File(guarded_file::Cause::TooLong));
        assert!(told, "{problem:?}");
        fs::write(file(&site, name), before).unwrap();
    }
    assert!(Path::new(&file(&site, "key.pem")).exists());
}
