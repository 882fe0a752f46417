//! What a network's protection passes on, and under what it counts the rest.

use std::net::SocketAddr;
use std::sync::Arc;

use bumpless_base::{Counter, Duration, Instant, LinkId, NodeId, PeerId};
use bumpless_management::SECRETS_MAX;
use bumpless_net_linux::Segment;
use bumpless_node::data_plane::addresses::{Addresses, Correspondent};
use bumpless_node::data_plane::protection::{BURST, Mismatch, Protection, Sender, Unsealed, Use};
use bumpless_secure::{Keyring, RingSuite, Secret};

const NOW: Instant = Instant::from_nanos(1_000_000_000);
const LINK: LinkId = LinkId(0);
const PARTNER: Correspondent = Correspondent::Partner(PeerId(0));
const WITNESS: Correspondent = Correspondent::Reference(0);
const LONGEST: u16 = 1433;

type Protected = Protection<RingSuite>;

fn keys(secrets: &[u8]) -> Arc<Keyring<RingSuite>> {
    let secrets = secrets.iter().map(|&byte| Secret::new([byte; 32]));
    Arc::new(Keyring::new(secrets.collect()).unwrap())
}

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, last], 4700))
}

/// What protects messages of `node` of a pair, with its partner and a witness on the network.
fn protection(node: u8, secrets: &[u8]) -> Protected {
    started(node, secrets, 10 + u64::from(node))
}

/// As [`protection`], of the process with this origin.
fn started(node: u8, secrets: &[u8], origin: u64) -> Protected {
    let addresses = Addresses {
        nodes: vec![NodeId(1 - node)],
        partners: vec![Some(address(2 - node))],
        references: vec![Some(address(9)), None],
    };
    let sender = Sender {
        node: NodeId(node),
        link: LINK,
        origin,
    };
    Protection::sealed(&keys(secrets), sender, &addresses, LONGEST, NOW)
}

