//! The keys that a node starts with.

use std::path::Path;
use std::sync::Arc;

use bumpless_base::NodeId;
use bumpless_config::{Config, Security};
use bumpless_pki::Identity;
use bumpless_secure::{Keyring, RingSuite};

use crate::opening::PacketKeys;
use crate::{RunError, certificates, key_file, state_security};

/// The keys of messages; those of states are there, too.
///
/// # Errors
/// What is missing or wrong, all of it.
pub fn read_keys((config, node): (&Config, NodeId), folder: &Path) -> Result<Keys, RunError> {
    let keys = Keys::read((config, node), folder);
    let of_states = state_security::key_problems(config, folder);
    if of_states.is_empty() {
        return keys;
    }
    match keys {
        Ok(_) => Err(RunError::Keys(of_states)),
        Err(RunError::Keys(mut errors)) => {
            let known: Vec<_> = errors.iter().map(|error| error.path.clone()).collect();
            let others = of_states.into_iter();
            errors.extend(others.filter(|error| !known.contains(&error.path)));
            Err(RunError::Keys(errors))
        }
        Err(other) => Err(other),
    }
}

/// Where the keys of packets come from, and with what.
pub enum Keys {
    /// Nothing is sealed.
    Open,
    /// Keys of all messages, from files.
    Files(Arc<Keyring<RingSuite>>),
    /// Sessions agree on keys, with this identity.
    Sessions(Box<Identity>),
}

impl Keys {
    fn read((config, node): (&Config, NodeId), folder: &Path) -> Result<Self, RunError> {
        if let Security::Certificates(given) = &config.security {
            let node = config.nodes.get(usize::from(node.0));
            let called = node.map_or("", |node| node.name.as_str());
            let identity = certificates::identity(given, (config, called), folder);
            let identity = identity.map_err(RunError::Identity)?;
            return Ok(Self::Sessions(identity.into()));
        }
        let keys = key_file::for_config(&config.security, folder).map_err(RunError::Keys)?;
        Ok(keys.map_or(Self::Open, |keys| Self::Files(Arc::new(keys))))
    }

    /// As those who open the links are given them.
    pub const fn packets(&self) -> PacketKeys<'_> {
        match self {
            Self::Open => PacketKeys::None,
            Self::Files(keys) => PacketKeys::Given(keys),
            Self::Sessions(_) => PacketKeys::Agreed,
        }
    }
}
