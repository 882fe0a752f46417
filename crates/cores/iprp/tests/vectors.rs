//! Bytes of packets and messages, written by hand; what is enciphered was computed by another library (`spec/iprp.md`).

#[path = "support/pair.rs"]
mod pair;

use bumpless_iprp::{
    Discard, FEEDBACK_LEN, MAX_MESSAGE, MAX_OVERHEAD, Origin, PeerId, is_feedback,
};
use pair::{Pair, address, flow, ind};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().filter(|c| !c.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// UDP to port 5000, to 10.1.0.2, from 10.1.0.1.
const SUBJECT: &str = "11 00 1388 04 0a010002 04 0a010001";
/// Networks 1 and 2 of host 2.
const THEIRS: &str = "02 01 04 0a010002 02 04 0a020002";
const OURS: &str = "02 01 04 0a010001 02 04 0a020001";

/// A sender that has been given a key by hand.
fn with_key() -> Pair {
    let mut pair = Pair::new();
    let mut answer = [0; MAX_MESSAGE];
    let from = Origin {
        peer: PeerId(2),
        address: address(2, 1),
    };
    let who = bytes(&format!("01 01 {SUBJECT} 00007530 00 {THEIRS}"));
    let len = pair
        .sender
        .handle_message(pair.now, from, &who, &mut answer)
        .unwrap();
    let process: Vec<u8> = answer[16..24].to_vec();
    let hex = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let acknowledgement = format!("01 02 {SUBJECT} {} 00000000 {OURS}", hex(&process));
    assert_eq!(hex(&answer[..len]), hex(&bytes(&acknowledgement)));
    let material: String = (0..32).map(|byte| format!("{byte:02x}")).collect();
    let offer = format!("01 {} 0102030405060708 00000005 {material}", hex(&process));
    let key = bytes(&format!("01 01 {SUBJECT} 00007530 {offer} {THEIRS}"));
    let len = pair
        .sender
        .handle_message(pair.now, from, &key, &mut answer)
        .unwrap();
    assert_eq!(
        answer[24..28],
        [0, 0, 0, 2],
        "the first session, of a destination port"
    );
    assert!(len > 0);
    pair
}

#[test]
fn a_receiver_says_who_it_is_in_these_bytes() {
    let mut pair = Pair::new();
    pair.receiver.handle_monitored(pair.now, &flow());
    let mut message = [0; MAX_MESSAGE];
    let outgoing = pair
        .receiver
        .poll_advertisement(pair.now, &mut message)
        .unwrap();
    assert_eq!(outgoing.to, address(1, 1));
    assert_eq!(
        message[..outgoing.len],
        bytes(&format!("01 01 {SUBJECT} 00007530 00 {THEIRS}"))
    );
    pair.receiver.withdraw();
    let outgoing = pair
        .receiver
        .poll_advertisement(pair.now, &mut message)
        .unwrap();
    assert_eq!(message[..outgoing.len], bytes(&format!("01 03 {SUBJECT}")));
}

#[test]
fn a_packet_of_a_session_has_these_bytes_on_each_network() {
    let mut pair = with_key();
    let copies = pair.send(b"hello");
    let clear = |ind: &str| format!("{ind} 25 0102030405060708 00000002 00000000");
    let first =
        clear("11") + "d6677933e4c982ae90042f3bfaed630e71036334ef313cfdae2a91847e260125f37c";
    let second =
        clear("12") + "8d91382ca44889f76a3dc89805ee0db6889139350322bd4566ae6845e09c96929beb";
    assert_eq!(copies[0], (ind(1), address(2, 1), bytes(&first)));
    assert_eq!(copies[1], (ind(2), address(2, 2), bytes(&second)));
    assert_eq!(copies[0].2.len(), 5 + MAX_OVERHEAD - 24, "IPv4");
}

#[test]
fn an_answer_with_these_bytes_is_understood_and_only_once() {
    let mut pair = with_key();
    pair.send(b"hello");
    let answer = bytes(
        "11 85 0102030405060708 00000002 00000001 1122334455667788
         356dcd8cb2cba078416164d3deaa27942f6b6e5d7b372535f966f88d9df67127",
    );
    assert!(is_feedback(&answer) && answer.len() == FEEDBACK_LEN);
    for at in 0..answer.len() {
        let mut bent = answer.clone();
        bent[at] ^= 1;
        assert!(
            pair.sender.handle_feedback(pair.now, &mut bent).is_err(),
            "byte {at}"
        );
    }
    let mut first = answer.clone();
    assert_eq!(pair.sender.handle_feedback(pair.now, &mut first), Ok(()));
    assert_eq!(
        pair.sender.handle_feedback(pair.now, &mut answer.clone()),
        Err(Discard::Duplicate)
    );
}

#[test]
fn a_packet_that_is_cut_longer_or_changed_in_any_bit_is_refused_with_a_cause() {
    let mut pair = Pair::begun();
    let copy = pair.send(b"hello").remove(0);
    for len in 0..copy.2.len() {
        let cut = (copy.0, copy.1, copy.2[..len].to_vec());
        let cause = pair.arrive(&cut).unwrap_err();
        assert!(
            matches!(cause, Discard::Truncated | Discard::Forged),
            "{len}: {cause}"
        );
    }
    let longer = (copy.0, copy.1, [&copy.2[..], &[0]].concat());
    assert_eq!(pair.arrive(&longer), Err(Discard::Forged));
    for bit in 0..copy.2.len() * 8 {
        let mut bent = copy.clone();
        bent.2[bit / 8] ^= 1 << (bit % 8);
        let cause = pair.arrive(&bent).unwrap_err();
        let right = match bit / 8 {
            0 if bit % 8 >= 4 => cause == Discard::Version,
            0 | 10.. => cause == Discard::Forged,
            1 => matches!(
                cause,
                Discard::Forged | Discard::UnknownKey | Discard::Malformed
            ),
            _ => cause == Discard::UnknownKey,
        };
        assert!(right, "bit {bit}: {cause}");
    }
    assert_eq!(
        pair.arrive(&copy),
        Ok(b"hello".to_vec()),
        "nothing of this has changed anything"
    );
}
