//! What stands in a file, for people to look at.

use std::path::Path;

use bumpless_guarded_file::{self as guarded_file, Guard};
use ring::digest::{SHA256, digest};
use rustls::crypto::ring::sign::any_supported_type;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use zeroize::Zeroizing;

use crate::certificate::{Certificate, hex};
use crate::list::RevocationList;
use crate::pem;
use crate::problem::{Cause, Problem};

/// Something in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A certificate.
    Certificate(Box<Certificate>),
    /// A private key, of which nothing is told but which public key belongs to it.
    Key(String),
    /// A revocation list.
    List(RevocationList),
}

impl Certificate {
    /// Tells public keys apart: the first 16 hexadecimal digits of the SHA-256 of the key as certificates have it.
    pub fn key_id(&self) -> String {
        key_id(&self.key)
    }
}

fn key_id(key: &[u8]) -> String {
    hex(&digest(&SHA256, key).as_ref()[..8])
}

/// What is in the file at `path`, certificates first.
///
/// # Errors
/// The file is exposed, which with a private key it is if others may read it; or something in it is garbled, or nothing
/// there.
pub fn show(path: &Path) -> Result<Vec<Item>, Problem> {
    let content = guarded_file::read_as(path, guard, pem::LIST_LEN_MAX).map_err(Cause::from);
    let items = content.and_then(|content| items(&content));
    items.map_err(|cause| Problem::at(path, cause))
}

fn guard(content: &[u8]) -> Guard {
    let words = b"PRIVATE KEY";
    match content.windows(words.len()).any(|it| it == words) {
        true => Guard::Secret,
        false => Guard::Unchanged,
    }
}

/// What is in `content`, certificates first.
///
/// # Errors
/// Something in it is garbled, or nothing there.
pub fn items(content: &[u8]) -> Result<Vec<Item>, Cause> {
    let mut items = Vec::new();
    for der in CertificateDer::pem_slice_iter(content) {
        let der = der.map_err(|_| Cause::Garbled("certificate"))?;
        items.push(Item::Certificate(Box::new(Certificate::read(&der)?)));
    }
    for der in CertificateRevocationListDer::pem_slice_iter(content) {
        let garbled = || Cause::Garbled("revocation list");
        let der = der.map_err(|_| garbled())?;
        items.push(Item::List(RevocationList::read(&der).ok_or_else(garbled)?));
    }
    for key in PrivateKeyDer::pem_slice_iter(content) {
        let key = Zeroizing::new(key.map_err(|_| Cause::Garbled("private key"))?);
        let key = any_supported_type(&key).map_err(|_| Cause::UnknownKey)?;
        let public = key.public_key().ok_or(Cause::UnknownKey)?;
        items.push(Item::Key(key_id(&public)));
    }
    match items.is_empty() {
        true => Err(Cause::Lacks("certificate, private key or revocation list")),
        false => Ok(items),
    }
}
