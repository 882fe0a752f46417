//! Why files of an identity or of an authority cannot be used or made.

use std::fmt;
use std::path::{Path, PathBuf};

use bumpless_guarded_file as guarded_file;
use rustls_pki_types::UnixTime;

use crate::certificate::CertificateFault;
use crate::clock::told;
use crate::name::BadName;

/// What is wrong with a file or folder. Nothing secret is in here.
#[derive(Debug)]
pub struct Problem {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong with it.
    pub cause: Cause,
}

/// Everything that is wrong with an identity, at least one thing.
#[derive(Debug)]
pub struct Problems(pub Vec<Problem>);

/// What is wrong with a file or folder.
#[derive(Debug)]
pub enum Cause {
    /// The file itself: missing, exposed, of another owner, there already.
    File(guarded_file::Cause),
    /// The key of an authority, which more rests on than one certificate: others than its owner had a way to it.
    AuthorityExposed(guarded_file::Cause),
    /// It has none of what it should have, of this kind.
    Lacks(&'static str),
    /// What it has of this kind is truncated or changed.
    Garbled(&'static str),
    /// Its certificate is refused.
    Certificate(CertificateFault),
    /// Its key is of a kind that cannot be used.
    UnknownKey,
    /// Its key is not the one of the certificate in this file.
    OtherKey(PathBuf),
    /// Its revocation list is of none of the authorities.
    OtherList,
    /// A name cannot stand in a certificate.
    Name(BadName),
    /// It is no folder of an authority that can issue certificates.
    NoIssuer(&'static str),
    /// A certificate of this authority cannot last until then: the authority ends before.
    Outlives {
        /// The end that was asked for.
        wanted: UnixTime,
        /// The authority's.
        ends: UnixTime,
    },
    /// A lifetime that a certificate cannot have.
    Lifetime,
    /// The authority has issued nothing of this name or number.
    NotIssued(String),
    /// The library does not make it; why.
    NotSigned(String),
}

impl Problem {
    pub(crate) fn at(path: &Path, cause: impl Into<Cause>) -> Self {
        Self {
            path: path.to_owned(),
            cause: cause.into(),
        }
    }

    /// What is wrong, without the file's name.
    pub fn wrong(&self) -> String {
        match &self.cause {
            Cause::File(cause) | Cause::AuthorityExposed(cause) => cause.wrong(),
            Cause::Lacks(what) => format!("has no {what} in PEM"),
            Cause::Garbled(what) => format!("has a {what} that is truncated or was changed"),
            Cause::Certificate(fault) => format!("the certificate {}", fault.wrong()),
            Cause::UnknownKey => "has a private key that cannot be used".into(),
            Cause::OtherKey(certificate) => {
                format!(
                    "has not the key of the certificate in {}",
                    certificate.display()
                )
            }
            Cause::OtherList => "has a revocation list of another authority".into(),
            Cause::Name(name) => name.wrong(),
            Cause::NoIssuer(why) => format!("has no authority that can issue certificates: {why}"),
            Cause::Outlives { wanted, ends } => {
                let (wanted, ends) = (told(*wanted), told(*ends));
                format!(
                    "the authority ends at {ends}, before a certificate that lasts until {wanted}"
                )
            }
            Cause::Lifetime => "no certificate lasts so long".into(),
            Cause::NotIssued(what) => format!("has issued no certificate {what}"),
            Cause::NotSigned(why) => format!("cannot sign: {why}"),
        }
    }

    /// The whole, in words that stay the same for as long as it is wrong.
    pub fn lasting(&self) -> String {
        match &self.cause {
            Cause::Certificate(fault) => {
                let (path, wrong) = (self.path.display(), fault.lasting());
                format!("{path}: the certificate {wrong}; {}", self.remedy())
            }
            _ => self.to_string(),
        }
    }

    /// What would be right.
    pub fn remedy(&self) -> String {
        match &self.cause {
            Cause::File(guarded_file::Cause::Missing) => {
                "make an authority with `bumpless pki init` and a folder for each node with `bumpless pki issue NODE.PAIR`, and \
                 copy that to the node's computer; or give the paths of files from another authority"
                    .into()
            }
            Cause::File(guarded_file::Cause::Exposed {
                guard: guarded_file::Guard::Secret,
                ..
            }) => format!(
                "if nobody has read it, `chmod 600 {}`; otherwise revoke its certificate with `bumpless pki revoke` and issue \
                 another one",
                self.path.display()
            ),
            Cause::AuthorityExposed(_) => format!(
                "if nobody has read it, `chmod 600 {}`; otherwise make another authority with `bumpless pki init` and issue all \
                 certificates anew: whoever has this key makes certificates that revoking others does not touch",
                self.path.display()
            ),
            Cause::File(cause) => cause.remedy(&self.path),
            Cause::Lacks(_) | Cause::Garbled(_) => {
                "copy it again from where it was issued, in PEM, keys without a password".into()
            }
            Cause::Certificate(fault) => fault.remedy().into(),
            Cause::UnknownKey => {
                "use a key for ECDSA (P-256, P-384), Ed25519 or RSA (2,048 bits and more), without a password".into()
            }
            Cause::OtherKey(_) => {
                "copy certificate and key again, both from the folder that `bumpless pki issue` made for this node".into()
            }
            Cause::OtherList => {
                "copy revoked.pem again from the folder of the authority that issued this node's certificate".into()
            }
            Cause::Name(name) => name.remedy(),
            Cause::NoIssuer(_) => {
                "give the folder that `bumpless pki init` made; with another authority, use its own tools".into()
            }
            Cause::Outlives { .. } => {
                "give a shorter --days, or make another authority with `bumpless pki init`".into()
            }
            Cause::Lifetime => "give --days from 1 to 36500".into(),
            Cause::NotIssued(_) => {
                "give NODE.PAIR or the serial number as `bumpless pki show` prints it".into()
            }
            Cause::NotSigned(_) => "make the authority anew with `bumpless pki init`".into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        write!(f, "{path}: {}; {}", self.wrong(), self.remedy())
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Problem {}
impl std::error::Error for Problems {}

impl From<guarded_file::Cause> for Cause {
    fn from(cause: guarded_file::Cause) -> Self {
        Self::File(cause)
    }
}

impl From<CertificateFault> for Cause {
    fn from(fault: CertificateFault) -> Self {
        Self::Certificate(fault)
    }
}

impl From<BadName> for Cause {
    fn from(name: BadName) -> Self {
        Self::Name(name)
    }
}
