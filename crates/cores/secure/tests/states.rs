//! What becomes of sealed states that are changed, repeated, led elsewhere, or sealed by somebody else.
#![cfg(feature = "ring")]

use bumpless_base::Duration;
use bumpless_secure::state::{
    Expected, Method, Replay, StateHeader, StateOpener, StateRefusal, StateSealError, StateSealer,
    StateWay,
};
use bumpless_secure::{Keyring, RingStates, RingSuite, Secret};
use proptest::prelude::*;

type Keys = Keyring<RingSuite>;
type Sealer = StateSealer<RingStates>;
type Opener = StateOpener<RingStates>;

const WAY: StateWay = StateWay {
    channel: 7,
    from: 1,
};
/// Bytes at the front of a state that stay readable.
const CLEAR: usize = 4;
const METHODS: [Method; 4] = [
    Method::Checksum,
    Method::Authenticated,
    Method::Aes256Gcm,
    Method::ChaCha20Poly1305,
];
const MS: u64 = 1_000_000;

fn keys(secrets: &[u8]) -> Keys {
    let secrets = secrets.iter().map(|&byte| Secret::new([byte; 32]));
    Keys::new(secrets.collect()).expect("secrets that differ")
}

fn sealer(method: Method, origin: u64) -> Sealer {
    Sealer::new(method, WAY, origin)
}

fn opener(method: Method, replay: Replay) -> Opener {
    Opener::new(Expected::Only(method), WAY, replay)
}

fn seal(sealer: &mut Sealer, keys: &Keys, state: &[u8], published_ns: u64) -> Vec<u8> {
    let mut buffer = vec![0xEE; state.len() + StateHeader::OVERHEAD];
    Sealer::room(&mut buffer).copy_from_slice(state);
    let lens = (state.len(), CLEAR);
    let sealed = sealer.seal(Some(keys), lens, published_ns, &mut buffer);
    assert_eq!(sealed, Ok(buffer.len()));
    buffer
}

fn open(
    opener: &mut Opener,
    keys: &Keys,
    sealed: &[u8],
    now_ns: u64,
) -> Result<Vec<u8>, StateRefusal> {
    let mut room = vec![0; sealed.len()];
    let opened = opener.open(Some(keys), (sealed, CLEAR), now_ns, &mut room);
    opened.map(<[u8]>::to_vec)
}

#[test]
fn what_is_sealed_opens_by_every_method_as_often_as_it_is_read() {
    let keys = keys(&[1]);
    for method in METHODS {
        let mut left = sealer(method, 9);
        let mut right = opener(method, Replay::Session);
        for state in [&b""[..], b"abc", b"abcd", &[0x5A; 5000]] {
            let sealed = seal(&mut left, &keys, state, 0);
            for _ in 0..3 {
                let opened = open(&mut right, &keys, &sealed, 0);
                assert_eq!(opened.as_deref(), Ok(state), "{method:?}");
            }
        }
    }
}

#[test]
fn only_the_front_of_an_enciphered_state_can_be_read() {
    let keys = keys(&[1]);
    let state: Vec<u8> = (0..200).collect();
    for method in METHODS {
        let sealed = seal(&mut sealer(method, 9), &keys, &state, 0);
        assert_eq!(StateHeader::front(&sealed, CLEAR), Some(&state[..CLEAR]));
        let shows = sealed
            .windows(8)
            .any(|part| part == &state[CLEAR..CLEAR + 8]);
        let readable = matches!(method, Method::Checksum | Method::Authenticated);
        assert_eq!(shows, readable, "{method:?}");
    }
}

#[test]
fn equal_states_look_different_each_time() {
    let keys = keys(&[1]);
    let mut left = sealer(Method::Aes256Gcm, 9);
    let [first, second] = [(); 2].map(|()| seal(&mut left, &keys, &[7; 64], 0));
    let body = StateHeader::LEN + CLEAR..first.len();
    assert_ne!(first[body.clone()], second[body]);
}

