//! Which of the host's addresses is on which network, by the file's rules.

use std::fs;
use std::net::IpAddr;

use bumpless_capture::Interface;
use bumpless_config::Problem;
use bumpless_iprp::Ind;

use crate::config::{Config, NetworkRule, Rule};

/// Where hosts have their names.
const HOSTS: &str = "/etc/hosts";

/// The host's end of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The network's discriminator.
    pub ind: Ind,
    /// Name of the interface.
    pub interface: String,
    /// The kernel's number of it.
    pub index: u32,
    /// The host's address there.
    pub address: IpAddr,
    /// Longest IP packet, bytes.
    pub mtu: u32,
}

/// Names of addresses, as a hosts file has them.
#[derive(Clone, Debug, Default)]
pub struct Names(Vec<(IpAddr, String)>);

impl Names {
    /// Those of this host's file; none if it cannot be read.
    pub fn of_this_host() -> Self {
        Self::parse(&fs::read_to_string(HOSTS).unwrap_or_default())
    }

    /// Those in `text`.
    pub fn parse(text: &str) -> Self {
        let line = |line: &str| {
            let mut words = line.split('#').next()?.split_whitespace();
            let address: IpAddr = words.next()?.parse().ok()?;
            Some(
                words
                    .map(move |name| (address, name.to_ascii_lowercase()))
                    .collect::<Vec<_>>(),
            )
        };
        Self(text.lines().filter_map(line).flatten().collect())
    }

    fn has(&self, address: IpAddr, pattern: &str) -> bool {
        let mut names = self.0.iter().filter(|(of, _)| *of == address);
        names.any(|(_, name)| is_like(name, pattern))
    }
}

