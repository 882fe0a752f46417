//! TLS between two nodes, in memory: who is let in, who is refused, and that both can say why.

mod support;

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bumpless_pki::rustls::client::ResolvesClientCert;
use bumpless_pki::rustls::pki_types::ServerName;
use bumpless_pki::rustls::sign::CertifiedKey;
use bumpless_pki::rustls::version::TLS13;
use bumpless_pki::rustls::{
    self, ClientConfig, ClientConnection, Connection, HandshakeKind, ProtocolVersion, ServerConfig,
    ServerConnection, SignatureScheme,
};
use bumpless_pki::{
    CertificateFault, Expected, Identity, IdentityPaths, NodeName, PROTOCOL, Refusal, admitted,
    explain,
};
use rcgen::{ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, SerialNumber};
use support::handshake::{
    Shown, connect, files, impostor as impostor_with, intruder as intruder_with, talk,
};
use support::{DAY, Foreign, NOW, Site, load, load_at, node_params, time};

const DAY_LONG: Duration = Duration::from_secs(DAY);

/// What both ends come to: who is at the other end, or why not.
type Ends = [Result<NodeName, Refusal>; 2];

/// `caller` calls whom it takes for `wanted`, and `called` lets `expected` in.
fn meet(caller: &Identity, wanted: &NodeName, called: &Identity, expected: &[NodeName]) -> Ends {
    let client = caller.client_config(wanted).unwrap();
    let server = called.server_config(expected).unwrap();
    let (mut client, mut server) = connect(client, server);
    let [at_caller, at_called] = talk(&mut client, &mut server);
    let end =
        |session: &Connection, error: Option<rustls::Error>, partners: &[NodeName]| match error {
            Some(error) => Err(explain(&error)),
            None => admitted(session, &partners.into()),
        };
    let wanted = std::slice::from_ref(wanted);
    [
        end(&client, at_caller, wanted),
        end(&server, at_called, expected),
    ]
}

/// Left calls right, each with the configured partner.
fn pair(left: &Identity, right: &Identity) -> Ends {
    let site = |it: &Identity, node: &str| it.name().partner(node).unwrap();
    meet(left, &site(left, "right"), right, &[site(right, "left")])
}

/// `caller` calls `called`; both let in every node of their own group.
fn in_group(caller: &Identity, called: &Identity) -> Ends {
    let group = |it: &Identity| Expected::GroupOf(it.name().clone());
    let client = caller.client_config(group(caller)).unwrap();
    let server = called.server_config(group(called)).unwrap();
    let (mut client, mut server) = connect(client, server);
    let [at_caller, at_called] = talk(&mut client, &mut server);
    let end = |session: &Connection, error: Option<rustls::Error>, own: &Identity| match error {
        Some(error) => Err(explain(&error)),
        None => admitted(session, &group(own)),
    };
    [
        end(&client, at_caller, caller),
        end(&server, at_called, called),
    ]
}

#[test]
fn hosts_of_one_group_at_one_site_let_each_other_in_by_whatever_name() {
    let site = Site::new("plant");
    let [h1, h2, other] = ["h1.grid", "h2.grid", "h2.gas"].map(|node| {
        site.issue(node);
        site.load(node).unwrap()
    });
    assert_eq!(
        in_group(&h1, &h2),
        [Ok(h2.name().clone()), Ok(h1.name().clone())]
    );
    for ends in [in_group(&h1, &other), in_group(&other, &h1)] {
        let [Err(Refusal::Partner(fault)), _] = &ends else {
            panic!("{ends:?}");
        };
        assert!(
            matches!(fault, CertificateFault::OtherName { .. }),
            "{fault}"
        );
    }
    // Not even where both sites' authorities count.
    let elsewhere = Site::new("harbour");
    elsewhere.issue("h3.grid");
    let authority = |site: &Site| fs::read(site.path("pki/authority.pem")).unwrap();
    let both = [authority(&site), authority(&elsewhere)].concat();
    let believing_both = [(&site, "h1.grid"), (&elsewhere, "h3.grid")].map(|(at, node)| {
        fs::write(at.path(node).join("authority.pem"), &both).unwrap();
        at.load(node).unwrap()
    });
    let [Err(Refusal::Partner(fault)), _] = in_group(&believing_both[0], &believing_both[1]) else {
        panic!("let in from another site");
    };
    assert!(
        matches!(fault, CertificateFault::OtherName { .. }),
        "{fault}"
    );
    // And nobody lets itself in.
    assert!(in_group(&h1, &h1).iter().all(Result::is_err));
}

