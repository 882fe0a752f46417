//! A stream to a multicast group, whose members are ordinary programs on several hosts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;

use bumpless_net_linux::multicast;
use serde_json::Value;

use crate::site::{PORT, Sink, Site, Stream, monitors, not_once};
use crate::support::hosts::with_hosts;
use crate::support::process::{Process, said};
use crate::support::wait_until;

const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 77, 1, 3));
/// That of one source alone (RFC 4607).
const GROUP_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xFF35, 0, 0, 0, 0, 0, 77, 3));
const HOSTS: [(&str, u8); 4] = [("left", 1), ("right", 2), ("twin", 66), ("far", 67)];
const RECEIVERS: [&str; 3] = ["right", "twin", "far"];

/// The address of a host on network 1 or 2, of the family of `group`.
fn address(group: IpAddr, network: u8, host: &str) -> IpAddr {
    let number = HOSTS.iter().find(|(name, _)| *name == host).unwrap().1;
    match group {
        IpAddr::V4(_) => [10, 77, network, number].into(),
        IpAddr::V6(_) => [0xFD77, network.into(), 0, 0, 0, 0, 0, number.into()].into(),
    }
}

/// A program on `host` that is a member on that network, of any source or of one.
fn member(site: &Site, host: &str, group: IpAddr, network: u8, source: Option<IpAddr>) -> Sink {
    let any = if group.is_ipv4() { "0.0.0.0" } else { "[::]" };
    let socket = site.udp(host, &format!("{any}:{PORT}"));
    let name = ["na", "nb"][usize::from(network - 1)];
    let all = site
        .hosts
        .at(host, || bumpless_capture::interfaces().unwrap());
    let on = all.iter().find(|it| it.name == name).unwrap();
    multicast::join(&socket, on.index, group, source).unwrap();
    Sink::begin(socket)
}

/// Where the sender's program sends from.
fn source(site: &Site, group: IpAddr) -> (UdpSocket, SocketAddr) {
    let from = SocketAddr::new(address(group, 1, "left"), 40_000);
    (site.udp("left", &from.to_string()), from)
}

/// Four hosts that have the group, and their daemons.
fn begin(site: &mut Site, group: IpAddr) -> Vec<Process> {
    site.hosts.put_on_both("twin", 66);
    site.hosts.put_on_both("far", 67);
    let mut more = Vec::new();
    for (host, _) in HOSTS {
        let _ = std::fs::create_dir(site.folder.path().join(host));
        if group.is_ipv6() {
            site.add_addresses_v6(host, [1, 2].map(|network| address(group, network, host)));
        }
        let prefix = |network: u8| match group {
            IpAddr::V4(_) => format!("prefix = \"10.77.{network}.0/24\""),
            IpAddr::V6(_) => format!("prefix = \"fd77:{network}::/64\""),
        };
        let groups = format!("[[group]]\naddress = \"{group}\"\n");
        site.write(host, &prefix(1), &prefix(2), &monitors(&groups));
        if ["left", "right"].contains(&host) {
            site.start(host);
            continue;
        }
        let (file, said) = (site.name(host), site.folder.path().join("more.said"));
        let start = || Process::start(&["iprp", "run", &file], &said);
        more.push(site.hosts.at(host, start));
        wait_until("the daemon answers", || site.status(host).is_some());
    }
    more
}

/// On which networks `host` has joined the group, and for which sources.
fn joined(site: &Site, host: &str) -> Vec<(u64, Value)> {
    let status = site.status(host).unwrap();
    let joined = status["groups"][0]["joined"].as_array().unwrap();
    let one = |it: &Value| (it["ind"].as_u64().unwrap(), it["sources"].clone());
    joined.iter().map(one).collect()
}

fn came(site: &Site, host: &str, network: usize) -> u64 {
    let status = site.status(host).unwrap();
    status["networks"][network]["came"].as_u64().unwrap()
}

pub fn a_stream_to_a_group_loses_and_doubles_nothing_at_any_member_when_either_network_is_cut() {
    loses_and_doubles_nothing(GROUP);
}

pub fn a_stream_to_a_group_of_ipv6_loses_and_doubles_nothing_when_either_network_is_cut() {
    loses_and_doubles_nothing(GROUP_V6);
}

