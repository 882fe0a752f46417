//! What comes from another host, and is given to this one.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use crate::hosts::{Hosts, UDP, received, socket, wait_for};
use bumpless_capture::{Card, Injector, Parsed, Ports, build, interfaces};

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
