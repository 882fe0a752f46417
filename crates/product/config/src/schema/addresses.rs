//! Shapes of fields that hold network addresses.

use std::net::{IpAddr, SocketAddr};

use toml_edit::{Item, TableLike};

use crate::lines::Lines;
use crate::shape::{Describe, Fault, Mention, Shape, fault, quote, show};

/// An IP address with port.
pub(crate) struct Address;

impl Address {
    /// The address, or what is wrong with it.
    pub(crate) fn check(text: &str) -> Result<SocketAddr, String> {
        let Ok(address) = text.parse::<SocketAddr>() else {
            return Err(format!("is the text {}", quote(text)));
        };
        if address.port() == 0 {
            return Err(format!("is {text}, and port 0 is nowhere"));
        }
        match unusable(address.ip()) {
            Some(reason) => Err(format!("is {text}, {reason}")),
            None => Ok(address),
        }
    }
}

/// Why nobody can be reached at `ip`.
pub(crate) fn unusable(ip: IpAddr) -> Option<&'static str> {
    let mapped = matches!(ip, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some());
    let broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    match () {
        () if ip.is_unspecified() => Some("which stands for every address"),
        () if ip.is_multicast() => Some("a multicast address"),
        () if broadcast => Some("the broadcast address"),
        () if mapped => Some("an IPv4 address in IPv6 clothes; write the IPv4 address"),
        () => None,
    }
}

impl Describe for Address {
    fn accepts(&self) -> String {
        "one host's IP address and port, such as \"192.0.2.1:4700\" or \"[2001:db8::1]:4700\""
            .into()
    }
}

impl Shape for Address {
    type Out = SocketAddr;
    fn read(&self, item: &Item, _: &Lines) -> Result<SocketAddr, Vec<Fault>> {
        match item.as_str().map(Self::check) {
            Some(checked) => checked.or_else(fault),
            None => fault(show(item)),
        }
    }
}

/// An IP address, and the port unless it is the usual one.
pub(crate) struct DeviceAddress;

/// One of [`DeviceAddress`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceAt {
    ip: IpAddr,
    port: Option<u16>,
}

impl DeviceAt {
    /// With the port of Modbus TCP, or with that of Modbus/TCP Security, unless another one is given.
    pub(crate) fn with_port(self, secure: bool) -> SocketAddr {
        self.or_port(if secure { 802 } else { 502 })
    }

    /// With this port unless another one is given.
    pub(crate) fn or_port(self, usual: u16) -> SocketAddr {
        SocketAddr::new(self.ip, self.port.unwrap_or(usual))
    }

    /// Whether a port is given.
    pub(crate) const fn has_port(self) -> bool {
        self.port.is_some()
    }
}

impl Describe for DeviceAddress {
    fn accepts(&self) -> String {
        "one host's IP address, and the port if it is not 502, 802 with security = \"tls\", or 4840 with kind = \"opcua\": \
         such as \"192.0.2.1\", \"192.0.2.1:4700\" or \"[2001:db8::1]:4700\""
            .into()
    }
}

impl Shape for DeviceAddress {
    type Out = DeviceAt;
    fn read(&self, item: &Item, lines: &Lines) -> Result<DeviceAt, Vec<Fault>> {
        let text = item.as_str().unwrap_or_default();
        match text.parse::<IpAddr>() {
            Ok(ip) => match unusable(ip) {
                Some(reason) => fault(format!("is {text}, {reason}")),
                None => Ok(DeviceAt { ip, port: None }),
            },
            Err(_) => Address.read(item, lines).map(|address| DeviceAt {
                ip: address.ip(),
                port: Some(address.port()),
            }),
        }
    }
}

/// The name in a device's certificate.
pub(crate) struct ServerName;

impl Describe for ServerName {
    fn accepts(&self) -> String {
        "a name of DNS such as \"pump.plant7.example.com\", NAME.field, or an IP address".into()
    }
}

impl Shape for ServerName {
    type Out = String;
    fn read(&self, item: &Item, _: &Lines) -> Result<String, Vec<Fault>> {
        let Some(text) = item.as_str() else {
            return fault(show(item));
        };
        let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let label = |label: &str| {
            let at_ends = label.starts_with('-') || label.ends_with('-');
            (1..=63).contains(&label.len()) && label.chars().all(fine) && !at_ends
        };
        let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
        let name = text.len() <= 190
            && text.split('.').all(label)
            && !text.rsplit('.').next().is_some_and(digits);
        match name || text.parse::<IpAddr>().is_ok() {
            true => Ok(text.to_owned()),
            false => fault(format!("is the text {}", quote(text))),
        }
    }
}

/// Addresses by the name of their network.
pub(crate) struct Addresses;

/// One entry of [`Addresses`].
#[derive(Clone, Debug)]
pub(crate) struct AddressEntry {
    pub(crate) network: Mention,
    /// The address, or what is wrong with it; a wrong one must not hide the others.
    pub(crate) address: Result<SocketAddr, String>,
}

impl Describe for Addresses {
    fn accepts(&self) -> String {
        "one address with port for each network, such as { A = \"192.0.2.1:4700\" }".into()
    }
}

impl Shape for Addresses {
    type Out = Vec<AddressEntry>;
    fn read(&self, item: &Item, lines: &Lines) -> Result<Vec<AddressEntry>, Vec<Fault>> {
        let Some(table) = item.as_table_like() else {
            return fault(show(item));
        };
        if table.is_empty() {
            return fault("is empty");
        }
        let entries = TableLike::iter(table).map(|(name, item)| AddressEntry {
            network: Mention {
                name: name.to_owned(),
                line: lines.of(item.span()),
            },
            address: item
                .as_str()
                .map_or_else(|| Err(show(item)), Address::check),
        });
        Ok(entries.collect())
    }
}
