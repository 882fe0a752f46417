//! One network carries, the others wait.

use std::collections::BTreeSet;
use std::ops::Range;

use bumpless_base::{Duration, Instant};
use bumpless_iprp::{Discard, FEEDBACK_LEN, Ind, Mode, SenderEvent, SessionId};

use crate::pair::{Copied, MS, Pair, ind, networks};

/// One way of both networks.
const HALF: Duration = Duration::from_millis(4);
/// What UDP and IP put before each datagram, bytes.
const OUTER: usize = 28;

/// What was seen of packets that left one by one.
#[derive(Default)]
struct Seen {
    sent: u32,
    /// When each arrived, and its number.
    delivered: Vec<(Instant, u32)>,
    /// Bytes that carried packets over network 2, and those of probes and answers on it.
    carried: usize,
    besides: usize,
}

/// Packets of `len` bytes for so many milliseconds, and a second more; network 1 is dead in `cut`.
fn converse(pair: &mut Pair, (len, lasts): (usize, u64), cut: Range<u64>) -> Seen {
    converse_through(pair, (len, 50, lasts), |network, step| {
        network == ind(1) && cut.contains(&step)
    })
}

/// Packets of `len` bytes every `every` milliseconds, for so many of them and a second more; `is_cut` says which network is
/// dead in which one.
fn converse_through(
    pair: &mut Pair,
    (len, every, lasts): (usize, u64, u64),
    is_cut: impl Fn(Ind, u64) -> bool,
) -> Seen {
    let mut wires: Vec<(Instant, Copied)> = Vec::new();
    let mut answers: Vec<(Instant, Vec<u8>)> = Vec::new();
    let mut seen = Seen::default();
    let mut scratch = [0; 2_048];
    for step in 0..lasts + 1_000 {
        pair.pass(MS);
        let now = pair.now;
        let mut leaving = Vec::new();
        if step % every == 0 && step < lasts {
            let mut payload = vec![0; len];
            payload[..4].copy_from_slice(&seen.sent.to_be_bytes());
            leaving.extend(pair.send(&payload));
            seen.sent += 1;
        }
        while let Some(copy) = pair.sender.poll_transmit(now, &mut scratch) {
            leaving.push((copy.ind, copy.to, copy.bytes.to_vec()));
        }
        for (_, _, bytes) in leaving.iter().filter(|copy| copy.0 == ind(2)) {
            let kind = if bytes.len() > len {
                &mut seen.carried
            } else {
                &mut seen.besides
            };
            *kind += bytes.len() + OUTER;
        }
        leaving.retain(|copy| !is_cut(copy.0, step));
        wires.extend(leaving.into_iter().map(|copy| (now + HALF, copy)));
        let (there, rest) = wires.into_iter().partition(|(at, _)| *at <= now);
        wires = rest;
        for (_, copy) in there {
            if let Ok(payload) = pair.arrive(&copy) {
                let number = u32::from_be_bytes(*payload.first_chunk().unwrap());
                seen.delivered.push((now, number));
            }
            let mut answer = [0; FEEDBACK_LEN];
            while let Some(feedback) = pair.receiver.poll_feedback(&mut answer) {
                if feedback.on == Some(ind(2)) {
                    seen.besides += FEEDBACK_LEN + OUTER;
                }
                if feedback.on.is_none_or(|network| !is_cut(network, step)) {
                    answers.push((now + HALF, answer.to_vec()));
                }
            }
        }
        let (there, rest) = answers.into_iter().partition(|(at, _)| *at <= now);
        answers = rest;
        for (_, mut answer) in there {
            let _ = pair.sender.handle_feedback(now, &mut answer);
        }
    }
    seen
}

#[test]
fn standby_sends_on_one_network_and_on_the_next_when_it_goes_silent() {
    let mut pair = Pair::begun();
    pair.sender.set_mode(SessionId(0), Mode::Standby);
    let round_trip = HALF * 2;
    let seen = converse(&mut pair, (4, 3_500), 1_000..u64::MAX);
    let mut numbers: Vec<_> = seen.delivered.iter().map(|(_, number)| *number).collect();
    numbers.sort_unstable();
    assert_eq!(
        numbers,
        (0..seen.sent).collect::<Vec<_>>(),
        "nothing lost, nothing doubled"
    );
    let gaps = seen
        .delivered
        .windows(2)
        .map(|pair| pair[1].0.since(pair[0].0));
    let longest = gaps.max().unwrap();
    let bound = MS * 50 + round_trip * 3 + MS * 10;
    assert!(longest <= bound, "{longest} although at most {bound}");
    let session = pair.sender.session(SessionId(0)).unwrap();
    let by_network: Vec<_> = session.paths().map(|path| path.departures.sent).collect();
    assert!(
        by_network.iter().sum::<u64>() <= u64::from(seen.sent) + 2,
        "{by_network:?}: one copy each"
    );
    assert!(
        session
            .paths()
            .any(|path| path.ind == ind(2) && path.carries)
    );
    assert_eq!(session.kept(), 0);
}

