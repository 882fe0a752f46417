//! The way of a channel's secrets to its executor, which neither waits for them nor frees them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bumpless_atomic_box::AtomicBox;
use bumpless_base::PeerId;
use bumpless_secure::state::StateHeader;
use bumpless_secure::{Keyring, RingSuite};

type Keys = Arc<Keyring<RingSuite>>;

/// Secrets that hold from some moment on.
struct Ring {
    keys: Keys,
    /// Whether the partner has the first one.
    seals: bool,
}

/// Where an executor finds new secrets.
#[derive(Default)]
pub(super) struct KeySlot {
    fresh: AtomicBox<Ring>,
    returned: [AtomicBox<Ring>; 2],
}

impl KeySlot {
    fn give_back(&self, ring: Box<Ring>) {
        let [first, second] = &self.returned;
        if let Some(other) = first.swap(Some(ring)) {
            // Only if secrets change twice while nobody collects is one freed here.
            drop(second.swap(Some(other)));
        }
    }
}

#[derive(Default)]
struct Rings {
    channels: Vec<(PeerId, Weak<KeySlot>)>,
    current: BTreeMap<u8, (Keys, bool)>,
}

/// The secrets of sessions, for the channels with each partner.
#[derive(Clone, Default)]
pub struct StateRings(Arc<Mutex<Rings>>);

impl StateRings {
    /// States that are exchanged with `peer` are opened with `keys` from here on, and with `seals` sealed with the first one.
    pub fn set(&self, peer: PeerId, keys: &Keys, seals: bool) {
        let mut rings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rings.current.insert(peer.0, (Arc::clone(keys), seals));
        rings.channels.retain(|(_, slot)| slot.strong_count() > 0);
        for slot in rings.channels.iter().filter(|(with, _)| *with == peer) {
            if let Some(slot) = slot.1.upgrade() {
                put(&slot, keys, seals);
            }
        }
    }

    /// The secrets of a channel with `peer`.
    pub fn channel(&self, peer: PeerId) -> ChannelKeys {
        let mut rings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = Arc::new(KeySlot::default());
        if let Some((keys, seals)) = rings.current.get(&peer.0) {
            put(&slot, keys, *seals);
        }
        rings.channels.push((peer, Arc::downgrade(&slot)));
        ChannelKeys::Agreed(AgreedKeys {
            slot,
            current: None,
            kept: None,
            in_use: None,
        })
    }
}

fn put(slot: &KeySlot, keys: &Keys, seals: bool) {
    let ring = Ring {
        keys: Arc::clone(keys),
        seals,
    };
    drop(slot.fresh.swap(Some(Box::new(ring))));
    slot.returned
        .iter()
        .for_each(|place| drop(place.swap(None)));
}

/// The secrets of one channel.
pub enum ChannelKeys {
    /// None is needed.
    None,
    /// From files.
    Given(Keys),
    /// From sessions.
    Agreed(AgreedKeys),
}

/// Secrets that change while the node runs.
pub struct AgreedKeys {
    slot: Arc<KeySlot>,
    current: Option<Box<Ring>>,
    /// Those of before, for as long as the newest state that is here was sealed with one of them.
    kept: Option<Box<Ring>>,
    /// With which one it was.
    in_use: Option<u16>,
}

impl ChannelKeys {
    /// Takes new secrets. Returns whether there were any.
    pub(super) fn follow(&mut self) -> bool {
        match self {
            Self::Agreed(agreed) => agreed.follow(),
            _ => false,
        }
    }

    /// The newest state that is here is `sealed`: what opens it is kept.
    pub(super) fn hold(&mut self, sealed: &[u8]) {
        if let (Self::Agreed(agreed), Ok(header)) = (self, StateHeader::parse(sealed)) {
            agreed.in_use = Some(header.key);
        }
    }

    /// The ring that seals. `None`: no key is known that the partner has.
    pub(super) fn sealing(&self) -> Option<&Keyring<RingSuite>> {
        match self {
            Self::None => None,
            Self::Given(keys) => Some(keys),
            Self::Agreed(agreed) => {
                let current = agreed.current.as_ref().filter(|ring| ring.seals);
                current.map(|ring| &*ring.keys)
            }
        }
    }

