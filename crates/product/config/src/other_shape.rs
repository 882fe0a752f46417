//! What the values of fields look like in the product's other files: interfaces, ports, lists.

use std::net::SocketAddr;

use toml_edit::Item;

use crate::lines::Lines;
use crate::security::KeyServerAt;
use crate::shape::{Describe, Fault, Name, Shape, fault, show};

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

/// A key server: its name and where it answers.
pub struct ServerAt;

impl Describe for ServerAt {
    fn accepts(&self) -> String {
        "a key server as NAME@ADDRESS:PORT, such as \"main@10.0.0.5:7300\"; its certificate is called NAME.keys".into()
    }
}

impl Shape for ServerAt {
    type Out = KeyServerAt;
    fn read(&self, item: &Item, _: &Lines) -> Result<KeyServerAt, Vec<Fault>> {
        let parts = item.as_str().and_then(|text| text.split_once('@'));
        let read = parts.and_then(|(name, address)| {
            let name = Name::check(name).ok()?;
            let address: SocketAddr = address.parse().ok()?;
            let usable = address.port() != 0 && !address.ip().is_unspecified();
            usable.then_some(KeyServerAt { name, address })
        });
        match read {
            Some(server) => Ok(server),
            None => fault(show(item)),
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

/// A list of values of one shape, each once.
pub struct Each<S> {
    /// The shape.
    pub of: S,
    /// What they are called.
    pub several: &'static str,
    /// Most of them.
    pub max: usize,
    /// A list as it is written.
    pub example: &'static str,
}

impl<S: Describe> Describe for Each<S> {
    fn accepts(&self) -> String {
        let (max, several, example) = (self.max, self.several, self.example);
        format!("a list of 1 to {max} {several}, each once, such as {example}")
    }
}

impl<S: Shape> Shape for Each<S>
where
    S::Out: PartialEq,
{
    type Out = Vec<S::Out>;
    fn read(&self, item: &Item, lines: &Lines) -> Result<Vec<S::Out>, Vec<Fault>> {
        let Some(list) = item.as_array() else {
            return fault(show(item));
        };
        if list.is_empty() || list.len() > self.max {
            return fault(format!("is a list of {}", list.len()));
        }
        let (mut all, mut faults) = (Vec::new(), Vec::new());
        for (i, value) in list.iter().enumerate() {
            let at = |mut fault: Fault| {
                fault.line = Some(lines.of(value.span()));
                fault.element = format!("[{}]", i + 1);
                fault
            };
            let item = Item::Value(value.clone());
            match self.of.read(&item, lines) {
                Ok(it) if all.contains(&it) => faults.push(at(Fault {
                    line: None,
                    element: String::new(),
                    wrong: format!("{} again", show(&item)),
                    right: Some("each once".into()),
                })),
                Ok(it) => all.push(it),
                Err(wrong) => faults.extend(wrong.into_iter().map(|mut it| {
                    it.right = it.right.or_else(|| Some(self.of.accepts()));
                    at(it)
                })),
            }
        }
        match faults.is_empty() {
            true => Ok(all),
            false => Err(faults),
        }
    }
}
