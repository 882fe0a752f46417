//! Flows of ordinary programs, while networks and daemons come and go.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::site::{BOTH, PORT, Sink, Site, Stream, TCP_PORT, monitors, not_once};
use crate::support::hosts::with_hosts;
use crate::support::process::{json, said};
use crate::support::wait_until;
use crate::ways::hops;

pub fn a_stream_loses_and_doubles_nothing_when_either_network_is_cut() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        BOTH.iter().for_each(|host| site.start(host));
        let source: SocketAddr = "10.77.1.1:40000".parse().unwrap();
        let target: SocketAddr = format!("10.77.1.2:{PORT}").parse().unwrap();
        let sink = Sink::begin(site.udp("right", &target.to_string()));
        let stream = Stream::begin(site.udp("left", &source.to_string()), target, 1000);
        wait_until("both networks carry the stream", || {
            site.sends_on("left", "udp", PORT) == 2
        });
        let first = sink.wait_for_more(100);
        for network in ["A", "B"] {
            site.hosts.cut(network);
            sink.wait_for_more(500);
            site.hosts.mend(network);
            // The other one is cut only when this one carries again.
            let before = came(&site, network);
            wait_until("the network carries again", || {
                came(&site, network) > before + 50
            });
        }
        let status = site.status("right").unwrap();
        let sent = stream.end();
        let last = sent - 1;
        wait_until("the last packet", || sink.latest() == last);
        let (counts, from) = sink.end();
        assert_eq!(not_once(&counts, first, sent), []);
        assert_eq!(from, [source], "the application sees its peer");
        let networks = status["receiving"][0]["networks"].as_array().unwrap();
        let firsts = networks.iter().map(|it| it["first"].as_u64().unwrap());
        assert!(firsts.clone().all(|first| first > 100), "{status}");
        assert_eq!(status["counters"]["not_given"], 0);
        BOTH.iter().for_each(|host| site.interrupt(host));
        assert_eq!(BOTH.map(|host| site.tables(host)), [0, 0]);
    });
}

fn came(site: &Site, network: &str) -> u64 {
    let status = site.status("right").unwrap();
    let at = usize::from(network == "B");
    status["networks"][at]["came"].as_u64().unwrap()
}

pub fn a_standby_stream_moves_when_its_network_falls_silent_and_loses_nothing() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        let standby = monitors("").replace("\"udp\"\n", "\"udp\"\nmode = \"standby\"\n");
        for host in BOTH {
            site.write(host, "interface = \"na\"", "interface = \"nb\"", &standby);
            site.start(host);
        }
        let target: SocketAddr = format!("10.77.1.2:{PORT}").parse().unwrap();
        let sink = Sink::begin(site.udp("right", &target.to_string()));
        let stream = Stream::begin(site.udp("left", "10.77.1.1:40000"), target, 500);
        wait_until("the stream is replicated", || {
            site.sends_on("left", "udp", PORT) == 2
        });
        let first = sink.wait_for_more(100);
        // How often it changes networks before is a matter of how busy this machine is.
        let before = came(&site, "B");
        site.hosts.cut("A");
        sink.wait_for_more(300);
        assert!(came(&site, "B") > before + 100, "it has moved to B");
        let mode = site.status("left").unwrap()["sending"][0]["mode"].take();
        let sent = stream.end();
        wait_until("the last packet", || sink.latest() == sent - 1);
        let (counts, _) = sink.end();
        assert_eq!(not_once(&counts, first, sent), []);
        assert_eq!(mode, "standby");
    });
}

pub fn a_tcp_connection_begun_before_the_daemons_goes_on_while_its_network_is_cut() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        let target = format!("10.77.1.2:{TCP_PORT}");
        let listener = site
            .hosts
            .at("right", || TcpListener::bind(&target).unwrap());
        let echo = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = stream.read(&mut buffer) {
                stream.write_all(&buffer[..length]).unwrap();
            }
        });
        let mut stream = site
            .hosts
            .at("left", || TcpStream::connect(&target).unwrap());
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        stream.set_nodelay(true).unwrap();
        let mut round = move |number: u8| {
            let (sent, mut got) = ([number; 1000], [0; 1000]);
            stream.write_all(&sent).unwrap();
            stream.read_exact(&mut got).unwrap();
            assert_eq!(got, sent);
            thread::sleep(Duration::from_millis(20));
        };
        round(0);
        BOTH.iter().for_each(|host| site.start(host));
        wait_until("both directions are replicated", || {
            round(1);
            BOTH.iter()
                .all(|host| site.sends_on(host, "tcp", TCP_PORT) == 2)
        });
        for (number, network) in [(2, "A"), (3, "B")] {
            site.hosts.cut(network);
            (0..20).for_each(|_| round(number));
            site.hosts.mend(network);
            round(number);
        }
        // And on when nobody replicates any more.
        BOTH.iter().for_each(|host| site.interrupt(host));
        (0..5).for_each(|_| round(4));
        drop(round);
        echo.join().unwrap();
    });
}

