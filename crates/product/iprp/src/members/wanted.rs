//! What of a group is wanted on which network, so that programs that are members on one have it from all.

use std::collections::BTreeSet;
use std::net::IpAddr;

use bumpless_capture::{Membership, Wanted};
use bumpless_iprp::Networks;

use crate::networks::Attachment;

/// A sender to a group, as far as its addresses matter.
pub struct Heard {
    pub group: IpAddr,
    pub source: IpAddr,
    pub networks: Networks,
}

/// On which card programs are given packets of a group, and what is wanted on each card; `None` if no program is a member, or no card has an
/// address of the group's family.
pub fn wanted<'a>(
    cards: &[Attachment],
    group: IpAddr,
    programs: &[&Membership],
    heard: impl Iterator<Item = &'a Heard>,
) -> Option<(usize, Vec<(usize, Wanted)>)> {
    let able = || {
        let cards = cards.iter().enumerate();
        cards.filter(|(_, card)| card.address.is_ipv4() == group.is_ipv4())
    };
    let is_on = |card: &Attachment| programs.iter().any(|it| it.interface == card.interface);
    programs.first()?;
    let (first, _) = able().next()?;
    let given_on = able().find(|(_, card)| is_on(card));
    let given_on = given_on.map_or(first, |(at, _)| at);
    let any = programs.iter().any(|it| it.takes_any());
    let asked: BTreeSet<IpAddr> = programs
        .iter()
        .flat_map(|it| it.sources.keys().copied())
        .collect();
    let senders: Vec<_> = heard.filter(|it| asked.contains(&it.source)).collect();
    let on_each = able().map(|(at, card)| {
        if any {
            let sources = BTreeSet::new();
            return (at, Wanted { any, sources });
        }
        // Its own address, so that what is for programs of this host stays here.
        let mut sources = BTreeSet::from([card.address]);
        if at == given_on || is_on(card) {
            sources.extend(&asked);
        }
        let elsewhere = senders.iter().filter_map(|it| it.networks.get(card.ind));
        sources.extend(elsewhere.filter(|it| it.is_ipv4() == group.is_ipv4()));
        (at, Wanted { any, sources })
    });
    Some((given_on, on_each.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bumpless_iprp::{Ind, Network};

    const GROUPS: [IpAddr; 2] = [
        IpAddr::V4(std::net::Ipv4Addr::new(239, 1, 2, 3)),
        IpAddr::V6(std::net::Ipv6Addr::new(0xFF35, 0, 0, 0, 0, 0, 1, 2)),
    ];

    fn card(group: IpAddr, ind: u8, interface: &str) -> Attachment {
        Attachment {
            ind: Ind::new(ind).unwrap(),
            interface: interface.into(),
            index: u32::from(ind),
            address: address(group, ind, 2),
            mtu: 1500,
        }
    }

    /// That of a host on a network, of the family of `group`.
    fn address(group: IpAddr, ind: u8, host: u8) -> IpAddr {
        match group {
            IpAddr::V4(_) => [10, ind, 0, host].into(),
            IpAddr::V6(_) => [0xFD00, ind.into(), 0, 0, 0, 0, 0, host.into()].into(),
        }
    }

    fn program(group: IpAddr, interface: &str, sources: &[IpAddr]) -> Membership {
        Membership {
            interface: interface.into(),
            index: 0,
            group,
            users: 1,
            sources: sources.iter().map(|it| (*it, 1)).collect(),
        }
    }

    fn heard(group: IpAddr, host: u8) -> Heard {
        let network = |ind: u8| Network {
            ind: Ind::new(ind).unwrap(),
            address: address(group, ind, host),
        };
        Heard {
            group,
            source: address(group, 1, host),
            networks: Networks::new(&[network(1), network(2)]).unwrap(),
        }
    }

    #[test]
    fn a_group_is_joined_on_every_network_as_programs_have_joined_it_on_one() {
        GROUPS.into_iter().for_each(is_joined_everywhere);
    }

    fn is_joined_everywhere(group: IpAddr) {
        // The third one is of the other family, and no network of this group's.
        let other = GROUPS[usize::from(group == GROUPS[0])];
        let cards = [
            card(group, 1, "na"),
            card(group, 2, "nb"),
            card(other, 3, "nc"),
        ];
        let all = [heard(group, 7), heard(group, 8)];
        let wanted = |programs: &[&Membership]| wanted(&cards, group, programs, all.iter());
        assert_eq!(wanted(&[]), None);
        let program_on_b = program(group, "nb", &[]);
        let (given_on, joined) = wanted(&[&program_on_b]).unwrap();
        assert_eq!(given_on, 1, "where a program is");
        assert!(joined.iter().all(|(_, it)| it.any && it.sources.is_empty()));
        assert_eq!(joined.len(), 2);
        // One that wants a single source is given no other one's packets, on any network.
        let specific = program(group, "na", &[address(group, 1, 7)]);
        let (given_on, joined) = wanted(&[&specific]).unwrap();
        assert_eq!(given_on, 0);
        let of = |ind: u8| [2, 7].map(|host| address(group, ind, host));
        let expected = [(0, BTreeSet::from(of(1))), (1, BTreeSet::from(of(2)))];
        let joined = joined.into_iter().map(|(at, it)| (at, it.sources));
        assert_eq!(joined.collect::<Vec<_>>(), expected);
        // A program on an interface that is no network of this host.
        let elsewhere = program(group, "mgmt", &[]);
        assert_eq!(wanted(&[&elsewhere]).unwrap().0, 0);
        let alone = [card(other, 3, "nc")];
        let without = super::wanted(&alone, group, &[&elsewhere], all.iter());
        assert_eq!(without, None);
    }
}