    /// The ring with which `sealed` may open.
    pub(super) fn opening(&self, sealed: &[u8]) -> Option<&Keyring<RingSuite>> {
        match self {
            Self::None => None,
            Self::Given(keys) => Some(keys),
            Self::Agreed(agreed) => {
                let key = StateHeader::parse(sealed).map_or(0, |header| header.key);
                let mut rings = agreed.current.iter().chain(&agreed.kept);
                let has = rings.find(|ring| ring.keys.contains(key));
                let any = has.or(agreed.current.as_ref());
                any.map(|ring| &*ring.keys)
            }
        }
    }

    /// Whether states can be sealed, with a secret or without.
    pub(super) fn can_seal(&self) -> bool {
        matches!(self, Self::None) || self.sealing().is_some()
    }
}

impl AgreedKeys {
    fn follow(&mut self) -> bool {
        let Some(fresh) = self.slot.fresh.swap(None) else {
            return false;
        };
        let has = |ring: &Ring| self.in_use.is_some_and(|key| ring.keys.contains(key));
        let needed = !has(&fresh);
        let before = self.current.take();
        let (keep, mut free) = match (before, self.kept.take()) {
            (Some(before), kept) if needed && has(&before) => (Some(before), [None, kept]),
            (before, Some(kept)) if needed && has(&kept) => (Some(kept), [before, None]),
            (before, kept) => (None, [before, kept]),
        };
        self.kept = keep;
        self.current = Some(fresh);
        for ring in free.iter_mut().filter_map(Option::take) {
            self.slot.give_back(ring);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bumpless_secure::state::{Method, StateSealer, StateWay};
    use bumpless_secure::{RingStates, Secret};

    const PEER: PeerId = PeerId(0);

    fn keys(secrets: &[u8]) -> Keys {
        let secrets = secrets.iter().map(|&byte| Secret::new([byte; 32]));
        Arc::new(Keyring::new(secrets.collect()).unwrap())
    }

    /// A state that is sealed with the first of `keys`.
    fn sealed(keys: &Keys) -> [u8; 60] {
        let way = StateWay {
            channel: 1,
            from: 0,
        };
        let mut sealer = StateSealer::<RingStates>::new(Method::Aes256Gcm, way, 1);
        let mut buffer = [0; 60];
        sealer.seal(Some(keys), (12, 0), 0, &mut buffer).unwrap();
        buffer
    }

    #[test]
    fn nothing_is_sealed_before_the_partner_is_known_to_have_the_secret() {
        let (rings, first) = (StateRings::default(), keys(&[1]));
        let mut channel = rings.channel(PEER);
        assert!(!channel.follow() && !channel.can_seal());
        rings.set(PeerId(1), &first, true);
        assert!(!channel.follow(), "it is another partner's");
        rings.set(PEER, &first, false);
        assert!(channel.follow() && !channel.can_seal());
        assert!(channel.opening(&sealed(&first)).is_some());
        rings.set(PEER, &first, true);
        assert!(channel.follow() && channel.can_seal());
        // An application that comes later finds what holds then.
        let mut later = rings.channel(PEER);
        assert!(later.follow() && later.can_seal());
    }

    #[test]
    fn what_opens_the_newest_state_is_kept_until_a_later_one_is_there() {
        let (rings, secrets) = (StateRings::default(), [1, 2, 3, 4].map(|it| keys(&[it])));
        let mut channel = rings.channel(PEER);
        let states = secrets.each_ref().map(sealed);
        let opens = |channel: &ChannelKeys, at: usize| {
            let ring = channel.opening(&states[at]);
            ring.is_some_and(|ring| ring.contains(secrets[at].sealing()))
        };
        rings.set(PEER, &secrets[0], true);
        channel.follow();
        channel.hold(&states[0]);
        for (at, keys) in secrets.iter().enumerate() {
            rings.set(PEER, keys, true);
            channel.follow();
            assert!(opens(&channel, 0) && opens(&channel, at), "{at}");
        }
        assert!(!opens(&channel, 1), "nothing here was sealed with it");
        channel.hold(&states[3]);
        rings.set(PEER, &secrets[2], true);
        channel.follow();
        assert!(opens(&channel, 3) && opens(&channel, 2) && !opens(&channel, 0));
    }
}
