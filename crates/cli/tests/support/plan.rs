//! A configuration, written as a user would write it. Times are long compared with what a loaded
//! machine stalls for.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;

use super::addresses::Addresses;

const NETWORKS: [&str; 3] = ["A", "B", "C"];

#[derive(Clone, Debug)]
pub struct Node {
    pub name: String,
    /// Name of the network, address.
    pub addresses: Vec<(String, SocketAddr)>,
}

#[derive(Clone, Debug)]
pub struct Group {
    pub name: String,
    pub nodes: [String; 2],
}

/// What the file will say.
#[derive(Clone, Debug)]
pub struct Plan {
    pub name: String,
    pub heartbeat_ms: u32,
    pub lease_ms: u32,
    /// Messages are as they are, and nobody needs a key.
    pub open: bool,
    /// Keys last so many seconds, and are agreed on with certificates; `None`: they come from a file.
    pub key_lifetime_s: Option<u32>,
    pub start_wait_ms: u32,
    /// Further lines of `[transfer]`.
    pub transfer: String,
    /// Further lines of each network, such as `mtu = 9000`.
    pub network: String,
    pub networks: Vec<String>,
    pub nodes: Vec<Node>,
    /// Network, address.
    pub witnesses: Vec<(String, SocketAddr)>,
    pub groups: Vec<Group>,
    pub applications: Vec<String>,
    pub plant: SocketAddr,
    /// Each node has a folder for states beside its control socket.
    pub keeps: bool,
    /// Further lines of each group.
    pub group: String,
}

impl Plan {
    /// `left` and `right` with the group `tank` on this many networks, each with a witness; no
    /// application yet.
    pub fn pair(networks: u8) -> Self {
        Self::nodes(networks, &["left", "right"], &[("tank", ["left", "right"])])
    }

    /// `nodes` and `groups` of two of them.
    pub fn nodes(networks: u8, nodes: &[&str], groups: &[(&str, [&str; 2])]) -> Self {
        let at = Addresses::find();
        let network = |n: u8| NETWORKS[usize::from(n)].to_owned();
        let node = |(number, name): (usize, &&str)| Node {
            name: (*name).into(),
            addresses: (0..networks)
                .map(|n| (network(n), at.node(n, number as u8)))
                .collect(),
        };
        Self {
            name: "black-box".into(),
            heartbeat_ms: 20,
            lease_ms: 100,
            open: false,
            key_lifetime_s: None,
            start_wait_ms: 300,
            transfer: String::new(),
            network: String::new(),
            networks: (0..networks).map(network).collect(),
            nodes: nodes.iter().enumerate().map(node).collect(),
            witnesses: (0..networks).map(|n| (network(n), at.witness(n))).collect(),
            groups: groups
                .iter()
                .map(|(name, nodes)| Group {
                    name: (*name).into(),
                    nodes: nodes.map(str::to_owned),
                })
                .collect(),
            applications: Vec::new(),
            plant: at.plant(),
            keeps: false,
            group: String::new(),
        }
    }

    /// Adds the quadruple tank; `more` are further lines of its `[application.field]`.
    pub fn tank(mut self, period_ms: u32, more: &str) -> Self {
        self.applications.push(format!(
            "[[application]]\nname = \"tank\"\ngroup = \"tank\"\nkind = \"quadruple_tank\"\n\
             channel = 1\nperiod_ms = {period_ms}\n\n\
             [application.field]\naddress = \"{}\"\n{more}\n",
            self.plant
        ));
        self
    }

    /// Adds a synthetic application of `group`; `more` are further lines.
    pub fn synthetic(mut self, group: &str, size: u64, period_ms: u32, more: &str) -> Self {
        let channel = self.applications.len() + 1;
        self.applications.push(format!(
            "[[application]]\nname = \"s{channel}\"\ngroup = \"{group}\"\nkind = \"synthetic\"\n\
             channel = {channel}\nperiod_ms = {period_ms}\nsize = {size}\n{more}\n"
        ));
        self
    }

    /// Keeps the states of the applications that are there on disk, as `lines` of each say.
    pub fn keeping(mut self, lines: &str) -> Self {
        self.keeps = true;
        for application in &mut self.applications {
            let place = application.find("channel = ").unwrap();
            application.insert_str(place, &format!("persist = \"file\"\n{lines}\n"));
        }
        self
    }

    /// The address of `node` on its network number `network`.
    pub fn address(&self, node: &str, network: usize) -> SocketAddr {
        let node = self.nodes.iter().find(|one| one.name == node).unwrap();
        node.addresses[network].1
    }

    /// The file, with control sockets in `directory`.
    pub fn text(&self, directory: &Path) -> String {
        let mut file = format!(
            "[pair]\nname = \"{}\"\n\n[timing]\nheartbeat_ms = {}\nlease_ms = {}\n\
             start_wait_ms = {}\n\n[transfer]\n{}\n",
            self.name, self.heartbeat_ms, self.lease_ms, self.start_wait_ms, self.transfer
        );
        let security = match self.key_lifetime_s {
            Some(seconds) => format!("key_lifetime_s = {seconds}"),
            None if self.open => "packets = \"open\"".into(),
            None => format!("keys = [\"{}.key\"]", self.name),
        };
        let _ = writeln!(file, "[security]\n{security}\n");
        for name in &self.networks {
            let _ = writeln!(file, "[[network]]\nname = \"{name}\"\n{}\n", self.network);
        }
        for Node { name, addresses } in &self.nodes {
            let addresses: Vec<_> = addresses
                .iter()
                .map(|(network, address)| format!("{network} = \"{address}\""))
                .collect();
            let control = directory.join(format!("{name}.sock"));
            let states = directory.join(format!("{name}.states"));
            let states = match self.keeps {
                true => format!("state_dir = '{}'\n", states.display()),
                false => String::new(),
            };
            let _ = writeln!(
                file,
                "[[node]]\nname = \"{name}\"\naddresses = {{ {} }}\ncontrol = '{}'\n{states}",
                addresses.join(", "),
                control.display()
            );
        }
        let mut references = Vec::new();
        for (number, (network, address)) in self.witnesses.iter().enumerate() {
            references.push(format!("\"w{number}\""));
            let _ = writeln!(
                file,
                "[[reference]]\nname = \"w{number}\"\nkind = \"witness\"\n\
                 network = \"{network}\"\naddress = \"{address}\"\n"
            );
        }
        for Group { name, nodes } in &self.groups {
            let _ = writeln!(
                file,
                "[[group]]\nname = \"{name}\"\nnodes = [\"{}\", \"{}\"]\nreferences = [{}]\n{}\n",
                nodes[0],
                nodes[1],
                references.join(", "),
                self.group
            );
        }
        file + &self.applications.join("\n")
    }
}