#[test]
fn a_key_lasts_256_states_and_the_next_one_follows_without_a_gap() {
    let keys = keys(&[1]);
    let mut left = sealer(Method::Aes256Gcm, 9);
    let mut right = opener(Method::Aes256Gcm, Replay::Counter);
    for round in 0..600u16 {
        let state = round.to_be_bytes().repeat(8);
        let sealed = seal(&mut left, &keys, &state, 0);
        assert_eq!(open(&mut right, &keys, &sealed, 0), Ok(state), "{round}");
    }
}

#[test]
fn a_state_of_another_channel_or_node_does_not_open() {
    let keys = keys(&[1]);
    for method in METHODS {
        for way in [StateWay { channel: 8, ..WAY }, StateWay { from: 0, ..WAY }] {
            let mut other = Sealer::new(method, way, 9);
            let sealed = seal(&mut other, &keys, b"a state of its own", 0);
            let mut right = opener(method, Replay::None);
            let refused = open(&mut right, &keys, &sealed, 0);
            assert_eq!(refused, Err(StateRefusal::Misdirected), "{method:?}");
        }
    }
}

#[test]
fn nobody_can_have_less_asked_of_a_state_than_is_configured() {
    let keys = keys(&[1]);
    for method in METHODS {
        let sealed = seal(&mut sealer(method, 9), &keys, b"a state of its own", 0);
        for asked in METHODS {
            let opened = open(&mut opener(asked, Replay::None), &keys, &sealed, 0);
            let expected = match asked == method {
                true => Ok(b"a state of its own".to_vec()),
                false => Err(StateRefusal::OtherMethod),
            };
            assert_eq!(opened, expected, "{method:?} where {asked:?} is asked");
        }
        let mut any = Opener::new(Expected::AnyCipher, WAY, Replay::None);
        let enciphered = matches!(method, Method::Aes256Gcm | Method::ChaCha20Poly1305);
        assert_eq!(open(&mut any, &keys, &sealed, 0).is_ok(), enciphered);
        // What says that it is sealed in the way that is asked is not, for that.
        let mut disguised = sealed.clone();
        for (number, asked) in (1..).zip(METHODS) {
            disguised[1] = number;
            let opened = open(&mut opener(asked, Replay::None), &keys, &disguised, 0);
            assert_eq!(opened.is_ok(), asked == method, "{method:?} as {asked:?}");
        }
    }
}

#[test]
fn who_has_another_secret_or_none_opens_nothing() {
    let (ours, theirs) = (keys(&[1]), keys(&[2]));
    let mut left = sealer(Method::Aes256Gcm, 9);
    let mut sealed = seal(&mut left, &theirs, b"a state of its own", 0);
    let mut right = opener(Method::Aes256Gcm, Replay::None);
    let unknown = Err(StateRefusal::UnknownKey(theirs.sealing()));
    assert_eq!(open(&mut right, &ours, &sealed, 0), unknown);
    // The same identifier does not make it the same secret.
    sealed[2..4].copy_from_slice(&ours.sealing().to_be_bytes());
    assert_eq!(
        open(&mut right, &ours, &sealed, 0),
        Err(StateRefusal::Forged)
    );
    let mut buffer = [0; 100];
    let without = left.seal(None, (8, CLEAR), 0, &mut buffer);
    assert_eq!(without, Err(StateSealError::NoKey));
    let small = left.seal(Some(&ours), (8, CLEAR), 0, &mut buffer[..55]);
    assert_eq!(small, Err(StateSealError::NoRoom));
}

#[test]
fn secrets_change_while_states_of_the_one_before_still_open() {
    let both = keys(&[2, 1]);
    let mut left = sealer(Method::ChaCha20Poly1305, 9);
    let before = seal(&mut left, &keys(&[1]), b"before the change", 0);
    let after = seal(&mut left, &both, b"after the change", 0);
    let mut right = opener(Method::ChaCha20Poly1305, Replay::Session);
    assert_eq!(
        open(&mut right, &both, &before, 0).unwrap(),
        b"before the change"
    );
    assert_eq!(
        open(&mut right, &both, &after, 0).unwrap(),
        b"after the change"
    );
}

