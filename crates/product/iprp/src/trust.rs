//! What protects a host's messages to others, as its file says and as it is on this host: a key that all share, or a certificate.

use std::fmt;
use std::path::{Path, PathBuf};

use bumpless_node::key_file::{self, KeyFileError};
use bumpless_pki::{BadName, Expected, Identity, IdentityPaths, Problems, system_clock, told};
use bumpless_secure::{Keyring, RingSuite};

use crate::config::{Config, Security};
use crate::groups::GroupKeys;

/// What was found.
pub enum Trust {
    /// A secret that all hosts have.
    Keys(Keyring<RingSuite>),
    /// A certificate of this host's own.
    Certificate(Box<Own>),
}

/// A host's certificate, and whom it lets in.
pub struct Own {
    /// What it shows, and whose certificates it believes.
    pub identity: Identity,
    /// Where that is read again.
    pub paths: IdentityPaths,
    /// Who is let in.
    pub expected: Expected,
}

/// Why nothing protects a host's messages, so that it does not start.
#[derive(Debug)]
pub enum TrustError {
    /// Key files that cannot be used.
    Keys(Vec<KeyFileError>),
    /// There is no folder with a certificate.
    NoFolder(PathBuf),
    /// Everything that is wrong with the files in it.
    Certificate(Problems),
    /// A name in `peers` that no certificate can have.
    Peer(BadName),
}

impl fmt::Display for TrustError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keys(errors) => f.write_str(&key_file::told(errors)),
            Self::NoFolder(folder) => write!(
                f,
                "{}: there is no such folder, so this host has no certificate; make them on one computer, in a safe place:\n    \
                 bumpless pki init --site SITE\n    bumpless pki issue HOST.GROUP OTHER-HOST.GROUP\nand bring each folder to its host, \
                 this one to {}; for one secret in a file instead, write keys = [\"group.key\"] in [security] (`bumpless key new`)",
                folder.display(),
                folder.display()
            ),
            Self::Certificate(problems) => problems.fmt(f),
            Self::Peer(error) => write!(f, "[security] peers: {error}"),
        }
    }
}

impl std::error::Error for TrustError {}

/// What protects the messages of the host with the file at `file`, whose content is `config`.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load(config: &Config, file: &Path) -> Result<Trust, TrustError> {
    let beside = key_file::folder_of(Some(file));
    match &config.security {
        Security::Keys(keys) => key_file::load(keys, beside)
            .map(Trust::Keys)
            .map_err(TrustError::Keys),
        Security::Certificates { folder, peers } => {
            own(&beside.join(folder), peers.as_deref()).map(|own| Trust::Certificate(Box::new(own)))
        }
    }
}

/// The secrets of the groups in the file at `file`, whose content is `config`.
///
/// # Errors
/// Every key file that cannot be used, each once for each group.
pub fn groups(config: &Config, file: &Path) -> Result<Vec<GroupKeys>, TrustError> {
    let beside = key_file::folder_of(Some(file));
    let (mut all, mut errors) = (Vec::new(), Vec::new());
    for group in &config.groups {
        match key_file::load(&group.keys, beside) {
            Ok(ring) => all.push(GroupKeys::new(group.address, &ring)),
            Err(several) => errors.extend(several),
        }
    }
    match errors.is_empty() {
        true => Ok(all),
        false => Err(TrustError::Keys(errors)),
    }
}

fn own(folder: &Path, peers: Option<&[String]>) -> Result<Own, TrustError> {
    if folder.symlink_metadata().is_err() {
        return Err(TrustError::NoFolder(folder.to_owned()));
    }
    let paths = IdentityPaths::in_folder(folder);
    let identity =
        Identity::load_as_named(&paths, system_clock()).map_err(TrustError::Certificate)?;
    let expected = match peers {
        None => Expected::GroupOf(identity.name().clone()),
        Some(names) => {
            let names = names.iter().map(|name| identity.name().partner(name));
            Expected::Nodes(names.collect::<Result<_, _>>().map_err(TrustError::Peer)?)
        }
    };
    Ok(Own {
        identity,
        paths,
        expected,
    })
}

/// What this host shows of itself to others, for who looks at it before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// What its certificate calls it.
    pub name: String,
    /// Until when.
    pub ends: String,
    /// What will need care.
    pub notes: Vec<String>,
}

impl Trust {
    /// What its certificate says, if it has one.
    pub fn shown(&self) -> Option<Shown> {
        match self {
            Self::Keys(_) => None,
            Self::Certificate(own) => Some(Shown {
                name: own.identity.name().to_string(),
                ends: told(own.identity.certificate().ends),
                notes: own.identity.notes().to_vec(),
            }),
        }
    }
}
