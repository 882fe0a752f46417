//! Two hosts as network namespaces of one thread, joined by two cables: what is captured, shown, given back, and what is
//! left when a process ends.

#[path = "hosts/mod.rs"]
mod hosts;

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};

use bumpless_capture::{
    Card, Firewall, FirewallError, Injector, Joins, MemberInjector, Membership, Parsed, Ports,
    Queue, Queued, Side, Sightings, Verdict, Wanted, build, group_holder, interfaces, keep_on_host,
    memberships, parse, queue_holder, table_holder, tables,
};
use hosts::{Hosts, NUMBER, TABLE, TCP, UDP, captured, received, rules, socket, wait_for, watched};

fn what_is_captured_waits_for_a_verdict_and_the_rest_goes_on() {
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

fn many_are_captured_in_one_go_and_one_that_is_refused_keeps_no_other_from_it() {
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

fn packets_pass_when_nobody_has_the_queue() {
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

fn one_process_has_the_rules_and_nothing_is_left_of_them() {
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
        assert_eq!((queue_holder(NUMBER), group_holder(NUMBER)), (None, None));
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

fn heads_of_watched_packets_are_shown_and_packets_go_on() {
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

fn a_packet_that_is_given_back_arrives_as_from_its_sender() {
    let hosts = Hosts::new();
    hosts.at(&hosts.b, || {
        let injector = Injector::open().unwrap();
        for (source, destination) in [
            ("10.9.9.9:4000", "10.1.0.2:5000"),
            ("[fd00:9::9]:4000", "[fd00:a::2]:5000"),
        ] {
            let target = socket(destination);
            let (source, destination): (SocketAddr, SocketAddr) =
                (source.parse().unwrap(), destination.parse().unwrap());
            let packet = Parsed {
                source: source.ip(),
                destination: destination.ip(),
                protocol: UDP,
                source_port: source.port(),
                destination_port: destination.port(),
                payload: &[9; 1400],
            };
            let mut bytes = [0; 1500];
            let length = build(&packet, &mut bytes).unwrap();
            injector.give(&bytes[..length], destination.ip()).unwrap();
            assert_eq!(received(&target), (vec![9; 1400], source));
        }
    });
}

fn connections_of_watched_ports_agree_on_short_segments_and_come_cut() {
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

fn a_datagram_says_on_which_network_it_came() {
    let hosts = Hosts::new();
    let card = |interface: &str, address: &str| Card {
        interface: interface.into(),
        address: address.parse().unwrap(),
    };
    let open = |number: u8| {
        let cards = [
            card("na", &format!("10.1.0.{number}")),
            card("nb", &format!("10.2.0.{number}")),
        ];
        Ports::open(&cards, 4761, false).unwrap()
    };
    let there = hosts.at(&hosts.b, || open(2));
    hosts.at(&hosts.a, || {
        let here = open(1);
        let arrived = || {
            wait_for("a datagram", || {
                let mut buffer = [0; 100];
                let places = 0..there.descriptors().count();
                places
                    .into_iter()
                    .find_map(|place| there.receive(place, &mut buffer).unwrap())
            })
        };
        here.send(0, b"A", "10.1.0.2:4761".parse().unwrap())
            .unwrap();
        let came = arrived();
        assert_eq!(
            (came.on, came.from.to_string()),
            (0, "10.1.0.1:4761".to_owned())
        );
        here.send(1, b"B", "10.2.0.2:4761".parse().unwrap())
            .unwrap();
        assert_eq!(arrived().on, 1);
        // Cables mixed up: what is for the address on A comes on B.
        hosts.ip(&hosts.a, "route replace 10.1.0.2/32 dev nb src 10.1.0.1\n");
        hosts.at(&hosts.a, || {
            let unbound = UdpSocket::bind("10.1.0.1:0").unwrap();
            unbound.send_to(b"A on B", "10.1.0.2:4761").unwrap();
        });
        let came = arrived();
        assert_eq!((came.on, came.datagram(&mut [0; 100]).len()), (1, 6));
    });
    let found = hosts.at(&hosts.a, || interfaces().unwrap());
    let names: Vec<_> = found.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["na", "nb"]);
    assert_eq!((found[0].mtu, found[0].up), (1500, true));
    let expected: [IpAddr; 2] = ["10.1.0.1".parse().unwrap(), "fd00:a::1".parse().unwrap()];
    assert_eq!(found[0].addresses, expected);
}

/// A group, the host's address and that of another one, on A.
#[derive(Clone, Copy)]
struct Group {
    group: IpAddr,
    here: IpAddr,
    other: IpAddr,
}

impl Group {
    fn new(group: &str, here: &str, other: &str) -> Self {
        let [group, here, other] = [group, here, other].map(|it| it.parse().unwrap());
        Self { group, here, other }
    }

    /// A socket of a program that is a member on A, of any source or of one.
    fn joined(&self, source: Option<IpAddr>) -> UdpSocket {
        let any = if self.group.is_ipv4() {
            "0.0.0.0"
        } else {
            "[::]"
        };
        let socket = socket(&format!("{any}:5000"));
        let on = interfaces().unwrap()[0].index;
        bumpless_net_linux::multicast::join(&socket, on, self.group, source).unwrap();
        socket
    }
}

fn a_packet_for_a_group_is_given_to_members_and_leaves_on_no_network() {
    is_given_to_members_alone(
        Group::new("239.1.2.3", "10.1.0.2", "10.1.0.1"),
        Verdict::Keep,
    );
}

fn a_packet_for_a_group_of_ipv6_is_given_to_members_and_leaves_on_no_network() {
    // What its sender does not loop back would leave with no hop to take: a packet made of it is given in its place.
    is_given_to_members_alone(
        Group::new("ff35::1:2", "fd00:a::2", "fd00:a::1"),
        Verdict::Drop,
    );
}

fn is_given_to_members_alone(it: Group, kept: Verdict) {
    let hosts = Hosts::new();
    let Group { group, here, other } = it;
    // The other host is a member, and would have what leaves.
    let elsewhere = hosts.at(&hosts.a, || it.joined(None));
    hosts.at(&hosts.b, || {
        let mut firewall =
            Firewall::install(TABLE, &rules(&[watched(UDP, Side::Destination, 5000)])).unwrap();
        // This host sends to the group itself: what it is given is not captured as if it were to leave.
        let mut queue = Queue::open(NUMBER, 16).unwrap();
        let mut sightings = Sightings::open(NUMBER).unwrap();
        firewall
            .capture(&captured(UDP, &group.to_string(), 5000))
            .unwrap();
        let on = interfaces().unwrap()[0].index;
        let injector = MemberInjector::open(&[(here, on)]).unwrap();
        let mut joins = Joins::new().unwrap();
        let told = |joins: &Joins| {
            let all = memberships().unwrap().into_iter();
            let mut ours = all.filter(|it| it.group == group && it.index == on);
            ours.next().map(|it| joins.without_own(it))
        };
        assert_eq!(told(&joins), None);
        let mut bytes = [0; 100];
        for source in [None, Some(other)] {
            let program = it.joined(source);
            let asked: Membership = told(&joins).unwrap();
            assert_eq!((asked.users, asked.takes_any()), (1, source.is_none()));
            let wanted = Wanted {
                any: source.is_none(),
                sources: [other, here]
                    .into_iter()
                    .filter(|_| source.is_some())
                    .collect(),
            };
            joins.add(on, group, &wanted).unwrap();
            assert_eq!(told(&joins), Some(asked), "its own are taken off");
            let packet = Parsed {
                source: other,
                destination: group,
                protocol: UDP,
                source_port: 4000,
                destination_port: 5000,
                payload: b"for members",
            };
            let length = build(&packet, &mut bytes).unwrap();
            // The kernel has its route for groups of IPv6 some time after the interface is up.
            wait_for("the packet is taken", || {
                injector.give(0, &bytes[..length], group).ok()
            });
            let from = SocketAddr::new(other, 4000);
            assert_eq!(received(&program), (b"for members".to_vec(), from));
            // With nobody left it goes nowhere, since this process is a member still.
            drop(program);
            injector.give(0, &bytes[..length], group).unwrap();
            assert_eq!(told(&joins).unwrap().users, 0);
            joins.keep(on, group, &Wanted::default());
            assert_eq!(told(&joins), None);
        }
        // What is sent to the group by a program here, and kept, reaches a member here alone.
        let any = Wanted {
            any: true,
            ..Wanted::default()
        };
        joins.add(on, group, &any).unwrap();
        let program = it.joined(None);
        let sender = socket(&SocketAddr::new(here, 4001).to_string());
        let send = |text: &[u8]| sender.send_to(text, (group, 5000)).unwrap();
        let route = match group {
            IpAddr::V4(_) => format!("route add {group}/32 dev na\n"),
            IpAddr::V6(_) => format!("route add multicast {group}/128 dev na table local\n"),
        };
        hosts.ip(&hosts.b, &route);
        hosts.at(&hosts.b, || ());
        send(b"kept");
        send(b"all");
        let mut seen = 0;
        wait_for("two packets", || {
            queue
                .drain(16, |packet| {
                    seen += 1;
                    let parsed = parse(packet.bytes).unwrap();
                    assert_eq!(packet.out, interfaces().unwrap()[0].index);
                    if parsed.payload != b"kept" {
                        return Verdict::Accept;
                    }
                    if kept == Verdict::Drop {
                        let made = &mut bytes[..packet.bytes.len()];
                        made.copy_from_slice(packet.bytes);
                        keep_on_host(made);
                        injector.give(0, made, group).unwrap();
                    }
                    kept
                })
                .unwrap();
            (seen == 2).then_some(())
        });
        assert_eq!(received(&program).0, b"kept");
        assert_eq!(received(&program).0, b"all");
        // Nothing of this is a sighting: packets of others are.
        let mut shown = Vec::new();
        wait_for("a sighting", || {
            let see = |it: &Parsed<'_>| shown.push(it.payload.to_vec());
            sightings.drain(16, see).unwrap();
            (!shown.is_empty()).then_some(())
        });
        assert_eq!(shown, [b"all"], "the one with hops to take");
    });
    assert_eq!(received(&elsewhere).0, b"all", "the only one that has left");
}

bumpless_testing::tests!(
    a_packet_for_a_group_is_given_to_members_and_leaves_on_no_network,
    a_packet_for_a_group_of_ipv6_is_given_to_members_and_leaves_on_no_network,
    what_is_captured_waits_for_a_verdict_and_the_rest_goes_on,
    many_are_captured_in_one_go_and_one_that_is_refused_keeps_no_other_from_it,
    packets_pass_when_nobody_has_the_queue,
    one_process_has_the_rules_and_nothing_is_left_of_them,
    heads_of_watched_packets_are_shown_and_packets_go_on,
    a_packet_that_is_given_back_arrives_as_from_its_sender,
    connections_of_watched_ports_agree_on_short_segments_and_come_cut,
    a_datagram_says_on_which_network_it_came,
);
