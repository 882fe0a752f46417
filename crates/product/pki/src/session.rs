//! TLS 1.3 between two nodes, each of which shows its certificate.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::sign::SingleCertAndKey;
use rustls::version::TLS13;
use rustls::{ClientConfig, CommonState, ServerConfig};
use rustls_pki_types::CertificateDer;

use crate::certificate::{Certificate, CertificateFault};
use crate::clock::now;
use crate::identity::Identity;
use crate::name::NodeName;
use crate::partner::{Expected, Partners};
use crate::refusal::{Refusal, explain};
use crate::trust::Verifier;

/// The protocol over TLS, as ALPN names it (RFC 7301). Its number is the version.
pub const PROTOCOL: &[u8] = b"bumpless/1";

impl Identity {
    /// For a session with who is `expected`, which this node calls. The name that is given to `ClientConnection::new` does
    /// not matter: it is not sent, and the certificate is compared with who is expected.
    ///
    /// # Errors
    /// `rustls` does not take the setup, which would be a defect of this program.
    pub fn client_config(
        &self,
        expected: impl Into<Expected>,
    ) -> Result<Arc<ClientConfig>, rustls::Error> {
        self.client_config_of(expected, PROTOCOL)
    }

    /// The same for sessions in which another `protocol` is spoken: what speaks one is refused by what speaks another.
    ///
    /// # Errors
    /// As [`Identity::client_config`].
    pub fn client_config_of(
        &self,
        expected: impl Into<Expected>,
        protocol: &[u8],
    ) -> Result<Arc<ClientConfig>, rustls::Error> {
        let verifier = Arc::new(self.partners(expected.into()));
        let builder = ClientConfig::builder_with_details(self.provider(), self.clock());
        let mut config = builder
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_cert_resolver(self.shown());
        config.alpn_protocols = vec![protocol.to_vec()];
        // Each session shows and checks certificates anew.
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        Ok(Arc::new(config))
    }

    /// For sessions that any of those `expected` begins with this node. [`admitted`] tells which one has.
    ///
    /// # Errors
    /// As [`Identity::client_config`].
    pub fn server_config(
        &self,
        expected: impl Into<Expected>,
    ) -> Result<Arc<ServerConfig>, rustls::Error> {
        self.server_config_of(expected, PROTOCOL)
    }

    /// The same for sessions in which another `protocol` is spoken. [`admitted_by`] tells who has begun one.
    ///
    /// # Errors
    /// As [`Identity::client_config`].
    pub fn server_config_of(
        &self,
        expected: impl Into<Expected>,
        protocol: &[u8],
    ) -> Result<Arc<ServerConfig>, rustls::Error> {
        let builder = ServerConfig::builder_with_details(self.provider(), self.clock());
        let mut config = builder
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(Arc::new(self.partners(expected.into())))
            .with_cert_resolver(self.shown());
        config.alpn_protocols = vec![protocol.to_vec()];
        // Each session shows and checks certificates anew. Without tickets there is no early data either, which can be
        // repeated.
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    /// Whether a certificate that was `shown` in an earlier session, or one between it and its authority, has been revoked
    /// since, by the lists of this identity. The end of its time does not matter: who has ended and is revoked is revoked.
    pub fn has_revoked(&self, shown: &[CertificateDer<'_>]) -> bool {
        let Some((own, between)) = shown.split_first() else {
            return false;
        };
        let mut at = now(&self.clock());
        // Times are looked at before lists. So it is judged again at a moment at which it was valid; each has its own.
        for _ in 0..=shown.len() {
            let judged = self.before().check_calling(own, between, at);
            at = match judged.map_err(|error| explain(&error)) {
                Err(Refusal::Partner(CertificateFault::Revoked)) => return true,
                Err(Refusal::Partner(CertificateFault::Expired { ended, .. })) => ended,
                Err(Refusal::Partner(CertificateFault::NotYet { begins, .. })) => begins,
                _ => return false,
            };
        }
        false
    }

    fn partners(&self, expected: Expected) -> Verifier<Partners> {
        Verifier {
            trust: self.trust(),
            who: Partners {
                own: self.name().clone(),
                own_key: self.certificate().key.clone(),
                expected,
            },
        }
    }

    pub(crate) fn shown(&self) -> Arc<SingleCertAndKey> {
        Arc::new(SingleCertAndKey::from(self.certified()))
    }
}

/// The one of those `expected` at the other end of `session`, whose handshake is complete.
///
/// # Errors
/// The other end does not speak [`PROTOCOL`], or is none of them.
pub fn admitted(session: &CommonState, expected: &Expected) -> Result<NodeName, Refusal> {
    admitted_by(session, expected, PROTOCOL)
}

/// As [`admitted`], in a session in which another `protocol` is spoken.
///
/// # Errors
/// The other end does not speak it, or is none of those expected.
pub fn admitted_by(
    session: &CommonState,
    expected: &Expected,
    protocol: &[u8],
) -> Result<NodeName, Refusal> {
    // Who offers no protocol at all is not refused by rustls.
    if session.alpn_protocol() != Some(protocol) {
        return Err(Refusal::Protocol);
    }
    let shown = session.peer_certificates().and_then(<[_]>::first);
    let read = Certificate::read(shown.ok_or(Refusal::NoCertificate)?);
    let found = read.and_then(|read| expected.named(&read));
    found.map_err(Refusal::Partner)
}