fn refused_by_partner(end: &Result<NodeName, Refusal>) -> bool {
    matches!(end, Err(Refusal::ByPartner(_)))
}

fn both(site: &Site) -> [Identity; 2] {
    ["left.tank", "right.tank"].map(|node| {
        site.issue(node);
        site.load(node).unwrap()
    })
}

/// Shows nothing, and keeps which authorities it was told to show something of.
#[derive(Debug, Default)]
struct Asked(Mutex<Vec<usize>>);

impl ResolvesClientCert for Asked {
    fn resolve(&self, authorities: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.lock().unwrap().push(authorities.len());
        None
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// Who shows what nothing has checked, or nothing at all, and speaks `protocols`.
fn intruder(shown: Option<Shown>, protocols: &[&[u8]]) -> ClientConfig {
    intruder_with(shown, protocols, &TLS13)
}

/// The same, where a partner is expected to answer.
fn impostor(shown: Shown) -> Arc<ServerConfig> {
    impostor_with(shown, &[PROTOCOL])
}

/// Why `node` refuses what an intruder shows.
fn refusal(node: &Identity, partner: &str, intruder: ClientConfig) -> Option<Refusal> {
    let partners = [node.name().partner(partner).unwrap()];
    let server = node.server_config(&partners[..]).unwrap();
    let (mut client, mut server) = connect(Arc::new(intruder), server);
    match &talk(&mut client, &mut server)[1] {
        Some(error) => Some(explain(error)),
        None => admitted(&server, &partners[..].into()).err(),
    }
}

/// Why `node` refuses who answers in its partner's place.
fn refusal_of_answer(node: &Identity, partner: &str, impostor: Shown) -> Option<Refusal> {
    let partner = node.name().partner(partner).unwrap();
    let client = node.client_config(&partner).unwrap();
    let (mut client, mut server) = connect(client, self::impostor(impostor));
    let error = &talk(&mut client, &mut server)[0];
    error.as_ref().map(explain)
}

/// A node shows this in both places, and each time it is refused for this.
fn refused_both_ways(node: &Identity, partner: &str, paths: &IdentityPaths) -> [Refusal; 2] {
    let called = refusal(node, partner, intruder(Some(files(paths)), &[PROTOCOL]));
    let calling = refusal_of_answer(node, partner, files(paths));
    [
        called.expect("refused as caller"),
        calling.expect("refused as called"),
    ]
}

#[test]
fn two_nodes_of_one_authority_know_each_other_by_name_and_have_a_secret_in_common() {
    let site = Site::new("plant7");
    let [left, right] = both(&site);
    let met = pair(&left, &right);
    assert_eq!(met, [Ok(right.name().clone()), Ok(left.name().clone())]);
    assert_eq!(met[0].as_ref().unwrap().as_str(), "right.tank.plant7");

    let client = left.client_config(right.name()).unwrap();
    let server = right.server_config(left.name()).unwrap();
    let (mut client, mut server) = connect(client, server);
    assert_eq!(talk(&mut client, &mut server), [None, None]);
    let export = |session: &mut Connection| session.export_keying_material([0; 32], b"keys", None);
    assert_eq!(export(&mut client).unwrap(), export(&mut server).unwrap());
    assert_eq!(client.protocol_version(), Some(ProtocolVersion::TLSv1_3));
}

#[test]
fn a_node_lets_in_each_of_its_partners_and_says_which_one_has_come() {
    let site = Site::new("plant7");
    let [left, right] = both(&site);
    site.issue("spare.tank");
    let spare = site.load("spare.tank").unwrap();
    let partners = [left.name().clone(), spare.name().clone()];
    for caller in [&left, &spare] {
        let met = meet(caller, right.name(), &right, &partners);
        assert_eq!(met, [Ok(right.name().clone()), Ok(caller.name().clone())]);
    }
    let met = meet(&spare, right.name(), &right, &partners[..1]);
    assert!(refused_by_partner(&met[0]), "{met:?}");
}

#[test]
fn a_node_of_another_name_is_refused_by_both_ends() {
    let site = Site::new("plant7");
    let [left, right] = both(&site);
    for other in ["spare.tank", "right.mill", "left.mill"] {
        site.issue(other);
        let shown = refused_both_ways(&left, "right", &site.paths(other));
        for refusal in shown {
            let Refusal::Partner(CertificateFault::OtherName { expected, found }) = &refusal else {
                panic!("{refusal:?}");
            };
            assert_eq!(expected, &["right.tank.plant7"]);
            assert_eq!(found, &[format!("{other}.plant7")]);
            let told = refusal.to_string();
            let words = format!("is for {other}.plant7, not for right.tank.plant7");
            assert!(told.contains(&words), "{told}");
        }
    }
    site.issue_to("spare.tank", "again");
    let spare = load(&site.paths("again"), "spare.tank").unwrap();
    let met = meet(&left, right.name(), &spare, &[left.name().clone()]);
    assert!(matches!(
        met[0],
        Err(Refusal::Partner(CertificateFault::OtherName { .. }))
    ));
    assert!(refused_by_partner(&met[1]), "{met:?}");
}

#[test]
fn a_node_of_another_site_is_refused_although_its_names_are_the_same() {
    let (here, there) = (Site::new("plant7"), Site::new("plant7"));
    let [left, _] = both(&here);
    let [_, stranger] = both(&there);
    let met = pair(&left, &stranger);
    let other = Err(Refusal::Partner(CertificateFault::OtherAuthority));
    assert_eq!(met[0], other);
    assert!(refused_by_partner(&met[1]), "{met:?}");
    let words = met[1].as_ref().unwrap_err().to_string();
    assert!(
        words.contains("none of the partner's authorities"),
        "{words}"
    );
    for refusal in refused_both_ways(&left, "right", &there.paths("right.tank")) {
        assert_eq!(Err(refusal), other);
    }
}

#[test]
fn what_was_revoked_is_refused_as_soon_as_the_list_is_there() {
    let site = Site::new("plant7");
    let [left, right] = both(&site);
    site.authority.revoke("right.tank", time(NOW)).unwrap();
    assert!(pair(&left, &right)[0].is_ok(), "left knows nothing of it");
    site.copy_list("left.tank");
    let left = site.load("left.tank").unwrap();
    let met = pair(&left, &right);
    let revoked = Refusal::Partner(CertificateFault::Revoked);
    assert_eq!(met[0], Err(revoked.clone()));
    let words = met[1].as_ref().unwrap_err().to_string();
    assert!(words.contains("it has been revoked"), "{words}");
    let shown = refused_both_ways(&left, "right", &site.paths("right.tank"));
    assert_eq!(shown, [revoked.clone(), revoked]);
    // The next certificate of the same name is another one.
    site.issue_to("right.tank", "again");
    let again = load(&site.paths("again"), "right.tank").unwrap();
    assert!(pair(&left, &again)[0].is_ok());
}

#[test]
fn a_certificate_is_refused_before_and_after_its_time() {
    let site = Site::new("plant7");
    site.issue("left.tank");
    let (name, out) = (site.name("right.tank"), site.path("right.tank"));
    let made = site.authority.issue(&name, DAY_LONG, time(NOW), &out);
    let ends = made.unwrap().ends;
    assert_eq!(ends, time(NOW + DAY));
    let right = site.load("right.tank").unwrap();
    for (now, fine) in [(NOW + DAY, true), (NOW + DAY + 1, false)] {
        let left = load_at(&site.paths("left.tank"), "left.tank", now).unwrap();
        let met = pair(&left, &right);
        assert_eq!(met[0].is_ok(), fine, "{met:?}");
        if !fine {
            let fault = CertificateFault::Expired {
                ended: ends,
                now: time(now),
            };
            assert_eq!(met[0], Err(Refusal::Partner(fault.clone())));
            assert!(
                fault
                    .to_string()
                    .contains("expired at 2027-01-16T08:00:00Z"),
                "{fault}"
            );
            let words = met[1].as_ref().unwrap_err().to_string();
            assert!(words.contains("by the partner's clock"), "{words}");
        }
    }
    let later = site.path("later");
    let made = site
        .authority
        .issue(&name, DAY_LONG, time(NOW + 9 * DAY), &later);
    made.unwrap();
    let right = load_at(&site.paths("later"), "right.tank", NOW + 9 * DAY).unwrap();
    let left = site.load("left.tank").unwrap();
    let begins = time(NOW + 9 * DAY - 3600);
    let fault = CertificateFault::NotYet {
        begins,
        now: time(NOW),
    };
    assert_eq!(pair(&left, &right)[0], Err(Refusal::Partner(fault)));
}

#[test]
fn two_nodes_with_one_certificate_refuse_each_other() {
    let site = Site::new("plant7");
    let [left, right] = both(&site);
    // Left's folder was copied to right's computer, and runs as left there, too.
    let copy = site.load("left.tank").unwrap();
    let own = Err(Refusal::Partner(CertificateFault::OwnName(
        left.name().clone(),
    )));
    let met = meet(&left, right.name(), &copy, &[right.name().clone()]);
    assert_eq!(met[0], own);
    let words = met[0].as_ref().unwrap_err().to_string();
    assert!(
        words.contains("the name of this node itself, left.tank.plant7"),
        "{words}"
    );
    assert!(words.contains("a certificate of its own"), "{words}");
    // Even where it was configured as its own partner, or has both names.
    let met = meet(&left, left.name(), &copy, &[left.name().clone()]);
    assert_eq!(met[0], own);
    for refusal in refused_both_ways(&left, "left", &site.paths("left.tank")) {
        assert_eq!(Err(refusal), own);
    }
}

#[test]
fn a_certificate_with_the_names_of_both_nodes_is_refused_by_both() {
    let folder = tempfile::tempdir().unwrap();
    let works = Foreign::new("Works authority");
    let path = |name: &str| folder.path().join(name);
    let left = works.issue(&path("left"), &node_params(&["left.tank.works"]), "");
    let left = load(&left, "left.tank").unwrap();
    let names = ["right.tank.works", "left.tank.works"];
    let both = works.issue(&path("both"), &node_params(&names), "");
    for refusal in refused_both_ways(&left, "right", &both) {
        let own = CertificateFault::OwnName(left.name().clone());
        assert_eq!(refusal, Refusal::Partner(own));
    }
}

#[test]
fn two_nodes_with_one_key_refuse_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let works = Foreign::new("Works authority");
    let key = KeyPair::generate().unwrap();
    let issue = |node: &str| {
        let params = node_params(&[&format!("{node}.tank.works")]);
        works.issue_for(&key, &folder.path().join(node), &params, "")
    };
    let left = load(&issue("left"), "left.tank").unwrap();
    for refusal in refused_both_ways(&left, "right", &issue("right")) {
        assert_eq!(refusal, Refusal::Partner(CertificateFault::OwnKey));
    }
}

#[test]
fn capitals_in_a_certificate_do_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let works = Foreign::new("Works authority");
    let [left, right] = ["left", "RIGHT"].map(|node| {
        let params = node_params(&[&format!("{node}.Tank.works")]);
        let paths = works.issue(&folder.path().join(node), &params, "");
        load(&paths, &format!("{node}.tank")).unwrap()
    });
    assert_eq!(
        pair(&left, &right)[0].as_ref().unwrap().as_str(),
        "right.tank.works"
    );
    assert!(pair(&left, &right)[1].is_ok());
}