/// Nobody asks members, so each tells of what it misses itself.
pub fn a_network_that_brings_nothing_of_a_group_is_told_by_its_member_and_when_it_is_back() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        let _more = begin(&mut site, GROUP);
        let (socket, _) = source(&site, GROUP);
        let right = member(&site, "right", GROUP, 1, None);
        let stream = Stream::begin(socket, SocketAddr::from((GROUP, PORT)), 200);
        wait_until("both networks carry the stream", || {
            site.sends_on("left", "udp", PORT) == 2
        });
        right.wait_for_more(100);
        let weaknesses = || site.status("right").unwrap()["weaknesses"].to_string();
        assert!(!weaknesses().contains("nothing has come"));
        site.hosts.cut("A");
        wait_until("it is a weakness of the member", || {
            weaknesses().contains("nothing has come on network 10")
        });
        let unheard = || site.status("right").unwrap()["receiving"][0]["unheard"].take();
        assert_eq!(unheard()[0]["ind"], 10);
        let log = || site.right.as_ref().unwrap().said();
        wait_until("that is told", || {
            log().contains("nothing has come on network 10")
        });
        site.hosts.mend("A");
        wait_until("it is over, and that is told", || {
            !weaknesses().contains("nothing has come")
                && log().contains("copies come on network 10 again")
        });
        stream.end();
        right.end();
    });
}

fn loses_and_doubles_nothing(group: IpAddr) {
    with_hosts(move |hosts| {
        let mut site = Site::new(hosts);
        let _more = begin(&mut site, group);
        let (socket, from) = source(&site, group);
        let right = member(&site, "right", group, 1, None);
        let specific = member(&site, "twin", group, 1, Some(from.ip()));
        // A member on the sender's own host.
        let own = member(&site, "left", group, 1, None);
        let stream = Stream::begin(socket, SocketAddr::from((group, PORT)), 1000);
        wait_until("both networks carry the stream", || {
            site.sends_on("left", "udp", PORT) == 2
        });
        // Whoever wants one source alone asks for that one's address on each network.
        wait_until("the sender's other address is known", || {
            let of = |network| [address(group, network, "left").to_string()];
            joined(&site, "twin") == [(10, of(1).into()), (11, of(2).into())]
        });
        let first = [&right, &specific, &own].map(|sink| sink.wait_for_more(50));
        let late = member(&site, "far", group, 2, None);
        let sinks = [&right, &specific, &own, &late];
        wait_until("the late one is heard", || late.latest() > 0);
        wait_until("it has joined on both", || joined(&site, "far").len() == 2);
        for (at, network) in ["A", "B"].into_iter().enumerate() {
            site.hosts.cut(network);
            for sink in sinks {
                sink.wait_for_more(300);
            }
            site.hosts.mend(network);
            // The other one is cut only when this one carries again, to all.
            for host in RECEIVERS {
                let before = came(&site, host, at);
                wait_until("the network carries again", || {
                    came(&site, host, at) > before + 50
                });
            }
        }
        let total = |name: &str| {
            let count = |host: &str| site.status(host).unwrap()["counters"][name].as_u64();
            let counts = RECEIVERS.map(|host| count(host).unwrap());
            counts.iter().sum::<u64>()
        };
        wait_until("one's advertisement spares others theirs", || {
            total("suppressed") > 0
        });
        let sent = stream.end();
        let check = |sink: Sink, first: Option<u32>, name: &str| {
            wait_until("the last packet", || sink.latest() == sent - 1);
            let (counts, seen) = sink.end();
            // The late one counts from its first packet on.
            let joined = || counts.iter().position(|count| *count > 0).unwrap() as u32;
            let first = first.unwrap_or_else(joined);
            assert_eq!(not_once(&counts, first, sent), [], "{name}");
            assert_eq!(seen, [from], "{name}: the application sees its peer");
        };
        check(right, Some(first[0]), "right");
        // It has left: its host is a member on no network any more. Others are.
        wait_until("it has left", || joined(&site, "right").is_empty());
        assert_eq!(joined(&site, "far").len(), 2);
        check(specific, Some(first[1]), "twin");
        check(own, Some(first[2]), "left");
        check(late, None, "far");
        for host in RECEIVERS {
            let status = site.status(host).unwrap();
            assert_eq!(status["counters"]["not_given"], 0, "{status}");
        }
        ["left", "right"]
            .iter()
            .for_each(|host| site.interrupt(host));
        assert_eq!(["left", "right"].map(|host| site.tables(host)), [0, 0]);
    });
}

