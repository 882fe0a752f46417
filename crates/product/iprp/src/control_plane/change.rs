//! Changes while the daemon runs: of its file, and of the host's networks.

use bumpless_base::Instant;
use bumpless_node::control::refusal;
use serde_json::{Value, json};

use super::ControlPlane;
use crate::config::Config;
use crate::exchange::ToData;
use crate::host::{self, attach, find_attachments};
use crate::trust;

impl ControlPlane {
    /// Reads the file again, and follows what it says of monitored ports and networks. The reply to who has asked for it, and
    /// whether the sockets are others.
    pub fn reload(&mut self, now: Instant) -> (Value, bool) {
        let (reply, changed) = match Config::load(&self.file) {
            Ok(config) => self.follow(now, config),
            Err(problems) => {
                let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
                (refusal(lines.join("\n")), false)
            }
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
            Err(problems) => {
                let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
                return (refusal(lines.join("\n")), false);
            }
        };
        let before = std::mem::replace(&mut self.config, config);
        let rules = host::rules(&self.config, &attachments, &self.ways);
        let replaced = self
            .firewall
            .as_mut()
            .map(|firewall| firewall.replace(&rules));
        if let Some(Err(error)) = replaced {
            self.config = before;
            let words = format!("the firewall's rules cannot be changed: {error}");
            return (refusal(words), false);
        }
        if let Err(error) = self.renew_groups(now, secrets) {
            self.config = before;
            let rules = host::rules(&self.config, &self.attachments, &self.ways);
            // They were in force until a moment ago.
            if let Some(firewall) = &mut self.firewall {
                let _ = firewall.replace(&rules);
            }
            let words =
                format!("keys of [[group]]: {error}; make another key file for one of them");
            return (refusal(words), false);
        }
        let (watched, modes) = (self.config.watched(), host::modes(&self.config));
        self.tell(ToData::Monitored(watched, modes));
        let changed = attachments != self.attachments && self.take_networks(attachments);
        (
            json!({"schema": "bumpless.iprp.reload/1", "ok": true}),
            changed,
        )
    }

    /// Looks whether the host's networks are others; whether the sockets are.
    pub fn follow_networks(&mut self) -> bool {
        let file = self.file.display().to_string();
        match find_attachments(&self.config, &file) {
            Ok(attachments) if attachments == self.attachments => {
                self.no_trouble("networks");
                false
            }
            Ok(attachments) => self.take_networks(attachments),
            Err(problems) => {
                let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
                let words = format!(
                    "the host's networks are kept as they were: {}",
                    lines.join("; ")
                );
                self.trouble("networks", words);
                false
            }
        }
    }

    fn take_networks(&mut self, attachments: Vec<crate::networks::Attachment>) -> bool {
        let opened = attach(&self.config, &attachments);
        let (attached, ports, cards) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.trouble("networks", error.to_string());
                return false;
            }
        };
        self.no_trouble("networks");
        let shown: Vec<_> = attachments
            .iter()
            .map(|it| format!("{} ({}, ind {})", it.address, it.interface, it.ind.get()))
            .collect();
        let words = format!("the host's networks are {}", shown.join(", "));
        self.log.say("networks", json!({"networks": shown}), &words);
        if let Some(agreements) = &self.agreements {
            agreements.set_addresses(attachments.iter().map(|it| it.address).collect());
        }
        self.attachments = attachments;
        self.ports = ports;
        self.closed.set_cards(cards);
        // Members are known by numbers of networks: both are told together, so that no packet comes in between.
        self.members.tell_anew();
        let members = self.look_for_members();
        self.tell(ToData::Attached(Box::new(attached)));
        if let Some(members) = members {
            self.tell(ToData::Members(members));
        }
        self.replace_rules();
        true
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
                self.trouble("rules", words);
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
            Err(words) => self.trouble("next hops", words),
        }
    }
}
