//! TLS between two ends, in memory.

use std::sync::Arc;

use bumpless_pki::IdentityPaths;
use bumpless_pki::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use bumpless_pki::rustls::crypto::ring;
use bumpless_pki::rustls::pki_types::pem::PemObject;
use bumpless_pki::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use bumpless_pki::rustls::version::TLS13;
use bumpless_pki::rustls::{
    self, ClientConfig, ClientConnection, Connection, DigitallySignedStruct, ServerConfig,
    ServerConnection, SignatureScheme, SupportedProtocolVersion,
};

/// Passes what each side has to say to the other until both are silent.
pub fn talk(caller: &mut Connection, called: &mut Connection) -> [Option<rustls::Error>; 2] {
    let mut errors = [None, None];
    for _ in 0..20 {
        let moved = pass(caller, called, &mut errors[1]) | pass(called, caller, &mut errors[0]);
        if !moved {
            return errors;
        }
    }
    panic!("a handshake without an end");
}

fn pass(from: &mut Connection, to: &mut Connection, error: &mut Option<rustls::Error>) -> bool {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).unwrap();
    }
    let mut rest = &bytes[..];
    while !rest.is_empty() && error.is_none() {
        to.read_tls(&mut rest).unwrap();
        *error = to.process_new_packets().err();
    }
    !bytes.is_empty()
}

/// Both ends of a connection that is about to begin.
pub fn connect(client: Arc<ClientConfig>, server: Arc<ServerConfig>) -> (Connection, Connection) {
    let anything = ServerName::try_from("node").unwrap();
    let client = ClientConnection::new(client, anything).unwrap();
    let server = ServerConnection::new(server).unwrap();
    (client.into(), server.into())
}

/// Whatever calls `called` without being a node: its certificate is not looked at before it is shown.
#[derive(Debug)]
struct Anyone;

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let all = ring::default_provider().signature_verification_algorithms;
        all.supported_schemes()
    }
}

/// A certificate and those between it and its authority, with its key.
pub type Shown = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// What is in these files.
pub fn files(paths: &IdentityPaths) -> Shown {
    let chain = CertificateDer::pem_file_iter(&paths.certificate).unwrap();
    let key = PrivateKeyDer::from_pem_file(&paths.key).unwrap();
    (chain.collect::<Result<_, _>>().unwrap(), key)
}

/// Who shows what nothing has checked, or nothing at all, and speaks `protocols`.
pub fn intruder(
    shown: Option<Shown>,
    protocols: &[&[u8]],
    version: &'static SupportedProtocolVersion,
) -> ClientConfig {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone));
    let mut config = match shown {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).unwrap(),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = protocols.iter().map(|it| it.to_vec()).collect();
    config
}

/// The same, where a partner is expected to answer.
pub fn impostor((chain, key): Shown, protocols: &[&[u8]]) -> Arc<ServerConfig> {
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_no_client_auth();
    let mut config = builder.with_single_cert(chain, key).unwrap();
    config.alpn_protocols = protocols.iter().map(|it| it.to_vec()).collect();
    Arc::new(config)
}
