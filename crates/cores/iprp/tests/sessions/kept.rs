//! What standby keeps of packets, what it says of that, and when it lets go.

use bumpless_base::Duration;
use bumpless_iprp::{Mode, Replication, SenderLimits, SenderSetup, SessionId};

use crate::pair::{MS, Pair, flow, ind, networks, receiver_setup, sender_setup};

fn standby(kept_packets: usize, kept_len: usize) -> Pair {
    let setup = SenderSetup {
        limits: SenderLimits {
            kept_packets,
            kept_len,
            ..sender_setup(1).limits
        },
        ..sender_setup(1)
    };
    let mut pair = Pair::of(setup, receiver_setup());
    pair.receiver.handle_monitored(pair.now, &flow());
    pair.control();
    pair.sender.set_mode(SessionId(0), Mode::Standby);
    pair
}

fn is_kept(pair: &mut Pair, payload: &[u8]) -> bool {
    let mut scratch = [0; 512];
    let now = pair.now;
    let result = pair
        .sender
        .replicate(now, &flow(), payload, &mut scratch, |_| {});
    match result {
        Replication::Copies { count: 1, kept } => kept,
        other => panic!("{other:?}"),
    }
}

/// Who sends for the core may drop a packet of which no copy has left only if it leaves again.
#[test]
fn a_packet_counts_as_kept_only_if_it_is_and_can_leave_on_another_network() {
    let mut pair = standby(2, 100);
    assert!(!is_kept(&mut pair, &[1; 101]), "too long");
    assert!(is_kept(&mut pair, &[1; 100]));
    assert!(is_kept(&mut pair, b""));
    assert!(!is_kept(&mut pair, b""), "no place left");
    assert_eq!(pair.sender.totals().not_kept, 2);

    let mut alone = standby(64, 100);
    alone.sender.set_networks(networks(1, &[2]));
    for _ in 0..3 {
        assert!(!is_kept(&mut alone, b"nowhere else to go"));
    }
    alone.sender.set_networks(networks(1, &[1, 2]));

    // The second network carries, and the first one has not answered since it came.
    assert!(!is_kept(&mut alone, b"the last one that answers"));
    assert_eq!(alone.sender.totals().not_kept, 0);
}

#[test]
fn a_packet_of_a_redundant_session_is_not_kept() {
    let mut pair = Pair::begun();
    let mut scratch = [0; 512];
    let now = pair.now;
    let result = pair
        .sender
        .replicate(now, &flow(), b"x", &mut scratch, |_| {});
    let expected = Replication::Copies {
        count: 2,
        kept: false,
    };
    assert_eq!(result, expected);
}

/// An answer tells of 64 numbers behind the highest one; what is lost where more are on their way is further behind.
#[test]
fn a_lost_packet_leaves_again_once_however_many_have_come_meanwhile() {
    for later in [1, 64, 65, 500] {
        let mut pair = standby(8, 100);
        let lost = pair.send(b"lost");
        assert_eq!(lost[0].0, ind(1));
        for _ in 0..later {
            let copies = pair.send(b"comes");
            pair.arrive(&copies[0]).unwrap();
            assert_eq!(pair.answers(), 1);
        }
        let mut again = Vec::new();
        let mut scratch = [0; 256];
        for _ in 0..1_000 {
            pair.pass(MS);
            while let Some(copy) = pair.sender.poll_transmit(pair.now, &mut scratch) {
                let copy = (copy.ind, copy.to, copy.bytes.to_vec());
                let came = pair.arrive(&copy);
                if copy.2[14..18] == lost[0].2[14..18] {
                    again.push((copy.0, came));
                }
                pair.answers();
            }
        }
        assert_eq!(again, [(ind(2), Ok(b"lost".to_vec()))], "{later} later");
        assert_eq!(pair.sender.session(SessionId(0)).unwrap().kept(), 0);
    }
}

/// Nothing arrives anywhere.
fn lose_everything(pair: &mut Pair, milliseconds: u64) -> usize {
    let mut scratch = [0; 256];
    let mut again = 0;
    for _ in 0..milliseconds {
        pair.pass(MS);
        while let Some(copy) = pair.sender.poll_transmit(pair.now, &mut scratch) {
            // A probe has no payload.
            again += usize::from(copy.bytes.len() > 80);
        }
    }
    again
}

/// I-54: each packet that is not kept longer without an answer is counted under why.
#[test]
fn what_is_given_up_is_counted_under_its_cause() {
    let counts = |pair: &Pair| {
        let totals = pair.sender.totals();
        (totals.given_up, totals.no_other_network, totals.kept_at_end)
    };
    let mut pair = standby(8, 100);
    assert!(is_kept(&mut pair, &[7; 60]));
    assert_eq!(lose_everything(&mut pair, 900), 6);
    assert_eq!(counts(&pair), (1, 0, 0));
    assert_eq!(pair.sender.session(SessionId(0)).unwrap().kept(), 0);

    let mut pair = standby(8, 100);
    assert!(is_kept(&mut pair, b"x"));
    pair.sender.set_networks(networks(1, &[1]));
    lose_everything(&mut pair, 400);
    assert_eq!(counts(&pair), (0, 1, 0));

    let mut pair = standby(8, 100);
    assert!(is_kept(&mut pair, b"x") && is_kept(&mut pair, b"y"));
    pair.sender.set_mode(SessionId(0), Mode::Redundant);
    assert_eq!(counts(&pair), (0, 0, 2));

    // What was answered is none of these.
    let mut pair = standby(8, 100);
    let copies = pair.send(b"comes");
    pair.arrive(&copies[0]).unwrap();
    assert_eq!(pair.answers(), 1);
    pair.pass(Duration::from_secs(200));
    assert!(pair.sender.session(SessionId(0)).is_none());
    assert_eq!(counts(&pair), (0, 0, 0));
}