#[test]
fn an_earlier_state_is_refused_once_a_later_one_was_opened() {
    let keys = keys(&[1]);
    for (replay, refused) in [
        (Replay::None, false),
        (Replay::Counter, true),
        (Replay::Session, true),
    ] {
        let mut left = sealer(Method::Authenticated, 9);
        let mut right = opener(Method::Authenticated, replay);
        let [first, second] = [(); 2].map(|()| seal(&mut left, &keys, b"a state", 0));
        assert!(open(&mut right, &keys, &second, 0).is_ok());
        let again = open(&mut right, &keys, &first, 0);
        assert_eq!(again == Err(StateRefusal::Replayed), refused, "{replay:?}");
        assert!(open(&mut right, &keys, &second, 0).is_ok(), "{replay:?}");
    }
}

#[test]
fn a_process_that_another_one_has_followed_does_not_come_back_in_a_session() {
    let keys = keys(&[1]);
    for (replay, refused) in [(Replay::Counter, false), (Replay::Session, true)] {
        let mut right = opener(Method::Authenticated, replay);
        let mut states = (0..5).map(|origin| {
            let mut left = sealer(Method::Authenticated, origin);
            let states = [(); 2].map(|()| seal(&mut left, &keys, b"a state", 0));
            assert!(open(&mut right, &keys, &states[0], 0).is_ok());
            states
        });
        let states: Vec<_> = states.by_ref().collect();
        // The last one goes on.
        assert!(open(&mut right, &keys, &states[4][1], 0).is_ok());
        for earlier in states[..4].iter().flatten() {
            let again = open(&mut right, &keys, earlier, 0);
            assert_eq!(again == Err(StateRefusal::Replayed), refused, "{replay:?}");
            if !refused {
                break;
            }
        }
    }
}

#[test]
fn times_that_are_compared_bound_the_age_of_a_state() {
    let keys = keys(&[1]);
    let max_age = Duration::from_millis(500);
    let replay = Replay::Timestamp { max_age };
    let at = |published_ms: u64, now_ms: u64| {
        let sealed = seal(
            &mut sealer(Method::Authenticated, 9),
            &keys,
            b"a state",
            published_ms * MS,
        );
        let mut right = opener(Method::Authenticated, replay);
        open(&mut right, &keys, &sealed, now_ms * MS).map(|_| ())
    };
    assert_eq!(at(10_000, 10_000), Ok(()));
    assert_eq!(at(10_000, 10_500), Ok(()));
    assert_eq!(at(10_000, 10_501), Err(StateRefusal::Old));
    assert_eq!(at(10_000, 9_000), Ok(()), "a clock that is a second behind");
    assert_eq!(at(10_000, 8_999), Err(StateRefusal::Future));
    // Of two processes, what was published later counts.
    let mut right = opener(Method::Authenticated, replay);
    let earlier = seal(
        &mut sealer(Method::Authenticated, 1),
        &keys,
        b"a state",
        10_000 * MS,
    );
    let later = seal(
        &mut sealer(Method::Authenticated, 2),
        &keys,
        b"a state",
        10_001 * MS,
    );
    assert!(open(&mut right, &keys, &later, 10_001 * MS).is_ok());
    let again = open(&mut right, &keys, &earlier, 10_001 * MS);
    assert_eq!(again, Err(StateRefusal::Replayed));
}

