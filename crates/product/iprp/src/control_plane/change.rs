//! Changes while the daemon runs: of its file, and of the host's networks.

use bumpless_base::Instant;
use bumpless_config::Problem;
use bumpless_node::control::refusal;
use serde_json::{Value, json};

use super::ControlPlane;
use super::troubles::Of;
use crate::closed;
use crate::config::Config;
use crate::exchange::{Attached, ToData};
use crate::groups::GroupKeys;
use crate::host::{self, OpenPorts, SocketError, attach, find_attachments};
use crate::networks::Attachment;
use crate::trust;

/// Networks that are to be the host's, with their sockets.
struct Change {
    attachments: Vec<Attachment>,
    attached: Box<Attached>,
    ports: OpenPorts,
    cards: Vec<closed::Card>,
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

impl ControlPlane {
    /// Reads the file again, and follows what it says of monitored ports and networks. The reply to who has asked for it, and
    /// whether the sockets are others.
    pub fn reload(&mut self, now: Instant) -> (Value, bool) {
        let (reply, changed) = match Config::load(&self.file) {
            Ok(config) => self.follow(now, config),
            Err(problems) => (refusal(lines(&problems)), false),
        };
        let words = match reply["error"].as_str() {
            Some(error) => format!("the file was not taken, everything is as it was:\n{error}"),
            None => "the file was read again and is in force".to_owned(),
        };
        self.log.say("reload", reply.clone(), &words);
        (reply, changed)
    }

    fn follow(&mut self, now: Instant, config: Config) -> (Value, bool) {
        let groups = |it: &Config| {
            let groups = it.groups.iter();
            groups.map(|it| it.address).collect::<Vec<_>>()
        };
        let fixed = |it: &Config| {
            (
                it.host.clone(),
                it.security.clone(),
                it.timing,
                it.limits,
                groups(it),
            )
        };
        if fixed(&config) != fixed(&self.config) {
            let words = "[host], [security], [timing], [limits] or the address of a [[group]] is another one: those take a restart, which \
                         costs no flow anything; [[monitor]], [[network]] and keys of a [[group]] change while the daemon runs";
            return (refusal(words), false);
        }
        let secrets = match trust::groups(&config, &self.file) {
            Ok(secrets) => secrets,
            Err(error) => return (refusal(error.to_string()), false),
        };
        let attachments = match find_attachments(&config, &self.file.display().to_string()) {
            Ok(attachments) => attachments,
            Err(problems) => return (refusal(lines(&problems)), false),
        };
        // All that can fail comes before anything is changed, or is taken back.
        let change = match self.open(&config, attachments) {
            Ok(change) => change,
            Err(error) => return (refusal(error.to_string()), false),
        };
        let before = std::mem::replace(&mut self.config, config);
        if let Err(words) = self.take_rules(now, secrets, (&before, change.as_ref())) {
            self.config = before;
            return (refusal(words), false);
        }
        self.no_trouble("rules");
        let (watched, modes) = (self.config.watched(), host::modes(&self.config));
        self.tell(ToData::Monitored(watched, modes));
        let changed = change.is_some();
        if let Some(change) = change {
            self.take_networks(change);
        }
        (
            json!({"schema": "bumpless.iprp.reload/1", "ok": true}),
            changed,
        )
    }

    /// Rules of the firewall and secrets of groups are those of the file that is in force from here on, or both as they were.
    fn take_rules(
        &mut self,
        now: Instant,
        secrets: Vec<GroupKeys>,
        (before, change): (&Config, Option<&Change>),
    ) -> Result<(), String> {
        let attachments = change.map_or(&self.attachments, |it| &it.attachments);
        let rules = host::rules(&self.config, attachments, &self.ways);
        if let Some(firewall) = &mut self.firewall {
            let replaced = firewall.replace(&rules);
            replaced.map_err(|error| format!("the firewall's rules cannot be changed: {error}"))?;
        }
        let Err(error) = self.renew_groups(now, secrets) else {
            return Ok(());
        };
        // They were in force until a moment ago.
        let rules = host::rules(before, &self.attachments, &self.ways);
        if let Some(firewall) = &mut self.firewall {
            let _ = firewall.replace(&rules);
        }
        Err(format!(
            "keys of [[group]]: {error}; make another key file for one of them"
        ))
    }

    /// Looks whether the host's networks are others; whether the sockets are.
    pub fn follow_networks(&mut self) -> bool {
        let file = self.file.display().to_string();
        let change = match find_attachments(&self.config, &file) {
            Ok(attachments) => self
                .open(&self.config, attachments)
                .map_err(|error| error.to_string()),
            Err(problems) => Err(lines(&problems).replace('\n', "; ")),
        };
        let change = match change {
            Ok(change) => change,
            Err(why) => {
                let words = format!("the host's networks are kept as they were: {why}");
                self.trouble(Of::Host, "networks", &words);
                return false;
            }
        };
        self.no_trouble("networks");
        let Some(change) = change else {
            if self.state.troubles.has("rules") {
                self.replace_rules();
            }
            return false;
        };
        self.take_networks(change);
        self.replace_rules();
        true
    }

    /// Opens sockets of these networks, if they are others than before.
    fn open(
        &self,
        config: &Config,
        attachments: Vec<Attachment>,
    ) -> Result<Option<Change>, SocketError> {
        if attachments == self.attachments {
            return Ok(None);
        }
        let (attached, ports, cards) = attach(config, &attachments, Some(&self.ports))?;
        Ok(Some(Change {
            attachments,
            attached: Box::new(attached),
            ports,
            cards,
        }))
    }

    fn take_networks(&mut self, change: Change) {
        let shown: Vec<_> = change
            .attachments
            .iter()
            .map(|it| format!("{} ({}, ind {})", it.address, it.interface, it.ind.get()))
            .collect();
        let words = format!("the host's networks are {}", shown.join(", "));
        self.log.say("networks", json!({"networks": shown}), &words);
        if let Some(agreements) = &self.agreements {
            let addresses = change.attachments.iter().map(|it| it.address);
            agreements.set_addresses(addresses.collect());
        }
        self.attachments = change.attachments;
        self.ports = change.ports;
        self.closed.set_cards(change.cards);
        // Members are known by numbers of networks: both are told together, so that no packet comes in between.
        self.members.tell_anew();
        let members = self.look_for_members();
        self.tell(ToData::Attached(change.attached));
        if let Some(members) = members {
            self.tell(ToData::Members(members));
        }
    }

    fn replace_rules(&mut self) {
        let Some(firewall) = &mut self.firewall else {
            return;
        };
        let rules = host::rules(&self.config, &self.attachments, &self.ways);
        match firewall.replace(&rules) {
            Ok(()) => self.no_trouble("rules"),
            Err(error) => {
                let words = format!("the firewall's rules cannot be changed: {error}");
                self.trouble(Of::Host, "rules", &words);
            }
        }
    }

    /// Looks by which next hops captured packets can leave.
    pub fn follow_next_hops(&mut self, now: Instant) {
        let Some(firewall) = &mut self.firewall else {
            return;
        };
        match self.ways.follow(now, firewall) {
            Ok(()) => self.no_trouble("next hops"),
            Err(words) => self.trouble(Of::Host, "next hops", &words),
        }
    }
}
