//! What a node shows of itself, and whom it believes: certificate, key, authorities and revocation list, checked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::{CryptoProvider, ring};
use rustls::sign::CertifiedKey;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, UnixTime};
use zeroize::Zeroizing;

use crate::certificate::{Certificate, CertificateFault};
use crate::clock::{Clock, now, told};
use crate::key;
use crate::list::RevocationList;
use crate::name::NodeName;
use crate::pem;
use crate::problem::{Cause, Problem, Problems};
use crate::refusal::{Refusal, explain};
use crate::trust::Trust;

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
    clock: Clock,
    provider: Arc<CryptoProvider>,
    notes: Vec<String>,
}

impl Identity {
    /// The identity of `node` of `pair`, as the configuration calls them. It is judged by `clock`, and so are the partners
    /// of its sessions.
    ///
    /// A revocation list that changes is read by loading the identity again.
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
            (Some((name, certificate)), Some(certified), Some(trust), true) => Ok(Self {
                name,
                certificate,
                certified,
                trust,
                clock,
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

    pub(crate) fn clock(&self) -> Clock {
        Arc::clone(&self.clock)
    }

    pub(crate) fn provider(&self) -> Arc<CryptoProvider> {
        Arc::clone(&self.provider)
    }

    pub(crate) fn trust(&self) -> Arc<Trust> {
        Arc::clone(&self.trust)
    }

    pub(crate) fn certified(&self) -> CertifiedKey {
        CertifiedKey::clone(&self.certified)
    }
}

/// What the files have, each that could be read, and what is wrong with all.
struct Found<'a> {
    paths: &'a IdentityPaths,
    now: UnixTime,
    provider: Arc<CryptoProvider>,
    chain: Option<Vec<CertificateDer<'static>>>,
    key: Option<Zeroizing<PrivateKeyDer<'static>>>,
    authorities: Option<Vec<CertificateDer<'static>>>,
    lists: Option<Vec<CertificateRevocationListDer<'static>>>,
    problems: Vec<Problem>,
    notes: Vec<String>,
}

impl<'a> Found<'a> {
    fn read(paths: &'a IdentityPaths, now: UnixTime) -> Self {
        let mut found = Self {
            paths,
            now,
            provider: Arc::new(ring::default_provider()),
            chain: None,
            key: None,
            authorities: None,
            lists: None,
            problems: Vec::new(),
            notes: Vec::new(),
        };
        found.chain = found.keep(&paths.certificate, pem::certificates(&paths.certificate));
        found.key = found.keep(&paths.key, pem::key(&paths.key));
        found.authorities = found.keep(&paths.authorities, pem::certificates(&paths.authorities));
        found.lists = match &paths.revoked {
            Some(path) => found.keep(path, pem::lists(path)),
            None => Some(Vec::new()),
        };
        found
    }

    fn keep<T>(&mut self, path: &Path, result: Result<T, impl Into<Cause>>) -> Option<T> {
        result.map_err(|cause| self.add(path, cause)).ok()
    }

    /// Tells a problem, each once.
    fn add(&mut self, path: &Path, cause: impl Into<Cause>) {
        let problem = Problem::at(path, cause);
        let said = problem.to_string();
        if !self.problems.iter().any(|it| it.to_string() == said) {
            self.problems.push(problem);
        }
    }

    /// What the node is called, and what else its certificate says.
    fn name(
        &mut self,
        name: impl FnOnce(&Certificate) -> Result<NodeName, Cause>,
    ) -> Option<(NodeName, Certificate)> {
        let path = &self.paths.certificate;
        let own = self.chain.as_ref()?.first()?;
        let certificate = self.keep(path, Certificate::read(own))?;
        if let Err(fault) = certificate.check_time(self.now) {
            self.add(path, fault);
        }
        if !certificate.signs {
            self.add(path, CertificateFault::Usage("digital signatures"));
        }
        let name = self.keep(path, name(&certificate))?;
        Some((name, certificate))
    }

    fn certified(&mut self) -> Option<Arc<CertifiedKey>> {
        let (chain, key) = (self.chain.clone()?, self.key.as_ref()?);
        let certified = key::certified(chain, key, &self.paths.certificate);
        let path = match certified {
            Err(Cause::Certificate(_)) => &self.paths.certificate,
            _ => &self.paths.key,
        };
        self.keep(path, certified).map(Arc::new)
    }

