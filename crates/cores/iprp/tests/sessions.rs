//! Sessions as the paper has them: how they begin, what they use, when they end.

#[path = "support/pair.rs"]
mod pair;

use bumpless_base::Duration;
use bumpless_iprp::{
    Discard, EndCause, Flow, Ind, MAX_MESSAGE, MessageError, Mode, Network, Networks, Origin,
    PeerId, Receiver, ReceiverEvent, SenderEvent, SessionId, TCP,
};
use bumpless_secure::Secret;
use pair::{MS, PORT, Pair, address, flow, ind, networks, receiver_setup, sender_setup};

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
fn a_receiver_that_restarts_with_its_root_rejects_nothing() {
    let mut pair = Pair::begun();
    for _ in 0..100 {
        let copies = pair.send(b"x");
        pair.arrive(&copies[0]).unwrap();
    }
    let number = pair.receiver.key_number() + 1;
    let setup = bumpless_iprp::ReceiverSetup {
        key_number: number,
        ..receiver_setup()
    };
    pair.receiver = Receiver::new(setup, pair.now).unwrap();
    for _ in 0..100 {
        let copies = pair.send(b"y");
        assert_eq!(pair.arrive(&copies[0]), Ok(b"y".to_vec()));
        assert_eq!(pair.arrive(&copies[1]), Err(Discard::Duplicate));
    }
    assert_eq!(
        pair.control(),
        2,
        "a new process of the receiver, a new key"
    );
    let copies = pair.send(b"z");
    assert_eq!(pair.arrive(&copies[0]), Ok(b"z".to_vec()));
}

#[test]
fn a_sender_that_restarts_is_replicated_after_the_first_advertisement() {
    let mut pair = Pair::begun();
    for _ in 0..2_000 {
        let copies = pair.send(b"x");
        pair.arrive(&copies[0]).unwrap();
    }
    let late = pair.send(b"late");
    pair.sender = bumpless_iprp::Sender::new(sender_setup(2)).unwrap();
    pair.pass(MS * 1500);
    assert!(pair.send(b"plain").is_empty());
    pair.receiver.handle_monitored(pair.now, &flow());
    assert_eq!(pair.control(), 2);
    for _ in 0..10 {
        let copies = pair.send(b"y");
        assert_eq!(pair.arrive(&copies[1]), Ok(b"y".to_vec()));
    }
    assert_eq!(
        pair.arrive(&late[0]),
        Ok(b"late".to_vec()),
        "of the process before"
    );
}

#[test]
fn numbers_that_end_go_on_in_another_space_and_nothing_is_rejected() {
    let mut pair = Pair::begun();
    pair.sender.skip_to_end(SessionId(0));
    let mut last = None;
    for at in 0..10u8 {
        let copies = pair.send(&[at]);
        assert_eq!(pair.arrive(&copies[at as usize % 2]), Ok(vec![at]));
        assert_eq!(
            pair.arrive(&copies[at as usize % 2]),
            Err(Discard::Duplicate)
        );
        last = Some(copies);
    }
    assert_eq!(
        last.unwrap()[0].2[14..18],
        [0, 0, 0, 8],
        "numbers begin anew"
    );
}

#[test]
fn a_receiver_that_is_gone_is_noticed_in_a_second_and_found_again() {
    let mut pair = Pair::begun();
    let mut plain_after = None;
    for ms in 0..3_000u64 {
        pair.pass(MS);
        if pair.send(b"x").is_empty() {
            plain_after.get_or_insert(ms);
        }
    }
    let plain_after = plain_after.expect("it leaves as it is some time");
    assert!((990..=1_010).contains(&plain_after), "{plain_after} ms");
    // It is back: a question reaches it.
    let mut scratch = [0; 256];
    let copy = pair
        .sender
        .poll_transmit(pair.now, &mut scratch)
        .expect("a question");
    let probe = (copy.ind, copy.to, copy.bytes.to_vec());
    assert_eq!(pair.arrive(&probe), Err(Discard::Probe));
    assert_eq!(pair.answers(), 1);
    assert_eq!(pair.send(b"x").len(), 2);
    let events: Vec<_> = std::iter::from_fn(|| pair.sender.poll_event()).collect();
    assert!(
        matches!(
            events[..],
            [
                ..,
                SenderEvent::Suspended { .. },
                SenderEvent::Resumed { .. }
            ]
        ),
        "{events:?}"
    );
}

