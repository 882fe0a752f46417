//! A session between two nodes, whose bytes somebody changes, drops and repeats, or in whose place somebody speaks.

use std::sync::OnceLock;
use std::time::Duration;

use bumpless_management::{Event, Profile, Session};
use bumpless_pki::rustls::pki_types::UnixTime;
use bumpless_pki::{Authority, Identity, IdentityPaths, NodeName, system_clock};
use bumpless_sessions::Conversation;

use crate::input::Input;

const DAY: Duration = Duration::from_secs(86_400);
/// Most turns: each is at most one flight of each end.
const TURNS: usize = 24;

struct Node {
    identity: Identity,
    name: NodeName,
    profile: Profile,
}

/// Two nodes of a pair, with certificates that are made once.
fn nodes() -> &'static [Node; 2] {
    static NODES: OnceLock<[Node; 2]> = OnceLock::new();
    NODES.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let pki = folder.path().join("pki");
        let now = UnixTime::now();
        let authority = Authority::create(&pki, "plant", DAY, now).expect("an authority");
        ["left", "right"].map(|node| {
            let name = authority.name(&format!("{node}.tank")).expect("a name");
            let out = folder.path().join(node);
            authority
                .issue(&name, DAY, now, &out)
                .expect("a certificate");
            let paths = IdentityPaths::in_folder(&out);
            let identity = Identity::load(&paths, node, "tank", system_clock());
            Node {
                identity: identity.expect("an identity"),
                name,
                profile: Profile {
                    pair: "tank".into(),
                    node: node.into(),
                    ..Profile::default()
                },
            }
        })
    })
}

/// One end, until it is over.
struct End {
    session: Option<Session>,
    events: Vec<Event>,
}

impl End {
    fn new(session: Session) -> Self {
        Self {
            session: Some(session),
            events: Vec::new(),
        }
    }

    /// Takes `bytes`; what it says then. An end that is over says why, and then nothing.
    fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut said = Vec::new();
        if let Some(session) = &mut self.session {
            let taken = session.receive(bytes, &mut self.events);
            session.transmit(&mut said);
            if let Err(error) = taken {
                assert!(!error.to_string().is_empty());
                self.session = None;
            }
        }
        said
    }

    fn secret(&self) -> Option<[u8; 32]> {
        self.events.iter().find_map(|event| match event {
            Event::Agreed { secret, .. } => Some(**secret),
            _ => None,
        })
    }
}

/// Does what `bytes` say.
///
/// # Panics
/// If both ends agree on two secrets, one agrees twice, one agrees with who has no certificate, or, where nobody has touched
/// anything, they do not agree.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let [left, right] = nodes();
    let calls = Session::call(&left.identity, &right.name, left.profile.clone());
    let partners = std::slice::from_ref(&left.name);
    let answers = Session::answer(&right.identity, partners, right.profile.clone());
    let mut ends = [calls, answers].map(|session| End::new(session.expect("a session")));
    if input.flag() {
        return alone(&mut ends, &mut input);
    }
    let mut said = ends[0].take(&[]);
    let mut touched = false;
    for turn in 1..TURNS {
        touched |= touch(&mut said, &mut input);
        said = ends[turn % 2].take(&said);
    }
    for end in &ends {
        let agreed = |event: &&Event| matches!(event, Event::Agreed { .. });
        assert!(end.events.iter().filter(agreed).count() <= 1);
    }
    let [one, other] = ends.each_ref().map(End::secret);
    match (one, other) {
        (Some(one), Some(other)) => assert_eq!(one, other, "they agree on two secrets"),
        (one, other) => assert!(touched, "{} {}", one.is_some(), other.is_some()),
    }
}

/// Somebody without a certificate speaks in the place of one end.
fn alone(ends: &mut [End; 2], input: &mut Input<'_>) {
    let end = &mut ends[input.below(2)];
    while !input.is_empty() && end.session.is_some() {
        let len = usize::from(input.u8());
        end.take(input.take(len));
    }
    assert!(end.events.is_empty(), "it agrees with nobody");
}

/// What happens to bytes on their way; whether anything does.
fn touch(bytes: &mut Vec<u8>, input: &mut Input<'_>) -> bool {
    let before = bytes.clone();
    match input.below(8) {
        1 if !bytes.is_empty() => {
            let at = usize::from(input.u16()) % bytes.len();
            bytes[at] ^= input.u8();
        }
        2 => bytes.truncate(usize::from(input.u16())),
        3 => bytes.extend_from_within(..),
        4 => {
            let len = usize::from(input.u8());
            bytes.extend_from_slice(input.take(len));
        }
        _ => {}
    }
    *bytes != before
}
