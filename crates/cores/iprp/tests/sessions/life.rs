//! How sessions begin, which networks and keys they use, when they end.

use bumpless_base::Duration;
use bumpless_iprp::{
    Discard, EndCause, Flow, Ind, Mode, Network, Networks, ReceiverEvent, SenderEvent, SessionId,
    TCP,
};

use crate::pair::{MS, PORT, Pair, address, flow, ind, networks, receiver_setup, sender_setup};

const T_CAP: Duration = Duration::from_secs(30);

fn usable(pair: &Pair) -> Vec<Ind> {
    let session = pair.sender.session(SessionId(0)).unwrap();
    session
        .paths()
        .filter(|path| path.usable)
        .map(|path| path.ind)
        .collect()
}

#[test]
fn a_plain_packet_begins_a_session_and_the_first_copy_is_handed_on() {
    let mut pair = Pair::new();
    assert!(pair.send(b"before").is_empty(), "nothing is replicated yet");
    pair.receiver.handle_monitored(pair.now, &flow());
    // Here I am; who are you; your key.
    assert_eq!(pair.control(), 2);
    let copies = pair.send(b"one");
    assert_eq!(copies.len(), 2);
    assert_eq!((copies[0].0, copies[0].1), (ind(1), address(2, 1)));
    assert_eq!((copies[1].0, copies[1].1), (ind(2), address(2, 2)));
    assert_eq!(pair.arrive(&copies[1]), Ok(b"one".to_vec()));
    assert_eq!(pair.arrive(&copies[0]), Err(Discard::Duplicate));
    let session = pair.receiver.session(SessionId(0)).unwrap();
    let arrivals: Vec<_> = session
        .arrivals()
        .map(|(ind, it)| (ind.get(), it.first, it.duplicate))
        .collect();
    assert_eq!(arrivals, [(2, 1, 0), (1, 0, 1)]);
}

#[test]
fn another_connection_to_the_port_is_replicated_from_its_first_packet() {
    let mut pair = Pair::begun();
    let other = Flow {
        source_port: 1,
        ..flow()
    };
    let copies = pair.send_as(&other, b"first");
    assert_eq!(copies.len(), 2);
    assert!(pair.arrive(&copies[0]).is_ok());
    for outside in [
        Flow {
            destination_port: PORT + 1,
            ..other
        },
        Flow {
            protocol: TCP,
            ..other
        },
        Flow {
            destination: address(3, 1),
            ..other
        },
    ] {
        assert!(pair.send_as(&outside, b"0123").is_empty(), "{outside:?}");
    }
}

#[test]
fn a_network_is_added_at_once_and_removed_after_three_advertisements() {
    let mut pair = Pair::of(
        bumpless_iprp::SenderSetup {
            networks: networks(1, &[1, 2, 3]),
            ..sender_setup(1)
        },
        receiver_setup(),
    );
    pair.receiver.handle_monitored(pair.now, &flow());
    pair.control();
    assert_eq!(usable(&pair), [ind(1), ind(2)]);
    pair.receiver
        .set_networks(pair.now, networks(2, &[1, 2, 3]));
    pair.control();
    assert_eq!(usable(&pair), [ind(1), ind(2), ind(3)]);
    for round in 0..3 {
        assert_eq!(usable(&pair), [ind(1), ind(2), ind(3)], "round {round}");
        pair.receiver.set_networks(pair.now, networks(2, &[1, 3]));
        pair.control();
    }
    assert_eq!(usable(&pair), [ind(1), ind(3)]);
    let removed = std::iter::from_fn(|| pair.sender.poll_event());
    let removed: Vec<_> = removed
        .filter(|it| matches!(it, SenderEvent::NetworkRemoved { .. }))
        .collect();
    assert_eq!(removed.len(), 1, "{removed:?}");
}