#[test]
fn a_receiver_that_answers_is_asked_four_times_a_second_and_never_suspended() {
    let mut pair = Pair::begun();
    for _ in 0..5_000 {
        pair.pass(MS);
        let copies = pair.send(b"x");
        assert_eq!(copies.len(), 2);
        pair.arrive(&copies[0]).unwrap();
        let _ = pair.arrive(&copies[1]);
        pair.answers();
    }
    let session = pair.sender.session(SessionId(0)).unwrap();
    for path in session.paths() {
        assert_eq!(path.departures.asked, 20, "{path:?}");
        assert_eq!(path.departures.answered, 20);
        assert!(path.round_trip.is_some());
    }
}

#[test]
fn crossed_networks_are_named_and_their_packets_still_handed_on() {
    let mut pair = Pair::begun();
    let copies = pair.send(b"x");
    let mut bytes = copies[0].2.clone();
    let from = "10.1.0.1:1001".parse().unwrap();
    let result = pair
        .receiver
        .handle_data(pair.now, Some(ind(2)), from, &mut bytes);
    assert!(result.is_ok());
    let events: Vec<_> = std::iter::from_fn(|| pair.receiver.poll_event()).collect();
    let miswired = ReceiverEvent::Miswired {
        session: SessionId(0),
        sent_on: ind(1),
        arrived_on: ind(2),
    };
    assert!(events.contains(&miswired), "{events:?}");
    assert_eq!(pair.receiver.totals().routes[1][2], 1);
    let session = pair.receiver.session(SessionId(0)).unwrap();
    assert_eq!(session.arrivals().next().unwrap().1.wrong_network, 1);
}

#[test]
fn nobody_speaks_for_the_address_of_another() {
    let mut pair = Pair::new();
    pair.receiver.handle_monitored(pair.now, &flow());
    let mut message = [0; MAX_MESSAGE];
    let mut answer = [0; MAX_MESSAGE];
    let outgoing = pair
        .receiver
        .poll_advertisement(pair.now, &mut message)
        .unwrap();
    let stranger = Origin {
        peer: PeerId(9),
        address: address(9, 1),
    };
    let bytes = &message[..outgoing.len];
    let result = pair
        .sender
        .handle_message(pair.now, stranger, bytes, &mut answer);
    assert_eq!(result, Err(MessageError::NotTheirs));
    let theirs = Origin {
        peer: PeerId(2),
        address: address(2, 1),
    };
    let len = pair
        .sender
        .handle_message(pair.now, theirs, bytes, &mut answer)
        .unwrap();
    let result = pair
        .receiver
        .handle_message(pair.now, stranger, &answer[..len]);
    assert_eq!(result, Err(MessageError::NotTheirs));
    assert!(!pair.receiver.session(SessionId(0)).unwrap().is_replicated());
}

#[test]
fn a_sender_cannot_use_its_key_for_another_source_or_port() {
    // Two senders at one receiver; the second one's packets say that they are the first one's.
    let mut pair = Pair::begun();
    let theirs = Flow {
        source: address(3, 1),
        ..flow()
    };
    for stolen in [
        theirs,
        Flow {
            destination_port: 22,
            ..flow()
        },
    ] {
        let copies = pair.send_as(&stolen, b"stolen");
        for copy in copies {
            assert_eq!(pair.arrive(&copy), Err(Discard::NotMonitored), "{stolen:?}");
        }
    }
}