/// The fifth paper's measurement: 1,000 bytes every 50 ms for a minute, of which the network is dead for 22 s.
#[test]
fn the_next_network_carries_at_most_a_twentieth_more_than_what_went_over_to_it() {
    let mut pair = Pair::begun();
    pair.sender.set_mode(SessionId(0), Mode::Standby);
    let seen = converse(&mut pair, (1_000, 60_000), 22_000..44_000);
    let mut numbers: Vec<_> = seen.delivered.iter().map(|(_, number)| *number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..seen.sent).collect::<Vec<_>>());
    // From the first late packet on until four probes, half a second apart, were answered.
    let over = seen.carried / (1_000 + OUTER);
    assert!(
        (430..=500).contains(&over),
        "{over} of 440 while it was dead"
    );
    let share = 100 * seen.besides / seen.carried;
    assert!(
        share < 5,
        "{share} %: {} beside {}",
        seen.besides,
        seen.carried
    );
}

/// What leaves besides packets of programs: on which network, where to, its bytes.
fn again(pair: &mut Pair) -> Vec<Copied> {
    let (mut copies, mut scratch) = (Vec::new(), [0; 256]);
    while let Some(copy) = pair.sender.poll_transmit(pair.now, &mut scratch) {
        copies.push((copy.ind, copy.to, copy.bytes.to_vec()));
    }
    copies
}

/// The second network dies when the first one has just answered again, and carries nothing yet.
#[test]
fn a_network_that_answers_again_takes_over_at_once_when_the_other_dies() {
    let mut pair = Pair::begun();
    pair.sender.set_mode(SessionId(0), Mode::Standby);
    for _ in 0..20 {
        let copies = pair.send(b"whole");
        pair.pass(MS * 10);
        pair.arrive(&copies[0]).unwrap();
        pair.answers();
    }
    // Network 1 goes silent.
    for _ in 0..40 {
        for copy in pair.send(b"dead") {
            if copy.0 == ind(2) {
                pair.arrive(&copy).unwrap();
                pair.answers();
            }
        }
        pair.pass(MS * 10);
        for copy in again(&mut pair).iter().filter(|it| it.0 == ind(2)) {
            let _ = pair.arrive(copy);
            pair.answers();
        }
    }
    let carried = pair.send(b"carried");
    assert_eq!(carried[0].0, ind(2));
    pair.arrive(&carried[0]).unwrap();
    pair.answers();
    // It answers one probe.
    let mut probed = false;
    for _ in 0..100 {
        pair.pass(MS * 10);
        for copy in again(&mut pair).iter().filter(|it| it.0 == ind(1)) {
            if !probed {
                let _ = pair.arrive(copy);
                probed = pair.answers() > 0;
            }
        }
        if probed {
            break;
        }
        for copy in pair.send(b"meanwhile") {
            let _ = pair.arrive(&copy);
            pair.answers();
        }
    }
    assert!(probed, "a probe leaves every half second");
    // Network 2 loses what leaves from here on.
    let lost = pair.send(b"lost");
    assert_eq!(lost[0].0, ind(2));
    let mut came = Vec::new();
    for _ in 0..200 {
        pair.pass(MS);
        for copy in again(&mut pair).iter().filter(|it| it.0 == ind(1)) {
            came.extend(pair.arrive(copy).ok());
        }
    }
    assert_eq!(came, [b"lost".to_vec()]);
}

