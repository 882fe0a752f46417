//! What seals and opens the states of one application.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bumpless_base::{Counter, Counters, Duration, Instant};
use bumpless_config::{self as config, Encryption, Integrity};
use bumpless_controller::state::FRONT;
use bumpless_secure::state::{
    Expected, Method, Replay, StateHeader, StateOpener, StateRefusal, StateSealer, StateWay,
};
use bumpless_secure::{Keyring, RingStates, RingSuite};

use super::health::Health;
use super::keys::ChannelKeys;

/// Between two proofs that what comes can be opened.
const PROVEN_EVERY: Duration = Duration::from_secs(1);

/// The clock by which states show their age: nanoseconds since 1970.
pub type Times = fn() -> u64;

/// Seals what an application publishes and opens what has come for it.
pub struct StateGuard {
    sealer: StateSealer<RingStates>,
    opener: StateOpener<RingStates>,
    keys: ChannelKeys,
    /// Where states are opened.
    room: Box<[u8]>,
    times: Times,
    compares_times: bool,
    /// Identifier of the secret of the state that was proven last, and when the next one is.
    proven: (Option<u16>, Instant),
    unopened: u64,
    withheld: u64,
    health: Arc<Health>,
}

/// Nanoseconds since 1970 by the computer's clock.
pub(super) fn wall_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// By which method states are sealed with these settings; `None`: they are not.
pub fn sealed_with(security: &config::StateSecurity) -> Option<Method> {
    let fast = match has_aes() {
        true => Method::Aes256Gcm,
        false => Method::ChaCha20Poly1305,
    };
    Some(match (security.integrity, security.encryption) {
        (Integrity::None, _) => return None,
        (Integrity::Checksum, _) => Method::Checksum,
        (_, Encryption::None) => Method::Authenticated,
        (_, Encryption::Symmetric) => fast,
        (_, Encryption::Aes256Gcm) => Method::Aes256Gcm,
        (_, Encryption::ChaCha20Poly1305) => Method::ChaCha20Poly1305,
    })
}

/// Whether the processor has the instructions with which AES-GCM is the faster one.
fn has_aes() -> bool {
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    return std::arch::is_x86_feature_detected!("aes")
        && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64")))]
    return false;
}

fn replay(settings: &config::Application) -> Replay {
    match settings.security.replay {
        config::Replay::None => Replay::None,
        config::Replay::Counter => Replay::Counter,
        config::Replay::Session => Replay::Session,
        config::Replay::Timestamp => Replay::Timestamp {
            max_age: settings.hot_restart,
        },
    }
}

impl StateGuard {
    /// What seals the states of the application with these `settings` that go from node `own` to node `partner`, and opens
    /// those that come; `None`: nothing does. **`origin` must be random** for each.
    pub(super) fn new(
        settings: &config::Application,
        (own, partner): (u8, u8),
        (keys, origin, times): (ChannelKeys, u64, Times),
        health: Arc<Health>,
    ) -> Option<Self> {
        let method = sealed_with(&settings.security)?;
        let way = |from| StateWay {
            channel: settings.channel.get(),
            from,
        };
        let expected = match settings.security.encryption {
            Encryption::Symmetric => Expected::AnyCipher,
            _ => Expected::Only(method),
        };
        let replay = replay(settings);
        Some(Self {
            sealer: StateSealer::new(method, way(own), origin),
            opener: StateOpener::new(expected, way(partner), replay),
            keys,
            room: vec![0; settings.state_max as usize].into_boxed_slice(),
            times,
            compares_times: matches!(replay, Replay::Timestamp { .. }),
            proven: (None, Instant::ZERO),
            unopened: 0,
            withheld: 0,
            health,
        })
    }

    /// The same with keys that stay, told to nobody's status.
    pub fn given(
        settings: &config::Application,
        ends: (u8, u8),
        keys: Arc<Keyring<RingSuite>>,
        origin: u64,
    ) -> Option<Self> {
        let with = (ChannelKeys::Given(keys), origin, wall_ns as Times);
        Self::new(settings, ends, with, Arc::default())
    }

    /// States may be as old as this from here on, if times are compared.
    pub fn set_max_age(&mut self, max_age: Duration) {
        if self.compares_times {
            self.opener.set_replay(Replay::Timestamp { max_age });
        }
    }

    /// Where in a channel's buffer a state belongs.
    pub fn room(buffer: &mut [u8]) -> &mut [u8] {
        StateSealer::<RingStates>::room(buffer)
    }

    /// Whether a state can be sealed now.
    pub fn can_seal(&mut self) -> bool {
        self.follow();
        self.keys.can_seal()
    }

    /// Seals the state of `len` bytes in `buffer`, which lies where [`room`](Self::room) says. Returns the length of all.
    pub fn seal(&mut self, len: usize, buffer: &mut [u8]) -> usize {
        let now = match self.compares_times {
            true => (self.times)(),
            false => 0,
        };
        let lens = (len.min(Self::room(buffer).len()), FRONT);
        let sealed = self.sealer.seal(self.keys.sealing(), lens, now, buffer);
        // Its room and its key are there; what was nothing all the same would open nowhere.
        debug_assert!(sealed.is_ok());
        sealed.unwrap_or(0)
    }

    /// Has `fill` write a state that goes nowhere.
    pub fn withhold(&mut self, mut fill: impl FnMut(&mut [u8]) -> usize) {
        fill(&mut self.room);
        self.withheld += 1;
    }

    /// The front of what came as `sealed`, unproven.
    pub fn front(sealed: &[u8]) -> Option<&[u8]> {
        StateHeader::front(sealed, FRONT)
    }

    /// Looks at the newest state that came; whether it is time to prove that what comes can be opened.
    pub fn look_at(&mut self, sealed: &[u8], now: Instant) -> bool {
        self.keys.hold(sealed);
        self.follow();
        let key = StateHeader::parse(sealed).ok().map(|header| header.key);
        let (proven, due) = self.proven;
        let is_due = key != proven || now >= due;
        if is_due {
            self.proven = (key, now + PROVEN_EVERY);
        }
        is_due
    }

    /// Opens what came as `sealed`; `None`: it must not be used.
    pub fn open<'a>(&'a mut self, sealed: &'a [u8]) -> Option<&'a [u8]> {
        self.follow();
        let keys: Option<&Keyring<RingSuite>> = self.keys.opening(sealed);
        let now = match self.compares_times {
            true => (self.times)(),
            false => 0,
        };
        let opened = self.opener.open(keys, (sealed, FRONT), now, &mut self.room);
        let refused: Option<StateRefusal> = opened.err();
        self.health.note(refused);
        self.unopened += u64::from(refused.is_some());
        opened.ok()
    }

    /// Adds what was counted since this was called last.
    pub fn count(&mut self, counters: &mut Counters) {
        counters.add(Counter::StatesUnopened, std::mem::take(&mut self.unopened));
        counters.add(Counter::StatesWithheld, std::mem::take(&mut self.withheld));
    }

    fn follow(&mut self) {
        if self.keys.follow() {
            self.sealer.forget_keys();
        }
    }
}
