//! What stands in a revocation list.

use rustls_pki_types::UnixTime;
use x509_cert::crl::{CertificateList, RevokedCert};
use x509_cert::der::{Decode, Encode};
use x509_cert::ext::pkix::CrlNumber;

use crate::certificate::{hex, unix};

/// What stands in a revocation list. Whether it can be believed is another question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevocationList {
    /// Who issued it.
    pub issuer: String,
    /// Its number, which grows from list to list; `None`: it has none, or one of more than 64 bits.
    pub number: Option<u64>,
    /// When it was made.
    pub made: UnixTime,
    /// When a newer one should be there, if it says so.
    pub renewed: Option<UnixTime>,
    /// What it revokes.
    pub entries: Vec<Entry>,
    /// The issuer as encoded.
    pub(crate) issuer_der: Vec<u8>,
}

/// A certificate that is revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its serial number, in hexadecimal digits.
    pub serial: String,
    /// Since when.
    pub since: UnixTime,
    pub(crate) number: Vec<u8>,
}

impl RevocationList {
    /// Reads a list; `None` if it is none.
    pub(crate) fn read(der: &[u8]) -> Option<Self> {
        let list = CertificateList::from_der(der).ok()?.tbs_cert_list;
        let mut extensions = list.crl_extensions.iter().flatten();
        let number = extensions
            .find(|it| it.extn_id == <CrlNumber as x509_cert::der::oid::AssociatedOid>::OID)
            .and_then(|it| CrlNumber::from_der(it.extn_value.as_bytes()).ok());
        let revoked = list.revoked_certificates.iter().flatten();
        Some(Self {
            issuer: list.issuer.to_string(),
            number: number.and_then(|number| small(number.0.as_bytes())),
            made: unix(list.this_update),
            renewed: list.next_update.map(unix),
            entries: revoked.map(entry).collect(),
            issuer_der: list.issuer.to_der().ok()?,
        })
    }
}

fn entry(revoked: &RevokedCert) -> Entry {
    let number = revoked.serial_number.as_bytes();
    Entry {
        serial: hex(number),
        since: unix(revoked.revocation_date),
        number: number.to_vec(),
    }
}

fn small(bytes: &[u8]) -> Option<u64> {
    let add = |sum: u64, &byte: &u8| Some(sum.checked_mul(256)? | u64::from(byte));
    bytes.iter().try_fold(0, add)
}