fn sealed(from: &mut Protected, messages: &[Segment<'_>]) -> Vec<Vec<u8>> {
    let sealed = from.seal(PARTNER, messages).unwrap().expect("protected");
    assert_eq!(sealed.count(), messages.len());
    let mut room = [Segment::default(); BURST];
    let datagrams = sealed.datagrams(&mut room);
    let whole = |datagram: &Segment<'_>| [datagram.header, datagram.payload].concat();
    datagrams.iter().map(whole).collect()
}

fn one(from: &mut Protected, message: &[u8]) -> Vec<u8> {
    let segment = Segment {
        header: message,
        payload: &[],
    };
    sealed(from, &[segment]).remove(0)
}

fn opened(by: &mut Protected, from: Correspondent, datagram: &[u8]) -> Result<Vec<u8>, Counter> {
    let mut datagram = datagram.to_vec();
    by.open(from, &mut datagram, NOW).map(<[u8]>::to_vec)
}

#[test]
fn a_burst_of_any_messages_comes_out_as_it_went_in() {
    let (mut left, mut right) = (protection(0, &[1]), protection(1, &[1]));
    let state = vec![0x5A; LONGEST.into()];
    let messages: Vec<Segment<'_>> = (0..BURST)
        .map(|at| Segment {
            header: &state[..at],
            payload: &state[at..LONGEST as usize - at * at % 7 * 100],
        })
        .collect();
    let datagrams = sealed(&mut left, &messages);
    for (datagram, message) in datagrams.iter().zip(&messages) {
        let shows = |part: &[u8]| part == [0x5A; 8];
        assert!(!datagram.windows(8).any(shows));
        let whole = [message.header, message.payload].concat();
        assert_eq!(opened(&mut right, PARTNER, datagram), Ok(whole));
        let again = opened(&mut right, PARTNER, datagram);
        assert_eq!(again, Err(Counter::DiscardReplayed));
    }
    let empty = one(&mut left, b"");
    assert_eq!(opened(&mut right, PARTNER, &empty), Ok(vec![]));
}

#[test]
fn what_has_no_room_is_not_sent_at_all() {
    let mut left = protection(0, &[1]);
    let long = vec![0; usize::from(LONGEST) + 1];
    let message = Segment {
        header: &long,
        payload: &[],
    };
    assert!(left.seal(PARTNER, &[message]).is_err());
    let nobody = Correspondent::Partner(PeerId(1));
    assert!(left.seal(nobody, &[Segment::default()]).is_err());
}

#[test]
fn a_refused_datagram_is_counted_under_its_cause() {
    let (mut left, mut right) = (protection(0, &[1]), protection(1, &[1]));
    let whole = one(&mut left, b"message");
    let cut = &whole[..whole.len() - 1];
    let mut changed = whole.clone();
    changed[25] ^= 1;
    let elsewhere = Correspondent::Reference(1);
    let to_witness = {
        let message = [Segment::default()];
        let sealed = left.seal(WITNESS, &message).unwrap().unwrap();
        let mut room = [Segment::default()];
        sealed.datagrams(&mut room)[0].header.to_vec()
    };
    let cases: [(Correspondent, &[u8], Counter); 7] = [
        (PARTNER, cut, Counter::DiscardForged),
        (PARTNER, &changed, Counter::DiscardForged),
        (PARTNER, &whole[..30], Counter::DiscardTruncated),
        (PARTNER, &[0x77; 60], Counter::DiscardUnknownType),
        (PARTNER, &to_witness, Counter::DiscardMisdirected),
        // The partner's address is not the witness's.
        (WITNESS, &whole, Counter::DiscardMisdirected),
        (elsewhere, &whole, Counter::DiscardUnknownSource),
    ];
    for (from, datagram, counter) in cases {
        assert_eq!(opened(&mut right, from, datagram), Err(counter));
        assert_eq!(right.mismatch(PeerId(0)), None);
    }
    // None of them has spoilt anything.
    assert!(opened(&mut right, PARTNER, &whole).is_ok());
}

/// An acknowledgement without blocks, version 1.
const PLAIN: [u8; 9] = [0x10, 0x01, 0, 1, 0, 5, 0, 9, 0];

#[test]
fn a_partner_with_other_security_is_told_apart_from_a_silent_one() {
    let (mut left, mut right) = (protection(0, &[1]), protection(1, &[1]));
    let mut open: Protected = Protection::none(1);
    let mut stranger = protection(0, &[2]);
    let known = |protection: &Protected| protection.mismatch(PeerId(0));

    let plain = opened(&mut right, PARTNER, &PLAIN);
    assert_eq!(plain, Err(Counter::DiscardUnprotected));
    assert_eq!(known(&right), Some(Mismatch::Unprotected));
    let foreign = one(&mut stranger, b"");
    let refused = opened(&mut right, PARTNER, &foreign);
    assert_eq!(refused, Err(Counter::DiscardUnknownKey));
    let id = keys(&[2]).sealing();
    assert_eq!(known(&right), Some(Mismatch::UnknownKey(id)));
    // What somebody else sends says nothing of the partner.
    let right_one = one(&mut left, b"");
    assert!(opened(&mut right, PARTNER, &right_one).is_ok());
    assert_eq!(known(&right), None);
    assert!(opened(&mut right, WITNESS, &PLAIN).is_err());
    assert_eq!(known(&right), None);

    let refused = opened(&mut open, PARTNER, &right_one);
    assert_eq!(refused, Err(Counter::DiscardProtected));
    assert_eq!(known(&open), Some(Mismatch::Protected));
    let passed = opened(&mut open, PARTNER, &PLAIN);
    assert_eq!(passed.as_deref(), Ok(&PLAIN[..]));
    assert_eq!(known(&open), None);
    assert!(open.seal(PARTNER, &[Segment::default()]).unwrap().is_none());
}

#[test]
fn a_partner_that_has_gone_is_no_longer_one_with_other_security() {
    let mut right = protection(1, &[1]);
    assert!(opened(&mut right, PARTNER, &PLAIN).is_err());
    let after = |ms| NOW + Duration::from_millis(ms);
    right.forget_mismatches(after(1_999));
    let known = right.mismatch(PeerId(0));
    assert_eq!(known, Some(Mismatch::Unprotected));
    right.forget_mismatches(after(2_000));
    assert_eq!(right.mismatch(PeerId(0)), None);
}

#[test]
fn a_confirmed_partner_is_heard_whatever_is_repeated_of_its_earlier_processes() {
    let (mut left, mut right) = (protection(0, &[1]), protection(1, &[1]));
    let first = one(&mut left, b"present");
    assert!(opened(&mut right, PARTNER, &first).is_ok());
    right.confirm(PARTNER);
    for origin in 100..120 {
        let old = one(&mut started(0, &[1], origin), b"old");
        assert!(opened(&mut right, PARTNER, &old).is_ok());
    }
    // Forgotten, it would open again.
    let again = opened(&mut right, PARTNER, &first);
    assert_eq!(again, Err(Counter::DiscardReplayed));
    let next = one(&mut left, b"next");
    assert!(opened(&mut right, PARTNER, &next).is_ok());
}

#[test]
fn a_new_key_comes_in_three_steps_without_a_message_lost() {
    // By node: what each has, the one that seals first.
    let steps: [[&[u8]; 2]; 6] = [
        [&[1], &[1]],
        [&[1, 2], &[1]],
        [&[1, 2], &[1, 2]],
        [&[2, 1], &[1, 2]],
        [&[2, 1], &[2, 1]],
        [&[2], &[2, 1]],
    ];
    for [left, right] in steps {
        let (mut left, mut right) = (protection(0, left), protection(1, right));
        let there = one(&mut left, b"there");
        assert!(opened(&mut right, PARTNER, &there).is_ok());
        let back = one(&mut right, b"back");
        assert!(opened(&mut left, PARTNER, &back).is_ok());
    }
}

#[test]
fn without_a_key_nothing_leaves_and_nothing_opens_and_each_correspondent_has_its_own() {
    let addresses = |node: u8| Addresses {
        nodes: vec![NodeId(1 - node)],
        partners: vec![Some(address(2 - node))],
        references: vec![Some(address(9))],
    };
    let keyless = |node: u8| {
        let sender = Sender {
            node: NodeId(node),
            link: LINK,
            origin: 70 + u64::from(node),
        };
        Protected::keyless(sender, &addresses(node), LONGEST, NOW)
    };
    let (mut left, mut right) = (keyless(0), keyless(1));
    let hello = [Segment {
        header: b"hello",
        payload: &[],
    }];
    assert!(matches!(left.seal(PARTNER, &hello), Err(Unsealed::NoKey)));
    left.set_keys(PARTNER, &keys(&[1]), Use::Open, NOW);
    assert!(matches!(left.seal(PARTNER, &hello), Err(Unsealed::NoKey)));
    left.set_keys(PARTNER, &keys(&[1]), Use::SealAndOpen, NOW);
    assert!(
        matches!(left.seal(WITNESS, &hello), Err(Unsealed::NoKey)),
        "the witness has not got the partner's key"
    );
    let datagram = one(&mut left, b"hello");
    let mut first = datagram.clone();
    let opened = right.open(PARTNER, &mut first, NOW);
    assert_eq!(opened, Err(Counter::DiscardUnknownKey));
    assert_eq!(right.mismatch(PeerId(0)), None, "it is to come");
    right.set_keys(WITNESS, &keys(&[1]), Use::SealAndOpen, NOW);
    let opened = right.open(PARTNER, &mut first, NOW);
    assert_eq!(opened, Err(Counter::DiscardUnknownKey), "a witness's key");
    right.set_keys(PARTNER, &keys(&[1]), Use::Open, NOW);
    assert_eq!(
        right.open(PARTNER, &mut datagram.clone(), NOW),
        Ok(&b"hello"[..])
    );
}

/// N-7, M-22: where keys roll each second, those of several seconds open still.
#[test]
fn what_has_come_is_refused_again_for_as_long_as_its_secret_opens() {
    let (mut left, mut right) = (protection(0, &[1]), protection(1, &[1]));
    let mut said = vec![one(&mut left, b"first")];
    assert!(opened(&mut right, PARTNER, &said[0]).is_ok());
    let most = SECRETS_MAX as u8;
    for newest in 2..=most {
        let rest: Vec<u8> = (1..newest).rev().collect();
        // Opened with first, then sealed with.
        let candidate = [&[rest[0], newest], &rest[1..]].concat();
        right.set_keys(PARTNER, &keys(&candidate), Use::SealAndOpen, NOW);
        let sealing = [&[newest], &rest[..]].concat();
        for node in [&mut left, &mut right] {
            node.set_keys(PARTNER, &keys(&sealing), Use::SealAndOpen, NOW);
        }
        said.push(one(&mut left, b"next"));
        assert!(opened(&mut right, PARTNER, said.last().unwrap()).is_ok());
        for before in &said {
            let again = opened(&mut right, PARTNER, before);
            assert_eq!(again, Err(Counter::DiscardReplayed), "with {newest}");
        }
    }
}

#[test]
fn who_is_not_believed_any_more_is_neither_heard_nor_written_to() {
    let (mut left, mut right) = (protection(0, &[1]), protection(1, &[1]));
    let mut datagram = one(&mut left, b"before");
    right.set_keys(PARTNER, &keys(&[1]), Use::Nothing, NOW);
    let opened = right.open(PARTNER, &mut datagram, NOW);
    assert_eq!(opened, Err(Counter::DiscardUnknownKey));
    let hello = [Segment {
        header: b"hello",
        payload: &[],
    }];
    assert!(matches!(right.seal(PARTNER, &hello), Err(Unsealed::NoKey)));
}

#[test]
fn keys_roll_without_a_gap_and_what_the_old_one_sealed_is_over_then() {
    let (mut left, mut right) = (protection(0, &[1]), protection(1, &[1]));
    let before = one(&mut left, b"before");
    right.set_keys(PARTNER, &keys(&[1, 2]), Use::SealAndOpen, NOW);
    assert!(right.open(PARTNER, &mut before.clone(), NOW).is_ok());
    left.set_keys(PARTNER, &keys(&[2, 1]), Use::SealAndOpen, NOW);
    let after = one(&mut left, b"after");
    assert!(right.open(PARTNER, &mut after.clone(), NOW).is_ok());
    right.set_keys(PARTNER, &keys(&[2, 1]), Use::SealAndOpen, NOW);
    let late = one(&mut left, b"late");
    right.set_keys(PARTNER, &keys(&[2]), Use::SealAndOpen, NOW);
    assert!(right.open(PARTNER, &mut late.clone(), NOW).is_ok());
    for mut over in [before, after] {
        assert!(right.open(PARTNER, &mut over, NOW).is_err());
    }
}