#[test]
fn a_clock_that_was_ahead_and_is_set_right_shuts_no_state_out() {
    let keys = keys(&[1]);
    let replay = Replay::Timestamp {
        max_age: Duration::from_millis(500),
    };
    let (ahead, right_again) = (3_600_000 * MS, 10_000 * MS);
    let mut left = sealer(Method::Authenticated, 9);
    let mut right = opener(Method::Authenticated, replay);
    let before = seal(&mut left, &keys, b"a state", ahead);
    let [first, second] = [(); 2].map(|()| seal(&mut left, &keys, b"a state", right_again));
    let late = seal(&mut left, &keys, b"a state", right_again - 501 * MS);
    assert!(open(&mut right, &keys, &before, ahead).is_ok());
    assert!(open(&mut right, &keys, &second, right_again).is_ok());
    // What was captured while the clock was ahead, and what is older by its time.
    for state in [&before, &late] {
        let refused = open(&mut right, &keys, state, right_again);
        assert_eq!(refused, Err(StateRefusal::Replayed));
    }
    // When the time comes true that it bears, it has been opened all the same.
    assert!(open(&mut right, &keys, &second, right_again).is_ok());
    let later = open(&mut right, &keys, &before, ahead);
    assert_eq!(later, Err(StateRefusal::Replayed));
    // The same, with the first one of after the step still to come: numbers count where times do not.
    let mut right = opener(Method::Authenticated, replay);
    let after = seal(&mut left, &keys, b"a state", ahead);
    assert!(open(&mut right, &keys, &after, ahead).is_ok());
    let again = open(&mut right, &keys, &first, right_again);
    assert_eq!(again, Err(StateRefusal::Replayed));
}

#[test]
fn what_was_refused_changes_nothing() {
    let keys = keys(&[1]);
    let mut left = sealer(Method::Aes256Gcm, 9);
    let mut right = opener(Method::Aes256Gcm, Replay::Session);
    let good = seal(&mut left, &keys, b"a state of its own", 0);
    let mut forged = good.clone();
    // Of a later state and of another process, if it were believed.
    forged[8] ^= 1;
    forged[23] = 0xFF;
    assert_eq!(
        open(&mut right, &keys, &forged, 0),
        Err(StateRefusal::Forged)
    );
    assert!(open(&mut right, &keys, &good, 0).is_ok());
}

#[test]
fn the_layout_is_the_documented_one() {
    let way = StateWay {
        channel: 0x0102,
        from: 3,
    };
    let mut left = Sealer::new(Method::Checksum, way, 0x1112_1314_1516_1718);
    let mut buffer = [0; 49];
    buffer[32] = 0xAB;
    let sealed = left.seal(None, (1, 0), 0x2122_2324_2526_2728, &mut buffer);
    assert_eq!(sealed, Ok(49));
    let front = [
        1, 1, 0, 0, 1, 2, 3, 0, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0, 0, 0, 0, 0, 0,
        0, 1, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0xAB,
    ];
    assert_eq!(buffer[..33], front);
    assert_eq!(buffer[41..], [0; 8]);
}

proptest! {
    #[test]
    fn no_changed_byte_and_no_other_length_opens(
        state in proptest::collection::vec(any::<u8>(), 0..80),
        method in 0..4usize, at: proptest::sample::Index, change in 1..=255u8, cut in 1..40usize,
    ) {
        let (keys, method) = (keys(&[1]), METHODS[method]);
        let sealed = seal(&mut sealer(method, 9), &keys, &state, 0);
        let mut changed = sealed.clone();
        changed[at.index(sealed.len())] ^= change;
        prop_assert!(open(&mut opener(method, Replay::None), &keys, &changed, 0).is_err());
        let shorter = &sealed[..sealed.len() - cut.min(sealed.len())];
        prop_assert!(open(&mut opener(method, Replay::None), &keys, shorter, 0).is_err());
        let longer = [&sealed[..], &vec![0; cut]].concat();
        prop_assert!(open(&mut opener(method, Replay::None), &keys, &longer, 0).is_err());
    }

    #[test]
    fn any_bytes_are_refused_without_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..120), fix: bool, method in 0..4usize,
    ) {
        let keys = keys(&[1]);
        if fix && bytes.len() > 8 {
            bytes[..8].copy_from_slice(&[1, method as u8 + 1, 0, 0, 0, 7, 1, 0]);
            bytes[2..4].copy_from_slice(&keys.sealing().to_be_bytes());
        }
        let mut right = opener(METHODS[method], Replay::Session);
        prop_assert!(open(&mut right, &keys, &bytes, 0).is_err());
        prop_assert!(StateHeader::front(&bytes, 4).is_none_or(|front| front.len() == 4));
        // Room that is too small.
        let mut room = [0; 4];
        let opened = right.open(Some(&keys), (&bytes, 4), 0, &mut room);
        prop_assert!(opened.is_err());
    }
}
