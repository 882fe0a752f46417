//! One key of a group.

use core::fmt;

use zeroize::Zeroizing;

use crate::keys::{Secret, identifier};
use crate::suite::Suite;

/// Where a key stands among all that a group has had: a later one is greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The era: another one begins where a server begins to make keys that did not make the ones before.
    pub era: u64,
    /// The number within all eras, which is given to one key only (`SecurityTokenId`).
    pub token: u64,
}

/// A secret of a group, with the identifier by which packets name it. Overwritten when dropped, and shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct GroupKey {
    bytes: Zeroizing<[u8; 32]>,
    id: u16,
}

impl GroupKey {
    /// The key of these bytes, with the identifier that `S` gives it.
    pub fn new<S: Suite>(bytes: Zeroizing<[u8; 32]>) -> Self {
        let id = identifier::<S>(&bytes);
        Self { bytes, id }
    }

    /// The identifier in packets (N-4).
    pub const fn id(&self) -> u16 {
        self.id
    }

    /// For a [`Keyring`](crate::Keyring).
    pub fn secret(&self) -> Secret {
        Secret::new(*self.bytes)
    }

    /// Its bytes, for whoever stores it or passes it on to members.
    pub const fn bytes(&self) -> &Zeroizing<[u8; 32]> {
        &self.bytes
    }
}

impl fmt::Debug for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupKey({:04x})", self.id)
    }
}
