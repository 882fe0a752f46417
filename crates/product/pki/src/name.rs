//! What nodes are called in certificates.

use std::fmt;

use rustls_pki_types::DnsName;

/// Longest name of a node or pair, bytes; as in the configuration.
const LABEL_MAX: usize = 32;

/// What a node is called in its certificate: `NODE.PAIR.SITE`, in small letters.
///
/// The names of node and pair are those of the configuration, which only tell nodes of one pair and pairs of one network
/// apart. So the pair is a part of the name: a certificate for `left` of one pair is nothing to another pair of the site
/// that has a `left`, too.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeName {
    whole: String,
    /// Lengths of the first two labels.
    node: usize,
    pair: usize,
}

impl NodeName {
    /// The name of `node` of `pair` at `site`.
    ///
    /// # Errors
    /// One of them cannot stand in a certificate.
    pub fn new(node: &str, pair: &str, site: &str) -> Result<Self, BadName> {
        for (what, label) in [("node", node), ("pair", pair)] {
            if !is_label(label) {
                let what = format!("{what} {label:?}");
                let right = "a name in a certificate has 1 to 32 letters, digits, - and _, and a letter or digit or _ at both ends";
                return Err(BadName { what, right });
            }
        }
        let whole = format!("{node}.{pair}.{site}").to_ascii_lowercase();
        let fine = DnsName::try_from(whole.as_str()).is_ok() && !whole.ends_with('.');
        if !fine {
            return Err(BadName::site(site));
        }
        Ok(Self {
            whole,
            node: node.len(),
            pair: pair.len(),
        })
    }

    /// The node that `text` names at `site`, as `NODE.PAIR` or as the whole `NODE.PAIR.SITE`.
    ///
    /// # Errors
    /// It is no such name.
    pub fn at_site(text: &str, site: &str) -> Result<Self, BadName> {
        let text = text.to_ascii_lowercase();
        let short = text.strip_suffix(&format!(".{site}")).unwrap_or(&text);
        match short.split_once('.') {
            Some((node, pair)) => Self::new(node, pair, site),
            None => Err(BadName {
                what: format!("node {text:?}"),
                right: "give the node's name and the pair's as in the configuration with a dot between them, such as left.tank",
            }),
        }
    }

    /// What a certificate calls a node, if `whole` is the name of one.
    ///
    /// # Errors
    /// It is no such name: it has not three parts, or is a wildcard.
    pub fn parse(whole: &str) -> Result<Self, BadName> {
        let mut parts = whole.splitn(3, '.');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(node), Some(pair), Some(site)) => Self::new(node, pair, site),
            _ => Err(BadName {
                what: format!("name {whole:?}"),
                right: "a node is called NODE.PAIR.SITE in a certificate",
            }),
        }
    }

    /// What another node of the same pair is called.
    ///
    /// # Errors
    /// `node` cannot stand in a certificate.
    pub fn partner(&self, node: &str) -> Result<Self, BadName> {
        Self::new(node, self.pair(), self.site())
    }

    /// The whole name, `NODE.PAIR.SITE`.
    pub fn as_str(&self) -> &str {
        &self.whole
    }

    /// The node's part.
    pub fn node(&self) -> &str {
        &self.whole[..self.node]
    }

    /// The pair's part.
    pub fn pair(&self) -> &str {
        &self.whole[self.node + 1..][..self.pair]
    }

    /// The site's part.
    pub fn site(&self) -> &str {
        &self.whole[self.node + self.pair + 2..]
    }

    /// What tells the node at its site: `NODE.PAIR`.
    pub fn short(&self) -> &str {
        &self.whole[..self.node + self.pair + 1]
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.whole)
    }
}

/// What cannot stand in a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadName {
    what: String,
    right: &'static str,
}

impl BadName {
    /// `site` cannot be one.
    pub(crate) fn site(site: &str) -> Self {
        Self {
            what: format!("site {site:?}"),
            right: "a site is called as in DNS: letters, digits, -, _ and dots, the last part not a number, such as plant7 or \
                    plant7.example.com; one that makes an authority has at most 48 of them",
        }
    }

    /// What is wrong.
    pub fn wrong(&self) -> String {
        format!("the {} cannot stand in a certificate", self.what)
    }

    /// What would be right.
    pub fn remedy(&self) -> String {
        self.right.to_owned()
    }
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.wrong(), self.right)
    }
}

impl std::error::Error for BadName {}

fn is_label(text: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let at_ends = text.starts_with('-') || text.ends_with('-');
    (1..=LABEL_MAX).contains(&text.len()) && text.chars().all(fine) && !at_ends
}
