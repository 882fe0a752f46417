//! What sealing and opening a state takes on this computer.

use std::time::Instant;

use bumpless_base::Duration;
use bumpless_config as config;
use bumpless_controller::state::FRONT;
use bumpless_secure::state::{Expected, Replay, StateOpener, StateSealer, StateWay};
use bumpless_secure::{Keyring, KeyringError, RingStates, Secret};

use super::guard::sealed_with;

/// Longer states are not tried: the time grows with the length.
const LONGEST: usize = 4 << 20;
/// Tries; the median counts.
const TRIES: usize = 9;

/// What protecting the largest state of an application takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateCost {
    /// In each cycle of the primary, before the state is sent.
    pub sealing: Duration,
    /// Once, when the backup takes over.
    pub opening: Duration,
}

/// What it takes here to protect the largest state of the application with these settings, measured now; `None`: nothing is
/// done to its states.
pub fn state_cost(settings: &config::Application) -> Option<StateCost> {
    let method = sealed_with(&settings.security)?;
    let whole = settings.state_max as usize;
    let own = whole.saturating_sub(settings.security.overhead() as usize);
    let tried = own.min(LONGEST);
    let way = StateWay {
        channel: settings.channel.get(),
        from: 0,
    };
    let keys: Result<Keyring<_>, KeyringError> = Keyring::new(vec![Secret::new([1; 32])]);
    let keys = keys.ok()?;
    let mut buffer = vec![0x5A; tried + settings.security.overhead() as usize];
    let mut room = vec![0; buffer.len()];
    let mut sealer = StateSealer::<RingStates>::new(method, way, 1);
    let mut opener = StateOpener::<RingStates>::new(Expected::Only(method), way, Replay::Counter);
    let (mut sealing, mut opening) = (Vec::new(), Vec::new());
    for _ in 0..TRIES {
        let began = Instant::now();
        sealer
            .seal(Some(&keys), (tried, FRONT), 0, &mut buffer)
            .ok()?;
        sealing.push(began.elapsed());
        let began = Instant::now();
        opener
            .open(Some(&keys), (&buffer, FRONT), 0, &mut room)
            .ok()?;
        opening.push(began.elapsed());
    }
    let scaled = |times: &mut Vec<std::time::Duration>| {
        times.sort_unstable();
        let nanos = times[TRIES / 2].as_nanos() * own as u128 / tried.max(1) as u128;
        Duration::from_nanos(nanos as u64)
    };
    Some(StateCost {
        sealing: scaled(&mut sealing),
        opening: scaled(&mut opening),
    })
}
