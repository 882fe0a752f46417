//! Networks and addresses of a host that go and come while the daemon runs.

use std::net::{SocketAddr, UdpSocket};
use std::process::Command;

use crate::site::{BOTH, PORT, Sink, Site, Stream, monitors, not_once};
use crate::support::hosts::with_hosts;
use crate::support::process::said;
use crate::support::wait_until;

fn ip(site: &Site, host: &str, words: &str) {
    let words: Vec<_> = words.split(' ').collect();
    let done = site
        .hosts
        .at(host, || Command::new("ip").args(&words).status());
    assert!(done.unwrap().success(), "{words:?}");
}

fn networks(site: &Site, host: &str) -> usize {
    let status = site.status(host).unwrap();
    status["networks"].as_array().unwrap().len()
}

/// A stream from `left` to the address of `right` on A, replicated, and from which number on that is so.
fn streaming(site: &Site, a_second: u32) -> (Sink, Stream, u32) {
    let target: SocketAddr = format!("10.77.1.2:{PORT}").parse().unwrap();
    let sink = Sink::begin(site.udp("right", &target.to_string()));
    let stream = Stream::begin(site.udp("left", "10.77.1.1:40000"), target, a_second);
    wait_until("both networks carry the stream", || {
        site.sends_on("left", "udp", PORT) == 2
    });
    let first = sink.wait_for_more(100);
    (sink, stream, first)
}

/// The receiver's sockets on A are in use all the time, and another network's come and go beside them. That shows the whole, and not each
/// part of it: the daemon reads within microseconds, so that a stream meets with a socket that was closed too early only by chance. What
/// waits at a socket while the networks change is judged where it is made to wait, in `crates/linux/capture/tests/namespaces`
/// (`what_comes_on_a_network_that_stays_is_not_lost_when_another_one_goes_or_comes`). What waits at a socket that closes (L-88) is read by
/// the daemon before it does, and has no test of its own: its network is gone by then, and nothing more can be made to come there.
pub fn a_stream_loses_nothing_when_its_receiver_leaves_a_network_and_takes_it_up_again() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        BOTH.iter().for_each(|host| site.start(host));
        let (sink, stream, first) = streaming(&site, 2_000);
        // What comes on B is lost on its way, so that each packet comes on A alone.
        site.hosts.cut("B");
        for _ in 0..2 {
            ip(&site, "right", "address del 10.77.2.2/24 dev nb");
            wait_until("the network is left", || networks(&site, "right") == 1);
            sink.wait_for_more(100);
            ip(&site, "right", "address add 10.77.2.2/24 dev nb");
            wait_until("it is taken up again", || networks(&site, "right") == 2);
            sink.wait_for_more(100);
        }
        let sent = stream.end();
        wait_until("the last packet", || sink.latest() == sent - 1);
        assert_eq!(not_once(&sink.end().0, first, sent), []);
    });
}

/// Copies of a session still come on the other network, and there is a way to whoever has the address.
pub fn what_is_for_an_address_that_the_host_has_lost_does_not_leave_it_again() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        BOTH.iter().for_each(|host| site.start(host));
        ip(&site, "right", "route add default via 10.77.2.1 dev nb");
        let (sink, stream, _) = streaming(&site, 500);
        let counters = || site.status("right").unwrap()["counters"].take();
        assert_eq!(counters()["not_given"], 0);
        ip(&site, "right", "address del 10.77.1.2/24 dev na");
        wait_until("copies come and are given to nobody", || {
            counters()["not_given"].as_u64() >= Some(100)
        });
        stream.end();
        sink.end();
    });
}

pub fn a_reload_of_which_a_network_cannot_be_opened_is_refused_and_changes_nothing() {
    with_hosts(|hosts| {
        let mut site = Site::new(hosts);
        site.start("left");
        for words in [
            "link add nc type veth peer name nobody",
            "address add 10.77.3.1/24 dev nc",
            "link set nc up",
        ] {
            ip(&site, "left", words);
        }
        let port: UdpSocket = site.udp("left", "10.77.3.1:4761");
        let more = "[[network]]\nind = 12\ninterface = \"nc\"\n[[monitor]]\nprotocol = \"udp\"\nport = 5999\n";
        site.write(
            "left",
            "interface = \"na\"",
            "interface = \"nb\"",
            &monitors(more),
        );
        let (_, error, status) = said(&["iprp", "reload", &site.name("left")]);
        assert_eq!(status, Some(1), "{error}");
        assert!(
            error.contains("UDP port 4761 at 10.77.3.1 is another program's"),
            "{error}"
        );
        assert_eq!(networks(&site, "left"), 2);
        let log = site.left.as_ref().unwrap().said();
        assert!(log.contains("everything is as it was"), "{log}");
        assert!(!log.contains("is in force"), "{log}");
        // It is not half in force, either: what the file says is not looked for.
        let weaknesses = site.status("left").unwrap()["weaknesses"].to_string();
        assert!(!weaknesses.contains("10.77.3.1"), "{weaknesses}");
        drop(port);
        let (_, error, status) = said(&["iprp", "reload", &site.name("left")]);
        assert_eq!(status, Some(0), "{error}");
        assert_eq!(networks(&site, "left"), 3);
    });
}
