//! What a server says of a group's keys (`GetSecurityKeys`, `SetSecurityKeys`).

use alloc::vec::Vec;
use core::fmt;

use bumpless_base::Duration;

use super::KEYS_MAX;
use super::key::{GroupKey, Place};

/// The longest span in a grant: what is longer is a mistake, and instants far away would be no order any more.
pub(super) const SPAN_MAX: Duration = Duration::from_secs(10 * 365 * 86_400);

/// The keys of a group as of the moment at which this is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// In the order of their places.
    pub keys: Vec<GrantedKey>,
    /// How long whoever takes this keeps what he has and is not among `keys`.
    pub withdrawn_for: Duration,
}

/// A key, and when it is used, counted from the moment at which this is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantedKey {
    /// Its place.
    pub place: Place,
    /// The key.
    pub key: GroupKey,
    /// It is sealed with after so long, until the next one is.
    pub seals_in: Duration,
    /// It is sealed with no more after so long.
    pub seals_for: Duration,
    /// It is opened with from this moment on, and no more after so long.
    pub opens_for: Duration,
}

/// Why a grant is not taken over. Everything is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantError {
    /// It contradicts itself, has no keys or too many.
    Malformed,
    /// Two of its keys have one identifier.
    SameIdentifier(u16),
    /// It is of an earlier era than the keys that are here.
    Earlier {
        /// Its era.
        said: u64,
        /// The one here.
        here: u64,
    },
    /// In one era numbers are only added, and its latest key has a lower number than the latest here. Taken over, it would have
    /// those withdrawn that others use.
    Behind {
        /// The number of its latest key.
        said: u64,
        /// The one here.
        here: u64,
    },
    /// A number is given to one key alone, and here another one has it.
    OtherKey(Place),
}

impl fmt::Display for GrantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str(
                "the key server says of its keys what contradicts itself; run one version of bumpless on servers and members",
            ),
            Self::SameIdentifier(id) => write!(
                f,
                "two keys of the key server have the identifier {id:04x}; order a roll there"
            ),
            Self::Earlier { said, here } => write!(
                f,
                "the key server is of era {said}, and the keys here are of the later era {here}: it has begun to lead again with \
                 what it had before another one led; stop it, and start it as a follower of the one that leads"
            ),
            Self::Behind { said, here } => write!(
                f,
                "its latest key has the number {said}, and the latest here has {here}: it has not heard of what another server has \
                 given, or goes on with an earlier copy of its state; see that it reaches the server that it follows, or, if it follows none, \
                 stop it, move its state away and start it: then keys begin anew"
            ),
            Self::OtherKey(place) => write!(
                f,
                "its key number {} is another one than the one here: it goes on with an earlier copy of its state; stop it, move \
                 its state away and start it: then keys begin anew",
                place.token
            ),
        }
    }
}

impl core::error::Error for GrantError {}

impl Grant {
    /// The era of the latest key.
    pub fn era(&self) -> u64 {
        self.keys.last().map_or(0, |key| key.place.era)
    }

    /// # Errors
    /// What makes it unusable.
    pub(super) fn check(&self) -> Result<(), GrantError> {
        if self.keys.is_empty() || self.keys.len() > KEYS_MAX {
            return Err(GrantError::Malformed);
        }
        let sound = |key: &GrantedKey| {
            key.seals_in < key.seals_for
                && key.seals_for <= key.opens_for
                && key.opens_for <= SPAN_MAX
        };
        // What is opened with still and not sealed with any more has no time for sealing left.
        let over = |key: &GrantedKey| key.seals_for == Duration::ZERO && key.opens_for <= SPAN_MAX;
        if !self.keys.iter().all(|key| sound(key) || over(key)) {
            return Err(GrantError::Malformed);
        }
        let later = |pair: &[GrantedKey]| {
            pair[0].place < pair[1].place
                && pair[0].place.token < pair[1].place.token
                && pair[0].seals_in <= pair[1].seals_in
        };
        if !self.keys.windows(2).all(later) || self.withdrawn_for > SPAN_MAX {
            return Err(GrantError::Malformed);
        }
        for (at, key) in self.keys.iter().enumerate() {
            let id = key.key.id();
            if self.keys[..at].iter().any(|other| other.key.id() == id) {
                return Err(GrantError::SameIdentifier(id));
            }
        }
        Ok(())
    }
}
