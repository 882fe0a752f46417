//! A stream to a multicast group, whose members are ordinary programs on several hosts.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use serde_json::Value;

use crate::site::{PORT, Sink, Site, Stream, monitors, not_once};
use crate::support::hosts::with_hosts;
use crate::support::process::{Process, said};
use crate::support::wait_until;

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 77, 1, 3);
const RECEIVERS: [(&str, u8); 3] = [("right", 2), ("twin", 66), ("far", 67)];

/// A program on `host` that is a member on the interface with address `on`, of any source or of one.
fn member(site: &Site, host: &str, on: [u8; 4], source: Option<[u8; 4]>) -> Sink {
    let socket = site.udp(host, &format!("0.0.0.0:{PORT}"));
    match source {
        None => socket.join_multicast_v4(&GROUP, &on.into()).unwrap(),
        Some(source) => join_source(&socket, on, source),
    }
    Sink::begin(socket)
}

fn join_source(socket: &UdpSocket, on: [u8; 4], source: [u8; 4]) {
    let address = |octets: [u8; 4]| libc::in_addr {
        s_addr: u32::from_ne_bytes(octets),
    };
    let wanted = libc::ip_mreq_source {
        imr_multiaddr: address(GROUP.octets()),
        imr_interface: address(on),
        imr_sourceaddr: address(source),
    };
    // SAFETY: the kernel reads as many bytes as the structure has, which lives until then.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_ADD_SOURCE_MEMBERSHIP,
            (&raw const wanted).cast(),
            size_of_val(&wanted) as u32,
        )
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// Four hosts that have the group, and their daemons.
fn begin(site: &mut Site) -> Vec<Process> {
    site.hosts.put_on_both("twin", 66);
    site.hosts.put_on_both("far", 67);
    let group = format!("[[group]]\naddress = \"{GROUP}\"\n");
    let mut more = Vec::new();
    for host in ["left", "right", "twin", "far"] {
        let _ = std::fs::create_dir(site.folder.path().join(host));
        let (a, b) = ("interface = \"na\"", "interface = \"nb\"");
        site.write(host, a, b, &monitors(&group));
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
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        let _more = begin(&mut site);
        let source = [10, 77, 1, 1];
        let right = member(&site, "right", [10, 77, 1, 2], None);
        let specific = member(&site, "twin", [10, 77, 1, 66], Some(source));
        // A member on the sender's own host.
        let own = member(&site, "left", source, None);
        let from: SocketAddr = "10.77.1.1:40000".parse().unwrap();
        let to = SocketAddr::from((GROUP, PORT));
        let stream = Stream::begin(site.udp("left", &from.to_string()), to, 1000);
        wait_until("both networks carry the stream", || {
            site.sends_on("left", "udp", PORT) == 2
        });
        // Whoever wants one source alone asks for that one's address on each network.
        wait_until("the sender's other address is known", || {
            joined(&site, "twin") == [(10, ["10.77.1.1"].into()), (11, ["10.77.2.1"].into())]
        });
        let first = [&right, &specific, &own].map(|sink| sink.wait_for_more(50));
        let late = member(&site, "far", [10, 77, 2, 67], None);
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
            for (host, _) in RECEIVERS {
                let before = came(&site, host, at);
                wait_until("the network carries again", || {
                    came(&site, host, at) > before + 50
                });
            }
        }
        let total = |name: &str| {
            let count = |host: &str| site.status(host).unwrap()["counters"][name].as_u64();
            let counts = RECEIVERS.map(|(host, _)| count(host).unwrap());
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
        for (host, _) in RECEIVERS {
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
        let _more = begin(&mut site);
        site.interrupt("right");
        let other = site.folder.path().join("right/other.key");
        let made = said(&["key", "new", other.to_str().unwrap()]);
        assert_eq!(made.2, Some(0), "{}", made.1);
        let of_group = format!("address = \"{GROUP}\"");
        let wrong = format!("{of_group}\nkeys = [\"other.key\"]");
        site.replace("right", &of_group, &wrong);
        site.start("right");
        let stranger = member(&site, "right", [10, 77, 1, 2], None);
        let twin = member(&site, "twin", [10, 77, 1, 66], None);
        let to = SocketAddr::from((GROUP, PORT));
        let stream = Stream::begin(site.udp("left", "10.77.1.1:40000"), to, 1000);
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
    told(keys, &group("ff05::3"), &["of IPv6", "leave as they are"]);
    told(keys, &group("224.0.0.5"), &["routers", "another group"]);
    told(keys, &group("everybody"), &["a multicast address of IPv4"]);
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
