//! What a node shows of itself, and whom it believes: certificate, key, authorities and revocation list, checked.

mod found;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;

use self::found::Found;
use crate::certificate::{Certificate, CertificateFault};
use crate::clock::{Clock, now, told};
use crate::name::NodeName;
use crate::problem::{Cause, Problems};
use crate::trust::Trust;

/// The end of a certificate is told so many seconds before.
const CARE: u64 = 30 * 24 * 3600;

/// Where a node's certificate, key and authorities are, each in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityPaths {
    /// The node's certificate, and after it those between it and the authority's, if there are any.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The certificates of the authorities that count.
    pub authorities: PathBuf,
    /// What they have revoked; `None`: nothing.
    pub revoked: Option<PathBuf>,
}

impl IdentityPaths {
    /// Of the files in `folder` as `bumpless pki issue` names them. The revocation list may be missing.
    pub fn in_folder(folder: &Path) -> Self {
        let revoked = folder.join(Self::REVOKED);
        Self {
            certificate: folder.join(Self::CERTIFICATE),
            key: folder.join(Self::KEY),
            authorities: folder.join(Self::AUTHORITY),
            revoked: revoked.symlink_metadata().is_ok().then_some(revoked),
        }
    }

    pub(crate) const CERTIFICATE: &str = "certificate.pem";
    pub(crate) const KEY: &str = "key.pem";
    pub(crate) const AUTHORITY: &str = "authority.pem";
    pub(crate) const REVOKED: &str = "revoked.pem";
}

/// A node's certificate and key, and whom it believes.
#[derive(Debug)]
pub struct Identity {
    name: NodeName,
    certificate: Certificate,
    certified: Arc<CertifiedKey>,
    trust: Arc<Trust>,
    /// With the authorities that have ended: judges who was believed while they counted.
    before: Arc<Trust>,
    clock: Clock,
    provider: Arc<CryptoProvider>,
    notes: Vec<String>,
}

impl Identity {
    /// The identity of `node` of `pair`, as the configuration calls them. It is judged by `clock`, and so are the partners
    /// of its sessions.
    ///
    /// A revocation list that changes is read by loading the identity again, or with [`Identity::with_lists`].
    ///
    /// # Errors
    /// Everything that is wrong with the files.
    pub fn load(
        paths: &IdentityPaths,
        node: &str,
        pair: &str,
        clock: Clock,
    ) -> Result<Self, Problems> {
        Self::load_found(paths, clock, |certificate| {
            own_name(certificate, node, pair)
        })
    }

    /// The identity that the certificate itself names, which has one name of a node. It is judged as in [`Identity::load`].
    ///
    /// # Errors
    /// Everything that is wrong with the files.
    pub fn load_as_named(paths: &IdentityPaths, clock: Clock) -> Result<Self, Problems> {
        Self::load_found(paths, clock, only_name)
    }

    fn load_found(
        paths: &IdentityPaths,
        clock: Clock,
        name: impl FnOnce(&Certificate) -> Result<NodeName, Cause>,
    ) -> Result<Self, Problems> {
        let mut found = Found::read(paths, now(&clock));
        let name = found.name(name);
        let certified = found.certified();
        let trust = found.trust(name.as_ref().map(|(name, _)| name.as_str()));
        match (name, certified, trust, found.problems.is_empty()) {
            (Some((name, certificate)), Some(certified), Some((trust, before)), true) => Ok(Self {
                name,
                certificate,
                certified,
                trust,
                before,
                clock,
                provider: found.provider,
                notes: found.notes,
            }),
            _ => Err(Problems(found.problems)),
        }
    }

    /// The identity of the same node, by the same clock, as `paths` have it by now.
    ///
    /// # Errors
    /// Everything that is wrong with the files.
    pub fn load_again(&self, paths: &IdentityPaths) -> Result<Self, Problems> {
        let (node, pair) = (self.name.node(), self.name.pair());
        Self::load(paths, node, pair, self.clock())
    }

