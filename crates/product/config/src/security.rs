//! What protects messages on the networks.

use std::fmt;
use std::path::PathBuf;

use std::net::SocketAddr;

use bumpless_base::Duration;
use bumpless_secure::state::StateHeader;
use bumpless_wire::EnvelopeHeader;

/// What protects messages between nodes, and between nodes and witnesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Security {
    /// Each is sealed in an envelope (`spec/security.md`) with the secret in the first of these files, and opened with
    /// any of them. A path that is not absolute begins at the configuration's folder.
    Protected(Vec<PathBuf>),
    /// Each is sealed with secrets that nodes agree on by themselves, in sessions in which each shows its certificate
    /// (`spec/management.md`).
    Certificates(Certificates),
    /// Nothing.
    Open,
}

/// Where certificates are, and how long keys last that are agreed on with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    /// A folder with one for each node, NODE.PAIR. A path that is not absolute begins at the configuration's folder.
    pub folder: PathBuf,
    /// After this a key is replaced.
    pub key_lifetime: Duration,
    /// Who gives nodes the keys for what they send each other, instead of their sessions; the first one is asked before the
    /// others. Empty: nobody.
    pub key_servers: Vec<KeyServerAt>,
}

/// Where a key server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyServerAt {
    /// What it is called: its certificate has the name NAME.keys at the node's own site.
    pub name: String,
    /// Where it answers, by TCP.
    pub address: SocketAddr,
}

impl Security {
    /// Whether keys for what nodes send each other come from key servers.
    pub const fn has_key_servers(&self) -> bool {
        matches!(self, Self::Certificates(given) if !given.key_servers.is_empty())
    }

    /// Bytes that it adds to each message.
    pub const fn overhead(&self) -> u16 {
        match self {
            Self::Protected(_) | Self::Certificates(_) => EnvelopeHeader::OVERHEAD as u16,
            Self::Open => 0,
        }
    }
}

/// What protects the states of one channel by themselves, above the messages that carry them (first paper, 7.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateSecurity {
    /// What proves that a state is as it was.
    pub integrity: Integrity,
    /// Whether it is enciphered.
    pub encryption: Encryption,
    /// By what a state that comes again shows.
    pub replay: Replay,
    /// Where its keys come from.
    pub keys: StateKeys,
}

impl StateSecurity {
    /// Nothing: messages protect states, if anything does.
    pub const NONE: Self = Self {
        integrity: Integrity::None,
        encryption: Encryption::None,
        replay: Replay::None,
        keys: StateKeys::None,
    };

    /// Whether anything is done to states.
    pub fn is_none(&self) -> bool {
        self.integrity == Integrity::None
    }

    /// Bytes that it adds to each state.
    pub fn overhead(&self) -> u32 {
        match self.is_none() {
            true => 0,
            false => StateHeader::OVERHEAD as u32,
        }
    }
}

impl fmt::Display for StateSecurity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            integrity,
            encryption,
            replay,
            keys,
        } = self;
        write!(
            f,
            "integrity {}, encryption {}, replay {}, keys {}",
            integrity.name(),
            encryption.name(),
            replay.name(),
            keys.name()
        )
    }
}

/// What proves that a state is as it was when it was published (table 19, integrity mechanism).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Integrity {
    /// Nothing.
    None,
    /// A check sequence: against faults.
    Checksum,
    /// A tag by a secret.
    Symmetric,
    /// A tag by a secret that only the two have who have shown each other their certificates.
    Certificate,
}

impl Integrity {
    /// As the file names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Checksum => "checksum",
            Self::Symmetric => "symmetric",
            Self::Certificate => "certificate",
        }
    }
}

/// Whether a state is enciphered (table 19, encryption mechanism).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encryption {
    /// It is not.
    None,
    /// By the one of the next two that is faster on the computer that seals.
    Symmetric,
    /// By AES-256-GCM.
    Aes256Gcm,
    /// By ChaCha20-Poly1305.
    ChaCha20Poly1305,
}

impl Encryption {
    /// As the file names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Symmetric => "symmetric",
            Self::Aes256Gcm => "aes-256-gcm",
            Self::ChaCha20Poly1305 => "chacha20-poly1305",
        }
    }
}

/// By what a state that comes again shows (table 19, replay protection).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Replay {
    /// By nothing.
    None,
    /// By a counter.
    Counter,
    /// By a counter, and the session in which its key was agreed on.
    Session,
    /// By the time at which it was published.
    Timestamp,
}

impl Replay {
    /// As the file names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Counter => "counter",
            Self::Session => "session",
            Self::Timestamp => "timestamp",
        }
    }
}

/// Where the keys of states come from (table 19, key exchange).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateKeys {
    /// None is needed.
    None,
    /// From these files. A path that is not absolute begins at the configuration's folder.
    Files(Vec<PathBuf>),
    /// From the sessions in which nodes agree on keys.
    Sessions,
    /// From the key servers.
    Servers,
}

impl StateKeys {
    /// As the file names it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Files(_) => "file",
            Self::Sessions => "session",
            Self::Servers => "server",
        }
    }
}
