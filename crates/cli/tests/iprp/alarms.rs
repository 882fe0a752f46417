//! What a daemon says of what is wrong, and that nobody else can keep it from that.

use std::net::SocketAddr;
use std::process::Command;

use bumpless_base::LinkId;
use bumpless_wire::EnvelopeHeader;

use crate::site::{BOTH, PORT, Sink, Site, Stream, not_once};
use crate::support::hosts::with_hosts;
use crate::support::process::said;
use crate::support::wait_until;

fn weaknesses(site: &Site, host: &str) -> String {
    site.status(host).unwrap()["weaknesses"].to_string()
}

pub fn a_network_that_loses_everything_is_told_while_the_other_one_carries_and_when_it_is_back() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        BOTH.iter().for_each(|host| site.start(host));
        let target: SocketAddr = format!("10.77.1.2:{PORT}").parse().unwrap();
        let sink = Sink::begin(site.udp("right", &target.to_string()));
        let stream = Stream::begin(site.udp("left", "10.77.1.1:40000"), target, 200);
        wait_until("both networks carry the stream", || {
            site.sends_on("left", "udp", PORT) == 2
        });
        let first = sink.wait_for_more(100);
        assert!(!weaknesses(&site, "left").contains("answered none"));
        site.hosts.cut("A");
        wait_until("it is a weakness", || {
            let all = weaknesses(&site, "left");
            all.contains(&format!("{PORT}")) && all.contains("network 10 has answered none of")
        });
        let (shown, _, _) = said(&["iprp", "status", &site.name("left")]);
        assert!(shown.contains("weakness: ") && shown.contains("network 10 has answered none of"));
        let (shown, _, _) = said(&["iprp", "senders", &site.name("left")]);
        assert!(shown.contains(", answers nothing for "), "{shown}");
        let log = || site.left.as_ref().unwrap().said();
        assert!(
            log().contains("network 10 has answered none of"),
            "{}",
            log()
        );
        site.hosts.mend("A");
        wait_until("it is over", || {
            !weaknesses(&site, "left").contains("answered none")
        });
        wait_until("that is told", || {
            log().contains("network 10 answers again")
        });
        let sent = stream.end();
        wait_until("the last packet", || sink.latest() == sent - 1);
        assert_eq!(not_once(&sink.end().0, first, sent), []);
    });
}

/// What is sealed with keys that nobody has, from more addresses than there is room for.
pub fn forged_frames_of_many_addresses_keep_nothing_of_this_host_from_being_told() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        site.replace("right", "interface = \"na\"", "prefix = \"10.77.1.0/24\"");
        site.start("right");
        site.hosts.put_stranger_on_both();
        let ip = |host: &str, words: &str| {
            let words: Vec<_> = words.split(' ').collect();
            let done = site
                .hosts
                .at(host, || Command::new("ip").args(&words).status());
            assert!(done.unwrap().success(), "{words:?}");
        };
        let forge = |number: u8| {
            let header = EnvelopeHeader {
                key: u16::from(number),
                from: 0,
                to: 0,
                link: LinkId(0),
                origin: 1,
                counter: 1,
            };
            [&header.encode()[..], &[0; 80]].concat()
        };
        for number in 100..140 {
            ip("twin", &format!("address add 10.77.1.{number}/24 dev na"));
            let socket = site.udp("twin", &format!("10.77.1.{number}:4760"));
            socket.send_to(&forge(number), "10.77.1.2:4760").unwrap();
        }
        let counters = || site.status("right").unwrap();
        wait_until("all are refused", || {
            counters()["control_refused"]["unknown_key"].as_u64() >= Some(40)
        });
        let about = |all: &str| all.matches("which this host does not have").count();
        assert_eq!(about(&weaknesses(&site, "right")), 16);
        assert!(counters()["counters"]["troubles_left_out"].as_u64() >= Some(24));
        // Which of two addresses is meant cannot be told.
        ip("right", "address add 10.77.1.77/24 dev na");
        wait_until("what is wrong on this host is told", || {
            weaknesses(&site, "right").contains("10.77.1.2 (na) and 10.77.1.77 (na)")
        });
        let log = || site.right.as_ref().unwrap().said();
        wait_until("in the log as well", || {
            log().contains("and 10.77.1.77 (na)")
        });
        assert!(about(&log()) <= 16, "{}", log());
    });
}