/// Of a host with both families on a network, the first address is advertised, and that may become another one.
#[test]
fn a_network_is_used_when_and_as_long_as_its_address_is_of_a_family_that_both_have() {
    let of_family = |ipv6: bool| {
        let second = match ipv6 {
            true => "fd00::2".parse().unwrap(),
            false => address(2, 2),
        };
        let first = address(2, 1);
        let both = [(1, first), (2, second)].map(|(number, address)| Network {
            ind: ind(number),
            address,
        });
        Networks::new(&both).unwrap()
    };
    for begins_with_ipv6 in [true, false] {
        for mode in [Mode::Redundant, Mode::Standby] {
            let mut pair = Pair::of(
                sender_setup(1),
                bumpless_iprp::ReceiverSetup {
                    networks: of_family(begins_with_ipv6),
                    ..receiver_setup()
                },
            );
            pair.receiver.handle_monitored(pair.now, &flow());
            pair.control();
            pair.sender.set_mode(SessionId(0), mode);
            let mut told = Vec::new();
            for ipv6 in [begins_with_ipv6, !begins_with_ipv6, begins_with_ipv6] {
                pair.receiver.set_networks(pair.now, of_family(ipv6));
                pair.control();
                let both = [ind(1), ind(2)];
                assert_eq!(usable(&pair), both[..if ipv6 { 1 } else { 2 }]);
                let on: Vec<_> = pair.send(b"x").iter().map(|it| (it.0, it.1)).collect();
                let expected = [(ind(1), address(2, 1)), (ind(2), address(2, 2))];
                let copies = if ipv6 || mode == Mode::Standby { 1 } else { 2 };
                assert_eq!(on, expected[..copies]);
                let events = std::iter::from_fn(|| pair.sender.poll_event());
                told.extend(events.filter_map(|it| match it {
                    SenderEvent::NetworkAdded { ind: it, .. } if it == ind(2) => Some(true),
                    SenderEvent::NetworkRemoved { ind: it, .. } if it == ind(2) => Some(false),
                    _ => None,
                }));
            }
            let expected: &[bool] = match begins_with_ipv6 {
                true => &[true, false],
                false => &[true, false, true],
            };
            assert_eq!(told, expected);
        }
    }
}

#[test]
fn one_advertisement_that_names_a_network_again_keeps_it() {
    let mut pair = Pair::begun();
    for _ in 0..4 {
        for named in [&[1][..], &[1], &[1, 2]] {
            pair.receiver.set_networks(pair.now, networks(2, named));
            pair.control();
            assert_eq!(usable(&pair), [ind(1), ind(2)]);
        }
    }
}

#[test]
fn a_network_that_the_sender_loses_and_finds_again_is_used_at_once() {
    let mut pair = Pair::begun();
    pair.sender.set_networks(networks(1, &[2]));
    assert_eq!(pair.send(b"x").len(), 1);
    pair.sender.set_networks(networks(1, &[1, 2]));
    assert_eq!(pair.send(b"x").len(), 2);
    pair.sender.set_networks(Networks::default());
    assert!(pair.send(b"x").is_empty(), "it leaves as it is");
}

#[test]
fn without_a_common_network_no_session_begins_and_the_receiver_learns_it() {
    let mut pair = Pair::of(
        bumpless_iprp::SenderSetup {
            networks: networks(1, &[4, 5]),
            ..sender_setup(1)
        },
        receiver_setup(),
    );
    pair.receiver.handle_monitored(pair.now, &flow());
    pair.control();
    assert!(!pair.sender.is_replicated(&flow()));
    let events: Vec<_> = std::iter::from_fn(|| pair.receiver.poll_event()).collect();
    let told = events
        .iter()
        .any(|it| matches!(it, ReceiverEvent::NoCommonNetwork { .. }));
    assert!(told, "{events:?}");
}

#[test]
fn a_session_ends_three_periods_after_the_last_advertisement() {
    let mut pair = Pair::begun();
    pair.pass(T_CAP * 3 - MS);
    assert!(pair.sender.is_replicated(&flow()));
    pair.pass(MS);
    assert!(!pair.sender.is_replicated(&flow()));
    let ended = std::iter::from_fn(|| pair.sender.poll_event()).last();
    assert!(matches!(
        ended,
        Some(SenderEvent::Ended {
            cause: EndCause::NotAdvertised,
            ..
        })
    ));
}

