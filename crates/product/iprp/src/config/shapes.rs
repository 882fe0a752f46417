//! What the values of fields look like that no other file has.

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
