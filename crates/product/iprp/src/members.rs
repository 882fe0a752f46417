//! Of which groups programs of this host are members, and being one on every network for them (`spec/iprp-daemon.md`, L-62).
//!
//! The data plane gives packets of a group to programs only while the host is a member on the interface on which it gives them: they
//! would leave it otherwise. So memberships are made before it is told, and given up when it has said that it knows.

mod wanted;

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::Path;

use bumpless_capture::{Joins, Membership, Wanted, memberships};
use bumpless_config::Problem;
use bumpless_iprp::{Networks, ReceiverEvent, SessionId};
use serde_json::{Value, json};

use crate::config::{Config, Group};
use crate::networks::Attachment;
use wanted::{Heard, wanted};

/// A group in which programs of this host are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The group.
    pub group: IpAddr,
    /// Number of the card on which they are given packets.
    pub card: usize,
    /// Of a group of IPv6: of which sources packets stay on the host when they are given on a card, by its number. Of one of IPv4, where
    /// the host's own address decides: nothing.
    pub held: Vec<Wanted>,
}

impl Member {
    /// Whether a packet of `source` that is given on `card` stays on the host.
    pub fn keeps(&self, card: usize, source: IpAddr) -> bool {
        self.group.is_ipv4() || self.held.get(card).is_some_and(|held| held.takes(source))
    }
}

/// What the data plane is to know of members. A later one has a higher number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Which of several this is.
    pub number: u64,
    /// Groups in which programs are.
    pub all: Vec<Member>,
}

/// What is wanted on a card, by the kernel's number of its interface, and of which group.
type Plan = BTreeMap<(u32, IpAddr), Wanted>;

/// The memberships of this host's groups.
pub struct Memberships {
    groups: Vec<IpAddr>,
    joins: Joins,
    heard: BTreeMap<SessionId, Heard>,
    /// How many programs' sockets are in a group.
    programs: BTreeMap<IpAddr, u32>,
    /// What is wanted at present.
    plan: Plan,
    told: Members,
    /// Which of what was told the data plane knows.
    known: u64,
    /// What was told is void.
    is_stale: bool,
}

impl Memberships {
    /// None as yet, of these groups.
    ///
    /// # Errors
    /// The system has no socket.
    pub fn new(groups: Vec<IpAddr>) -> io::Result<Self> {
        Ok(Self {
            groups,
            joins: Joins::new()?,
            heard: BTreeMap::new(),
            programs: BTreeMap::new(),
            plan: Plan::new(),
            told: Members::default(),
            known: 0,
            is_stale: false,
        })
    }

    /// What has happened at the receiving end: where packets of a group come from.
    pub fn hear(&mut self, event: &ReceiverEvent) {
        match event {
            ReceiverEvent::Begun {
                session,
                source,
                scope,
            } if scope.destination.is_multicast() => {
                let heard = Heard {
                    group: scope.destination,
                    source: *source,
                    networks: Networks::default(),
                };
                self.heard.insert(*session, heard);
            }
            ReceiverEvent::Networks { session, networks } => {
                if let Some(heard) = self.heard.get_mut(session) {
                    heard.networks = *networks;
                }
            }
            ReceiverEvent::Ended { session, .. } => drop(self.heard.remove(session)),
            _ => {}
        }
    }

    /// Looks of which groups programs are members, and is one as well. What the data plane is to know from here on, if that has
    /// changed, and what the kernel refuses.
    pub fn look(&mut self, cards: &[Attachment]) -> (Option<Members>, Result<(), String>) {
        if self.groups.is_empty() {
            return (None, Ok(()));
        }
        let told = memberships().map(|all| self.of_programs(all));
        let (members, result) = match told {
            Ok(programs) => self.join(cards, &programs),
            Err(error) => {
                let words = format!("the kernel does not tell who is a member of groups: {error}");
                return (None, Err(words));
            }
        };
        self.give_up();
        if members == self.told.all && !self.is_stale {
            return (None, result);
        }
        self.is_stale = false;
        self.told = Members {
            number: self.told.number + 1,
            all: members,
        };
        (Some(self.told.clone()), result)
    }

    /// The data plane is told of other cards: it is to be told of members anew, and counts on all until it has been.
    pub fn tell_anew(&mut self) {
        self.told.number += 1;
        self.is_stale = true;
    }

    /// The data plane knows this.
    pub fn known(&mut self, number: u64) {
        self.known = number;
        self.give_up();
    }

    /// What programs are members of, without what this process is.
    fn of_programs(&self, all: Vec<Membership>) -> Vec<Membership> {
        let ours = all
            .into_iter()
            .filter(|it| self.groups.contains(&it.group) && it.interface != "lo");
        let theirs = ours.map(|it| self.joins.without_own(it));
        theirs.filter(|it| it.users > 0).collect()
    }

