//! Who counts as a partner.

use crate::certificate::{Certificate, CertificateFault};
use crate::name::NodeName;
use crate::trust::{Called, Judge};

/// Who may be at the other end of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// One of these nodes.
    Nodes(Vec<NodeName>),
    /// Any node of a pair or group at a site: that of this node's name, whichever of its nodes that is.
    GroupOf(NodeName),
}

impl Expected {
    /// The name of one of these that a certificate is for.
    ///
    /// # Errors
    /// It is for none of them, or for several nodes of the group.
    pub(crate) fn named(&self, read: &Certificate) -> Result<NodeName, CertificateFault> {
        let found = match self {
            Self::Nodes(nodes) => nodes
                .iter()
                .find(|name| read.is_for(name.as_str()))
                .cloned(),
            Self::GroupOf(of) => {
                let names = read.names.iter().filter_map(|it| NodeName::parse(it).ok());
                let mut members: Vec<_> = names
                    .filter(|it| (it.pair(), it.site()) == (of.pair(), of.site()))
                    .collect();
                if members.len() > 1 {
                    let names = members.iter().map(ToString::to_string).collect();
                    return Err(CertificateFault::SeveralNames(names));
                }
                members.pop()
            }
        };
        found.ok_or_else(|| CertificateFault::OtherName {
            expected: self.told(),
            found: read.names.clone(),
        })
    }

    fn told(&self) -> Vec<String> {
        match self {
            Self::Nodes(nodes) => nodes.iter().map(ToString::to_string).collect(),
            Self::GroupOf(of) => vec![format!("a host of {}.{}", of.pair(), of.site())],
        }
    }
}

impl From<&NodeName> for Expected {
    fn from(node: &NodeName) -> Self {
        Self::Nodes(vec![node.clone()])
    }
}

impl From<&[NodeName]> for Expected {
    fn from(nodes: &[NodeName]) -> Self {
        Self::Nodes(nodes.to_vec())
    }
}

/// The partners of a node.
#[derive(Debug)]
pub struct Partners {
    /// The node's own name and public key.
    pub own: NodeName,
    pub own_key: Vec<u8>,
    /// Who may be at the other end.
    pub expected: Expected,
}

impl Judge for Partners {
    fn judge(&self, read: &Certificate) -> Result<(), CertificateFault> {
        if read.is_for(self.own.as_str()) {
            return Err(CertificateFault::OwnName(self.own.clone()));
        }
        if read.key == self.own_key {
            return Err(CertificateFault::OwnKey);
        }
        self.expected.named(read).map(|_| ())
    }
}

impl Called for Partners {
    /// Any name of a node in it: whose it is, [`Judge::judge`] says afterwards.
    fn name(&self, read: &Certificate) -> Result<String, CertificateFault> {
        let name = read.names.iter().find(|name| NodeName::parse(name).is_ok());
        let none = || self.expected.named(read).map(|name| name.to_string());
        name.cloned().map_or_else(none, Ok)
    }
}
