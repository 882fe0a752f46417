//! Revoking certificates.

use std::fs;
use std::time::Duration;

use bumpless_guarded_file::{self as guarded_file, Guard};
use rustls_pki_types::UnixTime;
use zeroize::Zeroizing;

use super::{Authority, ISSUED, REVOKED, sign};
use crate::certificate::Certificate;
use crate::list::{Entry, RevocationList};
use crate::pem;
use crate::problem::{Cause, Problem};

/// What a revocation did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revoked {
    /// Serial numbers that are revoked by it.
    pub serials: Vec<String>,
    /// Serial numbers of those meant that had been revoked before.
    pub before: Vec<String>,
    /// The number of the list that says so.
    pub list: u64,
}

impl Authority {
    /// Revokes the certificate with the serial number `what`, or all of the node that `what` names as `NODE.PAIR` or as its
    /// whole name. It counts where the new list is, `revoked.pem` of the authority's folder.
    ///
    /// # Errors
    /// Nothing of this name or number was issued, or the list cannot be read or replaced. The list stays as it was then.
    pub fn revoke(&self, what: &str, now: UnixTime) -> Result<Revoked, Problem> {
        let _lock = self.lock()?;
        let path = self.folder.join(REVOKED);
        let at_list = |cause: Cause| Problem::at(&path, cause);
        let mut list = self.list().map_err(at_list)?;
        let (before, serials): (Vec<_>, Vec<_>) = self
            .meant(what)?
            .into_iter()
            .partition(|serial| list.entries.iter().any(|it| it.serial == *serial));
        if !serials.is_empty() {
            let added = serials.iter().filter_map(|serial| Entry::new(serial, now));
            list.entries.extend(added);
            list.number = Some(list.number.unwrap_or(0).saturating_add(1));
            let text = self.signed(&list, now).map_err(at_list)?;
            guarded_file::replace(&path, text.as_bytes(), Guard::Unchanged)
                .map_err(|cause| at_list(cause.into()))?;
        }
        Ok(Revoked {
            serials,
            before,
            list: list.number.unwrap_or(0),
        })
    }

    fn signed(&self, list: &RevocationList, now: UnixTime) -> Result<Zeroizing<String>, Cause> {
        let issuer = sign::issuer(&self.site, &self.called, &self.key);
        // As long as the authority, and a day at least: a list counts until another one comes.
        let lasts = self
            .certificate
            .ends
            .as_secs()
            .saturating_sub(now.as_secs());
        let lasts = Duration::from_secs(lasts.max(86_400));
        let number = list.number.unwrap_or(0);
        sign::list(&issuer, &list.entries, number, now, lasts)
    }

    /// What the folder's list says.
    fn list(&self) -> Result<RevocationList, Cause> {
        let garbled = || Cause::Garbled("revocation list");
        let found = pem::lists(&self.folder.join(REVOKED))?;
        let [der] = &found[..] else {
            return Err(garbled());
        };
        let list = RevocationList::read(der).ok_or_else(garbled)?;
        match list.issuer_der == self.certificate.subject_der {
            true => Ok(list),
            false => Err(Cause::OtherList),
        }
    }

    /// Serial numbers of the certificates that `what` means.
    fn meant(&self, what: &str) -> Result<Vec<String>, Problem> {
        let serial = what.to_ascii_lowercase().replace(':', "");
        // One that has no copy in the folder, too: to revoke too much does no harm.
        if serial.len() == 32 && unhex(&serial).is_some() {
            return Ok(vec![serial]);
        }
        let name = self
            .name(what)
            .map_err(|name| Problem::at(&self.folder, name))?;
        let mut found: Vec<_> = self.issued()?;
        found.retain(|it| it.is_for(name.as_str()));
        if found.is_empty() {
            let cause = Cause::NotIssued(format!("for {name}"));
            return Err(Problem::at(&self.folder, cause));
        }
        let mut serials: Vec<_> = found.into_iter().map(|it| it.serial).collect();
        serials.sort();
        Ok(serials)
    }

    /// What was issued. A copy that cannot be read is a problem: what it stands for would stay in use.
    fn issued(&self) -> Result<Vec<Certificate>, Problem> {
        let folder = self.folder.join(ISSUED);
        let Ok(entries) = fs::read_dir(&folder) else {
            return Ok(Vec::new());
        };
        let paths = entries.flatten().map(|entry| entry.path());
        let paths = paths.filter(|path| path.extension().is_some_and(|it| it == "pem"));
        let read = |path: std::path::PathBuf| {
            let found = pem::certificates(&path).and_then(|ders| {
                let all = ders.iter().map(Certificate::read);
                Ok(all.collect::<Result<Vec<_>, _>>()?)
            });
            found.map_err(|cause| Problem::at(&path, cause))
        };
        let all: Result<Vec<_>, _> = paths.map(read).collect();
        Ok(all?.into_iter().flatten().collect())
    }
}

impl Entry {
    /// Revokes the certificate with this serial number from `since` on; `None` if it is no number.
    fn new(serial: &str, since: UnixTime) -> Option<Self> {
        Some(Self {
            serial: serial.to_owned(),
            since,
            number: unhex(serial)?,
        })
    }
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |&[high, low]: &[u8; 2]| u8::try_from(digit(high)? << 4 | digit(low)?).ok();
    pairs.iter().map(byte).collect()
}
