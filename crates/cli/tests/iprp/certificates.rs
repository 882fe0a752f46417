//! Hosts with certificates: who is let in, keys that change, restarts, what is revoked.

use std::fs;
use std::net::SocketAddr;

use serde_json::Value;

use crate::site::{BOTH, PORT, Sink, Site, Stream, not_once};
use crate::support::hosts::with_hosts;
use crate::support::process::said;
use crate::support::{wait_for, wait_until};

pub const TARGET: &str = "10.77.1.2:4713";

/// Two hosts with certificates of one site, and a stream between them that both networks carry from the number that is told.
pub fn streaming(site: Site) -> (Site, Sink, Stream, u32) {
    let mut site = site;
    BOTH.iter().for_each(|host| site.start(host));
    let target: SocketAddr = TARGET.parse().unwrap();
    let sink = Sink::begin(site.udp("right", TARGET));
    let stream = Stream::begin(site.udp("left", "10.77.1.1:40000"), target, 200);
    wait_until("both networks carry the stream", || {
        site.sends_on("left", "udp", PORT) == 2
    });
    let first = sink.wait_for_more(20);
    (site, sink, stream, first)
}

pub fn agreed(site: &Site, host: &str) -> Vec<(String, bool, u64)> {
    let status = site.status(host).unwrap();
    let hosts = status["security"]["hosts"].as_array().cloned();
    let one = |it: &Value| {
        let name = it["with"].as_str().unwrap().to_owned();
        let connected = it["connected"].as_bool().unwrap();
        (name, connected, it["keys_agreed"].as_u64().unwrap())
    };
    hosts.unwrap_or_default().iter().map(one).collect()
}

/// Ends the stream; what did not come once since the number `first`.
pub fn end(sink: Sink, stream: Stream, first: u32) -> Vec<(u32, u32)> {
    let sent = stream.end();
    wait_until("the last packet", || sink.latest() == sent - 1);
    not_once(&sink.end().0, first, sent)
}

pub fn hosts_with_certificates_roll_their_keys_and_lose_nothing_while_either_network_is_cut() {
    with_hosts(|hosts| {
        let (site, sink, stream, first) = streaming(Site::with_certificates(hosts));
        // Who connects and shows nothing keeps nobody out.
        let strangers = site.hosts.at("right", || {
            let connect = |_| std::net::TcpStream::connect("10.77.1.1:4760").unwrap();
            (0..100).map(connect).collect::<Vec<_>>()
        });
        for mut it in &strangers {
            let _ = std::io::Write::write_all(&mut it, b"\x16\x03\x01\x02\x00junk");
        }
        for network in ["A", "B"] {
            site.hosts.cut(network);
            sink.wait_for_more(100);
            site.hosts.mend(network);
            sink.wait_for_more(50);
        }
        // A key lasts for two seconds in these files, those for copies as well.
        wait_until("keys have been replaced twice on both hosts", || {
            let is_rolled =
                |(_, connected, agreed): &(String, bool, u64)| *connected && *agreed >= 3;
            BOTH.iter()
                .all(|host| agreed(&site, host).iter().any(is_rolled))
        });
        let status = site.status("left").unwrap();
        assert_eq!(status["security"]["name"], "left.grid.plant");
        assert_eq!(status["security"]["hosts"][0]["with"], "right.grid.plant");
        assert_eq!(status["weaknesses"], serde_json::json!([]));
        assert_eq!(end(sink, stream, first), []);
    });
}

