//! What the values of fields look like that no other file has.

use bumpless_config::reading::{Describe, Fault, Item, Lines, Shape, Text, fault, quote, show};

use super::prefix::Prefix;

/// The name of an interface.
pub struct InterfaceName;

/// As the kernel has it: IFNAMSIZ with its zero.
const INTERFACE_MAX: usize = 15;

impl Describe for InterfaceName {
    fn accepts(&self) -> String {
        format!("the name of one interface, of 1 to {INTERFACE_MAX} bytes, as `ip link` shows it")
    }
}

impl Shape for InterfaceName {
    type Out = String;
    fn read(&self, item: &Item, _: &Lines) -> Result<String, Vec<Fault>> {
        let odd = |c: char| c.is_whitespace() || c.is_control() || c == '/' || c == '*';
        match item.as_str() {
            Some(text) if (1..=INTERFACE_MAX).contains(&text.len()) && !text.contains(odd) => {
                Ok(text.to_owned())
            }
            _ => fault(show(item)),
        }
    }
}

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

/// A port, or several in a row.
pub struct PortRange;

impl Describe for PortRange {
    fn accepts(&self) -> String {
        "a port from 1 to 65535, or the first and last of several, as 4713 or \"4713-4720\"".into()
    }
}

impl Shape for PortRange {
    type Out = (u16, u16);
    fn read(&self, item: &Item, _: &Lines) -> Result<(u16, u16), Vec<Fault>> {
        let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0);
        let range = match (item.as_integer(), item.as_str()) {
            (Some(number), _) => u16::try_from(number)
                .ok()
                .filter(|port| *port > 0)
                .map(|port| (port, port)),
            (_, Some(text)) => match text.split_once('-') {
                Some((first, last)) => port(first).zip(port(last)),
                None => port(text).map(|port| (port, port)),
            },
            _ => None,
        };
        match range {
            Some((first, last)) if first > last => {
                fault(format!("begins at {first} and ends at {last}"))
            }
            Some(range) => Ok(range),
            None => fault(show(item)),
        }
    }
}

/// A list of texts, each once.
pub struct Texts {
    /// One of them.
    pub one: Text,
    /// What several are called.
    pub several: &'static str,
    /// Most of them.
    pub max: usize,
    /// Such as.
    pub example: &'static str,
}

/// Files with secrets.
pub const PATHS: Texts = Texts {
    one: Text {
        what: "a path",
        max: 4096,
    },
    several: "paths",
    max: 4,
    example: "[\"group.key\"]",
};
/// Hosts as their certificates call them.
pub const HOSTS: Texts = Texts {
    one: Text {
        what: "the name of a host",
        max: 32,
    },
    several: "names of hosts",
    max: 1024,
    example: "[\"pmu-1\", \"pdc\"]",
};

impl Describe for Texts {
    fn accepts(&self) -> String {
        let Self {
            several,
            max,
            example,
            ..
        } = self;
        format!("a list of 1 to {max} {several}, each once, such as {example}")
    }
}

impl Shape for Texts {
    type Out = Vec<String>;
    fn read(&self, item: &Item, lines: &Lines) -> Result<Vec<String>, Vec<Fault>> {
        let Some(list) = item.as_array() else {
            return fault(show(item));
        };
        if list.is_empty() || list.len() > self.max {
            return fault(format!("is a list of {}", list.len()));
        }
        let (mut texts, mut faults) = (Vec::new(), Vec::new());
        for (i, value) in list.iter().enumerate() {
            let at = |mut fault: Fault| {
                fault.line = Some(lines.of(value.span()));
                fault.element = format!("[{}]", i + 1);
                fault
            };
            match self.one.read(&Item::Value(value.clone()), lines) {
                Ok(text) if texts.contains(&text) => faults.push(at(Fault {
                    line: None,
                    element: String::new(),
                    wrong: format!("names {} again", quote(&text)),
                    right: Some("name each once".into()),
                })),
                Ok(text) => texts.push(text),
                Err(wrong) => faults.extend(wrong.into_iter().map(|mut it| {
                    it.right = Some(self.one.accepts());
                    at(it)
                })),
            }
        }
        match faults.is_empty() {
            true => Ok(texts),
            false => Err(faults),
        }
    }
}
