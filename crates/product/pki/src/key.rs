//! Private keys and the certificates that they belong to.

use std::path::Path;

use rustls::crypto::ring::sign::any_supported_type;
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::certificate::CertificateFault;
use crate::problem::Cause;

/// What signs with `key` for the first certificate of `chain`, which was read from `path`. The key is not copied, but for
/// what `ring` keeps.
pub fn certified(
    chain: Vec<CertificateDer<'static>>,
    key: &PrivateKeyDer<'static>,
    path: &Path,
) -> Result<CertifiedKey, Cause> {
    let key = any_supported_type(key).map_err(|_| Cause::UnknownKey)?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        Ok(()) => Ok(certified),
        Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            Err(Cause::OtherKey(path.to_owned()))
        }
        Err(Error::InvalidCertificate(_)) => Err(CertificateFault::Garbled.into()),
        Err(_) => Err(Cause::UnknownKey),
    }
}