    /// This identity with the authorities and the revocation list that `paths` have by now. *So a list counts where the
    /// node's own certificate has ended, or another one is just being copied.*
    ///
    /// # Errors
    /// Everything that is wrong with the files of authorities and list.
    pub fn with_lists(&self, paths: &IdentityPaths) -> Result<Self, Problems> {
        let mut found = Found::of(paths, now(&self.clock));
        found.takes_ended = true;
        found.read_trust();
        found.chain = Some(self.certified.cert.clone());
        let believed = found.believed();
        match (believed, found.problems.is_empty()) {
            (Some((trust, before)), true) => Ok(Self {
                name: self.name.clone(),
                certificate: self.certificate.clone(),
                certified: Arc::clone(&self.certified),
                trust,
                before,
                clock: self.clock(),
                provider: found.provider,
                notes: found.notes,
            }),
            _ => Err(Problems(found.problems)),
        }
    }

    /// What the node is called in its certificate.
    pub fn name(&self) -> &NodeName {
        &self.name
    }

    /// What its certificate says.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// What will need care, a line each: an authority that has ended, a revocation list that should have been renewed.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// That the node's certificate has ended, or will before long: within 30 days, or the last third of its time if that
    /// is shorter. Sessions that are there go on; new ones cannot be made after the end.
    pub fn ending(&self) -> Option<String> {
        let (now, ends) = (now(&self.clock), self.certificate.ends);
        let lasts = ends
            .as_secs()
            .saturating_sub(self.certificate.begins.as_secs());
        let soon = CARE.min(lasts / 3);
        let left = ends.as_secs().saturating_sub(now.as_secs());
        (left < soon).then(|| {
            let (ends, name) = (told(ends), self.name.short());
            let verb = if left == 0 { "has ended" } else { "ends" };
            format!(
                "the certificate of {name} {verb} on {ends}; issue another one with 'bumpless pki issue {name}' before new sessions are refused"
            )
        })
    }

    pub(crate) fn clock(&self) -> Clock {
        Arc::clone(&self.clock)
    }

    pub(crate) fn provider(&self) -> Arc<CryptoProvider> {
        Arc::clone(&self.provider)
    }

    pub(crate) fn trust(&self) -> Arc<Trust> {
        Arc::clone(&self.trust)
    }

    /// Judges who was believed once, by authorities that may have ended since.
    pub(crate) fn before(&self) -> &Trust {
        &self.before
    }

    pub(crate) fn certified(&self) -> CertifiedKey {
        CertifiedKey::clone(&self.certified)
    }
}

/// The one name of `node` of `pair` in its certificate.
fn own_name(certificate: &Certificate, node: &str, pair: &str) -> Result<NodeName, Cause> {
    // Any site will do to see whether the names can stand in a certificate.
    let wanted = NodeName::new(node, pair, "site")?;
    let names = certificate.names.iter();
    let names = names.filter_map(|name| NodeName::parse(name).ok());
    let mut mine: Vec<_> = names
        .filter(|name| name.short() == wanted.short())
        .collect();
    match (mine.pop(), mine.is_empty()) {
        (Some(name), true) => Ok(name),
        (Some(name), false) => {
            let names = mine.iter().chain([&name]).map(ToString::to_string);
            Err(CertificateFault::SeveralNames(names.collect()).into())
        }
        (None, _) => Err(CertificateFault::OtherName {
            expected: vec![format!("{}.SITE", wanted.short())],
            found: certificate.names.clone(),
        }
        .into()),
    }
}

/// The one name of a node in a certificate.
fn only_name(certificate: &Certificate) -> Result<NodeName, Cause> {
    let names = certificate.names.iter();
    let mut names: Vec<_> = names
        .filter_map(|name| NodeName::parse(name).ok())
        .collect();
    match (names.pop(), names.is_empty()) {
        (Some(name), true) => Ok(name),
        (Some(name), false) => {
            let names = names.iter().chain([&name]).map(ToString::to_string);
            Err(CertificateFault::SeveralNames(names.collect()).into())
        }
        (None, _) => Err(CertificateFault::OtherName {
            expected: vec!["HOST.GROUP.SITE".into()],
            found: certificate.names.clone(),
        }
        .into()),
    }
}
