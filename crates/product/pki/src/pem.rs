//! Certificates, keys and revocation lists in files, as PEM.

use std::path::Path;

use bumpless_guarded_file::{self as guarded_file, Guard};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use x509_cert::der::pem::{LineEnding, encode_string};
use zeroize::Zeroizing;

use crate::problem::Cause;

/// Longest file with certificates or a key, bytes.
const LEN_MAX: usize = 256 * 1024;
/// Longest file with revocation lists, bytes: some ten thousand certificates.
pub const LIST_LEN_MAX: usize = 1024 * 1024;

/// The certificates in the file at `path`, at least one.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Cause> {
    let content = guarded_file::read(path, Guard::Unchanged, LEN_MAX)?;
    all(&content, "certificate")
}

/// The revocation lists in the file at `path`, at least one.
pub fn lists(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, Cause> {
    let content = guarded_file::read(path, Guard::Unchanged, LIST_LEN_MAX)?;
    all(&content, "revocation list")
}

/// The first private key in the file at `path`, which only its owner may read.
pub fn key(path: &Path) -> Result<Zeroizing<PrivateKeyDer<'static>>, Cause> {
    let content = guarded_file::read(path, Guard::Secret, LEN_MAX)?;
    let key = PrivateKeyDer::from_pem_slice(&content);
    key.map(Zeroizing::new).map_err(|error| match error {
        pem::Error::NoItemsFound => Cause::Lacks("private key"),
        _ => Cause::Garbled("private key"),
    })
}

fn all<T: PemObject>(content: &[u8], what: &'static str) -> Result<Vec<T>, Cause> {
    let found: Result<Vec<T>, _> = T::pem_slice_iter(content).collect();
    match found {
        Ok(found) if found.is_empty() => Err(Cause::Lacks(what)),
        Ok(found) => Ok(found),
        Err(_) => Err(Cause::Garbled(what)),
    }
}

/// `der` as PEM under this label.
pub fn encode(label: &str, der: &[u8]) -> Result<Zeroizing<String>, Cause> {
    let text = encode_string(label, LineEnding::LF, der);
    text.map(Zeroizing::new)
        .map_err(|error| Cause::NotSigned(error.to_string()))
}
