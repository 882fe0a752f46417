//! Which certificates are believed: rustls judges chain, time, use and revocation, and others judge whose one is.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, RootCertStore,
    SignatureScheme,
};
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, ServerName, UnixTime};

use crate::certificate::{Certificate, CertificateFault};

/// The authorities and their revocation lists: judges whether a certificate is one of theirs, valid and not revoked.
#[derive(Debug)]
pub struct Trust {
    server: Arc<WebPkiServerVerifier>,
    client: Arc<dyn ClientCertVerifier>,
}

impl Trust {
    /// Trusts these authorities, but for what these lists revoke.
    ///
    /// # Errors
    /// No authorities, or a list that cannot be read.
    pub fn new(
        authorities: RootCertStore,
        lists: &[CertificateRevocationListDer<'static>],
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, rustls::server::VerifierBuilderError> {
        let authorities = Arc::new(authorities);
        // A list says nothing of other authorities' certificates, which may have none. A list that should have been
        // renewed still counts: a pair must not come apart because nobody has copied a file.
        let server = WebPkiServerVerifier::builder_with_provider(
            Arc::clone(&authorities),
            Arc::clone(provider),
        )
        .with_crls(lists.iter().cloned())
        .allow_unknown_revocation_status()
        .build()?;
        let client = WebPkiClientVerifier::builder_with_provider(authorities, Arc::clone(provider))
            .with_crls(lists.iter().cloned())
            .allow_unknown_revocation_status()
            // Whoever asks is not told which authorities count.
            .clear_root_hint_subjects()
            .build()?;
        Ok(Self { server, client })
    }

    /// Whether the certificate can be believed as that of a node that has been called, and has this `name`. rustls would
    /// take a wildcard for one: who may not have one, compares names, too.
    pub fn check_called(
        &self,
        node: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &str,
        now: UnixTime,
    ) -> Result<(), Error> {
        let name = ServerName::try_from(name).map_err(|_| Error::UnsupportedNameType)?;
        let checked = self
            .server
            .verify_server_cert(node, between, &name, &[], now);
        checked.map(|_| ())
    }

    /// Whether the certificate can be believed as that of a node that calls.
    pub fn check_calling(
        &self,
        node: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let checked = self.client.verify_client_cert(node, between, now);
        checked.map(|_| ())
    }
}

/// Judges whose a certificate is that the authorities vouch for.
pub trait Judge: fmt::Debug + Send + Sync {
    /// # Errors
    /// Why nobody with it is let in.
    fn judge(&self, read: &Certificate) -> Result<(), CertificateFault>;
}

/// Judges certificates of those who are called.
pub trait Called: Judge {
    /// The name by which rustls is to judge the certificate.
    ///
    /// # Errors
    /// There is none.
    fn name(&self, read: &Certificate) -> Result<String, CertificateFault>;
}

/// Believes those of whom `who` says so, of all for whom the authorities vouch.
#[derive(Debug)]
pub struct Verifier<J> {
    pub trust: Arc<Trust>,
    pub who: J,
}

impl<J: Judge> Verifier<J> {
    fn judge(&self, read: &Certificate) -> Result<(), Error> {
        self.who.judge(read).map_err(refused)?;
        match read.signs {
            true => Ok(()),
            false => Err(refused(CertificateFault::Usage("digital signatures"))),
        }
    }
}

/// As rustls passes it through to [`crate::explain`].
fn refused(fault: CertificateFault) -> Error {
    Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(fault))))
}

impl<J: Called> ServerCertVerifier for Verifier<J> {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let read = Certificate::read(end_entity).map_err(refused)?;
        let name = self.who.name(&read).map_err(refused)?;
        self.trust
            .check_called(end_entity, intermediates, &name, now)?;
        self.judge(&read)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trust.server.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trust.server.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.trust.server.supported_verify_schemes()
    }
}

impl<J: Judge> ClientCertVerifier for Verifier<J> {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.trust.client.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.trust.check_calling(end_entity, intermediates, now)?;
        let read = Certificate::read(end_entity).map_err(refused)?;
        self.judge(&read)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trust.client.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trust.client.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.trust.client.supported_verify_schemes()
    }
}
