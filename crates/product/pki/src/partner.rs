//! Who counts as a partner: rustls judges the certificate's chain, time, use and revocation; this judges whose it is.

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
use crate::name::NodeName;

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

    /// What judges signatures of who has been called.
    pub(crate) fn server(&self) -> &dyn ServerCertVerifier {
        &*self.server
    }

    /// What judges signatures of who calls.
    pub(crate) fn client(&self) -> &dyn ClientCertVerifier {
        &*self.client
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

/// Who may be at the other end of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// One of these nodes.
    Nodes(Vec<NodeName>),
    /// Any node of a pair or group at a site: that of this node's name, whichever of its nodes that is.
    GroupOf(NodeName),
}

impl Expected {
    /// The name of one of these that a certificate is for.
    ///
    /// # Errors
    /// It is for none of them, or for several nodes of the group.
    pub(crate) fn named(&self, read: &Certificate) -> Result<NodeName, CertificateFault> {
        let found = match self {
            Self::Nodes(nodes) => nodes
                .iter()
                .find(|name| read.is_for(name.as_str()))
                .cloned(),
            Self::GroupOf(of) => {
                let names = read.names.iter().filter_map(|it| NodeName::parse(it).ok());
                let mut members: Vec<_> = names
                    .filter(|it| (it.pair(), it.site()) == (of.pair(), of.site()))
                    .collect();
                if members.len() > 1 {
                    let names = members.iter().map(ToString::to_string).collect();
                    return Err(CertificateFault::SeveralNames(names));
                }
                members.pop()
            }
        };
        found.ok_or_else(|| CertificateFault::OtherName {
            expected: self.told(),
            found: read.names.clone(),
        })
    }

    fn told(&self) -> Vec<String> {
        match self {
            Self::Nodes(nodes) => nodes.iter().map(ToString::to_string).collect(),
            Self::GroupOf(of) => vec![format!("a host of {}.{}", of.pair(), of.site())],
        }
    }
}

impl From<&NodeName> for Expected {
    fn from(node: &NodeName) -> Self {
        Self::Nodes(vec![node.clone()])
    }
}

impl From<&[NodeName]> for Expected {
    fn from(nodes: &[NodeName]) -> Self {
        Self::Nodes(nodes.to_vec())
    }
}

/// Lets in the partners of a node.
#[derive(Debug)]
pub struct Partners {
    pub trust: Arc<Trust>,
    /// The node's own name and public key.
    pub own: NodeName,
    pub own_key: Vec<u8>,
    /// Who may be at the other end.
    pub expected: Expected,
}

impl Partners {
    /// The name by which the certificate's chain, time and use can be judged: any that is one, as [`Self::judge`] says
    /// afterwards whose it is.
    fn any_name(&self, node: &CertificateDer<'_>) -> Result<String, Error> {
        let read = Certificate::read(node).map_err(refused)?;
        let name = read.names.iter().find(|name| NodeName::parse(name).is_ok());
        let none = || self.expected.named(&read).map(|name| name.to_string());
        name.cloned().map_or_else(none, Ok).map_err(refused)
    }

    fn judge(&self, node: &CertificateDer<'_>) -> Result<(), Error> {
        let read = Certificate::read(node).map_err(refused)?;
        self.whose(&read).map_err(refused)?;
        match read.signs {
            true => Ok(()),
            false => Err(refused(CertificateFault::Usage("digital signatures"))),
        }
    }

    fn whose(&self, read: &Certificate) -> Result<(), CertificateFault> {
        if read.is_for(self.own.as_str()) {
            return Err(CertificateFault::OwnName(self.own.clone()));
        }
        if read.key == self.own_key {
            return Err(CertificateFault::OwnKey);
        }
        self.expected.named(read).map(|_| ())
    }
}

/// As rustls passes it through to [`crate::explain`].
pub(crate) fn refused(fault: CertificateFault) -> Error {
    Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(fault))))
}

impl ServerCertVerifier for Partners {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let name = self.any_name(end_entity)?;
        self.trust
            .check_called(end_entity, intermediates, &name, now)?;
        self.judge(end_entity)?;
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

impl ClientCertVerifier for Partners {
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
        self.judge(end_entity)?;
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
