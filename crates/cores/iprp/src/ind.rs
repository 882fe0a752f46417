//! Networks and what tells them apart.

use core::fmt;
use core::net::IpAddr;

/// Most networks of one host.
pub const MAX_NETWORKS: usize = 8;

/// Network discriminator (iPRP IV-D): 0 to 15, the same number at every host on one network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ind(u8);

impl Ind {
    /// Numbers that there are.
    pub const COUNT: usize = 16;

    /// The discriminator `number`, or `None` above 15.
    pub const fn new(number: u8) -> Option<Self> {
        if (number as usize) < Self::COUNT {
            Some(Self(number))
        } else {
            None
        }
    }

    /// The low four bits of `byte`.
    pub(crate) const fn of_low_bits(byte: u8) -> Self {
        Self(byte & 15)
    }

    /// The number, 0 to 15.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Ind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

/// A host on a network: which one, and its address there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Which network.
    pub ind: Ind,
    /// The host's address on it.
    pub address: IpAddr,
}

/// The networks of one host: at most [`MAX_NETWORKS`], each discriminator once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Networks {
    entries: [Option<Network>; MAX_NETWORKS],
}

/// Why networks cannot stand beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworksError {
    /// Two have the same discriminator: copies would share a network.
    SameInd(Ind),
    /// There are more than [`MAX_NETWORKS`].
    TooMany,
}

impl fmt::Display for NetworksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameInd(ind) => write!(
                f,
                "two networks have the discriminator {ind}: give each its own"
            ),
            Self::TooMany => write!(
                f,
                "more than {MAX_NETWORKS} networks: name those that packets are to use"
            ),
        }
    }
}

impl core::error::Error for NetworksError {}

impl Networks {
    /// These networks.
    ///
    /// # Errors
    /// Two with one discriminator, or too many.
    pub fn new(networks: &[Network]) -> Result<Self, NetworksError> {
        let mut all = Self::default();
        for &network in networks {
            all.push(network)?;
        }
        Ok(all)
    }

    pub(crate) fn push(&mut self, network: Network) -> Result<(), NetworksError> {
        if self.get(network.ind).is_some() {
            return Err(NetworksError::SameInd(network.ind));
        }
        let free = self.entries.iter_mut().find(|entry| entry.is_none());
        *free.ok_or(NetworksError::TooMany)? = Some(network);
        Ok(())
    }

    /// All, in the order given.
    pub fn iter(&self) -> impl Iterator<Item = Network> + '_ {
        self.entries.iter().flatten().copied()
    }

    /// The host's address on the network `ind`.
    pub fn get(&self, ind: Ind) -> Option<IpAddr> {
        let found = self.iter().find(|network| network.ind == ind);
        found.map(|network| network.address)
    }

    /// Whether what is sent on the network `ind` can go to `to`: the host's address there is of the same family.
    pub(crate) fn reaches(&self, ind: Ind, to: IpAddr) -> bool {
        self.get(ind)
            .is_some_and(|own| own.is_ipv4() == to.is_ipv4())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether `address` is the host's on one of them.
    pub fn has_address(&self, address: IpAddr) -> bool {
        self.iter().any(|network| network.address == address)
    }
}
