//! Why a certificate is refused.

use std::fmt;

use rustls_pki_types::UnixTime;

use crate::clock::told;
use crate::name::NodeName;

/// Why a certificate is refused, be it a node's own or its partner's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateFault {
    /// It cannot be read.
    Garbled,
    /// It was valid until `ended`.
    Expired {
        /// Its end.
        ended: UnixTime,
        /// The time here.
        now: UnixTime,
    },
    /// It will be valid from `begins` on.
    NotYet {
        /// Its beginning.
        begins: UnixTime,
        /// The time here.
        now: UnixTime,
    },
    /// No authority that counts here has issued it.
    OtherAuthority,
    /// It has been changed, or an authority of the same name has issued it.
    BadSignature,
    /// Its authority has revoked it.
    Revoked,
    /// The revocation list of its authority cannot be used; why.
    RevocationList(String),
    /// It does not permit this.
    Usage(&'static str),
    /// It is for other names.
    OtherName {
        /// Names of which one was expected.
        expected: Vec<String>,
        /// Names that it has.
        found: Vec<String>,
    },
    /// It has several names of this node, and so says not which one counts.
    SeveralNames(Vec<String>),
    /// The partner shows the name of the node that judges.
    OwnName(NodeName),
    /// The partner has the key of the node that judges.
    OwnKey,
    /// It is no authority's, and was given as one.
    NoAuthority,
    /// Something that is not expected; what the library says.
    Other(String),
}

impl CertificateFault {
    /// What is wrong, said of the certificate.
    pub fn wrong(&self) -> String {
        match self {
            Self::Garbled => "cannot be read as a certificate".into(),
            Self::Expired { now, .. } | Self::NotYet { now, .. } => {
                format!("{} (it is {} here)", self.lasting(), told(*now))
            }
            Self::OtherAuthority => "was issued by none of the authorities that count here".into(),
            Self::BadSignature => "has not been signed by the authority that it names".into(),
            Self::Revoked => "has been revoked by its authority".into(),
            Self::RevocationList(why) => {
                format!("cannot be judged by its authority's revocation list: {why}")
            }
            Self::Usage(what) => format!("does not permit {what}"),
            Self::OtherName { expected, found } => {
                format!(
                    "is for {}, not for {}",
                    listed(found),
                    expected.join(" or ")
                )
            }
            Self::SeveralNames(names) => {
                format!("has several names for this node: {}", names.join(", "))
            }
            Self::OwnName(name) => format!("has the name of this node itself, {name}"),
            Self::OwnKey => "has the key of this node itself".into(),
            Self::NoAuthority => "is not an authority's".into(),
            Self::Other(what) => format!("is refused: {what}"),
        }
    }

    /// The same in words that stay the same for as long as it is wrong: without the time of the day.
    pub fn lasting(&self) -> String {
        match self {
            Self::Expired { ended, .. } => format!("expired at {}", told(*ended)),
            Self::NotYet { begins, .. } => format!("is valid from {} on", told(*begins)),
            other => other.wrong(),
        }
    }

    /// What would be right.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Garbled => "copy it again from where it was issued",
            Self::Expired { .. } => {
                "if the clock here is right, issue the node another one: `bumpless pki issue NODE.PAIR`"
            }
            Self::NotYet { .. } => {
                "set the clock here, or that of the computer that issued it and issue it anew"
            }
            Self::OtherAuthority | Self::BadSignature => {
                "have both nodes' certificates issued by one authority, or give both nodes the certificates of both authorities \
                 in one file"
            }
            Self::Revoked => {
                "if the node may belong to the pair again, issue it another certificate with a new key: \
                 `bumpless pki issue NODE.PAIR`"
            }
            Self::RevocationList(_) => {
                "copy revoked.pem again from the folder of the authority that issued the certificate"
            }
            Self::Usage(_) => {
                "issue one with the key usage digital signature and the extended usages TLS client and TLS server \
                 authentication, as `bumpless pki issue NODE.PAIR` does"
            }
            Self::OtherName { .. } => {
                "give each node the certificate that was issued for its name in the configuration, NODE.PAIR with a site behind \
                 that is the same for all nodes of the pair"
            }
            Self::SeveralNames(_) => "issue one with a single name for this node",
            Self::OwnName(_) | Self::OwnKey => {
                "issue each node a certificate of its own with `bumpless pki issue NODE.PAIR`, and do not copy one node's \
                 folder to the other"
            }
            Self::NoAuthority => {
                "give the certificate of the authority, authority.pem of the folder that `bumpless pki issue` made"
            }
            Self::Other(_) => "issue another one: `bumpless pki issue NODE.PAIR`",
        }
    }
}

fn listed(names: &[String]) -> String {
    match names {
        [] => "no name of DNS".into(),
        names => names.join(", "),
    }
}

impl fmt::Display for CertificateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the certificate {}; {}", self.wrong(), self.remedy())
    }
}

impl std::error::Error for CertificateFault {}