pub fn either_host_with_a_certificate_may_be_killed_and_is_replicated_to_again() {
    with_hosts(|hosts| {
        let (mut site, sink, stream, first) = streaming(Site::with_certificates(hosts));
        site.kill("left");
        site.start("left");
        wait_until("the sender that has started again replicates", || {
            site.sends_on("left", "udp", PORT) == 2
        });
        sink.wait_for_more(50);
        site.kill("right");
        wait_until("it is told where nobody answers", || {
            let status = site.status("left").unwrap();
            let unanswered = status["security"]["unanswered"].to_string();
            unanswered.contains("10.77.1.2") && unanswered.contains("refused")
        });
        site.start("right");
        wait_until("the receiver that has started again has a session", || {
            let is_there = |(_, connected, agreed): &(String, bool, u64)| *connected && *agreed > 0;
            agreed(&site, "right").iter().any(is_there)
        });
        wait_until("copies of the stream come again", || {
            site.sends_on("left", "udp", PORT) == 2 && {
                let status = site.status("right").unwrap();
                status["receiving"][0]["replicated"] == true
            }
        });
        let from = sink.wait_for_more(50);
        assert!(from > first);
        assert_eq!(end(sink, stream, from), []);
    });
}

pub fn a_host_of_another_authority_or_that_is_not_a_peer_causes_no_session() {
    with_hosts(|hosts| {
        let mut site = Site::with_certificates(hosts);
        // Its certificate has the right name, and another authority of the same site.
        let other = site.folder.path().join("other");
        let (folder, own) = (
            other.to_str().unwrap().to_owned(),
            site.certificate("right"),
        );
        said(&["pki", "init", &folder, "--site", "plant"]);
        fs::remove_dir_all(&own).unwrap();
        let out = own.to_str().unwrap();
        let made = said(&[
            "pki",
            "issue",
            "right.grid",
            "--authority",
            &folder,
            "--out",
            out,
        ]);
        assert_eq!(made.2, Some(0), "{made:?}");
        BOTH.iter().for_each(|host| site.start(host));
        let sink = Sink::begin(site.udp("right", TARGET));
        let target: SocketAddr = TARGET.parse().unwrap();
        let stream = Stream::begin(site.udp("left", "10.77.1.1:40000"), target, 200);
        for host in BOTH {
            let told = wait_for("each says why there is no session", || {
                let weaknesses = site.status(host)?["weaknesses"].to_string();
                weaknesses.contains("no session").then_some(weaknesses)
            });
            assert!(told.contains("authorit"), "{told}");
        }
        sink.wait_for_more(100);
        for host in BOTH {
            assert_eq!(agreed(&site, host), []);
            let status = site.status(host).unwrap();
            assert_eq!(status["sending"], serde_json::json!([]), "{status}");
            assert_eq!(status["counters"]["replicated"], 0);
        }
        assert_eq!(end(sink, stream, 0), [], "packets leave as they are");
        // And the same with the right certificate, if the other end does not name it as a peer.
        site.interrupt("right");
        site.interrupt("left");
        site.issue("right");
        site.replace("left", "[timing]", "peers = [\"somebody\"]\n[timing]");
        BOTH.iter().for_each(|host| site.start(host));
        let socket = site.udp("left", "10.77.1.1:40000");
        let told = wait_for("it says whose certificate came", || {
            socket.send_to(b"x", TARGET).unwrap();
            let weaknesses = site.status("left")?["weaknesses"].to_string();
            weaknesses.contains("no session").then_some(weaknesses)
        });
        assert!(
            told.contains("somebody.grid.plant") && told.contains("right.grid.plant"),
            "{told}"
        );
        assert_eq!(agreed(&site, "left"), []);
        // Nor is one with a key file, and it is told what is wrong.
        site.interrupt("right");
        let certificate = "certificates = \"right.grid\"";
        site.replace("right", certificate, "keys = [\"../group.key\"]");
        site.start("right");
        let told = wait_for("it is told that the other end has no certificate", || {
            socket.send_to(b"x", TARGET).unwrap();
            let weaknesses = site.status("left")?["weaknesses"].to_string();
            weaknesses.contains("not agreed on").then_some(weaknesses)
        });
        assert!(told.contains("key file"), "{told}");
    });
}

