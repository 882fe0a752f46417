//! Why a device was not connected to over TLS, in words with file and remedy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use bumpless_pki::rustls;
use bumpless_pki::{CertificateFault, IdentityPaths, Refusal, Role, explain};

/// The files of a node's identity, as messages name them, and the role in its certificate.
#[derive(Clone, Debug)]
pub(super) struct Own {
    certificate: PathBuf,
    authorities: PathBuf,
    revoked: PathBuf,
    pub(super) role: Option<Role>,
}

impl Own {
    pub(super) fn new(paths: &IdentityPaths, role: Option<Role>) -> Self {
        let revoked = paths.revoked.clone();
        Self {
            revoked: revoked.unwrap_or_else(|| paths.authorities.with_file_name("revoked.pem")),
            certificate: paths.certificate.clone(),
            authorities: paths.authorities.clone(),
            role,
        }
    }

    /// What the device's exception 1 may mean.
    pub(super) fn without_right(&self) -> String {
        let role = match &self.role {
            Some(role) => format!("role {role}"),
            None => "no role".into(),
        };
        format!(
            "it refuses the function (exception 1): the certificate in {} has {role}; let the device give that the right, or \
             issue another certificate with `bumpless pki issue NODE.PAIR --role ROLE`; if roles are right, the device has \
             no such registers",
            self.certificate.display()
        )
    }

    /// Why `error` ended a handshake, or a session; `None`: TLS has nothing to do with it.
    pub(super) fn words(&self, error: &io::Error) -> Option<String> {
        let inner = error.get_ref()?.downcast_ref::<rustls::Error>()?;
        Some(self.refusal(&explain(inner)))
    }

    /// It takes connections and says nothing.
    pub(super) const SILENT: &str = "it does not answer in the TLS handshake; look that it has Modbus/TCP Security at this \
         port (802 as a rule), or write security = \"open\"";

    /// The connection was closed before the handshake was complete.
    pub(super) fn unfinished(error: &io::Error) -> Option<&'static str> {
        match error.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe => Some(
                "it ended the connection in the TLS handshake; look that it has Modbus/TCP Security at this port (802 as a \
                 rule), or write security = \"open\"",
            ),
            _ => None,
        }
    }

    fn refusal(&self, refusal: &Refusal) -> String {
        let own = self.certificate.display();
        match refusal {
            Refusal::Partner(fault) => self.fault(fault),
            Refusal::NoCertificate => "it shows no certificate; give it one: `bumpless pki issue NAME.field`".into(),
            Refusal::ByPartner(why) => {
                format!("it refuses the certificate in {own}: {why}; renew that, or give the device this node's authority")
            }
            Refusal::Protocol => "it has no version or cipher of TLS in common with this node; have it speak TLS 1.3, or 1.2 with \
                                  ECDHE and AES-GCM or ChaCha20-Poly1305 and extended master secrets"
                .into(),
            Refusal::Garbled(what) => {
                format!("what it says is no TLS ({what}); look that it has Modbus/TCP Security at this port (802 as a rule), or write security = \"open\"")
            }
            Refusal::Other(what) => format!("TLS failed: {what}; look at the device's log, too"),
        }
    }

    fn fault(&self, fault: &CertificateFault) -> String {
        let file: &Path = match fault {
            CertificateFault::Revoked | CertificateFault::RevocationList(_) => &self.revoked,
            _ => &self.authorities,
        };
        let remedy = match fault {
            CertificateFault::OtherName { .. } => {
                "write the name in its certificate as server_name, or issue it another one: `bumpless pki issue NAME.field \
                 --address IP`"
            }
            CertificateFault::OtherAuthority | CertificateFault::BadSignature => {
                "issue it one of that authority (`bumpless pki issue NAME.field`), or add its own authority to the file"
            }
            CertificateFault::RevocationList(_) | CertificateFault::NotYet { .. } => fault.remedy(),
            _ => "issue it another one: `bumpless pki issue NAME.field`",
        };
        let file = file.display();
        format!(
            "its certificate, judged by {file}, {}; {remedy}",
            fault.wrong()
        )
    }
}

/// What is to be told of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldNote {
    /// The device, as configured.
    pub device: String,
    /// Why TLS with it fails, or what it refuses; `None`: that is over.
    pub refused: Option<String>,
}

impl fmt::Display for FieldNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, refused } = self;
        match refused {
            Some(refused) => write!(f, "field device {device}: {refused}"),
            None => write!(f, "field device {device}: answers over TLS again"),
        }
    }
}