pub fn a_killed_daemon_leaves_flows_as_they_were_and_comes_back_without_a_loss() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        BOTH.iter().for_each(|host| site.start(host));
        let target: SocketAddr = format!("10.77.1.2:{PORT}").parse().unwrap();
        let sink = Sink::begin(site.udp("right", &target.to_string()));
        let stream = Stream::begin(site.udp("left", "10.77.1.1:40000"), target, 500);
        let replicated = |site: &Site| {
            wait_until("the stream is replicated", || {
                site.sends_on("left", "udp", PORT) == 2
            });
        };
        replicated(&site);
        let mut spans = Vec::new();
        for host in ["left", "right"] {
            sink.wait_for_more(50);
            site.kill(host);
            assert_eq!(site.tables(host), 0, "{host}");
            // Unreplicated, and not stopped.
            sink.wait_for_more(100);
            let first = sink.latest();
            site.start(host);
            replicated(&site);
            let last = sink.wait_for_more(200);
            spans.push((first, last - 100));
        }
        let sent = stream.end();
        wait_until("the last packet", || sink.latest() == sent - 1);
        let (counts, _) = sink.end();
        for (first, last) in spans {
            assert_eq!(
                not_once(&counts, first, last),
                [],
                "{first} to {last} of {sent}"
            );
        }
    });
}

pub fn a_stream_over_ipv6_survives_a_cut() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        for (host, number) in [("left", 1), ("right", 2)] {
            let address = |network| format!("fd00:{network}::{number}").parse().unwrap();
            site.add_addresses_v6(host, ['a', 'b'].map(address));
            site.write(
                host,
                "prefix = \"fd00:a::/64\"",
                "prefix = \"fd00:b::/64\"",
                &monitors(""),
            );
            site.start(host);
        }
        let target: SocketAddr = format!("[fd00:a::2]:{PORT}").parse().unwrap();
        let sink = Sink::begin(site.udp("right", &target.to_string()));
        let stream = Stream::begin(site.udp("left", "[fd00:a::1]:40000"), target, 500);
        wait_until("both networks carry the stream", || {
            site.sends_on("left", "udp", PORT) == 2
        });
        let first = sink.wait_for_more(50);
        site.hosts.cut("A");
        let (networks, _) = hops(&site, &["fd00:a::2", "--wait", "100", "--probes", "1"]);
        let reached = ("reached".into(), vec!["fd00:b::2".into()]);
        assert_eq!(networks, [("silent".into(), vec![]), reached]);
        sink.wait_for_more(200);
        let sent = stream.end();
        wait_until("the last packet", || sink.latest() == sent - 1);
        let (counts, from) = sink.end();
        assert_eq!(not_once(&counts, first, sent), []);
        assert_eq!(from, ["[fd00:a::1]:40000".parse().unwrap()]);
    });
}

pub fn ports_change_while_it_runs_and_a_ping_measures_each_network() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        BOTH.iter().for_each(|host| site.start(host));
        let file = site.name("left");
        let ping = |count: &str| {
            let words = [
                "iprp",
                "ping",
                &file,
                "10.77.1.2",
                "--count",
                count,
                "--every",
                "20",
                "--json",
            ];
            json(&words, "bumpless.iprp.ping/1")
        };
        let (result, status) = site.hosts.at("left", || ping("3"));
        assert_eq!(status, Some(0), "{result}");
        let networks = result["networks"].as_array().unwrap();
        let inds: Vec<_> = networks
            .iter()
            .map(|it| it["ind"].as_u64().unwrap())
            .collect();
        assert_eq!(inds, [10, 11]);
        assert!(networks.iter().all(|it| it["sent"] == 3), "{result}");
        site.hosts.cut("B");
        let (result, status) = site.hosts.at("left", || ping("1"));
        assert_eq!(status, Some(1), "{result}");
        assert_eq!(result["networks"][1]["lost"], 1);
        site.hosts.mend("B");
        // A port that is not monitored, until it is.
        let other = PORT + 1;
        let target: SocketAddr = format!("10.77.1.2:{other}").parse().unwrap();
        let sink = Sink::begin(site.udp("right", &target.to_string()));
        let stream = Stream::begin(site.udp("left", "10.77.1.1:40000"), target, 200);
        sink.wait_for_more(20);
        assert_eq!(site.sends_on("left", "udp", other), 0);
        let more = format!("[[monitor]]\nprotocol = \"udp\"\nport = {other}\n");
        site.write(
            "right",
            "interface = \"na\"",
            "interface = \"nb\"",
            &monitors(&more),
        );
        let reload = said(&["iprp", "reload", &site.name("right")]);
        assert_eq!(reload.2, Some(0), "{reload:?}");
        wait_until("the port is replicated", || {
            site.sends_on("left", "udp", other) == 2
        });
        // And back, by a signal.
        site.write(
            "right",
            "interface = \"na\"",
            "interface = \"nb\"",
            &monitors(""),
        );
        site.right.as_ref().unwrap().signal(libc::SIGHUP);
        wait_until("the port is replicated no more", || {
            site.sends_on("left", "udp", other) == 0
        });
        sink.wait_for_more(20);
        // What cannot be followed is refused, and nothing changes.
        site.write(
            "right",
            "interface = \"na\"",
            "interface = \"na\"",
            &monitors(""),
        );
        let (_, error, status) = said(&["iprp", "reload", &site.name("right")]);
        assert_eq!(status, Some(2), "{error}");
        let sent = stream.end();
        wait_until("the last packet", || sink.latest() == sent - 1);
    });
}