pub fn a_host_that_is_revoked_is_neither_heard_nor_sent_to_within_seconds() {
    with_hosts(|hosts| {
        let site = Site::with_certificates(hosts);
        for host in BOTH {
            // A session would last for minutes without the revocation.
            site.replace(
                host,
                "advertise_every_ms = 1000",
                "advertise_every_ms = 60000",
            );
            site.replace(host, "key_lifetime_s = 2", "key_lifetime_s = 3600");
        }
        let (site, sink, stream, first) = streaming(site);
        let authority = site.folder.path().join("pki");
        let authority = authority.to_str().unwrap();
        let made = said(&["pki", "revoke", "right.grid", "--authority", authority]);
        assert_eq!(made.2, Some(0), "{made:?}");
        let list = site.folder.path().join("pki/revoked.pem");
        fs::copy(list, site.certificate("left").join("revoked.pem")).unwrap();
        wait_until("nothing leaves for it any more", || {
            let status = site.status("left").unwrap();
            status["sending"] == serde_json::json!([]) && agreed(&site, "left").is_empty()
        });
        let told = wait_for("why it is not let in again", || {
            let weaknesses = site.status("left")?["weaknesses"].to_string();
            weaknesses.contains("revoked").then_some(weaknesses)
        });
        assert!(told.contains("10.77."), "{told}");
        let copies = site.status("left").unwrap()["counters"]["copies"].clone();
        sink.wait_for_more(200);
        assert_eq!(agreed(&site, "left"), []);
        let status = site.status("left").unwrap();
        assert_eq!(status["counters"]["copies"], copies, "{status}");
        assert_eq!(status["sending"], serde_json::json!([]));
        assert_eq!(end(sink, stream, first), [], "packets leave as they are");
    });
}

pub fn certificates_that_cannot_be_used_are_told_with_file_reason_and_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, pki) = (at("iprp.toml"), at("pki"));
    let network = "[[network]]\nind = 1\ninterface = \"lo\"\n";
    let check = |security: &str| {
        fs::write(&file, format!("[security]\n{security}\n{network}")).unwrap();
        let (out, errors, status) = said(&["iprp", "check", &file]);
        (format!("{out}{errors}"), status)
    };
    let told = |security: &str, expected: i32, words: &[&str]| {
        let (said, status) = check(security);
        assert_eq!(status, Some(expected), "{said}");
        for word in words {
            assert!(said.contains(word), "{word:?} in: {said}");
        }
    };
    told(
        "",
        2,
        &["security", "pki issue HOST.GROUP", "bumpless key new"],
    );
    let both = "keys = [\"k\"]\ncertificates = \"c\"";
    told(
        both,
        2,
        &["certificates", "stands beside keys", "one of both"],
    );
    told(
        "keys = [\"k\"]\npeers = [\"a\"]",
        2,
        &["peers", "leave it out"],
    );
    let own = "certificates = \"h1.grid\"";
    told(
        own,
        1,
        &["h1.grid: there is no such folder", "pki init", "pki issue"],
    );
    said(&["pki", "init", &pki, "--site", "plant"]);
    let issue = [
        "pki",
        "issue",
        "h1.grid",
        "--authority",
        &pki,
        "--out",
        &at("h1.grid"),
    ];
    assert_eq!(said(&issue).2, Some(0));
    let certificate = folder.path().join("h1.grid/certificate.pem");
    let good = fs::read(&certificate).unwrap();
    fs::write(&certificate, b"garbage").unwrap();
    told(own, 1, &["certificate.pem", "has no certificate in PEM"]);
    fs::write(&certificate, &good).unwrap();
    told(
        "certificates = \"h1.grid\"\npeers = [\"-\"]",
        1,
        &["peers", "cannot stand in a certificate"],
    );
    // That of the authority is no host's.
    fs::copy(folder.path().join("pki/authority.pem"), &certificate).unwrap();
    told(own, 1, &["certificate.pem", "not for HOST.GROUP.SITE"]);
    fs::write(&certificate, &good).unwrap();
    let key = folder.path().join("h1.grid/key.pem");
    fs::remove_file(&key).unwrap();
    told(own, 1, &["key.pem"]);
    // Nothing starts half protected.
    let (_, errors, status) = said(&["iprp", "run", &file]);
    assert_eq!(status, Some(1));
    assert!(
        errors.contains("key.pem") || errors.contains("CAP_NET"),
        "{errors}"
    );
}
