//! A site's authority: a folder with a key that issues certificates, and what it has issued and revoked.

mod issue;
mod revoke;
mod sign;
mod wanted;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bumpless_guarded_file::{self as guarded_file, Guard};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use zeroize::Zeroizing;

use crate::certificate::Certificate;
use crate::key;
use crate::name::{BadName, NodeName};
use crate::pem;
use crate::problem::{Cause, Problem};

pub use issue::Issued;
pub use revoke::Revoked;
pub use wanted::Wanted;

/// The folder's files: the authority's key and certificate, what it has revoked, and a folder with what it has issued.
const KEY: &str = "authority.key";
const CERTIFICATE: &str = "authority.pem";
const REVOKED: &str = "revoked.pem";
const ISSUED: &str = "issued";

/// Longest name of a site that an authority has, bytes: it stands in a field of at most 64 with a number behind it.
const SITE_MAX: usize = 48;

/// A site's authority. Its key is overwritten in memory when this is dropped, as far as the libraries below allow.
#[derive(Debug)]
pub struct Authority {
    folder: PathBuf,
    site: String,
    /// The common name in its certificate.
    called: String,
    certificate: Certificate,
    der: CertificateDer<'static>,
    key: Zeroizing<KeyPair>,
}

impl Authority {
    /// Makes the authority of `site` in `folder`, which must not be there, or be empty. Its certificate begins shortly
    /// before `now` and ends `lifetime` after it.
    ///
    /// # Errors
    /// A name that no site can have, a lifetime that no certificate can have, or the folder cannot be made; nothing is
    /// made then.
    pub fn create(
        folder: &Path,
        site: &str,
        lifetime: Duration,
        now: UnixTime,
    ) -> Result<Self, Problem> {
        let make = || -> Result<(), Cause> {
            let site = checked_site(site)?;
            let key = sign::new_key()?;
            let called = format!("{site} {}", &sign::serial()?.1[..8]);
            let params = sign::authority(&site, &called, sign::validity(now, lifetime)?);
            let made = params.self_signed(&*key).map_err(sign::failed)?;
            let list = sign::list(&sign::issuer(&site, &called, &key), &[], 1, now, lifetime)?;
            let key = pem::encode("PRIVATE KEY", key.serialized_der())?;
            let certificate = pem::encode("CERTIFICATE", made.der())?;
            let files = [
                (KEY, key.as_bytes(), Guard::Secret),
                (CERTIFICATE, certificate.as_bytes(), Guard::Unchanged),
                (REVOKED, list.as_bytes(), Guard::Unchanged),
            ];
            Ok(guarded_file::create_folder(folder, &files)?)
        };
        make().map_err(|cause| Problem::at(folder, cause))?;
        Self::load(folder)
    }

    /// The authority in `folder`.
    ///
    /// # Errors
    /// A file is missing, exposed or garbled, or it is no authority that [`Authority::create`] made.
    pub fn load(folder: &Path) -> Result<Self, Problem> {
        let (key_path, path) = (folder.join(KEY), folder.join(CERTIFICATE));
        let at = |cause: Cause| Problem::at(&path, cause);
        let ders = pem::certificates(&path).map_err(at)?;
        let der = ders
            .into_iter()
            .next()
            .ok_or(Cause::Lacks("certificate"))
            .map_err(at)?;
        let certificate = Certificate::read(&der).map_err(|fault| at(fault.into()))?;
        let (site, called) = named(&certificate).map_err(at)?;
        let key = pem::key(&key_path).and_then(|key| belongs(&key, &der, &path));
        Ok(Self {
            folder: folder.to_owned(),
            site,
            called,
            certificate,
            der,
            key: key.map_err(|cause| Problem::at(&key_path, of_authority(cause)))?,
        })
    }

    /// The site's name.
    pub fn site(&self) -> &str {
        &self.site
    }

    /// What its certificate says.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// What the node that `text` names, as `NODE.PAIR`, is called in a certificate of this authority.
    ///
    /// # Errors
    /// It is no name that can stand in a certificate.
    pub fn name(&self, text: &str) -> Result<NodeName, BadName> {
        NodeName::at_site(text, &self.site)
    }

    /// Nothing else issues or revokes in the folder meanwhile.
    fn lock(&self) -> Result<File, Problem> {
        let file = File::open(&self.folder).and_then(|file| file.lock().map(|()| file));
        file.map_err(|error| Problem::at(&self.folder, guarded_file::Cause::Unreadable(error)))
    }
}

/// A key that says who everybody is, exposed, is another thing than that of one node.
fn of_authority(cause: Cause) -> Cause {
    match cause {
        Cause::File(exposed @ guarded_file::Cause::Exposed { .. }) => {
            Cause::AuthorityExposed(exposed)
        }
        cause => cause,
    }
}

fn checked_site(site: &str) -> Result<String, Cause> {
    let site = site.to_ascii_lowercase();
    // As long as a site may be: whatever nodes and pairs it has can stand before it.
    let (longest, there) = ("n".repeat(32), site.len() <= SITE_MAX);
    let fine = NodeName::new(&longest, &longest, &site)?;
    match there {
        true => Ok(fine.site().to_owned()),
        false => Err(BadName::site(&site).into()),
    }
}

/// Site and common name of an authority that was made here.
fn named(certificate: &Certificate) -> Result<(String, String), Cause> {
    let none = |why| Err(Cause::NoIssuer(why));
    let [site] = &certificate.may_issue[..] else {
        return none("its certificate does not name one site");
    };
    match certificate.subject.strip_prefix("CN=") {
        Some(called) if called.starts_with(site.as_str()) && !called.contains([',', '+', '\\']) => {
            Ok((site.clone(), called.to_owned()))
        }
        _ => none("it was made by something else"),
    }
}

/// The key, if it is the one of the certificate in `der`, read from `path`.
fn belongs(
    key: &PrivateKeyDer<'static>,
    der: &CertificateDer<'static>,
    path: &Path,
) -> Result<Zeroizing<KeyPair>, Cause> {
    key::certified(vec![der.clone()], key, path)?;
    let PrivateKeyDer::Pkcs8(key) = key else {
        return Err(Cause::UnknownKey);
    };
    let key = KeyPair::from_pkcs8_der_and_sign_algo(key, &PKCS_ECDSA_P256_SHA256);
    key.map(Zeroizing::new).map_err(|_| Cause::UnknownKey)
}
