//! What the values of fields look like that no other file has.

use std::net::{IpAddr, Ipv6Addr};

use bumpless_config::reading::{Describe, Each, Fault, Item, Lines, Shape, Text, fault, show};

use super::prefix::Prefix;

/// A range of addresses.
pub struct AddressPrefix;

impl Describe for AddressPrefix {
    fn accepts(&self) -> String {
        "a prefix such as \"10.1.0.0/16\" or \"fd00:a::/64\"".into()
    }
}

impl Shape for AddressPrefix {
    type Out = Prefix;
    fn read(&self, item: &Item, _: &Lines) -> Result<Prefix, Vec<Fault>> {
        let Some(text) = item.as_str() else {
            return fault(show(item));
        };
        Prefix::parse(text).map_err(|(wrong, right)| {
            vec![Fault {
                line: None,
                element: String::new(),
                wrong,
                right: Some(right),
            }]
        })
    }
}

/// A pattern for names of hosts.
pub struct NamePattern;

impl Describe for NamePattern {
    fn accepts(&self) -> String {
        "a name of letters, digits, - and ., in which * stands for anything, such as \"*.nw-a.example\"".into()
    }
}

impl Shape for NamePattern {
    type Out = String;
    fn read(&self, item: &Item, _: &Lines) -> Result<String, Vec<Fault>> {
        let fine = |c: char| c.is_ascii_alphanumeric() || "-.*".contains(c);
        match item.as_str() {
            Some(text) if (1..=253).contains(&text.len()) && text.chars().all(fine) => {
                match text.chars().all(|c| c == '*') {
                    true => fault("is a pattern that every name matches"),
                    false => Ok(text.to_ascii_lowercase()),
                }
            }
            _ => fault(show(item)),
        }
    }
}

/// The address of a group.
pub struct GroupAddress;

impl Describe for GroupAddress {
    fn accepts(&self) -> String {
        "a multicast address such as \"239.1.2.3\" or \"ff35::1:2\"".into()
    }
}

impl Shape for GroupAddress {
    type Out = IpAddr;
    fn read(&self, item: &Item, _: &Lines) -> Result<IpAddr, Vec<Fault>> {
        let told = |wrong: String, right: Option<&str>| {
            Err(vec![Fault {
                line: None,
                element: String::new(),
                wrong,
                right: right.map(Into::into),
            }])
        };
        match item.as_str().and_then(|text| text.parse().ok()) {
            Some(IpAddr::V4(group)) if group.octets()[..3] == [224, 0, 0] => told(
                format!("is {group}, of those for routers' own messages"),
                Some("another group: switches and routers treat 224.0.0.0/24 unlike all others"),
            ),
            Some(IpAddr::V6(group)) if group.is_multicast() => match refusal_of_scope(group) {
                None => Ok(group.into()),
                Some((scope, right)) => told(format!("is {group}, {scope}"), Some(right)),
            },
            Some(group) if group.is_multicast() => Ok(group),
            Some(host) => told(
                format!("is {host}, the address of one host"),
                Some(
                    "a group, 224.0.1.0 to 239.255.255.255 or of ff00::/8; what goes to one host needs no [[group]]",
                ),
            ),
            None => fault(show(item)),
        }
    }
}

/// Why a group of IPv6 is none of several networks, by its scope (RFC 4291, 2.7), and what would be right.
const fn refusal_of_scope(group: Ipv6Addr) -> Option<(&'static str, &'static str)> {
    match group.octets()[1] & 15 {
        1 => Some((
            "which leaves no host (interface-local scope)",
            "a group whose packets leave the host, such as ff05::1:2 of one site",
        )),
        2 => Some((
            "another group on each link (link-local scope), whose senders' addresses hold on one link alone",
            "a group of one site (ff05::1:2, or ff35::1:2 for one source), of an organization (ff08) or of all (ff0e)",
        )),
        0 | 15 => Some((
            "whose scope is reserved",
            "a group of one site (ff05::1:2), of an organization (ff08) or of all (ff0e)",
        )),
        _ => None,
    }
}

/// A list of paths, each once.
pub const PATHS: Each<Text> = Each {
    of: Text {
        what: "a path",
        max: 4096,
    },
    several: "paths",
    // Most secrets that a host opens with.
    max: 4,
    example: "[\"group.key\"]",
};

/// Hosts as their certificates call them.
pub const HOSTS: Each<Text> = Each {
    of: Text {
        what: "the name of a host",
        max: 32,
    },
    several: "names of hosts",
    max: 1024,
    example: "[\"pmu-1\", \"pdc\"]",
};