#[test]
fn a_wildcard_stands_for_no_node() {
    let folder = tempfile::tempdir().unwrap();
    let works = Foreign::new("Works authority");
    let path = |name: &str| folder.path().join(name);
    let left = works.issue(&path("left"), &node_params(&["left.tank.works"]), "");
    let left = load(&left, "left.tank").unwrap();
    for names in [&["*.tank.works"][..], &["*.tank.works", "spare.tank.works"]] {
        let wild = works.issue(&path("wild"), &node_params(names), "");
        for refusal in refused_both_ways(&left, "right", &wild) {
            let by_name = matches!(
                refusal,
                Refusal::Partner(CertificateFault::OtherName { .. })
            );
            assert!(by_name, "{refusal:?}");
        }
    }
}

#[test]
fn a_certificate_for_something_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let works = Foreign::new("Works authority");
    let path = |name: &str| folder.path().join(name);
    let left = works.issue(&path("left"), &node_params(&["left.tank.works"]), "");
    let left = load(&left, "left.tank").unwrap();
    let fault = |refusal: &Refusal| match refusal {
        Refusal::Partner(CertificateFault::Usage(what)) => *what,
        other => panic!("{other:?}"),
    };

    let mut params = node_params(&["right.tank.works"]);
    params.key_usages = vec![KeyUsagePurpose::KeyEncipherment];
    let shown = works.issue(&path("encipher"), &params, "");
    for refusal in refused_both_ways(&left, "right", &shown) {
        assert_eq!(fault(&refusal), "digital signatures");
    }

    let mut params = node_params(&["right.tank.works"]);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let shown = works.issue(&path("server"), &params, "");
    let calls = refusal(&left, "right", intruder(Some(files(&shown)), &[PROTOCOL]));
    assert_eq!(fault(&calls.unwrap()), "both sides of a TLS session");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let shown = works.issue(&path("client"), &params, "");
    let answers = refusal_of_answer(&left, "right", files(&shown));
    assert_eq!(fault(&answers.unwrap()), "both sides of a TLS session");
}