pub fn a_host_with_another_secret_of_a_group_is_told_so_and_takes_nothing_from_its_members() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        let _more = begin(&mut site, GROUP);
        site.interrupt("right");
        let other = site.folder.path().join("right/other.key");
        let made = said(&["key", "new", other.to_str().unwrap()]);
        assert_eq!(made.2, Some(0), "{}", made.1);
        let of_group = format!("address = \"{GROUP}\"");
        let wrong = format!("{of_group}\nkeys = [\"other.key\"]");
        site.replace("right", &of_group, &wrong);
        site.start("right");
        let stranger = member(&site, "right", GROUP, 1, None);
        let twin = member(&site, "twin", GROUP, 1, None);
        let to = SocketAddr::from((GROUP, PORT));
        let stream = Stream::begin(source(&site, GROUP).0, to, 1000);
        wait_until("both networks carry the stream", || {
            site.sends_on("left", "udp", PORT) == 2
        });
        let first = twin.wait_for_more(50);
        let weaknesses = || site.status("right").unwrap()["weaknesses"].to_string();
        wait_until("it is told what is wrong with which file", || {
            let words = ["which this host does not have", "keys of [[group]]"];
            words.iter().all(|word| weaknesses().contains(word))
        });
        let unread = || site.status("right").unwrap()["discarded"]["unknown_key"].as_u64();
        wait_until("what it cannot read is counted", || unread() > Some(50));
        twin.wait_for_more(300);
        let sent = stream.end();
        wait_until("the last packet", || twin.latest() == sent - 1);
        assert_eq!(not_once(&twin.end().0, first, sent), []);
        // Plain packets end with the first member's advertisement, and none that it could not read was given to its program.
        let (counts, _) = stranger.end();
        let last = counts.iter().rposition(|count| *count > 0).unwrap_or(0) as u32;
        assert!(last < first, "{last} of {sent}");
    });
}

pub fn a_group_with_certificates_needs_a_key_file_and_wrong_groups_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.toml");
    let told = |security: &str, groups: &str, words: &[&str]| {
        let text =
            format!("[security]\n{security}\n[[network]]\nind = 1\ninterface = \"a\"\n{groups}");
        std::fs::write(&file, &text).unwrap();
        let (_, error, status) = said(&["iprp", "check", file.to_str().unwrap()]);
        assert_eq!(status, Some(2), "{text}{error}");
        words
            .iter()
            .for_each(|word| assert!(error.contains(word), "{word:?} in: {error}"));
    };
    let keys = "keys = [\"k\"]";
    let group = |address: &str| format!("[[group]]\naddress = \"{address}\"\n");
    told(
        keys,
        &group("10.1.2.3"),
        &["the address of one host", "239.255.255.255"],
    );
    for (address, words) in [
        ("ff01::1:2", ["leaves no host", "ff05::1:2"]),
        ("ff02::1:2", ["another group on each link", "ff35::1:2"]),
        ("ff30::1:2", ["scope is reserved", "ff0e"]),
        ("ff0f::1:2", ["scope is reserved", "ff08"]),
        ("fe80::1", ["the address of one host", "ff00::/8"]),
    ] {
        told(keys, &group(address), &words);
    }
    told(keys, &group("224.0.0.5"), &["routers", "another group"]);
    told(keys, &group("everybody"), &["a multicast address such as"]);
    let twice = [group("239.1.2.3"), group("239.1.2.3")].concat();
    told(keys, &twice, &["wrong.toml:9", "line 6", "once"]);
    told(
        "certificates = \"c\"",
        &group("239.1.2.3"),
        &["group[1].keys", "is missing", "bumpless key new"],
    );
    let monitor = "[[monitor]]\nprotocol = \"tcp\"\nport = 9\n";
    told(
        keys,
        &[monitor, &group("239.1.2.3")].concat(),
        &["no [[monitor]]", "protocol = \"udp\""],
    );
    let many: String = (0..17)
        .map(|last| group(&format!("239.1.2.{last}")))
        .collect();
    told(keys, &many, &["are 17 groups", "16 at most"]);
}