#[test]
fn a_key_of_one_receiver_opens_nothing_at_another() {
    let mut pair = Pair::begun();
    let copies = pair.send(b"x");
    let other = bumpless_iprp::ReceiverSetup {
        root: Secret::new([8; 32]),
        key_number: 6,
        ..receiver_setup()
    };
    pair.receiver = Receiver::new(other, pair.now).unwrap();
    assert_eq!(pair.arrive(&copies[0]), Err(Discard::Forged));
    assert!(pair.receiver.is_empty());
}

#[test]
fn standby_sends_on_one_network_and_on_the_next_when_it_goes_silent() {
    let mut pair = Pair::begun();
    pair.sender.set_mode(SessionId(0), Mode::Standby);
    let round_trip = MS * 8;
    let half = MS * 4;
    let mut wires: Vec<(bumpless_base::Instant, pair::Copied)> = Vec::new();
    let mut answers: Vec<(bumpless_base::Instant, Vec<u8>)> = Vec::new();
    let mut delivered = Vec::new();
    let cut_at = pair.now + MS * 1_000;
    let mut sent = 0u32;
    for step in 0..4_000u64 {
        pair.pass(MS);
        let now = pair.now;
        let mut leaving = Vec::new();
        if step % 50 == 0 && step < 3_500 {
            leaving.extend(pair.send(&sent.to_be_bytes()));
            sent += 1;
        }
        let mut scratch = [0; 256];
        while let Some(copy) = pair.sender.poll_transmit(now, &mut scratch) {
            leaving.push((copy.ind, copy.to, copy.bytes.to_vec()));
        }
        // Network 1 is cut.
        leaving.retain(|copy| copy.0 == ind(2) || now < cut_at);
        wires.extend(leaving.into_iter().map(|copy| (now + half, copy)));
        let (there, rest) = wires.into_iter().partition(|(at, _)| *at <= now);
        wires = rest;
        for (_, copy) in there {
            if let Ok(payload) = pair.arrive(&copy) {
                delivered.push((now, u32::from_be_bytes(payload.try_into().unwrap())));
            }
            let mut answer = [0; bumpless_iprp::FEEDBACK_LEN];
            while let Some(feedback) = pair.receiver.poll_feedback(&mut answer) {
                if feedback.on == Some(ind(2)) || now < cut_at {
                    answers.push((now + half, answer.to_vec()));
                }
            }
        }
        let (there, rest) = answers.into_iter().partition(|(at, _)| *at <= now);
        answers = rest;
        for (_, mut answer) in there {
            let _ = pair.sender.handle_feedback(now, &mut answer);
        }
    }
    let mut numbers: Vec<_> = delivered.iter().map(|(_, number)| *number).collect();
    numbers.sort_unstable();
    assert_eq!(
        numbers,
        (0..sent).collect::<Vec<_>>(),
        "nothing lost, nothing doubled"
    );
    let gaps = delivered.windows(2).map(|pair| pair[1].0.since(pair[0].0));
    let longest = gaps.max().unwrap();
    let bound = MS * 50 + round_trip * 3 + MS * 10;
    assert!(longest <= bound, "{longest} although at most {bound}");
    let session = pair.sender.session(SessionId(0)).unwrap();
    let by_network: Vec<_> = session.paths().map(|path| path.departures.sent).collect();
    assert!(
        by_network.iter().sum::<u64>() <= u64::from(sent) + 2,
        "{by_network:?}: one copy each"
    );
    assert!(
        session
            .paths()
            .any(|path| path.ind == ind(2) && path.carries)
    );
    assert_eq!(session.kept(), 0);
}

#[test]
fn a_single_packet_that_standby_loses_arrives_over_the_next_network() {
    let mut pair = Pair::begun();
    pair.sender.set_mode(SessionId(0), Mode::Standby);
    let lost = pair.send(b"lost");
    assert_eq!(lost.len(), 1);
    pair.pass(MS);
    let next = pair.send(b"next");
    pair.pass(MS);
    pair.arrive(&next[0]).unwrap();
    assert_eq!(pair.answers(), 1);
    pair.pass(MS * 200);
    let mut scratch = [0; 256];
    let mut again = Vec::new();
    while let Some(copy) = pair.sender.poll_transmit(pair.now, &mut scratch) {
        again.push((copy.ind, copy.to, copy.bytes.to_vec()));
    }
    let again: Vec<_> = again
        .into_iter()
        .filter_map(|copy| pair.arrive(&copy).ok().map(|it| (copy.0, it)))
        .collect();
    assert_eq!(again, [(ind(2), b"lost".to_vec())]);
    let moved = std::iter::from_fn(|| pair.sender.poll_event())
        .any(|it| matches!(it, SenderEvent::Moved { .. }));
    assert!(!moved, "the network carries");
}

