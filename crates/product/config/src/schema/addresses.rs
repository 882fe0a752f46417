//! Shapes of fields that hold network addresses.

use std::net::SocketAddr;

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
pub(crate) fn unusable(ip: std::net::IpAddr) -> Option<&'static str> {
    let mapped = matches!(ip, std::net::IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some());
    let broadcast = matches!(ip, std::net::IpAddr::V4(v4) if v4.is_broadcast());
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
