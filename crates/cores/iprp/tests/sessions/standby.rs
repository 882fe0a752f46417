//! One network carries, the others wait.

use bumpless_iprp::{Discard, Mode, SenderEvent, SessionId};

use crate::pair::{MS, Pair, ind};

#[test]
fn standby_sends_on_one_network_and_on_the_next_when_it_goes_silent() {
    let mut pair = Pair::begun();
    pair.sender.set_mode(SessionId(0), Mode::Standby);
    let round_trip = MS * 8;
    let half = MS * 4;
    let mut wires: Vec<(bumpless_base::Instant, crate::pair::Copied)> = Vec::new();
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