pub fn a_group_that_no_network_carries_is_refused_by_check_and_told_in_status() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        let groups = format!("[[group]]\naddress = \"{GROUP_V6}\"\n");
        let (a, b) = ("interface = \"na\"", "interface = \"nb\"");
        site.write("left", a, b, &monitors(&groups));
        let check = |site: &Site| {
            let file = site.name("left");
            site.hosts.at("left", || said(&["iprp", "check", &file]))
        };
        let (error, _, status) = check(&site);
        assert_eq!(status, Some(1), "{error}");
        let words = ["iprp.toml:", "ff35::4d:3", "address of IPv6", "prefix"];
        words
            .iter()
            .for_each(|word| assert!(error.contains(word), "{word:?} in: {error}"));
        site.start("left");
        wait_until("a daemon that runs says so, too", || {
            let weaknesses = site.status("left").unwrap()["weaknesses"].to_string();
            words[1..].iter().all(|word| weaknesses.contains(word))
        });
        site.add_addresses_v6("left", [1, 2].map(|it| address(GROUP_V6, it, "left")));
        let prefix = |network: u8| format!("prefix = \"fd77:{network}::/64\"");
        site.write("left", &prefix(1), &prefix(2), &monitors(&groups));
        let (_, error, status) = check(&site);
        assert_eq!(status, Some(0), "{error}");
        let reload = said(&["iprp", "reload", &site.name("left")]);
        assert_eq!(reload.2, Some(0), "{reload:?}");
        wait_until("the networks of the file carry it", || {
            site.status("left").unwrap()["weaknesses"] == serde_json::json!([])
        });
    });
}

pub fn a_groups_secret_rolls_over_by_reload_without_a_loss_and_who_has_the_former_one_is_shut_out()
{
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        let _more = begin(&mut site, GROUP);
        let folder = site.folder.path().to_owned();
        let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let make = |name: &str| assert_eq!(said(&["key", "new", &file(name)]).2, Some(0));
        make("next.key");
        let of_group = format!("address = \"{GROUP}\"");
        let keys = |keys: &str| format!("{of_group}\nkeys = [{keys}]");
        let reload = |site: &Site, host: &str| {
            let done = said(&["iprp", "reload", &site.name(host)]);
            assert_eq!(done.2, Some(0), "{done:?}");
        };
        let (socket, _) = source(&site, GROUP);
        let right = member(&site, "right", GROUP, 1, None);
        let revoked = member(&site, "twin", GROUP, 1, None);
        let stream = Stream::begin(socket, SocketAddr::from((GROUP, PORT)), 500);
        wait_until("both networks carry the stream", || {
            site.sends_on("left", "udp", PORT) == 2
        });
        let first = right.wait_for_more(50);
        revoked.wait_for_more(50);
        // Files that cannot be used change nothing.
        site.replace("right", &of_group, &keys("\"absent.key\""));
        let (_, error, status) = said(&["iprp", "reload", &site.name("right")]);
        assert!(status == Some(1) && error.contains("absent.key"), "{error}");
        site.replace("right", &keys("\"absent.key\""), &of_group);
        // The receiver first, the sender last; the one that is not to have it any more is not given it.
        for host in ["right", "far", "left"] {
            site.replace(host, &of_group, &keys("\"../next.key\""));
            reload(&site, host);
            if host == "right" {
                let said = site.status(host).unwrap()["weaknesses"].to_string();
                assert!(said.contains("former secret"), "{said}");
            }
            right.wait_for_more(50);
        }
        let shut_out = stream.sent.load(Ordering::Relaxed);
        for host in ["right", "left"] {
            wait_until("the former secret opens no more", || {
                let weaknesses = site.status(host).unwrap()["weaknesses"].to_string();
                !weaknesses.contains("former secret")
            });
        }
        right.wait_for_more(200);
        let unread = || site.status("twin").unwrap()["discarded"]["unknown_key"].as_u64();
        assert!(unread() > Some(200), "it has copies, and cannot read them");
        // It seals for the group, too, and a host that is let in may: no copy of it is taken.
        let forger = site.udp("twin", "10.77.1.66:40001");
        let forged = Stream::begin(forger, SocketAddr::from((GROUP, PORT)), 100);
        wait_until("its copies are refused", || {
            let unknown = site.status("right").unwrap()["discarded"]["unknown_key"].as_u64();
            unknown > Some(50)
        });
        let forged = forged.end();
        let status = site.status("right").unwrap();
        let theirs = status["receiving"].as_array().unwrap().iter();
        let theirs: Vec<_> = theirs.filter(|it| it["source"] == "10.77.1.66").collect();
        let is_unheard = |it: &&Value| it["networks"] == serde_json::json!([]);
        assert!(theirs.iter().all(is_unheard), "{status}");
        let sent = stream.end();
        wait_until("the last packet", || right.latest() == sent - 1);
        let (counts, _) = right.end();
        // Plain packets of the other sender have its own numbers, from 0 on: they are below those that count.
        assert_eq!(not_once(&counts, first.max(forged), sent), []);
        let (counts, _) = revoked.end();
        let last = counts.iter().rposition(|count| *count > 0).unwrap_or(0) as u32;
        assert!(last <= shut_out, "{last}: it read on after {shut_out}");
    });
}
