//! The role that a certificate gives its holder at field devices (MODBUS/TCP Security Protocol Specification v36, 8.4).

use std::fmt;

use x509_cert::TbsCertificate;
use x509_cert::der::Encode;
use x509_cert::der::asn1::Utf8StringRef;
use x509_cert::der::{Decode, asn1::ObjectIdentifier};

/// The extension that has the role, as a UTF8String: 1.3.6.1.4.1.50316.802.1.
pub const ROLE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.50316.802.1");
/// The same, number by number.
pub(crate) const ROLE_ARCS: [u64; 9] = [1, 3, 6, 1, 4, 1, 50316, 802, 1];
/// Longest role, bytes.
const ROLE_MAX: usize = 64;

/// A role: what a device compares to see what its client may do. What roles there are is for the site to say.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Role(String);

impl Role {
    /// The role called `text`.
    ///
    /// # Errors
    /// It has not 1 to 64 bytes, or one of its characters cannot be printed, or blanks stand at an end.
    pub fn new(text: &str) -> Result<Self, BadRole> {
        let length = (1..=ROLE_MAX).contains(&text.len());
        let fine = length && !text.chars().any(char::is_control) && text.trim() == text;
        match fine {
            true => Ok(Self(text.to_owned())),
            false => Err(BadRole(text.to_owned())),
        }
    }

    /// As it is called.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As an extension has it.
    pub(crate) fn encoded(&self) -> Option<Vec<u8>> {
        Utf8StringRef::new(&self.0).ok()?.to_der().ok()
    }

    /// The role in a certificate. One that has several, or something else in that place, gives none.
    pub(crate) fn read(tbs: &TbsCertificate) -> Option<Self> {
        let extensions = tbs.extensions.iter().flatten();
        let mut roles = extensions.filter(|it| it.extn_id == ROLE);
        let (role, another) = (roles.next()?, roles.next());
        let text = Utf8StringRef::from_der(role.extn_value.as_bytes()).ok()?;
        Self::new(text.as_str()).ok().filter(|_| another.is_none())
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is no role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRole(String);

impl fmt::Display for BadRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "role {:?} cannot stand in a certificate; give 1 to 64 bytes that can be printed, without a blank at either end",
            self.0
        )
    }
}

impl std::error::Error for BadRole {}
