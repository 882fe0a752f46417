//! What an attacker on the network can do to sealed messages, tried on the shipped suite.
#![cfg(feature = "ring")]

mod keys;

use bumpless_base::{Duration, Instant, LinkId};
use bumpless_secure::{
    Destination, Keyring, KeyringError, Opener, Refusal, RingSuite, Route, SealError, Sealer,
    SealingKey, Secret, place,
};
use bumpless_wire::EnvelopeHeader;
use proptest::prelude::*;

type Keys = Keyring<RingSuite>;

const LEFT: u8 = 0;
const RIGHT: u8 = 1;
const A: LinkId = LinkId(0);
const B: LinkId = LinkId(1);

fn keys(secrets: &[u8]) -> Keys {
    let secrets = secrets.iter().map(|&byte| Secret::new([byte; 32]));
    Keys::new(secrets.collect()).expect("secrets that differ")
}

fn at(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1000)
}

fn sealer(origin: u64) -> Sealer {
    Sealer::new(LEFT, origin)
}

const THERE: Destination = Destination {
    to: RIGHT,
    link: A,
    place: 0,
};

const ROUTE: Route = Route {
    from: Some(LEFT),
    to: RIGHT,
    link: Some(A),
    place: 0,
};

fn opener() -> Opener<RingSuite> {
    Opener::new(ROUTE, 4, at(0))
}

/// `message` in an envelope for the right node.
fn sealed(sealer: &mut Sealer, keys: &Keys, message: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0; message.len() + EnvelopeHeader::OVERHEAD];
    datagram[EnvelopeHeader::LEN..][..message.len()].copy_from_slice(message);
    sealer
        .seal((keys, &mut SealingKey::default()), THERE, &mut datagram)
        .unwrap();
    datagram
}

fn open(
    opener: &mut Opener<RingSuite>,
    keys: &Keys,
    datagram: &[u8],
    now: Instant,
) -> Result<Vec<u8>, Refusal> {
    let mut datagram = datagram.to_vec();
    let opened = opener.open(keys, &mut datagram, now);
    opened.map(<[u8]>::to_vec)
}

#[test]
fn what_is_sealed_is_opened_and_cannot_be_read_on_the_way() {
    let keys = keys(&[1]);
    let (mut left, mut right) = (sealer(7), opener());
    for message in [&b""[..], b"x", &[0x5A; 1500]] {
        let datagram = sealed(&mut left, &keys, message);
        let shows = |part: &[u8]| part == [0x5A; 8];
        assert!(!datagram.windows(8).any(shows));
        let opened = open(&mut right, &keys, &datagram, at(1));
        assert_eq!(opened.as_deref(), Ok(message));
    }
}

#[test]
fn a_message_opens_once_on_its_link_at_its_addressee() {
    let keys = keys(&[1]);
    let (mut left, mut right) = (sealer(7), opener());
    let datagram = sealed(&mut left, &keys, b"message");
    let refused = |opener: &mut Opener<RingSuite>| {
        open(opener, &keys, &datagram, at(1)).expect_err("it is refused")
    };
    let (from, link) = (Some(RIGHT), Some(B));
    for route in [
        Route { from, ..ROUTE },
        Route { to: 2, ..ROUTE },
        Route { link, ..ROUTE },
    ] {
        let mut other = Opener::new(route, 4, at(0));
        assert_eq!(refused(&mut other), Refusal::Misdirected);
    }
    let opened = open(&mut right, &keys, &datagram, at(1));
    assert_eq!(opened.unwrap(), b"message");
    assert_eq!(refused(&mut right), Refusal::Replayed);
    // A witness does not know beforehand who asks on which link.
    let anybody = Route {
        from: None,
        link: None,
        ..ROUTE
    };
    let opened = open(&mut Opener::new(anybody, 4, at(0)), &keys, &datagram, at(1));
    assert_eq!(opened.unwrap(), b"message");
}

#[test]
fn what_is_for_a_witness_opens_at_its_address_and_nowhere_else() {
    let keys = keys(&[1]);
    let at = |text: &str| place(text.parse().unwrap());
    let [first, port, ip] = ["192.0.2.9:4710", "192.0.2.9:4711", "192.0.2.8:4710"].map(at);
    assert_eq!(first, at("[::ffff:192.0.2.9]:4710"));
    let mut datagram = vec![0; EnvelopeHeader::OVERHEAD];
    let there = Destination {
        place: first,
        ..THERE
    };
    sealer(7)
        .seal((&keys, &mut SealingKey::default()), there, &mut datagram)
        .unwrap();
    let opened = |place| {
        let route = Route { place, ..ROUTE };
        let mut opener = Opener::new(route, 4, Instant::ZERO);
        open(&mut opener, &keys, &datagram, Instant::ZERO)
    };
    assert_eq!(opened(first), Ok(vec![]));
    for elsewhere in [port, ip, 0] {
        assert_eq!(opened(elsewhere), Err(Refusal::Forged));
    }
}

