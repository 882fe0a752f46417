//! What is watched: the heads of packets, and the segments of connections.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};

use crate::hosts::{
    Hosts, NUMBER, TABLE, TCP, UDP, captured, received, rules, socket, wait_for, watched,
};
use bumpless_capture::{Firewall, Parsed, Queue, Queued, Side, Sightings, Verdict, build, parse};

pub fn heads_of_watched_packets_are_shown_and_packets_go_on() {
    let hosts = Hosts::new();
    hosts.at(&hosts.b, || {
        let mut sightings = Sightings::open(NUMBER).unwrap();
        let both = [
            watched(UDP, Side::Destination, 5000),
            watched(UDP, Side::Source, 4001),
        ];
        let mut firewall = Firewall::install(TABLE, &rules(&both)).unwrap();
        let target = socket("10.1.0.2:5000");
        let other = socket("10.1.0.2:5001");
        hosts.at(&hosts.a, || {
            let send = |port: u16, to: &str| {
                let source = socket(&format!("10.1.0.1:{port}"));
                source.send_to(&[7; 1000], to).unwrap();
            };
            send(4000, "10.1.0.2:5000");
            send(4000, "10.1.0.2:5001");
            send(4001, "10.1.0.2:5001");
        });
        hosts.at(&hosts.b, || ());
        assert_eq!(received(&target).0.len(), 1000);
        assert_eq!(received(&other).0.len(), 1000);
        let mut seen = Vec::new();
        let mut look = |count: usize, sightings: &mut Sightings| {
            wait_for("sightings", || {
                let see = |it: &Parsed<'_>| seen.push((it.source_port, it.destination_port));
                sightings.drain(16, see).unwrap();
                (seen.len() >= count).then_some(())
            });
            std::mem::take(&mut seen)
        };
        assert_eq!(look(2, &mut sightings), [(4000, 5000), (4001, 5001)]);
        // What the host sends to itself is not shown, and neither is what is watched no more.
        let own = socket("10.1.0.2:4001");
        own.send_to(b"own", "10.1.0.2:5000").unwrap();
        firewall
            .replace(&rules(&[watched(UDP, Side::Destination, 5001)]))
            .unwrap();
        hosts.at(&hosts.a, || {
            let source = socket("10.1.0.1:4000");
            source.send_to(b"no", "10.1.0.2:5000").unwrap();
            source.send_to(b"yes", "10.1.0.2:5001").unwrap();
        });
        assert_eq!(look(1, &mut sightings), [(4000, 5001)]);
        hosts.at(&hosts.b, || ());
    });
}

pub fn connections_of_watched_ports_agree_on_short_segments_and_come_cut() {
    let hosts = Hosts::new();
    for (here, there, mss) in [
        ("10.1.0.1", "10.1.0.2", 1300),
        ("fd00:a::1", "fd00:a::2", 1280),
    ] {
        let there = SocketAddr::new(there.parse().unwrap(), 5000);
        let clamp = hosts.at(&hosts.b, || {
            let rules = rules(&[watched(TCP, Side::Destination, 5000)]);
            Firewall::install(TABLE, &rules).unwrap()
        });
        let listener = hosts.at(&hosts.b, || TcpListener::bind(there).unwrap());
        let reading = std::thread::spawn(move || {
            let mut all = Vec::new();
            listener.accept().unwrap().0.read_to_end(&mut all).unwrap();
            all
        });
        hosts.at(&hosts.a, || {
            let mut queue = Queue::open(NUMBER, 4096).unwrap();
            let mut firewall = Firewall::install(TABLE, &rules(&[])).unwrap();
            let destination = there.ip().to_string();
            firewall
                .capture(&captured(TCP, &destination, 5000))
                .unwrap();
            let sent: Vec<u8> = (0..200_000u32).map(|i| i as u8).collect();
            let text = sent.clone();
            let writing = std::thread::spawn(move || {
                let mut stream = TcpStream::connect(there).unwrap();
                stream.write_all(&text).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
            });
            let mut longest = 0;
            wait_for("the whole stream", || {
                let decide = |Queued { bytes: packet, .. }: Queued<'_>| {
                    let parsed = parse(packet).unwrap();
                    assert_eq!(parsed.source, here.parse::<IpAddr>().unwrap());
                    // The checksum is the one that the receiver expects.
                    let mut again = vec![0; packet.len()];
                    build(&parsed, &mut again).unwrap();
                    let header = if parsed.source.is_ipv4() { 20 } else { 40 };
                    assert_eq!(again[header..], packet[header..]);
                    longest = longest.max(packet.len() - header - 20);
                    Verdict::Accept
                };
                queue.drain(64, decide).unwrap();
                reading.is_finished().then_some(())
            });
            writing.join().unwrap();
            assert!(longest > 1000 && longest <= mss, "{longest}");
            assert_eq!(reading.join().unwrap(), sent);
        });
        drop(clamp);
    }
}
