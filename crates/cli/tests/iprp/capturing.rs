//! By which way packets of ordinary programs are captured, and that it makes no difference to them.

use std::net::SocketAddr;
use std::process::Command;

use bumpless_testing::skip;

use crate::site::{BOTH, PORT, Sink, Site, Stream, not_once};
use crate::support::hosts::with_hosts;
use crate::support::process::said;
use crate::support::wait_until;

/// What asks for the ring, and what comes after it in a file.
const RING: &str = "capture = \"ring\"\n[security]";

/// Starts daemons that are asked for the ring.
fn by_ring(site: &mut Site) {
    for host in BOTH {
        site.replace(host, "[security]", RING);
        site.start(host);
    }
}

/// A stream of which each network is cut in turn; how many of its datagrams `left` has captured, and of these by the ring.
fn carry(site: &Site) -> [u64; 2] {
    let target: SocketAddr = format!("10.77.1.2:{PORT}").parse().unwrap();
    let sink = Sink::begin(site.udp("right", &target.to_string()));
    let stream = Stream::begin(site.udp("left", "10.77.1.1:40000"), target, 1_000);
    wait_until("both networks carry the stream", || {
        site.sends_on("left", "udp", PORT) == 2
    });
    let first = sink.wait_for_more(100);
    for network in ["A", "B"] {
        site.hosts.cut(network);
        sink.wait_for_more(300);
        site.hosts.mend(network);
        sink.wait_for_more(100);
    }
    let counters = site.status("left").unwrap()["counters"].take();
    let sent = stream.end();
    wait_until("the last packet", || sink.latest() == sent - 1);
    assert_eq!(not_once(&sink.end().0, first, sent), []);
    ["captured", "captured_by_ring"].map(|it| counters[it].as_u64().unwrap())
}

pub fn datagrams_come_by_the_ring_where_the_file_asks_for_it_and_else_by_the_queue() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        by_ring(&mut site);
        let capture = site.status("left").unwrap()["capture"].take();
        if let Some(why) = capture["why_not_ring"].as_str() {
            skip(&format!("needs a ring: {why}"));
        }
        assert_eq!(capture["datagrams"], "ring");
        let [captured, by_ring] = carry(&site);
        assert!(
            captured > 500 && captured == by_ring,
            "{captured} {by_ring}"
        );
        BOTH.iter().for_each(|host| site.interrupt(host));
        for host in BOTH {
            site.replace(host, RING, "[security]");
            site.start(host);
        }
        let capture = site.status("left").unwrap()["capture"].take();
        assert_eq!(capture["datagrams"], "queue");
        assert_eq!(
            capture["why_not_ring"],
            "the file does not ask for the ring"
        );
        let [captured, by_ring] = carry(&site);
        assert!(captured > 500 && by_ring == 0, "{captured} {by_ring}");
        let (shown, _, _) = said(&["iprp", "status", &site.name("left")]);
        assert!(
            shown.contains("captures by a queue: the file does not ask for the ring"),
            "{shown}"
        );
    });
}

/// An interface that appears while the daemon runs is watched within seconds, and until then the queue captures what leaves by it.
pub fn a_stream_that_leaves_by_an_interface_of_later_is_replicated_from_its_first_packet_on() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        by_ring(&mut site);
        let target: SocketAddr = format!("10.77.1.2:{PORT}").parse().unwrap();
        let sink = Sink::begin(site.udp("right", &target.to_string()));
        let stream = Stream::begin(site.udp("left", "10.77.1.1:40000"), target, 1_000);
        wait_until("both networks carry the stream", || {
            site.sends_on("left", "udp", PORT) == 2
        });
        let first = sink.wait_for_more(100);
        // By its route the stream leaves by an interface behind which nobody would receive it.
        for words in [
            "link add later type veth peer name nobody",
            "link set nobody up",
            "link set later up",
            "neighbour add 10.77.1.2 lladdr 02:00:00:00:00:01 dev later",
            "route add 10.77.1.2/32 dev later",
        ] {
            let words: Vec<_> = words.split(' ').collect();
            let done = site
                .hosts
                .at("left", || Command::new("ip").args(&words).status());
            assert!(done.unwrap().success(), "{words:?}");
        }
        sink.wait_for_more(3_000);
        let captured = |name: &str| {
            let counters = site.status("left").unwrap()["counters"].take();
            counters[name].as_u64().unwrap()
        };
        let by_ring = captured("captured_by_ring");
        sink.wait_for_more(300);
        let is_ring = site.status("left").unwrap()["capture"]["datagrams"] == "ring";
        assert!(!is_ring || captured("captured_by_ring") > by_ring + 200);
        let sent = stream.end();
        wait_until("the last packet", || sink.latest() == sent - 1);
        assert_eq!(not_once(&sink.end().0, first, sent), []);
    });
}
