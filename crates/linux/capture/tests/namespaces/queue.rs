//! What is captured, and what becomes of it.

use std::net::{IpAddr, SocketAddr};

use crate::hosts::{Hosts, NUMBER, TABLE, UDP, captured, received, rules, socket, wait_for};
use bumpless_capture::{
    Firewall, FirewallError, Queue, Queued, Sightings, Verdict, group_holder, parse, queue_holder,
    table_holder, tables,
};

pub fn what_is_captured_waits_for_a_verdict_and_the_rest_goes_on() {
    let hosts = Hosts::new();
    for (here, there) in [("10.1.0.1", "10.1.0.2"), ("fd00:a::1", "fd00:a::2")] {
        let at = |address: &str, port: u16| SocketAddr::new(address.parse().unwrap(), port);
        let target = hosts.at(&hosts.b, || socket(&at(there, 5000).to_string()));
        let other = hosts.at(&hosts.b, || socket(&at(there, 5001).to_string()));
        hosts.at(&hosts.a, || {
            let mut queue = Queue::open(NUMBER, 1024).unwrap();
            let mut firewall = Firewall::install(TABLE, &rules(&[])).unwrap();
            let source = socket(&at(here, 4000).to_string());
            source.send_to(b"before", at(there, 5000)).unwrap();
            assert_eq!(received(&target).0, b"before");
            firewall.capture(&captured(UDP, there, 5000)).unwrap();
            for text in [&b"one"[..], b"two", b"three"] {
                source.send_to(text, at(there, 5000)).unwrap();
            }
            source.send_to(b"other", at(there, 5001)).unwrap();
            assert_eq!(received(&other).0, b"other");
            let mut seen = Vec::new();
            wait_for("three packets", || {
                let decide = |packet: Queued<'_>| {
                    let packet = parse(packet.bytes).unwrap();
                    assert_eq!((packet.source_port, packet.destination_port), (4000, 5000));
                    assert_eq!(packet.source, here.parse::<IpAddr>().unwrap());
                    seen.push(packet.payload.to_vec());
                    match packet.payload {
                        b"two" => Verdict::Accept,
                        _ => Verdict::Drop,
                    }
                };
                queue.drain(16, decide).unwrap();
                (seen.len() == 3).then_some(())
            });
            assert_eq!(seen, [&b"one"[..], b"two", b"three"]);
            // Of the three only this one went on.
            assert_eq!(received(&target).0, b"two");
            firewall.release(&captured(UDP, there, 5000)).unwrap();
            firewall.release(&captured(UDP, there, 5000)).unwrap();
            source.send_to(b"after", at(there, 5000)).unwrap();
            assert_eq!(received(&target).0, b"after");
        });
    }
}

pub fn many_are_captured_in_one_go_and_one_that_is_refused_keeps_no_other_from_it() {
    const PORTS: std::ops::Range<u16> = 20_000..20_300;
    let hosts = Hosts::new();
    let target = hosts.at(&hosts.b, || socket("10.1.0.2:19999"));
    hosts.at(&hosts.a, || {
        let mut queue = Queue::open(NUMBER, 4096).unwrap();
        let mut firewall = Firewall::install(TABLE, &rules(&[])).unwrap();
        let of = |port: u16| captured(UDP, "10.1.0.2", port);
        let mut changes: Vec<_> = PORTS.map(|port| (of(port), true)).collect();
        // That one was never captured.
        changes.insert(100, (of(7), false));
        let results = firewall.change(&changes);
        assert_eq!(results.len(), changes.len());
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        let source = socket("10.1.0.1:4000");
        let mut queued = || {
            let mut seen = Vec::new();
            for port in PORTS {
                source.send_to(b"x", ("10.1.0.2", port)).unwrap();
                // What waits in the queue takes room in the buffer of its socket.
                let decide = |packet: Queued<'_>| {
                    seen.push(parse(packet.bytes).unwrap().destination_port);
                    Verdict::Drop
                };
                queue.drain(64, decide).unwrap();
            }
            source.send_to(b"last", "10.1.0.2:19999").unwrap();
            assert_eq!(received(&target).0, b"last");
            seen
        };
        assert_eq!(queued(), PORTS.collect::<Vec<_>>());
        let every_second: Vec<_> = PORTS.step_by(2).map(|port| (of(port), false)).collect();
        let results = firewall.change(&every_second);
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        assert_eq!(queued(), PORTS.skip(1).step_by(2).collect::<Vec<_>>());
    });
}

pub fn packets_pass_when_nobody_has_the_queue() {
    let hosts = Hosts::new();
    let target = hosts.at(&hosts.b, || socket("10.1.0.2:5000"));
    hosts.at(&hosts.a, || {
        let queue = Queue::open(NUMBER, 16).unwrap();
        let mut firewall = Firewall::install(TABLE, &rules(&[])).unwrap();
        firewall.capture(&captured(UDP, "10.1.0.2", 5000)).unwrap();
        let source = socket("10.1.0.1:4000");
        drop(queue);
        source.send_to(b"bypass", "10.1.0.2:5000").unwrap();
        assert_eq!(received(&target).0, b"bypass");
        // A queue that is full lets them pass, too.
        let _queue = Queue::open(NUMBER, 4).unwrap();
        for _ in 0..8 {
            source.send_to(b"full", "10.1.0.2:5000").unwrap();
        }
        for _ in 0..4 {
            assert_eq!(received(&target).0, b"full");
        }
    });
}

pub fn one_process_has_the_rules_and_nothing_is_left_of_them() {
    let hosts = Hosts::new();
    hosts.at(&hosts.a, || {
        let ours = || {
            tables()
                .unwrap()
                .iter()
                .filter(|name| *name == TABLE)
                .count()
        };
        assert_eq!((table_holder(TABLE), queue_holder(NUMBER)), (None, None));
        let firewall = Firewall::install(TABLE, &rules(&[])).unwrap();
        let queue = Queue::open(NUMBER, 16).unwrap();
        let sightings = Sightings::open(NUMBER).unwrap();
        for holder in [
            table_holder(TABLE),
            queue_holder(NUMBER),
            group_holder(NUMBER),
        ] {
            let holder = holder.unwrap();
            assert_eq!(holder.pid(), Some(std::process::id()), "{holder}");
        }
        drop((queue, sightings));
        // A program that another test starts at this moment has its descriptors, too, until it is another program.
        wait_for("nobody has queue and group", || {
            let holders = (queue_holder(NUMBER), group_holder(NUMBER));
            (holders == (None, None)).then_some(())
        });
        assert_eq!(ours(), 2);
        let taken = Firewall::install(TABLE, &rules(&[]));
        assert!(matches!(taken, Err(FirewallError::Taken(_))), "{taken:?}");
        assert_eq!(ours(), 2);
        drop(firewall);
        assert_eq!(ours(), 0);
        Firewall::install(TABLE, &rules(&[])).unwrap();
        assert_eq!(ours(), 0);
    });
}
