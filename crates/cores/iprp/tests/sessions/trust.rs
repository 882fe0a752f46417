//! Whose copies and messages count, and from when on they do not.

use bumpless_iprp::{
    Discard, EndCause, Flow, MAX_MESSAGE, MessageError, Origin, PeerId, Receiver, ReceiverEvent,
    SenderEvent, SessionId,
};
use bumpless_secure::Secret;

use crate::pair::{Pair, address, flow, ind, receiver_setup};

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
