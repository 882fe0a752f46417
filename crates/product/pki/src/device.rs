//! TLS between nodes and field devices (Modbus/TCP Security): who a device is, and whom it lets in.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, Error, ServerConfig, SupportedProtocolVersion};
use rustls_pki_types::ServerName;

use crate::certificate::{Certificate, CertificateFault};
use crate::identity::Identity;
use crate::trust::{Called, Judge, Verifier};

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
            .with_custom_certificate_verifier(Arc::new(Verifier {
                trust: self.trust(),
                who: device.clone(),
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
            .with_client_cert_verifier(Arc::new(Verifier {
                trust: self.trust(),
                who: Clients,
            }))
            .with_cert_resolver(self.shown());
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        Ok(Arc::new(config))
    }
}

impl Judge for DeviceName {
    /// Letter by letter: rustls would take a wildcard for the name.
    fn judge(&self, read: &Certificate) -> Result<(), CertificateFault> {
        if self.is_in(read) {
            return Ok(());
        }
        let addresses = read.addresses.iter().map(ToString::to_string);
        Err(CertificateFault::OtherName {
            expected: vec![self.text.clone()],
            found: read.names.iter().cloned().chain(addresses).collect(),
        })
    }
}

impl Called for DeviceName {
    fn name(&self, _: &Certificate) -> Result<String, CertificateFault> {
        Ok(self.text.clone())
    }
}

/// Whoever shows a certificate of the authorities; what it may do hangs on its [`Role`](crate::Role).
#[derive(Debug)]
struct Clients;

impl Judge for Clients {
    fn judge(&self, _: &Certificate) -> Result<(), CertificateFault> {
        Ok(())
    }
}