/// Whether `name` is like `pattern`, in which `*` stands for anything.
fn is_like(name: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<_> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// The host's networks, in order of the file.
///
/// # Errors
/// Everything that keeps the rules from saying which these are.
pub fn attachments(
    config: &Config,
    file: &str,
    interfaces: &[Interface],
    names: &Names,
) -> Result<Vec<Attachment>, Vec<Problem>> {
    let (mut found, mut problems): (Vec<(&NetworkRule, Attachment)>, Vec<Problem>) =
        (Vec::new(), Vec::new());
    for rule in &config.networks {
        let problem = |wrong: String, right: &str| Problem {
            file: file.to_owned(),
            line: rule.line,
            field: "network".into(),
            wrong,
            right: right.into(),
        };
        let attachment = match one(rule, interfaces, names) {
            Ok(Some(attachment)) => attachment,
            Ok(None) => continue,
            Err(several) => {
                let wrong = format!("matches {}", several.join(" and "));
                problems.push(problem(
                    wrong,
                    "make the rule narrower, so that it means one address",
                ));
                continue;
            }
        };
        for (other, earlier) in &found {
            let Attachment {
                interface, address, ..
            } = &attachment;
            let line = other.line;
            if earlier.address == *address {
                let wrong = format!("means {address}, which the rule on line {line} means, too");
                problems.push(problem(wrong, "let each address be on one network"));
            } else if earlier.interface == *interface {
                let wrong = format!(
                    "means {address}, and the rule on line {line} another address of the same interface {interface}"
                );
                let right = "give each network an interface of its own: what is lost on one is lost on both";
                problems.push(problem(wrong, right));
            } else if earlier.ind == attachment.ind {
                let wrong = format!(
                    "gives {address} the discriminator {}, as line {line} gives {}",
                    attachment.ind.get(),
                    earlier.address
                );
                problems.push(problem(
                    wrong,
                    "give each network of this host another discriminator",
                ));
            }
        }
        found.push((rule, attachment));
    }
    if found.is_empty() && problems.is_empty() {
        let all = interfaces.iter().flat_map(|it| {
            it.addresses
                .iter()
                .map(|address| format!("{address} ({})", it.name))
        });
        let all: Vec<_> = all.collect();
        problems.push(Problem {
            file: file.to_owned(),
            line: config.networks.first().map_or(0, |rule| rule.line),
            field: "network".into(),
            wrong: format!(
                "none of the rules matches an address of this host, which has {}",
                listed(&all)
            ),
            right: "let a rule match one of them, or bring the interface up".into(),
        });
    }
    match problems.is_empty() {
        true => Ok(found.into_iter().map(|(_, it)| it).collect()),
        false => Err(problems),
    }
}

fn listed(all: &[String]) -> String {
    match all.is_empty() {
        true => "none".into(),
        false => all.join(", "),
    }
}

/// What a rule means; `None`: nothing of this host.
fn one(
    rule: &NetworkRule,
    interfaces: &[Interface],
    names: &Names,
) -> Result<Option<Attachment>, Vec<String>> {
    let at = |interface: &Interface, address: IpAddr| Attachment {
        ind: rule.ind,
        interface: interface.name.clone(),
        index: interface.index,
        address,
        mtu: interface.mtu,
    };
    if let Rule::Interface(name) = &rule.rule {
        let interface = interfaces.iter().find(|it| it.name == *name);
        let address = interface.and_then(|interface| {
            let v4 = interface.addresses.iter().find(|it| it.is_ipv4());
            v4.or(interface.addresses.first())
        });
        return Ok(interface
            .zip(address)
            .map(|(interface, address)| at(interface, *address)));
    }
    let matches = |address: IpAddr| match &rule.rule {
        Rule::Prefix(prefix) => prefix.contains(address),
        Rule::Name(pattern) => names.has(address, pattern),
        Rule::Interface(_) => false,
    };
    let all = interfaces
        .iter()
        .flat_map(|it| it.addresses.iter().map(move |address| (it, *address)));
    let found: Vec<_> = all.filter(|(_, address)| matches(*address)).collect();
    match found[..] {
        [] => Ok(None),
        [(interface, address)] => Ok(Some(at(interface, address))),
        _ => Err(found
            .iter()
            .map(|(it, address)| format!("{address} ({})", it.name))
            .collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, addresses: &[&str]) -> Interface {
        Interface {
            name: name.into(),
            index: 2,
            mtu: 1500,
            up: true,
            addresses: addresses.iter().map(|it| it.parse().unwrap()).collect(),
            broadcasts: Vec::new(),
        }
    }

    fn found(networks: &str, interfaces: &[Interface]) -> Result<Vec<Attachment>, String> {
        let text = format!("[security]\nkeys = [\"k\"]\n{networks}");
        let config = Config::parse(&text, "f.toml").unwrap();
        let names = Names::parse(
            "10.1.0.1 pmu.nw-a.example pmu # 10.2.0.1 no\n10.2.0.1\tpmu.NW-B.example\nx y\n",
        );
        attachments(&config, "f.toml", interfaces, &names).map_err(|all| {
            let all: Vec<_> = all.iter().map(ToString::to_string).collect();
            all.join("\n")
        })
    }

    fn rule(ind: u8, rule: &str) -> String {
        format!("[[network]]\nind = {ind}\n{rule}\n")
    }

    #[test]
    fn each_rule_finds_its_address() {
        let host = [
            interface("eth0", &["fd00::1", "10.1.0.1"]),
            interface("eth1", &["10.2.0.1"]),
            interface("eth2", &["fd00:c::1"]),
        ];
        let rules = [
            rule(10, "interface = \"eth0\""),
            rule(11, "name = \"*.nw-b.*\""),
            rule(12, "prefix = \"fd00:c::/64\""),
            rule(13, "interface = \"absent\""),
        ];
        let found = found(&rules.concat(), &host).unwrap();
        let shown: Vec<_> = found
            .iter()
            .map(|it| (it.ind.get(), it.interface.as_str(), it.address.to_string()))
            .collect();
        let expected = [
            (10, "eth0", "10.1.0.1".to_owned()),
            (11, "eth1", "10.2.0.1".to_owned()),
            (12, "eth2", "fd00:c::1".to_owned()),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn networks_that_would_fail_together_are_refused() {
        let host = [interface("eth0", &["10.1.0.1", "10.2.0.1"])];
        let rules = [
            rule(10, "prefix = \"10.1.0.0/24\""),
            rule(11, "prefix = \"10.2.0.0/24\""),
        ];
        let said = found(&rules.concat(), &host).unwrap_err();
        assert!(said.contains("same interface eth0"), "{said}");
    }

    #[test]
    fn rules_that_cannot_be_followed_are_told_with_the_addresses() {
        let host = [
            interface("eth0", &["10.1.0.1"]),
            interface("eth1", &["10.1.0.2"]),
        ];
        let said = found(&rule(1, "prefix = \"10.1.0.0/16\""), &host).unwrap_err();
        assert!(
            said.contains("10.1.0.1 (eth0) and 10.1.0.2 (eth1)"),
            "{said}"
        );
        let said = found(&rule(1, "prefix = \"10.9.0.0/16\""), &host).unwrap_err();
        assert!(
            said.contains("none of the rules") && said.contains("10.1.0.2 (eth1)"),
            "{said}"
        );
        let both = [
            rule(1, "interface = \"eth0\""),
            rule(2, "prefix = \"10.1.0.1/32\""),
        ];
        let said = found(&both.concat(), &host).unwrap_err();
        assert!(said.contains("line 3"), "{said}");
        let alike = [
            rule(1, "interface = \"eth0\""),
            rule(1, "interface = \"eth1\""),
        ];
        let said = found(&alike.concat(), &host).unwrap_err();
        assert!(said.contains("discriminator"), "{said}");
    }

    #[test]
    fn patterns_match_as_written() {
        for (name, pattern, like) in [
            ("a.b", "a.b", true),
            ("a.bc", "a.b", false),
            ("nw-a1.x", "nw-a*", true),
            ("x.nw-a", "nw-a*", false),
            ("x.nw-a.y", "*.nw-a.*", true),
            ("aa", "a*a", true),
            ("a", "a*a", false),
            ("abcabc", "*abc", true),
            ("abc", "*b*", true),
        ] {
            assert_eq!(is_like(name, pattern), like, "{name} {pattern}");
        }
    }
}
