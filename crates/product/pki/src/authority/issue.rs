//! Issuing a node's certificate.

use std::fs;
use std::path::Path;
use std::time::Duration;

use bumpless_guarded_file::{self as guarded_file, Guard};
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls_pki_types::{CertificateDer, UnixTime};
use std::sync::Arc;

use super::wanted::Wanted;
use super::{Authority, ISSUED, REVOKED, sign};
use crate::certificate::Certificate;
use crate::identity::IdentityPaths;
use crate::name::NodeName;
use crate::pem;
use crate::problem::{Cause, Problem};
use crate::refusal::explain;
use crate::trust::Trust;

/// A certificate that was issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issued {
    /// Whom it is for.
    pub name: NodeName,
    /// Its serial number, 32 hexadecimal digits.
    pub serial: String,
    /// Its end.
    pub ends: UnixTime,
}

impl Authority {
    /// Issues a certificate with a new key, and makes the folder `out` with all that the node needs: its
    /// certificate and key, the authority's certificate and what it has revoked.
    ///
    /// # Errors
    /// A name of another site, a lifetime beyond that of the authority, or a folder that cannot be made or is there
    /// already. No folder is made then.
    pub fn issue<'a>(
        &self,
        wanted: impl Into<Wanted<'a>>,
        lifetime: Duration,
        now: UnixTime,
        out: &Path,
    ) -> Result<Issued, Problem> {
        let wanted = wanted.into();
        let name = wanted.name;
        let here = |cause: Cause| Problem::at(&self.folder, cause);
        let _lock = self.lock()?;
        let validity = self.within(lifetime, now).map_err(here)?;
        // Before anything is signed; making the folder asks again.
        self.judge_folder(out)?;
        let revoked = self.folder.join(REVOKED);
        let list = guarded_file::read(&revoked, Guard::Unchanged, pem::LIST_LEN_MAX)
            .map_err(|cause| Problem::at(&revoked, cause))?;
        let key = sign::new_key().map_err(here)?;
        let (serial, told) = sign::serial().map_err(here)?;
        let issuer = sign::issuer(&self.site, &self.called, &self.key);
        let params = sign::node(wanted, serial, validity).map_err(here)?;
        let made = params.signed_by(&*key, &issuer);
        let made = made.map_err(sign::failed).map_err(here)?;
        let ends = self.check(made.der(), name, now).map_err(here)?;

        let certificate = pem::encode("CERTIFICATE", made.der()).map_err(here)?;
        let key = pem::encode("PRIVATE KEY", key.serialized_der()).map_err(here)?;
        let authority = pem::encode("CERTIFICATE", &self.der).map_err(here)?;
        // First, so that whatever leaves this folder can be revoked by its name.
        self.record(&told, certificate.as_bytes())?;
        let files = [
            (
                IdentityPaths::CERTIFICATE,
                certificate.as_bytes(),
                Guard::Unchanged,
            ),
            (IdentityPaths::KEY, key.as_bytes(), Guard::Secret),
            (
                IdentityPaths::AUTHORITY,
                authority.as_bytes(),
                Guard::Unchanged,
            ),
            (IdentityPaths::REVOKED, &list, Guard::Unchanged),
        ];
        guarded_file::create_folder(out, &files).map_err(|cause| Problem::at(out, cause))?;
        Ok(Issued {
            name: name.clone(),
            serial: told,
            ends,
        })
    }

    /// Whether a folder can be made at `out`, as far as that can be told without making it.
    ///
    /// # Errors
    /// There is one that is not empty.
    pub fn judge_folder(&self, out: &Path) -> Result<(), Problem> {
        match fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_some()) {
            true => Err(Problem::at(out, guarded_file::Cause::Exists)),
            false => Ok(()),
        }
    }

    fn within(&self, lifetime: Duration, now: UnixTime) -> Result<sign::Validity, Cause> {
        let validity = sign::validity(now, lifetime)?;
        let (wanted, ends) = (now.as_secs() + lifetime.as_secs(), self.certificate.ends);
        if wanted > ends.as_secs() {
            let wanted = UnixTime::since_unix_epoch(Duration::from_secs(wanted));
            return Err(Cause::Outlives { wanted, ends });
        }
        Ok(validity)
    }

    /// The end of a certificate that was just signed, if nodes that believe this authority believe it, too.
    fn check(
        &self,
        der: &CertificateDer<'_>,
        name: &NodeName,
        now: UnixTime,
    ) -> Result<UnixTime, Cause> {
        let signed = |why: String| Cause::NotSigned(why);
        let mut roots = RootCertStore::empty();
        roots
            .add(self.der.clone())
            .map_err(|error| signed(error.to_string()))?;
        let trust = Trust::new(roots, &[], &Arc::new(ring::default_provider()));
        let trust = trust.map_err(|error| signed(error.to_string()))?;
        let checked = trust
            .check_calling(der, &[], now)
            .and_then(|()| trust.check_called(der, &[], name.as_str(), now));
        checked.map_err(|error| signed(explain(&error).wrong()))?;
        Ok(Certificate::read(der)?.ends)
    }

    /// Keeps a copy of what was issued.
    fn record(&self, serial: &str, certificate: &[u8]) -> Result<(), Problem> {
        let folder = self.folder.join(ISSUED);
        let not_made = |error| Problem::at(&folder, guarded_file::Cause::NotMade(error));
        fs::create_dir_all(&folder).map_err(not_made)?;
        let path = folder.join(format!("{serial}.pem"));
        guarded_file::create(&path, certificate, Guard::Unchanged)
            .map_err(|cause| Problem::at(&path, cause))
    }
}
