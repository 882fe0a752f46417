//! What stands before and behind a sealed state.
//!
//! | offset | length | field |
//! |---|---|---|
//! | 0 | 1 | version of this layout, 1 |
//! | 1 | 1 | method |
//! | 2 | 2 | identifier of the secret; 0 without |
//! | 4 | 2 | channel |
//! | 6 | 1 | number of the node that sealed |
//! | 7 | 1 | zero |
//! | 8 | 8 | origin: random for each process of the node and each channel |
//! | 16 | 8 | counter: the states of an origin, from 1 |
//! | 24 | 8 | when it was published, nanoseconds since 1970 by the sender's computer; 0 unless times are compared |
//! | 32 | n | the state |
//! | 32 + n | 16 | tag, or check sequence and eight zeros |

use super::{StateRefusal, StateWay};

const VERSION: u8 = 1;

/// How a state is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// CRC-64: changes by faults show.
    Checksum,
    /// Poly1305 of ChaCha20-Poly1305 over everything: readable, and authenticated.
    Authenticated,
    /// Enciphered and authenticated by AES-256-GCM.
    Aes256Gcm,
    /// Enciphered and authenticated by ChaCha20-Poly1305.
    ChaCha20Poly1305,
}

impl Method {
    const ALL: [(u8, Self); 4] = [
        (1, Self::Checksum),
        (2, Self::Authenticated),
        (3, Self::Aes256Gcm),
        (4, Self::ChaCha20Poly1305),
    ];

    pub(super) const fn number(self) -> u8 {
        match self {
            Self::Checksum => 1,
            Self::Authenticated => 2,
            Self::Aes256Gcm => 3,
            Self::ChaCha20Poly1305 => 4,
        }
    }

    /// Whether it takes a secret.
    pub const fn takes_key(self) -> bool {
        !matches!(self, Self::Checksum)
    }
}

/// What stands before a sealed state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateHeader {
    /// How it is sealed.
    pub method: Method,
    /// Identifier of the secret, 0 without.
    pub key: u16,
    /// Of which channel, by which node.
    pub way: StateWay,
    /// Random for each process of the node and each channel.
    pub origin: u64,
    /// The states of an origin, from 1.
    pub counter: u64,
    /// When it was published, nanoseconds since 1970; 0 unless times are compared.
    pub published_ns: u64,
}

impl StateHeader {
    /// Its length, bytes.
    pub const LEN: usize = 32;
    /// What stands behind the state, bytes.
    pub const TAIL_LEN: usize = 16;
    /// What sealing adds to a state, bytes.
    pub const OVERHEAD: usize = Self::LEN + Self::TAIL_LEN;

    pub(super) fn encode(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[0] = VERSION;
        bytes[1] = self.method.number();
        bytes[2..4].copy_from_slice(&self.key.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.way.channel.to_be_bytes());
        bytes[6] = self.way.from;
        bytes[8..16].copy_from_slice(&self.origin.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.counter.to_be_bytes());
        bytes[24..].copy_from_slice(&self.published_ns.to_be_bytes());
        bytes
    }

    /// The header of a sealed state. What it says is not proven yet.
    ///
    /// # Errors
    /// [`StateRefusal::NotSealed`]: there is none.
    pub fn parse(state: &[u8]) -> Result<Self, StateRefusal> {
        let bytes = state.first_chunk::<{ Self::LEN }>();
        let bytes = bytes.filter(|_| state.len() >= Self::OVERHEAD);
        let bytes = bytes.ok_or(StateRefusal::NotSealed)?;
        let known = Method::ALL.iter().find(|known| known.0 == bytes[1]);
        let (Some(&(_, method)), VERSION, 0) = (known, bytes[0], bytes[7]) else {
            return Err(StateRefusal::NotSealed);
        };
        let long = |at: usize| {
            let mut long = [0; 8];
            long.copy_from_slice(&bytes[at..at + 8]);
            u64::from_be_bytes(long)
        };
        Ok(Self {
            method,
            key: u16::from_be_bytes([bytes[2], bytes[3]]),
            way: StateWay {
                channel: u16::from_be_bytes([bytes[4], bytes[5]]),
                from: bytes[6],
            },
            origin: long(8),
            counter: long(16),
            published_ns: long(24),
        })
    }

    /// The first `len` bytes of the state in `sealed` that are not enciphered. They are not proven: what is decided by
    /// them must not matter once the state is opened.
    pub fn front(sealed: &[u8], len: usize) -> Option<&[u8]> {
        Self::parse(sealed).ok()?;
        let state = sealed.get(Self::LEN..sealed.len() - Self::TAIL_LEN)?;
        state.get(..len)
    }
}