    /// The authorities, if the node's own certificate is one of theirs.
    fn trust(&mut self, name: Option<&str>) -> Option<Arc<Trust>> {
        let roots = self.roots()?;
        let lists = self.lists.clone()?;
        self.judge_lists(&lists);
        let path = self.paths.revoked.as_deref().unwrap_or(Path::new(""));
        let trust = Trust::new(roots, &lists, &self.provider);
        let trust = self.keep(path, trust.map_err(|_| Cause::Garbled("revocation list")))?;
        let (own, between) = self.chain.as_ref()?.split_first()?;
        let called = |name| trust.check_called(own, between, name, self.now);
        let judged = trust
            .check_calling(own, between, self.now)
            .and_then(|()| name.map_or(Ok(()), called));
        if let Err(error) = judged {
            self.refuse(explain(&error));
        }
        Some(Arc::new(trust))
    }

    fn refuse(&mut self, refusal: Refusal) {
        let fault = match refusal {
            Refusal::Partner(fault) => fault,
            other => CertificateFault::Other(other.wrong()),
        };
        let path = match (&fault, &self.paths.revoked) {
            (CertificateFault::RevocationList(_), Some(path)) => path,
            _ => &self.paths.certificate,
        };
        self.add(path, fault);
    }

    /// The authorities that are valid. Those that have ended do not count, and are told if others are left.
    fn roots(&mut self) -> Option<RootCertStore> {
        let path = &self.paths.authorities;
        let mut roots = RootCertStore::empty();
        let (mut ended, mut wrong) = (Vec::new(), Vec::new());
        for der in self.authorities.as_ref()? {
            match authority(der, self.now) {
                Ok(_) if roots.add(der.clone()).is_ok() => {}
                Ok(_) => wrong.push(CertificateFault::Garbled),
                Err(
                    fault @ (CertificateFault::Expired { .. } | CertificateFault::NotYet { .. }),
                ) => {
                    ended.push(fault);
                }
                Err(fault) => wrong.push(fault),
            }
        }
        match roots.is_empty() {
            true => wrong.append(&mut ended),
            false => {
                let told = |it: &CertificateFault| {
                    format!(
                        "{}: an authority's certificate {}",
                        path.display(),
                        it.wrong()
                    )
                };
                self.notes.extend(ended.iter().map(told));
            }
        }
        let fine = wrong.is_empty();
        wrong.into_iter().for_each(|fault| self.add(path, fault));
        fine.then_some(roots)
    }

    /// Whether the lists are of the authorities, or of those between them and the node.
    fn judge_lists(&mut self, lists: &[CertificateRevocationListDer<'static>]) {
        let Some(path) = &self.paths.revoked else {
            return;
        };
        let known = self.authorities.iter().chain(&self.chain).flatten();
        let known: Vec<_> = known
            .filter_map(|der| Certificate::read(der).ok())
            .map(|read| read.subject_der)
            .collect();
        for der in lists {
            match RevocationList::read(der) {
                Some(list) if !known.contains(&list.issuer_der) => {
                    self.add(path, Cause::OtherList);
                }
                Some(list) => self.notes.extend(overdue(&list, path, self.now)),
                // What rustls still reads of it may belong to nobody, and so revoke nothing.
                None => self.add(path, Cause::Garbled("revocation list")),
            }
        }
    }
}

/// What an authority's certificate says, if it is valid.
fn authority(der: &CertificateDer<'_>, now: UnixTime) -> Result<Certificate, CertificateFault> {
    let read = Certificate::read(der)?;
    match read.authority {
        true => read.check_time(now).map(|()| read),
        false => Err(CertificateFault::NoAuthority),
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

/// Tells a list for which there should be a newer one.
fn overdue(list: &RevocationList, path: &Path, now: UnixTime) -> Option<String> {
    let due = list.renewed.filter(|&due| now > due)?;
    let path = path.display();
    Some(format!(
        "{path}: the revocation list should have been renewed by {}; what was revoked since then is not known here",
        told(due)
    ))
}
