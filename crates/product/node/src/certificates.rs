//! Certificates of a configuration's nodes, as they are on this computer (`spec/security.md`, N-41, N-42).

use std::fmt;
use std::path::{Path, PathBuf};

use bumpless_config::{Certificates, Config, ReferenceKind};
use bumpless_pki::{Identity, IdentityPaths, Problems, system_clock};

/// The second part of the name in a witness's certificate, in which a node has its pair.
pub const WITNESS: &str = "witness";

/// Why a node has no identity.
#[derive(Debug)]
pub enum IdentityError {
    /// It has no folder with a certificate.
    Missing(Missing),
    /// Everything that is wrong with its files.
    Wrong(Problems),
}

/// A node without a certificate, and the commands that make it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The folder that it should have.
    pub folder: PathBuf,
    node: String,
    pair: String,
    /// Everybody of the pair who needs one, as `bumpless pki issue` takes it.
    everybody: Vec<String>,
}

impl Missing {
    fn new(config: &Config, node: &str, folder: PathBuf) -> Self {
        let nodes = config.nodes.iter();
        let nodes = nodes.map(|node| format!("{}.{}", node.name, config.pair));
        let references = config.references.iter();
        let witnesses = references.filter(|it| matches!(it.kind, ReferenceKind::Witness(_)));
        let witnesses = witnesses.map(|it| format!("{}.{WITNESS}", it.name));
        Self {
            folder,
            node: node.to_owned(),
            pair: config.pair.clone(),
            everybody: nodes.chain(witnesses).collect(),
        }
    }

    /// What is wrong.
    pub fn wrong(&self) -> String {
        format!(
            "node '{}' has no certificate here: there is no folder {}",
            self.node,
            self.folder.display()
        )
    }

    /// The commands that make certificates for the pair.
    pub fn commands(&self) -> [String; 2] {
        [
            "bumpless pki init --site SITE".into(),
            format!("bumpless pki issue {}", self.everybody.join(" ")),
        ]
    }

    /// What to do.
    pub fn remedy(&self) -> String {
        let [init, issue] = self.commands();
        format!(
            "make them on one computer, in a safe place:\n    {init}\n    {issue}\nand bring each folder to its computer, \
             this one to {}; for one secret in a file instead, write keys = [\"{}.key\"] in [security] (`bumpless key \
             new`), and to go without protection packets = \"open\"",
            self.folder.display(),
            self.pair
        )
    }
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(missing) => write!(f, "{}; {}", missing.wrong(), missing.remedy()),
            Self::Wrong(problems) => problems.fmt(f),
        }
    }
}

impl std::error::Error for IdentityError {}

/// Where the files of `node` of `pair` are below `folder`.
pub fn paths(folder: &Path, node: &str, pair: &str) -> IdentityPaths {
    IdentityPaths::in_folder(&own_folder(folder, node, pair))
}

fn own_folder(folder: &Path, node: &str, pair: &str) -> PathBuf {
    let own = folder.join(format!("{node}.{pair}").to_ascii_lowercase());
    // Without the `.` of `certificates = "."` in its middle.
    own.components().collect()
}

/// The identity of `node` of `config`, a configuration in `folder`.
///
/// # Errors
/// It has none, or everything that is wrong with its files.
pub fn identity(
    certificates: &Certificates,
    (config, node): (&Config, &str),
    folder: &Path,
) -> Result<Identity, IdentityError> {
    let own = own_folder(&folder.join(&certificates.folder), node, &config.pair);
    if own.symlink_metadata().is_err() {
        let missing = Missing::new(config, node, own);
        return Err(IdentityError::Missing(missing));
    }
    let paths = IdentityPaths::in_folder(&own);
    Identity::load(&paths, node, &config.pair, system_clock()).map_err(IdentityError::Wrong)
}

/// What a configuration in `folder` finds on this computer of the certificates of its nodes: each node's name and its
/// identity. A configuration may be checked where there is none.
pub fn identities(
    certificates: &Certificates,
    config: &Config,
    folder: &Path,
) -> Vec<(String, Result<Identity, IdentityError>)> {
    let nodes = config.nodes.iter().map(|node| node.name.clone());
    nodes
        .map(|node| {
            let identity = identity(certificates, (config, &node), folder);
            (node, identity)
        })
        .collect()
}
