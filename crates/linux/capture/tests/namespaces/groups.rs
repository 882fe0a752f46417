//! Packets for groups.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use crate::hosts::{
    Hosts, NUMBER, TABLE, UDP, captured, received, rules, socket, wait_for, watched,
};
use bumpless_capture::{
    Firewall, Joins, MemberInjector, Membership, Parsed, Queue, Side, Sightings, Verdict, Wanted,
    build, interfaces, keep_on_host, memberships, parse,
};

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

pub fn a_packet_for_a_group_is_given_to_members_and_leaves_on_no_network() {
    is_given_to_members_alone(
        Group::new("239.1.2.3", "10.1.0.2", "10.1.0.1"),
        Verdict::Keep,
    );
}

pub fn a_packet_for_a_group_of_ipv6_is_given_to_members_and_leaves_on_no_network() {
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