#[test]
fn an_unprotected_message_is_named_as_such() {
    // An acknowledgement without blocks, version 1.
    let plain = [0x10, 0x01, 0, 1, 0, 5, 0, 9, 0];
    assert!(bumpless_wire::parse(&plain).is_ok());
    let opened = open(&mut opener(), &keys(&[1]), &plain, at(1));
    assert_eq!(opened, Err(Refusal::Unprotected));
}

#[test]
fn a_restarted_sender_is_heard_at_once_and_its_old_packets_open_once() {
    let keys = keys(&[1]);
    let (mut present, mut right) = (sealer(9), opener());
    // As many earlier processes as fit beside the present one.
    let old = (0..3).map(|origin| sealed(&mut sealer(origin), &keys, b"old"));
    let old: Vec<_> = old.collect();
    for round in 0..20 {
        let now = at(round * 1000);
        let datagram = sealed(&mut present, &keys, b"present");
        assert!(open(&mut right, &keys, &datagram, now).is_ok());
        let replayed = Err(Refusal::Replayed);
        assert_eq!(open(&mut right, &keys, &datagram, now), replayed);
        for datagram in &old {
            let opened = open(&mut right, &keys, datagram, now);
            assert_eq!(opened.is_ok(), round == 0);
        }
    }
}

#[test]
fn who_is_heard_is_not_forgotten_for_processes_that_are_gone() {
    let keys = keys(&[1]);
    let (mut present, mut right) = (sealer(99), opener());
    for origin in 0..10 {
        let now = at(origin * 1000);
        let datagram = sealed(&mut present, &keys, b"present");
        assert!(open(&mut right, &keys, &datagram, now).is_ok());
        // One after the other takes the place of the one before, whatever counters that had come to.
        let mut gone = sealer(origin);
        gone.skip_to(5000 * (10 - origin));
        for _ in 0..2 {
            let old = sealed(&mut gone, &keys, b"old");
            assert!(open(&mut right, &keys, &old, now).is_ok());
        }
        let replayed = Err(Refusal::Replayed);
        assert_eq!(open(&mut right, &keys, &datagram, now), replayed);
    }
}

#[test]
fn a_confirmed_process_is_not_forgotten_for_repeated_packets_of_others() {
    let keys = keys(&[1]);
    let mut right = opener();
    let mut origins = 0..;
    for (round, present) in [(0, 1000), (1, 2000)] {
        let mut present = sealer(present);
        let datagram = sealed(&mut present, &keys, b"present");
        let now = at(round * 100_000);
        assert!(open(&mut right, &keys, &datagram, now).is_ok());
        right.confirm();
        for (n, origin) in (1..).zip(origins.by_ref().take(20)) {
            let old = sealed(&mut sealer(origin), &keys, b"old");
            let now = now + Duration::from_millis(n);
            assert!(open(&mut right, &keys, &old, now).is_ok());
            let replayed = Err(Refusal::Replayed);
            assert_eq!(open(&mut right, &keys, &datagram, now), replayed);
        }
        // It never needs a trial, however many others were tried.
        let next = sealed(&mut present, &keys, b"next");
        assert!(open(&mut right, &keys, &next, now).is_ok());
    }
}