/// A computer that stands still for some milliseconds answers late, and its network carries all the same.
#[test]
fn an_answer_that_comes_late_moves_nothing_and_the_late_packet_has_left_again_meanwhile() {
    let mut pair = Pair::begun();
    pair.sender.set_mode(SessionId(0), Mode::Standby);
    for _ in 0..50 {
        let copies = pair.send(b"in time");
        pair.pass(MS * 10);
        pair.arrive(&copies[0]).unwrap();
        assert_eq!(pair.answers(), 1);
    }
    let late = pair.send(b"late");
    assert_eq!(late[0].0, ind(1));
    // An answer is waited for 10 ms, their variation, and 2 ms.
    pair.pass(MS * 15);
    let mut scratch = [0; 256];
    let again: Vec<_> = std::iter::from_fn(|| {
        let copy = pair.sender.poll_transmit(pair.now, &mut scratch)?;
        Some((copy.ind, copy.to, copy.bytes.to_vec()))
    })
    .collect();
    let arrived = again.iter().filter_map(|copy| pair.arrive(copy).ok());
    assert_eq!(arrived.collect::<Vec<_>>(), [b"late".to_vec()]);
    pair.pass(MS * 4);
    assert_eq!(pair.arrive(&late[0]), Err(Discard::Duplicate));
    assert!(pair.answers() > 0);
    pair.pass(MS * 100);
    while pair.sender.poll_transmit(pair.now, &mut scratch).is_some() {}
    assert_eq!(pair.send(b"next")[0].0, ind(1));
    let moved = std::iter::from_fn(|| pair.sender.poll_event())
        .any(|it| matches!(it, SenderEvent::Moved { .. }));
    assert!(!moved, "the network carries");
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

#[test]
fn of_a_peer_that_is_not_believed_any_more_nothing_opens_and_nothing_leaves_for_it() {
    let mut pair = Pair::begun();
    let copies = pair.send(b"one");
    // Others are not concerned.
    pair.sender.disown(PeerId(9));
    pair.receiver.disown(PeerId(9), &[address(9, 1)]);
    assert!(pair.arrive(&copies[0]).is_ok());
    let copies = pair.send(b"two");
    assert_eq!(copies.len(), 2);
    pair.receiver.disown(PeerId(1), &[]);
    assert_eq!(pair.arrive(&copies[0]), Err(Discard::UnknownKey));
    assert!(pair.receiver.is_empty());
    pair.sender.disown(PeerId(2));
    assert!(pair.send(b"three").is_empty());
    let ended = std::iter::from_fn(|| pair.sender.poll_event()).any(|event| {
        matches!(
            event,
            SenderEvent::Ended {
                cause: EndCause::Disowned,
                ..
            }
        )
    });
    assert!(ended);
}

#[test]
fn of_a_host_that_is_not_believed_any_more_a_receiver_that_has_restarted_opens_nothing() {
    let mut pair = Pair::begun();
    let copies = pair.send(b"one");
    let mut setup = receiver_setup();
    setup.key_number += 1;
    let restarted = Receiver::new(setup, pair.now).unwrap();
    pair.receiver = restarted;
    // Nobody has said yet whose the address is, and one packet has been opened.
    assert!(pair.arrive(&copies[0]).is_ok());
    pair.receiver.disown(PeerId(1), &[address(1, 1)]);
    let copies = pair.send(b"two");
    assert_eq!(pair.arrive(&copies[0]), Err(Discard::UnknownKey));
}