#[test]
fn another_authoritys_nodes_meet_by_way_of_those_between() {
    let folder = tempfile::tempdir().unwrap();
    let works = Foreign::new("Works authority");
    let plant = works.below("Plant authority");
    let join = |node: &str, serial: u64| {
        let mut params = node_params(&[&format!("{node}.tank.plant7.example.com")]);
        params.serial_number = Some(SerialNumber::from(serial));
        let paths = plant.issue(&folder.path().join(node), &params, &plant.pem());
        fs::write(&paths.authorities, works.pem()).unwrap();
        paths
    };
    let paths = [join("left", 1_001), join("right", 1_002)];
    let left = load(&paths[0], "left.tank").unwrap();
    let right = load(&paths[1], "right.tank").unwrap();
    assert!(pair(&left, &right).iter().all(Result::is_ok));

    // The authority between revokes one of the two; the one above says nothing of it, and has no list.
    let list = folder.path().join("left/revoked.pem");
    fs::write(&list, plant.list(&[1_002], NOW + DAY)).unwrap();
    let paths = IdentityPaths::in_folder(&folder.path().join("left"));
    assert_eq!(paths.revoked.as_ref(), Some(&list));
    let left = load(&paths, "left.tank").unwrap();
    let met = pair(&left, &right);
    assert_eq!(met[0], Err(Refusal::Partner(CertificateFault::Revoked)));
    let met = meet(&right, left.name(), &left, &[right.name().clone()]);
    assert_eq!(met[1], Err(Refusal::Partner(CertificateFault::Revoked)));
}