    /// Joins what is wanted; of which groups packets can be given to programs.
    fn join(
        &mut self,
        cards: &[Attachment],
        programs: &[Membership],
    ) -> (Vec<Member>, Result<(), String>) {
        let (mut members, mut result) = (Vec::new(), Ok(()));
        self.plan.clear();
        self.programs.clear();
        for &group in &self.groups {
            let programs: Vec<_> = programs.iter().filter(|it| it.group == group).collect();
            let users = programs.iter().map(|it| it.users).sum();
            let heard = self.heard.values().filter(|it| it.group == group);
            if !is_carried(group, cards) {
                result = Err(format!("a [[group]] {}; {NO_NETWORK}", not_carried(group)));
            }
            let Some((card, wanted)) = wanted(cards, group, &programs, heard) else {
                continue;
            };
            self.programs.insert(group, users);
            for (at, wanted) in wanted {
                let on = cards[at].index;
                if let Err(error) = self.joins.add(on, group, &wanted) {
                    result = Err(not_joined(group, &cards[at].interface, &error));
                }
                self.plan.insert((on, group), wanted);
            }
            // Without its own address packets for programs would leave.
            let (own, held) = (cards[card].address, self.held(cards, group));
            if held[card].takes(own) {
                let held = if group.is_ipv4() { Vec::new() } else { held };
                members.push(Member { group, card, held });
            }
        }
        (members, result)
    }

    /// What is held of `group` on each card, without what is to be given up.
    fn held(&self, cards: &[Attachment], group: IpAddr) -> Vec<Wanted> {
        let one = |card: &Attachment| {
            let held = self.joins.held(card.index, group)?;
            let wanted = self.plan.get(&(card.index, group))?;
            let sources = held.sources.intersection(&wanted.sources).copied();
            Some(Wanted {
                any: held.any && wanted.any,
                sources: sources.collect(),
            })
        };
        cards
            .iter()
            .map(|card| one(card).unwrap_or_default())
            .collect()
    }

    /// Gives up what is not wanted any more, once nobody counts on it.
    fn give_up(&mut self) {
        if self.known != self.told.number {
            return;
        }
        let nothing = Wanted::default();
        let held: Vec<_> = self.joins.all().collect();
        for (on, group) in held {
            let wanted = self.plan.get(&(on, group)).unwrap_or(&nothing);
            self.joins.keep(on, group, wanted);
        }
    }

    /// The groups for status.
    pub fn status(&self, cards: &[Attachment]) -> Vec<Value> {
        let one = |group: &IpAddr| {
            let held = cards.iter().filter_map(|card| {
                let (on, wanted) = (card.address, self.joins.held(card.index, *group)?);
                Some(json!({
                    "ind": card.ind.get(),
                    "interface": card.interface,
                    "any_source": wanted.any,
                    "sources": wanted.sources.iter().filter(|it| **it != on).map(ToString::to_string).collect::<Vec<_>>(),
                }))
            });
            json!({
                "address": group.to_string(),
                "members": self.programs.get(group).copied().unwrap_or(0),
                "joined": held.collect::<Vec<_>>(),
            })
        };
        self.groups.iter().map(one).collect()
    }
}

fn not_joined(group: IpAddr, interface: &str, error: &io::Error) -> String {
    let remedy = match group {
        IpAddr::V4(_) => "raise net.ipv4.igmp_max_memberships or net.ipv4.igmp_max_msf",
        IpAddr::V6(_) => "raise net.ipv6.mld_max_msf or net.core.optmem_max",
    };
    format!("cannot join group {group} on {interface}: {error}; {remedy}")
}

/// Whether a network of the host has an address of the group's family.
fn is_carried(group: IpAddr, cards: &[Attachment]) -> bool {
    cards
        .iter()
        .any(|card| card.address.is_ipv4() == group.is_ipv4())
}

const NO_NETWORK: &str = "let the rule of a [[network]] mean an address of the group's family: prefix does so where an interface has both, \
     while interface means the address of IPv4";

/// What is wrong with a group that none carries.
fn not_carried(group: IpAddr) -> String {
    let family = if group.is_ipv4() { "IPv4" } else { "IPv6" };
    format!("is {group}, and no network of this host has an address of {family}")
}

/// What is wrong with the groups in the file at `file`, whose content is `config`, where the host has these networks.
pub fn problems(config: &Config, cards: &[Attachment], file: &Path) -> Vec<Problem> {
    let lost = config
        .groups
        .iter()
        .filter(|it| !is_carried(it.address, cards));
    let problem = |group: &Group| Problem {
        file: file.display().to_string(),
        line: group.line,
        field: "group".into(),
        wrong: not_carried(group.address),
        right: NO_NETWORK.into(),
    };
    lost.map(problem).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_packet_of_ipv6_is_given_only_where_the_host_is_a_member_for_its_source() {
        let [v4, v6]: [IpAddr; 2] = ["239.1.2.3", "ff35::1:2"].map(|it| it.parse().unwrap());
        let address = |host: u16| IpAddr::from([0xFD00, 1, 0, 0, 0, 0, 0, host]);
        let one = Wanted {
            any: false,
            sources: [address(7)].into(),
        };
        let any = Wanted {
            any: true,
            sources: BTreeSet::new(),
        };
        let member = |group, held: &[Wanted]| Member {
            group,
            card: 0,
            held: held.into(),
        };
        let of_one = member(v6, &[one, Wanted::default()]);
        assert!(of_one.keeps(0, address(7)));
        assert!(!of_one.keeps(0, address(8)));
        assert!(!of_one.keeps(1, address(7)) && !of_one.keeps(9, address(7)));
        assert!(member(v6, &[any]).keeps(0, address(8)));
        assert!(member(v4, &[]).keeps(0, address(8)));
    }
}