#[test]
fn a_sender_that_sends_is_advertised_to_every_period_and_a_silent_one_is_not() {
    let mut pair = Pair::begun();
    let mut advertised = 0;
    for _ in 0..120 {
        pair.pass(Duration::from_secs(1));
        let copies = pair.send(b"x");
        assert_eq!(copies.len(), 2);
        pair.arrive(&copies[0]).unwrap();
        pair.answers();
        advertised += pair.control();
    }
    assert_eq!(advertised, 4);
    pair.pass(Duration::from_secs(11));
    let mut later = 0;
    for _ in 0..60 {
        pair.pass(Duration::from_secs(1));
        later += pair.control();
    }
    assert_eq!(later, 0, "nothing has come for more than 10 s");
}

#[test]
fn what_was_sealed_before_a_key_changed_is_accepted_until_the_fourth_period() {
    let mut pair = Pair::begun();
    let before = pair.send(b"before");
    let hour = Duration::from_secs(3600);
    let start = pair.now;
    loop {
        pair.pass(Duration::from_secs(5));
        if pair.receiver.key_number() != 5 {
            break;
        }
        let copies = pair.send(b"x");
        pair.arrive(&copies[0]).unwrap();
        pair.answers();
        pair.control();
    }
    assert!(pair.now.since(start) >= hour);
    let old = pair.send(b"with the old key");
    assert_eq!(
        pair.arrive(&before[0]),
        Ok(b"before".to_vec()),
        "720 packets later"
    );
    pair.pass(T_CAP);
    assert_eq!(pair.arrive(&old[0]), Ok(b"with the old key".to_vec()));
    pair.control();
    let new = pair.send(b"with the new key");
    assert_eq!(pair.arrive(&new[1]), Ok(b"with the new key".to_vec()));
    assert_ne!(old[0].2[1] & 15, new[0].2[1] & 15);
    pair.pass(T_CAP * 3 + MS);
    assert_eq!(pair.arrive(&old[1]), Err(Discard::UnknownKey));
}

#[test]
fn a_withdrawn_session_ends_at_once_and_packets_leave_as_they_are() {
    let mut pair = Pair::begun();
    pair.receiver.set_monitored(&[]).unwrap();
    assert_eq!(pair.control(), 1);
    assert!(!pair.sender.is_replicated(&flow()));
    assert!(pair.receiver.is_empty());
}

#[test]
fn a_receiver_that_stops_takes_what_is_on_its_way_and_asks_for_nothing_more() {
    let mut pair = Pair::begun();
    let (early, late) = (pair.send(b"early"), pair.send(b"late"));
    pair.arrive(&early[0]).unwrap();
    pair.receiver.withdraw();
    assert_eq!(pair.control(), 1, "the withdrawal");
    assert!(!pair.sender.is_replicated(&flow()));
    pair.pass(MS * 100);
    assert_eq!(pair.arrive(&late[1]), Ok(b"late".to_vec()));
    for again in [&early[1], &late[0]] {
        assert_eq!(pair.arrive(again), Err(Discard::Duplicate));
    }
    // Neither does what leaves as it is have it ask again.
    pair.receiver.handle_monitored(pair.now, &flow());
    assert_eq!(pair.control(), 0);
    assert!(!pair.sender.is_replicated(&flow()));
    let events = std::iter::from_fn(|| pair.receiver.poll_event());
    let ends = events.filter(|it| matches!(it, ReceiverEvent::Ended { .. }));
    assert_eq!(ends.count(), 1);
}

#[test]
fn networks_that_cannot_stand_beside_each_other_are_refused() {
    let network = |number, host| Network {
        ind: ind(number),
        address: address(host, number),
    };
    let twice = Networks::new(&[network(1, 1), network(1, 2)]);
    assert_eq!(twice, Err(bumpless_iprp::NetworksError::SameInd(ind(1))));
    let many: Vec<_> = (0..9).map(|number| network(number, 1)).collect();
    assert_eq!(
        Networks::new(&many),
        Err(bumpless_iprp::NetworksError::TooMany)
    );
}