#[test]
fn who_shows_no_certificate_is_refused() {
    let site = Site::new("plant7");
    let [_, right] = both(&site);
    let refusal = refusal(&right, "left", intruder(None, &[PROTOCOL]));
    assert_eq!(refusal, Some(Refusal::NoCertificate));
}

#[test]
fn who_speaks_another_protocol_or_none_is_refused() {
    let site = Site::new("plant7");
    let [left, right] = both(&site);
    for protocols in [&[][..], &[&b"h2"[..]]] {
        let shown = files(&site.paths("left.tank"));
        let refusal = refusal(&right, "left", intruder(Some(shown), protocols));
        assert_eq!(refusal, Some(Refusal::Protocol), "{protocols:?}");
    }
    // An answer without a protocol is refused by the caller.
    let mut server = ServerConfig::clone(&impostor(files(&site.paths("right.tank"))));
    server.alpn_protocols.clear();
    let client = left.client_config(right.name()).unwrap();
    let (mut client, mut server) = connect(client, Arc::new(server));
    let error = &talk(&mut client, &mut server)[0];
    let refusal = match error {
        Some(error) => explain(error),
        None => admitted(&client, &right.name().into()).unwrap_err(),
    };
    assert_eq!(refusal, Refusal::Protocol);
}

#[test]
fn who_asks_is_not_told_which_authorities_count() {
    let site = Site::new("plant7");
    let [_, right] = both(&site);
    let asked = Arc::new(Asked::default());
    let mut config = intruder(None, &[PROTOCOL]);
    config.client_auth_cert_resolver = Arc::clone(&asked) as _;
    assert_eq!(
        refusal(&right, "left", config),
        Some(Refusal::NoCertificate)
    );
    assert_eq!(*asked.0.lock().unwrap(), [0]);
}

