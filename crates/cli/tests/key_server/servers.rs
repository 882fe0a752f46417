//! A pair with certificates, and key servers beside it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::plan::Plan;
use crate::support::process::{BUMPLESS, Process, json, said};
use crate::support::site::Site;
use crate::support::wait_for;

/// What shows that a packet or a state was lost to a change of keys.
const LOSSES: [&str; 4] = [
    "discard_unknown_key",
    "discard_forged",
    "send_no_key",
    "states_withheld",
];

/// A pair whose nodes take their keys from servers.
pub struct Keyed {
    pub site: Site,
    servers: Vec<&'static str>,
    running: BTreeMap<&'static str, Process>,
}

/// What `names` are called in a list of TOML.
pub fn named(names: &[String]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("{name:?}")).collect();
    format!("[{}]", quoted.join(", "))
}

impl Keyed {
    /// With `servers`, of which the first one makes the keys and the others follow it. Nothing is started.
    pub fn new(servers: &[&'static str], lifetime_s: u32, in_advance: u32) -> Self {
        let plan = Plan::pair(2).tank(50, "");
        Self::of(plan, servers, (lifetime_s, in_advance))
    }

    /// The same of a pair with this `plan`.
    pub fn of(
        mut plan: Plan,
        servers: &[&'static str],
        (lifetime_s, in_advance): (u32, u32),
    ) -> Self {
        plan.key_lifetime_s = Some(3600);
        let keyed = Self {
            site: Site::new(plan),
            servers: servers.to_vec(),
            running: BTreeMap::new(),
        };
        let all: Vec<_> = servers.iter().map(|name| keyed.at(name)).collect();
        let site = &keyed.site;
        let text = fs::read_to_string(site.config()).unwrap();
        let with = format!("key_lifetime_s = 3600\nkey_servers = {}", named(&all));
        fs::write(site.config(), text.replace("key_lifetime_s = 3600", &with)).unwrap();
        for (number, name) in servers.iter().enumerate() {
            site.issue(&format!("{name}.keys"));
            let follow = match number {
                0 => None,
                _ => Some(&all[..1]),
            };
            keyed.write(name, follow, &keyed.members(), (lifetime_s, in_advance));
        }
        keyed
    }

    /// Everybody who takes keys.
    pub fn members(&self) -> Vec<String> {
        let nodes = ["left", "right"].map(|node| format!("{node}.{}", self.site.plan.name));
        let followers = self.servers.iter().skip(1);
        nodes
            .into_iter()
            .chain(followers.map(|name| format!("{name}.keys")))
            .collect()
    }

    /// Writes the file of the server `name`.
    pub fn write(
        &self,
        name: &str,
        follow: Option<&[String]>,
        members: &[String],
        (lifetime_s, in_advance): (u32, u32),
    ) {
        let follow = follow.map_or(String::new(), |all| format!("follow = {}\n", named(all)));
        let own = format!("{name}.keys");
        let members: Vec<_> = members.iter().filter(|it| **it != own).cloned().collect();
        let text = format!(
            "[key_server]\nname = \"{name}\"\nlisten = [\"{}\"]\nsocket = \"{name}.keys.sock\"\n{follow}\n\
             [[group]]\nname = \"{}\"\nmembers = {}\nlifetime_s = {lifetime_s}\nin_advance = {in_advance}\n",
            self.address(name),
            self.site.plan.name,
            named(&members)
        );
        fs::write(self.file(name), text).unwrap();
    }

    pub fn address(&self, name: &str) -> SocketAddr {
        let number = self.servers.iter().position(|it| *it == name).unwrap();
        let SocketAddr::V4(plant) = self.site.plan.plant else {
            panic!("the plant is at an address of IPv4");
        };
        let [a, b, c, _] = plant.ip().octets();
        SocketAddr::from(([a, b, c, 210 + number as u8], 7300))
    }

    /// The server as members name it.
    pub fn at(&self, name: &str) -> String {
        format!("{name}@{}", self.address(name))
    }

    pub fn file(&self, name: &str) -> String {
        self.site
            .path(&format!("{name}.toml"))
            .display()
            .to_string()
    }

    pub fn start_server(&mut self, name: &'static str) {
        let output = self.site.path(&format!("{name}.keys.said"));
        let out = File::create(&output).unwrap();
        let mut command = Command::new(BUMPLESS);
        // As who follows the README does: where the file is.
        command
            .current_dir(self.site.path("."))
            .args(["key-server", "run", &format!("{name}.toml"), "--json"])
            .stdin(Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(out);
        self.running.insert(name, Process::spawn(command, &output));
        wait_for("the key server answers", || {
            let (_, _, status) = said(&["key-server", "status", &self.file(name)]);
            (status == Some(0)).then_some(())
        });
    }

    pub fn kill_server(&mut self, name: &str) {
        self.running.remove(name).unwrap().kill();
    }

    pub fn start_pair(&mut self) {
        self.site.start_surroundings();
        self.site.start("left");
        self.site.start("right");
    }

    /// What both nodes have counted of packets and states that were lost to a change of keys.
    pub fn losses(&self) -> [[u64; 4]; 2] {
        let of = |node: &str| LOSSES.map(|name| self.site.counter(node, name));
        ["left", "right"].map(of)
    }

    pub fn status(&self, name: &str) -> Value {
        let file = self.file(name);
        json(
            &["key-server", "status", &file, "--json"],
            "bumpless.key-server.status/1",
        )
        .0
    }

    /// Revokes the certificate of `name`, and brings the list to `folders`.
    pub fn revoke(&self, name: &str, folders: &[&str]) {
        let authority = self.site.path("pki").display().to_string();
        let (_, errors, status) = said(&["pki", "revoke", name, "--authority", &authority]);
        assert_eq!(status, Some(0), "{errors}");
        let list = fs::read(self.site.path("pki/revoked.pem")).unwrap();
        for folder in folders {
            fs::write(self.site.path(folder).join("revoked.pem"), &list).unwrap();
        }
    }

    /// No part of a key that a server has stands in what processes said, or logged.
    pub fn keys_are_nowhere(&self) {
        let mut secrets = Vec::new();
        for name in &self.servers {
            let path = self.site.path(&format!("{name}.keys.state"));
            let state: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
            let keys = state["groups"][0]["keys"].as_str().unwrap().to_owned();
            // Behind a length, a kind, a span and a count: place, key, spans.
            let keys = keys.as_bytes()[2 * (4 + 1 + 8 + 1)..].chunks(2 * 72);
            secrets.extend(keys.map(|key| String::from_utf8(key[32..96].to_vec()).unwrap()));
        }
        assert!(secrets.len() > 2);
        let files = fs::read_dir(self.site.path(".")).unwrap().flatten();
        let told = files.filter(|it| {
            let name = it.file_name().into_string().unwrap();
            name.ends_with(".said") || name.ends_with(".jsonl")
        });
        let mut read = 0;
        for file in told {
            let text = fs::read_to_string(file.path()).unwrap();
            read += 1;
            for secret in &secrets {
                assert!(!text.contains(secret), "{:?}", file.path());
            }
        }
        assert!(read > 3);
    }
}
