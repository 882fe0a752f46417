//! Ends that restart or fall silent, and numbers that end.

use bumpless_iprp::{Discard, Receiver, SenderEvent, SessionId};

use crate::pair::{MS, Pair, flow, receiver_setup, sender_setup};

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
    pair.sender.skip_to_end(SessionId(0), 1);
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
