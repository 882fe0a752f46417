//! Why a TLS session was refused, in words with a remedy.

use std::fmt;

use rustls::{AlertDescription, CertRevocationListError, CertificateError, Error};
use rustls_pki_types::UnixTime;

use crate::certificate::CertificateFault;

/// Why a session was refused, here or by the partner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The partner's certificate is refused here.
    Partner(CertificateFault),
    /// The partner shows no certificate.
    NoCertificate,
    /// The partner refuses this node's certificate, by this reason in words.
    ByPartner(&'static str),
    /// The partner does not speak this protocol, or no version of it in common.
    Protocol,
    /// What came is not TLS, or was changed on its way.
    Garbled(String),
    /// Anything else, as the library says it.
    Other(String),
}

impl Refusal {
    /// What is wrong.
    pub fn wrong(&self) -> String {
        match self {
            Self::Partner(fault) => format!("the partner's certificate {}", fault.wrong()),
            Self::NoCertificate => "the partner shows no certificate".into(),
            Self::ByPartner(why) => format!("the partner refuses this node's certificate: {why}"),
            Self::Protocol => {
                "the partner does not speak this protocol of bumpless over TLS 1.3".into()
            }
            Self::Garbled(what) => {
                format!("what came is no TLS 1.3, or was changed on its way ({what})")
            }
            Self::Other(what) => format!("the session failed: {what}"),
        }
    }

    /// What would be right.
    pub fn remedy(&self) -> String {
        match self {
            Self::Partner(fault) => fault.remedy().into(),
            Self::NoCertificate => "let the partner run with a certificate, too, and look that nothing else answers at its \
                                    address"
                .into(),
            Self::ByPartner(_) => "the partner's status and log say what is wrong with it; `bumpless pki show` tells what this \
                                   node's certificate has"
                .into(),
            Self::Protocol => {
                "run one version of bumpless on both nodes, and look that nothing else answers at the partner's address".into()
            }
            Self::Garbled(_) => "look that nothing else answers at the partner's address".into(),
            Self::Other(_) => "look at the partner's log, too".into(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.wrong(), self.remedy())
    }
}

impl std::error::Error for Refusal {}

/// Why rustls refused a session, or says that the partner refused it.
pub fn explain(error: &Error) -> Refusal {
    match error {
        Error::InvalidCertificate(error) => Refusal::Partner(fault(error)),
        Error::InvalidCertRevocationList(error) => Refusal::Partner(list_fault(error)),
        Error::NoCertificatesPresented => Refusal::NoCertificate,
        Error::AlertReceived(alert) => by_partner(*alert),
        Error::NoApplicationProtocol | Error::PeerIncompatible(_) => Refusal::Protocol,
        Error::InvalidMessage(_)
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::PeerMisbehaved(_)
        | Error::DecryptError
        | Error::PeerSentOversizedRecord => Refusal::Garbled(error.to_string()),
        other => Refusal::Other(other.to_string()),
    }
}

fn by_partner(alert: AlertDescription) -> Refusal {
    match alert {
        AlertDescription::CertificateExpired => {
            Refusal::ByPartner("it has expired, or is not valid yet, by the partner's clock")
        }
        AlertDescription::CertificateRevoked => Refusal::ByPartner("it has been revoked"),
        AlertDescription::UnknownCA => {
            Refusal::ByPartner("it is of none of the partner's authorities")
        }
        AlertDescription::CertificateRequired | AlertDescription::NoCertificate => {
            Refusal::ByPartner("none was shown")
        }
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::AccessDenied
        | AlertDescription::DecryptError => {
            Refusal::ByPartner("its name, use, signature or key is not what the partner expects")
        }
        AlertDescription::NoApplicationProtocol
        | AlertDescription::ProtocolVersion
        | AlertDescription::HandshakeFailure => Refusal::Protocol,
        other => Refusal::Other(format!("the partner ended it with {other:?}")),
    }
}

/// What is wrong with a certificate that rustls refuses.
pub fn fault(error: &CertificateError) -> CertificateFault {
    // Variants without context do not say when.
    let never = UnixTime::since_unix_epoch(std::time::Duration::ZERO);
    match error {
        CertificateError::BadEncoding => CertificateFault::Garbled,
        CertificateError::ExpiredContext { time, not_after } => CertificateFault::Expired {
            ended: *not_after,
            now: *time,
        },
        CertificateError::Expired => CertificateFault::Expired {
            ended: never,
            now: never,
        },
        CertificateError::NotValidYetContext { time, not_before } => CertificateFault::NotYet {
            begins: *not_before,
            now: *time,
        },
        CertificateError::NotValidYet => CertificateFault::NotYet {
            begins: never,
            now: never,
        },
        CertificateError::UnknownIssuer => CertificateFault::OtherAuthority,
        CertificateError::BadSignature => CertificateFault::BadSignature,
        CertificateError::Revoked => CertificateFault::Revoked,
        CertificateError::UnknownRevocationStatus
        | CertificateError::ExpiredRevocationList
        | CertificateError::ExpiredRevocationListContext { .. } => {
            CertificateFault::RevocationList(error.to_string())
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            CertificateFault::Usage("both sides of a TLS session")
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => CertificateFault::OtherName {
            expected: vec![expected.to_str().into_owned()],
            found: presented.clone(),
        },
        CertificateError::Other(other) => match other.0.downcast_ref::<CertificateFault>() {
            Some(fault) => fault.clone(),
            None => CertificateFault::Other(error.to_string()),
        },
        other => CertificateFault::Other(other.to_string()),
    }
}

fn list_fault(error: &CertRevocationListError) -> CertificateFault {
    CertificateFault::RevocationList(match error {
        CertRevocationListError::BadSignature => "its signature is not the authority's".into(),
        CertRevocationListError::IssuerInvalidForCrl => "the authority may not revoke".into(),
        CertRevocationListError::ParseError => "it cannot be read".into(),
        other => format!("{other:?}"),
    })
}
