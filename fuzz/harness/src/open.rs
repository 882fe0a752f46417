//! Envelopes and sealed states between a sender and a receiver, with an attacker between the two who has everything that was
//! ever sent and no secret.

use bumpless_base::{Duration, Instant, LinkId};
use bumpless_secure::state::{
    Expected, Method, Replay, StateHeader, StateOpener, StateSealer, StateWay,
};
use bumpless_secure::{
    Destination, Keyring, Opener, Refusal, RingStates, RingSuite, Route, Sealer, SealingKey, Secret,
};
use bumpless_wire::EnvelopeHeader;

use crate::input::Input;

type Keys = Keyring<RingSuite>;

const LINK: LinkId = LinkId(0);
/// Steps of one conversation.
const STEPS: usize = 40;
/// Origins that a receiver keeps, and that there are: nothing is forgotten.
const ORIGINS: usize = 4;
const METHODS: [Method; 3] = [
    Method::Authenticated,
    Method::Aes256Gcm,
    Method::ChaCha20Poly1305,
];
const WAY: StateWay = StateWay {
    channel: 3,
    from: 1,
};

/// What was sealed: the bytes, what was in them, and whether they were opened.
struct Sealed {
    bytes: Vec<u8>,
    message: Vec<u8>,
    opened: bool,
}

/// Does what `bytes` say to envelopes, then to states.
///
/// # Panics
/// If anything opens that was not sealed like that, or for the second time; if what was sealed does not open when it comes
/// first; or if a refusal has no words.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    if input.flag() {
        envelopes(&mut input);
    } else {
        states(&mut input);
    }
}

fn keys(secret: u8) -> Keys {
    Keys::new(vec![Secret::new([secret; 32])]).expect("one secret")
}

fn message(input: &mut Input<'_>) -> Vec<u8> {
    let len = input.below(64);
    input.take(len).to_vec()
}

/// One of those that were sealed, changed as the attacker likes.
fn bent(input: &mut Input<'_>, sealed: &[Sealed]) -> Vec<u8> {
    let mut bytes = match sealed.is_empty() {
        true => Vec::new(),
        false => sealed[input.below(sealed.len())].bytes.clone(),
    };
    for _ in 0..input.below(5) {
        let (at, value) = (input.below(bytes.len()), input.u8());
        if let Some(byte) = bytes.get_mut(at) {
            *byte = value;
        }
    }
    match input.below(4) {
        0 => bytes.truncate(input.below(bytes.len() + 1)),
        1 => bytes.extend(message(input)),
        _ => {}
    }
    bytes
}

fn envelopes(input: &mut Input<'_>) {
    let keys = keys(1);
    let route = Route {
        from: Some(0),
        to: 1,
        link: Some(LINK),
        place: 0,
    };
    let there = Destination {
        to: 1,
        link: LINK,
        place: 0,
    };
    // Trials are for floods; here each step has the time of many.
    let at = |step: usize| Instant::ZERO + Duration::from_secs(1 + step as u64);
    let mut opener = Opener::<RingSuite>::new(route, ORIGINS, at(0));
    let mut sealers: Vec<_> = (0..ORIGINS as u64).map(|it| Sealer::new(0, it)).collect();
    let mut key = SealingKey::default();
    let mut last = usize::MAX;
    let mut sealed: Vec<Sealed> = Vec::new();
    for step in 0..STEPS {
        if input.is_empty() {
            return;
        }
        if input.below(3) > 0 {
            let (origin, message) = (input.below(ORIGINS), message(input));
            let mut bytes = vec![0; message.len() + EnvelopeHeader::OVERHEAD];
            bytes[EnvelopeHeader::LEN..][..message.len()].copy_from_slice(&message);
            if last != origin {
                (last, key) = (origin, SealingKey::default());
            }
            let result = sealers[origin].seal((&keys, &mut key), there, &mut bytes);
            assert_eq!(result, Ok(()));
            sealed.push(Sealed {
                bytes,
                message,
                opened: false,
            });
        }
        let mut bytes = bent(input, &sealed);
        let whole = sealed.iter_mut().find(|it| it.bytes == bytes);
        let opened = opener.open(&keys, &mut bytes, at(step));
        match (opened, whole) {
            (Ok(message), Some(whole)) => {
                assert!(!whole.opened, "it opens for the second time");
                assert_eq!(message, whole.message);
                whole.opened = true;
            }
            (Ok(_), None) => panic!("nobody has sealed this"),
            (Err(Refusal::Replayed), Some(whole)) => assert!(whole.opened, "it comes first"),
            (Err(other), Some(_)) => panic!("what was sealed is refused: {other}"),
            (Err(refusal), None) => assert!(!refusal.to_string().is_empty()),
        }
    }
}

fn states(input: &mut Input<'_>) {
    let keys = keys(1);
    let (method, clear) = (input.one_of(&METHODS), input.below(8));
    let mut opener = StateOpener::<RingStates>::new(Expected::Only(method), WAY, Replay::Session);
    let mut sealer = StateSealer::<RingStates>::new(method, WAY, 7);
    let mut sealed: Vec<Sealed> = Vec::new();
    let mut newest = 0;
    for _ in 0..STEPS {
        if input.is_empty() {
            return;
        }
        if input.below(3) > 0 {
            let message = message(input);
            let mut bytes = vec![0; message.len() + StateHeader::OVERHEAD];
            StateSealer::<RingStates>::room(&mut bytes).copy_from_slice(&message);
            let len = sealer.seal(Some(&keys), (message.len(), clear), 0, &mut bytes);
            assert_eq!(len, Ok(bytes.len()));
            sealed.push(Sealed {
                bytes,
                message,
                opened: false,
            });
        }
        let bytes = bent(input, &sealed);
        let whole = sealed.iter().position(|it| it.bytes == bytes);
        let mut room = vec![0; bytes.len()];
        match (
            opener.open(Some(&keys), (&bytes, clear), 0, &mut room),
            whole,
        ) {
            (Ok(state), Some(at)) => {
                assert_eq!(state, sealed[at].message);
                assert!(at >= newest, "a later one was opened before");
                newest = at;
            }
            (Ok(_), None) => panic!("nobody has sealed this"),
            (Err(refusal), Some(at)) => assert!(at < newest, "the newest is refused: {refusal}"),
            (Err(refusal), None) => assert!(!refusal.to_string().is_empty()),
        }
    }
}
