//! Packets that a network namespace loses at random as they come in: a table with a chain for each interface, whose name tells
//! how many. Whoever has sent them learns nothing of it.

use std::io;

use rustix::net::netlink;

use super::batch::{
    APPEND, BEFORE_ROUTING, CREATE, DELETE_TABLE, DUMP, GET_CHAIN, IPV4, IPV6, NEW_CHAIN, NEW_RULE,
    NEW_TABLE, PRIORITY, begin, end,
};
use super::expression::Expressions;
use crate::netlink::{Message, Netlink, attributes};

/// What the name of a chain begins with.
const CHAIN: &str = "lose";
/// A share is so many parts of this.
const WHOLE: u32 = 1_000_000;

/// The share of incoming packets that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Number of the interface.
    pub interface: u32,
    /// Lost of a million packets.
    pub millionths: u32,
}

impl Loss {
    fn chain(self) -> String {
        format!("{CHAIN}-{}-{}", self.interface, self.millionths)
    }

    fn of_chain(name: &str) -> Option<Self> {
        let (interface, millionths) = name
            .strip_prefix(CHAIN)?
            .strip_prefix('-')?
            .split_once('-')?;
        Some(Self {
            interface: interface.parse().ok()?,
            millionths: millionths.parse().ok()?,
        })
    }
}

/// Loses these shares in the network namespace of the calling thread, by the table `name`, and no others: what the table
/// said before ends. It stays with the namespace.
///
/// # Errors
/// The kernel lacks nf_tables or its random numbers (nft_numgen), or the right to it (CAP_NET_ADMIN) is missing.
pub fn lose_incoming(name: &str, losses: &[Loss]) -> io::Result<()> {
    let netlink = Netlink::open(Some(netlink::NETFILTER))?;
    let mut batch = begin();
    for family in [IPV4, IPV6] {
        let table =
            |it: Message, kind, flags| it.begin(kind, flags).netfilter(family, 0).text(1, name);
        // One that is not there cannot be removed.
        batch = table(batch, NEW_TABLE, CREATE);
        batch = table(batch, DELETE_TABLE, 0);
        if losses.is_empty() {
            continue;
        }
        batch = table(batch, NEW_TABLE, CREATE);
        for loss in losses {
            let chain = loss.chain();
            batch = table(batch, NEW_CHAIN, CREATE)
                .text(3, &chain)
                .nested(4, |it| {
                    it.number(1, BEFORE_ROUTING).number(2, PRIORITY as u32)
                })
                .text(7, "filter");
            batch = table(batch, NEW_RULE, CREATE | APPEND)
                .text(2, &chain)
                .nested(4, |it| {
                    Expressions(it)
                        .coming_in_by(loss.interface)
                        .share(loss.millionths, WHOLE)
                        .drop()
                        .0
                });
        }
    }
    netlink.transact(end(batch).bytes())
}

/// What tables whose names begin with `prefix` lose in the network namespace of the calling thread.
///
/// # Errors
/// The kernel does not tell.
pub fn lost_incoming(prefix: &str) -> io::Result<Vec<Loss>> {
    let netlink = Netlink::open(Some(netlink::NETFILTER))?;
    let question = Message::new()
        .begin_quiet(GET_CHAIN, DUMP)
        .netfilter(IPV4, 0);
    let mut losses = Vec::new();
    netlink.dump(question.bytes(), |_, body| {
        let text = |wanted: u16| {
            let mut all = attributes(body, 4).filter(|(kind, _)| *kind == wanted);
            let value = all.next().map_or(&[][..], |(_, value)| value);
            String::from_utf8_lossy(value)
                .trim_end_matches('\0')
                .to_owned()
        };
        if text(1).starts_with(prefix) {
            losses.extend(Loss::of_chain(&text(3)));
        }
    })?;
    Ok(losses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_chain_tells_what_it_loses() {
        let loss = Loss {
            interface: 3,
            millionths: 12_500,
        };
        assert_eq!(Loss::of_chain(&loss.chain()), Some(loss));
        for other in ["lose", "lose-3", "lose-3-x", "output", "lose-3-1-1"] {
            assert_eq!(Loss::of_chain(other), None, "{other}");
        }
    }
}
