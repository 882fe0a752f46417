//! What comes from another host, and is given to this one.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use crate::hosts::{Hosts, UDP, received, socket, wait_for};
use bumpless_capture::{Card, Injector, OwnAddresses, Parsed, Ports, build, interfaces};

pub fn a_packet_that_is_given_back_arrives_as_from_its_sender() {
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

pub fn a_datagram_says_on_which_network_it_came() {
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
    assert_eq!(found[0].broadcasts, [Ipv4Addr::new(10, 1, 0, 255)]);
    // One address alone has none; one was given its own.
    hosts.ip(
        &hosts.a,
        "address add 10.7.0.1/31 dev na\naddress add 10.8.0.1/30 broadcast 10.8.0.9 dev na\n",
    );
    let found = hosts.at(&hosts.a, || interfaces().unwrap());
    let more = [[10, 1, 0, 255], [10, 8, 0, 3], [10, 8, 0, 9]];
    assert_eq!(found[0].broadcasts, more.map(Ipv4Addr::from));
}

/// Numbers of datagrams that wait at any socket, in order.
fn waiting(ports: &Ports) -> Vec<u8> {
    let mut buffer = [0; 100];
    let mut found = Vec::new();
    for place in 0..ports.descriptors().count() {
        while let Some(arrived) = ports.receive(place, &mut buffer).unwrap() {
            found.push(arrived.datagram(&mut buffer)[0]);
        }
    }
    found.sort_unstable();
    found
}

pub fn what_comes_on_a_network_that_stays_is_not_lost_when_another_one_goes_or_comes() {
    let hosts = Hosts::new();
    let card = |interface: &str, address: &str| Card {
        interface: interface.into(),
        address: address.parse().unwrap(),
    };
    let both = [card("na", "10.1.0.2"), card("nb", "10.2.0.2")];
    let only = &both[..1];
    // Many senders: of two sockets on one address the kernel would choose one for each.
    let senders: Vec<_> = hosts.at(&hosts.a, || {
        let open = |_| UdpSocket::bind("10.1.0.1:0").unwrap();
        (0..20).map(open).collect()
    });
    let send = |first: u8| {
        for (number, socket) in senders.iter().enumerate() {
            let bytes = [first + number as u8];
            socket.send_to(&bytes, "10.1.0.2:4761").unwrap();
        }
    };
    for groups in [false, true] {
        let mut ports = hosts.at(&hosts.b, || Ports::open(&both, 4761, groups).unwrap());
        for cards in [only, &both, &both] {
            send(0);
            let next = hosts.at(&hosts.b, || {
                Ports::open_beside(cards, 4761, groups, Some(&ports)).unwrap()
            });
            assert!(next.is_among(0, &ports) && ports.is_among(0, &next));
            // Both there are for a while.
            send(20);
            ports = next;
            send(40);
            let all: Vec<u8> = (0..60).collect();
            let mut come = Vec::new();
            wait_for("all of them", || {
                come.extend(waiting(&ports));
                (come.len() >= all.len()).then_some(())
            });
            come.sort_unstable();
            assert_eq!(come, all, "{} networks", cards.len());
        }
    }
    // An interface that was made anew is another one: what is bound to the former one would hear nothing.
    let ports = hosts.at(&hosts.b, || Ports::open(&both, 4761, false).unwrap());
    hosts.ip(
        &hosts.b,
        "link delete nb\nlink add nb type veth peer name nobody\naddress add 10.2.0.2/24 dev nb\nlink set nb up\n",
    );
    let next = hosts.at(&hosts.b, || {
        Ports::open_beside(&both, 4761, false, Some(&ports)).unwrap()
    });
    let kept: Vec<_> = (0..4).map(|place| next.is_among(place, &ports)).collect();
    assert_eq!(kept, [true, false, true, false]);
}

pub fn addresses_of_the_host_are_told_from_others_and_from_those_that_it_has_lost() {
    let hosts = Hosts::new();
    hosts.ip(
        &hosts.a,
        "address add 10.1.0.77/24 dev na\naddress add 10.5.0.1/32 dev lo\n\
         route add local 10.6.0.0/24 dev lo\nroute add default via 10.1.0.2\n\
         route add unreachable 10.8.0.0/24\n",
    );
    hosts.at(&hosts.a, || {
        let mut own = OwnAddresses::open().unwrap();
        let mut has = |address: &str| own.has(address.parse().unwrap()).unwrap();
        let here = [
            "10.1.0.1",
            "10.1.0.77",
            "10.2.0.1",
            "10.5.0.1",
            "10.6.0.9",
            "127.0.0.1",
        ];
        let here = here.into_iter().chain(["fd00:a::1", "::1"]);
        here.for_each(|address| assert!(has(address), "{address}"));
        let there = [
            "10.1.0.2",
            "10.1.0.3",
            "10.2.0.2",
            "10.8.0.1",
            "10.9.0.1",
            "10.1.0.255",
        ];
        let there = there
            .into_iter()
            .chain(["fd00:a::2", "fd00:b::1", "239.1.2.3"]);
        there.for_each(|address| assert!(!has(address), "{address}"));
        hosts.ip(
            &hosts.a,
            "address del 10.1.0.77/24 dev na\naddress del fd00:a::1/64 dev na\n",
        );
        assert!(has("10.1.0.1") && !has("10.1.0.77"));
        // The kernel may take the route away a little later.
        wait_for("the other address", || (!has("fd00:a::1")).then_some(()));
    });
}
