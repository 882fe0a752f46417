//! TLS between nodes and field devices (Modbus/TCP Security): who a device is, and whom it lets in.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme,
    SupportedProtocolVersion,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::certificate::{Certificate, CertificateFault};
use crate::identity::Identity;
use crate::partner::{Trust, refused};

/// The second part of the name in the certificate of a field device that the site's authority issued, where a node has its
/// pair.
pub const FIELD: &str = "field";

/// What the standard asks for, and what it permits besides.
const VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];

/// What a field device is called in its certificate: a name of DNS, or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceName {
    text: String,
    name: ServerName<'static>,
}

impl DeviceName {
    /// The device that `text` names, whole or as `NAME.field` of this `site`; without that, the one at `address`.
    ///
    /// # Errors
    /// It is neither a name of DNS nor an address.
    pub fn new(text: Option<&str>, address: IpAddr, site: &str) -> Result<Self, BadDeviceName> {
        let text = match text {
            None => address.to_string(),
            Some(text) => match text.split_once('.') {
                Some((_, second)) if second.eq_ignore_ascii_case(FIELD) => format!("{text}.{site}"),
                _ => text.to_owned(),
            },
        };
        let text = text.to_ascii_lowercase();
        match ServerName::try_from(text.clone()) {
            Ok(name) => Ok(Self { text, name }),
            Err(_) => Err(BadDeviceName(text)),
        }
    }

    /// As the library takes it.
    pub fn server_name(&self) -> ServerName<'static> {
        self.name.clone()
    }

    /// Whether it is one of the names in the certificate, letter by letter.
    fn is_in(&self, read: &Certificate) -> bool {
        match self.name {
            ServerName::IpAddress(address) => read.addresses.contains(&address.into()),
            _ => read.is_for(&self.text),
        }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What is no name of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadDeviceName(String);

impl fmt::Display for BadDeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} cannot stand in a device's certificate; give a name of DNS, an address, or NAME.{FIELD}",
            self.0
        )
    }
}

impl std::error::Error for BadDeviceName {}

impl Identity {
    /// For a connection to the field device of this name, by TLS 1.3 or 1.2.
    ///
    /// # Errors
    /// `rustls` does not take the setup, which would be a defect of this program.
    pub fn field_client_config(&self, device: &DeviceName) -> Result<Arc<ClientConfig>, Error> {
        let builder = ClientConfig::builder_with_details(self.provider(), self.clock());
        let mut config = builder
            .with_protocol_versions(&VERSIONS)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Device {
                trust: self.trust(),
                expected: device.clone(),
            }))
            .with_client_cert_resolver(self.shown());
        // Each connection shows and checks certificates anew; those that a takeover needs are there before it.
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        Ok(Arc::new(config))
    }

    /// For connections to this field device, by TLS 1.3 or 1.2, of whoever shows a certificate of its authorities.
    ///
    /// # Errors
    /// As [`Identity::field_client_config`].
    pub fn field_server_config(&self) -> Result<Arc<ServerConfig>, Error> {
        let builder = ServerConfig::builder_with_details(self.provider(), self.clock());
        let mut config = builder
            .with_protocol_versions(&VERSIONS)?
            .with_client_cert_verifier(Arc::new(Clients(self.trust())))
            .with_cert_resolver(self.shown());
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        Ok(Arc::new(config))
    }
}

/// Believes one field device.
#[derive(Debug)]
struct Device {
    trust: Arc<Trust>,
    expected: DeviceName,
}

impl ServerCertVerifier for Device {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let name = &self.expected.text;
        self.trust
            .check_called(end_entity, intermediates, name, now)?;
        let read = Certificate::read(end_entity).map_err(refused)?;
        // rustls would take a wildcard for the name.
        if !self.expected.is_in(&read) {
            let addresses = read.addresses.iter().map(ToString::to_string);
            let found = read.names.iter().cloned().chain(addresses).collect();
            let expected = vec![name.clone()];
            return Err(refused(CertificateFault::OtherName { expected, found }));
        }
        match read.signs {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(refused(CertificateFault::Usage("digital signatures"))),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trust
            .server()
            .verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trust
            .server()
            .verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.trust.server().supported_verify_schemes()
    }
}

/// Lets in whoever shows a certificate of the authorities; what it may do hangs on its [`Role`](crate::Role).
#[derive(Debug)]
struct Clients(Arc<Trust>);

impl ClientCertVerifier for Clients {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.client().root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.0.check_calling(end_entity, intermediates, now)?;
        match Certificate::read(end_entity).map_err(refused)?.signs {
            true => Ok(ClientCertVerified::assertion()),
            false => Err(refused(CertificateFault::Usage("digital signatures"))),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.client().verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.client().verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.client().supported_verify_schemes()
    }
}