/// Both networks have been dead together for a moment, as when a computer between them stands still. Then one of them dies.
#[test]
fn after_an_outage_of_all_networks_the_death_of_one_loses_nothing() {
    let begin = 1_000;
    for every in [5, 50] {
        for end in [1_040, 1_120, 1_400, 1_700, 1_950] {
            for death in [5, 20, 60, 150, 300, 450].map(|after| end + after) {
                for dies in [ind(1), ind(2)] {
                    let mut pair = Pair::begun();
                    pair.sender.set_mode(SessionId(0), Mode::Standby);
                    let seen = converse_through(&mut pair, (100, every, 3_500), |network, step| {
                        (begin..end).contains(&step) || (network == dies && step >= death)
                    });
                    let arrived: BTreeSet<_> =
                        seen.delivered.iter().map(|(_, number)| *number).collect();
                    let since = end.div_ceil(every) as u32;
                    let lost: Vec<_> = (since..seen.sent)
                        .filter(|number| !arrived.contains(number))
                        .collect();
                    let what = format!("all until {end}, {dies:?} from {death}, every {every} ms");
                    assert_eq!(lost, [], "{what}");
                }
            }
        }
    }
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

/// Which network carries, as the sender tells.
fn carrier(pair: &Pair) -> Ind {
    let session = pair.sender.session(SessionId(0)).unwrap();
    let mut paths = session.paths();
    paths.find(|path| path.carries).unwrap().ind
}

/// It was not there, or not advertised, when the session began.
#[test]
fn a_network_that_comes_later_and_first_in_order_carries_once_it_has_answered() {
    for answers in [true, false] {
        for at_the_sender in [true, false] {
            let mut pair = Pair::begun();
            pair.sender.set_mode(SessionId(0), Mode::Standby);
            let appears = |pair: &mut Pair, named: &[u8]| {
                if at_the_sender {
                    pair.sender.set_networks(networks(1, named));
                } else {
                    for _ in 0..3 {
                        pair.receiver.set_networks(pair.now, networks(2, named));
                        pair.control();
                    }
                }
            };
            appears(&mut pair, &[2]);
            let alone = converse_through(&mut pair, (100, 50, 1_000), |_, _| false);
            assert_eq!((alone.delivered.len(), carrier(&pair)), (20, ind(2)));
            appears(&mut pair, &[1, 2]);
            let seen = converse_through(&mut pair, (100, 50, 4_000), |network, _| {
                !answers && network == ind(1)
            });
            assert_eq!(seen.delivered.len(), 80, "none is lost meanwhile");
            let expected = if answers { ind(1) } else { ind(2) };
            assert_eq!(
                carrier(&pair),
                expected,
                "it answers: {answers}, at the sender: {at_the_sender}"
            );
        }
    }
}

#[test]
fn another_order_of_sound_networks_moves_what_carries_at_once() {
    let mut pair = Pair::begun();
    pair.sender.set_mode(SessionId(0), Mode::Standby);
    converse_through(&mut pair, (100, 50, 1_000), |_, _| false);
    assert_eq!(carrier(&pair), ind(1));
    pair.sender.set_networks(networks(1, &[2, 1]));
    assert_eq!(carrier(&pair), ind(2));
}

/// I-53: four in a row, and not four in all.
#[test]
fn a_network_that_answers_every_second_question_does_not_carry_again() {
    let mut pair = Pair::begun();
    pair.sender.set_mode(SessionId(0), Mode::Standby);
    let gone = 1_000..1_500;
    let seen = converse_through(&mut pair, (100, 50, 20_000), |network, step| {
        // A probe leaves every half second.
        network == ind(1) && (gone.contains(&step) || step >= 1_500 && step / 500 % 2 == 0)
    });
    assert_eq!(carrier(&pair), ind(2));
    let moved = std::iter::from_fn(|| pair.sender.poll_event());
    let moved = moved.filter(|it| matches!(it, SenderEvent::Moved { .. }));
    assert_eq!(moved.count(), 1, "to the second network, and not back");
    assert_eq!(seen.delivered.len(), seen.sent as usize);
}

/// What the first network has left unanswered has a number of the space before.
#[test]
fn where_numbers_begin_anew_a_network_that_answers_does_not_go_silent() {
    let mut pair = Pair::begun();
    pair.sender.set_mode(SessionId(0), Mode::Standby);
    converse_through(&mut pair, (100, 50, 1_000), |_, _| false);
    assert_eq!(pair.send(b"lost").len(), 1);
    let mut scratch = [0; 256];
    pair.pass(MS * 17);
    let again = pair.sender.poll_transmit(pair.now, &mut scratch).unwrap();
    assert_eq!(again.ind, ind(2), "it is late");
    pair.sender.skip_to_end(SessionId(0), 0);
    for _ in 0..60 {
        let copies = pair.send(b"answered");
        assert_eq!(copies[0].0, ind(1));
        pair.arrive(&copies[0]).unwrap();
        pair.pass(MS);
        assert_eq!(pair.answers(), 1);
        while pair.sender.poll_transmit(pair.now, &mut scratch).is_some() {}
    }
    assert_eq!(carrier(&pair), ind(1));
}