#[test]
fn what_is_no_tls_is_told_as_that() {
    let site = Site::new("plant7");
    let [left, right] = both(&site);
    let config = right.server_config(left.name()).unwrap();
    let mut server = ServerConnection::new(config).unwrap();
    server
        .read_tls(&mut &b"GET / HTTP/1.1\r\n\r\n"[..])
        .unwrap();
    let error = server.process_new_packets().unwrap_err();
    let refusal = explain(&error);
    assert!(matches!(refusal, Refusal::Garbled(_)), "{refusal:?}");
    assert!(
        refusal.to_string().contains("nothing else answers"),
        "{refusal}"
    );
}

#[test]
fn no_session_is_resumed_and_nobody_is_told_who_is_called_or_believed() {
    let site = Site::new("plant7");
    let [left, right] = both(&site);
    let shown = files(&site.paths("left.tank"));
    let resumes = Arc::new(intruder(Some(shown), &[PROTOCOL]));
    for _ in 0..2 {
        let server = right.server_config(left.name()).unwrap();
        let name = ServerName::try_from("node").unwrap();
        let mut client =
            Connection::from(ClientConnection::new(Arc::clone(&resumes), name).unwrap());
        let mut server = Connection::from(ServerConnection::new(server).unwrap());
        assert_eq!(talk(&mut client, &mut server), [None, None]);
        assert_eq!(server.handshake_kind(), Some(HandshakeKind::Full));
        let Connection::Client(client) = client else {
            unreachable!()
        };
        assert_eq!(client.tls13_tickets_received(), 0);
    }
    // Nor with who offers to.
    let offers = impostor(files(&site.paths("right.tank")));
    let calls = left.client_config(right.name()).unwrap();
    for _ in 0..2 {
        let (mut client, mut server) = connect(Arc::clone(&calls), Arc::clone(&offers));
        assert_eq!(talk(&mut client, &mut server), [None, None]);
        assert_eq!(client.handshake_kind(), Some(HandshakeKind::Full));
    }
    let client = left.client_config(right.name()).unwrap();
    let name = ServerName::try_from("right.tank.plant7").unwrap();
    let mut client = ClientConnection::new(client, name).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    let told = String::from_utf8_lossy(&hello);
    assert!(
        told.contains("bumpless/1") && !told.contains("plant7"),
        "{told}"
    );
}