#[test]
fn a_flood_of_unknown_processes_costs_few_trials_and_ends_with_it() {
    let keys = keys(&[1]);
    let (mut left, mut right) = (sealer(7), opener());
    let first = sealed(&mut left, &keys, b"1");
    assert!(open(&mut right, &keys, &first, at(0)).is_ok());
    let forged = sealed(&mut sealer(1), &keys, b"forged");
    let mut tried = 0;
    // A second of a packet each microsecond.
    for n in 0..1_000_000u64 {
        let mut datagram = forged.clone();
        datagram[9..17].copy_from_slice(&(1000 + n).to_be_bytes());
        match right.open(&keys, &mut datagram, at(n)) {
            Err(Refusal::Forged) => tried += 1,
            Err(Refusal::TooManyUnknown) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!((9_000..=10_100).contains(&tried), "{tried}");
    // One that is known is not concerned, not where its keys change either.
    for counter in [1, (1 << 24) - 1, 1 << 24, (1 << 24) + 1, (2 << 24) + 1] {
        left.skip_to(counter);
        let next = sealed(&mut left, &keys, b"2");
        assert!(open(&mut right, &keys, &next, at(999_999)).is_ok());
    }
    let mut restarted = sealer(8);
    let heard = (0..3).any(|n| {
        let datagram = sealed(&mut restarted, &keys, b"3");
        let now = at(1_000_000) + Duration::from_micros(n * 100);
        open(&mut right, &keys, &datagram, now).is_ok()
    });
    assert!(heard);
}

/// N-2 to N-4, made by another implementation (`hkdf` and `aes-gcm` of RustCrypto): secret 0, 1, .. 31.
#[test]
fn an_envelope_has_the_bytes_that_the_clauses_give_it() {
    let secret = core::array::from_fn(|at| at as u8);
    let keys = Keys::new(vec![Secret::new(secret)]).unwrap();
    let mut sealer = Sealer::new(6, 0x090A_0B0C_0D0E_0F10);
    sealer.skip_to((3 << 24) + 5);
    let mut datagram = [&[0; 23][..], b"bumpless", &[0; 16]].concat();
    let there = Destination {
        to: 7,
        link: LinkId(2),
        place: 0,
    };
    sealer
        .seal((&keys, &mut SealingKey::default()), there, &mut datagram)
        .unwrap();
    let hex: String = datagram.iter().map(|byte| format!("{byte:02x}")).collect();
    let (header, message) = (
        "30010001fa81060702090a0b0c0d0e0f10000003000005",
        "1e20a82e9d902098",
    );
    assert_eq!(
        hex,
        [header, message, "7671158832cb9a65e34b30d52d309ed8"].concat()
    );
}

#[test]
fn what_has_no_room_is_not_sealed() {
    let keys = keys(&[1]);
    let mut datagram = [0x5A; EnvelopeHeader::OVERHEAD - 1];
    let result = sealer(7).seal((&keys, &mut SealingKey::default()), THERE, &mut datagram);
    assert_eq!(result, Err(SealError::NoRoom));
    assert_eq!(datagram, [0x5A; EnvelopeHeader::OVERHEAD - 1]);
}

#[test]
fn secrets_show_nowhere_and_the_same_one_twice_is_refused() {
    let secret = || Secret::new([0xAB; 32]);
    assert_eq!(format!("{:?}", secret()), "Secret(..)");
    let twice = Keys::new(vec![secret(), secret()]);
    assert!(matches!(twice, Err(KeyringError::SameIdentifier(_))));
    assert_eq!(Keys::new(Vec::new()).unwrap_err(), KeyringError::Empty);
    let keys = keys(&[0xAB]);
    let shown = format!("{keys:?} {:?}", sealer(1)).to_lowercase();
    assert!(
        !shown.contains("abab") && !shown.contains("171, 171"),
        "{shown}"
    );
}

proptest! {
    #[test]
    fn a_changed_message_never_opens(
        message in proptest::collection::vec(any::<u8>(), 0..200),
        flips in proptest::collection::vec(any::<(prop::sample::Index, u8)>(), 1..4),
    ) {
        let keys = keys(&[1]);
        let (mut left, mut right) = (sealer(7), opener());
        let known = sealed(&mut left, &keys, b"known");
        prop_assert!(open(&mut right, &keys, &known, at(0)).is_ok());
        let datagram = sealed(&mut left, &keys, &message);
        let mut changed = datagram.clone();
        for (at, bits) in flips {
            let place = at.index(changed.len());
            changed[place] ^= bits;
        }
        if changed != datagram {
            prop_assert!(open(&mut right, &keys, &changed, at(1)).is_err());
        }
        // What was refused has spoilt nothing.
        let opened = open(&mut right, &keys, &datagram, at(2));
        prop_assert_eq!(opened.unwrap(), message);
    }

    #[test]
    fn no_bytes_open_or_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..100),
        envelope: bool,
    ) {
        let keys = keys(&[1]);
        let mut datagram = bytes;
        if envelope && datagram.len() > 9 {
            datagram[..4].copy_from_slice(&[0x30, 1, 0, 1]);
            datagram[4..6].copy_from_slice(&keys.sealing().to_be_bytes());
            datagram[6..9].copy_from_slice(&[LEFT, RIGHT, 0]);
        }
        prop_assert!(open(&mut opener(), &keys, &datagram, at(0)).is_err());
    }
}
