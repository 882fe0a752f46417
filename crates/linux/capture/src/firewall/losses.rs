//! Packets that a network namespace loses at random as they come in: a table for each interface with a chain, whose name tells
//! how many. Whoever has sent them learns nothing of it.

use std::io;

use rustix::io::Errno;
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

    /// Messages by which the table `name` of one IP version says this, and nothing else.
    fn in_table(self, messages: Message, name: &str, family: u8) -> Message {
        let table =
            |it: Message, kind, flags| it.begin(kind, flags).netfilter(family, 0).text(1, name);
        // One that is not there cannot be removed.
        let made = table(messages, NEW_TABLE, CREATE);
        let removed = table(made, DELETE_TABLE, 0);
        if self.millionths == 0 {
            return removed;
        }
        let made = table(removed, NEW_TABLE, CREATE);
        let chain = self.chain();
        let made = table(made, NEW_CHAIN, CREATE)
            .text(3, &chain)
            .nested(4, |it| {
                it.number(1, BEFORE_ROUTING).number(2, PRIORITY as u32)
            })
            .text(7, "filter");
        table(made, NEW_RULE, CREATE | APPEND)
            .text(2, &chain)
            .nested(4, |it| {
                Expressions(it)
                    .coming_in_by(self.interface)
                    .share(self.millionths, WHOLE)
                    .drop()
                    .0
            })
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

/// Makes these interfaces lose these shares in the network namespace of the calling thread, whatever they lost before; a share of
/// 0: nothing. Each has a table of its own, `prefix` and its number, so others stay as they are. It stays with the namespace.
/// The kernel takes all of them or none.
///
/// # Errors
/// The kernel lacks nf_tables or its random numbers (nft_numgen), or the right to it (CAP_NET_ADMIN) is missing.
pub fn lose_incoming(prefix: &str, losses: &[Loss]) -> io::Result<()> {
    let netlink = Netlink::open(Some(netlink::NETFILTER))?;
    let mut batch = begin();
    for loss in losses {
        let name = format!("{prefix}-{}", loss.interface);
        for family in [IPV4, IPV6] {
            batch = loss.in_table(batch, &name, family);
        }
    }
    netlink.transact(end(batch).bytes())
}

/// What tables of [`lose_incoming`] with this `prefix` lose in the network namespace of the calling thread: nothing where the
/// kernel has no nf_tables.
///
/// # Errors
/// The kernel does not tell.
pub fn lost_incoming(prefix: &str) -> io::Result<Vec<Loss>> {
    let question = Message::new()
        .begin_quiet(GET_CHAIN, DUMP)
        .netfilter(IPV4, 0);
    let mut losses = Vec::new();
    let asked = Netlink::open(Some(netlink::NETFILTER)).and_then(|netlink| {
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
        })
    });
    match asked {
        Err(error) if !is_of_no_tables(&error) => Err(error),
        _ => Ok(losses),
    }
}

/// Whether the kernel says so without nf_tables: it has no such sockets without netfilter's messages, and no such question
/// without its tables.
fn is_of_no_tables(error: &io::Error) -> bool {
    let errors = [Errno::PROTONOSUPPORT, Errno::INVAL, Errno::OPNOTSUPP];
    errors
        .iter()
        .any(|it| Some(it.raw_os_error()) == error.raw_os_error())
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

    #[test]
    fn a_kernel_without_tables_is_told_from_one_that_refuses() {
        let of = |error: Errno| is_of_no_tables(&error.into());
        assert!([Errno::PROTONOSUPPORT, Errno::INVAL, Errno::OPNOTSUPP].map(of) == [true; 3]);
        assert!([Errno::PERM, Errno::NOBUFS, Errno::NOMEM].map(of) == [false; 3]);
    }
}
