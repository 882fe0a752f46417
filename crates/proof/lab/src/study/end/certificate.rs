//! What TLS takes at both ends: a certificate for this run alone.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// Whose certificate it is.
pub const NAME: &str = "substation";

/// Settings of both ends, made once for a study. Only the public certificate is shared, and the client proves it.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// Of the client.
    pub client: Arc<ClientConfig>,
    /// Of the server.
    pub server: Arc<ServerConfig>,
}

impl Certificate {
    /// A new one (ECDSA P-256).
    ///
    /// # Errors
    /// The library refuses, in its words.
    pub fn new() -> Result<Self, String> {
        let refused = |error: &dyn std::fmt::Display| format!("cannot make a certificate: {error}");
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()]);
        let made = made.map_err(|error| refused(&error))?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = Arc::new(ring::default_provider());
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .and_then(|it| {
                let chain = vec![made.cert.der().clone()];
                it.with_no_client_auth()
                    .with_single_cert(chain, PrivateKeyDer::Pkcs8(key))
            })
            .map_err(|error| refused(&error))?;
        let mut roots = RootCertStore::empty();
        roots
            .add(made.cert.der().clone())
            .map_err(|error| refused(&error))?;
        let client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| refused(&error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            client: Arc::new(client),
            server: Arc::new(server),
        })
    }
}
