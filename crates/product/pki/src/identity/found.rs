//! What is in the files of an identity, and what is wrong with them.

use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::{CryptoProvider, ring};
use rustls::sign::CertifiedKey;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, UnixTime};
use zeroize::Zeroizing;

use super::IdentityPaths;
use crate::certificate::{Certificate, CertificateFault};
use crate::clock::told;
use crate::key;
use crate::list::RevocationList;
use crate::name::NodeName;
use crate::pem;
use crate::problem::{Cause, Problem};
use crate::refusal::{Refusal, explain};
use crate::trust::Trust;

/// What the files have, each that could be read, and what is wrong with all.
pub struct Found<'a> {
    paths: &'a IdentityPaths,
    now: UnixTime,
    /// Authorities that have ended count where there are no others: who is believed already goes on being so.
    pub takes_ended: bool,
    pub provider: Arc<CryptoProvider>,
    pub chain: Option<Vec<CertificateDer<'static>>>,
    key: Option<Zeroizing<PrivateKeyDer<'static>>>,
    authorities: Option<Vec<CertificateDer<'static>>>,
    lists: Option<Vec<CertificateRevocationListDer<'static>>>,
    pub problems: Vec<Problem>,
    pub notes: Vec<String>,
}

impl<'a> Found<'a> {
    pub fn of(paths: &'a IdentityPaths, now: UnixTime) -> Self {
        Self {
            paths,
            now,
            takes_ended: false,
            provider: Arc::new(ring::default_provider()),
            chain: None,
            key: None,
            authorities: None,
            lists: None,
            problems: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub fn read(paths: &'a IdentityPaths, now: UnixTime) -> Self {
        let mut found = Self::of(paths, now);
        found.chain = found.keep(&paths.certificate, pem::certificates(&paths.certificate));
        found.key = found.keep(&paths.key, pem::key(&paths.key));
        found.read_trust();
        found
    }

    pub fn read_trust(&mut self) {
        let paths = self.paths;
        self.authorities = self.keep(&paths.authorities, pem::certificates(&paths.authorities));
        self.lists = match &paths.revoked {
            Some(path) => self.keep(path, pem::lists(path)),
            None => Some(Vec::new()),
        };
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
    pub fn name(
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

    pub fn certified(&mut self) -> Option<Arc<CertifiedKey>> {
        let (chain, key) = (self.chain.clone()?, self.key.as_ref()?);
        let certified = key::certified(chain, key, &self.paths.certificate);
        let path = match certified {
            Err(Cause::Certificate(_)) => &self.paths.certificate,
            _ => &self.paths.key,
        };
        self.keep(path, certified).map(Arc::new)
    }

    /// The authorities that count, and those that did besides, if the node's own certificate is one of the former's.
    pub fn trust(&mut self, name: Option<&str>) -> Option<(Arc<Trust>, Arc<Trust>)> {
        let (trust, before) = self.believed()?;
        let (own, between) = self.chain.as_ref()?.split_first()?;
        let called = |name| trust.check_called(own, between, name, self.now);
        let judged = trust
            .check_calling(own, between, self.now)
            .and_then(|()| name.map_or(Ok(()), called));
        if let Err(error) = judged {
            self.refuse(explain(&error));
        }
        Some((trust, before))
    }

    /// The authorities that count, and those that did besides, each with the lists.
    pub fn believed(&mut self) -> Option<(Arc<Trust>, Arc<Trust>)> {
        let Roots { valid, all } = self.roots()?;
        let lists = self.lists.clone()?;
        self.judge_lists(&lists);
        let path = self.paths.revoked.as_deref().unwrap_or(Path::new(""));
        let [valid, all] = [valid, all].map(|roots| {
            let trust = Trust::new(roots, &lists, &self.provider);
            let trust = trust.map_err(|_| Cause::Garbled("revocation list"));
            self.keep(path, trust).map(Arc::new)
        });
        valid.zip(all)
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

    /// The authorities. Those that have ended do not count, and are told if others are left.
    fn roots(&mut self) -> Option<Roots> {
        let path = &self.paths.authorities;
        let (mut valid, mut all) = (RootCertStore::empty(), RootCertStore::empty());
        let (mut ended, mut wrong) = (Vec::new(), Vec::new());
        for der in self.authorities.as_ref()? {
            let judged = authority(der, self.now);
            let read = !matches!(&judged, Err(fault) if !is_over(fault));
            match (judged, read && all.add(der.clone()).is_ok()) {
                // What one store takes, the other does.
                (Ok(_), true) => wrong.extend(
                    valid
                        .add(der.clone())
                        .err()
                        .map(|_| CertificateFault::Garbled),
                ),
                (Ok(_), false) => wrong.push(CertificateFault::Garbled),
                (Err(fault), _) if is_over(&fault) => ended.push(fault),
                (Err(fault), _) => wrong.push(fault),
            }
        }
        if valid.is_empty() && self.takes_ended {
            valid = all.clone();
        }
        match valid.is_empty() {
            true => wrong.append(&mut ended),
            false => {
                let told = |it: &CertificateFault| {
                    format!(
                        "{}: an authority's certificate {}",
                        path.display(),
                        it.lasting()
                    )
                };
                self.notes.extend(ended.iter().map(told));
            }
        }
        let fine = wrong.is_empty();
        wrong.into_iter().for_each(|fault| self.add(path, fault));
        fine.then_some(Roots { valid, all })
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

/// The authorities that are valid, and with them those that have ended or not begun.
struct Roots {
    valid: RootCertStore,
    all: RootCertStore,
}

/// Whether only its time is wrong.
fn is_over(fault: &CertificateFault) -> bool {
    use CertificateFault::{Expired, NotYet};
    matches!(fault, Expired { .. } | NotYet { .. })
}

/// What an authority's certificate says, if it is valid.
fn authority(der: &CertificateDer<'_>, now: UnixTime) -> Result<Certificate, CertificateFault> {
    let read = Certificate::read(der)?;
    match read.authority {
        true => read.check_time(now).map(|()| read),
        false => Err(CertificateFault::NoAuthority),
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
