//! Of which groups programs of this host are members, and being one on every network for them (`spec/iprp-daemon.md`, L-62).
//!
//! The data plane gives packets of a group to programs only while the host is a member on the interface on which it gives them: they
//! would leave it otherwise. So memberships are made before it is told, and given up when it has said that it knows.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use bumpless_capture::{Joins, Membership, Wanted, memberships};
use bumpless_iprp::{Networks, ReceiverEvent, SessionId};
use serde_json::{Value, json};

use crate::networks::Attachment;

/// A group in which programs of this host are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The group.
    pub group: Ipv4Addr,
    /// Number of the card on which they are given packets.
    pub card: usize,
}

/// What the data plane is to know of members. A later one has a higher number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Which of several this is.
    pub number: u64,
    /// Groups in which programs are.
    pub all: Vec<Member>,
}

/// A sender to a group, as far as its addresses matter.
struct Heard {
    group: Ipv4Addr,
    source: Ipv4Addr,
    networks: Networks,
}

/// What is held on a card, by its address, and of which group.
type Plan = BTreeMap<(Ipv4Addr, Ipv4Addr), Wanted>;

/// The memberships of this host's groups.
pub struct Memberships {
    groups: Vec<Ipv4Addr>,
    joins: Joins,
    heard: BTreeMap<SessionId, Heard>,
    /// How many programs' sockets are in a group.
    programs: BTreeMap<Ipv4Addr, u32>,
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
    pub fn new(groups: Vec<Ipv4Addr>) -> std::io::Result<Self> {
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
                source: IpAddr::V4(source),
                scope,
            } => {
                if let IpAddr::V4(group) = scope.destination
                    && group.is_multicast()
                {
                    let heard = Heard {
                        group,
                        source: *source,
                        networks: Networks::default(),
                    };
                    self.heard.insert(*session, heard);
                }
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
        let told = memberships().map(|all| self.of_programs(cards, all));
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
    fn of_programs(&self, cards: &[Attachment], all: Vec<Membership>) -> Vec<Membership> {
        let ours = all
            .into_iter()
            .filter(|it| self.groups.contains(&it.group) && it.interface != "lo");
        let theirs = ours.map(|mut it| {
            // An interface has its memberships by whichever of this process's addresses there they were made.
            let on: Vec<_> = self
                .joins
                .all()
                .filter(|(on, group)| {
                    *group == it.group
                        && cards
                            .iter()
                            .any(|card| card.address == *on && card.interface == it.interface)
                })
                .collect();
            for (on, _) in on {
                it = self.joins.without_own(on, it);
            }
            it
        });
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
            let Some((card, wanted)) = wanted(cards, &programs, heard) else {
                continue;
            };
            self.programs.insert(group, users);
            let mut is_member = true;
            for (at, wanted) in wanted {
                let IpAddr::V4(on) = cards[at].address else {
                    continue;
                };
                if let Err(error) = self.joins.add(on, group, &wanted) {
                    let words = format!(
                        "cannot join group {group} on {}: {error}; raise net.ipv4.igmp_max_memberships or net.ipv4.igmp_max_msf",
                        cards[at].interface
                    );
                    result = Err(words);
                    // Without its own address packets for programs would leave.
                    let held = self.joins.held(on, group);
                    is_member &= at != card
                        || held.is_some_and(|held| held.any || held.sources.contains(&on));
                }
                self.plan.insert((on, group), wanted);
            }
            if is_member {
                members.push(Member { group, card });
            }
        }
        (members, result)
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
        let one = |group: &Ipv4Addr| {
            let held = cards.iter().filter_map(|card| {
                let IpAddr::V4(on) = card.address else {
                    return None;
                };
                let wanted = self.joins.held(on, *group)?;
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

/// On which card programs are given packets of a group, and what is wanted on each card; `None` if no program is a member, or the host has no
/// card for groups of IPv4.
fn wanted<'a>(
    cards: &[Attachment],
    programs: &[&Membership],
    heard: impl Iterator<Item = &'a Heard>,
) -> Option<(usize, Vec<(usize, Wanted)>)> {
    let able = || {
        let cards = cards.iter().enumerate();
        cards.filter_map(|(at, card)| match card.address {
            IpAddr::V4(own) => Some((at, own, card)),
            IpAddr::V6(_) => None,
        })
    };
    let is_on = |card: &Attachment| programs.iter().any(|it| it.interface == card.interface);
    programs.first()?;
    let (first, ..) = able().next()?;
    let given_on = able().find(|(.., card)| is_on(card));
    let given_on = given_on.map_or(first, |(at, ..)| at);
    let any = programs.iter().any(|it| it.takes_any());
    let asked: BTreeSet<Ipv4Addr> = programs
        .iter()
        .flat_map(|it| it.sources.keys().copied())
        .collect();
    let senders: Vec<_> = heard.filter(|it| asked.contains(&it.source)).collect();
    let on_each = able().map(|(at, own, card)| {
        if any {
            let sources = BTreeSet::new();
            return (at, Wanted { any, sources });
        }
        // Its own address, so that what is for programs of this host stays here.
        let mut sources = BTreeSet::from([own]);
        if at == given_on || is_on(card) {
            sources.extend(&asked);
        }
        let elsewhere = senders.iter().filter_map(|it| it.networks.get(card.ind));
        sources.extend(elsewhere.filter_map(|it| match it {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        }));
        (at, Wanted { any, sources })
    });
    Some((given_on, on_each.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bumpless_iprp::{Ind, Network};

    fn card(ind: u8, interface: &str) -> Attachment {
        Attachment {
            ind: Ind::new(ind).unwrap(),
            interface: interface.into(),
            index: 0,
            address: IpAddr::from([10, ind, 0, 2]),
            mtu: 1500,
        }
    }

    fn address(ind: u8, host: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, ind, 0, host)
    }

    fn program(interface: &str, sources: &[Ipv4Addr]) -> Membership {
        Membership {
            interface: interface.into(),
            group: Ipv4Addr::new(239, 1, 2, 3),
            users: 1,
            sources: sources.iter().map(|it| (*it, 1)).collect(),
        }
    }

    fn heard(host: u8) -> Heard {
        let network = |ind: u8| Network {
            ind: Ind::new(ind).unwrap(),
            address: address(ind, host).into(),
        };
        Heard {
            group: Ipv4Addr::new(239, 1, 2, 3),
            source: address(1, host),
            networks: Networks::new(&[network(1), network(2)]).unwrap(),
        }
    }

    #[test]
    fn a_group_is_joined_on_every_network_as_programs_have_joined_it_on_one() {
        let cards = [card(1, "na"), card(2, "nb")];
        let all = [heard(7), heard(8)];
        assert_eq!(wanted(&cards, &[], all.iter()), None);
        let program_on_b = program("nb", &[]);
        let (given_on, joined) = wanted(&cards, &[&program_on_b], all.iter()).unwrap();
        assert_eq!(given_on, 1, "where a program is");
        assert!(joined.iter().all(|(_, it)| it.any && it.sources.is_empty()));
        assert_eq!(joined.len(), 2);
        // One that wants a single source is given no other one's packets, on any network.
        let specific = program("na", &[address(1, 7)]);
        let (given_on, joined) = wanted(&cards, &[&specific], all.iter()).unwrap();
        assert_eq!(given_on, 0);
        let own = |ind: u8| address(ind, 2);
        let expected = [
            (0, BTreeSet::from([own(1), address(1, 7)])),
            (1, BTreeSet::from([own(2), address(2, 7)])),
        ];
        let joined = joined.into_iter().map(|(at, it)| (at, it.sources));
        assert_eq!(joined.collect::<Vec<_>>(), expected);
        // A program on an interface that is no network of this host.
        let elsewhere = program("mgmt", &[]);
        assert_eq!(wanted(&cards, &[&elsewhere], all.iter()).unwrap().0, 0);
    }
}
